/* SPDX-License-Identifier: MIT */
/* test_merge_content.c - merges of contents of text documents, and conflicts as JSON. */
#include "core/base/merge/merge_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/merge/merge3.h"
#include "core/base/str.h"
#include "test_merge_rig.h"

#define JSON_MAX ((size_t)1 << 18)

/* The result, or the conflict as JSON. */
static void merge_gives(struct ng_str base, struct ng_str present, struct ng_str before,
                        struct ng_str want)
{
    struct merge_result result = {.text = {.len = 0}};
    struct ng_writer writer;
    struct buf json;
    buf_init(&json, JSON_MAX);
    json_writer_init(&writer, &json);
    assert_int_equal(merge_text(base, present, before, &result), NG_OK);
    struct ng_str got = buf_str(&result.text);
    if (result.conflict.reason != MERGE_CLEAN) {
        merge_conflict_json(&writer, &result.conflict);
        assert_int_equal(json.rc, NG_OK);
        got = buf_str(&json);
    }
    assert_int_equal(got.len, want.len);
    if (want.len > 0) {
        assert_memory_equal(got.data, want.data, want.len);
    }
    buf_done(&json);
    merge_result_done(&result);
}

static void test_texts(void **state)
{
    static const struct {
        const char *base, *present, *before, *want;
    } rows[] = {
        {"a\nb\nc\n", "a\nb\nc\nd\n", "A\nb\nc\n", "A\nb\nc\nd\n"},
        {"a\n", "a\nb\n", "a\n", "a\nb\n"},
        {"", "", "x", "x"},
        {"a\n", "a\n", "", ""},
        {"a\nb\n", "a\nx\n", "a\ny\xc3\xa9\n",
         "{\"reason\":\"overlap\",\"at\":[{\"line\":2,\"present\":\"x\",\"before\":"
         "\"y\xc3\xa9\"}]}"},
        {"a\n1\nb\n2\n", "A\n1\nb\n\n", "B\n1\nb\nx\n",
         "{\"reason\":\"overlap\",\"at\":[{\"line\":1,\"present\":\"A\",\"before\":\"B\"},"
         "{\"line\":4,\"present\":\"\",\"before\":\"x\"}]}"},
        /* not UTF-8: as a whole */
        {"a\n\xff\n", "a\n\xff\nb\n", "A\n\xff\n", "{\"reason\":\"not_text\"}"},
        {"a\n", "a\nb\n", "\xc3", "{\"reason\":\"not_text\"}"},
        {"\xff", "\xff", "\xfe", "\xfe"},
        {"\xff", "\xfe", "\xff", "\xfe"},
        {"\xff", "\xfe", "\xfe", "\xfe"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        merge_gives(ng_str_of(rows[i].base), ng_str_of(rows[i].present),
                    ng_str_of(rows[i].before), ng_str_of(rows[i].want));
    }
    struct ng_str nul = {"a\0", 2};
    merge_gives(nul, ng_str_of("b"), ng_str_of("c"), ng_str_of("{\"reason\":\"not_text\"}"));
    merge_gives(ng_str_of("b"), ng_str_of("b"), nul, nul);
}

static void test_too_large(void **state)
{
    char *large = malloc(MERGE3_TEXT_MAX + 1);
    (void)state;
    assert_non_null(large);
    memset(large, 'x', MERGE3_TEXT_MAX + 1);
    struct ng_str text = {large, MERGE3_TEXT_MAX + 1};
    merge_gives(text, ng_str_of("a"), ng_str_of("b"), ng_str_of("{\"reason\":\"too_large\"}"));
    merge_gives(text, text, ng_str_of("b"), ng_str_of("b"));
    merge_gives(ng_str_of("b"), ng_str_of("b"), text, text);
    free(large);
}

/* Sides are cut between characters; places over the limit are counted. */
static void test_limits(void **state)
{
    struct merge_conflict conflict = {.count = 0};
    char side[MERGE_SIDE_MAX + 2];
    (void)state;
    memset(side, 'x', sizeof(side));
    memcpy(side + MERGE_SIDE_MAX - 1, "\xc3\xa9", 2);
    for (unsigned i = 0; i < 2 * MERGE_PLACES_MAX; i++) {
        merge_conflict_add(&conflict, MERGE_CELL, i, str_make(side, sizeof(side)),
                           str_make(side, MERGE_SIDE_MAX + 1));
    }
    merge_conflict_set(&conflict, MERGE_OVERLAP);
    assert_string_equal(merge_reason_name(conflict.reason), "cell");
    assert_int_equal(conflict.count, 2 * MERGE_PLACES_MAX);
    assert_int_equal(conflict.place_count, MERGE_PLACES_MAX);
    assert_int_equal(conflict.sides.rc, NG_OK);
    for (size_t i = 0; i < MERGE_PLACES_MAX; i++) {
        assert_int_equal(conflict.places[i].present_len, MERGE_SIDE_MAX - 1);
        assert_int_equal(conflict.places[i].before_len, MERGE_SIDE_MAX - 1);
    }
    merge_conflict_done(&conflict);
}

/* Two kinds of conflicts of one document: the second one has its share of the places. */
static void test_join(void **state)
{
    static const unsigned counts[][3] = {{0, 2, 2},   {1, 0, 1},    {3, 4, 7},
                                         {32, 4, 32}, {32, 20, 32}, {20, 32, 32}};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(counts); i++) {
        struct merge_conflict text = {.count = 0};
        struct merge_conflict members = {.count = 0};
        unsigned own = counts[i][1] < MERGE_PLACES_JOINED ? counts[i][1] : MERGE_PLACES_JOINED;
        for (unsigned at = 0; at < counts[i][0]; at++) {
            merge_conflict_add(&text, MERGE_OVERLAP, at + 1, ng_str_of("one"), ng_str_of(""));
        }
        for (unsigned at = 0; at < counts[i][1]; at++) {
            merge_conflict_add(&members, MERGE_MEMBER, 0, ng_str_of("a: 1"),
                               ng_str_of("a: 22"));
        }
        merge_conflict_join(&text, &members);
        assert_int_equal(text.reason, counts[i][0] > 0 ? MERGE_OVERLAP : MERGE_MEMBER);
        assert_int_equal(text.count, counts[i][0] + counts[i][1]);
        assert_int_equal(text.place_count, counts[i][2]);
        assert_int_equal(text.sides.rc, NG_OK);
        for (size_t at = 0; at < text.place_count; at++) {
            const struct merge_place *place = &text.places[at];
            const char *side = text.sides.data + place->at;
            if (place->line > 0) {
                assert_memory_equal(side, "one", 3);
                assert_int_equal(place->present_len + place->before_len, 3);
            } else {
                assert_memory_equal(side, "a: 1a: 22", 9);
            }
        }
        for (size_t at = text.place_count - own; at < text.place_count; at++) {
            assert_int_equal(text.places[at].line, 0);
        }
        merge_conflict_done(&text);
        merge_conflict_done(&members);
    }
}

static void test_names(void **state)
{
    static const char *const names[] = {"",         "overlap",   "member",       "cell",
                                        "not_text", "too_large", "invalid_merge"};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        assert_string_equal(merge_reason_name((enum merge_reason)i), names[i]);
    }
}

static void test_without_memory(void **state)
{
    static const char *const texts[][3] = {{"a\nb\nc\n", "a\nb\nc\nd\n", "A\nb\nc\n"},
                                           {"a\n", "b\n", "c\n"},
                                           {"a\n", "a\n", "c\n"}};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        int rc = NG_EINTERNAL;
        for (long n = 0; rc != NG_OK; n++) {
            struct merge_result result = {.text = {.len = 0}};
            assert_true(n < 200);
            alloc_fail_after(n);
            rc = merge_text(ng_str_of(texts[i][0]), ng_str_of(texts[i][1]),
                            ng_str_of(texts[i][2]), &result);
            alloc_fail_after(-1);
            assert_true(rc == NG_OK || rc == NG_EINTERNAL);
            assert_true(rc != NG_OK || n > 0);
            merge_result_done(&result);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),  cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_join),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
