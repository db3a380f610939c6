/* SPDX-License-Identifier: MIT */
/* test_mcp_tasks_rig.c - shared code of test_mcp_tasks*.c; see the header.
 */
#include "test_mcp_tasks_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/serve/mcp_methods.h"
#include "core/base/clock.h"
#include "core/base/str.h"

struct fixture fixture;

static void open_transports(void)
{
    struct buf error;
    buf_init(&error, 4096);
    assert_int_equal(mcp_tasks_open(fixture.harness.gateway, &error), NG_OK);
    buf_done(&error);
    assert_int_equal(mcp_http_new(fixture.harness.gateway, mcp_methods_all(), &fixture.mcp),
                     NG_OK);
}

int set_up_with(void **state, const char *const *sets)
{
    (void)state;
    memset(&fixture, 0, sizeof(fixture));
    harness_open(&fixture.harness, sets);
    open_transports();
    fixture.caller.agent = ng_str_of("tester");
    fixture.caller.role = NG_ROLE_ADMIN;
    fixture.caller.mode = NG_MODE_AGENT;
    return 0;
}

int set_up(void **state)
{
    static const char *const sets[] = {"plugins=" NOTEGATE_BUILD "/tests/modules/tasker.so",
                                       "limits.workers=8", NULL};
    return set_up_with(state, sets);
}

void start_anew(void)
{
    mcp_http_free(fixture.mcp);
    harness_reopen(&fixture.harness);
    open_transports();
}

int tear_down(void **state)
{
    (void)state;
    mcp_tasks_stop(fixture.harness.gateway, true);
    mcp_http_free(fixture.mcp);
    harness_close(&fixture.harness);
    return 0;
}

void exchange_start(struct exchange *exchange, bool newer, const char *method, const char *name,
                    const char *body)
{
    exchange_open(exchange, &fixture.caller, body);
    exchange->request.protocol_version = ng_str_of(newer ? "2026-07-28" : "2025-11-25");
    if (newer) {
        exchange->request.mcp_method = ng_str_of(method);
        exchange->request.mcp_name = ng_str_of(name);
    }
    exchange_send(exchange, fixture.mcp);
}

char *ask(bool newer, const char *method, const char *name, const char *params)
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

void expect_in(char *answer, const char *part)
{
    if (strstr(answer, part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, answer);
    }
    free(answer);
}

void expect_not_in(char *answer, const char *part)
{
    if (strstr(answer, part) != NULL) {
        fail_msg("%s\nis in\n%s", part, answer);
    }
    free(answer);
}

char *call_newer(const char *tool, const char *arguments, const char *meta)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"name\":\"%s\",\"arguments\":%s,%s", tool,
                   arguments, meta);
    return ask(true, "tools/call", tool, params);
}

void take_id(char *answer, char id[MCP_TASK_ID_LEN + 1])
{
    const char *at = strstr(answer, "\"taskId\":\"");
    if (at == NULL) {
        fail_msg("no task in\n%s", answer);
    }
    (void)snprintf(id, MCP_TASK_ID_LEN + 1, "%s", at + strlen("\"taskId\":\""));
    free(answer);
}

void make(const char *tool, const char *arguments, char id[MCP_TASK_ID_LEN + 1])
{
    take_id(call_newer(tool, arguments, DECLARED), id);
}

char *on_task(const char *method, const char *id, const char *more)
{
    char params[BODY_MAX / 2];
    (void)snprintf(params, sizeof(params), "\"taskId\":\"%s\",%s" DECLARED, id, more);
    return ask(true, method, id, params);
}

char *get_until(const char *id, const char *part)
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
