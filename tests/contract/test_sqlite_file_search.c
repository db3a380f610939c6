/* SPDX-License-Identifier: MIT */
/* test_sqlite_file_search.c - searches that find more than they look at. */
#include "test_sqlite_file_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

/* SEARCH_HITS_MAX of backends/sqlite/search.c */
#define LOOKED_AT 5000
#define BATCH 50

/* Documents of these texts, in this order, until there are `count`. */
static void fill(struct fixture *f, const char *prefix, const char *text, size_t count)
{
    struct change changes[BATCH];
    char ids[BATCH][24];
    for (size_t at = 0; at < count; at += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            (void)snprintf(ids[i], sizeof(ids[i]), "%s%06zu", prefix, at + i);
            changes[i] = (struct change){.id = ng_str_of(ids[i]), .text = ng_str_of(text)};
        }
        assert_int_equal(fixture_commit(f, changes, BATCH, NULL, NULL, NULL), NG_OK);
    }
}

struct found {
    struct rows rows;
    uint64_t total;
    bool at_least;
};

static struct found find(struct fixture *f, const char *text, uint64_t offset, uint32_t limit)
{
    struct found found = {.at_least = false};
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .offset = offset,
                             .limit = limit,
                             .want_total = true};
    struct ng_search search = {.size = sizeof(search),
                               .query = &query,
                               .text = ng_str_of(text),
                               .at_least = &found.at_least};
    assert_int_equal(
        f->docs->search(f->db, fixture_call(f), &search, rows_add, &found.rows, &found.total),
        NG_OK);
    return found;
}

static void expect(struct fixture *f, const char *text, uint64_t total, bool at_least,
                   const char *first)
{
    struct found found = find(f, text, 0, 1);
    assert_int_equal(found.total, total);
    assert_int_equal(found.at_least, at_least);
    assert_int_equal(found.rows.count, 1);
    assert_string_equal(found.rows.items[0].id, first);
    rows_done(&found.rows);
}

/* Up to the limit, a search counts and ranks all matches. Beyond it, a search ranks the newest
 * matches. */
static void test_more_than_it_looks_at(void **state)
{
    struct fixture *f = *state;
    start(f);
    fill(f, "old", "common", LOOKED_AT);
    expect(f, "common", LOOKED_AT, false, "old000000");
    fill(f, "new", "common", BATCH);
    expect(f, "common", LOOKED_AT, true, "old000050");
    /* Beyond them there is nothing, and no failure. */
    struct found found = find(f, "common", LOOKED_AT - 10, 100);
    assert_int_equal(found.rows.count, 10);
    rows_done(&found.rows);
    expect_clean(f);
}

/* A rare word beside a common one is found, however old it is, and so is what has all words. */
static void test_rare_beside_common(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(fixture_put(f, "rare", 0, "", "zanzibar"), NG_OK);
    assert_int_equal(fixture_put(f, "both", 0, "", "common zanzibar"), NG_OK);
    assert_int_equal(fixture_put(f, "all", 0, "", "common frequent"), NG_OK);
    fill(f, "a", "common", LOOKED_AT + BATCH);
    fill(f, "b", "frequent", LOOKED_AT + BATCH);
    expect(f, "zanzibar common", LOOKED_AT, true, "both");
    expect(f, "common zanzibar", LOOKED_AT, true, "both");
    expect(f, "frequent common", LOOKED_AT, true, "all");
    expect(f, "zanzibar", 2, false, "rare");
    struct found found = find(f, "zanzibar common", 0, 2);
    assert_int_equal(found.rows.count, 2);
    assert_string_equal(found.rows.items[1].id, "rare"); /* one exact word, but a rarer one */
    rows_done(&found.rows);
    expect_clean(f);
}

/* The same documents in another space do not count, nor deleted ones. */
static void test_only_of_its_space(void **state)
{
    struct fixture *f = *state;
    start(f);
    struct change other = {
        .space = "other", .id = ng_str_of("x"), .text = ng_str_of("common words")};
    assert_int_equal(fixture_commit(f, &other, 1, NULL, NULL, NULL), NG_OK);
    assert_int_equal(fixture_put(f, "a", 0, "", "common"), NG_OK);
    assert_int_equal(fixture_put(f, "b", 0, "", "common"), NG_OK);
    expect(f, "common", 2, false, "a");
    struct change gone = {
        .id = ng_str_of("a"), .base = 1, .deleted = true, .before_text = ng_str_of("common")};
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    expect(f, "common", 1, false, "b");
    expect_clean(f);
}

/* The rank of a document does not depend on the pass that found it: the rarer word wins. */
static void test_passes_agree(void **state)
{
    struct fixture *f = *state;
    start(f);
    fill(f, "a", "common", LOOKED_AT / 2);
    fill(f, "rare", "rare common", 2 * BATCH);
    fill(f, "b", "common", 2 * LOOKED_AT);
    fill(f, "mid", "mid common", BATCH);
    expect(f, "rare mid", 3 * BATCH, false, "mid000000");
    expect(f, "common rare mid", LOOKED_AT, true, "mid000000");
    expect_clean(f);
}

/* A hit by the word itself comes before an earlier one by its stem; one far behind the
 * beginning has no excerpt. */
static void test_excerpts(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {0};
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = 10};
    struct ng_search search = {
        .size = sizeof(search), .query = &query, .text = ng_str_of("run"), .snippet_chars = 12};
    size_t len = (size_t)300 * 1024;
    char *far = malloc(len + 8);
    assert_non_null(far);
    memset(far, ' ', len);
    memcpy(far + len, "run far", 8);
    start(f);
    assert_int_equal(
        fixture_put(f, "near", 0, "", "running early on, and a run here at the end of it"),
        NG_OK);
    assert_int_equal(fixture_put(f, "far", 0, "", far), NG_OK);
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL),
                     NG_OK);
    assert_int_equal(rows.count, 2);
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(rows.items[i].id, "near") == 0) {
            assert_non_null(strstr(rows.items[i].snippet, "run "));
        } else {
            assert_null(strstr(rows.items[i].snippet, "run"));
        }
    }
    rows_done(&rows);
    free(far);
    expect_clean(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_more_than_it_looks_at),
        TEST(test_rare_beside_common),
        TEST(test_only_of_its_space),
        TEST(test_passes_agree),
        TEST(test_excerpts),
    };
    return cmocka_run_group_tests_name("sqlite: searches", tests, NULL, NULL);
}
