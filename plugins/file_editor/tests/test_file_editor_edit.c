/* SPDX-License-Identifier: MIT */
/* test_file_editor_edit.c - replacing and inserting, by text, line and pattern: each answer,
 * each refusal, the bytes that stay. */
#include "test_file_editor_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REVIEW                                                                                 \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."
#define REVIEW_INSERT                                                                          \
    "Review the changes and make sure they are as expected (correct indentation, no "          \
    "duplicate lines, etc). Edit the file again if necessary."

/* ---- str_replace */

static void test_str_replace(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one\ntwo\nthree\n");
    ok(test, REPLACE("@/f", "two", "2\\n\\t2"),
       "The file @/f has been edited. " CAT "a snippet of @/f:\n     1  one\n     2  2\n     3 "
       "         2\n     4  three\n     5  \n" REVIEW);
    has(test, "@/f", "one\n2\n\t2\nthree\n");
    ok(test, "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"2\\n\\t2\\n\"}",
       "The file @/f has been edited. " CAT
       "a snippet of @/f:\n     1  one\n     2  three\n     3  \n" REVIEW);
    has(test, "@/f", "one\nthree\n");
    fails(test, REPLACE("@/f", "four", ""), "TOOL_FAILED",
          "No replacement was performed, old_str `four` did not appear verbatim in @/f.");
    fails(test, REPLACE("@/f", "", "x"), "TOOL_FAILED",
          "No replacement was performed, old_str must not be empty.");
    put(test, "@/g", "a a\nb\na\n");
    fails(test, REPLACE("@/g", "a", "x"), "TOOL_FAILED",
          "No replacement was performed. Multiple occurrences of old_str `a` in lines [1,1,3]. "
          "Please ensure it is unique");
    put(test, "@/h", "x\ny\nx\ny\n");
    fails(
        test, REPLACE("@/h", "x\\ny", "z"), "TOOL_FAILED",
        "No replacement was performed. Multiple occurrences of old_str `x\ny` in lines [1,3]. "
        "Please ensure it is unique");
    put(test, "@/o", "aaa");
    ok(test, REPLACE("@/o", "aa", "b"),
       "The file @/o has been edited. " CAT "a snippet of @/o:\n     1  ba\n" REVIEW);
    ok(test, REPLACE("@/o", "ba", "ba"),
       "The file @/o has been edited. " CAT "a snippet of @/o:\n     1  ba\n" REVIEW);
    put(test, "@/d", "x");
    works(test, REPLACE("@/d", "x", "$& $1 $$ $`"));
    has(test, "@/d", "$& $1 $$ $`");
    fails(test, REPLACE("@/nope", "x", "y"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
}

static void test_snippet(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/f", "8", "eight\\nacht"),
       "The file @/f has been edited. " CAT
       "a snippet of @/f:\n     4  4\n     5  5\n     6  6\n     7  7\n     8  eight\n"
       "     9  acht\n    10  9\n    11  10\n    12  11\n    13  12\n" REVIEW);
    put(test, "@/g", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/g", "2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n", "two\\n"),
       "The file @/g has been edited. " CAT "a snippet of @/g:\n     1  1\n     2  two\n     3 "
       " 11\n     4  12\n     5  13\n     6  14\n"
       "     7  15\n" REVIEW);
    /* Nothing left: around the cut. */
    put(test, "@/h", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16");
    ok(test, REPLACE("@/h", "6\\n7\\n8\\n9\\n10\\n11\\n12\\n", ""),
       "The file @/h has been edited. " CAT
       "a snippet of @/h:\n     2  2\n     3  3\n     4  4\n     5  5\n     6  13\n     7  14\n"
       "     8  15\n     9  16\n" REVIEW);
}

static void test_bytes_are_kept(void **state)
{
    struct test *test = *state;
    put(test, "@/f",
        "\xef\xbb\xbf"
        "one\r\n\ttwo\r\nthree");
    ok(test, VIEW("@/f"), CAT "@/f:\n     1  one\r\n     2          two\r\n     3  three\n");
    works(test, REPLACE("@/f", "two", "zwei"));
    has(test, "@/f",
        "\xef\xbb\xbf"
        "one\r\n\tzwei\r\nthree");
    works(test,
          "{\"command\":\"insert\",\"path\":\"@/f\",\"insert_line\":0,\"new_str\":\"0\"}");
    has(test, "@/f",
        "\xef\xbb\xbf"
        "0\r\none\r\n\tzwei\r\nthree");
    works(test,
          "{\"command\":\"regex_replace\",\"path\":\"@/f\",\"pattern\":\"^o\",\"new_str\":"
          "\"O\"}");
    has(test, "@/f",
        "\xef\xbb\xbf"
        "0\r\nOne\r\n\tzwei\r\nthree");
    fails(
        test, REPLACE("@/f", "        zwei", "x"), "TOOL_FAILED",
        "No replacement was performed, old_str `        zwei` did not appear verbatim in @/f.");
}

/* A miss names the nearest place, and never replaces there. */
static void test_nearest(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "one\n\tx\n");
    struct answer answer = call(test, REPLACE("@/f", "        x", "y"));
    assert_string_equal(answer.code, "TOOL_FAILED");
    assert_string_equal(answer.hint, "Line 2 has a tab (U+0009) where old_str has a space "
                                     "(U+0020). The line is: \tx");
    answer_free(&answer);
    has(test, "@/f", "one\n\tx\n");
    put(test, "@/dos", "a\r\n\tb\r\n");
    answer = call(test, REPLACE("@/dos", "a\\n    b", "y"));
    assert_string_equal(answer.hint, "Line 2 has a tab (U+0009) where old_str has a space "
                                     "(U+0020). The line is: \tb");
    answer_free(&answer);
    answer = call(test, REPLACE("@/f", "three", "y"));
    assert_false(answer.has_hint);
    answer_free(&answer);
}

static void test_not_text(void **state)
{
    struct test *test = *state;
    put_bytes(test, "@/nul", "a\0b\n", 4);
    ok(test, VIEW("@/nul"),
       "Warning: @/nul cannot be edited: it holds NUL bytes, so it is binary or not UTF-8 "
       "text. "
       "Bytes that are not text are shown as U+FFFD.\n" CAT "@/nul:\n     1  a\xef\xbf\xbd"
       "b\n     2  \n");
    put(test, "@/latin", "caf\xe9\n");
    ok(test, VIEW("@/latin"),
       "Warning: @/latin cannot be edited: it holds bytes that are not UTF-8 text. Bytes that "
       "are not text are shown as U+FFFD.\n" CAT
       "@/latin:\n     1  caf\xef\xbf\xbd\n     2  \n");
    put_bytes(test, "@/wide",
              "\xff\xfe"
              "a\0\n\0",
              6);
    struct answer answer = call(test, VIEW("@/wide"));
    assert_non_null(strstr(answer.text, "cannot be edited: it is UTF-16 text, not UTF-8."));
    answer_free(&answer);
    fails(test, REPLACE("@/nul", "a", "x"), "NOT_TEXT",
          "The file @/nul cannot be edited: it holds NUL bytes, so it is binary or not UTF-8 "
          "text. Only UTF-8 text is edited, so that nothing in it is destroyed.");
    fails(
        test, REPLACE("@/latin", "c", "x"), "NOT_TEXT",
        "The file @/latin cannot be edited: it holds bytes that are not UTF-8 text. Only UTF-8 "
        "text is edited, so that nothing in it is destroyed.");
    fails(test,
          "{\"command\":\"insert\",\"path\":\"@/wide\",\"insert_line\":0,\"new_str\":\"x\"}",
          "NOT_TEXT",
          "The file @/wide cannot be edited: it is UTF-16 text, not UTF-8. Only UTF-8 text is "
          "edited, so that nothing in it is destroyed.");
    answer = call(test, "{\"command\":\"regex_replace\",\"path\":\"@/nul\",\"pattern\":\"a\","
                        "\"new_str\":\"b\"}");
    assert_string_equal(answer.code, "NOT_TEXT");
    answer_free(&answer);
    has_bytes(test, "@/nul", "a\0b\n", 4);
    has(test, "@/latin", "caf\xe9\n");
}

/* ---- insert */

static void test_insert(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "a\nb\n");
    ok(test, INSERT("@/f", 2, "c"),
       "The file @/f has been edited. " CAT "a snippet of the edited file:\n     1  a\n     2  "
       "b\n     3  c\n     4  \n" REVIEW_INSERT);
    has(test, "@/f", "a\nb\nc\n");
    put(test, "@/f", "a\nb\n");
    works(test, INSERT("@/f", 3, "c"));
    has(test, "@/f", "a\nb\n\nc");
    put(test, "@/f", "a\nb");
    works(test, INSERT("@/f", 0, "x\\n"));
    has(test, "@/f", "x\n\na\nb");
    works(test, INSERT("@/f", 1, ""));
    has(test, "@/f", "x\n\n\na\nb");
    put(test, "@/e", "");
    ok(test, INSERT("@/e", 1, "x"),
       "The file @/e has been edited. " CAT
       "a snippet of the edited file:\n     1  x\n" REVIEW_INSERT);
    has(test, "@/e", "x");
    put(test, "@/e", "");
    works(test, INSERT("@/e", 0, "x\\ny"));
    has(test, "@/e", "x\ny");
    fails(test, INSERT("@/e", 3, "z"), "INVALID_INPUT",
          "Invalid `insert_line` parameter: 3. It should be within the range of lines of the "
          "file: [0, 2]");
    fails(test, INSERT("@/e", -1, "z"), "INVALID_INPUT",
          "Invalid `insert_line` parameter: -1. It should be within the range of lines of the "
          "file: [0, 2]");
    put(test, "@/l", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
    ok(test, INSERT("@/l", 6, "x\\ny"),
       "The file @/l has been edited. " CAT
       "a snippet of the edited file:\n     3  3\n     4  4\n     5  5\n     6  6\n     7  x\n"
       "     8  y\n     9  7\n    10  8\n    11  9\n    12  10\n" REVIEW_INSERT);
    fails(test, INSERT("@/nope", 0, "z"), "NOT_FOUND",
          "The path @/nope does not exist. Please provide a valid path.");
}

/* ---- regex_replace */

static void test_regex(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "int a;\nint b;\n");
    ok(test, REGEX("@/f", "int (\\\\w);", "long $1 = 0;"),
       "The file @/f has been edited, 2 replacements made. " CAT
       "a snippet of @/f:\n     1  long a = 0;\n     2  long b = 0;\n     3  \n" REVIEW);
    has(test, "@/f", "long a = 0;\nlong b = 0;\n");
    ok(test,
       "{\"command\":\"regex_replace\",\"path\":\"@/f\",\"pattern\":\"(?<n>long) (.)\","
       "\"new_str\":\"$2:${n}:$$:$&:$3:$:${2}0:$20\",\"count\":1}",
       "The file @/f has been edited, 1 replacement made. " CAT
       "a snippet of @/f:\n     1  a:long:$:long a:$3:$:a0:a0 = 0;\n     2  long b = 0;\n"
       "     3  \n" REVIEW);
    put(test, "@/e", "abc\n\xc3\xa9");
    works(test, REGEX("@/e", "x*", "-"));
    has(test, "@/e", "-a-b-c-\n-\xc3\xa9-");
    put(test, "@/m", "a\nb\n");
    works(test, REGEX("@/m", "$", "!"));
    has(test, "@/m", "a!\nb!\n!");
    fails(test, REGEX("@/m", "z", "!"), "TOOL_FAILED",
          "No replacement was performed, pattern `z` did not match in @/m.");
    struct answer answer = call(test, REGEX("@/m", "(", "!"));
    assert_string_equal(answer.code, "INVALID_INPUT");
    assert_non_null(strstr(answer.message, "Invalid `pattern`: "));
    answer_free(&answer);
    char many[3000];
    memset(many, 'a', sizeof(many));
    put_bytes(test, "@/slow", many, sizeof(many));
    answer = call(test, REGEX("@/slow", "(a+)+[bc]", "!"));
    assert_string_equal(answer.code, "TOOL_FAILED");
    assert_non_null(strstr(answer.message, "too many steps"));
    answer_free(&answer);
    has_bytes(test, "@/slow", many, sizeof(many));
    answer = call(test, "{\"command\":\"regex_replace\",\"path\":\"@/m\",\"pattern\":\"a\","
                        "\"new_str\":\"\",\"count\":0}");
    assert_string_equal(answer.code, "INVALID_INPUT");
    answer_free(&answer);
}

static int setup_hurried(void **state)
{
    static const char *const hurried[] = {"plugins=file_editor", "limits.call_timeout=1s",
                                          NULL};
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    harness_open(&test->harness, hurried);
    (void)snprintf(test->root, sizeof(test->root), "%s/files", test->harness.dir);
    *state = test;
    return 0;
}

/* Below the limit of steps wherever it begins, and still minutes for the whole file. */
static void test_regex_in_time(void **state)
{
    enum { SIZE = 1000000, LINE = 300 };
    struct test *test = *state;
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = i % LINE == LINE - 1 ? '\n' : 'a';
    }
    put_bytes(test, "@/f", text, SIZE);
    time_t began = time(NULL);
    struct answer answer = call(test, REGEX("@/f", "a*a*a*[bc]", "!"));
    assert_string_equal(answer.code, "TIMEOUT");
    answer_free(&answer);
    harness_reopen(&test->harness); /* waits for what still runs */
    assert_true(time(NULL) - began < 20);
    has_bytes(test, "@/f", text, SIZE);
    free(text);
}

/* ---- revisions */

static void test_revisions(void **state)
{
    struct test *test = *state;
    struct answer made =
        call(test, "{\"command\":\"create\",\"path\":\"@/f\",\"file_text\":\"a\"}");
    assert_int_equal(strlen(made.revision_text), 32);
    struct answer seen = call(test, VIEW("@/f"));
    assert_string_equal(seen.revision_text, made.revision_text);
    char args[TEXT_MAX];
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"str_replace\",\"path\":\"@/f\",\"old_str\":\"a\","
                   "\"new_str\":\"b\",\"expectedRevision\":\"%s\"}",
                   seen.revision_text);
    struct answer edited = call(test, args);
    assert_int_equal(edited.rc, NG_OK);
    assert_string_not_equal(edited.revision_text, made.revision_text);
    struct answer stale = call(test, args);
    assert_string_equal(stale.code, "CONFLICT");
    assert_non_null(strstr(stale.details, edited.revision_text));
    assert_non_null(strstr(stale.details, "currentRevision"));
    has(test, "@/f", "b");
    /* A change from outside moves it; the same bytes have the same one. */
    put(test, "@/f", "a");
    struct answer outside = call(test, VIEW("@/f"));
    assert_string_equal(outside.revision_text, made.revision_text);
    answer_free(&made);
    answer_free(&seen);
    answer_free(&edited);
    answer_free(&stale);
    answer_free(&outside);
}

/* ---- sizes */

static void test_sizes(void **state)
{
    struct test *test = *state;
    size_t size = 1048577;
    char *data = malloc(size + 1);
    assert_non_null(data);
    memset(data, 'x', size);
    put_bytes(test, "@/big", data, size);
    const char *message =
        "File size (1048577 bytes) exceeds maximum allowed size (1048576 bytes)";
    fails(test, VIEW("@/big"), "TOO_LARGE", message);
    fails(test, REPLACE("@/big", "x", "y"), "TOO_LARGE", message);
    fails(test, INSERT("@/big", 0, "y"), "TOO_LARGE", message);
    put_bytes(test, "@/full", data, size - 1);
    fails(test, INSERT("@/full", 0, ""), "TOO_LARGE", message);
    has_bytes(test, "@/full", data, size - 1);
    char *args = malloc(size + 1000);
    assert_non_null(args);
    data[size] = '\0';
    (void)snprintf(args, size + 1000,
                   "{\"command\":\"create\",\"path\":\"%s/new\",\"file_text\":\"%s\"}",
                   test->root, data);
    struct answer answer = harness_call(&test->harness, "fileEditor", args);
    assert_string_equal(answer.code, "TOO_LARGE");
    assert_string_equal(answer.message, message);
    answer_free(&answer);
    assert_false(exists(test, "@/new"));
    free(args);
    free(data);
}

static void test_large_file_by_range(void **state)
{
    struct test *test = *state;
    char real[TEXT_MAX];
    expand(test, "@/large", real, sizeof(real));
    FILE *file = fopen(real, "w");
    assert_non_null(file);
    for (int i = 1; i <= 400000; i++) {
        (void)fprintf(file, "line %d of a large file, with some words in it\n", i);
    }
    assert_int_equal(fclose(file), 0);
    ok(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[200000,200001]}",
       CAT "@/large:\n200000  line 200000 of a large file, with some words in it\n"
           "200001  line 200001 of a large file, with some words in it\n");
    ok(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[400000,-1]}",
       CAT "@/large:\n400000  line 400000 of a large file, with some words in it\n400001  \n");
    fails(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[400002,-1]}",
          "INVALID_INPUT",
          "Invalid `view_range`: [400002, -1]. Its first element `400002` should be within the "
          "range of lines of the file: [1, 400001]");
    /* Over tools.max_answer: the lines that fit, and a last line with the next ones. */
    struct answer answer =
        call(test, "{\"command\":\"view\",\"path\":\"@/large\",\"view_range\":[1,-1]}");
    assert_int_equal(answer.rc, NG_OK);
    assert_int_equal(strlen(answer.revision_text), 32);
    size_t len = strlen(answer.text);
    assert_true(len <= 64 * 1024 && len > 60 * 1024);
    long lines = 0;
    long next = 0;
    const char *note = strrchr(answer.text, '\n');
    assert_int_equal(sscanf(note, "\n[lines 1-%ld of 400001; view_range [%ld, ", &lines, &next),
                     2);
    assert_int_equal(next, lines + 1);
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_str_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snippet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_insert, setup, teardown),
        cmocka_unit_test_setup_teardown(test_regex, setup, teardown),
        cmocka_unit_test_setup_teardown(test_regex_in_time, setup_hurried, teardown),
        cmocka_unit_test_setup_teardown(test_revisions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_file_by_range, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
