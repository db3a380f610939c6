/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks.c - tasks in both eras, through HTTP's seam, on a gateway that keeps them. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "keys.h"
#include "mcp_http.h"
#include "mcp_tasks.h"
#include "str.h"

/* Waiting for a condition gives up after this long. */
#define PATIENCE_MS 20000
#define BODY_MAX 8192

#define NEWER_META(extra)                                                                      \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{" extra "}}"
#define DECLARED                                                                               \
    NEWER_META("\"elicitation\":{},\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}")
#define UNDECLARED NEWER_META("\"elicitation\":{}")

struct fixture {
    struct harness harness;
    struct mcp_http *mcp;
    struct auth_caller caller;
};

static struct fixture fixture;

static void open_faces(void)
{
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(mcp_tasks_open(fixture.harness.gateway, &error), NG_OK);
    buf_done(&error);
    assert_int_equal(mcp_http_new(fixture.harness.gateway, &fixture.mcp), NG_OK);
}

static int set_up(void **state)
{
    static const char *const sets[] = {"plugins=" NOTEGATE_BUILD "/tests/modules/tasker.so",
                                       "limits.workers=8", NULL};
    (void)state;
    memset(&fixture, 0, sizeof(fixture));
    harness_open(&fixture.harness, sets);
    open_faces();
    fixture.caller.agent = ng_str_of("tester");
    fixture.caller.role = NG_ROLE_ADMIN;
    fixture.caller.mode = NG_MODE_AGENT;
    return 0;
}

static void start_anew(void)
{
    mcp_http_free(fixture.mcp);
    harness_reopen(&fixture.harness);
    open_faces();
}

static int tear_down(void **state)
{
    (void)state;
    mcp_tasks_stop(fixture.harness.gateway, true);
    mcp_http_free(fixture.mcp);
    harness_close(&fixture.harness);
    return 0;
}

/* ---- requests ---- */

struct exchange {
    struct mcp_http_request request;
    struct mcp_http_response response;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static struct ng_str no_header(const struct mcp_http_request *request, const char *name)
{
    struct ng_str none = {NULL, 0};
    (void)request;
    (void)name;
    return none;
}

static void exchange_done(struct mcp_http_response *response, void *user)
{
    struct exchange *exchange = user;
    (void)response;
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->done = true;
    (void)pthread_cond_broadcast(&exchange->changed);
    (void)pthread_mutex_unlock(&exchange->lock);
}

static void exchange_start(struct exchange *exchange, bool newer, const char *method,
                           const char *name, const char *body)
{
    memset(exchange, 0, sizeof(*exchange));
    (void)pthread_mutex_init(&exchange->lock, NULL);
    (void)pthread_cond_init(&exchange->changed, NULL);
    exchange->request.method = MCP_HTTP_POST;
    exchange->request.content_type = ng_str_of("application/json");
    exchange->request.accept = ng_str_of("application/json, text/event-stream");
    exchange->request.body = ng_str_of(body);
    exchange->request.caller = &fixture.caller;
    exchange->request.header = no_header;
    exchange->request.on_loop = true;
    exchange->request.protocol_version = ng_str_of(newer ? "2026-07-28" : "2025-11-25");
    if (newer) {
        exchange->request.mcp_method = ng_str_of(method);
        exchange->request.mcp_name = ng_str_of(name);
    }
    buf_init(&exchange->response.body, (size_t)4 * 1024 * 1024);
    if (mcp_http_handle(fixture.mcp, &exchange->request, &exchange->response, exchange_done,
                        exchange) == NG_OK) {
        exchange->done = true;
    }
}

static const char *exchange_wait(struct exchange *exchange)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    (void)pthread_mutex_lock(&exchange->lock);
    while (!exchange->done) {
        assert_int_equal(pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until),
                         0);
    }
    (void)pthread_mutex_unlock(&exchange->lock);
    return buf_cstr(&exchange->response.body);
}

static void exchange_free(struct exchange *exchange)
{
    call_unref(exchange->response.call);
    buf_done(&exchange->response.body);
    (void)pthread_cond_destroy(&exchange->changed);
    (void)pthread_mutex_destroy(&exchange->lock);
}

/* The answer to one request; free() it. */
static char *ask(bool newer, const char *method, const char *name, const char *params)
{
    struct exchange exchange;
    char body[BODY_MAX];
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method,
                   params);
    exchange_start(&exchange, newer, method, name, body);
    char *answer = strdup(exchange_wait(&exchange));
    exchange_free(&exchange);
    assert_non_null(answer);
    return answer;
}

static void expect_in(char *answer, const char *part)
{
    if (strstr(answer, part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, answer);
    }
    free(answer);
}

static void expect_not_in(char *answer, const char *part)
{
    if (strstr(answer, part) != NULL) {
        fail_msg("%s\nis in\n%s", part, answer);
    }
    free(answer);
}

static char *call_newer(const char *tool, const char *arguments, const char *meta)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\",\"arguments\":%s,%s", tool,
                   arguments, meta);
    return ask(true, "tools/call", tool, params);
}

static void take_id(char *answer, char id[MCP_TASK_ID_LEN + 1])
{
    const char *at = strstr(answer, "\"taskId\":\"");
    if (at == NULL) {
        fail_msg("no task in\n%s", answer);
    }
    (void)snprintf(id, MCP_TASK_ID_LEN + 1, "%s", at + strlen("\"taskId\":\""));
    free(answer);
}

/* A task of the newer era. */
static void make(const char *tool, const char *arguments, char id[MCP_TASK_ID_LEN + 1])
{
    take_id(call_newer(tool, arguments, DECLARED), id);
}

static char *on_task(const char *method, const char *id, const char *more)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\",%s" DECLARED, id, more);
    return ask(true, method, id, params);
}

/* tasks/get until the answer has `part`. */
static char *get_until(const char *id, const char *part)
{
    const struct timespec step = {0, 2000000};
    char *answer = NULL;
    for (int i = 0; i < PATIENCE_MS / 2; i++) {
        free(answer);
        answer = on_task("tasks/get", id, "");
        if (strstr(answer, part) != NULL) {
            return answer;
        }
        (void)nanosleep(&step, NULL);
    }
    fail_msg("%s\nnever came, but\n%s", part, answer);
    return answer;
}

/* ---- the newer era ---- */

static void a_task_is_made_and_ends(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    char *answer = call_newer("k_slow", "{\"ms\":20}", DECLARED);
    assert_non_null(strstr(answer, "\"resultType\":\"task\""));
    assert_non_null(strstr(answer, "\"status\":\"working\""));
    assert_non_null(strstr(answer, "\"ttlMs\":3600000,\"pollIntervalMs\":500"));
    take_id(answer, id);
    answer = get_until(id, "\"status\":\"completed\"");
    assert_non_null(strstr(answer, "\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
                                   "\"slept for tester in ~tester\"}]}"));
    assert_non_null(strstr(answer, "\"resultType\":\"complete\""));
    free(answer);
}

static void progress_is_told(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_slow", "{\"ms\":60000}", id);
    free(get_until(id, "\"statusMessage\":\"one of three\""));
    free(on_task("tasks/cancel", id, ""));
}

static void failures_and_faults_differ(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_fail", "{}", id);
    char *answer = get_until(id, "\"status\":\"completed\"");
    assert_non_null(strstr(answer, "the job found nothing"));
    assert_non_null(strstr(answer, "\"isError\":true"));
    free(answer);
    make("k_break", "{}", id);
    answer = get_until(id, "\"status\":\"failed\"");
    assert_non_null(
        strstr(answer, "\"error\":{\"code\":-32603,\"message\":\"the job broke\"}"));
    expect_not_in(answer, "\"result\":{\"content\"");
}

static void cancelling(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_slow", "{\"ms\":60000}", id);
    char *answer = on_task("tasks/cancel", id, "");
    assert_null(strstr(answer, "taskId"));
    expect_in(answer, "\"resultType\":\"complete\"");
    expect_in(on_task("tasks/get", id, ""), "\"status\":\"cancelled\"");
    /* Again, and of one that is over: no fault. */
    expect_in(on_task("tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    make("k_slow", "{}", id);
    free(get_until(id, "\"status\":\"completed\""));
    expect_in(on_task("tasks/cancel", id, ""), "\"resultType\":\"complete\"");
    expect_in(on_task("tasks/get", id, ""), "\"status\":\"completed\"");
}

static void only_clients_that_know_tasks(void **state)
{
    (void)state;
    char *answer = call_newer("k_slow", "{}", UNDECLARED);
    assert_null(strstr(answer, "taskId"));
    expect_in(answer, "slept for tester");
    expect_in(call_newer("k_fail", "{}", UNDECLARED),
              "\"code\":-32021,\"message\":\"this tool runs as a task only");
    expect_in(ask(true, "tasks/get", "x", "\"taskId\":\"x\"," UNDECLARED),
              "\"requiredCapabilities\":{\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}}");
    expect_in(ask(true, "tasks/list", NULL, DECLARED), "-32601");
    expect_in(ask(true, "tasks/result", NULL, "\"taskId\":\"x\"," DECLARED), "-32601");
    /* A plain tool is never one. */
    expect_in(call_newer("k_plain", "{}", DECLARED ",\"task\":{\"ttl\":5}"),
              "slept for tester");
}

static void refused_calls_are_no_tasks(void **state)
{
    (void)state;
    char *answer = call_newer("k_slow", "{\"other\":1}", DECLARED);
    assert_null(strstr(answer, "taskId"));
    expect_in(answer, "\"isError\":true");
    fixture.caller.role = NG_ROLE_READER;
    answer = call_newer("k_write", "{}", DECLARED);
    assert_null(strstr(answer, "taskId"));
    expect_in(answer, "FORBIDDEN");
    fixture.caller.role = NG_ROLE_ADMIN;
    expect_in(call_newer("k_none", "{}", DECLARED), "-32602");
}

static void only_the_owner_finds_it(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    struct key key = {.id = "2"};
    (void)state;
    make("k_slow", "{}", id);
    free(get_until(id, "\"status\":\"completed\""));
    fixture.caller.agent = ng_str_of("other");
    expect_in(on_task("tasks/get", id, ""), "-32602");
    expect_in(on_task("tasks/cancel", id, ""), "-32602");
    expect_in(on_task("tasks/update", id, "\"inputResponses\":{},"), "-32602");
    fixture.caller.agent = ng_str_of("tester");
    struct call *call = harness_new_call(&fixture.harness);
    struct ng_str own = mcp_task_owner(&call->arena, call);
    call->key = &key;
    assert_false(str_equal(own, mcp_task_owner(&call->arena, call)));
    call->key = NULL;
    call_unref(call);
    expect_in(on_task("tasks/get", id, ""), "\"status\":\"completed\"");
    expect_in(on_task("tasks/get", "tasks-unknown", ""), "there is no task");
    expect_in(ask(true, "tasks/get", NULL, DECLARED), "`params.taskId` must be a string");
}

static void questions_are_answered_one_by_one(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_ask", "{\"count\":2}", id);
    char *answer = get_until(id, "\"status\":\"input_required\"");
    assert_non_null(strstr(answer, "\"inputRequests\":{\"first\":{\"method\":"
                                   "\"elicitation/create\",\"params\":{\"mode\":\"form\""));
    assert_non_null(strstr(answer, "\"second\":{"));
    assert_null(strstr(answer, "requestState"));
    free(answer);
    expect_in(on_task("tasks/update", id, ""), "`params.inputResponses` must be an object");
    expect_in(on_task("tasks/update", id, "\"inputResponses\":{\"first\":7},"),
              "each answer in `params.inputResponses` must be an object");
    expect_in(on_task("tasks/update", id, "\"inputResponses\":{\"unknown\":{}},"),
              "\"resultType\":\"complete\"");
    expect_in(on_task("tasks/update", id,
                      "\"inputResponses\":{\"first\":{\"action\":\"accept\",\"content\":{"
                      "\"name\":\"one\"}}},"),
              "\"resultType\":\"complete\"");
    answer = on_task("tasks/get", id, "");
    assert_null(strstr(answer, "\"first\""));
    assert_non_null(strstr(answer, "\"second\""));
    expect_in(answer, "\"status\":\"input_required\"");
    free(on_task("tasks/update", id,
                 "\"inputResponses\":{\"second\":{\"action\":\"accept\",\"content\":{"
                 "\"name\":\"two\"}}},"));
    expect_in(get_until(id, "\"status\":\"completed\""), "\"text\":\"+one+two\"");
}

static void waiting_questions_survive_a_restart(void **state)
{
    char asks[MCP_TASK_ID_LEN + 1];
    char done[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_ask", "{\"count\":1}", asks);
    make("k_slow", "{}", done);
    free(get_until(asks, "\"status\":\"input_required\""));
    free(get_until(done, "\"status\":\"completed\""));
    start_anew();
    expect_in(on_task("tasks/get", done, ""), "slept for tester");
    expect_in(on_task("tasks/get", asks, ""), "\"status\":\"input_required\"");
    free(on_task("tasks/update", asks,
                 "\"inputResponses\":{\"first\":{\"action\":\"accept\",\"content\":{"
                 "\"name\":\"late\"}}},"));
    expect_in(get_until(asks, "\"status\":\"completed\""), "\"text\":\"+late\"");
}

static void a_stop_ends_what_runs(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_slow", "{\"ms\":60000}", id);
    mcp_tasks_stop(fixture.harness.gateway, true);
    start_anew();
    char *answer = on_task("tasks/get", id, "");
    assert_non_null(strstr(answer, "\"status\":\"failed\""));
    expect_in(answer, "the gateway was stopped while the tool ran");
}

static void tasks_of_one_caller_are_bounded(void **state)
{
    static char ids[MCP_TASKS_RUNNING_PER_CALLER_MAX][MCP_TASK_ID_LEN + 1];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        make("k_slow", "{\"ms\":600000}", ids[i]);
    }
    expect_in(call_newer("k_slow", "{}", DECLARED), "64 tasks of this caller are running");
    fixture.caller.agent = ng_str_of("other");
    char id[MCP_TASK_ID_LEN + 1];
    make("k_slow", "{}", id);
    free(get_until(id, "\"status\":\"completed\""));
    fixture.caller.agent = ng_str_of("tester");
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        expect_in(on_task("tasks/cancel", ids[i], ""), "\"resultType\":\"complete\"");
    }
}

struct watched {
    pthread_mutex_t lock;
    char seen[512];
};

static void watch_changed(void *user, struct ng_str task)
{
    struct watched *watched = user;
    (void)pthread_mutex_lock(&watched->lock);
    size_t len = strlen(watched->seen);
    (void)snprintf(watched->seen + len, sizeof(watched->seen) - len, "%.*s;",
                   (int)MCP_TASK_ID_LEN, task.data + strlen("\"taskId\":\""));
    (void)pthread_mutex_unlock(&watched->lock);
}

static void changes_are_told_to_who_watches(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    char other[MCP_TASK_ID_LEN + 1];
    struct watched watched = {PTHREAD_MUTEX_INITIALIZER, ""};
    struct mcp_tasks *tasks = mcp_tasks_of(fixture.harness.gateway);
    struct mcp_task_watch *watch = NULL;
    struct mcp_task_watch *foreign = NULL;
    (void)state;
    make("k_ask", "{}", id);
    make("k_ask", "{}", other);
    free(get_until(id, "\"status\":\"input_required\""));
    struct ng_str ids[] = {ng_str_of("nothing"), ng_str_of(id)};
    struct watched none = {PTHREAD_MUTEX_INITIALIZER, ""};
    assert_int_equal(
        mcp_tasks_watch(tasks, ng_str_of("tester\n"), ids, 2, watch_changed, &watched, &watch),
        NG_OK);
    assert_int_equal(
        mcp_tasks_watch(tasks, ng_str_of("other\n"), ids, 2, watch_changed, &none, &foreign),
        NG_OK);
    free(on_task("tasks/cancel", other, ""));
    free(on_task("tasks/update", id,
                 "\"inputResponses\":{\"first\":{\"action\":\"decline\"}},"));
    free(get_until(id, "\"status\":\"completed\""));
    char expected[256];
    (void)snprintf(expected, sizeof(expected), "%s;%s;", id, id);
    const struct timespec step = {0, 1000000};
    for (int i = 0; i < PATIENCE_MS && strlen(watched.seen) < strlen(expected); i++) {
        (void)nanosleep(&step, NULL);
    }
    mcp_tasks_unwatch(tasks, watch);
    mcp_tasks_unwatch(tasks, foreign);
    assert_string_equal(watched.seen, expected); /* working, completed */
    assert_string_equal(none.seen, "");
}

static void asking_first(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    take_id(call_newer("k_ask_first", "{}",
                       "\"inputResponses\":{\"first\":{\"action\":\"accept\",\"content\":{"
                       "\"name\":\"Alice\"}}}," DECLARED),
            id);
    expect_in(get_until(id, "\"status\":\"completed\""), "\"text\":\"+Alice\"");
    expect_not_in(call_newer("k_ask_first", "{}", DECLARED), "\"taskId\"");
}

/* ---- the older era ---- */

static char *call_older(const char *tool, const char *arguments, const char *task)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\",\"arguments\":%s%s", tool,
                   arguments, task);
    return ask(false, "tools/call", NULL, params);
}

static char *on_older(const char *method, const char *id)
{
    char params[256];
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\"", id);
    return ask(false, method, NULL, params);
}

static void older_tasks_are_asked_for(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    expect_in(call_older("k_slow", "{}", ""), "slept for tester");
    expect_in(call_older("k_fail", "{}", ""), "-32601");
    expect_in(call_older("k_plain", "{}", ",\"task\":{}"), "-32601");
    expect_in(call_older("k_slow", "{}", ",\"task\":7"), "-32602");
    char *answer = call_older("k_slow", "{\"ms\":5}", ",\"task\":{\"ttl\":60000}");
    assert_non_null(strstr(answer, "\"result\":{\"task\":{\"taskId\":"));
    assert_non_null(strstr(answer, "\"ttl\":60000,\"pollInterval\":500"));
    take_id(answer, id);
    answer = on_older("tasks/result", id);
    assert_non_null(strstr(answer, "\"content\":[{\"type\":\"text\",\"text\":\"slept for"));
    expect_in(answer, "\"_meta\":{\"" MCP_TASKS_RELATED "\":{\"taskId\":\"");
    answer = on_older("tasks/get", id);
    assert_null(strstr(answer, "\"content\""));
    expect_in(answer, "\"status\":\"completed\"");
    expect_in(on_older("tasks/cancel", id), "-32602");
    expect_in(on_older("tasks/update", id), "-32601");
    expect_in(on_older("tasks/result", "none"), "-32602");
    take_id(call_older("k_break", "{}", ",\"task\":{}"), id);
    expect_in(on_older("tasks/result", id), "\"code\":-32603,\"message\":\"the job broke\"");
    take_id(call_older("k_fail", "{}", ",\"task\":{}"), id);
    expect_in(on_older("tasks/result", id), "\"isError\":true");
    expect_in(on_older("tasks/get", id), "\"status\":\"failed\"");
}

static void results_are_waited_for(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    char body[256];
    struct exchange waits[MCP_TASK_WAITERS_MAX];
    (void)state;
    take_id(call_older("k_slow", "{\"ms\":600000}", ",\"task\":{}"), id);
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/result\",\"params\":{"
                   "\"taskId\":\"%s\"}}",
                   id);
    for (size_t i = 0; i < NG_COUNT(waits); i++) {
        exchange_start(&waits[i], false, NULL, NULL, body);
    }
    /* One more than may wait is refused, so the others do wait. */
    const struct timespec step = {0, 2000000};
    struct mcp_tasks *tasks = mcp_tasks_of(fixture.harness.gateway);
    for (int i = 0; i < PATIENCE_MS / 2 && mcp_tasks_waiting(tasks) < NG_COUNT(waits); i++) {
        (void)nanosleep(&step, NULL);
    }
    expect_in(on_older("tasks/result", id), "requests wait for this task already");
    expect_in(on_older("tasks/cancel", id), "\"status\":\"cancelled\"");
    for (size_t i = 0; i < NG_COUNT(waits); i++) {
        assert_non_null(strstr(exchange_wait(&waits[i]), "the task was cancelled"));
        exchange_free(&waits[i]);
    }
}

static void await_waiting(size_t count)
{
    const struct timespec step = {0, 2000000};
    struct mcp_tasks *tasks = mcp_tasks_of(fixture.harness.gateway);
    for (int i = 0; i < PATIENCE_MS / 2 && mcp_tasks_waiting(tasks) != count; i++) {
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(mcp_tasks_waiting(tasks), count);
}

/* Clients that gave up take no place from those that come after them. */
static void who_left_does_not_wait(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    char body[256];
    struct exchange waits[MCP_TASK_WAITERS_MAX];
    struct exchange last;
    (void)state;
    take_id(call_older("k_slow", "{\"ms\":600000}", ",\"task\":{}"), id);
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/result\",\"params\":{"
                   "\"taskId\":\"%s\"}}",
                   id);
    for (size_t i = 0; i < NG_COUNT(waits); i++) {
        exchange_start(&waits[i], false, NULL, NULL, body);
    }
    await_waiting(NG_COUNT(waits));
    for (size_t i = 0; i < NG_COUNT(waits); i++) {
        call_cancel(waits[i].response.call);
    }
    exchange_start(&last, false, NULL, NULL, body);
    for (size_t i = 0; i < NG_COUNT(waits); i++) {
        (void)exchange_wait(&waits[i]);
        exchange_free(&waits[i]);
    }
    await_waiting(1);
    expect_in(on_older("tasks/cancel", id), "\"status\":\"cancelled\"");
    assert_non_null(strstr(exchange_wait(&last), "the task was cancelled"));
    exchange_free(&last);
}

/* What runs for a key ends when the key does. */
static void a_revoked_key_ends_its_runs(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    struct gateway *gateway = fixture.harness.gateway;
    struct call *call = harness_new_call(&fixture.harness);
    (void)state;
    struct key key = {.id = "2"};
    struct key looks = {.id = "2"}; /* asks after it: the ended one may not */
    atomic_init(&key.refs, 1);
    atomic_init(&looks.refs, 1);
    fixture.caller.key = &key;
    make("k_slow", "{\"ms\":600000}", id);
    assert_int_equal(gateway->tasks.upkeep(gateway->tasks.self, call), NG_OK);
    expect_in(on_task("tasks/get", id, ""), "\"status\":\"working\"");
    atomic_store(&key.revoked, true);
    fixture.caller.key = &looks;
    assert_int_equal(gateway->tasks.upkeep(gateway->tasks.self, call), NG_OK);
    free(get_until(id, "\"status\":\"completed\""));
    call_unref(call);
    const struct timespec step = {0, 2000000};
    while (atomic_load(&key.refs) > 1 || atomic_load(&looks.refs) > 1) {
        (void)nanosleep(&step, NULL);
    }
}

/* A task that is over. Those of one millisecond are listed by their ids: this one is the first
 * of its own, so that it is listed before those made earlier. */
static void make_listed(char *ret_id)
{
    const struct timespec step = {0, 100000};
    int64_t now = clock_unix_ms();
    while (clock_unix_ms() == now) {
        (void)nanosleep(&step, NULL);
    }
    take_id(call_older("k_slow", "{}", ",\"task\":{}"), ret_id);
    free(on_older("tasks/result", ret_id));
}

static void older_tasks_are_listed(void **state)
{
    static char ids[MCP_TASKS_PAGE + 3][MCP_TASK_ID_LEN + 1];
    static const char *const wrong[] = {
        "\"cursor\":\"none\"",
        "\"cursor\":7",
        "\"cursor\":\"\"",
        "\"cursor\":\"000000000000000000000000000000000000000000000000-\"",
        "\"cursor\":\"000000000000000000000000000000000000000000000000-1x\"",
        "\"cursor\":\"000000000000000000000000000000000000000000000000-1234567890123456\"",
    };
    (void)state;
    expect_in(ask(false, "tasks/list", NULL, ""), "\"tasks\":[]");
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        make_listed(ids[i]);
    }
    char *answer = ask(false, "tasks/list", NULL, "");
    char *cursor = strstr(answer, "\"nextCursor\":\"");
    assert_non_null(cursor);
    assert_non_null(strstr(answer, ids[NG_COUNT(ids) - 1]));
    assert_null(strstr(answer, ids[2]));
    char params[256];
    cursor += strlen("\"nextCursor\":\"");
    (void)snprintf(params, sizeof(params), "\"cursor\":\"%.*s\"", (int)strcspn(cursor, "\""),
                   cursor);
    free(answer);
    answer = ask(false, "tasks/list", NULL, params);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(answer, ids[i]));
    }
    assert_null(strstr(answer, ids[3]));
    expect_not_in(answer, "nextCursor");
    for (size_t i = 0; i < NG_COUNT(wrong); i++) {
        expect_in(ask(false, "tasks/list", NULL, wrong[i]), "-32602");
    }
    fixture.caller.agent = ng_str_of("other");
    expect_in(ask(false, "tasks/list", NULL, ""), "\"tasks\":[]");
}

/* The task that a page ended with may expire before the next page is asked for, and the gateway
 * may have been started anew. */
static void a_page_goes_on_behind_a_gone_task(void **state)
{
    static char ids[MCP_TASKS_PAGE + 2][MCP_TASK_ID_LEN + 1];
    char params[256];
    struct gateway *gateway = fixture.harness.gateway;
    (void)state;
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        make_listed(ids[i]);
    }
    char *answer = ask(false, "tasks/list", NULL, "");
    char *cursor = strstr(answer, "\"nextCursor\":\"");
    assert_non_null(cursor);
    cursor += strlen("\"nextCursor\":\"");
    (void)snprintf(params, sizeof(params), "\"cursor\":\"%.*s\"", (int)strcspn(cursor, "\""),
                   cursor);
    free(answer);
    struct mcp_tasks *tasks = mcp_tasks_of(gateway);
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry =
        mcp_tasks_find(tasks, ng_str_of(ids[2]), ng_str_of("tester\n"));
    assert_non_null(entry);
    entry->expires_ms = 1;
    mcp_tasks_unlock(tasks);
    struct call *call = harness_new_call(&fixture.harness);
    assert_int_equal(gateway->tasks.upkeep(gateway->tasks.self, call), NG_OK);
    call_unref(call);
    for (int round = 0; round < 2; round++) {
        answer = ask(false, "tasks/list", NULL, params);
        for (size_t i = 0; i < NG_COUNT(ids); i++) {
            assert_int_equal(strstr(answer, ids[i]) != NULL, i < 2);
        }
        free(answer);
        if (round == 0) {
            start_anew();
        }
    }
}

static void expired_tasks_are_removed(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    char runs[MCP_TASK_ID_LEN + 1];
    struct gateway *gateway = fixture.harness.gateway;
    struct mcp_task task;
    const struct timespec step = {0, 10000000};
    (void)state;
    char *answer = call_older("k_slow", "{}", ",\"task\":{\"ttl\":1}");
    assert_non_null(strstr(answer, "\"ttl\":1000,"));
    take_id(answer, id);
    take_id(call_older("k_slow", "{\"ms\":600000}", ",\"task\":{\"ttl\":1}"), runs);
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        answer = on_older("tasks/get", runs);
        bool is_gone = strstr(answer, "-32602") != NULL;
        free(answer);
        if (is_gone) {
            break;
        }
        (void)nanosleep(&step, NULL);
    }
    expect_in(on_older("tasks/get", id), "-32602");
    struct call *call = harness_new_call(&fixture.harness);
    assert_int_equal(mcp_task_load(call, ng_str_of(id), &task), NG_OK);
    assert_int_equal(gateway->tasks.upkeep(gateway->tasks.self, call), NG_OK);
    assert_int_equal(mcp_task_load(call, ng_str_of(id), &task), NG_ENOTFOUND);
    assert_int_equal(mcp_task_load(call, ng_str_of(runs), &task), NG_ENOTFOUND);
    call_unref(call);
}

static void tools_tell_that_they_run_as_tasks(void **state)
{
    (void)state;
    char *answer = ask(false, "tools/list", NULL, "");
    assert_non_null(strstr(answer, "\"execution\":{\"taskSupport\":\"optional\"}"));
    expect_in(answer, "\"execution\":{\"taskSupport\":\"required\"}");
    expect_not_in(ask(true, "tools/list", NULL, DECLARED), "taskSupport");
    expect_in(ask(true, "server/discover", NULL, DECLARED),
              "\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}");
    expect_in(ask(false, "initialize", NULL, "\"protocolVersion\":\"2025-11-25\""),
              "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}");
    expect_not_in(ask(false, "initialize", NULL, "\"protocolVersion\":\"2025-06-18\""),
                  "\"tasks\":{");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_task_is_made_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(progress_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_and_faults_differ, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelling, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_clients_that_know_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_calls_are_no_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_the_owner_finds_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(questions_are_answered_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_questions_survive_a_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stop_ends_what_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tasks_of_one_caller_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changes_are_told_to_who_watches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asking_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(older_tasks_are_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_left_does_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_revoked_key_ends_its_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(older_tasks_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_page_goes_on_behind_a_gone_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expired_tasks_are_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tools_tell_that_they_run_as_tasks, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
