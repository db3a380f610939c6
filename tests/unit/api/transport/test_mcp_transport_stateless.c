/* SPDX-License-Identifier: MIT */
/* test_mcp_transport_stateless.c - the stateless version: what each request carries, and what
 * memory that runs out does. */
#include "test_mcp_transport_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "core/dispatch/dispatch.h"

#define SERVER_META                                                                            \
    "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{"          \
    "\"name\":\"notegate\",\"version\":\"" NOTEGATE_VERSION "\"}"

static void stateless(struct exchange *exchange, const char *method, const char *name)
{
    exchange->request.protocol_version = ng_str_of("2026-07-28");
    exchange->request.mcp_method = ng_str_of(method);
    exchange->request.mcp_name = ng_str_of(name);
}

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
    assert_non_null(strstr(text, "\"cacheScope\":\"private\""));
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
    /* Those of a large message as well, which is read when its request may be gone. */
    for (size_t n = 0; n < 2 * NG_COUNT(cases); n++) {
        static char body[DISPATCH_INLINE_BYTES + 1024];
        size_t i = n / 2;
        struct exchange exchange;
        (void)snprintf(body, sizeof(body),
                       "%*s{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"t_region\",\"arguments\":%s," META "}}",
                       n % 2 == 0 ? 0 : (int)DISPATCH_INLINE_BYTES, "", cases[i].arguments);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(discover_tells_all),
        TEST(stateless_calls),
        TEST(stateless_errors_have_statuses),
        TEST(unsupported_versions_list_ours),
        TEST(headers_repeat_marked_arguments),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
