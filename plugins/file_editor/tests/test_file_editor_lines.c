/* SPDX-License-Identifier: MIT */
/* test_file_editor_lines.c - line ends: files keep theirs, whatever the caller writes.
 */
#include "test_file_editor_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REVIEW                                                                                 \
    "Review the changes and make sure they are as expected. Edit the file again if necessary."

/* A file, one edit, and the result. */
struct edit {
    const char *before, *args, *after;
};

static void run(struct test *test, const struct edit *edits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(test, "@/f", edits[i].before);
        works(test, edits[i].args);
        has(test, "@/f", edits[i].after);
        works(test, UNDO("@/f"));
        has(test, "@/f", edits[i].before);
    }
}

static void test_insert(void **state)
{
    static const struct edit edits[] = {
        {"a\r\nc\r\nd\r\n", INSERT("@/f", 1, "ins"), "a\r\nins\r\nc\r\nd\r\n"},
        {"a\r\nc\r\n", INSERT("@/f", 0, "x\\ny"), "x\r\ny\r\na\r\nc\r\n"},
        {"a\r\nc\r\n", INSERT("@/f", 0, "x\\r\\ny"), "x\r\ny\r\na\r\nc\r\n"},
        {"a\r\nc", INSERT("@/f", 2, "x\\ny"), "a\r\nc\r\nx\r\ny"},
        {"a\r\nc\r\n", INSERT("@/f", 3, "x"), "a\r\nc\r\n\r\nx"},
        {"a\nc\n", INSERT("@/f", 1, "x\\ny"), "a\nx\ny\nc\n"},
        {"a\nc\n", INSERT("@/f", 1, "x\\r\\ny"), "a\nx\r\ny\nc\n"},
        {"a", INSERT("@/f", 1, "x"), "a\nx"},
        {"a\rb", INSERT("@/f", 1, "x"), "a\rb\nx"},
        {"\r\n", INSERT("@/f", 1, "x\\n"), "\r\nx\r\n\r\n"},
        /* Mixed: as the line before, of the first line as that itself. */
        {"a\r\nb\nc\r\n", INSERT("@/f", 1, "x"), "a\r\nx\r\nb\nc\r\n"},
        {"a\r\nb\nc\r\n", INSERT("@/f", 2, "x"), "a\r\nb\nx\nc\r\n"},
        {"a\nb\r\n", INSERT("@/f", 0, "x"), "x\na\nb\r\n"},
        {"\xef\xbb\xbf"
         "a\r\nb\r\n",
         INSERT("@/f", 1, "x"),
         "\xef\xbb\xbf"
         "a\r\nx\r\nb\r\n"},
    };
    run(*state, edits, NG_COUNT(edits));
}

static void test_str_replace(void **state)
{
    static const struct edit edits[] = {
        {"a\r\nb\r\nc\r\n", REPLACE("@/f", "a\\nb", "x\\ny"), "x\r\ny\r\nc\r\n"},
        {"a\r\nb\r\nc\r\n", REPLACE("@/f", "b", "x\\ny"), "a\r\nx\r\ny\r\nc\r\n"},
        {"a\r\nb\r\nc", REPLACE("@/f", "c", "x\\ny"), "a\r\nb\r\nx\r\ny"},
        {"a\r\nb\r\nc\r\n", REPLACE("@/f", "b\\n", ""), "a\r\nc\r\n"},
        {"a\r\nb\r\nc\r\n", REPLACE("@/f", "\\nb\\n", "\\n"), "a\r\nc\r\n"},
        {"a\r\n\r\nb\r\n", REPLACE("@/f", "\\n\\n", "\\n"), "a\r\nb\r\n"},
        {"a\r\nb\r\n", REPLACE("@/f", "a\\nb\\n", "1\\n2\\n3\\n"), "1\r\n2\r\n3\r\n"},
        {"a\r\nb\r\n", REPLACE("@/f", "a", "x\\r\\ny"), "x\r\ny\r\nb\r\n"},
        /* With CR in old_str the bytes are meant. */
        {"a\r\nb\r\n", REPLACE("@/f", "a\\r\\n", "a\\n"), "a\nb\r\n"},
        {"a\r\nb\r\n", REPLACE("@/f", "a\\r\\nb", "x\\ny"), "x\ny\r\n"},
        {"a\r\rb\r\nc", REPLACE("@/f", "a\\r\\rb", "z"), "z\r\nc"},
        /* Mixed: line by line, a new line as the one before it. */
        {"a\r\nb\nc\r\nd\n", REPLACE("@/f", "a\\nb\\nc\\nd", "1\\n2\\n3\\n4"),
         "1\r\n2\n3\r\n4\n"},
        {"a\r\nb\nc\r\n", REPLACE("@/f", "a\\nb\\nc", "1\\n2\\n3\\n4"), "1\r\n2\n3\n4\r\n"},
        {"a\nb\r\nc\n", REPLACE("@/f", "b", "x\\ny"), "a\nx\r\ny\r\nc\n"},
        {"a\nb\nc\r\n", REPLACE("@/f", "a\\nb", "x\\ny"), "x\ny\nc\r\n"},
        /* A CR alone ends no line. */
        {"a\r\nx\r\ry\r\n", REPLACE("@/f", "a\\nx", "b\\nz"), "b\r\nz\r\ry\r\n"},
        {"a\nb\n", REPLACE("@/f", "a\\nb", "x\\r\\ny"), "x\r\ny\n"},
    };
    run(*state, edits, NG_COUNT(edits));
}

static void test_what_it_says(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "a\r\nb\r\na\r\nb\r\nc\r\n");
    fails(test, REPLACE("@/f", "a\\nb", "x"), "TOOL_FAILED",
          "No replacement was performed. Multiple occurrences of old_str `a\nb` in lines "
          "[1,3]. Please ensure it is unique");
    fails(test, REPLACE("@/f", "c\\nd", "x"), "TOOL_FAILED",
          "No replacement was performed, old_str `c\nd` did not appear verbatim in @/f.");
    ok(test, REPLACE("@/f", "b\\nc", "x\\ny\\nz"),
       "The file @/f has been edited. " CAT
       "a snippet of @/f:\n     1  a\r\n     2  b\r\n     3  a\r\n     4  x\r\n     5  y\r\n"
       "     6  z\r\n     7  \n" REVIEW);
    /* Two places that look alike are two places, however their lines end. */
    put(test, "@/g", "a\nb\na\r\nb\r\n");
    fails(test, REPLACE("@/g", "a\\nb", "x"), "TOOL_FAILED",
          "No replacement was performed. Multiple occurrences of old_str `a\nb` in lines "
          "[1,3]. Please ensure it is unique");
}

static void test_regex(void **state)
{
    static const struct edit edits[] = {
        {"k: v\r\n", REGEX("@/f", "k: (.+)", "[$1]"), "[v]\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "^(.*)$", "<$1>"), "<a>\r\n<b>\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "a\\\\nb", "xy"), "xy\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "a\\nb", "x\\ny"), "x\r\ny\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "a\\\\nb", "x\\r\\ny"), "x\r\ny\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "(a)\\\\s+", "$1"), "ab\r\n"},
        {"a \r\nb\t\r\n", REGEX("@/f", "[ \\\\t]+$", ""), "a\r\nb\r\n"},
        {"a\r\nb", REGEX("@/f", "b", "b\\n"), "a\r\nb\r\n"},
        {"a;\r\nb;\r\n", REGEX("@/f", ";\\\\r?$", ""), "a\r\nb\r\n"},
        {"a\r\nb\r\n", REGEX("@/f", "([^\\\\r\\\\n]+)\\\\R", "$1,\\n"), "a,\r\nb,\r\n"},
        {"\xef\xbb\xbf"
         "a\r\nb\r\n",
         REGEX("@/f", "a$", "x"),
         "\xef\xbb\xbf"
         "x\r\nb\r\n"},
        /* A pattern that only fits the bytes means them. */
        {"a\r\nb\r\n", REGEX("@/f", "\\\\r\\\\n", "\\n"), "a\nb\n"},
        {"a\r\nb\r\n", REGEX("@/f", "\\\\x0d", ""), "a\nb\n"},
        /* A CR alone ends no line, and is kept. */
        {"a\rb\r\n", REGEX("@/f", "(.+)$", "[$1]"), "[a\rb]\r\n"},
        {"a\r\r\nb\r\nc", REGEX("@/f", "(.+)$", "[$1]"), "[a\r]\r\n[b]\r\n[c]"},
        {"a\r\r\nb\r\n", REGEX("@/f", "b", "x\\ny"), "a\r\r\nx\r\ny\r\n"},
        {"a\rb\r\n", REGEX("@/f", "\\r", ";"), "a;b\r\n"},
        /* Mixed files as they are. */
        {"a\r\nb\n", REGEX("@/f", "(.+)$", "[$1]"), "[a\r]\n[b]\n"},
        {"a\rb", REGEX("@/f", "(.+)$", "[$1]"), "[a\rb]"},
        {"a\nb\n", REGEX("@/f", "^(.+)\\\\n", "$1\\n\\n"), "a\n\nb\n\n"},
    };
    run(*state, edits, NG_COUNT(edits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_regex, setup, teardown),
        cmocka_unit_test_setup_teardown(test_insert, setup, teardown),
        cmocka_unit_test_setup_teardown(test_str_replace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_it_says, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
