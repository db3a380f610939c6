/* SPDX-License-Identifier: MIT */
/* test_history_diff_rows.c - history_diff of selected changes: rows, filters, pages, limits,
 * rights. The test moves the clock. */
#include "test_history_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_clock.h"

#define ROWS_BIG (120 * 1024)

/* The ids and revisions of the rows, "m@0..1 n@1..3 "; *ret_pages: their number. */
static const char *rows_of(const char *filter, int *ret_pages)
{
    static char found[1 << 15];
    char cursor[64] = "";
    size_t len = 0;
    bool more = true;
    found[0] = '\0';
    for (*ret_pages = 0; more; (*ret_pages)++) {
        struct answer answer = go("history_diff", args("{%s%s}", filter, cursor));
        for (int i = 0; strcmp(at(answer.text, args("documents.%d", i)), "none") != 0; i++) {
            len += (size_t)snprintf(found + len, sizeof(found) - len, "%s@%s..%s ",
                                    at(answer.text, args("documents.%d.id", i)),
                                    at(answer.text, args("documents.%d.from", i)),
                                    at(answer.text, args("documents.%d.to", i)));
            assert_true(len < sizeof(found));
        }
        more = strcmp(at(answer.text, "has_more"), "true") == 0;
        assert_true(more == (strcmp(at(answer.text, "cursor"), "none") != 0));
        (void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", at(answer.text, "cursor"));
        answer_free(&answer);
    }
    return found;
}

static void expect_rows(const char *filter, const char *rows)
{
    int pages = 0;
    assert_string_equal(rows_of(filter, &pages), rows);
    assert_int_equal(pages, 1);
}

/* ---- rows ---- */

static void test_rows(void **state)
{
    (void)state;
    put(&(struct put){.text = "one\n", .run = "r1"});
    put(&(struct put){.text = "one\ntwo\n", .run = "r2", .agent = "bob"});
    put(&(struct put){.id = "m", .space = "team", .text = "x\n", .run = "r1"});
    put(&(struct put){.text = "one\ntwo\nthree\n", .run = "r1"});
    put(&(struct put){.id = "m", .space = "team", .deletes = true, .run = "r2"});
    expect("history_diff", "{\"run\":\"r1\"}",
           args("{'documents':["
                "{'space':'shared','collection':'notebooks','id':'n','from':0,'to':3,'added':3,"
                "'removed':0,'others':1,'changed':[],'diff':'--- shared/notebooks/n@0\\n+++ "
                "shared/notebooks/n@3\\n@@ -0,0 +1,3 @@\\n+one\\n+two\\n+three\\n'}],"
                "'has_more':false,'space':'shared'}"));
    expect("history_diff", "{\"run\":\"r2\",\"space\":\"team\"}",
           args("{'documents':["
                "{'space':'team','collection':'notebooks','id':'m','from':1,'to':2,'added':0,"
                "'removed':1,'others':0,'changed':[],'diff':'--- team/notebooks/m@1\\n+++ "
                "team/notebooks/m@2\\n@@ -1 +0,0 @@\\n-x\\n'}],"
                "'has_more':false,'space':'team'}"));
    put(&(struct put){.id = "m", .space = "team", .text = "new\n", .run = "r3"});
    expect_rows("'run':'r3','space':'team'", "m@2..3 ");
    struct answer answer = go("history_diff", "{\"run\":\"r3\",\"space\":\"team\"}");
    assert_string_equal(
        at(answer.text, "documents.0.diff"),
        "--- team/notebooks/m@2\n+++ team/notebooks/m@3\n@@ -0,0 +1 @@\n+new\n");
    answer_free(&answer);
    answer = go("history_diff", "{\"agent\":[\"ada\",\"bob\"],\"space\":\"team\"}");
    assert_string_equal(at(answer.text, "documents.0.from"), "0");
    assert_string_equal(at(answer.text, "documents.0.added"), "1");
    answer_free(&answer);
}

/* Created and deleted by the selection: nothing is left. */
static void test_nothing_is_left(void **state)
{
    (void)state;
    put(&(struct put){.collection = "pages", .json = "{\"title\":\"T\"}", .run = "r1"});
    put(&(struct put){.collection = "pages", .deletes = true, .run = "r1"});
    struct answer answer = go("history_diff", "{\"run\":\"r1\"}");
    assert_string_equal(at(answer.text, "documents.0.to"), "2");
    assert_string_equal(at(answer.text, "documents.0.diff"), "");
    assert_string_equal(at(answer.text, "documents.0.changed"), "[]");
    answer_free(&answer);
    put(&(struct put){.collection = "pages", .json = "{\"title\":\"T\"}", .run = "r2"});
    put(&(struct put){.collection = "pages", .json = "{\"title\":\"U\"}", .run = "r3"});
    answer = go("history_diff", "{\"run\":\"r3\"}");
    assert_string_equal(at(answer.text, "documents.0.changed"), "[\"title\"]");
    answer_free(&answer);
}

/* ---- filters ---- */

static void test_filters(void **state)
{
    (void)state;
    put(&(struct put){.id = "a1", .text = "1\n", .run = "r1"});
    put(&(struct put){.id = "a2", .text = "1\n", .run = "r1", .tool = "notebook"});
    put(&(struct put){.id = "b", .collection = "pages", .run = "r2", .agent = "bob"});
    put(&(struct put){.id = "a1", .text = "2\n", .run = "r2"});
    put(&(struct put){.id = "a1", .text = "3\n"});
    const struct put a2 = {.id = "a2"};
    unsigned long long seq = seq_of(&a2, 1);
    expect_rows("'space':'shared'", "a1@0..3 b@0..1 a2@0..1 ");
    expect_rows("'run':'r1'", "a2@0..1 a1@0..1 ");
    expect_rows("'run':['r1','r2']", "a1@0..2 b@0..1 a2@0..1 ");
    expect_rows("'agent':'bob'", "b@0..1 ");
    expect_rows("'agent':'eve'", "");
    expect_rows("'agent':'ada','run':'r2'", "a1@1..2 ");
    expect_rows("'agent':'ada','tool':'notebook'", "a2@0..1 ");
    expect_rows("'agent':'ada','action':'updated'", "a1@1..3 ");
    expect_rows("'agent':'ada','collection':['pages']", "");
    expect_rows("'space':'shared','collection':['pages','notebooks'],'run':'r2'",
                "a1@1..2 b@0..1 ");
    expect_rows("'run':'r1','id':'a1'", "a1@0..1 ");
    expect_rows("'run':'r1','id':'a*'", "a2@0..1 a1@0..1 ");
    expect_rows("'run':'r1','id':'a\\\\*'", "");
    expect_rows(args("'space':'shared','since':'#%llu'", seq), "a1@1..3 b@0..1 ");
    expect_rows(args("'space':'shared','until':'#%llu'", seq), "a2@0..1 a1@0..1 ");
    expect_rows("'space':'team'", "");
    expect_rows("'run':'r1','space':'team'", "");
}

/* The arguments tell which form is meant. */
static void test_forms(void **state)
{
    static const char name_one[] =
        "name one document with `id`, or select changes by `run`, `agent` or `space`";
    static const char points[] = "`from` and `to` are of one document (`id` without a filter); "
                                 "a filter has `since` and `until`";
    static const char *const cursors[] = {"", "x", "7", "7-", "-7", "7-x", "1-2-3"};
    (void)state;
    put(&(struct put){.text = "one\n", .run = "night-1"});
    struct answer answer = go("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "to"), "1");
    answer_free(&answer);
    expect_rows("'id':'n','space':'shared','since':'#0'", "n@0..1 ");
    static const char *const unnamed[] = {"{}", "{'tool':'import'}", "{'id':'n','since':'#0'}",
                                          "{'run':[]}", "{'context':1}"};
    for (size_t i = 0; i < NG_COUNT(unnamed); i++) {
        expect_failure("history_diff", args("%s", unnamed[i]), "INVALID_INPUT", 400, name_one,
                       NULL);
    }
    expect_failure("history_diff", args("{'run':'night-1','to':'1'}"), "INVALID_INPUT", 400,
                   points, NULL);
    expect_failure("history_diff", args("{'id':'n','agent':'ada','from':'1'}"), "INVALID_INPUT",
                   400, points, NULL);
    expect_failure("history_diff", args("{'id':'n','collection':['notebooks']}"),
                   "INVALID_INPUT", 400, "`collection` is a list, but a document is in one",
                   NULL);
    expect_failure("history_diff", args("{'run':'night-2'}"), "NOT_FOUND", 404,
                   "no change is of the run \"night-2\"", NULL);
    answer = harness_call(&harness, "history_diff", "{\"run\":\"night-2\"}");
    assert_string_equal(answer.hint, "The nearest is \"night-1\"");
    answer_free(&answer);
    for (size_t i = 0; i < NG_COUNT(cursors); i++) {
        expect_failure("history_diff", args("{'run':'night-1','cursor':'%s'}", cursors[i]),
                       "INVALID_INPUT", 400,
                       "`cursor` is not of an answer; leave it out to start again", NULL);
    }
}

static void test_too_many_names(void **state)
{
    char list[1024] = "'r'";
    size_t len = strlen(list);
    (void)state;
    put(&(struct put){.run = "r"});
    for (int i = 1; i < 64; i++) {
        len += (size_t)snprintf(list + len, sizeof(list) - len, ",'r'");
    }
    expect_rows(args("'run':[%s]", list), "n@0..1 ");
    expect_failure("history_diff", args("{'run':[%s,'r']}", list), "INVALID_INPUT", 400,
                   "`run` has 65 texts, at most 64 are taken", NULL);
}

/* ---- what cannot be compared ---- */

static void test_not_kept(void **state)
{
    (void)state;
    test_clock_begin_day();
    put_text("0\n");
    for (int i = 1; i < 5; i++) {
        test_clock_pass(1000);
        put(&(struct put){.text = "line\n", .run = i == 3 ? "r2" : "r1"});
    }
    put(&(struct put){.collection = "agent_memory", .run = "r2"});
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    put(&(struct put){.text = "last\n", .run = "r3"});
    thin();
    expect("history_diff", "{\"run\":\"r2\"}",
           args("{'documents':["
                "{'space':'shared','collection':'agent_memory','id':'n','from':0,'to':1,"
                "'others':0,'changed':[],'kept':false},"
                "{'space':'shared','collection':'notebooks','id':'n','from':3,'to':4,"
                "'added':0,'removed':0,'others':0,'changed':[],'kept':false}],"
                "'has_more':false,'space':'shared'}"));
    struct answer answer = go("history_diff", "{\"run\":\"r1\"}");
    assert_string_equal(at(answer.text, "documents.0.others"), "1");
    assert_string_equal(at(answer.text, "documents.0.kept"), "none");
    assert_string_equal(at(answer.text, "documents.0.removed"), "1");
    answer_free(&answer);
}

static void test_no_text(void **state)
{
    size_t most = (size_t)4 * 1024 * 1024;
    char *text = malloc(most + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', most + 1);
    put(&(struct put){.id = "a", .text = "\xff\n", .run = "r1"});
    put(&(struct put){.id = "b", .bytes = str_make(text, most + 1), .run = "r1"});
    put(&(struct put){.id = "c", .bytes = str_make(text, most), .run = "r1"});
    put(&(struct put){.id = "d", .text = "d\n", .run = "r1"});
    free(text);
    struct answer answer = go("history_diff", "{\"run\":\"r1\"}");
    static const char *const members[][4] = {
        {"d", "none", "1",
         "--- shared/notebooks/d@0\n+++ shared/notebooks/d@1\n@@ -0,0 +1 @@\n"
         "+d\n"},
        {"c", "none", "1", "none"},
        {"b", "too_large", "1", "none"},
        {"a", "not_text", "2", "none"}};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(at(answer.text, args("documents.%d.id", i)), members[i][0]);
        assert_string_equal(at(answer.text, args("documents.%d.reason", i)), members[i][1]);
        assert_string_equal(at(answer.text, args("documents.%d.added", i)), members[i][2]);
        assert_string_equal(at(answer.text, args("documents.%d.diff", i)), members[i][3]);
        assert_string_equal(at(answer.text, args("documents.%d.kept", i)), "none");
    }
    answer_free(&answer);
}

/* ---- limits ---- */

/* 256 KiB of diffs; one that does not fit is left out. */
static void test_many_bytes(void **state)
{
    static char text[ROWS_BIG + 1];
    (void)state;
    memset(text, 'x', ROWS_BIG);
    for (size_t i = 99; i < ROWS_BIG; i += 100) {
        text[i] = '\n';
    }
    for (int i = 0; i < 4; i++) {
        put(&(struct put){
            .id = args("n%d", i), .text = i == 0 ? "small\n" : text, .run = "r1"});
    }
    struct answer answer = go("history_diff", "{\"run\":\"r1\"}");
    for (int i = 0; i < 4; i++) {
        bool none = strcmp(at(answer.text, args("documents.%d.diff", i)), "none") == 0;
        assert_true(none == (i == 2));
        assert_string_equal(at(answer.text, args("documents.%d.added", i)),
                            i == 3 ? "1" : args("%d", ROWS_BIG / 100 + 1));
    }
    answer_free(&answer);
    answer = go("history_diff", "{\"run\":\"r1\",\"id\":\"n1\"}");
    assert_int_equal(strlen(at(answer.text, "documents.0.diff")) > ROWS_BIG, 1);
    answer_free(&answer);
}

/* Changes between two pages move no document. */
static void test_pages(void **state)
{
    static char want[1 << 15];
    size_t len = 0;
    int pages = 0;
    (void)state;
    for (int i = 0; i < 450; i++) {
        put(&(struct put){.id = args("n%d", i), .text = "1\n", .run = "r1"});
    }
    put(&(struct put){.id = "n7", .text = "2\n", .run = "r1"});
    len += (size_t)snprintf(want, sizeof(want), "n7@0..2 ");
    for (int i = 449; i >= 0; i--) {
        if (i != 7) {
            len += (size_t)snprintf(want + len, sizeof(want) - len, "n%d@0..1 ", i);
        }
    }
    assert_string_equal(rows_of("'run':'r1'", &pages), want);
    assert_int_equal(pages, 3);
    struct answer answer = go("history_diff", "{\"run\":\"r1\"}");
    const char *cursor = args("{'run':'r1','cursor':'%s'}", at(answer.text, "cursor"));
    assert_string_equal(at(answer.text, "documents.199.id"), "n251");
    answer_free(&answer);
    put(&(struct put){.id = "n250", .text = "2\n", .run = "r1"});
    answer = go("history_diff", cursor);
    assert_string_equal(at(answer.text, "documents.0.id"), "n250");
    assert_string_equal(at(answer.text, "documents.0.to"), "1");
    answer_free(&answer);
}

/* Answers that are full before the limit is: each document once, with its diff unless that
 * alone is longer than an answer. */
static void test_small_answers(void **state)
{
    static char text[8000];
    int pages = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        memset(text, 'x', sizeof(text) - 1);
        text[i == 5 ? 7999 : 100 * i] = '\0';
        put(&(struct put){.id = args("n%d", i), .text = text, .run = "r1"});
    }
    const char *rows = rows_of("'run':'r1'", &pages);
    for (int i = 19; i >= 0; i--) {
        const char *row = args("n%d@0..1 ", i);
        assert_memory_equal(rows, row, strlen(row));
        rows += strlen(row);
    }
    assert_true(pages > 5 && pages < 20);
    struct answer answer = go("history_diff", "{\"run\":\"r1\",\"id\":\"n5\"}");
    assert_string_equal(at(answer.text, "documents.0.diff"), "none");
    assert_string_equal(at(answer.text, "documents.0.added"), "1");
    answer_free(&answer);
}

static void test_an_id_that_is_too_long(void **state)
{
    static char id[5000];
    (void)state;
    memset(id, 'x', sizeof(id) - 1);
    put(&(struct put){.id = "a", .run = "r1"});
    put(&(struct put){.id = id, .run = "r1"});
    struct answer answer = harness_call(&harness, "history_diff", "{\"run\":\"r1\"}");
    assert_string_equal(answer.code, "TOO_LARGE");
    const char *cursor = strstr(answer.message, "go on with the `cursor` \"");
    assert_non_null(cursor);
    cursor = strchr(cursor, '"') + 1;
    const char *next = args("'run':'r1','cursor':'%.*s'", (int)strcspn(cursor, "\""), cursor);
    answer_free(&answer);
    expect_rows(next, "a@0..1 ");
}

/* ---- rights ---- */

static void test_rights(void **state)
{
    static const struct ng_str team[] = {{"team", 4}};
    struct key keys[2];
    (void)state;
    put(&(struct put){.id = "a", .space = "team", .run = "r1"});
    put(&(struct put){.id = "b", .run = "r1"});
    struct answer answer = harness_run(call_with_key(&keys[0], NG_ROLE_READER, team, 1),
                                       "history_diff", "{\"run\":\"r1\"}");
    assert_string_equal(at(answer.text, "documents.0.id"), "a");
    assert_string_equal(at(answer.text, "documents.1"), "none");
    answer_free(&answer);
    answer = harness_run(call_with_key(&keys[1], NG_ROLE_READER, team, 1), "history_diff",
                         "{\"run\":\"r1\",\"space\":\"shared\"}");
    assert_string_equal(answer.code, "FORBIDDEN");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_rows),
        WITH(test_nothing_is_left),
        WITH_SQLITE(test_filters),
        WITH(test_forms),
        WITH(test_too_many_names),
        WITH_SQLITE(test_not_kept),
        WITH(test_no_text),
        WITH(test_many_bytes),
        WITH(test_pages),
        WITH_SMALL(test_small_answers),
        WITH_SMALL(test_an_id_that_is_too_long),
        WITH(test_rights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
