/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_rig.h - a gateway behind MCP's HTTP transport, without HTTP: requests and
 * their answers. */
#ifndef NOTEGATE_TEST_MCP_FACE_RIG_H
#define NOTEGATE_TEST_MCP_FACE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mcp_request.h"

#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define CALL(id, tool, arguments)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
    ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"arguments\":" arguments    \
    "}}"

/* Opened again for each case. */
struct fixture {
    struct gateway *gateway;
    struct mcp_http *mcp;
    struct auth_caller caller;
};

extern struct fixture fixture;
int set_up(void **state);
int tear_down(void **state);
/* Until so many calls wait in the tool that waits. */
void wait_waiting(int count);

/* exchange_open() and exchange_send() with the fixture's; _run() waits as well. */
void exchange_init(struct exchange *exchange, const char *body);
void exchange_start(struct exchange *exchange);
void exchange_run(struct exchange *exchange);
const char *exchange_text(struct exchange *exchange);
/* One request without a session: the status, and a part of the answer. */
void expect_part(const char *body, int status, const char *part);
void open_session(char id[MCP_HTTP_SESSION_MAX], const char *version);
/* The status of one request in a session. */
int in_session(const char *id, enum http_method method, const char *body);

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
