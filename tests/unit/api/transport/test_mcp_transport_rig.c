/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_rig.c - shared code of test_mcp_transport*.c; see the header.
 */
#include "test_mcp_transport_rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/serve/mcp_methods.h"
#include "core/base/str.h"
#include "test_gateway.h"

/* Waiting for a condition gives up after this long. */
#define PATIENCE_MS 10000

struct fixture fixture;

int set_up(void **state)
{
    static const char *const sets[] = {"limits.body=64KiB",
                                       "limits.result=256KiB",
                                       "limits.workers=8",
                                       "limits.buffered=1MiB",
                                       "limits.queue=4096",
                                       "tools.max_answer=1MiB",
                                       NULL};
    (void)state;
    memset(&fixture, 0, sizeof(fixture));
    fixture.gateway = test_gateway_open(sets);
    assert_non_null(fixture.gateway);
    assert_int_equal(mcp_http_new(fixture.gateway, mcp_methods_all(), &fixture.mcp), NG_OK);
    fixture.caller.agent = ng_str_of("tester");
    fixture.caller.role = NG_ROLE_ADMIN;
    fixture.caller.mode = NG_MODE_AGENT;
    test_tools_release(false);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    test_tools_release(true);
    mcp_http_free(fixture.mcp);
    test_gateway_close(fixture.gateway);
    return 0;
}

void wait_waiting(int count)
{
    const struct timespec step = {0, 1000000};
    for (int i = 0; i < PATIENCE_MS && test_tools_waiting() != count; i++) {
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(test_tools_waiting(), count);
}

/* ---- requests ---- */

void exchange_init(struct exchange *exchange, const char *body)
{
    exchange_open(exchange, &fixture.caller, body);
}

void exchange_start(struct exchange *exchange)
{
    exchange_send(exchange, fixture.mcp);
}

void exchange_run(struct exchange *exchange)
{
    exchange_start(exchange);
    (void)exchange_wait(exchange);
}

const char *exchange_text(struct exchange *exchange)
{
    return buf_cstr(&exchange->response.body);
}

void expect_part(const char *body, int status, const char *part)
{
    struct exchange exchange;
    exchange_init(&exchange, body);
    exchange_run(&exchange);
    if (strstr(exchange_text(&exchange), part) == NULL) {
        fail_msg("%s\nis not in\n%s", part, exchange_text(&exchange));
    }
    assert_int_equal(exchange.response.status, status);
    exchange_free(&exchange);
}

/* ---- the handshake versions ---- */

void open_session(char id[MCP_HTTP_SESSION_MAX], const char *version)
{
    char body[256];
    struct exchange exchange;
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\"}}",
                   version);
    exchange_init(&exchange, body);
    exchange_run(&exchange);
    (void)snprintf(id, MCP_HTTP_SESSION_MAX, "%s", exchange.response.session_id);
    exchange_free(&exchange);
}

int in_session(const char *id, enum http_method method, const char *body)
{
    struct exchange exchange;
    exchange_init(&exchange, body);
    exchange.request.method = method;
    exchange.request.session_id = ng_str_of(id);
    exchange_run(&exchange);
    int status = exchange.response.status;
    exchange_free(&exchange);
    return status;
}
