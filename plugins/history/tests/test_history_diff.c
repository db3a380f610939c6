/* SPDX-License-Identifier: MIT */
/* test_history_diff.c - history_diff: answers, which versions, members, limits. */
#include "test_history_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"

#define ABOUT_N "'id':'n','space':'shared'"

/* The answer for the document "n". */
static void expect_diff(const char *more, int from, int to, int added, int removed,
                        const char *diff)
{
    expect("history_diff", args("{" ABOUT_N "%s}", more),
           args("{'collection':'notebooks','id':'n','from':%d,'to':%d,"
                "'added':%d,'removed':%d,'changed':[],'diff':'%s','space':'shared'}",
                from, to, added, removed, diff));
}

static void test_versions(void **state)
{
    (void)state;
    put_text("one\ntwo\n");
    put_text("one\n2\n");
    put_text("one\n2\nthree");
    expect_diff(
        "", 2, 3, 1, 0,
        "--- shared/notebooks/n@2\\n+++ shared/notebooks/n@3\\n@@ -1,2 +1,3 @@\\n one\\n"
        " 2\\n+three\\n\\\\ No newline at end of file\\n");
    expect_diff(
        ",'to':'2'", 1, 2, 1, 1,
        "--- shared/notebooks/n@1\\n+++ shared/notebooks/n@2\\n@@ -1,2 +1,2 @@\\n one\\n"
        "-two\\n+2\\n");
    expect_diff(
        ",'to':'1'", 0, 1, 2, 0,
        "--- shared/notebooks/n@0\\n+++ shared/notebooks/n@1\\n@@ -0,0 +1,2 @@\\n+one\\n"
        "+two\\n");
    expect_diff(
        ",'from':'1'", 1, 3, 2, 1,
        "--- shared/notebooks/n@1\\n+++ shared/notebooks/n@3\\n@@ -1,2 +1,3 @@\\n one\\n"
        "-two\\n+2\\n+three\\n\\\\ No newline at end of file\\n");
    expect_diff(
        ",'from':'3','to':'2'", 3, 2, 0, 1,
        "--- shared/notebooks/n@3\\n+++ shared/notebooks/n@2\\n@@ -1,3 +1,2 @@\\n one\\n"
        " 2\\n-three\\n\\\\ No newline at end of file\\n");
    expect_diff(",'from':'2','to':'2'", 2, 2, 0, 0, "");
    expect_diff(",'from':'1','to':'2','context':0", 1, 2, 1, 1,
                "--- shared/notebooks/n@1\\n+++ shared/notebooks/n@2\\n@@ -2 +2 @@\\n"
                "-two\\n+2\\n");
    const struct put n = {0};
    expect_diff(
        args(",'from':'#%llu','to':'%s'", (unsigned long long)seq_of(&n, 2), time_of(&n, 3)), 2,
        3, 1, 0,
        "--- shared/notebooks/n@2\\n+++ shared/notebooks/n@3\\n@@ -1,2 +1,3 @@\\n one\\n"
        " 2\\n+three\\n\\\\ No newline at end of file\\n");
    expect_failure("history_diff", "{\"id\":\"n\",\"space\":\"shared\",\"from\":\"#0\"}",
                   "NOT_FOUND", 404, "n did not exist yet at this point (`from`)",
                   args("{'from':'%s'}", time_of(&n, 1)));
    expect_failure("history_diff", "{\"id\":\"n\",\"space\":\"shared\",\"from\":\"4\"}",
                   "NOT_FOUND", 404, "there is no revision 4 (`from`): the newest one is 3",
                   NULL);
    expect_failure("history_diff", "{\"id\":\"n\",\"space\":\"shared\",\"from\":\"x\"}",
                   "INVALID_INPUT", 400,
                   "`from` is \"x\", it must be a revision such as 7, or #SEQ (the number of a "
                   "change), a time such as 2026-01-28T14:30:00Z, a day such as 2026-01-28, an "
                   "age such as 30m, 2h or 7d, or now",
                   NULL);
}

/* The revision before one that was made anew is a deletion: compared with nothing. */
static void test_made_anew(void **state)
{
    const struct put n = {0};
    (void)state;
    put_text("one\n");
    put(&(struct put){.deletes = true});
    put_text("two\n");
    expect_diff(
        "", 2, 3, 1, 0,
        "--- shared/notebooks/n@2\\n+++ shared/notebooks/n@3\\n@@ -0,0 +1 @@\\n+two\\n");
    expect_diff(",'from':'1'", 1, 3, 1, 1,
                "--- shared/notebooks/n@1\\n+++ shared/notebooks/n@3\\n@@ -1 +1 @@\\n-one\\n"
                "+two\\n");
    expect_failure("history_diff", "{\"id\":\"n\",\"space\":\"shared\",\"from\":\"2\"}",
                   "NOT_FOUND", 404, "n was deleted at this point (`from`)",
                   args("{'from':'%s','to':'%s'}", time_of(&n, 1), time_of(&n, 2)));
}

/* Members that people write, not those that the plugin makes. */
static void expect_changed(const char *before, const char *after, const char *changed)
{
    const struct put page = {.collection = "pages", .text = "same\n"};
    struct put next = page;
    next.json = before;
    put(&next);
    next.json = after;
    put(&next);
    struct answer answer =
        go("history_diff", "{\"id\":\"n\",\"collection\":\"pages\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changed"), changed);
    assert_string_equal(at(answer.text, "diff"), "");
    answer_free(&answer);
}

static void test_changed_members(void **state)
{
    (void)state;
    expect_changed("{\"title\":\"T\"}", "{\"title\":\"T\"}", "[]");
    expect_changed("{\"title\":\"T\"}", "{\"title\":\"U\"}", "[\"title\"]");
    expect_changed("{\"title\":\"T\",\"summary\":\"S\"}", "{\"summary\":\"R\",\"title\":\"T\"}",
                   "[]");
    expect_changed("{\"title\":\"T\"}",
                   "{\"title\":\"T\",\"summary\":\"\",\"summary_given\":true}",
                   "[\"summary\"]");
    expect_changed("{\"metadata\":{\"tags\":[\"a\"],\"version\":1}}",
                   "{\"metadata\":{\"version\":2,\"tags\":[\"a\"]}}", "[]");
    expect_changed("{\"metadata\":{\"tags\":[\"a\"],\"status\":\"x\"}}",
                   "{\"metadata\":{\"tags\":[\"a\",\"b\"],\"status\":\"y\"}}",
                   "[\"tags\",\"status\"]");
    expect_changed("{\"metadata\":{\"tags\":[]}}", "{}", "[\"tags\"]");
    struct put page = {.collection = "pages", .id = "m", .json = "{\"title\":\"T\"}"};
    put(&page); /* all of the first version is new */
    struct answer answer =
        go("history_diff", "{\"id\":\"m\",\"collection\":\"pages\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changed"), "[\"title\"]");
    answer_free(&answer);
}

/* ---- limits ---- */

/* A diff that is cut ends with a whole line. */
static void expect_cut(const char *text)
{
    put(&(struct put){.deletes = true});
    put_text(text);
    struct answer answer = go("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}");
    const char *diff = at(answer.text, "diff");
    assert_string_equal(at(answer.text, "truncated"), "true");
    assert_true(answer.text_len > SMALL_ANSWER / 2);
    assert_int_equal(diff[strlen(diff) - 1], '\n');
    const char *lines = strstr(diff, "@@\n+") + 3;
    for (size_t len = 0; *lines != '\0'; lines = strchr(lines, '\n') + 1) {
        size_t line = strcspn(text + len, "\n");
        assert_int_equal(*lines, '+');
        assert_memory_equal(lines + 1, text + len, line);
        len += line + 1;
    }
    answer_free(&answer);
}

static void test_truncated(void **state)
{
    static const char *const lines[] = {"line\n", "\n", "\x01\x01\x01\n", "\"quoted\"\n",
                                        "\xf0\x9f\x98\x80\n"};
    static char text[20000];
    (void)state;
    put_text("");
    for (size_t i = 0; i < NG_COUNT(lines); i++) {
        size_t len = 0;
        while (len + 16 < sizeof(text)) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", lines[i]);
        }
        expect_cut(text);
    }
    memset(text, 'x', sizeof(text) - 1); /* not even a line of it */
    put_text(text);
    struct answer answer = go("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "truncated"), "true");
    answer_free(&answer);
}

static void test_large_texts(void **state)
{
    size_t most = (size_t)4 * 1024 * 1024;
    char *text = malloc(most + 2);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', most + 1);
    put(&(struct put){.bytes = str_make(text, most)});
    put(&(struct put){.bytes = str_make(text, most - 1)});
    struct answer answer = go("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "added"), "1");
    answer_free(&answer);
    put(&(struct put){.bytes = str_make(text, most + 1)});
    put_text("small");
    for (int to = 3; to <= 4; to++) {
        expect_failure("history_diff", args("{" ABOUT_N ",'to':'%d'}", to), "TOO_LARGE", 413,
                       "texts of more than 4194304 bytes are not compared", NULL);
    }
    free(text);
}

static void test_not_utf8(void **state)
{
    (void)state;
    put_text("one\n\xff\n");
    put_text("two\n");
    expect_failure("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}", "INVALID_INPUT", 400,
                   "the content is not UTF-8, so it has no lines", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_versions),        WITH(test_made_anew),   WITH(test_changed_members),
        WITH_SMALL(test_truncated), WITH(test_large_texts), WITH(test_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
