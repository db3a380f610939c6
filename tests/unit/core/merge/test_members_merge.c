/* SPDX-License-Identifier: MIT */
/* test_members_merge.c - three-way merge of the members of a document. */
#include "core/merge/members_merge.h"

#include "harness.h"

#define JSON_MAX ((size_t)1 << 16)

static const struct ng_value *parse(struct arena *arena, const char *text)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    if (text != NULL) {
        assert_int_equal(json_parse(arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &value, &error),
                         NG_OK);
    }
    return value;
}

/* base, present, before: NULL is no object. */
static int merge(struct arena *arena, const char *const texts[3], struct merge_result *ret)
{
    const struct ng_str names[] = {{"title", 5}, {"tags", 4}, {"own", 3}, {"tags", 4}};
    struct members_sides sides = {
        .base = parse(arena, texts[0]),
        .present = parse(arena, texts[1]),
        .before = parse(arena, texts[2]),
    };
    *ret = (struct merge_result){.text = {.len = 0}};
    return members_merge(&sides, names, NG_COUNT(names), ret);
}

static void test_members(void **state)
{
    static const struct {
        const char *texts[3];
        const char *want;
    } rows[] = {
        {{"{\"title\":\"a\"}", "{\"title\":\"a\",\"other\":1}", "{\"title\":\"b\"}"},
         "{\"title\":\"b\",\"other\":1}"},
        {{"{\"title\":\"a\"}", "{\"title\":\"b\"}", "{\"title\":\"a\"}"}, "{\"title\":\"b\"}"},
        {{"{\"title\":\"a\",\"tags\":[1]}", "{\"tags\":[1],\"title\":\"b\"}",
          "{\"title\":\"a\",\"tags\":[2]}"},
         "{\"tags\":[2],\"title\":\"b\"}"},
        /* added and removed */
        {{"{\"title\":\"a\"}", "{\"x\":1,\"title\":\"a\"}", "{}"}, "{\"x\":1}"},
        {{"{}", "{\"x\":1}", "{\"title\":\"a\",\"tags\":[]}"},
         "{\"x\":1,\"title\":\"a\",\"tags\":[]}"},
        {{"{\"own\":1}", "{}", "{\"own\":1.0}"}, "{}"},
        {{NULL, NULL, "{\"own\":null}"}, "{\"own\":null}"},
        {{"{}", "{\"own\":1}", NULL}, "{\"own\":1}"},
        /* members that are not listed are present's */
        {{"{\"x\":1}", "{\"x\":2}", "{\"x\":3,\"y\":4}"}, "{\"x\":2}"},
        /* compared as JSON */
        {{"{\"own\":{\"a\":1,\"b\":[1e2]}}", "{\"own\":{\"b\":[100],\"a\":1.0}}",
          "{\"own\":2}"},
         "{\"own\":2}"},
        {{"{\"own\":1}", "{\"own\":{\"a\":1,\"b\":2}}", "{\"own\":{\"b\":2,\"a\":1}}"},
         "{\"own\":{\"a\":1,\"b\":2}}"},
        /* conflicts */
        {{"{\"title\":\"a\"}", "{\"title\":\"b\"}", "{\"title\":\"c\"}"},
         "{\"reason\":\"member\",\"at\":[{\"present\":\"title: \\\"b\\\"\",\"before\":\"title: "
         "\\\"c\\\"\"}]}"},
        {{"{\"tags\":[1],\"own\":1}", "{\"own\":{\"a\":[]}}", "{\"tags\":[2]}"},
         "{\"reason\":\"member\",\"at\":[{\"present\":\"\",\"before\":\"tags: [2]\"},"
         "{\"present\":\"own: {\\\"a\\\":[]}\",\"before\":\"\"}]}"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        struct merge_result result;
        struct ng_writer writer;
        struct arena arena;
        struct buf json;
        arena_init(&arena, 0);
        buf_init(&json, JSON_MAX);
        assert_int_equal(merge(&arena, rows[i].texts, &result), NG_OK);
        if (result.conflict.reason == MERGE_CLEAN) {
            (void)buf_add_str(&json, buf_str(&result.text));
        } else {
            json_writer_init(&writer, &json);
            merge_conflict_json(&writer, &result.conflict);
        }
        assert_string_equal(buf_cstr(&json), rows[i].want);
        buf_done(&json);
        arena_done(&arena);
        merge_result_done(&result);
    }
}

static void test_without_memory(void **state)
{
    static const char *const texts[3] = {"{\"tags\":[1],\"own\":1,\"title\":1}",
                                         "{\"tags\":[1],\"own\":2,\"title\":1}",
                                         "{\"tags\":[2],\"own\":3}"};
    struct members_sides sides;
    struct arena arena;
    const struct ng_str names[] = {{"tags", 4}, {"own", 3}, {"title", 5}};
    int rc = NG_EINTERNAL;
    (void)state;
    arena_init(&arena, 0);
    sides = (struct members_sides){parse(&arena, texts[0]), parse(&arena, texts[1]),
                                   parse(&arena, texts[2])};
    for (long n = 0; rc != NG_OK; n++) {
        struct merge_result result = {.text = {.len = 0}};
        assert_true(n < 100);
        alloc_fail_after(n);
        rc = members_merge(&sides, names, NG_COUNT(names), &result);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
        assert_true(rc != NG_OK || n > 2);
        merge_result_done(&result);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
