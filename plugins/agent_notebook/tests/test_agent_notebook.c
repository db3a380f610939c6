/* SPDX-License-Identifier: MIT */
/* test_agent_notebook.c - creating and reading entries: members, bounds, summaries, parts.
 */
#include "test_agent_notebook_rig.h"

#include <stdio.h>
#include <string.h>

static const char *const small_sets[] = {
    "plugins=agent_notebook",      "documents=memory",          "agent_notebook.max_size=64",
    "agent_notebook.max_title=10", "agent_notebook.max_tags=2", NULL};

static int setup_small(void **state)
{
    return open_with(state, small_sets);
}

/* ---- create and read ---- */

static void test_create_answers(void **state)
{
    struct answer made = go(*state, "notebook_create",
                            "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"# H\\n\\n"
                            "a b\",\"tags\":[\"x\",\"y\"]}");
    assert_string_equal(at(made.text, "title"), "T");
    assert_string_equal(at(made.text, "collection"), "pages");
    assert_string_equal(at(made.text, "status"), "created");
    assert_string_equal(at(made.text, "version"), "1");
    assert_int_equal(strlen(at(made.text, "notebook_id")), 12);
    assert_int_equal(made.revision, 1);
    answer_free(&made);
}

static void test_read_answers(void **state)
{
    struct entry page = make(*state, "pages",
                             "\"title\":\"T\",\"content\":\"# H\\n\\na b\\n## I\\n\",\"tags\":["
                             "\"x\",\"y\"]");
    struct answer read = go(*state, "notebook_read", about(&page, ""));
    assert_string_equal(at(read.text, "_id"), page.id);
    assert_string_equal(at(read.text, "notebook_id"), page.id);
    assert_string_equal(at(read.text, "collection"), "pages");
    assert_string_equal(at(read.text, "collection_type"), "pages");
    assert_string_equal(at(read.text, "content"), "# H\n\na b\n## I\n");
    assert_string_equal(at(read.text, "code"), "none");
    assert_string_equal(at(read.text, "summary"), "# H\n\na b\n## I");
    assert_string_equal(at(read.text, "sections"),
                        "[{\"heading\":\"H\",\"level\":1,\"content\":\"a b\"},"
                        "{\"heading\":\"I\",\"level\":2,\"content\":\"\"}]");
    assert_string_equal(at(read.text, "metadata.created_by"), "agent:local");
    assert_string_equal(at(read.text, "metadata.version"), "1");
    assert_string_equal(at(read.text, "metadata.tags"), "[\"x\",\"y\"]");
    assert_string_equal(at(read.text, "metadata.word_count"), "6");
    assert_string_equal(at(read.text, "metadata.status"), "draft");
    assert_string_equal(at(read.text, "history.0.version"), "1");
    assert_string_equal(at(read.text, "history.0.summary"), "Created");
    assert_string_equal(at(read.text, "history.0.changed_by"), "agent:local");
    assert_string_equal(at(read.text, "metadata.created_at"),
                        at(read.text, "metadata.updated_at"));
    const char *time = at(read.text, "metadata.created_at");
    assert_int_equal(strlen(time), strlen("2026-02-16T10:30:00.000Z"));
    assert_int_equal(time[10], 'T');
    assert_int_equal(time[23], 'Z');
    assert_string_equal(at(read.text, "summary_given"), "none");
    answer_free(&read);
}

static void test_own_members(void **state)
{
    struct entry code = make(*state, "code_snippets",
                             "\"title\":\"T\",\"content\":\"x = 1\\n\",\"language\":\"python\","
                             "\"description\":\"D\",\"related_page\":\"p\"");
    struct answer read = go(*state, "notebook_read", about(&code, ""));
    assert_string_equal(at(read.text, "code"), "x = 1\n");
    assert_string_equal(at(read.text, "content"), "x = 1\n");
    assert_string_equal(at(read.text, "language"), "python");
    assert_string_equal(at(read.text, "description"), "D");
    assert_string_equal(at(read.text, "metadata.related_page"), "p");
    assert_string_equal(at(read.text, "sections"), "none");
    answer_free(&read);
    struct entry note =
        make(*state, "research_notes",
             "\"title\":\"T\",\"content\":\"c\",\"source_url\":\"https://example.org\","
             "\"key_findings\":[\"one\",\"two\"],\"confidence\":0.5,\"related_pages\":[\"p\"],"
             "\"status\":\"complete\"");
    update(*state, &note, ",\"confidence\":0.75");
    read = go(*state, "notebook_read", about(&note, ""));
    assert_string_equal(at(read.text, "source_url"), "https://example.org");
    assert_string_equal(at(read.text, "key_findings"), "[\"one\",\"two\"]");
    assert_string_equal(at(read.text, "metadata.confidence"), "0.75");
    assert_string_equal(at(read.text, "metadata.related_pages"), "[\"p\"]");
    assert_string_equal(at(read.text, "metadata.status"), "complete");
    assert_string_equal(at(read.text, "history.1.summary"), "confidence updated");
    answer_free(&read);
    fails_only(
        *state, "notebook_create",
        "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"c\",\"language\":\"c\"}",
        "INVALID_INPUT", 400);
    fails_only(*state, "notebook_update", about(&note, ",\"sections\":[]"), "INVALID_INPUT",
               400);
    fails_only(*state, "notebook_create",
               "{\"collection\":\"research_notes\",\"title\":\"T\",\"content\":\"c\","
               "\"confidence\":1.5}",
               "INVALID_INPUT", 400);
}

static void test_odd_contents(void **state)
{
    struct entry empty = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    struct answer read = go(*state, "notebook_read", about(&empty, ""));
    assert_string_equal(at(read.text, "content"), "");
    assert_string_equal(at(read.text, "summary"), "");
    assert_string_equal(at(read.text, "metadata.word_count"), "0");
    assert_string_equal(at(read.text, "sections"), "[]");
    answer_free(&read);
    update(*state, &empty, ",\"append\":\"\\u0000\\r\\n\\ud83d\\ude00\"");
    read = go(*state, "notebook_read", about(&empty, ""));
    assert_non_null(strstr(read.text, "\"content\":\"\\u0000\\r\\n\xf0\x9f\x98\x80\""));
    answer_free(&read);
}

static void test_bad_input(void **state)
{
    struct answer wrong =
        fails(*state, "notebook_read", "{\"notebook_id\":\"x\",\"collection\":\"page\"}",
              "INVALID_INPUT", 400);
    assert_non_null(strstr(wrong.message, "pages"));
    assert_non_null(strstr(wrong.message, "code_snippets"));
    assert_non_null(strstr(wrong.message, "research_notes"));
    answer_free(&wrong);
    wrong = fails(*state, "notebook_create",
                  "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"c\",\"tags\":[\"a\","
                  "\"b,c\"]}",
                  "INVALID_INPUT", 400);
    assert_string_equal(at(wrong.details, "violations.0.path"), "/tags/1");
    assert_string_equal(at(wrong.details, "violations.0.got"), "b,c");
    answer_free(&wrong);
    fails_only(*state, "notebook_create", "{\"collection\":\"pages\",\"title\":\"T\"}",
               "INVALID_INPUT", 400);
    fails_only(
        *state, "notebook_create",
        "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"c\",\"status\":\"new\"}",
        "INVALID_INPUT", 400);
    fails_only(*state, "notebook_create",
               "{\"collection\":\"pages\",\"title\":\"T\",\"content\":\"c\",\"created_by\":"
               "\"agent:other\"}",
               "INVALID_INPUT", 400);
}

static void test_not_found(void **state)
{
    static const struct {
        const char *tool;
        const char *more;
    } calls[] = {
        {"notebook_read", ""},
        {"notebook_read", ",\"version\":3"},
        {"notebook_update", ",\"title\":\"x\""},
        {"notebook_delete", ""},
        {"notebook_history", ""},
        {"notebook_diff", ",\"from\":1"},
        {"notebook_restore", ",\"version\":1"},
    };
    struct entry none = {"nope", "pages"};
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        struct answer answer =
            fails(*state, calls[i].tool, about(&none, calls[i].more), "ENTRY_NOT_FOUND", 404);
        assert_string_equal(answer.details,
                            "{\"notebook_id\":\"nope\",\"status\":\"not_found\"}");
        answer_free(&answer);
    }
    /* An id is in one collection only. */
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"c\"");
    (void)snprintf(page.collection, sizeof(page.collection), "code_snippets");
    fails_only(*state, "notebook_read", about(&page, ""), "ENTRY_NOT_FOUND", 404);
}

static void test_sizes(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"0123456789\",\"content\":\"c\"");
    struct answer large = fails(
        *state, "notebook_update",
        about(&page, ",\"append\":\"0123456789012345678901234567890123456789012345678901234567"
                     "890123\\n\""),
        "TOO_LARGE", 413);
    assert_string_equal(at(large.details, "size"), "67");
    assert_string_equal(at(large.details, "limit"), "64");
    assert_non_null(strstr(large.message, "67"));
    assert_non_null(strstr(large.message, "64"));
    answer_free(&large);
    expect_content(*state, &page, "c");
    fails_only(*state, "notebook_update", about(&page, ",\"title\":\"01234567890\""),
               "INVALID_INPUT", 400);
    fails_only(*state, "notebook_update", about(&page, ",\"tags\":[\"a\",\"b\",\"c\"]"),
               "INVALID_INPUT", 400);
    expect_member(*state, &page, "", "metadata.version", "1");
}

/* ---- summaries ---- */

static void make_long(char *text, const char *piece, size_t count)
{
    text[0] = '\0';
    size_t len = strlen(piece);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, piece, len + 1);
    }
}

static void test_made_summaries(void **state)
{
    char content[4096];
    char members[5000];
    char want[5000];
    make_long(content, "\xc3\xa9", 200);
    (void)snprintf(members, sizeof(members), "\"title\":\"T\",\"content\":\"%s\"", content);
    struct entry exact = make(*state, "pages", members);
    expect_member(*state, &exact, "", "summary", content);
    /* One character more: cut on a character, and told so. */
    update(*state, &exact, ",\"append\":\"x\"");
    (void)snprintf(want, sizeof(want), "%s...", content);
    expect_member(*state, &exact, "", "summary", want);
    /* A generated one is generated again, a given one stays. */
    update(*state, &exact, ",\"content\":\"new\"");
    expect_member(*state, &exact, "", "summary", "new");
    update(*state, &exact, ",\"summary\":\"mine\"");
    update(*state, &exact, ",\"content\":\"other\"");
    expect_member(*state, &exact, "", "summary", "mine");
    update(*state, &exact, ",\"summary\":\"\"");
    expect_member(*state, &exact, "", "summary", "other");
    update(*state, &exact, ",\"append\":\"words\"");
    expect_member(*state, &exact, "", "summary", "other\nwords");
    update(*state, &exact, ",\"title\":\"only\"");
    expect_member(*state, &exact, "", "summary", "other\nwords");
    /* Space where it is cut goes. */
    make_long(content, "a", 199);
    (void)snprintf(members, sizeof(members), "\"title\":\"T\",\"content\":\"%s \\nb\"",
                   content);
    struct entry spaced = make(*state, "research_notes", members);
    (void)snprintf(want, sizeof(want), "%s...", content);
    expect_member(*state, &spaced, "", "summary", want);
}

/* ---- parts of a text ---- */

static void test_read_parts(void **state)
{
    struct entry page = make(
        *state, "pages", "\"title\":\"T\",\"content\":\"# A\\na\\n## B\\nb1\\nb2\\n# C\\nc\"");
    expect_member(*state, &page, ",\"section\":\"B\"", "content", "## B\nb1\nb2\n");
    expect_member(*state, &page, ",\"section\":\"B\"", "section", "B");
    expect_member(*state, &page, ",\"section\":\"B\",\"start_line\":2,\"max_lines\":1",
                  "content", "b1\n");
    expect_member(*state, &page, ",\"start_line\":6", "content", "# C\nc");
    expect_member(*state, &page, ",\"start_line\":6", "lines",
                  "{\"start\":6,\"count\":2,\"total\":7}");
    expect_member(*state, &page, ",\"max_lines\":2", "content", "# A\na\n");
    expect_member(*state, &page, ",\"start_line\":8", "content", "");
    expect_member(*state, &page, ",\"start_line\":8", "lines.count", "0");
    expect_member(*state, &page, ",\"max_lines\":2", "history", "none");
    expect_member(*state, &page, "", "lines", "none");
    fails_only(*state, "notebook_read", about(&page, ",\"section\":\"D\""), "SECTION_NOT_FOUND",
               404);
    fails_only(*state, "notebook_read", about(&page, ",\"start_line\":0"), "INVALID_INPUT",
               400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_create_answers),
        WITH(test_read_answers),
        WITH(test_own_members),
        WITH(test_odd_contents),
        WITH(test_bad_input),
        WITH(test_not_found),
        cmocka_unit_test_setup_teardown(test_sizes, setup_small, teardown),
        WITH(test_made_summaries),
        WITH(test_read_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
