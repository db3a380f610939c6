/* SPDX-License-Identifier: MIT */
/* test_history.c - history_read of one document: answers, points, parts, refusals; what all
 * tools have in common. The test moves the clock. */
#include "test_history_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/definitions/tool_formats.h"
#include "core/module/registry.h"
#include "test_clock.h"

/* All definitions together. */
#define DEFINITIONS_MAX ((size_t)6 * 1024)

static const struct put n; /* the document "n" */

/* ---- answers ---- */

static void expect_read(const char *at_point, uint64_t revision, const char *action,
                        const char *content)
{
    char want[1024];
    (void)snprintf(want, sizeof(want),
                   "{\"collection\":\"notebooks\",\"id\":\"n\","
                   "\"revision\":%llu,%s,\"action\":\"%s\",%s,\"space\":\"shared\"}",
                   (unsigned long long)revision, made(&n, revision), action, content);
    struct answer answer = go("history_read", args("{'id':'n','space':'shared'%s}", at_point));
    assert_string_equal(answer.text, want);
    assert_int_equal(answer.revision, revision);
    answer_free(&answer);
}

static void test_read(void **state)
{
    static const char one[] = "\"content\":\"one\\n\",\"total_lines\":2";
    static const char two[] = "\"content\":\"one\\n\\\"two\\\"\",\"total_lines\":2";
    (void)state;
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put(&(struct put){.text = "one\n", .run = "run-1"});
    test_clock_pass(2 * TEST_CLOCK_HOUR_MS);
    put(&(struct put){.text = "beside", .id = "m"});
    put(&(struct put){.text = "one\n\"two\"", .agent = "bob", .tool = "notebook"});
    expect_read(",'at':'1'", 1, "created", one);
    expect_read(",'at':'2'", 2, "updated", two);
    expect_read(",'at':'now'", 2, "updated", two);
    expect_read("", 2, "updated", two);
    expect_read(",'at':'90s'", 1, "created", one);
    expect_read(",'at':'1h'", 1, "created", one);
    expect_read(args(",'at':'#%llu'", (unsigned long long)seq_of(&n, 1)), 1, "created", one);
    expect_read(args(",'at':'#%llu'", (unsigned long long)seq_of(&n, 2) - 1), 1, "created",
                one);
    expect_read(args(",'at':'#%llu'", (unsigned long long)seq_of(&n, 2)), 2, "updated", two);
    expect_read(",'at':'#9007199254740991'", 2, "updated", two);
    expect_read(args(",'at':'%s'", time_of(&n, 1)), 1, "created", one);
    expect_read(args(",'at':'%s'", time_of(&n, 2)), 2, "updated", two);
    test_clock_reset();
}

static void test_read_members(void **state)
{
    (void)state;
    struct answer page =
        harness_call(&harness, "notebook_create",
                     "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"# one\\n\","
                     "\"tags\":[\"a\",\"b\"]}");
    const char *id = at(page.text, "notebook_id");
    struct answer update = harness_call(
        &harness, "notebook_update",
        args("{'collection':'pages','notebook_id':'%s','title':'U','summary':'S'}", id));
    assert_int_equal(update.rc, NG_OK);
    struct answer first =
        go("history_read", args("{'collection':'pages','id':'%s','at':'1'}", id));
    struct answer second = go("history_read", args("{'collection':'pages','id':'%s'}", id));
    assert_string_equal(at(first.text, "space"), "shared"); /* as the tools of its kind */
    assert_string_equal(at(first.text, "tool"), "notebook_create");
    assert_string_equal(at(first.text, "agent"), "local");
    assert_string_equal(at(first.text, "members.title"), "T");
    assert_string_equal(at(first.text, "members.tags"), "[\"a\",\"b\"]");
    assert_string_equal(at(first.text, "members.summary"), "none"); /* made by the plugin */
    assert_string_equal(at(first.text, "members.metadata"), "none");
    assert_string_equal(at(second.text, "members.title"), "U");
    assert_string_equal(at(second.text, "members.summary"), "S");
    assert_string_equal(at(second.text, "tool"), "notebook_update");
    assert_string_equal(at(second.text, "content"), "# one\n");
    answer_free(&first);
    answer_free(&second);
    answer_free(&update);
    answer_free(&page);
}

/* ---- parts ---- */

/* Parts of so many lines (0: as many as fit) put together are the text. */
static void expect_parts(const char *text, int max_lines)
{
    size_t len = 0;
    int64_t line = 1;
    int64_t total = *text != '\0';
    for (const char *feed = text; (feed = strchr(feed, '\n')) != NULL; feed++) {
        total++;
    }
    bool on = true;
    while (on) {
        const char *most = max_lines > 0 ? args(",'max_lines':%d", max_lines) : "";
        struct answer answer =
            go("history_read",
               args("{'id':'n','space':'shared','start_line':%lld%s}", (long long)line, most));
        const char *part = at(answer.text, "content");
        assert_int_equal(int_at(answer.text, "total_lines"), total);
        assert_true(strlen(part) <= strlen(text) - len);
        assert_memory_equal(part, text + len, strlen(part));
        len += strlen(part);
        on = strcmp(at(answer.text, "next_line"), "none") != 0;
        if (on) {
            int64_t next = int_at(answer.text, "next_line");
            assert_true(next > line && (max_lines == 0 || next == line + max_lines));
            line = next;
        }
        answer_free(&answer);
    }
    assert_int_equal(len, strlen(text));
}

static void expect_all_parts(const char *text)
{
    put_text(text);
    for (int lines = 0; lines < 5; lines++) {
        expect_parts(text, lines);
    }
}

static void test_parts(void **state)
{
    static const char *const texts[] = {
        "",       "\n",         "\n\n",         "one",          "one\n",
        "\none",  "one\r\n",    "\r",           "a\rb\r\nc\n",  "\n\n\nx\n\n",
        "x\n\ny", "\xc3\xbc\n", "\xe6\x97\xa5", "\t\"\\\x01\n",
    };
    char text[4096];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        expect_all_parts(texts[i]);
    }
    unsigned seed = rig_seed();
    for (int i = 0; i < 20; i++) {
        rig_text(&seed, 12, text, sizeof(text));
        expect_all_parts(text);
    }
}

/* An answer is full before the text ends. JSON escapes make some texts longer. */
static void test_parts_that_fill_answers(void **state)
{
    static const char *const lines[] = {"line\n", "\n", "\x01\x01\x01\n", "\"quoted\"\n",
                                        "\xf0\x9f\x98\x80\n"};
    static char text[40000];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(lines); i++) {
        size_t len = 0;
        while (len + 16 < sizeof(text) / 2) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", lines[i]);
        }
        put_text(text);
        expect_parts(text, 0);
        put(&(struct put){.text = text,
                          .run = "a-run-with-a-label-of-64-bytes-----------"
                                 "-------------------------"});
        expect_parts(text, 0);
    }
}

static void test_a_line_that_is_too_long(void **state)
{
    static char text[3 * SMALL_ANSWER];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "one\n\n", 5);
    put_text(text);
    struct answer answer = go("history_read", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "content"), "one\n\n");
    assert_string_equal(at(answer.text, "next_line"), "3");
    answer_free(&answer);
    expect_failure("history_read", "{\"id\":\"n\",\"space\":\"shared\",\"start_line\":3}",
                   "TOO_LARGE", 413, "line 3 alone is longer than an answer (tools.max_answer)",
                   NULL);
}

static void test_lines_behind_the_end(void **state)
{
    static const struct {
        const char *text;
        int lines;
    } cases[] = {{"", 0}, {"one", 1}, {"one\n", 2}, {"one\ntwo\nthree", 3}};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        int behind = cases[i].lines + (cases[i].lines == 0 ? 2 : 1);
        put_text(cases[i].text);
        expect_failure("history_read",
                       args("{'id':'n','space':'shared','start_line':%d}", behind),
                       "INVALID_INPUT", 400,
                       args("there is no line %d (`start_line`): the text has %d line%s",
                            behind, cases[i].lines, cases[i].lines == 1 ? "" : "s"),
                       NULL);
    }
    put_text("one\n");
    struct answer answer =
        go("history_read", "{\"id\":\"n\",\"space\":\"shared\",\"start_line\":2}");
    assert_string_equal(at(answer.text, "content"), "");
    assert_string_equal(at(answer.text, "next_line"), "none");
    answer_free(&answer);
    answer = go("history_read",
                "{\"id\":\"n\",\"space\":\"shared\",\"max_lines\":9007199254740991}");
    assert_string_equal(at(answer.text, "content"), "one\n");
    answer_free(&answer);
}

/* ---- refusals ---- */

static const char *const tools[] = {"history_read", "history_diff", "history_blame"};

/* The tool's argument that is a point. */
static const char *point_of(size_t tool)
{
    return tool == 1 ? "to" : "at";
}

static const char *about(size_t tool, const char *point)
{
    return args("{'id':'n','space':'shared','%s':'%s'}", point_of(tool), point);
}

static void test_not_there(void **state)
{
    (void)state;
    put(&(struct put){.id = "m"});
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put_text("one\n");
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put(&(struct put){.deletes = true});
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    for (size_t i = 0; i < NG_COUNT(tools); i++) {
        const char *when = args("{'from':'%s'}", time_of(&n, 1));
        const char *until = args("{'from':'%s','to':'%s'}", time_of(&n, 1), time_of(&n, 2));
        const char *early = args("n did not exist yet at this point (`%s`)", point_of(i));
        const char *late = args("n was deleted at this point (`%s`)", point_of(i));
        expect_failure(tools[i], about(i, "#0"), "NOT_FOUND", 404, early, when);
        expect_failure(tools[i], about(i, "1970-01-01"), "NOT_FOUND", 404, early, when);
        expect_failure(tools[i], about(i, args("#%llu", (unsigned long long)seq_of(&n, 1) - 1)),
                       "NOT_FOUND", 404, early, when);
        expect_failure(tools[i], about(i, "now"), "NOT_FOUND", 404, late, until);
        expect_failure(tools[i], about(i, "2"), "NOT_FOUND", 404, late, until);
        expect_failure(tools[i], args("{'id':'n','space':'shared'}"), "NOT_FOUND", 404, late,
                       until);
        expect_failure(tools[i], about(i, "3"), "NOT_FOUND", 404,
                       args("there is no revision 3 (`%s`): the newest one is 2", point_of(i)),
                       NULL);
        expect_failure(tools[i], "{\"id\":\"x\",\"space\":\"shared\"}", "NOT_FOUND", 404,
                       "there is no document \"x\" in notebooks of the space shared", NULL);
    }
    put_text("again\n"); /* it was made anew: that is its creation now */
    put(&(struct put){.deletes = true});
    expect_failure("history_read", about(0, "now"), "NOT_FOUND", 404,
                   "n was deleted at this point (`at`)",
                   args("{'from':'%s','to':'%s'}", time_of(&n, 3), time_of(&n, 4)));
    test_clock_reset();
}

static void test_not_kept(void **state)
{
    (void)state;
    test_clock_begin_day();
    for (int i = 0; i < 5; i++) {
        put_text("line\n");
        test_clock_pass(1000);
    }
    const char *third = args("#%llu", (unsigned long long)seq_of(&n, 3));
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    put_text("last\n");
    thin();
    for (size_t i = 0; i < NG_COUNT(tools); i++) {
        static const char message[] =
            "revision 3 of n is not kept (history.keep); the nearest that are: 1 before it, 5 "
            "after it (0: none)";
        expect_failure(tools[i], about(i, "3"), "NOT_KEPT", 404, message,
                       "{\"before\":1,\"after\":5}");
        expect_failure(tools[i], about(i, third), "NOT_KEPT", 404, message,
                       "{\"before\":1,\"after\":5}");
    }
    expect_read(",'at':'5'", 5, "updated", "\"content\":\"line\\n\",\"total_lines\":2");
    expect_failure("history_diff", about(1, "5"), "NOT_KEPT", 404,
                   "revision 4 of n is not kept (history.keep); the nearest that are: 1 before "
                   "it, 5 after it (0: none)",
                   "{\"before\":1,\"after\":5}");
    test_clock_reset();
}

static void test_bad_points(void **state)
{
    static const char *const points[] = {"today", "tomorrow", "-1", "#", "1.5", "2026-02-30"};
    (void)state;
    put_text("one\n");
    for (size_t i = 0; i < NG_COUNT(points) * NG_COUNT(tools); i++) {
        size_t tool = i % NG_COUNT(tools);
        const char *point = points[i / NG_COUNT(tools)];
        expect_failure(tools[tool], about(tool, point), "INVALID_INPUT", 400,
                       args("`%s` is \"%s\", it must be a revision such as 7, or #SEQ (the "
                            "number of a change), a time such as 2026-01-28T14:30:00Z, a day "
                            "such as 2026-01-28, an age such as 30m, 2h or 7d, or now",
                            point_of(tool), point),
                       NULL);
    }
}

static void test_collections(void **state)
{
    static const char *const names[] = {"unheard_of", "memories", "keys", "agent_memory"};
    (void)state;
    for (size_t i = 0; i < NG_COUNT(names) * NG_COUNT(tools); i++) {
        const char *name = names[i / NG_COUNT(tools)];
        expect_failure(
            tools[i % NG_COUNT(tools)], args("{'id':'n','collection':'%s'}", name), "NOT_FOUND",
            404, args("`collection`: none that keeps revisions is called '%s'", name), NULL);
    }
    struct answer answer = harness_call(&harness, "history_diff", "{}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
    answer = harness_call(&harness, "history_blame", "{}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
}

/* ---- spaces ---- */

static void expect_space(struct call *call, const char *arguments, const char *space)
{
    struct answer answer = harness_run(call, "history_read", arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s %s", arguments, answer.code, answer.message);
    }
    assert_string_equal(at(answer.text, "space"), space);
    answer_free(&answer);
}

static void test_spaces(void **state)
{
    static const struct ng_str team[] = {{"team", 4}, {"shared", 6}};
    static const struct ng_str own[] = {{"~ada", 4}, {"team", 4}};
    static const char *const spaces[] = {"shared", "team", "~ada", "~local"};
    struct key keys[4];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(spaces); i++) {
        put(&(struct put){.space = spaces[i], .text = spaces[i]});
        put(&(struct put){.space = spaces[i], .collection = "pages"});
    }
    struct answer answer = go("history_read", "{\"id\":\"n\"}");
    assert_string_equal(at(answer.text, "space"), "~local"); /* notebooks: the agent's own */
    answer_free(&answer);
    answer = go("history_read", "{\"id\":\"n\",\"collection\":\"pages\"}");
    assert_string_equal(at(answer.text, "space"), "shared");
    answer_free(&answer);
    answer = harness_call_as(&harness, "ada", "team", "history_read", "{\"id\":\"n\"}");
    assert_string_equal(at(answer.text, "space"), "team"); /* the one that the call names */
    answer_free(&answer);
    answer = harness_call_as(&harness, "ada", "team", "history_read",
                             "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(answer.code, "INVALID_INPUT"); /* two */
    answer_free(&answer);
    expect_space(call_with_key(&keys[0], NG_ROLE_READER, own, 2), "{\"id\":\"n\"}", "~ada");
    expect_space(call_with_key(&keys[1], NG_ROLE_READER, team, 2), "{\"id\":\"n\"}", "team");
    expect_space(call_with_key(&keys[2], NG_ROLE_READER, team, 2),
                 "{\"id\":\"n\",\"collection\":\"pages\"}", "shared");
    answer = harness_run(call_with_key(&keys[3], NG_ROLE_READER, team, 2), "history_read",
                         "{\"id\":\"n\",\"space\":\"~local\"}");
    assert_string_equal(answer.code, "FORBIDDEN");
    assert_int_equal(answer.status, 403);
    assert_string_equal(answer.message, "the caller's key does not allow the space \"~local\"; "
                                        "it allows team, shared");
    answer_free(&answer);
}

/* What a key's tools do not show does not exist. */
static void test_keys_of_some_tools(void **state)
{
    static const struct ng_str shared[] = {{"shared", 6}};
    static const struct ng_str allowed[] = {
        {"notebook", 8}, {"history_read", 12}, {"history_diff", 12}, {"history_blame", 13}};
    static struct key keys[2 * NG_COUNT(tools)];
    (void)state;
    put_text("one");
    put(&(struct put){.collection = "pages"});
    for (size_t i = 0; i < 2 * NG_COUNT(tools); i++) {
        struct call *call = call_with_key(&keys[i], NG_ROLE_READER, shared, 1);
        keys[i].tools = allowed;
        keys[i].tool_count = NG_COUNT(allowed);
        struct answer answer = harness_run(
            call, tools[i / 2],
            args("{'id':'n','collection':'%s'}", i % 2 == 0 ? "notebooks" : "pages"));
        assert_string_equal(answer.code, i % 2 == 0 ? "ok" : "NOT_FOUND");
        assert_string_equal(
            answer.message,
            i % 2 == 0 ? "" : "`collection`: none that keeps revisions is called \"pages\"");
        answer_free(&answer);
    }
}

/* ---- what the tools have in common ---- */

/* A client sends names, descriptions and input schemas to its model; the limit counts these. */
static void test_definitions(void **state)
{
    static const char *const names[] = {"history_log",   "history_read", "history_diff",
                                        "history_blame", "history_undo", "history_restore"};
    struct buf text;
    (void)state;
    buf_init(&text, TOOL_FORMATS_MAX);
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        const struct tool *tool = registry_find(harness.gateway->registry, ng_str_of(names[i]));
        assert_non_null(tool);
        assert_int_equal(tool->desc.effect, i < 4 ? NG_EFFECT_READS : NG_EFFECT_WRITES);
        assert_int_equal(tool_formats_print_tool(tool, NULL, TOOL_FORMAT_ANTHROPIC, &text),
                         NG_OK);
    }
    print_message("%zu bytes of definitions\n", text.len);
    assert_true(text.len <= DEFINITIONS_MAX);
    buf_done(&text);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    put(&(struct put){.text = "one\ntwo\n", .run = "run-1"});
    put(&(struct put){.text = "one\n2\nthree\n"});
    put(&(struct put){.text = "0\none\n2\nthree\n", .agent = "bob"});
    put(&(struct put){.id = "m"});
    expect_all_or_no_memory("history_read", "{\"id\":\"n\",\"space\":\"shared\"}");
    expect_all_or_no_memory("history_read", "{\"id\":\"n\",\"space\":\"shared\",\"at\":\"2\"}");
    expect_all_or_no_memory("history_read", "{\"space\":\"shared\"}");
    expect_all_or_no_memory("history_diff", "{\"id\":\"n\",\"space\":\"shared\"}");
    expect_all_or_no_memory("history_diff", "{\"run\":\"run-1\"}");
    expect_all_or_no_memory("history_diff", "{\"agent\":[\"ada\",\"bob\"]}");
    expect_all_or_no_memory("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}");
    expect_all_or_no_memory("history_log", "{\"space\":\"shared\",\"id\":\"\\\\*\"}");
    expect_all_or_no_memory("history_log",
                            "{\"agent\":[\"ada\",\"bob\"],\"limit\":2,\"run\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_read),
        WITH(test_read_members),
        WITH(test_parts),
        WITH_SMALL(test_parts_that_fill_answers),
        WITH_SMALL(test_a_line_that_is_too_long),
        WITH(test_lines_behind_the_end),
        WITH(test_not_there),
        WITH_SQLITE(test_not_kept),
        WITH(test_bad_points),
        WITH(test_collections),
        WITH(test_spaces),
        WITH(test_keys_of_some_tools),
        WITH(test_definitions),
        WITH_LINKED(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
