/* SPDX-License-Identifier: MIT */
/* test_mcp.c - MCP from a request to its answer, over HTTP's seam and over stdio. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "keys.h"
#include "mcp_http.h"
#include "mcp_stdio.h"
#include "str.h"
#include "test_gateway.h"

#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define SERVER_META                                                                            \
    "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{"          \
    "\"name\":\"notegate\",\"version\":\"" NOTEGATE_VERSION "\"}"
#define CALL(id, tool, arguments)                                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
    ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"arguments\":" arguments    \
    "}}"

/* Waiting for a condition gives up after this long. */
#define PATIENCE_MS 10000

struct fixture {
    struct gateway *gateway;
    struct mcp_http *mcp;
    struct auth_caller caller;
};

static struct fixture fixture;

static int set_up(void **state)
{
    static const char *const sets[] = {"limits.body=64KiB", "limits.result=256KiB",
                                       "limits.workers=8",  "limits.buffered=1MiB",
                                       "limits.queue=4096", NULL};
    (void)state;
    memset(&fixture, 0, sizeof(fixture));
    fixture.gateway = test_gateway_open(sets);
    assert_non_null(fixture.gateway);
    assert_int_equal(mcp_http_new(fixture.gateway, &fixture.mcp), NG_OK);
    fixture.caller.agent = ng_str_of("tester");
    fixture.caller.role = NG_ROLE_ADMIN;
    fixture.caller.mode = NG_MODE_AGENT;
    test_tools_release(false);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_tools_release(true);
    mcp_http_free(fixture.mcp);
    test_gateway_close(fixture.gateway);
    return 0;
}

static void wait_waiting(int count)
{
    const struct timespec step = {0, 1000000};
    for (int i = 0; i < PATIENCE_MS && test_tools_waiting() != count; i++) {
        (void)nanosleep(&step, NULL);
    }
    assert_int_equal(test_tools_waiting(), count);
}

/* ---- requests ---- */

struct exchange {
    struct mcp_http_request request;
    const char *params; /* further headers: "Name: value" lines */
    struct mcp_http_response response;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

/* From the exchange's own lines; the request is its first member. */
static struct ng_str find_header(const struct mcp_http_request *request, const char *name)
{
    const struct exchange *exchange = (const struct exchange *)(const void *)request;
    struct ng_str value = {NULL, 0};
    size_t len = strlen(name);
    const char *line = exchange->params;
    while (line != NULL && value.data == NULL) {
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            value = str_make(line + len + 1, strcspn(line + len + 1, "\n"));
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return value;
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

static void exchange_init(struct exchange *exchange, const char *body)
{
    memset(exchange, 0, sizeof(*exchange));
    (void)pthread_mutex_init(&exchange->lock, NULL);
    (void)pthread_cond_init(&exchange->changed, NULL);
    exchange->request.method = MCP_HTTP_POST;
    exchange->request.content_type = ng_str_of("application/json");
    exchange->request.accept = ng_str_of("application/json, text/event-stream");
    exchange->request.body = ng_str_of(body);
    exchange->request.caller = &fixture.caller;
    exchange->request.header = find_header;
    exchange->request.on_loop = true;
    buf_init(&exchange->response.body, (size_t)4 * 1024 * 1024);
}

static void exchange_start(struct exchange *exchange)
{
    if (mcp_http_handle(fixture.mcp, &exchange->request, &exchange->response, exchange_done,
                        exchange) == NG_OK) {
        exchange->done = true;
    }
}

static void exchange_wait(struct exchange *exchange)
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
}

static void exchange_run(struct exchange *exchange)
{
    exchange_start(exchange);
    exchange_wait(exchange);
}

static const char *exchange_text(struct exchange *exchange)
{
    return buf_cstr(&exchange->response.body);
}

static void exchange_free(struct exchange *exchange)
{
    call_unref(exchange->response.call);
    buf_done(&exchange->response.body);
    (void)pthread_cond_destroy(&exchange->changed);
    (void)pthread_mutex_destroy(&exchange->lock);
}

/* A POST of the handshake era, answered as expected. */
static void expect_answer(const char *body, int status, const char *answer)
{
    struct exchange exchange;
    exchange_init(&exchange, body);
    exchange_run(&exchange);
    assert_string_equal(exchange_text(&exchange), answer);
    assert_int_equal(exchange.response.status, status);
    exchange_free(&exchange);
}

static void expect_part(const char *body, int status, const char *part)
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

static void stateless(struct exchange *exchange, const char *method, const char *name)
{
    exchange->request.protocol_version = ng_str_of("2026-07-28");
    exchange->request.mcp_method = ng_str_of(method);
    exchange->request.mcp_name = ng_str_of(name);
}

/* ---- the handshake era ---- */

static void initialize_agrees_on_a_version(void **state)
{
    static const struct {
        const char *asked, *given;
    } cases[] = {
        {"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"},
        {"2025-03-26", "2025-03-26"}, {"2024-11-05", "2024-11-05"},
        {"1999-01-01", "2025-11-25"}, {"2026-07-28", "2025-11-25"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char body[512];
        char expected[64];
        struct exchange exchange;
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{"
                       "\"name\":\"t\",\"version\":\"1\"}}}",
                       cases[i].asked);
        (void)snprintf(expected, sizeof(expected), "\"protocolVersion\":\"%s\"",
                       cases[i].given);
        exchange_init(&exchange, body);
        exchange_run(&exchange);
        assert_int_equal(exchange.response.status, 200);
        assert_non_null(strstr(exchange_text(&exchange), expected));
        assert_non_null(strstr(exchange_text(&exchange), "\"tools\":{\"listChanged\":true}"));
        assert_non_null(strstr(exchange_text(&exchange), "\"name\":\"notegate\""));
        assert_null(strstr(exchange_text(&exchange), "resultType"));
        assert_int_equal(strlen(exchange.response.session_id), 64);
        exchange_free(&exchange);
    }
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", 200, "-32602");
}

static void open_session(char id[MCP_HTTP_SESSION_MAX], const char *version)
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

static int in_session(const char *id, enum mcp_http_method method, const char *body)
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

static void sessions_live_and_end(void **state)
{
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
    char id[MCP_HTTP_SESSION_MAX];
    (void)state;
    open_session(id, "2025-11-25");
    assert_int_equal(
        in_session(id, MCP_HTTP_POST,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
        202);
    assert_int_equal(in_session(id, MCP_HTTP_POST, ping), 200);
    assert_int_equal(in_session("no such session", MCP_HTTP_POST, ping), 404);
    /* Another key of the same agent is another caller. */
    struct key other = {.refs = 1, .id = "2"};
    fixture.caller.key = &other;
    assert_int_equal(in_session(id, MCP_HTTP_POST, ping), 404);
    assert_int_equal(in_session(id, MCP_HTTP_DELETE, ""), 404);
    fixture.caller.key = NULL;
    assert_int_equal(in_session(id, MCP_HTTP_POST, ping), 200);
    assert_int_equal(in_session(id, MCP_HTTP_DELETE, ""), 204);
    assert_int_equal(in_session(id, MCP_HTTP_POST, ping), 404);
    assert_int_equal(in_session(id, MCP_HTTP_DELETE, ""), 404);
    assert_int_equal(in_session(NULL, MCP_HTTP_DELETE, ""), 400);
}

static void small_methods(void **state)
{
    (void)state;
    expect_answer("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}", 200,
                  "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
    expect_answer("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{"
                  "\"level\":\"info\"}}",
                  200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":{"
                "\"level\":\"loud\"}}",
                200, "-32602");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", 200, "-32601");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}", 200, "-32601");
    expect_answer("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}", 202, "");
    expect_answer("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 202, "");
}

static void broken_bodies(void **state)
{
    (void)state;
    expect_part("", 400, "-32700");
    expect_part("{", 400, "\"id\":null,\"error\":{\"code\":-32700");
    expect_part("{\"a\":1,\"a\":2}", 400, "-32700");
    expect_part("1", 400, "-32600");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":7}", 400, "\"id\":7,\"error\":{\"code\":-32600");
}

/* ---- tools ---- */

static void tools_are_listed(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    exchange_run(&exchange);
    const char *text = exchange_text(&exchange);
    assert_non_null(strstr(text, "\"name\":\"t_echo\""));
    assert_non_null(strstr(text, "\"title\":\"Echo\""));
    assert_non_null(strstr(text, "\"inputSchema\":{\"type\":\"object\""));
    assert_non_null(strstr(text, "\"outputSchema\":{\"type\":\"object\""));
    assert_non_null(strstr(text, "\"readOnlyHint\":true"));
    assert_non_null(strstr(text, "\"destructiveHint\":true"));
    assert_null(strstr(text, "t_say"));
    assert_null(strstr(text, "ttlMs"));
    exchange_free(&exchange);
    /* What a caller may not do is not in its list. */
    fixture.caller.role = NG_ROLE_READER;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    exchange_run(&exchange);
    assert_non_null(strstr(exchange_text(&exchange), "t_echo"));
    assert_null(strstr(exchange_text(&exchange), "t_write"));
    exchange_free(&exchange);
    expect_part(CALL("1", "t_write", "{}"), 200, "\"code\":\"FORBIDDEN\"");
    fixture.caller.role = NG_ROLE_ADMIN;
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
                "\"cursor\":\"x\"}}",
                200, "-32602");
}

static void calls_answer(void **state)
{
    (void)state;
    expect_answer(CALL("1", "t_echo", "{\"text\":\"a\\u0001\\\"\"}"), 200,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
                  "\"text\":\"echo:a\\u0001\\\"\"}]}}");
    expect_part(CALL("1", "t_say", "{\"text\":\"b\"}"), 200, "echo:b");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                "\"name\":\"t_echo\"}}",
                200, "\"echo:\"");
    expect_answer(CALL("1", "t_object", "{}"), 200,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
                  "\"text\":\"{\\\"count\\\":3,\\\"name\\\":\\\"a "
                  "\\\\\\\"b\\\\\\\"\\\\n\\\"}\"}],\"structuredContent\":{\"count\":3,"
                  "\"name\":\"a \\\"b\\\"\\n\"}}}");
    expect_answer(
        CALL("1", "t_parts", "{}"), 200,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
        "\"first\"},{\"type\":\"image\",\"data\":\"AQID/w==\",\"mimeType\":\"image/png\"},"
        "{\"type\":\"audio\",\"data\":\"AQID/w==\",\"mimeType\":\"audio/wav\"},"
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://text\",\"mimeType\":"
        "\"text/plain\",\"text\":\"inside\"}},{\"type\":\"resource\",\"resource\":{"
        "\"uri\":\"test://blob\",\"blob\":\"AQID/w==\"}},{\"type\":\"resource_link\","
        "\"uri\":\"test://link\",\"name\":\"link\"}]}}");
    expect_part(CALL("1", "t_revision", "{}"), 200, "\"_meta\":{\"notegate/revision\":7}");
    expect_part(CALL("1", "t_revision", "{\"text\":\"r\\\"\"}"), 200,
                "\"_meta\":{\"notegate/revision\":\"r\\\"\"}");
}

static void calls_fail(void **state)
{
    (void)state;
    expect_answer(CALL("1", "t_fail", "{}"), 200,
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
                  "\"text\":\"there is no note \\\"x\\\"\\nlist the notes first\"}],"
                  "\"isError\":true,\"_meta\":{\"notegate/error\":{\"error\":true,\"code\":"
                  "\"NOT_FOUND\",\"message\":\"there is no note \\\"x\\\"\",\"hint\":\"list "
                  "the notes first\"}}}}");
    expect_part(CALL("1", "t_echo", "{\"text\":1}"), 200, "\"code\":\"INVALID_INPUT\"");
    expect_part(CALL("1", "t_echo", "{\"text\":1}"), 200, "\"isError\":true");
    expect_part(CALL("\"q\"", "t_ecko", "{}"), 200, "\"id\":\"q\",\"error\":{\"code\":-32602");
    expect_part(CALL("1", "t_ecko", "{}"), 200, "t_echo");
    expect_part(CALL("1", "t_echo", "[]"), 200, "-32602");
    expect_part("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}", 200,
                "-32602");
    expect_part(CALL("1", "t_ask", "{}"), 200, "\"isError\":true");
    expect_part(CALL("1", "t_big", "{\"bytes\":300000}"), 200, "\"code\":\"TOO_LARGE\"");
}

static void answers_over_the_buffer_give_way(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, CALL("1", "t_big", "{\"bytes\":200000}"));
    exchange.response.body.max = 400000; /* six bytes each: it does not fit */
    exchange_run(&exchange);
    assert_string_equal(exchange_text(&exchange),
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":"
                        "\"the answer is larger than this gateway gives; ask for less\"}}");
    exchange_free(&exchange);
}

static void a_full_gateway_says_so(void **state)
{
    (void)state;
    atomic_store(&fixture.gateway->stopping, true);
    struct exchange exchange;
    exchange_init(&exchange, CALL("1", "t_echo", "{}"));
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 503);
    assert_true(exchange.response.retry_after_s > 0);
    assert_non_null(strstr(exchange_text(&exchange), "\"error\":{\"code\":503"));
    assert_non_null(
        strstr(exchange_text(&exchange), "\"data\":{\"error\":true,\"code\":\"BUSY\""));
    exchange_free(&exchange);
}

static void refusals_of_the_face(void **state)
{
    struct buf out;
    struct ng_str none = {NULL, 0};
    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(mcp_http_print_refusal(NG_EUNAUTHENTICATED, ng_str_of("who?"), none, &out),
                     NG_OK);
    assert_string_equal(buf_cstr(&out),
                        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":401,\"message\":"
                        "\"who?\",\"data\":{\"error\":true,\"code\":\"UNAUTHENTICATED\","
                        "\"message\":\"who?\"}}}");
    buf_done(&out);
}

/* ---- batches ---- */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static void batches_where_the_version_has_them(void **state)
{
    static const char batch[] = "[" CALL("1", "t_echo", "{\"text\":\"a\"}") "," CALL(
        "2", "t_parts", "{}") ","
                              "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},7,"
                              "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"},"
                              "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"initialize\"}," CALL(
                                  "5", "t_fail", "{}") "]";
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, batch);
    exchange_run(&exchange);
    const char *text = exchange_text(&exchange);
    assert_int_equal(exchange.response.status, 200);
    assert_int_equal(text[0], '[');
    assert_int_equal(text[strlen(text) - 1], ']');
    assert_int_equal(count_of(text, "\"jsonrpc\""), 6);
    assert_non_null(strstr(text, "\"id\":1,\"result\""));
    assert_non_null(strstr(text, "\"id\":2,\"result\""));
    assert_non_null(strstr(text, "\"id\":3,\"result\":{}"));
    assert_non_null(strstr(text, "\"id\":4,\"error\":{\"code\":-32600"));
    assert_non_null(strstr(text, "\"id\":5,\"result\""));
    assert_non_null(strstr(text, "\"id\":null,\"error\":{\"code\":-32600"));
    struct arena arena;
    const struct ng_value *value = NULL;
    struct json_error error;
    arena_init(&arena, 0);
    assert_int_equal(json_parse(&arena, buf_str(&exchange.response.body), 32, &value, &error),
                     NG_OK);
    arena_done(&arena);
    exchange_free(&exchange);
    expect_part("[]", 400, "-32600");
    expect_answer("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]", 202, "");
    exchange_init(&exchange, batch);
    exchange.request.protocol_version = ng_str_of("2025-06-18");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 400);
    exchange_free(&exchange);
    exchange_init(&exchange, batch);
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 400);
    exchange_free(&exchange);
    char id[MCP_HTTP_SESSION_MAX];
    open_session(id, "2025-11-25");
    assert_int_equal(in_session(id, MCP_HTTP_POST, batch), 400);
    open_session(id, "2025-03-26");
    assert_int_equal(in_session(id, MCP_HTTP_POST, batch), 200);
}

static void batches_are_bounded(void **state)
{
    struct buf body;
    (void)state;
    buf_init(&body, 65536);
    for (int i = 0; i < 101; i++) {
        buf_printf(&body, "%c{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}",
                   i == 0 ? '[' : ',', i);
    }
    buf_add_char(&body, ']');
    expect_part(buf_cstr(&body), 400, "100 messages");
    buf_done(&body);
}

/* ---- the stateless era ---- */

static void discover_tells_all(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\","
                             "\"params\":{" META "}}");
    stateless(&exchange, "server/discover", NULL);
    exchange_run(&exchange);
    const char *text = exchange_text(&exchange);
    assert_int_equal(exchange.response.status, 200);
    assert_non_null(strstr(text, "\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\","
                                 "\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"));
    assert_non_null(strstr(text, "\"resources\":{"));
    assert_non_null(strstr(text, "\"prompts\":{"));
    assert_non_null(strstr(text, "\"ttlMs\":"));
    assert_non_null(strstr(text, "\"cacheScope\":\"public\""));
    assert_non_null(strstr(text, SERVER_META "}"));
    assert_string_equal(exchange.response.session_id, "");
    exchange_free(&exchange);
}

static void stateless_calls(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"t_revision\"," META "}}");
    stateless(&exchange, "tools/call", "t_revision");
    exchange.request.session_id = ng_str_of("ignored");
    exchange_run(&exchange);
    assert_string_equal(exchange_text(&exchange),
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":"
                        "\"text\",\"text\":\"done\"}]," SERVER_META
                        ",\"notegate/revision\":7}}}");
    assert_int_equal(exchange.response.status, 200);
    exchange_free(&exchange);
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
                             "\"params\":{" META "}}");
    stateless(&exchange, "tools/list", NULL);
    exchange_run(&exchange);
    assert_non_null(strstr(exchange_text(&exchange), "\"cacheScope\":\"private\""));
    exchange_free(&exchange);
}

static void stateless_errors_have_statuses(void **state)
{
    static const struct {
        const char *method, *name, *params;
        int status, code;
    } cases[] = {
        {"initialize", NULL, META, 404, -32601},
        {"ping", NULL, META, 404, -32601},
        {"logging/setLevel", NULL, META, 404, -32601},
        {"no/such", NULL, META, 404, -32601},
        {"tools/list", NULL, "", 400, -32602},
        {"tools/call", "other", "\"name\":\"t_echo\"," META, 400, -32020},
        {"tools/call", "t_ask", "\"name\":\"t_ask\"," META, 400, -32021},
        {"tools/call", "t_ecko", "\"name\":\"t_ecko\"," META, 200, -32602},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char body[1024];
        char code[64];
        struct exchange exchange;
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":31,\"method\":\"%s\",\"params\":{%s}}",
                       cases[i].method, cases[i].params);
        (void)snprintf(code, sizeof(code), "\"id\":31,\"error\":{\"code\":%d", cases[i].code);
        exchange_init(&exchange, body);
        stateless(&exchange, cases[i].method, cases[i].name);
        exchange_run(&exchange);
        if (exchange.response.status != cases[i].status ||
            strstr(exchange_text(&exchange), code) == NULL) {
            fail_msg("case %zu: %d %s", i, exchange.response.status, exchange_text(&exchange));
        }
        exchange_free(&exchange);
    }
}

static void unsupported_versions_list_ours(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    exchange.request.protocol_version = ng_str_of("v999");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 400);
    assert_non_null(strstr(exchange_text(&exchange), "\"code\":-32022"));
    assert_non_null(strstr(exchange_text(&exchange),
                           "\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\","
                           "\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"],\"requested\":"
                           "\"v999\"}"));
    exchange_free(&exchange);
}

static void headers_repeat_marked_arguments(void **state)
{
    static const struct {
        const char *arguments, *params;
        bool accepted;
    } cases[] = {
        {"{}", NULL, true},
        {"{\"text\":null}", NULL, true},
        {"{\"text\":\"eu\"}", "Mcp-Param-Region: eu", true},
        {"{\"text\":\"eu\"}", "mcp-param-REGION:=?base64?ZXU=?=", true},
        {"{\"text\":\"eu\"}", "Mcp-Param-Region:=?base64?ZXU?=", false},
        {"{\"text\":\"eu\"}", "Mcp-Param-Region: us", false},
        {"{\"text\":\"eu\"}", NULL, false},
        {"{}", "Mcp-Param-Region: eu", false},
        {"{\"count\":42}", "Mcp-Param-Count: 42.0", true},
        {"{\"count\":42}", "Mcp-Param-Count: 43", false},
        {"{\"count\":42}", "Mcp-Param-Count: forty-two", false},
        {"{\"inner\":{\"flag\":true}}", "Mcp-Param-Flag: true", true},
        {"{\"inner\":{\"flag\":true}}", "Mcp-Param-Flag: false", false},
        {"{\"inner\":{\"flag\":false}}", NULL, false},
        {"{\"text\":\"a\",\"count\":1}", "Mcp-Param-Count: 1\nMcp-Param-Region: a", true},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        char body[1024];
        struct exchange exchange;
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"t_region\",\"arguments\":%s," META "}}",
                       cases[i].arguments);
        exchange_init(&exchange, body);
        exchange.params = cases[i].params;
        stateless(&exchange, "tools/call", "t_region");
        exchange_run(&exchange);
        int status = cases[i].accepted ? 200 : 400;
        if (exchange.response.status != status ||
            (strstr(exchange_text(&exchange), "-32020") == NULL) != cases[i].accepted) {
            fail_msg("case %zu: %d %s", i, exchange.response.status, exchange_text(&exchange));
        }
        exchange_free(&exchange);
    }
    /* The older versions know nothing of it. */
    expect_part(CALL("1", "t_region", "{\"text\":\"eu\"}"), 200, "echo:eu");
}

/* Wherever memory runs out there is an answer, and nothing is lost or used after its end. */
static void memory_may_run_out(void **state)
{
    static const char *const bodies[] = {
        CALL("1", "t_echo", "{\"text\":\"a\"}"),
        CALL("1", "t_object", "{}"),
        CALL("1", "t_fail", "{}"),
        CALL("1", "t_ecko", "{}"),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\"}}",
        "[" CALL("1", "t_echo", "{}") "," CALL("2", "t_object", "{}") "]",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(bodies); i++) {
        for (long count = 0; count < 60; count++) {
            struct exchange exchange;
            exchange_init(&exchange, bodies[i]);
            alloc_fail_after(count);
            exchange_run(&exchange);
            alloc_fail_after(-1);
            assert_true(exchange.response.status >= 200 && exchange.response.status < 600);
            exchange_free(&exchange);
        }
    }
}

/* ---- HTTP ---- */

static int status_with(const char *content_type, const char *accept, const char **ret_type)
{
    struct exchange exchange;
    exchange_init(&exchange, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    exchange.request.content_type = ng_str_of(content_type);
    exchange.request.accept = ng_str_of(accept);
    exchange_run(&exchange);
    int status = exchange.response.status;
    *ret_type = exchange.response.content_type;
    if (*ret_type != NULL) {
        assert_string_equal(exchange_text(&exchange),
                            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
                            "\n\n");
    }
    exchange_free(&exchange);
    return status;
}

static void media_types(void **state)
{
    const char *type = NULL;
    (void)state;
    assert_int_equal(status_with("application/json; charset=utf-8", "*/*", &type), 200);
    assert_int_equal(status_with("Application/JSON", NULL, &type), 200);
    assert_int_equal(status_with("application/json", "text/html, application/*;q=0.1", &type),
                     200);
    assert_null(type);
    assert_int_equal(status_with("application/json", "text/event-stream", &type), 200);
    assert_string_equal(type, "text/event-stream");
    assert_int_equal(status_with("application/json", "text/html", &type), 406);
    assert_int_equal(status_with("text/plain", "*/*", &type), 415);
    assert_int_equal(status_with("*/*", "*/*", &type), 415);
    assert_int_equal(status_with("text/plain, application/json", "*/*", &type), 415);
    assert_int_equal(status_with("text/plain;, application/json", "*/*", &type), 415);
    assert_int_equal(status_with("application/json; charset=utf-16", "*/*", &type), 415);
    assert_int_equal(status_with(NULL, "*/*", &type), 415);
}

static void other_http_methods(void **state)
{
    struct exchange exchange;
    (void)state;
    exchange_init(&exchange, "");
    exchange.request.method = MCP_HTTP_GET; /* without a session */
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 400);
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = MCP_HTTP_GET;
    exchange.request.accept = ng_str_of("application/json");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 406);
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = MCP_HTTP_GET;
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 405);
    assert_string_equal(exchange.response.allow, "POST");
    exchange_free(&exchange);
    exchange_init(&exchange, "");
    exchange.request.method = MCP_HTTP_DELETE;
    exchange.request.protocol_version = ng_str_of("2026-07-28");
    exchange_run(&exchange);
    assert_int_equal(exchange.response.status, 405);
    assert_string_equal(exchange.response.allow, "POST");
    exchange_free(&exchange);
}

static void calls_can_be_cancelled(void **state)
{
    struct exchange exchange;
    char id[MCP_HTTP_SESSION_MAX];
    (void)state;
    /* By the face, when the client left. */
    exchange_init(&exchange, CALL("1", "t_wait", "{}"));
    exchange_start(&exchange);
    wait_waiting(1);
    assert_non_null(exchange.response.call);
    call_cancel(exchange.response.call);
    exchange_wait(&exchange);
    assert_non_null(strstr(exchange_text(&exchange), "\"code\":\"CANCELLED\""));
    exchange_free(&exchange);
    /* By a notification in the same session, and by the end of the session. */
    for (int round = 0; round < 2; round++) {
        open_session(id, "2025-11-25");
        exchange_init(&exchange, CALL("\"c\"", "t_wait", "{}"));
        exchange.request.session_id = ng_str_of(id);
        exchange_start(&exchange);
        wait_waiting(1);
        if (round == 0) {
            assert_int_equal(
                in_session(id, MCP_HTTP_POST,
                           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                           "\"params\":{\"requestId\":\"c\"}}"),
                202);
        } else {
            assert_int_equal(in_session(id, MCP_HTTP_DELETE, ""), 204);
        }
        exchange_wait(&exchange);
        if (round == 0) { /* who cancels wants no answer */
            assert_int_equal(exchange.response.status, 202);
            assert_string_equal(exchange_text(&exchange), "");
        } else {
            assert_non_null(strstr(exchange_text(&exchange), "\"code\":\"CANCELLED\""));
        }
        exchange_free(&exchange);
    }
}

/* ---- stdio ---- */

struct pipes {
    struct mcp_stdio stdio;
    int to, from; /* our ends */
    FILE *lines;
    pthread_t thread;
    int rc;
};

static void *run_stdio(void *user)
{
    struct pipes *pipes = user;
    pipes->rc = mcp_stdio_run(&pipes->stdio);
    (void)close(pipes->stdio.out_fd);
    return NULL;
}

static void stdio_start(struct pipes *pipes)
{
    int in[2];
    int out[2];
    memset(pipes, 0, sizeof(*pipes));
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pipes->stdio.gateway = fixture.gateway;
    pipes->stdio.caller = &fixture.caller;
    pipes->stdio.in_fd = in[0];
    pipes->stdio.out_fd = out[1];
    pipes->stdio.stop_fd = -1;
    pipes->to = in[1];
    pipes->from = out[0];
    pipes->lines = fdopen(out[0], "r");
    assert_non_null(pipes->lines);
    assert_int_equal(pthread_create(&pipes->thread, NULL, run_stdio, pipes), 0);
}

static void stdio_send(struct pipes *pipes, const char *text)
{
    size_t len = strlen(text);
    assert_int_equal(write(pipes->to, text, len), (ssize_t)len);
}

static void stdio_expect(struct pipes *pipes, const char *part)
{
    static char line[1024 * 1024];
    assert_non_null(fgets(line, sizeof(line), pipes->lines));
    if (strstr(line, part) == NULL) {
        fail_msg("%s is not in %s", part, line);
    }
}

static void stdio_end(struct pipes *pipes)
{
    if (pipes->to >= 0) {
        (void)close(pipes->to);
        pipes->to = -1;
    }
    assert_int_equal(pthread_join(pipes->thread, NULL), 0);
    assert_int_equal(pipes->rc, NG_OK);
    assert_int_equal(fgetc(pipes->lines), EOF); /* nothing was left unread */
    (void)fclose(pipes->lines);
    (void)close(pipes->stdio.in_fd);
}

static void stdio_release_and_expect(struct pipes *pipes, int count)
{
    test_tools_release(true);
    for (int i = 0; i < count; i++) {
        stdio_expect(pipes, "\"waited\"");
    }
}

static void stdio_speaks_both_eras(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"2025-06-18\"}}\n");
    stdio_expect(&pipes, "\"protocolVersion\":\"2025-06-18\"");
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\n \r\n");
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\r\n");
    stdio_expect(&pipes, "\"name\":\"t_echo\"");
    stdio_send(&pipes, CALL("3", "t_echo", "{\"text\":\"x\"}") "\n");
    stdio_expect(&pipes, "\"echo:x\"");
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"server/discover\",\"params\":"
               "{" META "}}\n");
    stdio_expect(&pipes, "\"supportedVersions\"");
    stdio_send(&pipes, "[" CALL("5", "t_echo", "{}") "]\n");
    stdio_expect(&pipes, "-32600"); /* not in 2025-06-18 */
    stdio_send(&pipes, "{oops\n");
    stdio_expect(&pipes, "-32700");
    stdio_send(&pipes, CALL("6", "t_echo", "{\"text\":\"last\"}")); /* no line feed */
    (void)close(pipes.to);
    pipes.to = -1;
    stdio_expect(&pipes, "\"echo:last\"");
    stdio_end(&pipes);
}

static void stdio_answers_as_calls_finish(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
               "\"t_wait\",\"_meta\":{\"progressToken\":\"tok\"}}}\n");
    stdio_expect(&pipes,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                 "{\"progressToken\":\"tok\",\"progress\":1,\"total\":2,\"message\":"
                 "\"waiting\"}}");
    stdio_send(&pipes, CALL("2", "t_echo", "{\"text\":\"first\"}") "\n");
    stdio_expect(&pipes, "\"id\":2,");
    test_tools_release(true);
    stdio_expect(&pipes, "\"progress\":2");
    stdio_expect(&pipes, "\"id\":1,\"result\"");
    stdio_end(&pipes);
}

static void stdio_cancels(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    wait_waiting(1);
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":\"1\"}}\n"); /* another id */
    stdio_send(&pipes,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":1,\"reason\":\"enough\"}}\n");
    wait_waiting(0);
    stdio_send(&pipes, CALL("2", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"id\":2,"); /* and nothing for 1 */
    stdio_end(&pipes);
}

static void stdio_finishes_what_runs(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n" CALL("2", "t_wait", "{}") "\n");
    wait_waiting(2);
    (void)close(pipes.to);
    pipes.to = -1;
    test_tools_release(true);
    stdio_expect(&pipes, "waited");
    stdio_expect(&pipes, "waited");
    stdio_end(&pipes);
}

static void stdio_logs_to_the_client(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_log", "{}") "\n");
    stdio_expect(&pipes,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                 "\"level\":\"warning\",\"logger\":\"t_log\",\"data\":{\"loud\":true}}}");
    stdio_expect(&pipes, "logged");
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/setLevel\","
                       "\"params\":{\"level\":\"error\"}}\n");
    stdio_expect(&pipes, "\"id\":2");
    stdio_send(&pipes, CALL("3", "t_log", "{}") "\n");
    stdio_expect(&pipes, "logged");
    /* The stateless era says it per request, and nothing means none. */
    stdio_send(&pipes, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"t_log\"," META "}}\n");
    stdio_expect(&pipes, "logged");
    stdio_end(&pipes);
}

static void stdio_bounds_lines(void **state)
{
    static char line[70 * 1024];
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    memset(line, 'x', sizeof(line) - 1);
    for (int i = 0; i < 3; i++) {
        stdio_send(&pipes, line);
    }
    stdio_send(&pipes, "\n" CALL("1", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"code\":413");
    stdio_expect(&pipes, "\"id\":1,\"result\"");
    stdio_end(&pipes);
}

static void stdio_ends_when_told(void **state)
{
    struct pipes pipes;
    int stop[2];
    (void)state;
    assert_int_equal(pipe(stop), 0);
    memset(&pipes, 0, sizeof(pipes));
    int in[2];
    int out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pipes.stdio = (struct mcp_stdio){.gateway = fixture.gateway,
                                     .caller = &fixture.caller,
                                     .in_fd = in[0],
                                     .out_fd = out[1],
                                     .stop_fd = stop[0]};
    pipes.to = in[1];
    pipes.lines = fdopen(out[0], "r");
    assert_int_equal(pthread_create(&pipes.thread, NULL, run_stdio, &pipes), 0);
    stdio_send(&pipes, CALL("1", "t_echo", "{}") "\n");
    stdio_expect(&pipes, "\"id\":1");
    assert_int_equal(write(stop[1], "x", 1), 1);
    assert_int_equal(pthread_join(pipes.thread, NULL), 0);
    assert_int_equal(pipes.rc, NG_OK);
    (void)fclose(pipes.lines);
    (void)close(in[0]);
    (void)close(in[1]);
    (void)close(stop[0]);
    (void)close(stop[1]);
}

static void stdio_outlives_its_client(void **state)
{
    struct pipes pipes;
    (void)state;
    stdio_start(&pipes);
    stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    wait_waiting(1);
    (void)fclose(pipes.lines); /* nobody reads any more */
    stdio_send(&pipes, CALL("2", "t_echo", "{}") "\n");
    assert_int_equal(pthread_join(pipes.thread, NULL), 0);
    assert_int_equal(pipes.rc, NG_OK);
    assert_int_equal(test_tools_waiting(), 0); /* cancelled, not waited for */
    (void)close(pipes.to);
    (void)close(pipes.stdio.in_fd);
}

/* More requests than are taken at once: the rest is told so, and none is lost. */
static void stdio_bounds_what_is_under_way(void **state)
{
    struct pipes pipes;
    int more = 6;
    (void)state;
    stdio_start(&pipes);
    for (int i = 0; i < MCP_STDIO_IN_FLIGHT_MAX + more; i++) {
        stdio_send(&pipes, CALL("1", "t_wait", "{}") "\n");
    }
    for (int i = 0; i < more; i++) {
        stdio_expect(&pipes, "\"error\":{\"code\":503");
    }
    stdio_release_and_expect(&pipes, MCP_STDIO_IN_FLIGHT_MAX);
    stdio_end(&pipes);
}

/* A client that asks and does not read holds up itself only; it gets every answer later. */
static void stdio_waits_for_slow_readers(void **state)
{
    struct pipes pipes;
    int count = 300;
    (void)state;
    stdio_start(&pipes);
    for (int i = 0; i < count; i++) {
        stdio_send(&pipes, CALL("1", "t_big", "{\"bytes\":20000}") "\n");
    }
    for (int i = 0; i < count; i++) {
        stdio_expect(&pipes, "\\u0001\\u0001");
    }
    stdio_end(&pipes);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(initialize_agrees_on_a_version),
        TEST(sessions_live_and_end),
        TEST(small_methods),
        TEST(broken_bodies),
        TEST(tools_are_listed),
        TEST(calls_answer),
        TEST(calls_fail),
        TEST(answers_over_the_buffer_give_way),
        TEST(a_full_gateway_says_so),
        TEST(refusals_of_the_face),
        TEST(batches_where_the_version_has_them),
        TEST(batches_are_bounded),
        TEST(discover_tells_all),
        TEST(stateless_calls),
        TEST(stateless_errors_have_statuses),
        TEST(unsupported_versions_list_ours),
        TEST(headers_repeat_marked_arguments),
        TEST(memory_may_run_out),
        TEST(media_types),
        TEST(other_http_methods),
        TEST(calls_can_be_cancelled),
        TEST(stdio_speaks_both_eras),
        TEST(stdio_answers_as_calls_finish),
        TEST(stdio_cancels),
        TEST(stdio_finishes_what_runs),
        TEST(stdio_logs_to_the_client),
        TEST(stdio_bounds_lines),
        TEST(stdio_ends_when_told),
        TEST(stdio_outlives_its_client),
        TEST(stdio_bounds_what_is_under_way),
        TEST(stdio_waits_for_slow_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
