/* SPDX-License-Identifier: MIT */
/* test_agent_notebook.c - the notebook tools through a whole gateway: every answer and error,
 * summaries, versions, lists and searches, many writers at once, restart. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "json.h"
#include "store.h"
#include "str.h"

static const char *const sqlite_sets[] = {"plugins=agent_notebook", "documents=sqlite", NULL};
static const char *const memory_sets[] = {"plugins=agent_notebook", "documents=memory", NULL};
static const char *const small_sets[] = {
    "plugins=agent_notebook",      "documents=memory",          "agent_notebook.max_size=64",
    "agent_notebook.max_title=10", "agent_notebook.max_tags=2", NULL};

static int open_with(void **state, const char *const *sets)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    *state = harness;
    return 0;
}

static int setup(void **state)
{
    return open_with(state, memory_sets);
}

static int setup_sqlite(void **state)
{
    return open_with(state, sqlite_sets);
}

static int setup_small(void **state)
{
    return open_with(state, small_sets);
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

/* ---- helpers ---- */

/* The value at a path as "metadata.tags.0" in a JSON text: a string bare, else as JSON; "none":
 * there is none. In one of a few static places. */
static const char *at(const char *json, const char *path)
{
    static char places[8][8192];
    static unsigned next;
    char *place = places[next++ % NG_COUNT(places)];
    struct arena arena;
    struct json_error error;
    struct buf buf;
    const struct ng_value *value = NULL;
    arena_init(&arena, (size_t)64 * 1024 * 1024);
    assert_int_equal(json_parse(&arena, ng_str_of(json), 64, &value, &error), NG_OK);
    while (*path != '\0' && value != NULL) {
        size_t len = strcspn(path, ".");
        if (value->type == NG_TYPE_ARRAY) {
            size_t index = strtoul(path, NULL, 10);
            for (value = value->first; value != NULL && index > 0; index--) {
                value = value->next;
            }
        } else {
            value =
                value->type != NG_TYPE_OBJECT ? NULL : json_get_str(value, str_make(path, len));
        }
        path += len + (path[len] == '.' ? 1 : 0);
    }
    buf_init(&buf, (size_t)64 * 1024 * 1024);
    if (value == NULL) {
        buf_add_c(&buf, "none");
    } else if (value->type == NG_TYPE_STRING) {
        buf_add_str(&buf, value->text);
    } else {
        assert_int_equal(json_print(&buf, value), NG_OK);
    }
    (void)snprintf(place, sizeof(places[0]), "%s", buf_cstr(&buf));
    buf_done(&buf);
    arena_done(&arena);
    return place;
}

static struct answer go(void *state, const char *tool, const char *args)
{
    struct answer answer = harness_call(state, tool, args);
    if (answer.rc != NG_OK) {
        print_message("%s %s: %s %s\n", tool, args, answer.code, answer.message);
    }
    assert_int_equal(answer.rc, NG_OK);
    assert_true(answer.is_json);
    return answer;
}

static struct answer fails(void *state, const char *tool, const char *args, const char *code,
                           int status)
{
    struct answer answer = harness_call(state, tool, args);
    assert_string_equal(answer.code, code);
    assert_int_equal(answer.status, status);
    return answer;
}

static void fails_only(void *state, const char *tool, const char *args, const char *code,
                       int status)
{
    struct answer answer = fails(state, tool, args, code, status);
    answer_free(&answer);
}

struct entry {
    char id[64];
    char collection[32];
};

/* Makes an entry from the members behind collection. */
static struct entry make(void *state, const char *collection, const char *members)
{
    struct entry entry;
    char args[8192];
    (void)snprintf(args, sizeof(args), "{\"collection\":\"%s\",%s}", collection, members);
    struct answer made = go(state, "notebook_create", args);
    (void)snprintf(entry.id, sizeof(entry.id), "%s", at(made.text, "notebook_id"));
    (void)snprintf(entry.collection, sizeof(entry.collection), "%s", collection);
    answer_free(&made);
    return entry;
}

/* The arguments of a call about an entry; `more` begins with a comma, or is "". */
static const char *about(const struct entry *entry, const char *more)
{
    static char args[1 << 16];
    (void)snprintf(args, sizeof(args), "{\"notebook_id\":\"%s\",\"collection\":\"%s\"%s}",
                   entry->id, entry->collection, more);
    return args;
}

static void update(void *state, const struct entry *entry, const char *more)
{
    struct answer answer = go(state, "notebook_update", about(entry, more));
    assert_string_equal(at(answer.text, "status"), "updated");
    answer_free(&answer);
}

/* Reads and compares one member. */
static void expect_member(void *state, const struct entry *entry, const char *more,
                          const char *path, const char *want)
{
    struct answer answer = go(state, "notebook_read", about(entry, more));
    assert_string_equal(at(answer.text, path), want);
    answer_free(&answer);
}

static void expect_content(void *state, const struct entry *entry, const char *want)
{
    expect_member(state, entry, "", "content", want);
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
                        "[{\"heading\":\"H\",\"level\":1},{\"heading\":\"I\",\"level\":2}]");
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
    struct entry empty = make(*state, "pages", "\"title\":\"\",\"content\":\"\"");
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
    assert_string_equal(at(large.details, "size"), "66");
    assert_string_equal(at(large.details, "limit"), "64");
    assert_non_null(strstr(large.message, "66"));
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
    /* A made one is made anew, a given one stays. */
    update(*state, &exact, ",\"content\":\"new\"");
    expect_member(*state, &exact, "", "summary", "new");
    update(*state, &exact, ",\"summary\":\"mine\"");
    update(*state, &exact, ",\"content\":\"other\"");
    expect_member(*state, &exact, "", "summary", "mine");
    update(*state, &exact, ",\"summary\":\"\"");
    expect_member(*state, &exact, "", "summary", "other");
    update(*state, &exact, ",\"append\":\" words\"");
    expect_member(*state, &exact, "", "summary", "other words");
    update(*state, &exact, ",\"title\":\"only\"");
    expect_member(*state, &exact, "", "summary", "other words");
    /* Space where it is cut goes, as with the brief's code. */
    make_long(content, "a", 199);
    (void)snprintf(members, sizeof(members), "\"title\":\"T\",\"content\":\"%s \\nb\"",
                   content);
    struct entry spaced = make(*state, "research_notes", members);
    (void)snprintf(want, sizeof(want), "%s...", content);
    expect_member(*state, &spaced, "", "summary", want);
}

/* ---- updates ---- */

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
    expect_content(*state, &page, "ab");
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
    expect_content(*state, &page, "ab");
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
    fails_only(*state, "notebook_update", about(&page, ",\"section\":\"A\",\"append\":\"y\""),
               "INVALID_INPUT", 400);
}

static void expect_section_edit(void *state, const char *content, const char *section,
                                const char *new_text, const char *want)
{
    char members[1024];
    (void)snprintf(members, sizeof(members), "\"title\":\"T\",\"content\":\"%s\"", content);
    struct entry page = make(state, "pages", members);
    (void)snprintf(members, sizeof(members), ",\"section\":\"%s\",\"content\":\"%s\"", section,
                   new_text);
    update(state, &page, members);
    expect_content(state, &page, want);
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
    expect_section_edit(*state, "# A\\n1\\n# A\\n2\\n", "A", "new", "# A\nnew\n\n# A\n2\n");
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
    update(*state, &page, ",\"sections\":[{\"heading\":\"Mine\",\"content\":\"c\"}]");
    update(*state, &page, ",\"content\":\"# Z\\n\"");
    expect_member(*state, &page, "", "sections", "[{\"heading\":\"Mine\",\"content\":\"c\"}]");
    update(*state, &page, ",\"sections\":[]");
    expect_member(*state, &page, "", "sections.0.heading", "Z");
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

/* ---- versions ---- */

static void test_versions(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\n\"");
    update(*state, &page, ",\"append\":\"two\\n\"");
    update(*state, &page, ",\"content\":\"three\\n\",\"title\":\"U\"");
    expect_member(*state, &page, ",\"version\":1", "content", "one\n");
    expect_member(*state, &page, ",\"version\":2", "metadata.version", "2");
    expect_member(*state, &page, ",\"version\":3", "content", "three\n");
    fails_only(*state, "notebook_read", about(&page, ",\"version\":9"), "VERSION_NOT_FOUND",
               404);
    struct answer history = go(*state, "notebook_history", about(&page, ",\"limit\":2"));
    assert_string_equal(at(history.text, "history.0.version"), "3");
    assert_string_equal(at(history.text, "history.1.version"), "2");
    assert_string_equal(at(history.text, "history.1.summary"), "content appended");
    assert_string_equal(at(history.text, "history.1.changed_by"), "agent:local");
    assert_string_equal(at(history.text, "history.2"), "none");
    assert_string_equal(at(history.text, "total"), "3");
    assert_string_equal(at(history.text, "has_more"), "true");
    answer_free(&history);
    history = go(*state, "notebook_history", about(&page, ",\"limit\":2,\"offset\":2"));
    assert_string_equal(at(history.text, "history.0.action"), "created");
    assert_string_equal(at(history.text, "has_more"), "false");
    answer_free(&history);
    struct answer diff = go(*state, "notebook_diff", about(&page, ",\"from\":1,\"to\":2"));
    char want[256];
    (void)snprintf(want, sizeof(want),
                   "--- pages/%s@1\n+++ pages/%s@2\n@@ -1 +1,2 @@\n one\n+two\n", page.id,
                   page.id);
    assert_string_equal(at(diff.text, "diff"), want);
    assert_string_equal(at(diff.text, "lines_added"), "1");
    assert_string_equal(at(diff.text, "changed"), "[\"summary\"]");
    answer_free(&diff);
    diff = go(*state, "notebook_diff", about(&page, ",\"from\":3"));
    assert_string_equal(at(diff.text, "diff"), "");
    assert_string_equal(at(diff.text, "changed"), "[]");
    answer_free(&diff);
    fails_only(*state, "notebook_diff", about(&page, ",\"from\":1,\"to\":7"),
               "VERSION_NOT_FOUND", 404);
}

static void test_restore(void **state)
{
    struct entry page =
        make(*state, "pages", "\"title\":\"T\",\"content\":\"# one\\n\",\"tags\":[\"a\"]");
    update(*state, &page, ",\"content\":\"two\",\"title\":\"U\",\"tags\":[],\"summary\":\"S\"");
    struct answer back = go(*state, "notebook_restore", about(&page, ",\"version\":1"));
    assert_string_equal(at(back.text, "version"), "3");
    assert_string_equal(at(back.text, "restored_from"), "1");
    assert_int_equal(back.revision, 3);
    answer_free(&back);
    struct answer read = go(*state, "notebook_read", about(&page, ""));
    assert_string_equal(at(read.text, "title"), "T");
    assert_string_equal(at(read.text, "content"), "# one\n");
    assert_string_equal(at(read.text, "summary"), "# one");
    assert_string_equal(at(read.text, "metadata.tags"), "[\"a\"]");
    assert_string_equal(at(read.text, "metadata.version"), "3");
    assert_string_equal(at(read.text, "history.1.version"), "2");
    assert_string_equal(at(read.text, "history.2.summary"), "restored from version 1");
    assert_string_equal(at(read.text, "sections.0.heading"), "one");
    answer_free(&read);
    fails_only(*state, "notebook_restore", about(&page, ",\"version\":8"), "VERSION_NOT_FOUND",
               404);
}

static void test_delete_and_back(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\n\"");
    update(*state, &page, ",\"append\":\"two\\n\"");
    struct answer gone = go(*state, "notebook_delete", about(&page, ""));
    assert_string_equal(at(gone.text, "notebook_id"), page.id);
    assert_string_equal(at(gone.text, "status"), "deleted");
    answer_free(&gone);
    struct answer read =
        fails(*state, "notebook_read", about(&page, ""), "ENTRY_NOT_FOUND", 404);
    assert_non_null(strstr(read.hint, "notebook_restore"));
    assert_non_null(strstr(read.hint, "version 2"));
    answer_free(&read);
    fails_only(*state, "notebook_delete", about(&page, ""), "ENTRY_NOT_FOUND", 404);
    fails_only(*state, "notebook_update", about(&page, ",\"append\":\"x\""), "ENTRY_NOT_FOUND",
               404);
    struct answer list = go(*state, "notebook_list", "{}");
    assert_string_equal(at(list.text, "total"), "0");
    answer_free(&list);
    struct answer history = go(*state, "notebook_history", about(&page, ""));
    assert_string_equal(at(history.text, "deleted"), "true");
    assert_string_equal(at(history.text, "history.0.action"), "deleted");
    assert_string_equal(at(history.text, "history.1.summary"), "content appended");
    answer_free(&history);
    struct answer diff = go(*state, "notebook_diff", about(&page, ",\"from\":1"));
    assert_string_equal(at(diff.text, "to"), "2");
    answer_free(&diff);
    fails_only(*state, "notebook_restore", about(&page, ",\"version\":3"), "VERSION_NOT_FOUND",
               404);
    struct answer back = go(*state, "notebook_restore", about(&page, ",\"version\":2"));
    assert_string_equal(at(back.text, "version"), "4");
    answer_free(&back);
    expect_content(*state, &page, "one\ntwo\n");
    expect_member(*state, &page, "", "history.0.summary", "Created");
    expect_member(*state, &page, "", "history.2.version", "4");
}

static void test_history_is_light(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    for (int i = 0; i < 120; i++) {
        update(*state, &page, ",\"append\":\"x\\n\"");
    }
    expect_member(*state, &page, "", "history.0.version", "22");
    expect_member(*state, &page, "", "history.99.version", "121");
    expect_member(*state, &page, "", "history.100", "none");
    expect_member(*state, &page, "", "metadata.word_count", "120");
    struct answer history =
        go(*state, "notebook_history", about(&page, ",\"limit\":1,\"offset\":120"));
    assert_string_equal(at(history.text, "total"), "121");
    assert_string_equal(at(history.text, "history.0.version"), "1");
    answer_free(&history);
}

static bool two_and_five(void *user, const struct ng_key *key, uint64_t revision)
{
    (void)user;
    (void)key;
    return revision == 2 || revision == 5;
}

/* Old versions are thinned out, but for two that are pinned: pages count what is kept. */
static void test_history_with_gaps(void **state)
{
    static const struct {
        const char *args, *versions, *more;
    } cases[] = {
        {",\"limit\":3", "11 10 9", "true"},
        {",\"limit\":3,\"offset\":2", "9 8 7", "true"},
        {",\"limit\":3,\"offset\":4", "7 5 2", "true"},
        {",\"limit\":1,\"offset\":5", "5", "true"},
        {",\"limit\":9,\"offset\":5", "5 2 1", "false"},
        {",\"limit\":1,\"offset\":6", "2", "true"},
        {",\"limit\":1,\"offset\":7", "1", "false"},
        {",\"offset\":8", "", "false"},
        {",\"offset\":100", "", "false"},
        {"", "11 10 9 8 7 5 2 1", "false"},
    };
    struct harness *harness = *state;
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    for (int i = 0; i < 7; i++) {
        update(*state, &page, ",\"append\":\"x\\n\"");
    }
    struct call *call = harness_new_call(harness);
    store_pin_revisions(harness->gateway->store, two_and_five, NULL);
    store_set_keep(harness->gateway->store, 1);
    /* Everything is old: of what a day has, only the first and the last stay, and
     * what is newest anyway. */
    (void)usleep(20000);
    assert_int_equal(store_maintain(harness->gateway->store, call), NG_OK);
    call_unref(call);
    for (int i = 0; i < 3; i++) {
        update(*state, &page, ",\"append\":\"x\\n\"");
    }
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct answer history = go(*state, "notebook_history", about(&page, cases[i].args));
        char versions[64] = "";
        char path[32];
        for (int row = 0;; row++) {
            (void)snprintf(path, sizeof(path), "history.%d.version", row);
            const char *version = at(history.text, path);
            if (strcmp(version, "none") == 0) {
                break;
            }
            size_t len = strlen(versions);
            (void)snprintf(versions + len, sizeof(versions) - len, "%s%s", row > 0 ? " " : "",
                           version);
        }
        assert_string_equal(versions, cases[i].versions);
        assert_string_equal(at(history.text, "total"), "8");
        assert_string_equal(at(history.text, "has_more"), cases[i].more);
        answer_free(&history);
    }
}

/* ---- lists and searches ---- */

static void expect_list(void *state, const char *tool, const char *args, const char *titles,
                        const char *total)
{
    char got[1024] = "";
    char path[64];
    size_t len = 0;
    struct answer answer = go(state, tool, args);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof(path), "results.%d.title", i);
        const char *title = at(answer.text, path);
        if (strcmp(title, "none") == 0) {
            break;
        }
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s", i == 0 ? "" : " ", title);
    }
    assert_string_equal(got, titles);
    assert_string_equal(at(answer.text, "total"), total);
    assert_null(strstr(answer.text, "\"content\""));
    assert_null(strstr(answer.text, "\"code\""));
    assert_null(strstr(answer.text, "\"sections\""));
    assert_null(strstr(answer.text, "\"history\""));
    answer_free(&answer);
}

static void make_three(void *state)
{
    (void)make(state, "pages",
               "\"title\":\"A\",\"content\":\"drone swarm\",\"tags\":[\"x\",\"y\"]");
    (void)make(state, "code_snippets",
               "\"title\":\"B\",\"content\":\"def drone(): pass\",\"tags\":[\"y\"],\"status\":"
               "\"complete\"");
    (void)make(state, "research_notes",
               "\"title\":\"C\",\"content\":\"bees\",\"key_findings\":[\"a drone flies\"]");
    struct answer answer =
        harness_call_as(state, "percy", NULL, "notebook_create",
                        "{\"collection\":\"pages\",\"title\":\"drone\",\"content\":\"other\"}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
}

static void test_list(void **state)
{
    make_three(*state);
    expect_list(*state, "notebook_list", "{}", "drone C B A", "4");
    expect_list(*state, "notebook_list", "{\"limit\":2}", "drone C", "4");
    expect_list(*state, "notebook_list", "{\"limit\":2,\"offset\":2}", "B A", "4");
    expect_list(*state, "notebook_list", "{\"offset\":4}", "", "4");
    expect_list(*state, "notebook_list", "{\"collection\":\"pages\",\"limit\":1}", "drone",
                "2");
    expect_list(*state, "notebook_list", "{\"collection\":\"pages\",\"limit\":1,\"offset\":1}",
                "A", "2");
    expect_list(*state, "notebook_list", "{\"status\":\"complete\"}", "B", "1");
    expect_list(*state, "notebook_list", "{\"created_by\":\"percy\"}", "drone", "1");
    expect_list(*state, "notebook_list", "{\"created_by\":\"agent:percy\"}", "drone", "1");
    expect_list(*state, "notebook_list", "{\"tags\":[\"x\",\"y\"]}", "B A", "2");
    expect_list(*state, "notebook_list", "{\"updated_since\":\"2001-02-03\"}", "drone C B A",
                "4");
    expect_list(*state, "notebook_list", "{\"updated_since\":\"2999-02-03T04:05:06.789Z\"}", "",
                "0");
    fails_only(*state, "notebook_list", "{\"updated_since\":\"yesterday\"}", "INVALID_INPUT",
               400);
    fails_only(*state, "notebook_list", "{\"limit\":0}", "INVALID_INPUT", 400);
    fails_only(*state, "notebook_list", "{\"limit\":101}", "INVALID_INPUT", 400);
    fails_only(*state, "notebook_list", "{\"offset\":10001}", "INVALID_INPUT", 400);
    expect_list(*state, "notebook_list", "{\"offset\":10001,\"collection\":\"pages\"}", "",
                "2");
    struct answer answer = go(*state, "notebook_list", "{\"limit\":3}");
    assert_string_equal(at(answer.text, "has_more"), "true");
    assert_string_equal(at(answer.text, "engine"), "filter");
    assert_string_equal(at(answer.text, "results.2._collection"), "code_snippets");
    assert_string_equal(at(answer.text, "results.2.collection"), "code_snippets");
    assert_string_equal(at(answer.text, "results.2._id"),
                        at(answer.text, "results.2.notebook_id"));
    assert_string_equal(at(answer.text, "results.2.metadata.status"), "complete");
    assert_string_equal(at(answer.text, "results.2.metadata.tags"), "[\"y\"]");
    assert_string_equal(at(answer.text, "results.2.metadata.word_count"), "3");
    assert_string_equal(at(answer.text, "results.2.summary"), "def drone(): pass");
    answer_free(&answer);
}

static void test_list_follows_updates(void **state)
{
    struct entry first = make(*state, "pages", "\"title\":\"A\",\"content\":\"a\"");
    (void)make(*state, "code_snippets", "\"title\":\"B\",\"content\":\"b\"");
    expect_list(*state, "notebook_list", "{}", "B A", "2");
    update(*state, &first, ",\"status\":\"archived\"");
    expect_list(*state, "notebook_list", "{}", "A B", "2");
}

static void test_search(void **state)
{
    make_three(*state);
    /* A hit in the title counts most. */
    struct answer answer = go(*state, "notebook_search", "{\"query\":\"drone\"}");
    assert_string_equal(at(answer.text, "results.0.title"), "drone");
    assert_string_equal(at(answer.text, "total"), "4");
    assert_string_equal(at(answer.text, "engine"), "fts5");
    answer_free(&answer);
    expect_list(*state, "notebook_search", "{\"query\":\"swarm drone\"}", "A", "1");
    expect_list(*state, "notebook_search", "{\"query\":\"dro*\",\"collection\":\"pages\"}",
                "drone A", "2");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"tags\":[\"x\"]}", "A", "1");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"status\":\"complete\"}", "B",
                "1");
    expect_list(*state, "notebook_search", "{\"query\":\"drone\",\"created_by\":\"percy\"}",
                "drone", "1");
    expect_list(*state, "notebook_search", "{\"query\":\"\",\"tags\":[\"y\"]}", "B A", "2");
    expect_list(*state, "notebook_search", "{\"query\":\" \"}", "drone C B A", "4");
    expect_list(*state, "notebook_search", "{\"query\":\"nothing\"}", "", "0");
    expect_list(*state, "notebook_search", "{\"query\":\"\\\" AND ( NEAR\"}", "", "0");
    answer = go(*state, "notebook_search", "{\"query\":\"drone\",\"limit\":3}");
    assert_string_equal(at(answer.text, "has_more"), "true");
    assert_string_equal(at(answer.text, "results.3"), "none");
    answer_free(&answer);
    answer = go(*state, "notebook_search", "{\"query\":\"drone\",\"limit\":3,\"offset\":3}");
    assert_string_equal(at(answer.text, "has_more"), "false");
    assert_string_equal(at(answer.text, "results.1"), "none");
    answer_free(&answer);
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
        writer->failed += answer.rc != NG_OK ? 1 : 0;
        answer_free(&answer);
        answer = harness_call(writer->harness, "notebook_read", about_args);
        writer->failed += answer.rc != NG_OK ? 1 : 0;
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

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITH_SQLITE(test) cmocka_unit_test_setup_teardown(test, setup_sqlite, teardown)

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
        WITH(test_update_members),
        WITH(test_update_by_another),
        WITH(test_expected_version),
        WITH(test_edits),
        WITH(test_edits_all_or_none),
        WITH(test_one_kind_of_edit),
        WITH(test_section_edits),
        WITH(test_sections_follow),
        WITH(test_read_parts),
        WITH(test_versions),
        WITH(test_restore),
        WITH_SQLITE(test_delete_and_back),
        WITH(test_history_is_light),
        WITH(test_history_with_gaps),
        WITH(test_list),
        WITH_SQLITE(test_list_follows_updates),
        WITH_SQLITE(test_search),
        WITH_SQLITE(test_no_update_is_lost),
        WITH_SQLITE(test_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
