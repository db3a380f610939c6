/* SPDX-License-Identifier: MIT */
/* test_redis_uri.c - URIs of a Redis, and recalls as queries of RediSearch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../backends/redis/connection/uri.c"
#include "../../backends/redis/query.c"

static void expect_same(const char *got, const char *want)
{
    if (want == NULL) {
        assert_null(got);
    } else {
        assert_non_null(got);
        assert_string_equal(got, want);
    }
}

static void test_good_uris(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port, *path, *user, *password;
        int database;
        bool tls;
    } good[] = {
        {"redis://localhost", "localhost", "6379", NULL, NULL, NULL, 0, false},
        {"redis://localhost/", "localhost", "6379", NULL, NULL, NULL, 0, false},
        {"redis://h:7000/5", "h", "7000", NULL, NULL, NULL, 5, false},
        {"redis://h?db=5", "h", "6379", NULL, NULL, NULL, 5, false},
        {"rediss://:p%40%3A%2f@h", "h", "6379", NULL, NULL, "p@:/", 0, true},
        {"redis://ann:a@b:c@h:1", "h", "1", NULL, "ann", "a@b:c", 0, false},
        {"redis://ann:@h", "h", "6379", NULL, "ann", "", 0, false},
        {"redis://[::1]:7000/2", "::1", "7000", NULL, NULL, NULL, 2, false},
        {"redis://[::1]", "::1", "6379", NULL, NULL, NULL, 0, false},
        {"unix:///run/redis.sock", NULL, "", "/run/redis.sock", NULL, NULL, 0, false},
        {"unix://ann:pw@/run/r.sock?db=4", NULL, "", "/run/r.sock", "ann", "pw", 4, false},
    };
    for (size_t i = 0; i < NG_COUNT(good); i++) {
        struct redis_uri uri = {0};
        char error[REDIS_URI_ERROR_SIZE] = "";
        if (redis_uri_parse(ng_str_of(good[i].text), &uri, error) != NG_OK) {
            fail_msg("%s: %s", good[i].text, error);
        }
        expect_same(uri.node_count == 0 ? NULL : uri.nodes[0].host, good[i].host);
        expect_same(uri.nodes[0].port, good[i].port);
        expect_same(uri.path, good[i].path);
        expect_same(uri.user, good[i].user);
        expect_same(uri.password, good[i].password);
        assert_int_equal(uri.database, good[i].database);
        assert_int_equal(uri.tls, good[i].tls);
        redis_uri_free(&uri);
    }
}

static void test_sentinel_uris(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t hosts;
        const char *last, *port, *master, *password, *sentinel_user, *sentinel_password;
        int database;
        bool tls;
    } good[] = {
        {"redis+sentinel://a,b,c/mymaster/2", 3, "c", "26379", "mymaster", NULL, NULL, NULL, 2,
         false},
        {"redis+sentinel://a:1,b:2/m", 2, "b", "2", "m", NULL, NULL, NULL, 0, false},
        {"redis+sentinel://[::1]:1,[::2]/m%2Fx/", 2, "::2", "26379", "m/x", NULL, NULL, NULL, 0,
         false},
        {"rediss+sentinel://ann:p%40,w@a,b/m/0?sentinel_user=u&sentinel_password=s%26t&db=3", 2,
         "b", "26379", "m", "p@,w", "u", "s&t", 3, true},
        {"redis://a,b:7001", 2, "b", "7001", NULL, NULL, NULL, NULL, 0, false},
    };
    for (size_t i = 0; i < NG_COUNT(good); i++) {
        struct redis_uri uri = {0};
        char error[REDIS_URI_ERROR_SIZE] = "";
        if (redis_uri_parse(ng_str_of(good[i].text), &uri, error) != NG_OK) {
            fail_msg("%s: %s", good[i].text, error);
        }
        assert_int_equal(uri.node_count, good[i].hosts);
        expect_same(uri.nodes[uri.node_count - 1].host, good[i].last);
        expect_same(uri.nodes[uri.node_count - 1].port, good[i].port);
        expect_same(uri.master, good[i].master);
        expect_same(uri.password, good[i].password);
        expect_same(uri.sentinel_user, good[i].sentinel_user);
        expect_same(uri.sentinel_password, good[i].sentinel_password);
        assert_int_equal(uri.database, good[i].database);
        assert_int_equal(uri.tls, good[i].tls);
        redis_uri_free(&uri);
    }
}

static void test_places(void **state)
{
    (void)state;
    struct redis_place place;
    assert_true(redis_place_parse(ng_str_of("10.0.0.1:7000"), &place));
    assert_string_equal(place.host, "10.0.0.1");
    assert_string_equal(place.port, "7000");
    assert_true(redis_place_parse(ng_str_of("fe80::1:7000"), &place));
    assert_string_equal(place.host, "fe80::1");
    assert_true(redis_place_parse(ng_str_of(":7000"), &place));
    assert_string_equal(place.host, "");
    assert_false(redis_place_parse(ng_str_of("host"), &place));
    assert_false(redis_place_parse(ng_str_of("host:"), &place));
    assert_false(redis_place_parse(ng_str_of("host:70000"), &place));
}

static void test_bad_uris(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "http://localhost",
        "redis:localhost",
        "redis://",
        "redis://:7000",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
        "redis://h:",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/99999999999999999999",
        "redis://secret@h",
        "redis://:secret%zz@h",
        "redis://:secret%4@h",
        "redis://:secret%00@h",
        "redis://h?timeout=3",
        "redis://h#x",
        "redis://[::1",
        "unix://run/redis.sock",
        "unix:///",
        "unix:///a?x",
        "redis://a,",
        "redis://a,,b",
        "redis://a?sentinel_user=u&sentinel_password=secret",
        "redis+sentinel://a",
        "redis+sentinel://a/",
        "redis+sentinel://a//0",
        "redis+sentinel://a/m/x",
        "redis+sentinel://a/m?sentinel_user=u",
        "redis+sentinel://a/m?sentinel_password=secret%zz",
        "redis+sentinel:///m",
        "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct redis_uri uri = {0};
        char error[REDIS_URI_ERROR_SIZE] = "";
        if (redis_uri_parse(ng_str_of(bad[i]), &uri, error) != NG_EINVAL) {
            fail_msg("%s was taken", bad[i]);
        }
        assert_true(strlen(error) > 0);
        assert_null(strstr(error, "secret"));
    }
}

static void expect_query(const struct ng_recall *recall, const char *want)
{
    struct buf out;
    struct wanted wanted = {0};
    buf_init(&out, QUERY_BYTES_MAX);
    assert_int_equal(wanted_parse(NULL, recall->text, &wanted), NG_OK);
    int rc = redis_query(recall, &wanted, &out);
    assert_int_equal(rc, want == NULL ? NG_ENOTFOUND : NG_OK);
    expect_same(want == NULL ? NULL : buf_cstr(&out), want);
    wanted_done(&wanted);
    buf_done(&out);
}

static void test_queries(void **state)
{
    (void)state;
    struct ng_str tags[] = {ng_str_of("a b"), ng_str_of("c|d}"), ng_str_of("")};
    struct ng_recall recall = {.size = sizeof(recall)};
    expect_query(&recall, "*");
    recall.memories = true;
    expect_query(&recall, "* -(@source:{notebook} @score:[0.8 0.8]) ");
    recall.memories = false;
    recall.text = ng_str_of(" fox-trot (dance)|\"now\" a_b* \\");
    expect_query(&recall, "@words|content:(\"fox trot\"|dance|danc|now|(a b*)) ");
    recall.text = ng_str_of("What about the fox");
    expect_query(&recall, "@words|content:(fox) ");
    recall.text = ng_str_of("what about");
    expect_query(&recall, "@words|content:(what|about) ");
    recall.text = ng_str_of("-*\"(");
    expect_query(&recall, NULL);
    recall.text = ng_str_of("gr\xc3\xb6\xc3\x9f"
                            "e");
    recall.source = ng_str_of("tool:x\n");
    expect_query(&recall, "@words|content:(grosse|gross) @source:{tool\\:x\\ } ");
    struct ng_recall tagged = {.size = sizeof(tagged), .tags = tags, .tag_count = 3};
    tagged.since_ms = 5;
    expect_query(&tagged, "(@tags:{a\\ b|c\\|d\\}} | @entry_tags:{a\\ b|c\\|d\\}}) "
                          "@time:[5 +inf] ");
    tagged.min_score = 0.25;
    expect_query(&tagged, "(@tags:{a\\ b|c\\|d\\}} | @entry_tags:{a\\ b|c\\|d\\}}) "
                          "@time:[5 +inf] @score:[0.25 +inf] ");
    tagged.tags = tags + 2;
    tagged.tag_count = 1;
    expect_query(&tagged, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_uris), cmocka_unit_test(test_sentinel_uris),
        cmocka_unit_test(test_places),    cmocka_unit_test(test_bad_uris),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests_name("redis uri", tests, NULL, NULL);
}
