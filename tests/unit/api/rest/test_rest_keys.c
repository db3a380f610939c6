/* SPDX-License-Identifier: MIT */
/* test_rest_keys.c - a gateway with keys: authentication, /v1/keys, and streams of a key that
 * ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "http_peer.h"
#include "program.h"

#define JSON "\nContent-Type: application/json\n\n"

static struct program gateway;
static char local[512];
static char admin[128];
static char reader[128];

/* The key's text. */
static void add_key(const char *words, char key[128])
{
    struct ended ended = program_run(words, NULL);
    assert_int_equal(ended.code, 0);
    (void)snprintf(key, 128, "%.*s", (int)strcspn(ended.out, "\n"), ended.out);
    ended_free(&ended);
}

/* The request with the key in its first header line. */
static struct http_answer ask_with(const char *key, const char *request)
{
    char text[4096];
    size_t line = strcspn(request, "\n");
    (void)snprintf(text, sizeof(text), "%.*s\nAuthorization: Bearer %s%s", (int)line, request,
                   key, request + line);
    return http_once(gateway.address, text);
}

static void expect_with(const char *key, const struct http_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http_answer answer = ask_with(key, cases[i].request);
        if (answer.status != cases[i].status || (strstr(answer.body, cases[i].part) == NULL &&
                                                 strstr(answer.head, cases[i].part) == NULL)) {
            fail_msg("%s: %s%s", cases[i].request, answer.head, answer.body);
        }
        http_answer_free(&answer);
    }
}

static void who_gets_in(void **state)
{
    static const struct http_case without[] = {
        {"GET /v1/tools", 401, "WWW-Authenticate: Bearer"},
        {"GET /metrics", 401, "UNAUTHENTICATED"},
        {"GET /nothing", 401, "UNAUTHENTICATED"},
        {"GET /v1/keys", 401, "UNAUTHENTICATED"},
        {"GET /healthz", 200, "ok"},
        {"GET /docs", 200, "<html"},
        {"POST /mcp" JSON "{}", 401, "\"jsonrpc\":\"2.0\""},
    };
    static const struct http_case readers[] = {
        {"GET /v1/tools", 200, "notebook"},
        {"GET /v1/keys", 403, "FORBIDDEN"},
        {"POST /v1/keys" JSON "{\"agent\":\"x\"}", 403, "FORBIDDEN"},
        {"POST /v1/reload", 403, "FORBIDDEN"},
        {"POST /v1/tools/notebook\nX-Notegate-Space: ~other" JSON "{\"mode\":\"list\"}", 403,
         "space"},
        {"POST /v1/tools/notebook" JSON "{\"mode\":\"create\",\"name\":\"n\"}", 403,
         "FORBIDDEN"},
        {"GET /v1/events\nX-Notegate-Space: ~other", 403, "space"},
    };
    (void)state;
    expect_http(gateway.address, without, NG_COUNT(without));
    expect_with(reader, readers, NG_COUNT(readers));
}

static void keys_over_rest(void **state)
{
    static const struct http_case cases[] = {
        {"GET /v1/keys", 200, "\"agent\":\"reader\""},
        {"GET /v1/keys?all=true&name=reader", 200, "\"agent\":\"reader\""},
        {"GET /v1/keys?name=a%20b", 400, "\\\"name\\\""},
        {"GET /v1/keys?force=true", 400, "GET /v1/keys "},
        {"DELETE /v1/keys/zzzzzzzz?forc=1", 400, "DELETE /v1/keys/ID "},
        {"GET /v1/keys/zzzzzzzz", 404, "zzzzzzzz"},
        {"DELETE /v1/keys/zzzzzzzz", 404, "NOT_FOUND"},
        {"POST /v1/keys" JSON "{", 400, "INVALID_JSON"},
        {"POST /v1/keys" JSON "{\"agent\":\"a b\"}", 400, "INVALID_INPUT"},
        {"POST /v1/keys" JSON "{\"agent\":\"x\",\"role\":\"king\"}", 400, "role"},
        {"POST /v1/keys" JSON "{\"agent\":\"x\",\"run\":true}", 403, "RUN"},
        {"POST /v1/keys\nX-Notegate-Mode: ask" JSON "{\"agent\":\"x\"}", 403, "MODE"},
        {"POST /v1/keys\nX-Notegate-Mode: edit" JSON "{\"agent\":\"x\"}", 403, "MODE"},
        {"GET /metrics", 200, "notegate_"},
        {"POST /v1/reload", 200, "restart_needed"},
    };
    char request[128];
    char id[64];
    (void)state;
    expect_with(admin, cases, NG_COUNT(cases));
    struct http_answer added =
        ask_with(admin, "POST /v1/keys" JSON "{\"agent\":\"x\",\"note\":\"n\"}");
    assert_int_equal(added.status, 201);
    const char *at = strstr(added.body, "\"id\":\"");
    assert_non_null(at);
    (void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(at + 6, "\""), at + 6);
    http_answer_free(&added);
    (void)snprintf(request, sizeof(request), "GET /v1/keys/%s", id);
    expect_with(admin, &(struct http_case){request, 200, "\"note\":\"n\""}, 1);
    (void)snprintf(request, sizeof(request), "DELETE /v1/keys/%s", id);
    expect_with(admin, &(struct http_case){request, 200, "revoked"}, 1);
}

/* A stream ends with its key, as others go on. */
static void a_revoked_key_ends_its_streams(void **state)
{
    char key[128];
    char request[256];
    struct http_peer ended;
    struct http_peer other;
    (void)state;
    add_key("key add gone", key);
    http_open(&ended, gateway.address);
    (void)snprintf(request, sizeof(request), "GET /v1/events\nAuthorization: Bearer %s", key);
    http_ask(&ended, request);
    http_wait(&ended, ": notegate");
    http_open(&other, local);
    http_ask(&other, "GET /v1/events");
    http_wait(&other, ": notegate");
    expect_run("key revoke gone", 0, "1 key revoked", NULL);
    http_wait(&ended, "\"reason\":\"key_revoked\"");
    expect_run("call notebook mode=create name=on newStr=x --space shared", 0, "on", NULL);
    http_wait(&other, "\"id\":\"on\"");
    http_close(&ended);
    http_close(&other);
}

static void a_rate_is_kept(void **state)
{
    char key[128];
    (void)state;
    add_key("key add slow --rate 1/min", key);
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        struct http_answer answer =
            ask_with(key, "POST /v1/tools/notebook" JSON "{\"mode\":\"list\"}");
        if (answer.status == 429) {
            char *wait = http_header(&answer, "Retry-After");
            assert_non_null(wait);
            free(wait);
            refused++;
        }
        http_answer_free(&answer);
    }
    assert_in_range(refused, 1, 3);
}

static int open_gateway(void **state)
{
    *state = &gateway;
    (void)snprintf(local, sizeof(local), "%s/data/notegate.sock", program_home());
    program_serve(&gateway, "--set auth=on");
    add_key("key add boss --role admin", admin);
    add_key("key add reader --role reader", reader);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_gets_in),
        cmocka_unit_test(keys_over_rest),
        cmocka_unit_test(a_revoked_key_ends_its_streams),
        cmocka_unit_test(a_rate_is_kept),
    };
    return cmocka_run_group_tests(tests, open_gateway, program_tear_down);
}
