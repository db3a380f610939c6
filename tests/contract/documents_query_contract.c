/* SPDX-License-Identifier: MIT */
/* documents_query_contract.c - the suite of documents backends: queries and searches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "documents_parts.h"

/* Ten documents: n = 0..9 but none in t3; s = "s<n>" but none in t4; tag even/odd and, in t5,
 * both; space "other" has one more; t9 is deleted afterwards. */
static void fill(struct fixture *f)
{
    static const char *const names[] = {"t0", "t1", "t2", "t3", "t4",
                                        "t5", "t6", "t7", "t8", "t9"};
    for (int i = 0; i < 10; i++) {
        char s[8];
        (void)snprintf(s, sizeof(s), "s%d", i);
        struct change change = {
            .id = ng_str_of(names[i]),
            .text = ng_str_of("words of it"),
            .tags = {i % 2 == 0 ? "even" : "odd", i == 5 ? "even" : NULL},
            .has_n = i != 3,
            .n = (9 - i) * 1.5,
            .s = i != 4 ? s : NULL,
            .agent = i < 5 ? "ann" : "bob",
            .time_ms = 1000000 + i,
        };
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    struct change other = {.space = "other",
                           .id = ng_str_of("o"),
                           .tags = {"even"},
                           .n = 100,
                           .has_n = true,
                           .time_ms = 2000000};
    assert_int_equal(fixture_commit(f, &other, 1, NULL, NULL, NULL), NG_OK);
    struct change gone = {.id = ng_str_of("t9"), .base = 1, .deleted = true};
    gone.before_text = ng_str_of("words of it");
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
}

/* Asserts the ids, in order, separated by spaces, and the total. */
static void expect_ids(struct fixture *f, struct ng_query query, const char *ids,
                       uint64_t total)
{
    struct rows rows = {0};
    uint64_t got = 12345;
    char list[512] = "";
    size_t at = 0;
    query.want_total = true;
    if (f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, &got) != NG_OK) {
        fail_msg("query failed: %s", fixture_error(f));
    }
    for (size_t i = 0; i < rows.count; i++) {
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i > 0 ? " " : "",
                               rows.items[i].id);
    }
    rows_done(&rows);
    assert_string_equal(list, ids);
    assert_int_equal(got, total);
}

static struct ng_term term_text(const char *field, enum ng_op op, const char *value)
{
    struct ng_term term = {.field = ng_str_of(field), .op = op, .value = ng_str_of(value)};
    return term;
}

static struct ng_term term_number(const char *field, enum ng_op op, double number)
{
    struct ng_term term = {.field = ng_str_of(field), .op = op, .number = number};
    return term;
}

static void expect_term(struct fixture *f, struct ng_term term, const char *ids, uint64_t total)
{
    struct ng_query query = documents_query();
    query.terms = &term;
    query.term_count = 1;
    expect_ids(f, query, ids, total);
}

static void test_terms(void **state)
{
    struct fixture *f = *state;
    fill(f);
    expect_term(f, term_text("tag", NG_TERM_EQ, "even"), "t0 t2 t4 t5 t6 t8", 6);
    expect_term(f, term_text("tag", NG_TERM_NE, "even"), "t1 t3 t7", 3);
    expect_term(f, term_text("s", NG_TERM_EQ, "s7"), "t7", 1);
    expect_term(f, term_text("s", NG_TERM_NE, "s7"), "t0 t1 t2 t3 t4 t5 t6 t8", 8);
    expect_term(f, term_text("s", NG_TERM_LT, "s2"), "t0 t1", 2);
    expect_term(f, term_text("s", NG_TERM_GE, "s7"), "t7 t8", 2);
    expect_term(f, term_text("s", NG_TERM_PREFIX, "s"), "t0 t1 t2 t3 t5 t6 t7 t8", 8);
    expect_term(f, term_text("s", NG_TERM_PREFIX, "s8"), "t8", 1);
    expect_term(f, term_text("s", NG_TERM_PREFIX, ""), "t0 t1 t2 t3 t5 t6 t7 t8", 8);
    expect_term(f, term_number("n", NG_TERM_EQ, 13.5), "t0", 1);
    expect_term(f, term_number("n", NG_TERM_NE, 13.5), "t1 t2 t3 t4 t5 t6 t7 t8", 8);
    expect_term(f, term_number("n", NG_TERM_LE, 3), "t7 t8", 2);
    expect_term(f, term_number("n", NG_TERM_GT, 10.5), "t0 t1", 2);
    expect_term(f, term_text("id", NG_TERM_EQ, "t2"), "t2", 1);
    expect_term(f, term_text("id", NG_TERM_PREFIX, "t"), "t0 t1 t2 t3 t4 t5 t6 t7 t8", 9);
    expect_term(f, term_text("id", NG_TERM_GE, "t7"), "t7 t8", 2);
    expect_term(f, term_text("author", NG_TERM_EQ, "bob"), "t5 t6 t7 t8", 4);
    expect_term(f, term_number("updated", NG_TERM_GE, 1000007), "t7 t8", 2);
    expect_term(f, term_number("revision", NG_TERM_GT, 1), "", 0);
    const struct ng_str ids[] = {ng_str_of("t6"), ng_str_of("t1"), ng_str_of("t9")};
    struct ng_term of = {
        .field = ng_str_of("id"), .op = NG_TERM_IN, .values = ids, .value_count = 3};
    expect_term(f, of, "t1 t6", 2);
    of.value_count = 0;
    expect_term(f, of, "", 0);
    const struct ng_str values[] = {ng_str_of("odd"), ng_str_of("even"), ng_str_of("none")};
    struct ng_term in = {
        .field = ng_str_of("tag"), .op = NG_TERM_IN, .values = values, .value_count = 3};
    expect_term(f, in, "t0 t1 t2 t3 t4 t5 t6 t7 t8", 9);
    in.value_count = 1;
    expect_term(f, in, "t1 t3 t5 t7", 4);
    in.value_count = 0;
    expect_term(f, in, "", 0);
    struct ng_term many[] = {term_text("tag", NG_TERM_EQ, "even"),
                             term_number("n", NG_TERM_LT, 10),
                             term_text("author", NG_TERM_EQ, "bob")};
    struct ng_query query = documents_query();
    query.terms = many;
    query.term_count = 3;
    expect_ids(f, query, "t5 t6 t8", 3);
}

static void test_bad_terms(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {0};
    const struct ng_term bad[] = {
        term_text("nothing", NG_TERM_EQ, "x"),
        term_text("tag", NG_TERM_LT, "x"),
        term_text("title", NG_TERM_EQ, "x"),
        term_number("n", NG_TERM_PREFIX, 1),
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct ng_query query = documents_query();
        query.terms = &bad[i];
        query.term_count = 1;
        assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                         NG_EINVAL);
        assert_true(strlen(fixture_error(f)) > 0);
    }
    struct ng_query query = documents_query();
    query.sort = ng_str_of("tag");
    assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                     NG_EINVAL);
}

static void test_sorts(void **state)
{
    static const struct {
        const char *sort;
        bool descending;
        const char *ids;
    } cases[] = {
        {"", false, "t0 t1 t2 t3 t4 t5 t6 t7 t8"},
        {"created_seq", true, "t8 t7 t6 t5 t4 t3 t2 t1 t0"},
        {"n", false, "t3 t8 t7 t6 t5 t4 t2 t1 t0"},
        {"n", true, "t0 t1 t2 t4 t5 t6 t7 t8 t3"},
        {"s", false, "t4 t0 t1 t2 t3 t5 t6 t7 t8"},
        {"s", true, "t8 t7 t6 t5 t3 t2 t1 t0 t4"},
        {"id", true, "t8 t7 t6 t5 t4 t3 t2 t1 t0"},
        {"updated", true, "t8 t7 t6 t5 t4 t3 t2 t1 t0"},
        {"created", false, "t0 t1 t2 t3 t4 t5 t6 t7 t8"},
        {"seq", true, "t8 t7 t6 t5 t4 t3 t2 t1 t0"},
        {"author", false, "t0 t1 t2 t3 t4 t5 t6 t7 t8"},
        {"revision", false, "t0 t1 t2 t3 t4 t5 t6 t7 t8"},
    };
    struct fixture *f = *state;
    fill(f);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct ng_query query = documents_query();
        query.sort = ng_str_of(cases[i].sort);
        query.descending = cases[i].descending;
        expect_ids(f, query, cases[i].ids, 9);
        /* Conditions that everything meets change nothing. */
        struct ng_term all = term_text("id", NG_TERM_NE, "x");
        query.terms = &all;
        query.term_count = 1;
        expect_ids(f, query, cases[i].ids, 9);
    }
}

static void test_pages(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct ng_query query = documents_query();
    query.sort = ng_str_of("n");
    query.limit = 3;
    query.offset = 2;
    expect_ids(f, query, "t7 t6 t5", 9);
    query.offset = 8;
    expect_ids(f, query, "t0", 9);
    query.offset = UINT64_MAX;
    expect_ids(f, query, "", 9);
    query.offset = 0;
    query.limit = 0;
    expect_ids(f, query, "", 9);
    query.limit = 100;
    query.with_deleted = true;
    expect_ids(f, query, "t3 t9 t8 t7 t6 t5 t4 t2 t1 t0", 10);
    query.sort = ng_str_of("");
    expect_ids(f, query, "t0 t1 t2 t3 t4 t5 t6 t7 t8 t9", 10);
    /* Several spaces, merged in order; ones that do not exist; none. */
    const struct ng_str spaces[] = {ng_str_of("other"), ng_str_of("team"), ng_str_of("no"),
                                    ng_str_of("team")};
    query = documents_query();
    query.space = str_make(NULL, 0);
    query.spaces = spaces;
    query.space_count = 4;
    query.sort = ng_str_of("n");
    query.descending = true;
    query.limit = 3;
    expect_ids(f, query, "o t0 t1", 10);
    query.space_count = 1;
    expect_ids(f, query, "o", 1);
    query.space_count = 0;
    expect_ids(f, query, "", 0);
}

/* After every time of this machine. */
#define LATER_MS 4000000000000.0

static void test_only_deleted(void **state)
{
    struct fixture *f = *state;
    fixture_needs((f->docs->flags & NG_DOCUMENTS_ONLY_DELETED) != 0, "ng_query.only_deleted");
    fill(f);
    struct ng_query query = documents_query();
    query.only_deleted = true;
    expect_ids(f, query, "t9", 1);
    query.with_deleted = true;
    expect_ids(f, query, "t9", 1);
    static const char *const gone[] = {"t3", "t0", "t6"};
    for (size_t i = 0; i < NG_COUNT(gone); i++) {
        struct change change = {.id = ng_str_of(gone[i]),
                                .base = 1,
                                .deleted = true,
                                .agent = i < 2 ? "ann" : "bob",
                                .time_ms = (int64_t)LATER_MS + (int64_t)i};
        change.before_text = ng_str_of("words of it");
        assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    }
    expect_ids(f, query, "t0 t3 t6 t9", 4);
    query.sort = ng_str_of("updated");
    query.descending = true;
    query.limit = 2; /* t9 was deleted now */
    expect_ids(f, query, "t6 t0", 4);
    query.offset = 1;
    expect_ids(f, query, "t0 t3", 4);
    query.offset = 0;
    query.limit = 0;
    expect_ids(f, query, "", 4);
    query.limit = 10;
    /* Built-in fields hold for them, too; they have no values of declared ones. */
    struct ng_term terms[] = {term_number("updated", NG_TERM_GE, LATER_MS + 1),
                              term_text("author", NG_TERM_EQ, "ann")};
    query.terms = terms;
    query.term_count = 1;
    expect_ids(f, query, "t6 t0", 2);
    query.term_count = 2;
    expect_ids(f, query, "t0", 1);
    terms[0] = term_text("tag", NG_TERM_EQ, "even");
    query.term_count = 1;
    expect_ids(f, query, "", 0);
    terms[0] = term_text("id", NG_TERM_PREFIX, "t");
    query.space = str_make(NULL, 0);
    const struct ng_str spaces[] = {ng_str_of("other"), ng_str_of("team")};
    query.spaces = spaces;
    query.space_count = 2;
    expect_ids(f, query, "t6 t0 t3 t9", 4);
    /* One that is created again is none of them. */
    struct change back = {.id = ng_str_of("t0"), .base = 2, .text = ng_str_of("back")};
    assert_int_equal(fixture_commit(f, &back, 1, NULL, NULL, NULL), NG_OK);
    expect_ids(f, query, "t6 t3 t9", 3);
    expect_clean(f);
}

static void test_text_on_demand(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct ng_query query = documents_query();
    struct rows rows = {.stop_after = 2};
    assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                     NG_OK);
    assert_int_equal(rows.count, 2);
    assert_false(rows.items[0].has_text);
    assert_int_equal(rows.items[0].text_size, 11);
    rows_done(&rows);
    query.with_text = true;
    assert_int_equal(f->docs->query(f->db, fixture_call(f), &query, rows_add, &rows, NULL),
                     NG_OK);
    assert_string_equal(rows.items[0].text, "words of it");
    rows_done(&rows);
}

static void test_values_change(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct change change = {.id = ng_str_of("t0"), .base = 1, .tags = {"odd", "new"}};
    change.before_text = ng_str_of("words of it");
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    expect_term(f, term_text("tag", NG_TERM_EQ, "even"), "t2 t4 t5 t6 t8", 5);
    expect_term(f, term_text("tag", NG_TERM_EQ, "new"), "t0", 1);
    expect_term(f, term_number("n", NG_TERM_GT, 10.5), "t1", 1);
    expect_clean(f);
}

/* The core declares so, a moment after it looked, what only other gateways use. */
static void test_bare_declaration(void **state)
{
    struct fixture *f = *state;
    if ((f->docs->flags & NG_DOCUMENTS_SHARED) == 0) {
        return;
    }
    fill(f);
    struct ng_collection bare = {.name = fixture_collections[0].name,
                                 .field_size = sizeof(struct ng_field)};
    assert_int_equal(f->docs->declare(f->db, fixture_call(f), &bare), NG_OK);
    struct change change = {.id = ng_str_of("t0"), .base = 1, .tags = {"odd", "new"}};
    change.before_text = ng_str_of("words of it");
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    expect_term(f, term_text("tag", NG_TERM_EQ, "new"), "t0", 1);
    expect_term(f, term_number("n", NG_TERM_GT, 10.5), "t1", 1);
    expect_clean(f);
}

/* ---- search ---- */

static void put_words(struct fixture *f, const char *id, const char *title, const char *text)
{
    struct change change = {.id = ng_str_of(id), .title = title, .text = ng_str_of(text)};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
}

/* sort "": by rank. */
static void expect_list(struct fixture *f, const char *text, const char *sort, const char *ids)
{
    struct ng_query query = documents_query();
    struct ng_search search = {.size = sizeof(search), .query = &query};
    struct rows rows = {0};
    char list[512] = "";
    size_t at = 0;
    uint64_t total = 99;
    search.text = ng_str_of(text);
    query.want_total = true;
    query.sort = ng_str_of(sort);
    if (f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, &total) != NG_OK) {
        fail_msg("searching %s failed: %s", text, fixture_error(f));
    }
    for (size_t i = 0; i < rows.count; i++) {
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i > 0 ? " " : "",
                               rows.items[i].id);
    }
    assert_int_equal(total, rows.count);
    rows_done(&rows);
    if (strcmp(list, ids) != 0) {
        fail_msg("searching %s found '%s' where '%s' is right", text, list, ids);
    }
}

static void expect_hits(struct fixture *f, const char *text, const char *ids)
{
    expect_list(f, text, "id", ids);
}

static void expect_ranks(struct fixture *f, const char *text, const char *ids)
{
    expect_list(f, text, "", ids);
}

static void test_search(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->search != NULL, "search");
    put_words(f, "a", "Gateway", "The quick brown fox jumps over the lazy dog");
    put_words(f, "b", "Caf\xC3\xA9", "quick thinking, brown paper");
    put_words(f, "c", "", "nothing to see: foxes only");
    struct change elsewhere = {
        .space = "other", .id = ng_str_of("x"), .text = ng_str_of("quick fox")};
    assert_int_equal(fixture_commit(f, &elsewhere, 1, NULL, NULL, NULL), NG_OK);
    expect_hits(f, "quick", "a b");
    expect_hits(f, "QUICK brown", "a b");
    expect_hits(f, "brown quick fox", "a b c");
    expect_hits(f, "\"quick brown\"", "a");
    expect_hits(f, "\"brown quick\"", "");
    expect_hits(f, "fox", "a c");
    expect_hits(f, "\"fox\"", "a");
    expect_hits(f, "fox*", "a c");
    expect_hits(f, "cafe", "b");
    expect_hits(f, "CAF\xC3\x89", "b");
    expect_hits(f, "gate*", "a");
    expect_hits(f, "", "");
    expect_hits(f, "!!! ... *", "");
    expect_hits(f, "quick !!! lazy", "a b");
    const char *const odd[] = {"\"",      "\"\"",      "AND",        "quick OR", "NOT quick",
                               "a:b",     "(quick",    "quick)",     "^quick",   "NEAR(a b)",
                               "-quick",  "{title}:x", "\"unclosed", "* *",      "'; DROP",
                               "title:*", "+ + +",     "\xFF\xFE",   "\\",       "%_"};
    for (size_t i = 0; i < NG_COUNT(odd); i++) {
        struct ng_query query = documents_query();
        struct ng_search search = {.size = sizeof(search), .query = &query};
        struct rows rows = {0};
        search.text = ng_str_of(odd[i]);
        assert_int_equal(
            f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, NULL), NG_OK);
        rows_done(&rows);
    }
    expect_hits(f, "quick\"brown\"", "a b");
    expect_clean(f);
}

/* Any of the words: more of them first, then more of them as they are. */
static void test_search_any(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->search != NULL, "search");
    put_words(f, "swarm", "Swarms", "drones drones drones flying in a swarm");
    put_words(f, "plan", "Proposals", "a plan for the drone");
    put_words(f, "stem", "", "we planned running for happiness");
    put_words(f, "none", "", "what about the others");
    expect_ranks(f, "plan for the drones", "plan swarm stem");
    expect_ranks(f, "what about drones flying", "swarm plan");
    expect_ranks(f, "drone OR swarm", "swarm plan");
    expect_ranks(f, "plan", "plan stem");
    expect_ranks(f, "planned", "stem plan");
    expect_hits(f, "run", "stem");
    expect_hits(f, "proposal", "plan");
    expect_hits(f, "happy", "stem");
    expect_hits(f, "happiness", "stem");
    expect_hits(f, "plan*", "plan stem");
    expect_hits(f, "\"the drones\"", "");
    expect_hits(f, "\"the drone\"", "plan");
    /* Words of every text alone find what has them. */
    expect_hits(f, "what about", "none");
    expect_hits(f, "what about the zeppelin", "");
}

/* Scripts without spaces by pairs of characters; case folded whatever it takes. */
static void test_search_scripts(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->search != NULL, "search");
    put_words(f, "ja", "", "会議メモです。ドローンの計画。");
    put_words(f, "zh", "", "我们的无人机计划会在周五讨论");
    put_words(f, "ko", "", "드론을 위한 계획서");
    put_words(f, "th", "", "แผนการบินโดรน");
    put_words(f, "de", "", "Die Straße nach Łódź, 50 GROẞE Äpfel");
    expect_hits(f, "会議", "ja");
    expect_hits(f, "ドローン", "ja");
    expect_hits(f, "ﾄﾞﾛｰﾝ", "ja");
    expect_hits(f, "会議のドローン", "ja");
    expect_hits(f, "无人机", "zh");
    expect_hits(f, "机", "zh");
    expect_hits(f, "论", "zh");
    expect_hits(f, "无人机计划", "zh");
    expect_hits(f, "\"人无\"", "");
    expect_hits(f, "드론", "ko");
    expect_hits(f, "드론이", "ko");
    expect_hits(f, "โดรน", "th");
    expect_hits(f, "strasse", "de");
    expect_hits(f, "STRASSE", "de");
    expect_hits(f, "große", "de");
    expect_hits(f, "apfel", "de");
    expect_hits(f, "\"会議メモ\" Straße", "de ja");
}

static void test_search_follows(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->search != NULL, "search");
    put_words(f, "a", "first", "apple");
    expect_hits(f, "apple", "a");
    struct change change = {.id = ng_str_of("a"),
                            .base = 1,
                            .title = "first",
                            .text = ng_str_of("pear"),
                            .before_text = ng_str_of("apple")};
    assert_int_equal(fixture_commit(f, &change, 1, NULL, NULL, NULL), NG_OK);
    expect_hits(f, "apple", "");
    expect_hits(f, "pear first", "a");
    struct change gone = {.id = ng_str_of("a"), .base = 2, .deleted = true};
    gone.before_text = ng_str_of("pear");
    assert_int_equal(fixture_commit(f, &gone, 1, NULL, NULL, NULL), NG_OK);
    expect_hits(f, "pear", "");
    expect_clean(f);
}

static void test_search_rank(void **state)
{
    struct fixture *f = *state;
    fixture_needs(f->inner->search != NULL, "search");
    put_words(f, "low", "other", "long text in which somewhere the word lantern stands once");
    put_words(f, "high", "lantern", "short");
    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "fill%d", i);
        put_words(f, id, "filler", "nothing of interest");
    }
    struct ng_query query = documents_query();
    struct ng_search search = {.size = sizeof(search), .query = &query};
    struct rows rows = {0};
    uint64_t total = 0;
    search.text = ng_str_of("lantern");
    query.limit = 1;
    query.want_total = true;
    search.snippet_chars = 30;
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, &total),
                     NG_OK);
    assert_int_equal(rows.count, 1);
    assert_int_equal(total, 2);
    assert_string_equal(rows.items[0].id, "high");
    assert_true(rows.items[0].score > 0);
    rows_done(&rows);
    query.offset = 1;
    assert_int_equal(f->docs->search(f->db, fixture_call(f), &search, rows_add, &rows, &total),
                     NG_OK);
    assert_string_equal(rows.items[0].id, "low");
    assert_non_null(strstr(rows.items[0].snippet, "lantern"));
    assert_true(utf8_count(ng_str_of(rows.items[0].snippet)) <= 30);
    rows_done(&rows);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, documents_setup, documents_teardown)

int documents_query_contract(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_terms),          TEST(test_bad_terms),        TEST(test_sorts),
        TEST(test_pages),          TEST(test_only_deleted),     TEST(test_text_on_demand),
        TEST(test_values_change),  TEST(test_bare_declaration), TEST(test_search),
        TEST(test_search_follows), TEST(test_search_rank),      TEST(test_search_any),
        TEST(test_search_scripts),
    };
    return cmocka_run_group_tests_name("documents: queries", tests, NULL, NULL);
}
