/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_update.c - updates: members, edits, sections, many at once, and after
 * a restart. */
#include "test_agent_notebook_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/store/store.h"

static void test_update_members(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"a b\"");
    update(*state, &page,
           ",\"content\":\"a b c\",\"title\":\"U\",\"tags\":[\"z\"],\"status\":\"complete\"");
    struct answer read = go(*state, "notebook_read", about(&page, ""));
    assert_string_equal(at(read.text, "title"), "U");
    assert_string_equal(at(read.text, "content"), "a b c");
    assert_string_equal(at(read.text, "metadata.tags"), "[\"z\"]");
    assert_string_equal(at(read.text, "metadata.status"), "complete");
    assert_string_equal(at(read.text, "metadata.word_count"), "3");
    assert_string_equal(at(read.text, "metadata.version"), "2");
    assert_string_equal(at(read.text, "history.1.version"), "2");
    assert_string_equal(at(read.text, "history.1.summary"),
                        "content updated; title changed to 'U'; tags updated; status \xe2\x86"
                        "\x92 complete");
    answer_free(&read);
    /* Also an update of nothing makes a version. */
    update(*state, &page, "");
    expect_member(*state, &page, "", "metadata.version", "3");
    expect_member(*state, &page, "", "history.2.summary", "Updated");
}

static void test_update_by_another(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"a\"");
    struct answer answer = harness_call_as(*state, "percy", NULL, "notebook_update",
                                           about(&page, ",\"append\":\"b\""));
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    expect_member(*state, &page, "", "metadata.created_by", "agent:local");
    expect_member(*state, &page, "", "history.1.changed_by", "agent:percy");
    expect_content(*state, &page, "a\nb");
    /* Another space has entries of its own. */
    answer = harness_call_as(*state, NULL, "other", "notebook_read", about(&page, ""));
    assert_string_equal(answer.code, "ENTRY_NOT_FOUND");
    answer_free(&answer);
}

static void test_expected_version(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"a\"");
    update(*state, &page, ",\"expected_version\":1,\"append\":\"b\"");
    struct answer stale =
        fails(*state, "notebook_update",
              about(&page, ",\"expected_version\":1,\"append\":\"c\""), "CONFLICT", 409);
    assert_string_equal(at(stale.details, "current_version"), "2");
    assert_string_equal(at(stale.details, "expected_version"), "1");
    answer_free(&stale);
    expect_content(*state, &page, "a\nb");
}

static void test_edits(void **state)
{
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\ntwo\\nthree\\ntwo\\n\"");
    update(
        *state, &page,
        ",\"edits\":[{\"old_str\":\"one\\n\",\"new_str\":\"\"},{\"old_str\":\"three\","
        "\"new_str\":\"3 \\u00e9 and more\"},{\"old_str\":\"more\\ntwo\",\"new_str\":\"x\"}]");
    expect_content(*state, &page, "two\n3 \xc3\xa9 and x\n");
    expect_member(*state, &page, "", "history.1.summary", "content edited in 3 places");
    expect_member(*state, &page, "", "metadata.word_count", "5");
}

/* Nothing was changed: lines are those of the present text, or it is said after which edit. */
static void test_edits_lines(void **state)
{
    static const struct {
        const char *old, *code, *said, *line, *after;
    } rows[] = {
        {"gamma \\\"x\\\"", "EDIT_NO_MATCH", "Line 3 has \xe2\x80\x9c", "none", "none"},
        {"more \\\"y\\\"", "EDIT_NO_MATCH", "After edit 1: Line 2 has \xe2\x80\x9c", "none",
         "none"},
        {"alpha", "EDIT_NO_MATCH", "Line 1 has it, but an edit before", "1", "none"},
        {"gamma\\nx", "EDIT_NO_MATCH", "Line 3 has its first line", "3", "none"},
        {"ALPHA\\nx", "EDIT_NO_MATCH", "Line 1 after edit 1 has its first", "1", "1"},
        {"beta", "EDIT_AMBIGUOUS", "than once (lines 2, 4):", "2", "none"},
        {"more", "EDIT_AMBIGUOUS", "than once after edit 1 (lines 2, 3):", "2", "1"},
    };
    struct entry page = make(*state, "pages",
                             "\"title\":\"T\",\"content\":\"alpha\\n\\tbeta\\ngamma "
                             "\xe2\x80\x9cx\xe2\x80\x9d\\nbeta too\\n\"");
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        char more[256];
        char said[1024];
        (void)snprintf(
            more, sizeof(more),
            ",\"edits\":[{\"old_str\":\"alpha\",\"new_str\":\"ALPHA\\nmore "
            "\xe2\x80\x9cy\xe2\x80\x9d\\nmore\"},{\"old_str\":\"%s\",\"new_str\":\"q\"}]",
            rows[i].old);
        struct answer answer =
            fails(*state, "notebook_update", about(&page, more), rows[i].code, 422);
        (void)snprintf(said, sizeof(said), "%s %s", answer.message, answer.hint);
        assert_non_null(strstr(said, rows[i].said));
        assert_string_equal(at(answer.details, "lines.0.line"), rows[i].line);
        assert_string_equal(at(answer.details, "after_edit"), rows[i].after);
        answer_free(&answer);
    }
    expect_member(*state, &page, "", "metadata.version", "1");
}

static void test_edits_all_or_none(void **state)
{
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\ntwo\\n two three\\n\"");
    struct answer answer =
        fails(*state, "notebook_update",
              about(&page, ",\"edits\":[{\"old_str\":\"one\",\"new_str\":\"1\"},{\"old_str\":"
                           "\"two\",\"new_str\":\"2\"}]"),
              "EDIT_AMBIGUOUS", 422);
    assert_string_equal(at(answer.details, "edit"), "1");
    assert_string_equal(at(answer.details, "lines"),
                        "[{\"line\":2,\"text\":\"two\"},{\"line\":3,\"text\":\"two three\"}]");
    answer_free(&answer);
    answer = fails(*state, "notebook_update",
                   about(&page, ",\"edits\":[{\"old_str\":\"one\",\"new_str\":\"1\"},{\"old_"
                                "str\":\"  two three\\nfour\",\"new_str\":\"2\"}]"),
                   "EDIT_NO_MATCH", 422);
    assert_string_equal(at(answer.details, "lines"), "[{\"line\":3,\"text\":\"two three\"}]");
    assert_non_null(strstr(answer.hint, "Line 3"));
    answer_free(&answer);
    answer = fails(*state, "notebook_update",
                   about(&page, ",\"edits\":[{\"old_str\":\"ONE\",\"new_str\":\"1\"}]"),
                   "EDIT_NO_MATCH", 422);
    assert_string_equal(answer.hint, "Line 1 has o (U+006F) where old_str has O (U+004F). The "
                                     "line is: one");
    answer_free(&answer);
    /* Overlapping places are several, too. */
    struct entry as = make(*state, "pages", "\"title\":\"T\",\"content\":\"aaa\"");
    fails_only(*state, "notebook_update",
               about(&as, ",\"edits\":[{\"old_str\":\"aa\",\"new_str\":\"b\"}]"),
               "EDIT_AMBIGUOUS", 422);
    expect_content(*state, &page, "one\ntwo\n two three\n");
    expect_member(*state, &page, "", "metadata.version", "1");
    fails_only(*state, "notebook_update",
               about(&page, ",\"edits\":[{\"old_str\":\"\",\"new_str\":\"b\"}]"),
               "INVALID_INPUT", 400);
}

static void test_one_kind_of_edit(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"# A\\n\"");
    fails_only(*state, "notebook_update", about(&page, ",\"content\":\"x\",\"append\":\"y\""),
               "INVALID_INPUT", 400);
    fails_only(
        *state, "notebook_update",
        about(&page, ",\"append\":\"x\",\"edits\":[{\"old_str\":\"A\",\"new_str\":\"\"}]"),
        "INVALID_INPUT", 400);
    fails_only(*state, "notebook_update", about(&page, ",\"section\":\"A\""), "INVALID_INPUT",
               400);
    fails_only(
        *state, "notebook_update",
        about(&page, ",\"section\":\"A\",\"edits\":[{\"old_str\":\"A\",\"new_str\":\"\"}]"),
        "INVALID_INPUT", 400);
}

static void expect_section_member(void *state, const char *member, const char *content,
                                  const char *section, const char *new_text, const char *want)
{
    char members[1024];
    (void)snprintf(members, sizeof(members), "\"title\":\"T\",\"content\":\"%s\"", content);
    struct entry page = make(state, "pages", members);
    (void)snprintf(members, sizeof(members), ",\"section\":\"%s\",\"%s\":\"%s\"", section,
                   member, new_text);
    update(state, &page, members);
    expect_content(state, &page, want);
}

static void expect_section_edit(void *state, const char *content, const char *section,
                                const char *new_text, const char *want)
{
    expect_section_member(state, "content", content, section, new_text, want);
}

static void expect_section_append(void *state, const char *content, const char *section,
                                  const char *new_text, const char *want)
{
    expect_section_member(state, "append", content, section, new_text, want);
}

static void test_section_edits(void **state)
{
    expect_section_edit(*state, "# A\\n\\nold\\n\\n## B\\nb\\n\\n# C\\nc\\n", "A", "new",
                        "# A\n\nnew\n\n# C\nc\n");
    expect_section_edit(*state, "# A\\nold\\n# C\\n", "A", "new\\n", "# A\nnew\n\n# C\n");
    expect_section_edit(*state, "# A\\nold\\n\\n# C\\nc", "C", "new", "# A\nold\n\n# C\nnew");
    expect_section_edit(*state, "# A", "A", "new", "# A\nnew");
    expect_section_edit(*state, "# A\\n", "A", "new", "# A\nnew\n");
    expect_section_edit(*state, "# A\\n\\n# B\\n", "A", "new", "# A\nnew\n\n# B\n");
    expect_section_edit(*state, "# A\\nold\\n\\n# B\\n", "A", "", "# A\n\n# B\n");
    expect_section_edit(*state, "A\\n=\\nold\\n\\nB\\n=\\nb\\n", "A", "new",
                        "A\n=\nnew\n\nB\n=\nb\n");
    expect_section_edit(*state, "# A\\r\\nold\\r\\n# B\\r\\n", "A", "new",
                        "# A\r\nnew\r\n\r\n# B\r\n");
    expect_section_edit(*state, "# A\\r\\nold\\r\\n# B\\r\\n", "A", "1\\n2\\r\\n3",
                        "# A\r\n1\r\n2\r\n3\r\n\r\n# B\r\n");
    expect_section_edit(*state, "a\\nb\\n=\\nold\\n", "a b", "new", "a\nb\n=\nnew\n");
    expect_section_edit(*state, "# \\u00dcber\\nx\\n", "\\u00dcber", "y",
                        "# \xc3\x9c"
                        "ber\ny\n");
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"# A\\n```\\n# B\\n```\\n\"");
    struct answer none =
        fails(*state, "notebook_update", about(&page, ",\"section\":\"B\",\"content\":\"x\""),
              "SECTION_NOT_FOUND", 404);
    assert_string_equal(at(none.details, "headings"), "[\"A\"]");
    answer_free(&none);
}

/* Behind the last line of the section that is not blank, its sub-headings included. */
static void test_append_to_a_section(void **state)
{
    expect_section_append(*state, "# T\\n\\n## A\\n\\n- one\\n\\n## B\\nb\\n", "A", "- two",
                          "# T\n\n## A\n\n- one\n- two\n\n## B\nb\n");
    expect_section_append(*state, "## A\\n- one\\n\\n### Sub\\ns\\n\\n\\n## B", "## A", "x\\n",
                          "## A\n- one\n\n### Sub\ns\nx\n\n\n## B");
    expect_section_append(*state, "# A\\nold\\n# B\\n", "A", "new", "# A\nold\nnew\n# B\n");
    expect_section_append(*state, "# A\\nold\\nB\\n=\\n", "A", "new",
                          "# A\nnew\n\nold\nB\n=\n");
    expect_section_append(*state, "# A\\n- old\\n\\nB\\n=\\n", "A", "new",
                          "# A\n- old\nnew\n\nB\n=\n");
    expect_section_append(*state, "# A\\n```\\n# no\\n```\\nB\\n=\\n", "A", "new",
                          "# A\n```\n# no\n```\nnew\n\nB\n=\n");
    expect_section_append(*state, "# A\\n\\n# B\\n", "A", "new", "# A\nnew\n\n# B\n");
    expect_section_append(*state, "# A\\n# B\\n", "A", "new", "# A\nnew\n# B\n");
    expect_section_append(*state, "# B\\n\\n# A\\nold", "A", "new", "# B\n\n# A\nold\nnew");
    expect_section_append(*state, "# A\\nold\\n\\n", "A", "new", "# A\nold\nnew\n\n");
    expect_section_append(*state, "# A", "A", "new", "# A\nnew");
    expect_section_append(*state, "# A", "A", "", "# A");
    expect_section_append(*state, "# A\\r\\n1\\r\\n\\r\\n# B\\r\\n", "A", "2\\n3",
                          "# A\r\n1\r\n2\r\n3\r\n\r\n# B\r\n");
    expect_section_append(*state, "# A\\nx  ", "A", "\\ny", "# A\nx  \n\ny");
    expect_section_append(*state, "# \\u00dcber\\nx\\n", "\\u00dcber", "y",
                          "# \xc3\x9c"
                          "ber\nx\ny\n");
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"# A\\n\\n## B\\nb\\n# A\\n\"");
    update(*state, &page, ",\"section\":\"B\",\"append\":\"### C\\nc\"");
    expect_member(*state, &page, "", "sections.2.heading", "C");
    expect_member(*state, &page, "", "history.1.summary", "content appended to section 'B'");
    expect_member(*state, &page, "", "metadata.word_count", "10");
    struct answer none =
        fails(*state, "notebook_update", about(&page, ",\"section\":\"D\",\"append\":\"x\""),
              "SECTION_NOT_FOUND", 404);
    assert_string_equal(at(none.details, "headings"), "[\"A\",\"B\",\"C\",\"A\"]");
    answer_free(&none);
    fails_only(*state, "notebook_update", about(&page, ",\"section\":\"A\",\"append\":\"x\""),
               "EDIT_AMBIGUOUS", 422);
}

/* A content that begins with the heading of its section leaves it once. */
static void test_own_heading_stays_once(void **state)
{
    static const char page[] = "# T\\n\\n## Tasks\\n\\n- old\\n\\n## Next\\n";
    expect_section_edit(*state, page, "Tasks", "## Tasks\\n\\n- new",
                        "# T\n\n## Tasks\n\n- new\n\n## Next\n");
    expect_section_edit(*state, page, "Tasks", "\\n## Tasks ##\\n- new\\n",
                        "# T\n\n## Tasks\n\n- new\n\n## Next\n");
    expect_section_edit(*state, page, "## Tasks", "Tasks\\n-----\\n- new\\n",
                        "# T\n\n## Tasks\n\n- new\n\n## Next\n");
    expect_section_edit(*state, "# A\\nold\\n\\n# B\\n", "A", "# A", "# A\n\n# B\n");
    expect_section_edit(*state, "# A\\r\\nold", "A", "# A\\n\\nnew", "# A\r\n\r\nnew");
    expect_section_edit(*state, "# A", "A", "# A\\nnew", "# A\nnew");
    /* Another level, another text, or not at the beginning: it is content. */
    expect_section_edit(*state, page, "Tasks", "### Tasks\\n- new",
                        "# T\n\n## Tasks\n\n### Tasks\n- new\n\n## Next\n");
    expect_section_edit(*state, page, "Tasks", "## Other\\n- new",
                        "# T\n\n## Tasks\n\n## Other\n- new\n\n## Next\n");
    expect_section_edit(*state, page, "Tasks", "- new\\n\\n## Tasks",
                        "# T\n\n## Tasks\n\n- new\n\n## Tasks\n\n## Next\n");
}

static void test_a_section_that_is_there_twice(void **state)
{
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"# A\\n1\\n## A\\n2\\n\"");
    struct answer answer =
        fails(*state, "notebook_update", about(&page, ",\"section\":\"A\",\"content\":\"x\""),
              "EDIT_AMBIGUOUS", 422);
    assert_string_equal(answer.message, "the heading 'A' is in the entry more than once (lines "
                                        "1, 3); nothing was changed");
    assert_string_equal(at(answer.details, "lines.1.line"), "3");
    assert_string_equal(at(answer.details, "lines.1.text"), "## A");
    answer_free(&answer);
    expect_content(*state, &page, "# A\n1\n## A\n2\n");
    expect_member(*state, &page, ",\"section\":\"A\"", "lines.start", "1");
    page = make(*state, "pages",
                "\"title\":\"U\",\"content\":\"# A\\n1\\n## A\\n2\\n# B\\n3\\n\"");
    expect_member(*state, &page, ",\"section\":\"A\"", "lines.total", "5");
    expect_member(*state, &page, ",\"section\":\"A\"", "content", "# A\n1\n## A\n2\n");
}

/* White space in a heading of several lines is read once: with a square of it this would take
 * hours. */
static void test_a_heading_of_spaces(void **state)
{
    enum { SPACES = 1024 * 1024 };
    char *args = malloc(SPACES + 200);
    assert_non_null(args);
    int head =
        snprintf(args, 200, "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"a\\nx");
    memset(args + head, ' ', SPACES);
    (void)snprintf(args + head + SPACES, 100, "y\\n===\\nbelow\\n\"}");
    struct answer answer = go(*state, "notebook_create", args);
    assert_string_equal(at(answer.text, "version"), "1");
    answer_free(&answer);
    free(args);
}

/* Sentences name members as those of the gateway do, and count what they say they count. */
static void test_titles_count_characters(void **state)
{
    char title[2 * 501 + 1];
    char members[sizeof(title) + 100];
    for (size_t i = 0; i < sizeof(title) - 1; i++) {
        if (i % 2 == 0) {
            title[i] = '\xc3';
        } else {
            title[i] = '\xa9';
        }
    }
    title[sizeof(title) - 1] = '\0';
    (void)snprintf(members, sizeof(members),
                   "{\"collection\":\"pages\",\"title\":\"%s\",\"content\":\"\"}", title);
    struct answer answer = fails(*state, "notebook_create", members, "INVALID_INPUT", 400);
    assert_string_equal(answer.message, "`title`: expected at most 500 characters, got 501");
    assert_string_equal(at(answer.details, "violations.0.path"), "/title");
    answer_free(&answer);
    answer =
        fails(*state, "notebook_create",
              "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"\",\"tags\":[\"a,b\"]}",
              "INVALID_INPUT", 400);
    assert_non_null(strstr(answer.message, "`tags/0`: expected a tag without a comma"));
    answer_free(&answer);
}

/* An append begins a line, and adds none where one has begun. */
static void test_append_begins_a_line(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    static const char *const appended[] = {"one", "two\\n", "three", "\\nfour", "", "five six"};
    for (size_t i = 0; i < NG_COUNT(appended); i++) {
        char members[64];
        (void)snprintf(members, sizeof(members), ",\"append\":\"%s\"", appended[i]);
        update(*state, &page, members);
    }
    expect_content(*state, &page, "one\ntwo\nthree\nfour\nfive six");
    expect_member(*state, &page, "", "metadata.word_count", "6");
    update(*state, &page, ",\"append\":\"# Head\"");
    expect_member(*state, &page, "", "sections.0.heading", "Head");
    update(*state, &page, ",\"append\":\"below\"");
    expect_member(*state, &page, "", "sections.0.content", "below");
}

/* With the line ends of the entry. */
static void test_append_to_dos_lines(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"a\\r\\nb\"");
    update(*state, &page, ",\"append\":\"c\\nd\\n\"");
    expect_content(*state, &page, "a\r\nb\r\nc\r\nd\r\n");
    update(*state, &page, ",\"append\":\"e\\r\\n# F\\n\"");
    expect_content(*state, &page, "a\r\nb\r\nc\r\nd\r\ne\r\n# F\r\n");
    expect_member(*state, &page, "", "sections.0.heading", "F");
    expect_member(*state, &page, "", "metadata.word_count", "7");
    page = make(*state, "pages", "\"title\":\"U\",\"content\":\"a\\r\\nb\\n\"");
    update(*state, &page, ",\"append\":\"c\\nd\"");
    expect_content(*state, &page, "a\r\nb\nc\nd");
    page = make(*state, "pages", "\"title\":\"V\",\"content\":\"a\\r\\nb\"");
    update(*state, &page, ",\"append\":\"\\r\\nc\"");
    expect_content(*state, &page, "a\r\nb\r\nc");
}

static void test_sections_follow(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"# A\\ntext\"");
    update(*state, &page, ",\"append\":\" more\\n\"");
    expect_member(*state, &page, "", "sections.0.heading", "A");
    update(*state, &page, ",\"append\":\"plain\\n- item\\n\"");
    expect_member(*state, &page, "", "sections.1.heading", "none");
    expect_member(*state, &page, "", "metadata.word_count", "7");
    update(*state, &page, ",\"append\":\"\\n## B\\n\"");
    expect_member(*state, &page, "", "sections.1.heading", "B");
    update(*state, &page, ",\"content\":\"two\\nlines\\n===\\n\"");
    expect_member(*state, &page, "", "sections.0.heading", "two lines");
    expect_member(*state, &page, ",\"section\":\"two lines\"", "section", "two lines");
    update(*state, &page, ",\"sections\":[{\"heading\":\"Mine\",\"content\":\"c\"}]");
    update(*state, &page, ",\"content\":\"# Z\\n\"");
    expect_member(*state, &page, "", "sections", "[{\"heading\":\"Mine\",\"content\":\"c\"}]");
    update(*state, &page, ",\"sections\":[]");
    expect_member(*state, &page, "", "sections.0.heading", "Z");
}

/* A derived section has the text up to the next heading of any level; code blocks hold none. */
static void test_sections_have_content(void **state)
{
    struct entry page =
        make(*state, "pages",
             "\"title\":\"T\",\"content\":\"before\\n\\n# A\\n\\none\\n\\ntwo\\n\\n## B\\n"
             "```\\n# no\\n```\\nC\\n---\\n\"");
    expect_member(*state, &page, "", "sections",
                  "[{\"heading\":\"A\",\"level\":1,\"content\":\"one\\n\\ntwo\"},"
                  "{\"heading\":\"B\",\"level\":2,\"content\":\"```\\n# no\\n```\"},"
                  "{\"heading\":\"C\",\"level\":2,\"content\":\"\"}]");
    update(*state, &page, ",\"append\":\"last\\n\"");
    expect_member(*state, &page, "", "sections.2.content", "last");
    expect_member(*state, &page, ",\"version\":1", "sections.2.content", "");
    expect_member(*state, &page, ",\"section\":\"A\"", "sections", "none");
}

/* Over half of an answer the headings stay, without their texts. */
static void test_sections_of_a_long_page(void **state)
{
    enum { TEXT = 40 * 1024 }; /* an answer has no room for it twice */
    char *args = malloc(TEXT + 200);
    assert_non_null(args);
    int head =
        snprintf(args, 200, "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"# A\\n");
    memset(args + head, 'x', TEXT);
    (void)snprintf(args + head + TEXT, 100, "\"}");
    struct answer made = go(*state, "notebook_create", args);
    struct entry page = {.collection = "pages"};
    (void)snprintf(page.id, sizeof(page.id), "%s", at(made.text, "notebook_id"));
    expect_member(*state, &page, "", "sections", "[{\"heading\":\"A\",\"level\":1}]");
    answer_free(&made);
    free(args);
}

/* ---- titles ---- */

static int write_nameless(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    struct ng_str text = ng_str_of("text");
    (void)present;
    (void)user;
    assert_int_equal(call->host->draft_text(next, &text, 1), NG_OK);
    return call->host->draft_json(next, ng_str_of("{\"title\":\"\",\"metadata\":{}}"));
}

/* Earlier versions stored such entries: these can still be read, changed and restored. */
static void test_a_title_is_given(void **state)
{
    struct harness *harness = *state;
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    struct answer answer = fails(*state, "notebook_create",
                                 "{\"collection\":\"pages\",\"title\":\"\",\"content\":\"c\"}",
                                 "INVALID_INPUT", 400);
    assert_string_equal(
        answer.message,
        "`title`: expected at least one character that is not white space, got none");
    answer_free(&answer);
    fails_only(*state, "notebook_create",
               "{\"collection\":\"pages\",\"title\":\" \\t\\u3000\",\"content\":\"c\"}",
               "INVALID_INPUT", 400);
    fails_only(*state, "notebook_update", about(&page, ",\"title\":\"\""), "INVALID_INPUT",
               400);
    expect_member(*state, &page, "", "title", "T");
    struct entry old = {.id = "abc123abc123", .collection = "pages"};
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of(old.id)},
        .fn = write_nameless,
    };
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
    expect_member(*state, &old, "", "title", "");
    update(*state, &old, ",\"append\":\" more\"");
    update(*state, &old, ",\"title\":\"Named\"");
    answer = go(*state, "notebook_restore", about(&old, ",\"version\":1"));
    answer_free(&answer);
    expect_member(*state, &old, "", "title", "");
    expect_content(*state, &old, "text");
}

/* ---- many at once, and a restart ---- */

#define WRITERS 8
#define APPENDS 25

struct writer {
    pthread_t thread;
    struct harness *harness;
    const struct entry *entry;
    int number;
    int failed;
};

static void *write_lines(void *user)
{
    struct writer *writer = user;
    char args[256];
    char about_args[256];
    (void)snprintf(about_args, sizeof(about_args),
                   "{\"notebook_id\":\"%s\",\"collection\":\"%s\"}", writer->entry->id,
                   writer->entry->collection);
    for (int i = 0; i < APPENDS; i++) {
        (void)snprintf(args, sizeof(args),
                       "{\"notebook_id\":\"%s\",\"collection\":\"%s\",\"append\":\"%d-%d\\n\"}",
                       writer->entry->id, writer->entry->collection, writer->number, i);
        struct answer answer = harness_call(writer->harness, "notebook_update", args);
        writer->failed += answer.rc != NG_OK;
        answer_free(&answer);
        answer = harness_call(writer->harness, "notebook_read", about_args);
        writer->failed += answer.rc != NG_OK;
        answer_free(&answer);
    }
    return NULL;
}

static void test_no_update_is_lost(void **state)
{
    struct writer writers[WRITERS];
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.harness = *state, .entry = &page, .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    struct answer history = go(*state, "notebook_history", about(&page, ",\"limit\":1000"));
    assert_string_equal(at(history.text, "total"), "201");
    answer_free(&history);
    expect_member(*state, &page, "", "metadata.version", "201");
    expect_member(*state, &page, "", "metadata.word_count", "200");
    struct answer read = go(*state, "notebook_read", about(&page, ""));
    for (int i = 0; i < WRITERS * APPENDS; i++) {
        char line[32];
        (void)snprintf(line, sizeof(line), "%d-%d\\n", i / APPENDS, i % APPENDS);
        assert_non_null(strstr(read.text, line));
    }
    answer_free(&read);
}

static void test_restart(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\n\"");
    update(*state, &page, ",\"append\":\"two\\n\"");
    harness_reopen(*state);
    expect_content(*state, &page, "one\ntwo\n");
    expect_member(*state, &page, ",\"version\":1", "content", "one\n");
    update(*state, &page, ",\"summary\":\"given\"");
    harness_reopen(*state);
    update(*state, &page, ",\"append\":\"three\\n\"");
    expect_member(*state, &page, "", "summary", "given");
    expect_list(*state, "notebook_search", "{\"query\":\"three\"}", "T", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_update_members),
        WITH(test_update_by_another),
        WITH(test_expected_version),
        WITH(test_edits),
        WITH(test_edits_lines),
        WITH(test_edits_all_or_none),
        WITH(test_one_kind_of_edit),
        WITH(test_append_to_a_section),
        WITH(test_section_edits),
        WITH(test_a_section_that_is_there_twice),
        WITH(test_a_heading_of_spaces),
        WITH(test_titles_count_characters),
        WITH(test_append_begins_a_line),
        WITH(test_append_to_dos_lines),
        WITH(test_own_heading_stays_once),
        WITH(test_sections_follow),
        WITH(test_sections_have_content),
        WITH(test_sections_of_a_long_page),
        WITH(test_a_title_is_given),
        WITH_SQLITE(test_no_update_is_lost),
        WITH_SQLITE(test_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
