/* SPDX-License-Identifier: MIT */
/* test_history_documents.c - history_read without an id: the documents that were there at a
 * point, in pages. The test moves the clock. */
#include "test_history_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_clock.h"

#define MANY 450

/* "id@revision:bytes id@revision:bytes ...", of all pages; how many pages. */
static int read_all(const char *more, char *out, size_t size)
{
    char cursor[4096] = "";
    size_t len = 0;
    int pages = 0;
    out[0] = '\0';
    for (bool on = true; on; pages++) {
        struct answer answer = go("history_read", args("{'space':'shared'%s%s}", more, cursor));
        for (int i = 0; strcmp(at(answer.text, args("documents.%d", i)), "none") != 0; i++) {
            const char *id = at(answer.text, args("documents.%d.id", i));
            len += (size_t)snprintf(out + len, size - len, "%s%s@%s:%s", len > 0 ? " " : "", id,
                                    at(answer.text, args("documents.%d.revision", i)),
                                    at(answer.text, args("documents.%d.bytes", i)));
            assert_true(len < size);
        }
        on = strcmp(at(answer.text, "has_more"), "true") == 0;
        assert_true(on == (strcmp(at(answer.text, "cursor"), "none") != 0));
        if (on) {
            /* As JSON. */
            const char *json =
                strrchr(answer.text, '{') == NULL ? "" : strstr(answer.text, ",\"cursor\":");
            (void)snprintf(cursor, sizeof(cursor), "%.*s",
                           (int)(strstr(json, ",\"space\":") - json), json);
        }
        answer_free(&answer);
    }
    return pages;
}

static void expect_documents(const char *more, const char *documents)
{
    char found[4096];
    assert_int_equal(read_all(more, found, sizeof(found)), 1);
    assert_string_equal(found, documents);
}

static const char *after(const char *id, uint64_t revision)
{
    const struct put document = {.id = id};
    return args(",'at':'#%llu'", (unsigned long long)seq_of(&document, revision));
}

static void test_at_points(void **state)
{
    const struct put first = {.id = "b"};
    (void)state;
    expect("history_read", "{\"space\":\"shared\"}",
           "{\"documents\":[],\"has_more\":false,\"space\":\"shared\"}");
    put(&(struct put){.id = "b", .text = "one"});
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put(&(struct put){.id = "a", .text = "\xc3\xbc"});
    put(&(struct put){.id = "b", .text = "three"});
    put(&(struct put){.id = "a", .space = "team"});
    put(&(struct put){.id = "a", .collection = "pages"});
    put(&(struct put){.id = "c"});
    put(&(struct put){.id = "a", .deletes = true});
    expect("history_read", "{\"space\":\"shared\"}",
           "{\"documents\":[{\"collection\":\"notebooks\",\"id\":\"b\",\"revision\":2,"
           "\"bytes\":5},{\"collection\":\"notebooks\",\"id\":\"c\",\"revision\":1,"
           "\"bytes\":0}],\"has_more\":false,\"space\":\"shared\"}");
    expect_documents(",'at':'now'", "b@2:5 c@1:0");
    expect_documents(",'at':'#0'", "");
    expect_documents(",'at':'30min'", "b@1:3");
    expect_documents(args(",'at':'%s'", time_of(&first, 1)), "b@1:3");
    expect_documents(after("b", 1), "b@1:3");
    expect_documents(after("a", 1), "a@1:2 b@1:3");
    expect_documents(after("c", 1), "a@1:2 b@2:5 c@1:0");
    expect_documents(after("a", 2), "b@2:5 c@1:0");
    expect_documents(",'cursor':'b'", "c@1:0");
    expect_documents(",'cursor':'c'", "");
    expect_documents(",'cursor':''", "b@2:5 c@1:0");
    expect_documents(",'collection':'pages'", "a@1:0");
    expect_documents(",'collection':'code_snippets'", "");
    test_clock_reset();
}

static void test_thinned(void **state)
{
    char found[256];
    (void)state;
    test_clock_begin_day();
    for (int i = 0; i < 4; i++) {
        put_text("line");
    }
    const char *third = after("n", 3);
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    put_text("last");
    thin();
    assert_int_equal(read_all(third, found, sizeof(found)), 1);
    assert_string_equal(found, "n@3:none"); /* it was there, with a size that is not known */
    test_clock_reset();
}

static void test_refusals(void **state)
{
    (void)state;
    put_text("one");
    static const char *const points[] = {"1", "x", "7x"};
    for (size_t i = 0; i < NG_COUNT(points); i++) {
        expect_failure("history_read", args("{'space':'shared','at':'%s'}", points[i]),
                       "INVALID_INPUT", 400,
                       args("`at` is \"%s\", it must be #SEQ (the number of a change), a time "
                            "such as 2026-01-28T14:30:00Z, a day such as 2026-01-28, an age "
                            "such as 30m, 2h or 7d, or now",
                            points[i]),
                       NULL);
    }
    expect_failure("history_read", "{\"collection\":\"things\"}", "NOT_FOUND", 404,
                   "`collection`: none that keeps revisions is called \"things\"", NULL);
}

/* Other spaces are not listed to a key without them. */
static void test_spaces(void **state)
{
    static const struct ng_str team[] = {{"team", 4}};
    struct key keys[2];
    (void)state;
    put(&(struct put){.id = "a", .space = "team"});
    put(&(struct put){.id = "b"});
    struct answer answer =
        harness_run(call_with_key(&keys[0], NG_ROLE_READER, team, 1), "history_read", "{}");
    assert_string_equal(at(answer.text, "documents.0.id"), "a");
    assert_string_equal(at(answer.text, "documents.1"), "none");
    answer_free(&answer);
    answer = harness_run(call_with_key(&keys[1], NG_ROLE_READER, team, 1), "history_read",
                         "{\"space\":\"shared\"}");
    assert_string_equal(answer.code, "FORBIDDEN");
    answer_free(&answer);
}

/* ---- pages ---- */

static void put_many(const char *beginning, int count)
{
    for (int i = 0; i < count; i++) {
        char id[2048];
        (void)snprintf(id, sizeof(id), "%s%04d", beginning, i);
        put(&(struct put){.id = id, .text = "text"});
        if (i % 3 == 0) {
            put(&(struct put){.id = id, .deletes = true});
        }
    }
}

/* All of the present documents once, in their order. */
static void expect_many(const char *beginning, int count, int least_pages)
{
    static char found[1 << 20];
    static char want[1 << 20];
    size_t len = 0;
    want[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (i % 3 != 0) {
            len += (size_t)snprintf(want + len, sizeof(want) - len, "%s%s%04d@1:4",
                                    len > 0 ? " " : "", beginning, i);
            assert_true(len < sizeof(want));
        }
    }
    assert_true(read_all("", found, sizeof(found)) >= least_pages);
    assert_string_equal(found, want);
}

static void test_pages(void **state)
{
    (void)state;
    put_many("note ", MANY);
    expect_many("note ", MANY, MANY / 200);
    char found[64];
    assert_true(read_all(",'at':'#0'", found, sizeof(found)) > 1); /* empty pages */
    assert_string_equal(found, "");
}

static void test_pages_of_small_answers(void **state)
{
    (void)state;
    put_many("note ", 100);
    expect_many("note ", 100, 2);
}

/* Ids that JSON makes longer; the cursor is one, too. */
static void test_pages_of_long_ids(void **state)
{
    char beginning[256];
    (void)state;
    memset(beginning, '\x01', 200);
    beginning[200] = '\0';
    put_many(beginning, 20);
    expect_many(beginning, 20, 5);
}

/* An id that alone is too long for an answer ends the list, and says so. */
static void test_an_id_that_is_too_long(void **state)
{
    char id[3000];
    (void)state;
    memset(id, 'x', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    put(&(struct put){.id = "a"});
    put(&(struct put){.id = id});
    put(&(struct put){.id = "y"});
    expect_failure("history_read", "{\"space\":\"shared\",\"cursor\":\"a\"}", "TOO_LARGE", 413,
                   args("an id that begins with '%.200s' alone is longer than an answer "
                        "(tools.max_answer); go on with a `cursor` behind it",
                        id),
                   NULL);
    expect_documents(",'cursor':'xy'", "y@1:0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_at_points),
        WITH_SQLITE(test_thinned),
        WITH(test_refusals),
        WITH(test_spaces),
        WITH(test_pages),
        WITH_SMALL(test_pages_of_small_answers),
        WITH_SMALL(test_pages_of_long_ids),
        WITH_SMALL(test_an_id_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
