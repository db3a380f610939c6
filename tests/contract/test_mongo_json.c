/* SPDX-License-Identifier: MIT */
/* test_mongo_json.c - the mongo backend without a server: JSON of entries as BSON and back,
 * names, dates, words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../backends/mongo/document/document.h"
#include "../../backends/shared/words.h"
#include "core/base/merge/splice.h"
#include "core/base/text/rfc3339.h"

/* The JSON that is read back; *ret_whole: every member could be held. */
static void round_trip(struct ng_str json, struct bytes *ret, bson_t *ret_bson, bool *ret_whole)
{
    bson_t names = BSON_INITIALIZER;
    bson_iter_t iter;
    char digits[16];
    uint32_t at = 0;
    bson_init(ret_bson);
    assert_int_equal(json_members(json, ret_bson, ret_whole), NG_OK);
    assert_true(bson_iter_init(&iter, ret_bson));
    while (bson_iter_next(&iter)) {
        const char *key = NULL;
        (void)bson_uint32_to_string(at++, &key, digits, sizeof(digits));
        BSON_APPEND_UTF8(&names, key, bson_iter_key(&iter));
    }
    assert_int_equal(json_of(ret_bson, &names, ret), NG_OK);
    bson_destroy(&names);
}

/* `same`: BSON alone gives the same text, so no copy of it is kept. */
static void expect(const char *json, bool same)
{
    struct bytes again = {0};
    bson_t bson;
    bool whole = false;
    round_trip(ng_str_of(json), &again, &bson, &whole);
    bool equal = whole && str_equal(bytes_str(&again), ng_str_of(json));
    if (equal != same) {
        fail_msg("%s came back as %.*s", json, (int)again.len, again.data);
    }
    bson_destroy(&bson);
    bytes_done(&again);
}

static void test_same_text(void **state)
{
    (void)state;
    expect("{}", true);
    expect("{\"title\":\"A\",\"tags\":[],\"n\":null,\"t\":true,\"f\":false,\"o\":{}}", true);
    expect("{\"z\":1,\"a\":2,\"m\":{\"z\":[1,2,{\"x\":[]}]}}", true);
    expect("{\"s\":\"\\\"\\\\\\n\\t\\r\\b\\f\\u0001\\u0000 \xC3\xA4 \xF0\x9F\x98\x80\"}", true);
    expect("{\"a\":0,\"b\":-1,\"c\":123456789012345678,\"d\":0.25,\"e\":-1.5e+300}", true);
    expect("{\"metadata\":{\"created_at\":\"2025-02-28T23:59:59.999Z\",\"by\":\"agent:a\"}}",
           true);
    expect("{\"history\":[{\"version\":1,\"timestamp\":\"1969-12-31T23:59:59.001Z\"}]}", true);
}

static void test_kept_as_text(void **state)
{
    (void)state;
    expect("{\"a\":1.0}", false);
    expect("{\"a\":1e2}", false);
    expect("{\"a\":-0}", false);
    expect("{\"a\":123456789012345678901234567890}", false);
    expect("{\"a\":\"\\u0041\\/\"}", false);
    expect("{ \"a\" : 1 }", false);
    expect("{\"a.b\":1}", false);
    expect("{\"$set\":{\"x\":1}}", false);
    expect("{\"x\":{\"$date\":1}}", false);
    expect("{\"a\\u0000b\":1}", false);
    expect("{\"\":1}", false);
    expect("{\"_id\":\"mine\"}", false);
    expect("{\"outbox\":[1,2],\"title\":\"kept\"}", false);
    expect("{\"metadata\":{\"created_at\":\"2025-02-31T00:00:00.000Z\"}}", true);
}

static void test_what_can_be_held_is(void **state)
{
    (void)state;
    struct bytes again = {0};
    bson_t bson;
    bson_iter_t iter;
    bool whole = true;
    round_trip(ng_str_of("{\"space\":\"x\",\"title\":\"T\",\"q\":{\"a.b\":[\"},\"]},\"n\":7}"),
               &again, &bson, &whole);
    assert_false(whole);
    assert_true(str_equal(bytes_str(&again), ng_str_of("{\"title\":\"T\",\"n\":7}")));
    bson_destroy(&bson);
    round_trip(ng_str_of("{\"metadata\":{\"updated_at\":\"2025-01-02T03:04:05.678Z\"},"
                         "\"title\":\"2025-01-02T03:04:05.678Z\"}"),
               &again, &bson, &whole);
    assert_true(member(&bson, "metadata.updated_at", &iter));
    assert_true(BSON_ITER_HOLDS_DATE_TIME(&iter));
    assert_int_equal(bson_iter_date_time(&iter), INT64_C(1735787045678));
    assert_true(member(&bson, "title", &iter));
    assert_true(BSON_ITER_HOLDS_UTF8(&iter));
    bson_destroy(&bson);
    bytes_done(&again);
}

/* Longer than any number needs to be: rounded, and the member is there. */
static void test_long_numbers(void **state)
{
    (void)state;
    struct bytes json = {0};
    struct bytes again = {0};
    bson_t bson;
    bson_iter_t iter;
    bool whole = false;
    assert_int_equal(bytes_add_c(&json, "{\"metadata\":{\"tags\":[\"x\"],\"confidence\":0.25"),
                     NG_OK);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(bytes_add_c(&json, "0"), NG_OK);
    }
    assert_int_equal(bytes_add_c(&json, "e1}}"), NG_OK);
    round_trip(bytes_str(&json), &again, &bson, &whole);
    assert_true(whole);
    assert_true(member(&bson, "metadata.tags.0", &iter));
    assert_true(member(&bson, "metadata.confidence", &iter));
    assert_true(bson_iter_double(&iter) == 2.5);
    bson_destroy(&bson);
    bytes_done(&json);
    bytes_done(&again);
}

static void test_deep(void **state)
{
    (void)state;
    for (size_t depth = 10; depth <= 3000; depth *= 3) {
        struct bytes json = {0};
        struct bytes again = {0};
        bson_t bson;
        bool whole = false;
        assert_int_equal(bytes_add_c(&json, "{\"d\":"), NG_OK);
        for (size_t i = 0; i < depth; i++) {
            assert_int_equal(bytes_add_c(&json, "["), NG_OK);
        }
        for (size_t i = 0; i < depth; i++) {
            assert_int_equal(bytes_add_c(&json, "]"), NG_OK);
        }
        assert_int_equal(bytes_add_c(&json, ",\"e\":1}"), NG_OK);
        round_trip(bytes_str(&json), &again, &bson, &whole);
        assert_int_equal(whole, depth < 80);
        assert_true(bson_has_field(&bson, "e"));
        bson_destroy(&bson);
        bytes_done(&json);
        bytes_done(&again);
    }
}

/* The member metadata.x_at of an entry with this text there. */
static void read_date(const char *text, bson_t *ret, bson_iter_t *ret_at)
{
    char json[128];
    bool whole = false;
    (void)snprintf(json, sizeof(json), "{\"metadata\":{\"x_at\":\"%s\"}}", text);
    bson_init(ret);
    assert_int_equal(json_members(ng_str_of(json), ret, &whole), NG_OK);
    assert_true(whole);
    assert_true(member(ret, "metadata.x_at", ret_at));
}

static void test_dates(void **state)
{
    (void)state;
    static const int64_t times[] = {0,
                                    -1,
                                    INT64_C(951782400000),
                                    INT64_C(951868799999),
                                    INT64_C(4102444800000),
                                    INT64_C(-30610224000000),
                                    INT64_C(253402300799999)};
    bson_t bson;
    bson_iter_t at;
    for (size_t i = 0; i < NG_COUNT(times); i++) {
        char text[RFC3339_SIZE];
        rfc3339_write(times[i], RFC3339_MS, text);
        read_date(text, &bson, &at);
        assert_true(BSON_ITER_HOLDS_DATE_TIME(&at));
        assert_int_equal(bson_iter_date_time(&at), times[i]);
        bson_destroy(&bson);
    }
    static const char *const bad[] = {
        "",
        "2025-01-02",
        "2025-01-02T03:04:05Z",
        "2025-13-02T03:04:05.678Z",
        "2025-02-30T03:04:05.678Z",
        "2025-01-02T24:04:05.678Z",
        "2025-01-02 03:04:05.678Z",
        "x025-01-02T03:04:05.678Z",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        read_date(bad[i], &bson, &at);
        assert_true(BSON_ITER_HOLDS_UTF8(&at));
        assert_string_equal(bson_iter_utf8(&at, NULL), bad[i]);
        bson_destroy(&bson);
    }
}

static void expect_name(bool entry, const char *space, struct ng_str id, const char *name)
{
    struct bytes made = {0};
    struct db_collection collection = {.name = NULL, .is_entry = entry};
    assert_int_equal(name_document(&collection, ng_str_of(space), id, &made), NG_OK);
    assert_true(str_equal(bytes_str(&made), ng_str_of(name)));
    bytes_done(&made);
}

static void test_names(void **state)
{
    (void)state;
    struct bytes made = {0};
    struct db_collection collection = {.name = NULL};
    expect_name(true, "shared", ng_str_of("aB3dE6gH9jK2"), "aB3dE6gH9jK2");
    expect_name(true, "team", ng_str_of("aB3dE6gH9jK2"), "team/aB3dE6gH9jK2");
    expect_name(true, "shared", ng_str_of("team/x"), "shared/team/x");
    expect_name(false, "shared", ng_str_of("x"), "shared/x");
    expect_name(false, "a/b", ng_str_of("c"), "a%2Fb/c");
    expect_name(false, "a", ng_str_of("b/c"), "a/b/c");
    expect_name(false, "a", ng_str_of("50%25"), "a/50%2525");
    expect_name(false, "a", str_of("b\0c\n", 4), "a/b%00c%0A");
    assert_int_equal(name_document(&collection, ng_str_of("a"), ng_str_of("\xFF"), &made),
                     NG_EINVAL);
    assert_int_equal(name_version("pages", ng_str_of("x"), 42, &made), NG_OK);
    assert_true(str_equal(bytes_str(&made), ng_str_of("pages/x#00000000000000000042")));
    bytes_done(&made);
}

static void test_words(void **state)
{
    (void)state;
    struct bytes folded = {0};
    struct ng_str word;
    enum script script = SCRIPT_SPACED;
    struct ng_str text = ng_str_of("\xC3\x84pfel-\xC3\x89t\xC3\xA9, B2B\xFF caf\x65\xCC\x81!");
    static const char *const words[] = {"apfel", "ete", "b2b", "cafe"};
    size_t at = 0;
    for (size_t i = 0; i < NG_COUNT(words); i++) {
        assert_true(word_run(text, false, &at, &word, &script));
        assert_int_equal(word_fold(word, script, &folded), NG_OK);
        assert_true(str_equal(bytes_str(&folded), ng_str_of(words[i])));
    }
    assert_false(word_run(text, false, &at, &word, &script));
    bytes_done(&folded);
}

static void test_splices(void **state)
{
    (void)state;
    struct bytes bytes = {0};
    static const char *const steps[] = {"", "abc", "abXc", "abXc", "c", "", "xx"};
    for (size_t i = 1; i < NG_COUNT(steps); i++) {
        struct ng_splice splice = splice_between(ng_str_of(steps[i - 1]), ng_str_of(steps[i]));
        assert_int_equal(bytes_splice(&bytes, splice.at, splice.removed, splice.inserted),
                         NG_OK);
        assert_true(str_equal(bytes_str(&bytes), ng_str_of(steps[i])));
    }
    assert_int_equal(bytes_splice(&bytes, 3, 0, ng_str_of("")), NG_EUNAVAILABLE);
    assert_int_equal(bytes_splice(&bytes, 1, 2, ng_str_of("")), NG_EUNAVAILABLE);
    bytes_done(&bytes);
}

static unsigned allocated;

static void *counted(size_t bytes)
{
    allocated++;
    return malloc(bytes);
}

/* The parser does not check its allocator, so it has one that ends the process without memory.
 */
static void test_memory_of_the_parser(void **state)
{
    static const bson_mem_vtable_t counting = {
        .malloc = counted, .calloc = calloc, .realloc = realloc, .free = free};
    bson_t bson = BSON_INITIALIZER;
    bool whole = false;
    (void)state;
    bson_mem_set_vtable(&counting);
    assert_int_equal(json_members(ng_str_of("{}"), &bson, &whole), NG_OK);
    bson_mem_restore_vtable();
    assert_true(allocated > 0);
    bson_destroy(&bson);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_text),    cmocka_unit_test(test_memory_of_the_parser),
        cmocka_unit_test(test_kept_as_text), cmocka_unit_test(test_what_can_be_held_is),
        cmocka_unit_test(test_long_numbers), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_dates),        cmocka_unit_test(test_names),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_splices),
    };
    return cmocka_run_group_tests_name("mongo without a server", tests, NULL, NULL);
}
