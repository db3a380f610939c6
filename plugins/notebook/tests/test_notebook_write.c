/* SPDX-License-Identifier: MIT */
/* test_notebook_write.c - replacing, appending, inserting, and how long a text may get.
 */
#include "test_notebook_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

#define WRITE_SENTENCE                                                                         \
    "Write operation requires newStr, optionally with oldStr for replacement or insertLine "   \
    "for insertion; oldStr and insertLine cannot be combined"

/* Makes notebook n from `text` (JSON), inserts X at `line` (JSON), compares the outcome. */
static void expect_insert(struct harness *harness, const char *text, const char *line,
                          const char *reply_line, const char *after)
{
    char args[512];
    char reply[128];
    (void)snprintf(args, sizeof(args), "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":%s}",
                   text);
    struct answer made = harness_call(harness, "notebook", args);
    assert_int_equal(made.rc, NG_OK);
    answer_free(&made);
    (void)snprintf(args, sizeof(args),
                   "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":%s,\"newStr\":\"X\"}",
                   line);
    (void)snprintf(reply, sizeof(reply), "Inserted text at line %s in notebook 'n'",
                   reply_line);
    expect(harness, args, reply);
    expect(harness, "{\"mode\":\"read\",\"name\":\"n\"}", after);
}

static void expect_no_insert(struct harness *harness, const char *text, const char *line,
                             const char *code, const char *message)
{
    char args[512];
    (void)snprintf(args, sizeof(args), "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":%s}",
                   text);
    struct answer made = harness_call(harness, "notebook", args);
    assert_int_equal(made.rc, NG_OK);
    uint64_t revision = made.revision;
    answer_free(&made);
    (void)snprintf(args, sizeof(args),
                   "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":%s,\"newStr\":\"X\"}",
                   line);
    expect_fail(harness, args, code, message);
    struct answer read =
        harness_call(harness, "notebook", "{\"mode\":\"read\",\"name\":\"n\"}");
    assert_int_equal(read.revision, revision);
    answer_free(&read);
}

/* ---- replacing, appending ---- */

static void test_replace(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"a b a\"}",
           "Created notebook 'n' with specified content");
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"a\",\"newStr\":\"$& $1 $$\"}",
           "Replaced text in notebook 'n'");
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "$& $1 $$ b a");
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"$& $1 $$ \",\"newStr\":\"\"}",
           "Replaced text in notebook 'n'");
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "b a");
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"\",\"newStr\":\"> \"}",
           "Replaced text in notebook 'n'");
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "> b a");
    expect(h, "{\"mode\":\"write\",\"oldStr\":\"\",\"newStr\":\"in empty\"}",
           "Replaced text in notebook 'default'");
    expect(h, "{\"mode\":\"read\"}", "in empty");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"B\",\"newStr\":\"x\"}",
                "TOOL_FAILED", "String 'B' not found in notebook 'n'");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"b\\na\",\"newStr\":\"x\"}",
                "TOOL_FAILED", "String 'b\na' not found in notebook 'n'");
}

/* A miss names the nearest place, and never replaces there. */
static void test_nearest(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"a\\nIt\xe2\x80\x99s\"}",
           "Created notebook 'n' with specified content");
    struct answer answer =
        harness_call(h, "notebook",
                     "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"It's\",\"newStr\":\"\"}");
    assert_string_equal(answer.message, "String 'It's' not found in notebook 'n'");
    assert_string_equal(answer.hint, "Line 2 has \xe2\x80\x99 (U+2019) where oldStr has ' "
                                     "(U+0027). The line is: It\xe2\x80\x99s");
    answer_free(&answer);
    answer = harness_call(
        h, "notebook",
        "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":\"A\",\"newStr\":\"\"}");
    assert_string_equal(answer.hint, "Line 1 has a (U+0061) where insertLine has A (U+0041). "
                                     "The line is: a");
    answer_free(&answer);
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "a\nIt\xe2\x80\x99s");
}

static void test_append(void **state)
{
    struct harness *h = *state;
    expect(h, "{\"mode\":\"write\",\"newStr\":\"a\"}", "Appended text to notebook 'default'");
    expect(h, "{\"mode\":\"write\",\"newStr\":\"b\\n\"}",
           "Appended text to notebook 'default'");
    expect(h, "{\"mode\":\"write\",\"newStr\":\"c\"}", "Appended text to notebook 'default'");
    expect(h, "{\"mode\":\"read\"}", "a\nb\nc");
    struct answer same = harness_call(h, "notebook", "{\"mode\":\"write\",\"newStr\":\"\"}");
    assert_string_equal(same.text, "No changes made to notebook 'default'");
    assert_int_equal(same.revision, 3);
    answer_free(&same);
    expect(h, "{\"mode\":\"read\"}", "a\nb\nc");
}

static void test_write_members(void **state)
{
    struct harness *h = *state;
    expect_fail(h, "{\"mode\":\"write\"}", "INVALID_INPUT", WRITE_SENTENCE);
    expect_fail(h, "{\"mode\":\"write\",\"oldStr\":\"a\"}", "INVALID_INPUT", WRITE_SENTENCE);
    expect_fail(h, "{\"mode\":\"write\",\"insertLine\":1}", "INVALID_INPUT", WRITE_SENTENCE);
    expect_fail(h, "{\"mode\":\"write\",\"oldStr\":\"a\",\"insertLine\":1,\"newStr\":\"b\"}",
                "INVALID_INPUT", WRITE_SENTENCE);
    /* Before the notebook is looked for. */
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"nope\"}", "INVALID_INPUT", WRITE_SENTENCE);
    struct answer answer = harness_call(h, "notebook", "{\"mode\":\"write\"}");
    assert_non_null(strstr(answer.details, "/newStr"));
    answer_free(&answer);
}

/* ---- inserting ---- */

static void test_insert_at_number(void **state)
{
    struct harness *h = *state;
    expect_insert(h, "\"a\\nb\\nc\"", "0", "1", "X\na\nb\nc");
    expect_insert(h, "\"a\\nb\\nc\"", "1", "2", "a\nX\nb\nc");
    expect_insert(h, "\"a\\nb\\nc\"", "2", "3", "a\nb\nX\nc");
    expect_insert(h, "\"a\\nb\\nc\"", "3", "4", "a\nb\nc\nX");
    expect_insert(h, "\"a\\nb\\nc\"", "4", "4", "a\nb\nc\nX");
    expect_insert(h, "\"a\\nb\\nc\"", "-1", "4", "a\nb\nc\nX");
    expect_insert(h, "\"a\\nb\\nc\"", "-2", "3", "a\nb\nX\nc");
    expect_insert(h, "\"a\\nb\\nc\"", "-3", "2", "a\nX\nb\nc");
    expect_insert(h, "\"a\\nb\\nc\"", "-4", "1", "X\na\nb\nc");
    expect_no_insert(h, "\"a\\nb\\nc\"", "5", "INVALID_INPUT", "Line number out of range");
    expect_no_insert(h, "\"a\\nb\\nc\"", "-5", "INVALID_INPUT", "Line number out of range");
    expect_no_insert(h, "\"a\"", "9007199254740992", "INVALID_INPUT",
                     "Line number out of range");
}

static void test_insert_at_edges(void **state)
{
    struct harness *h = *state;
    expect_insert(h, "\"\"", "0", "1", "X\n");
    expect_insert(h, "\"\"", "1", "2", "\nX");
    expect_insert(h, "\"\"", "-1", "2", "\nX");
    expect_insert(h, "\"\"", "2", "2", "\nX");
    expect_insert(h, "\"\"", "-2", "1", "X\n");
    expect_insert(h, "\"a\\n\"", "-1", "3", "a\n\nX");
    expect_insert(h, "\"a\\n\"", "-2", "2", "a\nX\n");
    expect_insert(h, "\"a\\n\"", "1", "2", "a\nX\n");
    expect(h, "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"# Notes\"}",
           "Created notebook 'n' with specified content");
    expect(h,
           "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":-1,"
           "\"newStr\":\"\\n- 1\\n- 2\"}",
           "Inserted text at line 2 in notebook 'n'");
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "# Notes\n\n- 1\n- 2");
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":1,\"newStr\":\"\"}",
           "Inserted text at line 2 in notebook 'n'");
    expect(h, "{\"mode\":\"read\",\"name\":\"n\"}", "# Notes\n\n\n- 1\n- 2");
}

static void test_insert_at_text(void **state)
{
    struct harness *h = *state;
    expect_insert(h, "\"a\\nbcd\\nbc\"", "\"bc\"", "3", "a\nbcd\nX\nbc");
    expect_insert(h, "\"a\\nb\"", "\"\"", "2", "a\nX\nb");
    expect_insert(h, "\"a\\nb\"", "\"b\"", "3", "a\nb\nX");
    expect_no_insert(h, "\"a\\nb\"", "\"B\"", "TOOL_FAILED",
                     "Text 'B' not found in notebook 'n'");
    expect_no_insert(h, "\"a\\nb\"", "\"a\\nb\"", "TOOL_FAILED",
                     "Text 'a\nb' not found in notebook 'n'");
    expect_no_insert(h, "\"a\"", "\"1.5\"", "TOOL_FAILED",
                     "Text '1.5' not found in notebook 'n'");
    expect_no_insert(h, "\"a\"", "\"-\"", "TOOL_FAILED", "Text '-' not found in notebook 'n'");
}

static void test_insert_at_number_as_text(void **state)
{
    struct harness *h = *state;
    expect_insert(h, "\"a\\nb\"", "\"-1\"", "3", "a\nb\nX");
    expect_insert(h, "\"a\\nb\"", "\"1\"", "2", "a\nX\nb");
    expect_insert(h, "\"a\\nb\"", "\"0\"", "1", "X\na\nb");
    /* Text first. */
    expect_insert(h, "\"a\\nitem 1\\nb\"", "\"1\"", "3", "a\nitem 1\nX\nb");
    expect_no_insert(h, "\"a\\nb\"", "\"9\"", "INVALID_INPUT", "Line number out of range");
    expect_no_insert(h, "\"a\\nb\"", "\"99999999999999999999999\"", "INVALID_INPUT",
                     "Line number out of range");
}

/* ---- sizes ---- */

static void expect_size_error(struct answer answer, const char *message)
{
    assert_string_equal(answer.code, "TOO_LARGE");
    assert_int_equal(answer.status, 413);
    assert_string_equal(answer.message, message);
    answer_free(&answer);
}

static void test_cap(void **state)
{
    struct harness *h = *state;
    size_t max = (size_t)1024 * 1024;
    char *big = malloc(max + 1);
    assert_non_null(big);
    memset(big, 'x', max + 1);
    struct ng_str name = ng_str_of("n");
    expect_size_error(call_bytes(h, "create", name, "newStr", str_make(big, max + 1)),
                      "Notebook 'n' content (1048577 bytes) would exceed maximum of 1048576 "
                      "bytes");
    expect_fail(h, "{\"mode\":\"read\",\"name\":\"n\"}", "NOT_FOUND", "Notebook 'n' not found");
    struct answer answer = call_bytes(h, "create", name, "newStr", str_make(big, max));
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    expect_size_error(call_bytes(h, "write", name, "newStr", ng_str_of("y")),
                      "Notebook 'n' content (1048578 bytes) would exceed maximum of 1048576 "
                      "bytes");
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"n\",\"insertLine\":0,\"newStr\":\"\"}",
                "TOO_LARGE",
                "Notebook 'n' content (1048577 bytes) would exceed maximum of 1048576 bytes");
    /* The match comes before the cap. */
    expect_fail(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"z\",\"newStr\":\"\"}",
                "TOOL_FAILED", "String 'z' not found in notebook 'n'");
    expect(h, "{\"mode\":\"write\",\"name\":\"n\",\"oldStr\":\"xx\",\"newStr\":\"\\n\"}",
           "Replaced text in notebook 'n'");
    expect(h, "{\"mode\":\"list\"}", "Available notebooks:\n- default: Empty\n- n: 2 lines");
    expect_range(h, "n", "[1,1]", "1: ");
    expect(h, "{\"mode\":\"clear\",\"name\":\"n\"}", "Cleared notebook 'n'");
    free(big);
}

static void test_cap_is_configured(void **state)
{
    (void)state;
    static const char *const sets[] = {"plugins=notebook", "notebook.max_size=10", NULL};
    struct harness h = {0};
    harness_open(&h, sets);
    expect(&h, "{\"mode\":\"write\",\"newStr\":\"0123456789\"}",
           "Appended text to notebook 'default'");
    /* Bytes, not characters. */
    expect_fail(&h,
                "{\"mode\":\"create\",\"name\":\"n\","
                "\"newStr\":\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"}",
                "TOO_LARGE",
                "Notebook 'n' content (12 bytes) would exceed maximum of 10 bytes");
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_replace),
        TEST(test_nearest),
        TEST(test_append),
        TEST(test_write_members),
        TEST(test_insert_at_number),
        TEST(test_insert_at_edges),
        TEST(test_insert_at_text),
        TEST(test_insert_at_number_as_text),
        TEST(test_cap),
        cmocka_unit_test(test_cap_is_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
