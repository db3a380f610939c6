/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit_replace.c - a text that occurs once is replaced; the lines that edits add
 * and remove are counted. */
#include "test_opennotes_edit_rig.h"

static void replaces(void **state)
{
    struct fixture *fixture = *state;
    counts(fixture, "- [ ] a\n- [ ] b\n", REPLACE("[ ] b", "[x] b"), "- [ ] a\n- [x] b\n", 1,
           1);
    counts(fixture, "a\nb\nc\n", REPLACE("b\\n", ""), "a\nc\n", 0, 1);
    counts(fixture, "a\nb\nc", REPLACE("b\\nc", "b\\nx\\nc\\nd"), "a\nb\nx\nc\nd", 2, 0);
    makes(fixture, "a", REPLACE("a", ""), "");
    makes(fixture,
          "\xef\xbb\xbf"
          "a\n",
          REPLACE("a", "b"),
          "\xef\xbb\xbf"
          "b\n");
    /* Headings are text like any other. */
    makes(fixture, "# A\n\n## B\nx\n", REPLACE("# A\\n", "## A\\n"), "## A\n\n## B\nx\n");
    makes(fixture, "A\n===\n", REPLACE("===", "---"), "A\n---\n");
    makes(fixture, "```\nx\n\n# B\n", REPLACE("x\\n", "x\\n```\\n"), "```\nx\n```\n\n# B\n");
}

static void replaces_in_crlf(void **state)
{
    struct fixture *fixture = *state;
    counts(fixture, "a\r\nb\r\nc\r\n", REPLACE("a\\nb", "x\\ny\\nz"), "x\r\ny\r\nz\r\nc\r\n", 3,
           2);
    makes(fixture, "a\r\nb\r\n", REPLACE("b", "x\\ny"), "a\r\nx\r\ny\r\n");
    makes(fixture, "a\r\nb\r\n", REPLACE("a\\r\\nb", "x\\ny"), "x\ny\r\n");
    makes(fixture, "a\r\nb\nc\r\n", REPLACE("a\\nb\\nc", "1\\n2\\n3"), "1\r\n2\n3\r\n");
    makes(fixture, "a\nb\n", REPLACE("a\\nb", "x\\ny"), "x\ny\n");
    refuses(fixture, "a\r\na\r\n\r\na\r\n", REPLACE("a\\n", "x"), "TOOL_FAILED",
            "occurs 3 times, in lines 1, 2, 4: 'a\n'");
}

static void ambiguous(void **state)
{
    struct fixture *fixture = *state;
    char text[200] = "";
    refuses(fixture, "---\nt: x\n---\nx\n", REPLACE("x", "y"), "TOOL_FAILED",
            "The note n.md is unchanged: `oldStr` occurs 2 times, in lines 2, 4: 'x'.");
    refuses(fixture, "\nxx\n", REPLACE("x", "y"), "TOOL_FAILED", "occurs 2 times, in line 2:");
    refuses(fixture, "aaa\n", REPLACE("aa", "b"), "TOOL_FAILED", "occurs 2 times, in line 1:");
    for (int i = 0; i < 10; i++) {
        (void)strncat(text, "x\n", sizeof(text) - strlen(text) - 1);
    }
    refuses(fixture, text, REPLACE("x", "y"), "TOOL_FAILED", "8, 9, 10: 'x'");
    (void)strncat(text, "x\nx\n", sizeof(text) - strlen(text) - 1);
    refuses(fixture, text, REPLACE("x", "y"), "TOOL_FAILED",
            "occurs 12 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ...: 'x'. Add the text "
            "around it to `oldStr`");
}

static void absent(void **state)
{
    struct fixture *fixture = *state;
    char members[600];
    char many[301];
    refuses(fixture, "a\n", REPLACE("b", "c"), "TOOL_FAILED",
            "`oldStr` does not occur in it: 'b'. Get the note again");
    /* The nearest place, by line and character. */
    refuses(fixture, "---\nt: 1\n---\n\tx\n", REPLACE("        x", "c"), "TOOL_FAILED",
            "Line 4 ");
    refuses(fixture, "one\nIt\xe2\x80\x99s\n", REPLACE("It's", "c"), "TOOL_FAILED", "U+2019");
    refuses(fixture, "one\r\ntwo words\r\n", REPLACE("one\\ntwo  words", "c"), "TOOL_FAILED",
            "Line 2 ");
    memset(many, 'y', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    (void)snprintf(members, sizeof(members),
                   "\"operation\":\"str_replace\",\"oldStr\":\"%s\",\"newStr\":\"\"", many);
    refuses(fixture, "a\n", members, "TOOL_FAILED", "yyy...'.");
}

static void frontmatter(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "---\nstatus: open\n---\nbody\n";
    makes(fixture, text, REPLACE("status: open", "status: done"),
          "---\nstatus: done\n---\nbody\n");
    makes(fixture, text, REPLACE("---\\nstatus: open\\n---\\n", ""), "body\n");
    makes(fixture, text, REPLACE("---\\nbody", "---\\n- a: b: c"),
          "---\nstatus: open\n---\n- a: b: c\n");
    refuses(fixture, text, REPLACE("open", "a: b"), "TOOL_FAILED",
            "its frontmatter would not parse");
    refuses(fixture, text, REPLACE("\\n---\\nbody", "\\nbody"), "TOOL_FAILED",
            "its frontmatter would have no end");
    /* One that does not parse may be mended in steps. */
    makes(fixture, "---\na: b: c\nd: [\n---\n", REPLACE("b: c", "b"), "---\na: b\nd: [\n---\n");
    makes(fixture, "body\n", REPLACE("body", "---\\na: 1\\n---\\nbody"),
          "---\na: 1\n---\nbody\n");
}

static void members(void **state)
{
    struct fixture *fixture = *state;
    refuses(fixture, "x\n", "\"operation\":\"str_replace\",\"oldStr\":\"x\"", "INVALID_PARAMS",
            "`newStr` is missing");
    refuses(fixture, "x\n", "\"operation\":\"str_replace\",\"newStr\":\"x\"", "INVALID_PARAMS",
            "`oldStr` is missing");
    refuses(fixture, "x\n", REPLACE("", "y"), "INVALID_PARAMS", "`oldStr` is empty");
    refuses(fixture, "x\n", REPLACE("x", "a\\u0000b"), "INVALID_PARAMS",
            "`newStr` holds NUL characters");
    refuses(fixture, "x\n", "\"content\":\"y\"," REPLACE("x", "y"), "INVALID_PARAMS",
            "`content` has no meaning for operation 'str_replace'");
    refuses(fixture, "x\n", "\"oldStr\":\"x\"," APPEND("y"), "INVALID_PARAMS",
            "`oldStr` has no meaning for operation 'append'; use 'str_replace'");
    refuses(fixture, "x\n", "\"newStr\":\"x\"," SET("{\"a\":1}"), "INVALID_PARAMS",
            "`newStr` has no meaning for operation 'set'");
    refuses(fixture, "x\n", "\"operation\":\"undo\",\"content\":\"y\"", "INVALID_PARAMS",
            "`content` has no meaning for operation 'undo'");
}

/* ---- lines added and removed */

static void counted(void **state)
{
    struct fixture *fixture = *state;
    counts(fixture, "a\n", APPEND("b\\nc"), "a\nb\nc\n", 2, 0);
    counts(fixture, "a", APPEND("b"), "a\nb\n", 1, 0);
    counts(fixture, "", APPEND("b"), "b\n", 1, 0);
    counts(fixture, "a\n", APPEND(""), "a\n", 0, 0);
    counts(fixture, "a\n", APPEND("a"), "a\na\n", 1, 0);
    counts(fixture, "---\nt: 1\n---\na\n", PREPEND("b"), "---\nt: 1\n---\nb\na\n", 1, 0);
    counts(fixture, "# A\n1\n2\n3\n4\n# B\n", SECTION("A", "1\\nx\\n3\\n4\\ny"),
           "# A\n1\nx\n3\n4\ny\n# B\n", 2, 1);
    counts(fixture, "---\na: 1\nb: 2\n---\n", SET("{\"a\":3,\"c\":4}"),
           "---\na: 3\nb: 2\nc: 4\n---\n", 2, 1);
    counts(fixture, "---\na: 1\nb: 2\n---\n",
           "\"operation\":\"replace_frontmatter\",\"line\":3,\"content\":\"b: 3\"",
           "---\na: 1\nb: 3\n---\n", 1, 1);
    counts(fixture, "# A\r\n1\r\n2\r\n", SECTION("A", "1\\n3"), "# A\r\n1\r\n3\r\n", 1, 1);
    counts(fixture, "ab\nac\n", REPLACE("b\\na", ""), "ac\n", 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replaces, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(replaces_in_crlf, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(ambiguous, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(absent, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(frontmatter, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(members, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(counted, edit_setup, edit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
