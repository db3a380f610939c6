/* SPDX-License-Identifier: MIT */
/* test_history_print.c - objects of the history's tools as text for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "api/history/history_print.h"

#define TEXT_MAX ((size_t)65536)
#define CHANGE                                                                                 \
    "{\"seq\":12,\"time\":\"2026-01-28T14:30:00.000Z\",\"agent\":\"ada\",\"run\":\"r-1\","     \
    "\"tool\":\"notebook\",\"action\":\"updated\",\"space\":\"~ada\","                         \
    "\"collection\":\"notebooks\",\"id\":\"todo\",\"revision\":3,\"summary\":\"one\","         \
    "\"kept\":true,\"added\":3,\"removed\":1}"
#define HOSTILE                                                                                \
    "{\"seq\":1,\"space\":\"s\",\"collection\":\"notebooks\",\"id\":\"a\\u001b[31m\\nb\","     \
    "\"revision\":\"r7\",\"summary\":\"x\\ty\\u202e\",\"action\":\"saved\",\"added\":100,"     \
    "\"removed\":100}"
#define DIFF                                                                                   \
    "{\"space\":\"s\",\"collection\":\"pages\",\"id\":\"a\\nb\",\"from\":1,\"to\":2,"          \
    "\"changed\":[\"title\",\"tags\"],\"diff\":\"--- s/pages/a\\nb@1\\n+++ s/pages/a\\nb@2"    \
    "\\n@@ -1,2 +1,2 @@\\n one\\n-\\ttwo\\u001b\\n+three\\n\"}"
#define BLAME                                                                                  \
    "{\"total_lines\":4,\"lines\":[{\"first\":1,\"last\":2,\"text\":\"one\\n\\ttwo\","         \
    "\"revision\":10,\"time\":\"2026-01-28T14:30:00.123Z\",\"agent\":\"ada\","                 \
    "\"run\":\"night\",\"tool\":\"notebook\"},"                                                \
    "{\"first\":3,\"last\":4,\"text\":\"three\\u001b\\n\",\"revision\":9,"                     \
    "\"time\":\"2026-01-28T14:30:01.123Z\"}]}"

typedef void print_fn(struct buf *out, struct history_style style,
                      const struct ng_value *value);

static const struct history_style plain = {.is_coloured = false};
static const struct history_style shown = {.is_escaped = true};
static const struct history_style coloured = {.is_coloured = true, .is_escaped = true};

static void expect_print(print_fn *print, struct history_style style, const char *json,
                         const char *wanted)
{
    struct arena arena;
    struct buf out;
    const struct ng_value *value = NULL;
    arena_init(&arena, TEXT_MAX);
    buf_init(&out, TEXT_MAX);
    assert_int_equal(json_parse(&arena, ng_str_of(json), JSON_DEPTH_DEFAULT, &value, NULL),
                     NG_OK);
    print(&out, style, value);
    assert_int_equal(out.rc, NG_OK);
    assert_string_equal(buf_cstr(&out), wanted);
    buf_done(&out);
    arena_done(&arena);
}

static void changes(void **state)
{
    (void)state;
    expect_print(history_print_change, plain, CHANGE,
                 "change 12\nDocument: ~ada/notebooks/todo@3\nAgent:    ada\n"
                 "Date:     2026-01-28T14:30:00.000Z\nRun:      r-1\n"
                 "Tool:     notebook, updated\n\n    one\n");
    expect_print(history_print_change, coloured, HOSTILE,
                 "\033[33mchange 1\033[m\nDocument: s/notebooks/a\\u001b[31m\\u000ab@r7\n"
                 "Tool:     saved\n\n    x\\u0009y\\u202e\n");
    expect_print(history_print_change, plain, "{\"seq\":1,\"collection\":\"c\",\"id\":\"i\"}",
                 "change 1\nDocument: c/i@\n");
    expect_print(history_print_oneline, plain, CHANGE, "12 ~ada/notebooks/todo@3 (ada) one\n");
    expect_print(history_print_oneline, coloured, HOSTILE,
                 "\033[33m1\033[m s/notebooks/a\\u001b[31m\\u000ab@r7 (-) x\\u0009y\\u202e\n");
    expect_print(history_print_stat, plain, CHANGE, " ~ada/notebooks/todo | 4 +++-\n");
    expect_print(history_print_stat, coloured, CHANGE,
                 " ~ada/notebooks/todo | 4 \033[32m+++\033[m\033[31m-\033[m\n");
    expect_print(history_print_stat, plain, HOSTILE,
                 " s/notebooks/a\\u001b[31m\\u000ab | 200 ++++++++++++++++++++"
                 "--------------------\n");
    expect_print(history_print_stat, plain, "{\"id\":\"i\"}", "");
}

static void heads(void **state)
{
    (void)state;
    expect_print(history_print_head, coloured,
                 "{\"space\":\"s\",\"collection\":\"pages\",\"id\":\"i\",\"revision\":2,"
                 "\"agent\":\"ada\",\"members\":{\"title\":\"a\\nb\",\"tags\":[\"x\",\"y\"]}}",
                 "\033[33mdocument s/pages/i@2\033[m\nAgent:    ada\ntitle: a\\u000ab\n"
                 "tags: [\"x\",\"y\"]\n\n");
}

static void diffs(void **state)
{
    (void)state;
    expect_print(history_print_diff, plain, DIFF,
                 "changed members: title, tags\n--- s/pages/a\\u000ab@1\n"
                 "+++ s/pages/a\\u000ab@2\n@@ -1,2 +1,2 @@\n one\n-\ttwo\033\n+three\n");
    expect_print(history_print_diff, coloured, DIFF,
                 "changed members: title, tags\n\033[1m--- s/pages/a\\u000ab@1\033[m\n"
                 "\033[1m+++ s/pages/a\\u000ab@2\033[m\n\033[36m@@ -1,2 +1,2 @@\033[m\n one\n"
                 "\033[31m-\ttwo\\u001b\033[m\n\033[32m+three\033[m\n");
    expect_print(history_print_diff, plain, "{\"diff\":\"\",\"changed\":[]}", "");
}

/* A document of selected changes. */
#define CHANGED(more)                                                                          \
    "{\"space\":\"s\",\"collection\":\"pages\",\"id\":\"a\\nb\",\"from\":0,\"to\":2," more "}"

static void changed_documents(void **state)
{
    (void)state;
    expect_print(history_print_changed, coloured,
                 CHANGED("\"others\":0,\"added\":1,\"removed\":0,\"changed\":[\"title\"],"
                         "\"diff\":\"--- s/pages/a\\nb@0\\n+++ s/pages/a\\nb@2\\n\""),
                 "\033[33mdocument s/pages/a\\u000ab@0..2\033[m\nchanged members: title\n"
                 "\033[1m--- s/pages/a\\u000ab@0\033[m\n\033[1m+++ s/pages/a\\u000ab@2\033[m"
                 "\n");
    static const char *const reasons[][2] = {
        {CHANGED("\"kept\":false"), "its content is not kept"},
        {CHANGED("\"reason\":\"not_text\""), "the content is not UTF-8"},
        {CHANGED("\"reason\":\"too_large\""), "the content is too large"},
        {CHANGED("\"changed\":[]"),
         "those before it are long already; compare this document alone"}};
    for (size_t i = 0; i < NG_COUNT(reasons); i++) {
        char wanted[200];
        (void)snprintf(wanted, sizeof(wanted),
                       "document s/pages/a\\u000ab@0..2\n(no comparison: %s)\n", reasons[i][1]);
        expect_print(history_print_changed, plain, reasons[i][0], wanted);
    }
    expect_print(history_print_changed, plain, CHANGED("\"others\":1,\"diff\":\"\""),
                 "document s/pages/a\\u000ab@0..2\nwith 1 other change between\n");
    expect_print(history_print_changed, plain, CHANGED("\"others\":2,\"diff\":\"\""),
                 "document s/pages/a\\u000ab@0..2\nwith 2 other changes between\n");
    expect_print(history_print_changed_stat, plain, CHANGED("\"added\":1,\"removed\":1"),
                 " s/pages/a\\u000ab | 2 +-\n");
    expect_print(history_print_changed_stat, plain, CHANGED("\"kept\":false"),
                 " s/pages/a\\u000ab | not kept\n");
}

static void runs(void **state)
{
    (void)state;
    expect_print(history_print_runs, plain,
                 "[{\"run\":\"night\",\"agents\":[\"ada\",\"b\\n\"],\"changes\":12,"
                 "\"from\":\"2026-01-28T14:30:00.000Z\",\"to\":\"2026-01-29T01:02:03.456Z\"},"
                 "{\"run\":\"r\",\"agents\":[],\"changes\":1,"
                 "\"to\":\"2026-01-28T14:30:00.000Z\"}]",
                 "night  ada,b\\u000a  12 changes  2026-01-28T14:30:00Z  2026-01-29T01:02:03Z\n"
                 "r      -        1 change   -                     2026-01-28T14:30:00Z\n");
    expect_print(history_print_runs, coloured,
                 "[{\"run\":\"r\",\"agents\":[\"a\"],\"changes\":2}]",
                 "\033[33mr\033[m  a  2 changes  -                     -                   \n");
    expect_print(history_print_runs, plain, "[]", "");
}

static void blames(void **state)
{
    (void)state;
    expect_print(history_print_blame, shown, BLAME,
                 "10 (ada night notebook 2026-01-28T14:30:00Z 1) one\n"
                 "10 (ada night notebook 2026-01-28T14:30:00Z 2) \ttwo\n"
                 " 9 (-   -     -        2026-01-28T14:30:01Z 3) three\\u001b\n");
    expect_print(history_print_blame, plain, "{\"total_lines\":1,\"lines\":[]}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes),           cmocka_unit_test(heads), cmocka_unit_test(diffs),
        cmocka_unit_test(changed_documents), cmocka_unit_test(runs),  cmocka_unit_test(blames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
