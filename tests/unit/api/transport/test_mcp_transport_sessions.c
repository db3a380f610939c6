/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_sessions.c - the handshake versions: sessions, lists, calls, batches.
 */
#include "test_mcp_transport_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/keys/keys.h"

/* A POST of the handshake versions, answered as expected. */
static void expect_answer(const char *body, int status, const char *answer)
{
    struct exchange exchange;
    exchange_init(&exchange, body);
    exchange_run(&exchange);
    assert_string_equal(exchange_text(&exchange), answer);
    assert_int_equal(exchange.response.status, status);
    exchange_free(&exchange);
}

/* ---- the handshake versions ---- */

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

static void sessions_live_and_end(void **state)
{
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
    char id[MCP_HTTP_SESSION_MAX];
    (void)state;
    open_session(id, "2025-11-25");
    assert_int_equal(
        in_session(id, HTTP_POST,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
        202);
    assert_int_equal(in_session(id, HTTP_POST, ping), 200);
    assert_int_equal(in_session("no such session", HTTP_POST, ping), 404);
    /* Another key of the same agent is another caller. */
    struct key other = {.refs = 1, .id = "2"};
    fixture.caller.key = &other;
    assert_int_equal(in_session(id, HTTP_POST, ping), 404);
    assert_int_equal(in_session(id, HTTP_DELETE, ""), 404);
    fixture.caller.key = NULL;
    assert_int_equal(in_session(id, HTTP_POST, ping), 200);
    assert_int_equal(in_session(id, HTTP_DELETE, ""), 204);
    assert_int_equal(in_session(id, HTTP_POST, ping), 404);
    assert_int_equal(in_session(id, HTTP_DELETE, ""), 404);
    assert_int_equal(in_session(NULL, HTTP_DELETE, ""), 400);
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
    /* Tools that a caller may not call are not in its list. */
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
                        "\"the answer is larger than this gateway allows; ask for less\"}}");
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

static void refusals_of_the_transport(void **state)
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
    assert_int_equal(in_session(id, HTTP_POST, batch), 400);
    open_session(id, "2025-03-26");
    assert_int_equal(in_session(id, HTTP_POST, batch), 200);
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
        TEST(refusals_of_the_transport),
        TEST(batches_where_the_version_has_them),
        TEST(batches_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
