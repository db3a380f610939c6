/* SPDX-License-Identifier: MIT */
/* test_http_check.c - request target, headers, Host and Origin as pure functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "api/listen/http_check.h"
#include "api/listen/http_names.h"
#include "core/base/str.h"

static struct http_target target;
static struct http_fault fault;

static void assert_str(struct ng_str got, const char *wanted)
{
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.data, wanted, got.len);
}

static void test_target(void **state)
{
    (void)state;
    assert_int_equal(http_check_target("/v1/a%20b?x=%00&y", &target, &fault), NG_OK);
    assert_str(target.path, "/v1/a b");
    assert_str(target.query, "x=%00&y");
    static const struct {
        const char *raw, *path;
        size_t last;
        bool has_slash;
    } paths[] = {
        {"/", "/", 1, false},         {"/mcp", "/mcp", 1, false},
        {"/mcp/", "/mcp", 1, true},   {"//", "/", 1, true},
        {"/mcp//", "/mcp/", 5, true}, {"/a/b/?c=/", "/a/b", 3, true},
        {"/%61%2f", "/a/", 1, false}, {"/%61/b%2Fc/", "/a/b/c", 3, true},
        {"*", "*", 0, false},
    };
    for (size_t i = 0; i < NG_COUNT(paths); i++) {
        assert_int_equal(http_check_target(paths[i].raw, &target, &fault), NG_OK);
        assert_str(target.path, paths[i].path);
        assert_int_equal(target.last, paths[i].last);
        assert_int_equal(target.has_slash, paths[i].has_slash);
    }
    static const char *const bad[] = {"/a%00",   "/a%",        "/a%4", "/%zz",   "/%ff",
                                      "a",       "",           "/a b", "/a\x01", "http://x/",
                                      "/%c0%af", "/%ed%a0%80", "/%7f"};
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(http_check_target(bad[i], &target, &fault), NG_EINVAL);
        assert_true(fault.text[0] != '\0');
    }
    char longest[HTTP_TARGET_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[HTTP_TARGET_MAX + 1] = '\0';
    assert_int_equal(http_check_target(longest, &target, &fault), NG_ETOOLARGE);
    longest[HTTP_TARGET_MAX] = '\0';
    assert_int_equal(http_check_target(longest, &target, &fault), NG_OK);
}

static void test_query(void **state)
{
    struct ng_str query = ng_str_of("&a=1&&b&c=");
    struct ng_str name;
    struct ng_str value;
    (void)state;
    assert_true(http_query_next(&query, &name, &value));
    assert_str(name, "a");
    assert_str(value, "1");
    assert_true(http_query_next(&query, &name, &value));
    assert_str(name, "b");
    assert_int_equal(value.len, 0);
    assert_true(http_query_next(&query, &name, &value));
    assert_str(name, "c");
    assert_false(http_query_next(&query, &name, &value));
}

/* Lines "Name:value"; NULL at the end. */
static int check_all(const char *const *lines)
{
    struct http_headers headers;
    memset(&headers, 0, sizeof(headers));
    memset(&fault, 0, sizeof(fault));
    for (size_t i = 0; lines[i] != NULL; i++) {
        const char *colon = strchr(lines[i], ':');
        int rc = http_check_header(&headers, str_make(lines[i], (size_t)(colon - lines[i])),
                                   ng_str_of(colon + 1), &fault);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return http_check_headers(&headers, &fault);
}

static void test_framing(void **state)
{
    (void)state;
    assert_int_equal(check_all((const char *[]){"Host:a", "content-LENGTH:5", NULL}), NG_OK);
    assert_int_equal(check_all((const char *[]){"Host:a", "Transfer-Encoding:Chunked", NULL}),
                     NG_OK);
    static const char *const bad[][4] = {
        {"Host:a", "Content-Length:5", "Content-Length:5", NULL},
        {"Host:a", "Content-Length:5", "Transfer-Encoding:chunked", NULL},
        {"Host:a", "Transfer-Encoding:gzip", NULL, NULL},
        {"Host:a", "Content-Length:+5", NULL, NULL},
        {"Host:a", "Content-Length:", NULL, NULL},
        {"Host:a", "Content-Length:99999999999999999999", NULL, NULL},
        {"Host:a", "Host:a", NULL, NULL},
        {"Accept:a", NULL, NULL, NULL},
        {"Host:", NULL, NULL, NULL},
        {"Host:a", "Content-Length :5", NULL, NULL},
        {"Host:a", "X:a\x01", NULL, NULL},
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(check_all(bad[i]), NG_EINVAL);
        assert_true(fault.fatal);
    }
}

static void test_proxies(void **state)
{
    static const struct {
        const char *name, *found;
    } cases[] = {
        {"Via", "via"},
        {"CF-Connecting-IP", "cf-connecting-ip"},
        {"X-Forwarded", "x-forwarded..."},
        {"x-forwarded-for", "x-forwarded..."},
        {"X-Forwarde", NULL},
        {"X-Original-Forwarded-For", "x-original-..."},
        {"X-Original", NULL},
        {"X-Envoy-External-Address", "x-envoy-..."},
        {"Viae", NULL},
        {"X-Real", NULL},
        {"Client-IP", "client-ip"},
        {"Host", NULL},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct http_headers headers = {0};
        assert_int_equal(http_check_header(&headers, ng_str_of(cases[i].name),
                                           ng_str_of("localhost"), &fault),
                         NG_OK);
        if (cases[i].found == NULL) {
            assert_null(headers.proxied);
        } else {
            assert_string_equal(headers.proxied, cases[i].found);
        }
    }
}

static void test_content_type(void **state)
{
    (void)state;
    assert_true(http_is_json(ng_str_of("Application/JSON ; charset=\"UTF-8\"")));
    assert_true(http_is_json(ng_str_of("application/problem+json")));
    assert_false(http_is_json(ng_str_of("application/+json")));
    assert_false(http_is_json(ng_str_of("application/jsonx")));
    assert_false(http_is_json(ng_str_of("application/json;charset=latin1")));
    assert_false(http_is_json(ng_str_of("")));
}

static void test_names(void **state)
{
    static const struct ng_str hosts[] = {{"gate.example", 12}, {"b.example:9", 11}};
    static const struct ng_str origins[] = {{"https://app.example", 19}};
    struct http_names names = {{"10.0.0.5", 8}, 8420, hosts, 2, origins, 1};
    struct ng_str none = ng_str_of("");
    (void)state;
    assert_true(http_host_allowed(&names, ng_str_of("LocalHost:1"), none));
    assert_true(http_host_allowed(&names, ng_str_of("[::1]"), none));
    assert_true(http_host_allowed(&names, ng_str_of("10.0.0.5:8420"), none));
    assert_true(http_host_allowed(&names, ng_str_of("Gate.example"), none));
    assert_true(http_host_allowed(&names, ng_str_of("b.example:9"), none));
    assert_true(http_host_allowed(&names, ng_str_of("10.9.9.9"), ng_str_of("10.9.9.9")));
    assert_false(http_host_allowed(&names, ng_str_of("b.example:8"), none));
    assert_false(http_host_allowed(&names, ng_str_of("10.9.9.9"), none));
    assert_false(http_host_allowed(&names, ng_str_of("localhost.evil"), none));
    assert_false(http_host_allowed(&names, ng_str_of("localhost:"), none));
    struct ng_str host = ng_str_of("localhost:9000");
    assert_true(http_origin_allowed(&names, ng_str_of("https://app.example"), host));
    assert_true(http_origin_allowed(&names, ng_str_of("http://localhost:8420"), host));
    assert_true(http_origin_allowed(&names, ng_str_of("http://localhost:9000"), host));
    assert_false(http_origin_allowed(&names, ng_str_of("http://localhost:9001"), host));
    assert_false(http_origin_allowed(&names, ng_str_of("null"), host));
    assert_false(http_origin_allowed(&names, ng_str_of("http://app.example"), host));
}

/* Which Host each entry of allowed_hosts lets in. */
static void test_host_patterns(void **state)
{
    static const struct {
        const char *allowed, *host;
        bool matches;
    } cases[] = {
        {"*.example.com", "a.example.com", true},
        {"*.example.com", "A.b.Example.COM:8420", true},
        {"*.example.com", "example.com", false},
        {"*.example.com", ".example.com", false},
        {"*.example.com", "aexample.com", false},
        {"*.example.com", "a.example.com.evil", false},
        {"*.example.com:99", "a.example.com:99", true},
        {"*.example.com:99", "a.example.com", false},
        {"10.0.0.0/8", "10.1.2.3:8420", true},
        {"10.0.0.0/8", "11.1.2.3", false},
        {"10.0.0.0/8", "10.evil.example", false},
        {"10.0.0.0/8", "10.1.2.3.evil.example", false},
        {"192.168.4.0/22", "192.168.7.255", true},
        {"192.168.4.0/22", "192.168.8.0", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "evil.example", false},
        {"10.0.0.0/8", "[::1:a00:1]", false},
        {"fd00::/8", "[fd12::3]:8420", true},
        {"[fd00::]/8", "[fd12::3]", true},
        {"fd00::/8", "[fe80::3]", false},
        {"fd00::5", "[fd00:0::5]:1", true},
        {"[fd00::5]:8420", "[fd00::5]:8420", true},
        {"[fd00::5]:8420", "[fd00::5]:1", false},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct ng_str allowed = ng_str_of(cases[i].allowed);
        struct http_names names = {.listen_port = 8420, .hosts = &allowed, .host_count = 1};
        bool got = http_host_allowed(&names, ng_str_of(cases[i].host), ng_str_of(""));
        if (got != cases[i].matches) {
            fail_msg("%s, allowed %s: %d", cases[i].host, cases[i].allowed, got);
        }
    }
}

static void test_origin_patterns(void **state)
{
    static const struct ng_str allowed = {"https://*.example.com:99", 24};
    struct http_names names = {.listen_port = 8420, .origins = &allowed, .origin_count = 1};
    struct ng_str host = ng_str_of("localhost:8420");
    (void)state;
    assert_true(http_origin_allowed(&names, ng_str_of("https://a.b.example.com:99"), host));
    static const char *const others[] = {
        "https://a.example.com",      "http://a.example.com:99", "https://example.com:99",
        "https://*.example.com.e:99", "https://aexample.com:99", "https://a.example.com:99/x",
        "://a.example.com:99",
    };
    for (size_t i = 0; i < NG_COUNT(others); i++) {
        assert_false(http_origin_allowed(&names, ng_str_of(others[i]), host));
    }
}

/* What `key` may hold: NG_OK, or NG_EINVAL with the entry in the sentence. */
static void expect_entry(const char *key, const char *entry, int wanted)
{
    static const struct ng_option options[] = {
        {.name = "allowed_hosts", .type = NG_OPTION_LIST, .help = "Hosts."},
        {.name = "allowed_origins", .type = NG_OPTION_LIST, .help = "Origins."},
    };
    char set[128];
    const char *const sets[] = {set};
    struct config_input input = {.no_file = true, .sets = sets, .set_count = 1};
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    (void)snprintf(set, sizeof(set), "%s=%s", key, entry);
    assert_int_equal(config_load(&input, &config, &error), NG_OK);
    assert_int_equal(
        config_declare(config, "", options, NG_COUNT(options), sizeof(options[0]), &error),
        NG_OK);
    int rc = http_names_check(config, &error);
    if (rc != wanted) {
        fail_msg("%s: %d, %s", set, rc, buf_cstr(&error));
    }
    assert_true(wanted == NG_OK ? error.len == 0 : strstr(buf_cstr(&error), entry) != NULL);
    buf_done(&error);
    config_free(config);
}

static void test_names_check(void **state)
{
    static const char *const hosts[] = {
        "notes.example.com", "notes.example.com:8420",
        "*.example.com",     "*.svc:80",
        "10.0.0.5",          "10.0.0.0/8",
        "0.0.0.0/0",         "fd00::/8",
        "fd00::5",           "[fd00::5]:1",
    };
    static const char *const bad_hosts[] = {
        "*",          "a.*.b",       "*a.example", "*.*.example", "10.0.0.0/33", "10.0.0.0/",
        "10.0.0.5/8", "10.0.0.0/+8", "10.0.0/8",   "fd00::/129",  "*.",          "*.[::1]",
        "a b",        "name:port",   "http://x",   "x/y",         ".example",    "*:8420",
        "300.1.1.1",  "10.0.0:80",   "*.0.0.1",
    };
    static const char *const origins[] = {
        "https://app.example",  "http://localhost:6274", "https://*.example.com", "null",
        "vscode-webview://abc",
    };
    static const char *const bad_origins[] = {
        "*",
        "https://*",
        "https://a.*.b",
        "app.example",
        "https://app.example/",
        "https://x/y",
        "http://10.0.0.0/8",
        "*://x",
        "http://x:y",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(hosts); i++) {
        expect_entry("allowed_hosts", hosts[i], NG_OK);
    }
    for (size_t i = 0; i < NG_COUNT(bad_hosts); i++) {
        expect_entry("allowed_hosts", bad_hosts[i], NG_EINVAL);
    }
    for (size_t i = 0; i < NG_COUNT(origins); i++) {
        expect_entry("allowed_origins", origins[i], NG_OK);
    }
    for (size_t i = 0; i < NG_COUNT(bad_origins); i++) {
        expect_entry("allowed_origins", bad_origins[i], NG_EINVAL);
    }
}

static void test_small_values(void **state)
{
    (void)state;
    assert_true(http_request_id_valid(ng_str_of("a-1.B:2")));
    assert_false(http_request_id_valid(ng_str_of("")));
    assert_false(http_request_id_valid(ng_str_of("a b")));
    assert_true(http_traceparent_valid(
        ng_str_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")));
    assert_false(http_traceparent_valid(
        ng_str_of("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")));
    assert_false(http_traceparent_valid(
        ng_str_of("00-00000000000000000000000000000000-00f067aa0ba902b7-01")));
    assert_false(http_traceparent_valid(
        ng_str_of("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01")));
    assert_true(http_etag_matches(ng_str_of("\"x\", W/\"y\""), ng_str_of("\"y\"")));
    assert_false(http_etag_matches(ng_str_of("\"x\""), ng_str_of("\"y\"")));
    assert_int_equal(http_check_method("POST"), HTTP_POST);
    assert_int_equal(http_check_method("post"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target),        cmocka_unit_test(test_query),
        cmocka_unit_test(test_framing),       cmocka_unit_test(test_proxies),
        cmocka_unit_test(test_content_type),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_host_patterns), cmocka_unit_test(test_origin_patterns),
        cmocka_unit_test(test_names_check),   cmocka_unit_test(test_small_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
