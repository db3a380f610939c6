/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit_section.c - lines at the beginning and the end of a section, in notes and
 * in the note of a day, where a missing section is made. */
#include "test_opennotes_edit_rig.h"

#include "core/base/str.h"

#define DAILY "opennotes_daily"
#define DAY "2026-03-04"
#define DAY_FILE "daily/2026-03-04.md"
#define TWO "# T\n\nintro\n\n## A\n\nold\n\n### A.1\nsub\n\n\n## B\nb\n\n# C\nc"

/* ---- append */

static void appends(void **state)
{
    struct fixture *fixture = *state;
    counts(fixture, TWO, APPEND_IN("A", "new"),
           "# T\n\nintro\n\n## A\n\nold\n\n### A.1\nsub\nnew\n\n\n## B\nb\n\n# C\nc", 1, 0);
    counts(fixture, TWO, APPEND_IN("T", "x\\n\\ny\\n"),
           "# T\n\nintro\n\n## A\n\nold\n\n### A.1\nsub\n\n\n## B\nb\nx\n\ny\n\n# C\nc", 3, 0);
    counts(fixture, TWO, APPEND_IN("#c", "end"),
           "# T\n\nintro\n\n## A\n\nold\n\n### A.1\nsub\n\n\n## B\nb\n\n# C\nc\nend\n", 1, 0);
    makes(fixture, "# A\n\n# B\n", APPEND_IN("A", "n"), "# A\nn\n\n# B\n");
    makes(fixture, "# A\n# B\n", APPEND_IN("# A", "n"), "# A\nn\n# B\n");
    makes(fixture, "# A", APPEND_IN("A", "n"), "# A\nn\n");
    makes(fixture, "# A\n- [ ] a\n  \n\t\n", APPEND_IN("A", "- [ ] b"),
          "# A\n- [ ] a\n- [ ] b\n  \n\t\n");
    counts(fixture, "# A\nx\n", APPEND_IN("A", ""), "# A\nx\n", 0, 0);
    /* Its own heading, sent again, stays once; another one may come. */
    makes(fixture, "# A\nx\n# B\n", APPEND_IN("A", "# A\\ny"), "# A\nx\ny\n# B\n");
    makes(fixture, "# A\nx\n# B\n", APPEND_IN("A", "## D\\ny"), "# A\nx\n## D\ny\n# B\n");
}

static void appends_by_markdown(void **state)
{
    struct fixture *fixture = *state;
    makes(fixture, "# A\r\nx\r\n\r\n# B\r\n", APPEND_IN("A", "y\\nz"),
          "# A\r\nx\r\ny\r\nz\r\n\r\n# B\r\n");
    makes(fixture, "---\nt: 1\n---\n## A\n```sh\n# A\n## B\n```\n\n## B\nb\n",
          APPEND_IN("A", "n"), "---\nt: 1\n---\n## A\n```sh\n# A\n## B\n```\nn\n\n## B\nb\n");
    makes(fixture, "A\n===\nold\n\nB\n---\nb\n\nC\n===\n", APPEND_IN("A", "n"),
          "A\n===\nold\n\nB\n---\nb\nn\n\nC\n===\n");
    makes(fixture, "A\n---\nold\n\nB\n---\nb\n", APPEND_IN("A", "n"),
          "A\n---\nold\nn\n\nB\n---\nb\n");
    makes(fixture, "\xef\xbb\xbf# A\nx\n", APPEND_IN("A", "n"), "\xef\xbb\xbf# A\nx\nn\n");
    /* The new line would be the first of the heading. */
    refuses(fixture, "# A\nB\n===\n", APPEND_IN("A", "n"), "TOOL_FAILED",
            "would be a heading no longer, or another one");
}

static void prepends(void **state)
{
    struct fixture *fixture = *state;
    counts(fixture, TWO, PREPEND_IN("A", "new"),
           "# T\n\nintro\n\n## A\nnew\n\nold\n\n### A.1\nsub\n\n\n## B\nb\n\n# C\nc", 1, 0);
    makes(fixture, "A\r\n===\r\nold\r\n", PREPEND_IN("A", "x\\ny"),
          "A\r\n===\r\nx\r\ny\r\nold\r\n");
    makes(fixture, "# A", PREPEND_IN("A", "n"), "# A\nn\n");
    makes(fixture, "---\nt: 1\n---\n# A\n# B\n", PREPEND_IN("A", "# A\\nn"),
          "---\nt: 1\n---\n# A\nn\n# B\n");
    makes(fixture, "# A\n1\n# A\n2\n", PREPEND_IN("#a-1", "n"), "# A\n1\n# A\nn\n2\n");
}

static void refused(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "# A\n1\n\n- # L\n  x\n\n# A\n2\n";
    static const char *const both[] = {APPEND_IN("A", "n"), PREPEND_IN("A", "n")};
    static const char *const none[] = {APPEND_IN("none", "n"), PREPEND_IN("none", "n")};
    static const char *const nested[] = {APPEND_IN("L", "n"), PREPEND_IN("L", "n")};
    for (size_t i = 0; i < NG_COUNT(both); i++) {
        refuses(fixture, text, both[i], "INVALID_PARAMS", "2 times. Name the first by its");
        refuses(fixture, text, none[i], "SECTION_NOT_FOUND", "has the headings 'A', 'L', 'A'");
        refuses(fixture, text, nested[i], "TOOL_FAILED", "Name the section around it");
    }
    refuses(fixture, "---\nt: 1\n---\n", APPEND_IN("A", "n"), "SECTION_NOT_FOUND",
            "has no headings");
    refuses(fixture, "# A\n", "\"section\":\"A\"," SET("{\"a\":1}"), "INVALID_PARAMS",
            "`section` has no meaning for operation 'set'");
    refuses(fixture, "# A\n", "\"section\":\"A\"," REPLACE("A", "B"), "INVALID_PARAMS",
            "`section` has no meaning for operation 'str_replace'");
}

/* ---- the note of a day */

static void daily_makes(struct fixture *fixture, const char *text, const char *members,
                        const char *wanted)
{
    char args[500];
    if (text != NULL) {
        fixture_put(fixture, DAY_FILE, text);
    }
    (void)snprintf(args, sizeof(args), "{\"date\":\"" DAY "\",%s}", members);
    free(fixture_call(fixture, DAILY, args));
    fixture_has(fixture, DAY_FILE, wanted);
}

static void daily_refuses(struct fixture *fixture, const char *text, const char *members,
                          const char *code, const char *said)
{
    char args[500];
    fixture_put(fixture, DAY_FILE, text);
    (void)snprintf(args, sizeof(args), "{\"date\":\"" DAY "\",%s}", members);
    fixture_fails(fixture, DAILY, args, code, said);
    fixture_has(fixture, DAY_FILE, text);
}

#define TO(section, content) "\"section\":\"" section "\",\"content\":\"" content "\""

static void daily_section(void **state)
{
    struct fixture *fixture = *state;
    daily_makes(fixture, "# D\n\n## Tasks\n- a\n\n## Log\n", TO("Tasks", "- b"),
                "# D\n\n## Tasks\n- a\n- b\n\n## Log\n");
    daily_makes(fixture, "# D\ntext", TO("Tasks", "- b"), "# D\ntext\n\n## Tasks\n- b\n");
    daily_makes(fixture, NULL, TO("tasks", "- c"), "# D\ntext\n\n## Tasks\n- b\n- c\n");
    daily_makes(fixture, "# D\n\n", TO("Tasks", "## Tasks\\n- b"), "# D\n\n## Tasks\n- b\n");
    daily_makes(fixture, "# D\r\n", TO("Tasks", "- b"), "# D\r\n\r\n## Tasks\r\n- b\r\n");
    daily_makes(fixture, "---\nt: 1\n---\n", TO("Tasks", "- b"),
                "---\nt: 1\n---\n## Tasks\n- b\n");
    daily_makes(fixture, "---\nt: 1\n---", TO("Tasks", "- b"),
                "---\nt: 1\n---\n## Tasks\n- b\n");
    daily_makes(fixture, "", TO("Tasks", "- b"), "## Tasks\n- b\n");
    /* Made so that the same name finds it again. */
    daily_makes(fixture, "", TO("### Sub *x*", "- b"), "### Sub *x*\n- b\n");
    daily_makes(fixture, NULL, TO("### Sub *x*", "- c"), "### Sub *x*\n- b\n- c\n");
    daily_makes(fixture, "", TO("#tasks", "- b"), "## tasks\n- b\n");
    daily_makes(fixture, NULL, TO("#tasks", "- c"), "## tasks\n- b\n- c\n");
    daily_makes(fixture, "- # Tasks\n\n```\n## Log\n```\n", TO("Log", "- b"),
                "- # Tasks\n\n```\n## Log\n```\n\n## Log\n- b\n");
}

static void daily_fresh(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, ".opennotes.json",
                "{\"templates\":{\"daily\":\"# {{date}}\\n\\n## Tasks\\n\\n## Log\\n\"}}");
    free(fixture_call(fixture, DAILY, "{\"date\":\"" DAY "\"," TO("Tasks", "- a") "}"));
    free(fixture_call(fixture, DAILY, "{\"date\":\"" DAY "\"," TO("New", "- b") "}"));
    char *text = fixture_get(fixture, DAY_FILE);
    assert_true(str_ends(ng_str_of(text),
                         "---\n# " DAY "\n\n## Tasks\n- a\n\n## Log\n\n## New\n- b\n"));
    free(text);
}

static void daily_refused(void **state)
{
    struct fixture *fixture = *state;
    daily_refuses(fixture, "x\n", "\"section\":\"Tasks\"", "INVALID_PARAMS",
                  "`section` has no meaning without `content`");
    daily_refuses(fixture, "x\n", TO("Tasks", ""), "INVALID_PARAMS", "without `content`");
    daily_refuses(fixture, "x\n", TO("", "n"), "INVALID_PARAMS", "in one line");
    daily_refuses(fixture, "x\n", TO("a\\nb", "n"), "INVALID_PARAMS", "in one line");
    daily_refuses(fixture, "```\ncode\n", TO("Tasks", "n"), "TOOL_FAILED",
                  "a heading 'Tasks' at its end would not be found again");
    daily_refuses(fixture, "## A\n1\n## A\n2\n", TO("A", "n"), "INVALID_PARAMS", "2 times");
    daily_refuses(fixture, "- # L\n", TO("L", "n"), "TOOL_FAILED", "stands in a list item");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appends, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(appends_by_markdown, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(prepends, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(refused, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(daily_section, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(daily_fresh, edit_setup, edit_teardown),
        cmocka_unit_test_setup_teardown(daily_refused, edit_setup, edit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
