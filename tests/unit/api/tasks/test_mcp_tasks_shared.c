/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks_shared.c - tasks on documents that other gateways may change: looking at them
 * with little memory, and their answers. */
#include "test_mcp_tasks_rig.h"

#include <stdlib.h>
#include <string.h>

#include "api/tasks/mcp_task_table.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "hub.h"

#define LARGE_COUNT 8
#define LARGE_BYTES ((size_t)512 * 1024)
/* Room for one of them at a time, and for none. */
#define MEMORY_OF_ONE (8 * LARGE_BYTES)
#define MEMORY_OF_NONE LARGE_BYTES

static int set_up_shared(void **state)
{
    static const char *const sets[] = {"plugins=" NOTEGATE_BUILD "/tests/modules/tasker.so",
                                       "documents=" HUB_MODULE, "limits.workers=8", NULL};
    hub_reset();
    return set_up_with(state, sets);
}

/* A task that runs until it is cancelled, with large arguments. */
static void make_large(char id[MCP_TASK_ID_LEN + 1])
{
    static const char begin[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"k_write\",\"arguments\":{\"ms\":600000,\"pad\":\"";
    static const char end[] = "\"}," DECLARED "}}";
    struct exchange exchange;
    char *body = malloc(sizeof(begin) + LARGE_BYTES + sizeof(end));
    assert_non_null(body);
    memcpy(body, begin, sizeof(begin) - 1);
    memset(body + sizeof(begin) - 1, 'x', LARGE_BYTES);
    memcpy(body + sizeof(begin) - 1 + LARGE_BYTES, end, sizeof(end));
    exchange_start(&exchange, true, "tools/call", "k_write", body);
    char *answer = strdup(exchange_wait(&exchange));
    assert_non_null(answer);
    take_id(answer, id);
    exchange_free(&exchange);
    free(body);
}

/* One look at all tasks, with so much memory. No other thread looks. */
static int look(size_t bytes)
{
    cluster_stop(fixture.harness.gateway->cluster);
    struct mcp_tasks *tasks = mcp_tasks_of(fixture.harness.gateway);
    struct call *call = harness_new_call(&fixture.harness);
    call->arena.max = call->arena.used + bytes;
    tasks->looked_ns = 0;
    int rc = mcp_tasks_poll_remote(tasks, call);
    call_unref(call);
    return rc;
}

/* What could not be read is not gone: its run goes on. */
static void test_little_memory(void **state)
{
    char ids[LARGE_COUNT][MCP_TASK_ID_LEN + 1];
    (void)state;
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        make_large(ids[i]);
    }
    assert_int_equal(look(MEMORY_OF_NONE), NG_EINTERNAL);
    assert_int_equal(look(MEMORY_OF_ONE), NG_OK);
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        expect_in(on_task("tasks/get", ids[i], ""), "\"status\":\"working\"");
        expect_in(on_task("tasks/cancel", ids[i], ""), "\"result\"");
        free(get_until(ids[i], "\"status\":\"cancelled\""));
    }
}

/* The first run of the task has stored its questions, and has not ended here yet: the client
 * heard them from another gateway. */
static struct call *set_back(const char *id)
{
    struct mcp_tasks *tasks = mcp_tasks_of(fixture.harness.gateway);
    struct call *run = harness_new_call(&fixture.harness);
    mcp_tasks_lock(tasks);
    struct mcp_task_entry *entry = mcp_task_entry_find(tasks, ng_str_of(id));
    entry->status = MCP_TASK_WORKING;
    entry->call = run;
    mcp_tasks_unlock(tasks);
    mcp_tasks_run_ends(tasks, ng_str_of(id), run);
    return run;
}

static void test_answers_before_the_end_of_the_run(void **state)
{
    char id[MCP_TASK_ID_LEN + 1];
    (void)state;
    make("k_ask", "{}", id);
    free(get_until(id, "\"status\":\"input_required\""));
    struct call *run = set_back(id);
    expect_in(on_task("tasks/update", id,
                      "\"inputResponses\":{\"first\":{\"action\":\"accept\","
                      "\"content\":{\"name\":\"early\"}}},"),
              "\"result\"");
    expect_in(get_until(id, "\"status\":\"completed\""), "+early");
    mcp_tasks_settle(mcp_tasks_of(fixture.harness.gateway), ng_str_of(id), run,
                     MCP_TASK_INPUT_REQUIRED, false);
    expect_in(on_task("tasks/get", id, ""), "\"status\":\"completed\"");
    call_unref(run);
}

int main(void)
{
    (void)hub_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_little_memory, set_up_shared, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_before_the_end_of_the_run, set_up_shared,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
