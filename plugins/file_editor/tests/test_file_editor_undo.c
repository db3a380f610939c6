/* SPDX-License-Identifier: MIT */
/* test_file_editor_undo.c - undo, copy and move.
 */
#include "test_file_editor_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- undo */

static void test_undo(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "x\ty\n");
    works(test, REPLACE("@/f", "y", "z"));
    ok(test, UNDO("@/f"),
       "Last edit to @/f undone successfully. " CAT "@/f:\n     1  x        y\n     2  \n");
    has(test, "@/f", "x\ty\n");
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
    works(test, "{\"command\":\"create\",\"path\":\"@/c\",\"file_text\":\"one\\n\"}");
    works(test, REPLACE("@/c", "one", "two"));
    works(test, UNDO("@/c"));
    has(test, "@/c", "one\n");
    ok(test, UNDO("@/c"),
       "Last edit to @/c undone successfully. It had created the file, which is removed.");
    assert_false(exists(test, "@/c"));
    fails(test, UNDO("@/c"), "NOT_FOUND",
          "The path @/c does not exist. Please provide a valid path.");
    fails(test, UNDO("@"), "NO_HISTORY", "No edit history found for @.");
    fails(test, UNDO("@/nope"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
    /* A file that is created again has a new history. */
    works(test, "{\"command\":\"create\",\"path\":\"@/c\",\"file_text\":\"new\"}");
    works(test, UNDO("@/c"));
    assert_false(exists(test, "@/c"));
    assert_false(exists(test, "@/c"));
}

/* A caller takes back its own edits only; the error names the other agent and the time. */
static void test_undo_of_another(void **state)
{
    struct test *test = *state;
    static const char *const theirs[] = {
        REPLACE("@/f", "b", "c"),
        TRANSFER("move", "@/f", "@/g"),
        "{\"command\":\"create\",\"path\":\"@/h\",\"file_text\":\"x\"}",
    };
    static const char *const undo[] = {UNDO("@/f"), UNDO("@/g"), UNDO("@/h")};
    put(test, "@/f", "a");
    works(test, REPLACE("@/f", "a", "b"));
    for (size_t i = 0; i < NG_COUNT(theirs); i++) {
        struct answer answer = call_as(test, "ada", theirs[i]);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
        answer = call(test, undo[i]);
        assert_string_equal(answer.code, "CONFLICT");
        assert_int_equal(answer.status, 409);
        assert_non_null(strstr(answer.message, "is not yours: the agent ada made it at 20"));
        assert_non_null(strstr(answer.message, "Nothing was undone"));
        assert_non_null(strstr(answer.details, "\"changed_by\":\"ada\",\"timestamp\":\"20"));
        answer_free(&answer);
    }
    has(test, "@/g", "c");
    has(test, "@/h", "x");
    harness_reopen(&test->harness); /* the history keeps the agent */
    struct answer answer = call(test, undo[1]);
    assert_non_null(strstr(answer.message, "the agent ada made it"));
    answer_free(&answer);
    for (size_t i = 0; i < 2; i++) {
        answer = call_as(test, "ada", undo[1 - i]);
        assert_int_equal(answer.rc, NG_OK);
        answer_free(&answer);
    }
    has(test, "@/f", "b");
    works(test, UNDO("@/f")); /* theirs is taken back: the last one is the caller's own */
    has(test, "@/f", "a");
}

static void test_undo_depth(void **state)
{
    struct test *test = *state;
    char args[TEXT_MAX];
    char text[32];
    put(test, "@/f", "E0");
    for (int i = 0; i < 12; i++) {
        (void)snprintf(args, sizeof(args),
                       "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"E%d\","
                       "\"new_str\":\"E%d\"}",
                       i, i + 1);
        works(test, args);
    }
    for (int i = 11; i >= 2; i--) {
        works(test, UNDO("@//f"));
        (void)snprintf(text, sizeof(text), "E%d", i);
        has(test, "@/f", text);
    }
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
}

static void test_undo_of_every_edit(void **state)
{
    struct test *test = *state;
    const char *texts[] = {"", "a", "\xc3\xa9\xc3\xa8\n", "a\nb\nc\nd\n", "a\r\n\r\n\tb"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        put(test, "@/f", texts[i]);
        works(test, INSERT("@/f", 0, "\xc3\xa8"));
        works(test, INSERT("@/f", 1, "\\t"));
        works(test, REGEX("@/f", ".", "$&$&"));
        works(test, UNDO("@/f"));
        works(test, UNDO("@/f"));
        works(test, UNDO("@/f"));
        has(test, "@/f", texts[i]);
    }
}

static void test_undo_refuses(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "a");
    works(test, REPLACE("@/f", "a", "b"));
    put(test, "@/f", "from outside");
    struct answer answer = call(test, UNDO("@/f"));
    assert_string_equal(answer.code, "CONFLICT");
    assert_non_null(strstr(answer.details, "currentRevision"));
    answer_free(&answer);
    has(test, "@/f", "from outside");
    /* Back at what the edit left, it can be undone. */
    put(test, "@/f", "b");
    works(test, UNDO("@/f"));
    has(test, "@/f", "a");
}

static void test_undo_after_restart(void **state)
{
    struct test *test = *state;
    works(test, "{\"command\":\"create\",\"path\":\"@/f\",\"file_text\":\"one\\n\"}");
    works(test, REPLACE("@/f", "one", "two"));
    works(test, REPLACE("@/f", "two", "three"));
    harness_reopen(&test->harness);
    works(test, UNDO("@/f"));
    has(test, "@/f", "two\n");
    works(test, UNDO("@/f"));
    harness_reopen(&test->harness);
    works(test, UNDO("@/f"));
    assert_false(exists(test, "@/f"));
}

/* ---- copy, move */

static void test_copy(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    struct stat st;
    put(test, "@/f", "text\n");
    expand(test, "@/f", real, sizeof(real));
    assert_int_equal(chmod(real, 0751), 0);
    ok(test, TRANSFER("copy", "@/f", "@/x/g"), "File copied successfully from: @/f to: @/x/g");
    has(test, "@/f", "text\n");
    has(test, "@/x/g", "text\n");
    expand(test, "@/x/g", real, sizeof(real));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    fails(test, TRANSFER("copy", "@/f", "@/x/g"), "FILE_EXISTS",
          "File already exists at: @/x/g. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/f", "@/x"), "FILE_EXISTS",
          "File already exists at: @/x. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/f", "@/f"), "FILE_EXISTS",
          "File already exists at: @/f. Cannot overwrite files using command `copy`.");
    fails(test, TRANSFER("copy", "@/nope", "@/y"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
    fails(test, TRANSFER("copy", "@/x", "@/y"), "TOOL_FAILED",
          "The path @/x is a directory and only the `view` command can be used on directories");
    fails(test, TRANSFER("copy", "@/f", "/etc/y"), "PATH_OUTSIDE_ROOTS",
          "The path /etc/y is outside the roots: @.");
    fails(test, TRANSFER("copy", "@/f", "@/../y"), "PATH_TRAVERSAL",
          "Invalid path: path traversal is not allowed");
    works(test, UNDO("@/x/g"));
    assert_false(exists(test, "@/x/g"));
    has(test, "@/f", "text\n");
}

static void test_move(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one");
    works(test, REPLACE("@/f", "one", "two"));
    ok(test, TRANSFER("move", "@/f", "@/x/g"), "File moved successfully from: @/f to: @/x/g");
    assert_false(exists(test, "@/f"));
    has(test, "@/x/g", "two");
    works(test, REPLACE("@/x/g", "two", "three"));
    works(test, UNDO("@/x/g"));
    has(test, "@/x/g", "two");
    ok(test, UNDO("@/x/g"),
       "Last edit to @/x/g undone successfully. It had moved the file, which is back at: @/f");
    assert_false(exists(test, "@/x/g"));
    has(test, "@/f", "two");
    works(test, UNDO("@/f"));
    has(test, "@/f", "one");
    fails(test, UNDO("@/f"), "NO_HISTORY", "No edit history found for @/f.");
    /* Never over a file, also when it is undone. */
    put(test, "@/g", "g");
    fails(test, TRANSFER("move", "@/f", "@/g"), "FILE_EXISTS",
          "File already exists at: @/g. Cannot overwrite files using command `move`.");
    works(test, TRANSFER("move", "@/f", "@/h"));
    put(test, "@/f", "new");
    struct answer answer = call(test, UNDO("@/h"));
    assert_string_equal(answer.code, "CONFLICT");
    answer_free(&answer);
    has(test, "@/h", "one");
    has(test, "@/f", "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_undo, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_of_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_of_every_edit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_after_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_move, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
