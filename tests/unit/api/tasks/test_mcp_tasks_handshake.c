/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks_handshake.c - tasks of the handshake versions: lists, results that are waited
 * for, owners that leave. */
#include "test_mcp_tasks_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/keys/keys.h"

static char *call_handshake(const char *tool, const char *arguments, const char *task)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\",\"arguments\":%s%s", tool,
                   arguments, task);
    return ask(false, "tools/call", NULL, params);
}

static char *on_handshake(const char *method, const char *id)
{
    char params[256];
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\"", id);
    return ask(false, method, NULL, params);
}

static void handshake_tasks_are_asked_for(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    expect_in(call_handshake("k_slow", "{}", ""), "slept for tester");
    expect_in(call_handshake("k_fail", "{}", ""), "-32601");
    expect_in(call_handshake("k_plain", "{}", ",\"task\":{}"), "-32601");
    expect_in(call_handshake("k_slow", "{}", ",\"task\":7"), "-32602");
    char *answer = call_handshake("k_slow", "{\"ms\":5}", ",\"task\":{\"ttl\":60000}");
    assert_non_null(strstr(answer, "\"result\":{\"task\":{\"taskId\":"));
    assert_non_null(strstr(answer, "\"ttl\":60000,\"pollInterval\":500"));
    take_id(answer, id);
    answer = on_handshake("tasks/result", id);
    assert_non_null(strstr(answer, "\"content\":[{\"type\":\"text\",\"text\":\"slept for"));
    expect_in(answer, "\"_meta\":{\"" MCP_TASKS_RELATED "\":{\"taskId\":\"");
    answer = on_handshake("tasks/get", id);
    assert_null(strstr(answer, "\"content\""));
    expect_in(answer, "\"status\":\"completed\"");
    expect_in(on_handshake("tasks/cancel", id), "-32602");
    expect_in(on_handshake("tasks/update", id), "-32601");
    expect_in(on_handshake("tasks/result", "none"), "-32602");
    take_id(call_handshake("k_break", "{}", ",\"task\":{}"), id);
    expect_in(on_handshake("tasks/result", id),
              "\"code\":-32603,\"message\":\"the job broke\"");
    take_id(call_handshake("k_fail", "{}", ",\"task\":{}"), id);
    expect_in(on_handshake("tasks/result", id), "\"isError\":true");
    expect_in(on_handshake("tasks/get", id), "\"status\":\"failed\"");
}

static void results_are_waited_for(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    char body[256];
    struct exchange waits[MCP_TASK_WAITERS_MAX];
    (void)state;
    take_id(call_handshake("k_slow", "{\"ms\":600000}", ",\"task\":{}"), id);
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
    expect_in(on_handshake("tasks/result", id), "requests wait for this task already");
    expect_in(on_handshake("tasks/cancel", id), "\"status\":\"cancelled\"");
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
    take_id(call_handshake("k_slow", "{\"ms\":600000}", ",\"task\":{}"), id);
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
    expect_in(on_handshake("tasks/cancel", id), "\"status\":\"cancelled\"");
    assert_non_null(strstr(exchange_wait(&last), "the task was cancelled"));
    exchange_free(&last);
}

/* Calls of a key end with the key. */
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
    take_id(call_handshake("k_slow", "{}", ",\"task\":{}"), ret_id);
    free(on_handshake("tasks/result", ret_id));
}

static void handshake_tasks_are_listed(void **state)
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
 * may have been restarted. */
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
    char *answer = call_handshake("k_slow", "{}", ",\"task\":{\"ttl\":1}");
    assert_non_null(strstr(answer, "\"ttl\":1000,"));
    take_id(answer, id);
    take_id(call_handshake("k_slow", "{\"ms\":600000}", ",\"task\":{\"ttl\":1}"), runs);
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        answer = on_handshake("tasks/get", runs);
        bool is_gone = strstr(answer, "-32602") != NULL;
        free(answer);
        if (is_gone) {
            break;
        }
        (void)nanosleep(&step, NULL);
    }
    expect_in(on_handshake("tasks/get", id), "-32602");
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
        cmocka_unit_test_setup_teardown(handshake_tasks_are_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_left_does_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_revoked_key_ends_its_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(handshake_tasks_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_page_goes_on_behind_a_gone_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expired_tasks_are_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tools_tell_that_they_run_as_tasks, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
