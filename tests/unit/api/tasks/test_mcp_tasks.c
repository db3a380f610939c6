/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks.c - tasks of the stateless version: made, asked, watched, cancelled.
 */
#include "test_mcp_tasks_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"
#include "core/keys/keys.h"

#define UNDECLARED NEWER_META("\"elicitation\":{}")

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
    expect_in(call_newer("k_slow", "{}", DECLARED), "this caller has 64 running tasks");
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
    struct mcp_task_subscription *subscription = NULL;
    struct mcp_task_subscription *foreign = NULL;
    (void)state;
    make("k_ask", "{}", id);
    make("k_ask", "{}", other);
    free(get_until(id, "\"status\":\"input_required\""));
    struct ng_str ids[] = {ng_str_of("nothing"), ng_str_of(id)};
    struct watched none = {PTHREAD_MUTEX_INITIALIZER, ""};
    assert_int_equal(mcp_tasks_subscribe(tasks, ng_str_of("tester\n"), ids, 2, watch_changed,
                                         &watched, &subscription),
                     NG_OK);
    assert_int_equal(mcp_tasks_subscribe(tasks, ng_str_of("other\n"), ids, 2, watch_changed,
                                         &none, &foreign),
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
    mcp_tasks_unsubscribe(tasks, subscription);
    mcp_tasks_unsubscribe(tasks, foreign);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
