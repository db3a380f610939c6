/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_versions.c - versions: reading, restoring, deleting, histories with
 * gaps. */
#include "test_agent_notebook_rig.h"

#include <stdio.h>
#include <string.h>

#include "core/store/store.h"
#include "test_clock.h"

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

/* A diff in parts: whole lines, or whole characters where not even a line fits. */
static void diff_in_parts(void *state, const struct entry *page, int bytes, const char *want)
{
    char whole[512] = "";
    char more[64];
    size_t offset = 0;
    for (bool on = true; on;) {
        (void)snprintf(more, sizeof(more),
                       ",\"from\":1,\"to\":2,\"offset\":%zu,\"max_bytes\":%d", offset, bytes);
        struct answer diff = go(state, "notebook_diff", about(page, more));
        const char *part = at(diff.text, "diff");
        assert_true(strlen(part) > 0 && strlen(whole) + strlen(part) < sizeof(whole));
        assert_true(strlen(part) <= (size_t)bytes || strlen(part) <= 4);
        memcpy(whole + offset, part, strlen(part) + 1);
        on = strcmp(at(diff.text, "truncated"), "true") == 0;
        assert_true(on == (strcmp(at(diff.text, "next_offset"), "none") != 0));
        offset = strlen(whole);
        answer_free(&diff);
    }
    assert_string_equal(whole, want);
}

static void test_diff_in_parts(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\\n\"");
    char want[256];
    update(*state, &page, ",\"append\":\"t\xc3\xbcrk\xe6\x97\xa5\xe6\x9c\xac\\nthree\\n\"");
    (void)snprintf(want, sizeof(want),
                   "--- pages/%s@1\n+++ pages/%s@2\n@@ -1 +1,3 @@\n one\n"
                   "+t\xc3\xbcrk\xe6\x97\xa5\xe6\x9c\xac\n+three\n",
                   page.id, page.id);
    static const int sizes[] = {1, 2, 7, 40, 60, 10000};
    for (size_t i = 0; i < NG_COUNT(sizes); i++) {
        diff_in_parts(*state, &page, sizes[i], want);
    }
    struct answer diff =
        go(*state, "notebook_diff", about(&page, ",\"from\":1,\"offset\":100000"));
    assert_string_equal(at(diff.text, "diff"), "");
    assert_string_equal(at(diff.text, "truncated"), "false");
    answer_free(&diff);
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

/* Restores without a version, and compares what came back. */
static void take_back(void *state, const struct entry *entry, const char *version,
                      const char *from, const char *content)
{
    struct answer back = go(state, "notebook_restore", about(entry, ""));
    assert_string_equal(at(back.text, "status"), "restored");
    assert_string_equal(at(back.text, "version"), version);
    assert_string_equal(at(back.text, "restored_from"), from);
    assert_int_equal(back.revision, strtoull(version, NULL, 10));
    answer_free(&back);
    expect_content(state, entry, content);
}

static void test_take_back(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\"");
    fails_only(*state, "notebook_restore", about(&page, ""), "VERSION_NOT_FOUND", 404);
    update(*state, &page, ",\"content\":\"two\",\"title\":\"U\"");
    update(*state, &page, ",\"content\":\"three\"");
    take_back(*state, &page, "4", "2", "two");
    harness_reopen(*state);
    take_back(*state, &page, "5", "1", "one");
    expect_member(*state, &page, "", "title", "T");
    expect_member(*state, &page, "", "history.4.summary", "restored from version 1");
    expect_member(*state, &page, "", "undo_base", "none");
    expect_member(*state, &page, "", "undos", "none");
    fails_only(*state, "notebook_restore", about(&page, ""), "VERSION_NOT_FOUND", 404);
    /* A change, also a restore of a version, is the last one then. */
    struct answer back = go(*state, "notebook_restore", about(&page, ",\"version\":3"));
    answer_free(&back);
    take_back(*state, &page, "7", "5", "one");
    update(*state, &page, ",\"append\":\"more\"");
    take_back(*state, &page, "9", "7", "one");
    fails_only(*state, "notebook_restore", about(&page, ""), "VERSION_NOT_FOUND", 404);
    /* The deletion; and what was before it. */
    update(*state, &page, ",\"content\":\"last\"");
    struct answer gone = go(*state, "notebook_delete", about(&page, ""));
    answer_free(&gone);
    take_back(*state, &page, "12", "10", "last");
    expect_member(*state, &page, "", "history.0.summary", "Created");
    take_back(*state, &page, "13", "9", "one");
    fails_only(*state, "notebook_restore", "{\"notebook_id\":\"none\"}", "ENTRY_NOT_FOUND",
               404);
}

static void test_take_back_anothers(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"one\"");
    update(*state, &page, ",\"content\":\"two\"");
    struct answer answer =
        harness_call_as(*state, "bob", NULL, "notebook_restore", about(&page, ""));
    assert_string_equal(answer.code, "CONFLICT");
    assert_int_equal(answer.status, 409);
    assert_non_null(strstr(answer.message, "The last change of the entry '"));
    assert_non_null(strstr(answer.message, " is not yours: the agent "));
    assert_non_null(strstr(answer.message, "pass the `version` that you want"));
    answer_free(&answer);
    expect_content(*state, &page, "two");
    struct answer gone = go(*state, "notebook_delete", about(&page, ""));
    answer_free(&gone);
    answer = harness_call_as(*state, "bob", NULL, "notebook_restore", about(&page, ""));
    assert_string_equal(answer.code, "CONFLICT");
    answer_free(&answer);
    answer = harness_call_as(*state, "bob", NULL, "notebook_restore",
                             about(&page, ",\"version\":2"));
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    fails_only(*state, "notebook_restore", about(&page, ""), "CONFLICT", 409);
}

static void test_take_back_ten(void **state)
{
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    for (int i = 0; i < 11; i++) {
        update(*state, &page, ",\"append\":\"x\"");
    }
    for (int i = 0; i < 10; i++) {
        struct answer back = go(*state, "notebook_restore", about(&page, ""));
        answer_free(&back);
    }
    expect_member(*state, &page, "", "metadata.word_count", "1");
    struct answer more =
        fails(*state, "notebook_restore", about(&page, ""), "TOOL_FAILED", 422);
    assert_non_null(strstr(more.message, "which is the most in a row"));
    answer_free(&more);
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
    test_clock_begin_day();
    struct entry page = make(*state, "pages", "\"title\":\"T\",\"content\":\"\"");
    for (int i = 0; i < 7; i++) {
        update(*state, &page, ",\"append\":\"x\\n\"");
    }
    struct call *call = harness_new_call(harness);
    store_pin_revisions(harness->gateway->store,
                        &(struct store_pinner){.pinned = two_and_five});
    /* Everything is old: of what a day has, only the first and the last stay, and
     * what is newest anyway. */
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    store_set_keep(harness->gateway->store, 1);
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
    test_clock_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_versions),         WITH(test_diff_in_parts),
        WITH(test_restore),          WITH_SQLITE(test_delete_and_back),
        WITH(test_history_is_light), WITH(test_history_with_gaps),
        WITH_SQLITE(test_take_back), WITH(test_take_back_anothers),
        WITH(test_take_back_ten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
