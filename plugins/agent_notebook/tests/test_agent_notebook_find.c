/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_find.c - entries named by a title, or by an id without its collection. */
#include "test_agent_notebook_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/store/store.h"

/* {"notebook_id": NAME more} */
static const char *named(const char *name, const char *more)
{
    static char args[4096];
    (void)snprintf(args, sizeof(args), "{\"notebook_id\":\"%s\"%s}", name, more);
    return args;
}

static void expect_found(void *state, const char *name, const char *more, const char *id)
{
    struct answer answer = go(state, "notebook_read", named(name, more));
    assert_string_equal(at(answer.text, "notebook_id"), id);
    answer_free(&answer);
}

static void not_found(void *state, const char *name, const char *more)
{
    fails_only(state, "notebook_read", named(name, more), "ENTRY_NOT_FOUND", 404);
}

static void test_by_title(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"Road Map\",\"content\":\"a\"");
    struct entry code =
        make(*state, "code_snippets", "\"title\":\"Stra\\u00dfe\",\"content\":\"b\"");
    struct entry note = make(*state, "research_notes",
                             "\"title\":\"\\u00c4rger \\ud83d\\ude00\",\"content\":\"c\"");
    (void)make(*state, "pages", "\"title\":\"Road Map 2\",\"content\":\"road map\"");
    expect_found(*state, "Road Map", "", page.id);
    expect_found(*state, "rOAD mAP", ",\"collection\":\"pages\"", page.id);
    expect_found(*state, "STRASSE", "", code.id);
    expect_found(*state, "\\u00e4RGER \\ud83d\\ude00", "", note.id);
    expect_found(*state, "A\\u0308rger \\ud83d\\ude00", "", note.id);
    /* The title alone, in that collection and space. */
    not_found(*state, "Road", "");
    not_found(*state, "Arger \\ud83d\\ude00", "");
    not_found(*state, " Road Map", "");
    not_found(*state, "Road Map", ",\"collection\":\"code_snippets\"");
    struct answer answer =
        harness_call_as(*state, NULL, "other", "notebook_read", named("Road Map", ""));
    assert_string_equal(answer.code, "ENTRY_NOT_FOUND");
    answer_free(&answer);
    /* Not shown, nor in the way of a new title. */
    expect_member(*state, &page, "", "title_key", "none");
    update(*state, &page, ",\"title\":\"Plan\"");
    not_found(*state, "Road Map", "");
    expect_found(*state, "plan", "", page.id);
}

static void test_by_id_alone(void **state)
{
    static const char *const collections[] = {"pages", "code_snippets", "research_notes"};
    for (int i = 0; i < 3; i++) {
        struct entry entry = make(*state, collections[i], "\"title\":\"T\",\"content\":\"a\"");
        struct answer answer = go(*state, "notebook_read", named(entry.id, ""));
        assert_string_equal(at(answer.text, "collection"), collections[i]);
        answer_free(&answer);
    }
    struct answer none =
        fails(*state, "notebook_read", named("nothing", ""), "ENTRY_NOT_FOUND", 404);
    assert_string_equal(
        none.message, "there is no entry 'nothing' in pages, code_snippets or research_notes");
    assert_string_equal(at(none.details, "notebook_id"), "nothing");
    answer_free(&none);
    none = fails(*state, "notebook_read", named("nothing", ",\"collection\":\"pages\""),
                 "ENTRY_NOT_FOUND", 404);
    assert_string_equal(none.message, "there is no entry 'nothing' in pages");
    answer_free(&none);
}

/* An id that is equal wins, also that of a deleted entry. */
static void test_an_id_wins(void **state)
{
    char members[128];
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"a\"");
    (void)snprintf(members, sizeof(members), "\"title\":\"%s\",\"content\":\"b\"", page.id);
    struct entry other = make(*state, "research_notes", members);
    expect_found(*state, page.id, "", page.id);
    expect_found(*state, page.id, ",\"collection\":\"research_notes\"", other.id);
    struct answer answer = go(*state, "notebook_delete", named(page.id, ""));
    answer_free(&answer);
    answer = fails(*state, "notebook_read", named(page.id, ""), "ENTRY_NOT_FOUND", 404);
    assert_non_null(strstr(answer.message, "in pages; it was deleted"));
    answer_free(&answer);
    answer = go(*state, "notebook_history", named(page.id, ""));
    assert_string_equal(at(answer.text, "deleted"), "true");
    answer_free(&answer);
}

static void test_several(void **state)
{
    struct entry ids[12];
    ids[0] = make(*state, "code_snippets", "\"title\":\"NOTES\",\"content\":\"a\"");
    ids[1] = make(*state, "pages", "\"title\":\"Notes\",\"content\":\"a\"");
    struct answer answer =
        fails(*state, "notebook_read", named("notes", ""), "INVALID_INPUT", 400);
    char want[256];
    (void)snprintf(want, sizeof(want),
                   "`notebook_id`: 2 entries are named 'notes': %s in pages 'Notes', %s in "
                   "code_snippets 'NOTES'",
                   ids[1].id, ids[0].id);
    assert_string_equal(answer.message, want);
    assert_string_equal(at(answer.details, "matches.1.notebook_id"), ids[0].id);
    assert_string_equal(at(answer.details, "matches.1.collection"), "code_snippets");
    assert_string_equal(at(answer.details, "matches.1.title"), "NOTES");
    answer_free(&answer);
    expect_found(*state, "notes", ",\"collection\":\"pages\"", ids[1].id);
    for (int i = 2; i < 12; i++) {
        ids[i] = make(*state, "pages", "\"title\":\"notes\",\"content\":\"a\"");
    }
    answer = fails(*state, "notebook_delete", named("notes", ""), "INVALID_INPUT", 400);
    assert_non_null(strstr(answer.message, "12 entries are named"));
    assert_non_null(strstr(answer.message, "' and 2 more"));
    assert_string_equal(at(answer.details, "matches.9.title"), "notes");
    assert_string_equal(at(answer.details, "matches.10"), "none");
    assert_string_equal(at(answer.details, "total"), "12");
    answer_free(&answer);
    for (int i = 1; i < 12; i++) {
        answer = go(*state, "notebook_delete", named(ids[i].id, ""));
        answer_free(&answer);
    }
    expect_found(*state, "notes", "", ids[0].id);
}

static void test_every_tool(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"The Plan\",\"content\":\"a\"");
    struct answer answer =
        go(*state, "notebook_update", named("the plan", ",\"append\":\"b\""));
    assert_string_equal(at(answer.text, "notebook_id"), page.id);
    assert_string_equal(at(answer.text, "collection"), "pages");
    answer_free(&answer);
    answer = go(*state, "notebook_update",
                named("the plan", ",\"collection\":\"pages\",\"append\":\"c\""));
    answer_free(&answer);
    expect_content(*state, &page, "a\nb\nc");
    answer = go(*state, "notebook_history", named("THE PLAN", ""));
    assert_string_equal(at(answer.text, "total"), "3");
    answer_free(&answer);
    answer = go(*state, "notebook_diff", named("The Plan", ",\"from\":1"));
    assert_string_equal(at(answer.text, "lines_added"), "3");
    answer_free(&answer);
    answer = go(*state, "notebook_restore", named("The Plan", ",\"version\":1"));
    assert_string_equal(at(answer.text, "notebook_id"), page.id);
    answer_free(&answer);
    expect_content(*state, &page, "a");
    /* `language` belongs to code_snippets; the title is an entry of pages. */
    answer = fails(*state, "notebook_update", named("The Plan", ",\"language\":\"c\""),
                   "INVALID_INPUT", 400);
    answer_free(&answer);
    answer = go(*state, "notebook_delete", named("the PLAN", ""));
    assert_string_equal(at(answer.text, "notebook_id"), page.id);
    answer_free(&answer);
    fails_only(*state, "notebook_delete", named("The Plan", ""), "ENTRY_NOT_FOUND", 404);
    fails_only(*state, "notebook_update", named("The Plan", ",\"append\":\"b\""),
               "ENTRY_NOT_FOUND", 404);
}

/* ---- entries that earlier versions wrote */

static int write_old(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct ng_str text = ng_str_of("text");
    (void)present;
    assert_int_equal(call->host->draft_text(next, &text, 1), NG_OK);
    return call->host->draft_json(next, ng_str_of(user));
}

static void test_entries_without_a_key(void **state)
{
    struct harness *harness = *state;
    char json[] = "{\"title\":\"Old \\\"Plan\\\"\",\"metadata\":{\"version\":1}}";
    struct entry old = {.id = "abc123abc123", .collection = "pages"};
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of(old.id)},
        .fn = write_old,
        .user = json,
    };
    struct call *call = harness_new_call(harness);
    assert_int_equal(store_write_wait(harness->gateway->store, call, &change, 1), NG_OK);
    call_unref(call);
    expect_found(*state, "old \\\"plan\\\"", "", old.id);
    update(*state, &old, ",\"append\":\"b\"");
    expect_found(*state, "old \\\"plan\\\"", "", old.id);
    struct entry twin =
        make(*state, "pages", "\"title\":\"OLD \\\"PLAN\\\"\",\"content\":\"a\"");
    fails_only(*state, "notebook_read", named("old \\\"plan\\\"", ""), "INVALID_INPUT", 400);
    struct answer answer = go(*state, "notebook_delete", about(&twin, ""));
    answer_free(&answer);
    harness_reopen(*state);
    expect_found(*state, "old \\\"plan\\\"", "", old.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_by_title),
        WITH_SQLITE(test_by_title),
        WITH(test_by_id_alone),
        WITH(test_an_id_wins),
        WITH(test_several),
        WITH_SQLITE(test_several),
        WITH_SQLITE(test_every_tool),
        WITH(test_every_tool),
        WITH_SQLITE(test_entries_without_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
