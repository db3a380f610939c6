/* SPDX-License-Identifier: MIT */
/* test_mcp_routes.c - MCP over a served socket: statuses and headers, sessions, event streams
 * that are resumed, clients that leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/str.h"
#include "http_peer.h"
#include "program.h"

/* Waiting for a condition gives up after about this long. */
#define PATIENCE_MS 10000
#define POST                                                                                   \
    "POST /mcp\nContent-Type: application/json\nAccept: application/json, text/event-stream\n"
#define MESSAGE(id, method, params)                                                            \
    "\n{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}"
#define CALL(id, tool, arguments)                                                              \
    MESSAGE(id, "tools/call", "\"name\":\"" tool "\",\"arguments\":{" arguments "}")
#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN(method) POST "MCP-Protocol-Version: 2026-07-28\nMcp-Method: " method "\n"

static struct program gateway;
static char session[128]; /* a header line */

static void expect_in_session(const char *request, int status, const char *part);

static void open_session(const char *capabilities)
{
    char request[1024];
    (void)snprintf(request, sizeof(request),
                   POST MESSAGE("0", "initialize",
                                "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{%s},"
                                "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}"),
                   capabilities);
    struct http_answer answer = http_once(gateway.address, request);
    assert_int_equal(answer.status, 200);
    char *id = http_header(&answer, "Mcp-Session-Id");
    assert_non_null(id);
    (void)snprintf(session, sizeof(session), "Mcp-Session-Id: %s", id);
    free(id);
    http_answer_free(&answer);
    expect_in_session(POST "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
                      202, "202");
}

/* The request with the session's header behind its first line. */
static char *in_session(const char *request)
{
    static char text[4096];
    int line = (int)strcspn(request, "\n");
    (void)snprintf(text, sizeof(text), "%.*s\n%s%s", line, request, session, request + line);
    return text;
}

static void expect_in_session(const char *request, int status, const char *part)
{
    expect_http(gateway.address, &(struct http_case){in_session(request), status, part}, 1);
}

static void rules(void **state)
{
    static const struct http_case cases[] = {
        {POST MESSAGE("1", "ping", ""), 200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
        {POST "\n{", 400, "-32700"},
        {POST "\n[]", 400, "-32600"},
        {POST "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202, "202"},
        {"POST /mcp\nContent-Type: text/plain\n\n{}", 415, "jsonrpc"},
        {"POST /mcp\nContent-Type: application/json\nAccept: text/html\n\n{}", 406, "jsonrpc"},
        {"GET /mcp\nAccept: text/event-stream", 400, "jsonrpc"},
        {"GET /mcp\nAccept: text/event-stream\nMCP-Protocol-Version: 2026-07-28", 405,
         "Allow: POST\r\n"},
        {"PUT /mcp\n\n{}", 405, "Allow: "},
        {"DELETE /mcp\nMcp-Session-Id: none", 404, "jsonrpc"},
        {POST "Mcp-Session-Id: none\n" MESSAGE("1", "ping", ""), 404, "jsonrpc"},
        {MODERN("server/discover") MESSAGE("1", "server/discover", META), 200,
         "\"supportedVersions\""},
        {MODERN("tools/list") MESSAGE("1", "server/discover", META), 400, "-32020"},
        {MODERN("tools/call") CALL("1", "notebook", ""), 400, "-32602"},
        {MODERN("ping") MESSAGE("1", "ping", META), 404, "-32601"},
        {MODERN("tools/call") "Mcp-Name: =?base64?dGVzdF9zaW1wbGVfdGV4dA==?=\n" MESSAGE(
             "1", "tools/call", "\"name\":\"test_simple_text\",\"arguments\":{}," META),
         200, "\"resultType\":\"complete\""},
        {MODERN("tools/call") "Mcp-Name: other\n" MESSAGE(
             "1", "tools/call", "\"name\":\"test_simple_text\",\"arguments\":{}," META),
         400, "-32020"},
        {MODERN("tools/call") "Mcp-Name: test_missing_capability\n" MESSAGE(
             "1", "tools/call", "\"name\":\"test_missing_capability\",\"arguments\":{}," META),
         400, "-32021"},
        {POST "MCP-Protocol-Version: v9\nMcp-Method: ping\n" MESSAGE("1", "ping", ""), 400,
         "\"error\""},
    };
    (void)state;
    expect_http(gateway.address, cases, NG_COUNT(cases));
}

static void sessions(void **state)
{
    (void)state;
    open_session("");
    expect_in_session(POST MESSAGE("1", "ping", ""), 200, "\"result\":{}");
    expect_in_session(POST MESSAGE("2", "tools/list", ""), 200, "test_simple_text");
    expect_in_session(POST "X-Notegate-Agent: other\n" MESSAGE("1", "ping", ""), 404,
                      "jsonrpc");
    expect_in_session("GET /mcp\nAccept: text/event-stream\nLast-Event-ID: 99-1", 400,
                      "Last-Event-ID");
    expect_in_session("GET /mcp\nAccept: application/json", 406, "jsonrpc");
    expect_in_session("DELETE /mcp", 204, "204");
    expect_in_session(POST MESSAGE("1", "ping", ""), 404, "jsonrpc");
    expect_in_session("DELETE /mcp", 404, "jsonrpc");
}

/* The id of the last event received. */
static void last_id(struct http_peer *peer, char id[64])
{
    const char *last = NULL;
    for (const char *at = buf_cstr(&peer->received); (at = strstr(at, "\nid: ")) != NULL;
         at++) {
        last = at + 5;
    }
    if (last == NULL) {
        fail_msg("no event has an id: %s", buf_cstr(&peer->received));
        return;
    }
    (void)snprintf(id, 64, "%.*s", (int)strcspn(last, "\n"), last);
}

/* Answers the question that the peer has received. */
static void answer_question(struct http_peer *peer, const char *result)
{
    char request[1024];
    const char *at = strstr(buf_cstr(&peer->received), "sampling/createMessage");
    assert_non_null(at);
    while (strncmp(at, "\"id\":", 5) != 0 && at > peer->received.data) {
        at--;
    }
    assert_true(at > peer->received.data);
    at += 5;
    (void)snprintf(request, sizeof(request), POST "\n{\"jsonrpc\":\"2.0\",\"id\":%.*s,%s}",
                   (int)strcspn(at, ",}"), at, result);
    expect_in_session(request, 202, "202");
}

#define PARIS                                                                                  \
    "\"result\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":{\"type\":\"text\","       \
    "\"text\":\"Paris\"}}"

static void a_stream_is_resumed(void **state)
{
    struct http_peer peer;
    char request[256];
    char id[64];
    (void)state;
    open_session("\"sampling\":{}");
    http_open(&peer, gateway.address);
    http_ask(&peer, in_session(POST CALL("7", "test_sampling", "\"prompt\":\"x\"")));
    http_wait(&peer, "sampling/createMessage");
    http_wait(&peer, "}\n\n");
    last_id(&peer, id);
    answer_question(&peer, PARIS);
    http_close(&peer);
    (void)snprintf(request, sizeof(request),
                   "GET /mcp\nAccept: text/event-stream\n"
                   "Last-Event-ID: %s",
                   id);
    for (int round = 0; round < 2; round++) { /* what was sent is kept */
        http_open(&peer, gateway.address);
        http_ask(&peer, in_session(request));
        http_wait(&peer, "Paris");
        http_close(&peer);
    }
    /* The server closes a stream, and its client asks for the rest. */
    http_open(&peer, gateway.address);
    http_ask(&peer, in_session(POST CALL("8", "test_reconnection", "")));
    http_wait(&peer, "retry: ");
    http_wait(&peer, "0\r\n\r\n");
    last_id(&peer, id);
    http_close(&peer);
    (void)snprintf(request, sizeof(request),
                   "GET /mcp\nAccept: text/event-stream\n"
                   "Last-Event-ID: %s",
                   id);
    http_open(&peer, gateway.address);
    http_ask(&peer, in_session(request));
    http_wait(&peer, "\"id\":8,");
    http_close(&peer);
}

static void the_sessions_own_stream(void **state)
{
    struct http_peer first;
    struct http_peer second;
    (void)state;
    open_session("");
    http_open(&first, gateway.address);
    http_ask(&first, in_session("GET /mcp\nAccept: text/event-stream"));
    http_wait(&first, "text/event-stream");
    expect_in_session(POST CALL("1", "test_trigger_tool_change", ""), 200, "\"id\":1,");
    http_wait(&first, "notifications/tools/list_changed");
    http_open(&second, gateway.address); /* the newest connection has it */
    http_ask(&second, in_session("GET /mcp\nAccept: text/event-stream"));
    http_wait(&first, "0\r\n\r\n");
    expect_in_session(
        POST MESSAGE("2", "resources/subscribe", "\"uri\":\"test://watched-resource\""), 200,
        "\"result\":{}");
    expect_in_session(POST CALL("3", "test_update_watched_resource", "\"text\":\"new\""), 200,
                      "\"id\":3,");
    http_wait(&second, "notifications/resources/updated");
    expect_in_session("DELETE /mcp", 204, "204");
    http_wait(&second, "0\r\n\r\n");
    http_close(&first);
    http_close(&second);
}

static bool has_metric(const char *line)
{
    struct http_answer answer = http_once(gateway.address, "GET /metrics");
    bool there = strstr(answer.body, line) != NULL;
    http_answer_free(&answer);
    return there;
}

static void wait_metric(const char *line)
{
    const struct timespec step = {0, 1000000};
    for (int i = 0; i < PATIENCE_MS && !has_metric(line); i++) {
        (void)nanosleep(&step, NULL);
    }
    if (!has_metric(line)) {
        struct http_answer answer = http_once(gateway.address, "GET /metrics");
        fail_msg("%s is not in %s", line, strstr(answer.body, "notegate_calls_total{"));
    }
}

/* In a session a call outlives its connection; without one it is cancelled. */
static void clients_that_leave(void **state)
{
    struct http_peer own;
    struct http_peer peer;
    (void)state;
    open_session("\"sampling\":{}");
    http_open(&own, gateway.address);
    http_ask(&own, in_session("GET /mcp\nAccept: text/event-stream"));
    http_wait(&own, "text/event-stream");
    http_open(&peer, gateway.address);
    http_ask(&peer,
             in_session("POST /mcp\nContent-Type: application/json\nAccept: "
                        "application/json\n" CALL("9", "test_sampling", "\"prompt\":\"x\"")));
    http_wait(&own, "sampling/createMessage");
    http_wait(&own, "}\n\n");
    http_close(&peer);
    answer_question(&own, PARIS);
    wait_metric("notegate_calls_total{tool=\"test_sampling\",outcome=\"ok\"} 2\n");
    http_close(&own);
    http_open(&peer, gateway.address);
    http_ask(&peer, POST CALL("9", "slow_compute", "\"seconds\":600"));
    wait_metric("notegate_in_use{name=\"connections\"} 2\n");
    http_close(&peer);
    wait_metric("notegate_calls_total{tool=\"slow_compute\",outcome=\"CANCELLED\"} 1\n");
    wait_metric("notegate_in_use{name=\"connections\"} 1\n");
}

static void news_before_the_answer(void **state)
{
    struct http_peer peer;
    (void)state;
    http_open(&peer, gateway.address);
    http_ask(&peer, MODERN("tools/call") "Mcp-Name: test_tool_with_progress\n" MESSAGE(
                        "1", "tools/call",
                        "\"name\":\"test_tool_with_progress\",\"arguments\":{},"
                        "\"_meta\":{\"progressToken\":5,"
                        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                        "\"io.modelcontextprotocol/clientCapabilities\":{}}"));
    http_wait(&peer, "Content-Type: text/event-stream");
    http_wait(&peer, "\"progressToken\":5");
    http_wait(&peer, "\"id\":1,");
    assert_null(strstr(buf_cstr(&peer.received), "\nid: "));
    http_close(&peer);
    http_open(&peer, gateway.address);
    http_ask(&peer, MODERN("subscriptions/listen")
                        MESSAGE("\"s\"", "subscriptions/listen",
                                "\"notifications\":{\"toolsListChanged\":true}," META));
    http_wait(&peer, "notifications/subscriptions/acknowledged");
    expect_http(
        gateway.address,
        &(struct http_case){POST CALL("1", "test_trigger_tool_change", ""), 200, "\"id\":1,"},
        1);
    http_wait(&peer, "notifications/tools/list_changed");
    http_close(&peer);
}

static int open_gateway(void **state)
{
    *state = &gateway;
    (void)program_home();
    assert_int_equal(setenv("NOTEGATE_PLUGINS", "notebook,conformance", 1), 0);
    program_serve(&gateway, "--set shutdown_timeout=50ms");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(sessions),
        cmocka_unit_test(a_stream_is_resumed),
        cmocka_unit_test(the_sessions_own_stream),
        cmocka_unit_test(clients_that_leave),
        cmocka_unit_test(news_before_the_answer),
    };
    return cmocka_run_group_tests(tests, open_gateway, program_tear_down);
}
