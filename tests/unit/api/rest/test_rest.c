/* SPDX-License-Identifier: MIT */
/* test_rest.c - the routes of a gateway that serves: requests and their answers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "http_peer.h"
#include "program.h"

#define JSON "\nContent-Type: application/json\n\n"
#define CALL "POST /v1/tools/notebook" JSON
#define PAGE "https://app.example"

static const char *home;
static struct program gateway;
static char local[512];

static void expect_all(const struct http_case *cases, size_t count)
{
    expect_http(gateway.address, cases, count);
}

#define EXPECT(cases) expect_all(cases, NG_COUNT(cases))

static void calls(void **state)
{
    static const struct http_case cases[] = {
        {CALL "{\"mode\":\"create\",\"name\":\"a\",\"newStr\":\"one\\ntwo\"}", 200,
         "\"revision\":1"},
        {CALL "{\"mode\":\"read\",\"name\":\"a\"}", 200, "one\\ntwo"},
        {"POST /v1/tools/%6eotebook" JSON "{\"mode\":\"list\"}", 200, "\"result\""},
        {"POST /v1/tools/notebook\nContent-Type: application/problem+json\n\n"
         "{\"mode\":\"list\"}",
         200, "\"result\""},
        {"POST /v1/tools/notebook", 400, "INVALID_INPUT"},
        {CALL "{}", 400, "INVALID_INPUT"},
        {CALL "{\"mode\":\"no such\"}", 400, "\"path\":\"/mode\""},
        {CALL "{", 400, "INVALID_JSON"},
        {CALL "[1]x", 400, "INVALID_JSON"},
        {CALL "{\"a\":1,\"a\":2}", 400, "INVALID_JSON"},
        {CALL "\xff\xfe", 400, "INVALID_JSON"},
        {CALL "[]", 400, "INVALID_INPUT"},
        {CALL "null", 400, "`mode`"},
        {CALL "\xef\xbb\xbf{\"mode\":\"list\"}", 200, "\"result\""},
        {CALL "\xef\xbb\xbf\xef\xbb\xbf{\"mode\":\"list\"}", 400, "INVALID_JSON"},
        {CALL "{\"mode\":\"list\",\"\\udc00\":1}", 400, "surrogate"},
        {"POST /v1/tools/notebook\nContent-Type: text/plain\n\n{\"mode\":\"list\"}", 415,
         "UNSUPPORTED_MEDIA_TYPE"},
        {"POST /v1/tools/notebook\n\n{\"mode\":\"list\"}", 415, "UNSUPPORTED_MEDIA_TYPE"},
        {"POST /v1/tools/notebok" JSON "{}", 404, "notebook"},
        {CALL "{\"mode\":\"read\",\"name\":\"none\"}", 404, "NOT_FOUND"},
    };
    (void)state;
    EXPECT(cases);
}

/* A repeat with the same key is answered as the first one was, and done once. */
static void idempotent_calls(void **state)
{
    static const struct http_case cases[] = {
        {"POST /v1/tools/notebook\nIdempotency-Key: k1" JSON
         "{\"mode\":\"create\",\"name\":\"once\",\"newStr\":\"x\"}",
         200, "\"revision\":1"},
        {"POST /v1/tools/notebook\nIdempotency-Key: k1" JSON
         "{\"mode\":\"create\",\"name\":\"once\",\"newStr\":\"x\"}",
         200, "\"revision\":1"},
        {"POST /v1/tools/notebook\nIdempotency-Key: k1" JSON
         "{\"mode\":\"create\",\"name\":\"other\",\"newStr\":\"x\"}",
         422, "IDEMPOTENCY_KEY_REUSED"},
        {"POST /v1/tools/notebook\nIdempotency-Key:" JSON "{\"mode\":\"list\"}", 400,
         "Idempotency-Key"},
    };
    (void)state;
    EXPECT(cases);
}

static void tools(void **state)
{
    static const struct http_case cases[] = {
        {"GET /v1/tools", 200, "\"inputSchema\""},
        {"GET /v1/tools?format=openai", 200, "\"function\":{\"name\":\"notebook\""},
        {"GET /v1/tools?format=openai-responses", 200, "\"strict\":false"},
        {"GET /v1/tools?format=anthropic", 200, "\"input_schema\""},
        {"GET /v1/tools?format=gemini", 200, "functionDeclarations"},
        {"GET /v1/tools?format=yaml", 400, "gemini"},
        {"GET /v1/tools?formt=mcp", 400, "formt"},
        {"GET /v1/tools/notebook", 200, "\"inputSchema\""},
        {"GET /v1/tools/notebook?format=gemini", 200, "parametersJsonSchema"},
        {"GET /v1/tools/notebok", 404, "`notebook`"},
        {"GET /v1/tools/zzzzzzz", 404, "UNKNOWN_TOOL"},
        {"HEAD /v1/tools/zzzzzzz\nX: y", 404, "HTTP/1.1"},
    };
    (void)state;
    expect_http(gateway.address, cases, NG_COUNT(cases) - 1);
}

static void entity_tags(void **state)
{
    static const char *const paths[] = {"/v1/tools", "/openapi.json", "/v1/tools/notebook"};
    static const char *const forms[] = {"%s", "W/%s", "\"other\", %s", "*"};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(paths); i++) {
        char request[256];
        (void)snprintf(request, sizeof(request), "GET %s", paths[i]);
        struct http_answer first = http_once(gateway.address, request);
        char *tag = http_header(&first, "ETag");
        assert_non_null(tag);
        for (size_t j = 0; j < NG_COUNT(forms); j++) {
            char given[128] = "*";
            const char *place = strstr(forms[j], "%s");
            if (place != NULL) {
                (void)snprintf(given, sizeof(given), "%.*s%s", (int)(place - forms[j]),
                               forms[j], tag);
            }
            (void)snprintf(request, sizeof(request), "GET %s\nIf-None-Match: %s", paths[i],
                           given);
            struct http_answer again = http_once(gateway.address, request);
            assert_int_equal(again.status, 304);
            assert_int_equal(again.body_len, 0);
            http_answer_free(&again);
        }
        (void)snprintf(request, sizeof(request), "GET %s\nIf-None-Match: \"other\"", paths[i]);
        struct http_answer other = http_once(gateway.address, request);
        assert_int_equal(other.status, 200);
        assert_string_equal(other.body, first.body);
        http_answer_free(&other);
        http_answer_free(&first);
        free(tag);
    }
}

static void paths_and_methods(void **state)
{
    static const struct http_case cases[] = {
        {"GET /v1/tool", 404, "/v1/tools"},
        {"GET /nothing/here", 404, "NOT_FOUND"},
        {"GET /", 308, "Location: docs\r\n"},
        {"GET /v1/tools/", 200, "\"tools\""},
        {"GET /v1/tools//", 404, "NOT_FOUND"},
        {"GET /healthz/?x=/", 200, "ok"},
        {"PUT /v1/tools/", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"GET /v1/tools/a%2Fb", 404, "UNKNOWN_TOOL"},
        {"GET /v1/tools/a/b", 404, "NOT_FOUND"},
        {"PUT /v1/tools", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"DELETE /v1/tools/notebook", 405, "Allow: GET, HEAD, POST, OPTIONS\r\n"},
        {"BREW /v1/tools", 405, "METHOD_NOT_ALLOWED"},
        {"POST /v1/events", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"OPTIONS /v1/tools/notebook", 204, "Allow: "},
        {"GET /.well-known/oauth-protected-resource", 404, "NOT_FOUND"},
    };
    (void)state;
    EXPECT(cases);
}

static void the_gateway_itself(void **state)
{
    static const struct http_case cases[] = {
        {"GET /healthz", 200, "{\"status\":\"ok\"}"},
        {"GET /healthz", 200, "Cache-Control: no-store\r\n"},
        {"GET /healthz\nHost: x", 400, "INVALID_INPUT"},
        {"GET /readyz", 200, "{\"status\":\"ready\",\"version\":\"" NOTEGATE_VERSION},
        {"GET /v1/me", 200, "\"default_space\":\"shared\""},
        {"GET /v1/me?x=1", 400, "INVALID_INPUT"},
        {"GET /metrics", 200, "notegate_build_info{version=\"" NOTEGATE_VERSION "\",commit=\""},
        {"GET /metrics", 200, "notegate_limit{name=\"connections\"}"},
        {"GET /metrics", 200, "notegate_calls_total{tool=\"notebook\",outcome=\"ok\"}"},
        {"GET /docs", 200, "Content-Security-Policy: default-src 'none'"},
        {"GET /docs", 200, "X-Frame-Options: DENY\r\n"},
        {"GET /docs/docs.js", 200, "harmless"},
        {"GET /docs/docs.css", 200, "Content-Type: text/css"},
        {"GET /openapi.json", 200, "\"openapi\":\"3.1"},
        {"GET /openapi.json", 200, "\"/v1/tools/notebook\""},
        {"GET /openapi.json", 200, "text/event-stream"},
        {"GET /openapi.json", 200, "\"servers\":[{\"url\":\".\","},
        {"GET /openapi.json/", 200, "\"servers\":[{\"url\":\"..\","},
        {"GET /v1/tools\nX-Request-Id: abc-1.2_3", 200, "X-Request-Id: abc-1.2_3\r\n"},
        {"GET /v1/tools\ntraceparent: "
         "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
         200, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"},
        {"GET /v1/tools", 200, "X-Content-Type-Options: nosniff\r\n"},
    };
    (void)state;
    EXPECT(cases);
}

/* Backup, verify, configuration and reload are for the owner's commands, over the Unix socket.
 */
static void administration(void **state)
{
    static const struct http_case owner[] = {
        {"POST /v1/admin/verify", 200, "\"count\":0"},
        {"POST /v1/admin/backup", 200, "{\"kind\":\"notegate backup\""},
        {"POST /v1/admin/backup?files=true", 200, "{\"kind\":\"notegate backup\""},
        {"POST /v1/admin/backup/?files=false&", 200, "{\"kind\":\"notegate backup\""},
        {"POST /v1/admin/backup?file=true", 400, "\\\"file\\\""},
        {"POST /v1/admin/backup?files=yes", 400, "files=true"},
        {"POST /v1/admin/backup?files=true&x=1", 400, "INVALID_INPUT"},
        {"POST /v1/admin/verify?files=true", 400, "no parameters"},
        {"GET /v1/config", 200, "{\"keys\":[{\"key\":\"listen\","},
        {"GET /v1/config?all", 400, "no parameters"},
        {"POST /v1/config", 405, "METHOD_NOT_ALLOWED"},
        {"POST /v1/reload?now", 400, "no parameters"},
        {"POST /v1/reload", 200, "\"changes\":["},
        {"GET /v1/admin/verify", 405, "METHOD_NOT_ALLOWED"},
        {"GET /v1/tools", 200, "notebook"},
        {CALL "{\"mode\":\"list\"}", 200, "\"result\""},
    };
    static const struct http_case others[] = {
        {"POST /v1/admin/verify", 403, "FORBIDDEN"},
        {"POST /v1/admin/backup", 403, "FORBIDDEN"},
    };
    (void)state;
    expect_http(local, owner, NG_COUNT(owner));
    EXPECT(others);
}

static void callers(void **state)
{
    static const struct http_case cases[] = {
        {"POST /v1/tools/notebook\nX-Notegate-Agent: alice" JSON
         "{\"mode\":\"create\",\"name\":\"mine\",\"newStr\":\"secret\"}",
         200, "\"result\""},
        {"POST /v1/tools/notebook\nX-Notegate-Agent: alice" JSON
         "{\"mode\":\"read\",\"name\":\"mine\"}",
         200, "secret"},
        {"POST /v1/tools/notebook\nX-Notegate-Agent: bob" JSON
         "{\"mode\":\"read\",\"name\":\"mine\"}",
         404, "NOT_FOUND"},
        {"POST /v1/tools/notebook\nX-Notegate-Agent: bob\nX-Notegate-Space: ~alice" JSON
         "{\"mode\":\"read\",\"name\":\"mine\"}",
         200, "secret"},
        {"POST /v1/tools/notebook\nX-Notegate-Mode: ask" JSON
         "{\"mode\":\"create\",\"name\":\"no\"}",
         403, "MODE_FORBIDDEN"},
        {"GET /v1/tools\nX-Notegate-Agent: a b", 400, "X-Notegate-Agent"},
        {"GET /v1/tools\nX-Notegate-Agent:", 400, "X-Notegate-Agent"},
        {"GET /v1/tools\nX-Notegate-Space: ~", 400, "X-Notegate-Space"},
        {"GET /v1/tools\nX-Notegate-Mode: god", 400, "X-Notegate-Mode"},
        {"GET /v1/tools\nX-Notegate-Run: a b", 400, "X-Notegate-Run is \\\"a b\\\""},
        {"GET /v1/tools\nX-Notegate-Run:", 400, "X-Notegate-Run is \\\"\\\""},
        {"GET /v1/tools\nX-Notegate-Run: undo-1", 400, "undo- are made by an undo alone"},
        {"GET /v1/tools\nX-Notegate-Process-Run: a b", 400, "X-Notegate-Process-Run"},
        {"GET /v1/tools\nX-Notegate-Run: a:b", 200, "X-Notegate-Run: a:b\r\n"},
        {"GET /v1/tools\nVia: 1.1 x", 401, "WWW-Authenticate: Bearer"},
        {"GET /v1/tools\nX-Forwarded-For: x", 401, "proxy"},
        {"POST /mcp\nForwarded: for=x" JSON "{}", 401, "\"jsonrpc\":\"2.0\""},
        {"GET /v1/tools\nAuthorization: Bearer ng_x", 401, "UNAUTHENTICATED"},
    };
    (void)state;
    EXPECT(cases);
}

static void origins(void **state)
{
    static const struct http_case cases[] = {
        {"GET /v1/tools\nOrigin: http://evil.example", 403, "FORBIDDEN"},
        {"GET /v1/tools\nOrigin: null", 403, "FORBIDDEN"},
        {"POST /mcp\nOrigin: http://evil.example" JSON "{}", 403, "\"jsonrpc\":\"2.0\""},
        {"OPTIONS /v1/tools\nOrigin: http://evil.example", 403, "FORBIDDEN"},
        {"GET /v1/tools\nOrigin: " PAGE, 200, "Access-Control-Allow-Origin: " PAGE "\r\n"},
        {"OPTIONS /v1/tools/notebook\nOrigin: " PAGE "\nAccess-Control-Request-Method: POST",
         204, "X-Notegate-Run, X-Notegate-Space"},
        {"GET /v1/tools\nOrigin: " PAGE, 200, "WWW-Authenticate, X-Notegate-Run"},
        {"OPTIONS /mcp\nOrigin: " PAGE "\nAccess-Control-Request-Method: POST\n"
         "Access-Control-Request-Headers: authorization, mcp-param-region, cookie, a b",
         204, "mcp-param-region"},
    };
    (void)state;
    EXPECT(cases);
}

/* Host lines of its own: the client of the other cases adds one. */
static void hosts(void **state)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {
        {"LOCALHOST:1", 200},  {"127.0.0.1", 200},     {"[::1]:9", 200},
        {"gate.example", 200}, {"a.b.example:7", 200}, {"10.9.8.7", 200},
        {"evil.example", 403}, {"b.example", 403},     {"localhost:x", 403},
        {"11.0.0.1", 403},     {"[::1", 403},          {"a@localhost", 403},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct http_peer peer;
        char request[256];
        http_open(&peer, gateway.address);
        (void)snprintf(request, sizeof(request), "GET /v1/tools HTTP/1.1\r\nHost: %s\r\n\r\n",
                       cases[i].host);
        http_send(&peer, request);
        struct http_answer answer = http_take(&peer);
        if (answer.status != cases[i].status) {
            fail_msg("%s: %d", cases[i].host, answer.status);
        }
        http_answer_free(&answer);
        http_close(&peer);
    }
}

static void events(void **state)
{
    static const struct http_case refused[] = {
        {"GET /v1/events?since=x", 400, "since is \\\"x\\\""},
        {"GET /v1/events?since=-1", 400, "-1"},
        {"GET /v1/events?since=99999999999999999999", 400, "99999999999999999999"},
        {"GET /v1/events?since=", 400, "since"},
        {"GET /v1/events?since=0&since=0", 400, "since"},
        {"GET /v1/events?since=99999999", 400, "99999999"},
        {"GET /v1/events\nLast-Event-ID: 12a", 400, "Last-Event-ID"},
        {"GET /v1/events?since=0\nLast-Event-ID: 99999999", 400, "Last-Event-ID"},
        {"GET /v1/events?colection=notebooks", 400, "colection"},
        {"GET /v1/events?collection=notebook", 400, "\\\"notebook\\\""},
        {"GET /v1/events?collection=notebooks,", 400, "notebooks,"},
        {"GET /v1/events?collection=%ff", 400, "UTF-8"},
        {"GET /v1/events?tool=notabook", 400, "notabook"},
        {"GET /v1/events\nX-Notegate-Space: ~", 400, "X-Notegate-Space"},
    };
    static const struct http_case write[] = {
        {"POST /v1/tools/notebook\nX-Notegate-Space: shared" JSON
         "{\"mode\":\"create\",\"name\":\"told\",\"newStr\":\"x\"}",
         200, "\"result\""},
    };
    struct http_peer all;
    struct http_peer none;
    (void)state;
    EXPECT(refused);
    http_open(&all, gateway.address);
    http_ask(&all, "GET /v1/events?since=0&collection=notebooks&tool=notebook");
    http_wait(&all, ": notegate\nretry: 2000");
    http_open(&none, local);
    http_ask(&none, "GET /v1/events?collection=files");
    http_wait(&none, ": notegate\nretry: 2000");
    EXPECT(write);
    http_wait(&all, "\"id\":\"told\"");
    assert_null(strstr(buf_cstr(&none.received), "told"));
    http_close(&all);
    http_close(&none);
}

static int open_gateway(void **state)
{
    *state = &gateway;
    home = program_home();
    (void)snprintf(local, sizeof(local), "%s/data/notegate.sock", home);
    program_serve(&gateway, "--set allowed_origins=" PAGE
                            " --set allowed_hosts=gate.example,*.b.example,10.0.0.0/8");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(idempotent_calls),
        cmocka_unit_test(tools),
        cmocka_unit_test(entity_tags),
        cmocka_unit_test(paths_and_methods),
        cmocka_unit_test(the_gateway_itself),
        cmocka_unit_test(administration),
        cmocka_unit_test(callers),
        cmocka_unit_test(origins),
        cmocka_unit_test(hosts),
        cmocka_unit_test(events),
    };
    return cmocka_run_group_tests(tests, open_gateway, program_tear_down);
}
