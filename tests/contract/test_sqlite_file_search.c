/* SPDX-License-Identifier: MIT */
/* test_sqlite_file_search.c - searches that find more than they look at. */
#include "test_sqlite_file_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/str.h"

/* SEARCH_HITS_MAX of backends/sqlite/store/search.c */
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

struct excerpt_case {
    const char *query, *title, *lead, *filler;
    size_t fillers; /* between lead and tail */
    const char *tail, *expected;
};

/* The text before a field, the word itself before an earlier one by its stem, and wherever that
 * is: a text has marks for places far behind its beginning, also in scripts without spaces and
 * between words that are far from each other. */
static const struct excerpt_case excerpt_cases[] = {
    {"run", "", "running early on, and a run here at the end of it", "", 0, "", "run here"},
    {"run", "", "", " ", 300 * 1024, "run far", "run far"},
    {"run", "", "", "filler ", 60000, "run far", "run far"},
    {"run", "", "running ", "filler ", 60000, "run far", "run far"},
    {"run", "", "run first ", "filler ", 60000, "run far", "run first"},
    {"running", "", "", "filler ", 2000, "runs far", "runs far"},
    {"\"run far\"", "", "", "run fast ", 2000, "run far away", "far away"},
    {"Stra\xC3\x9F"
     "e",
     "", "", "\xC3\xA4\xC3\xB6\xC3\xBC ", 3000, "die STRASSE da", "STRASSE"},
    {"zz*", "", "", "\xE2\x82\xAC ab\xCC\x81 ", 3000, "zzz yy", "zzz yy"},
    {"\xE6\x9C\xBA", "", "", "\xE4\xBC\x9A\xE8\xAE\xAE ", 3000, "\xE6\x97\xA0\xE6\x9C\xBA.",
     "\xE6\x9C\xBA."},
    {"\xE6\x9C\xBA", "", "", "\xE4\xBC\x9A\xE8\xAE\xAE", 3000, " \xE6\x9C\xBA.",
     "\xE6\x9C\xBA."},
    {"run", "", "", "-=#=-", 5000, "run far", "run far"},
    {"run", "run in the title", "nothing", "", 0, "", "run in the"},
    {"run", "run in the title", "runs in text", "", 0, "", "runs in text"},
};

static void put_case(struct fixture *f, const struct excerpt_case *at, const char *id)
{
    struct buf text;
    buf_init(&text, SIZE_MAX);
    buf_add_str(&text, ng_str_of(at->lead));
    for (size_t i = 0; i < at->fillers; i++) {
        buf_add_str(&text, ng_str_of(at->filler));
    }
    buf_add_str(&text, ng_str_of(at->tail));
    buf_add(&text, "", 1);
    struct change change = {
        .id = ng_str_of(id), .title = at->title, .text = ng_str_of(text.data)};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    buf_done(&text);
}

static void test_excerpts(void **state)
{
    struct fixture *f = *state;
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = NG_COUNT(excerpt_cases)};
    struct ng_search search = {.size = sizeof(search), .query = &query, .snippet_chars = 16};
    start(f);
    for (size_t i = 0; i < NG_COUNT(excerpt_cases); i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%zu", i);
        put_case(f, &excerpt_cases[i], id);
    }
    for (size_t i = 0; i < NG_COUNT(excerpt_cases); i++) {
        struct rows rows = {0};
        char id[16];
        (void)snprintf(id, sizeof(id), "%zu", i);
        search.text = ng_str_of(excerpt_cases[i].query);
        assert_int_equal(
            f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL), NG_OK);
        size_t at = 0;
        while (at < rows.count && strcmp(rows.items[at].id, id) != 0) {
            at++;
        }
        const char *excerpt = NULL;
        if (at < rows.count) {
            excerpt = rows.items[at].snippet;
        }
        if (excerpt == NULL || strstr(excerpt, excerpt_cases[i].expected) == NULL) {
            fail_msg("case %zu: %s", i, excerpt != NULL ? excerpt : "no excerpt");
        }
        rows_done(&rows);
    }
    expect_clean(f);
}

/* A changed document keeps no place of its earlier text. */
static void test_excerpts_follow(void **state)
{
    struct fixture *f = *state;
    struct excerpt_case was = {"run", "", "", "filler ", 3000, "run before", ""};
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = 10};
    struct ng_search search = {
        .size = sizeof(search), .query = &query, .text = ng_str_of("run"), .snippet_chars = 16};
    struct rows rows = {0};
    start(f);
    put_case(f, &was, "a");
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL),
                     NG_OK);
    assert_non_null(strstr(rows.items[0].snippet, "run before"));
    rows_done(&rows);
    assert_int_equal(fixture_put(f, "a", 1, "", "short, a run after"), NG_OK);
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL),
                     NG_OK);
    assert_non_null(strstr(rows.items[0].snippet, "run after"));
    rows_done(&rows);
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
        TEST(test_excerpts_follow),
    };
    return cmocka_run_group_tests_name("sqlite: searches", tests, NULL, NULL);
}
