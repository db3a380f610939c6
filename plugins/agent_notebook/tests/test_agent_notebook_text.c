/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_text.c - words, characters, lines and headings of the agent notebook,
 * from the inside. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "entry/entry.h"
#include "entry/entry_text.h"

static struct ng_str str(const char *text)
{
    return ng_str_of(text);
}

static void assert_str(struct ng_str got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.data == NULL ? "" : got.data, want, got.len);
}

/* ---- words, characters, lines ---- */

static void test_words(void **state)
{
    (void)state;
    assert_int_equal(entry_words(str("")), 0);
    assert_int_equal(entry_words(str(" \t\r\n ")), 0);
    assert_int_equal(entry_words(str("one")), 1);
    assert_int_equal(entry_words(str("  one two\nthree\t")), 3);
    assert_int_equal(entry_words(str("a\xc2\xa0"
                                     "b\xe2\x80\x89"
                                     "c\xe3\x80\x80"
                                     "d")),
                     4);
    assert_int_equal(entry_words(str("\xe2\x80\x93 caf\xc3\xa9")), 2);
}

static void test_characters(void **state)
{
    (void)state;
    assert_str(entry_trim(str(" \xc2\xa0 a b\xe3\x80\x80\n")), "a b");
    assert_str(entry_trim(str(" \n ")), "");
    struct ng_str none = {NULL, 0};
    assert_int_equal(entry_trim(none).len, 0);
    assert_int_equal(entry_words(none), 0);
    assert_int_equal(entry_lines(none), 1);
}

static void test_line_places(void **state)
{
    (void)state;
    struct ng_str text = str("a\nbb\n\nc");
    assert_int_equal(entry_lines(text), 4);
    assert_int_equal(entry_lines(str("")), 1);
    assert_int_equal(entry_lines(str("a\n")), 2);
    assert_int_equal(entry_line_at(text, 1), 0);
    assert_int_equal(entry_line_at(text, 2), 2);
    assert_int_equal(entry_line_at(text, 4), 6);
    assert_int_equal(entry_line_at(text, 9), text.len);
    assert_int_equal(entry_line_of(text, 0), 1);
    assert_int_equal(entry_line_of(text, 3), 2);
    assert_int_equal(entry_line_of(text, 6), 4);
}

/* ---- times ---- */

static void expect_time(const char *text, int64_t want)
{
    int64_t got = -1;
    assert_int_equal(entry_time_read(str(text), &got), want >= 0);
    if (want >= 0) {
        assert_int_equal(got, want);
    }
}

static void in_zone(const char *zone)
{
    (void)setenv("TZ", zone, 1);
    tzset();
}

static void test_times(void **state)
{
    (void)state;
    in_zone("EAST-14");
    expect_time("2026-12-01", 1796032800000);
    expect_time("2026-12-01 08:30", 1796063400000);
    expect_time("2026-11-30T18:30:00Z", 1796063400000);
    in_zone("UTC");
    expect_time("1970-01-01", 0);
    expect_time("2026-02-16", 1771200000000);
    expect_time("2026-02-16T10:30:00Z", 1771237800000);
    expect_time("2026-02-16T10:30:00.5Z", 1771237800500);
    expect_time("2026-02-16t10:30:00.123456z", 1771237800123);
    expect_time("2026-02-16 10:30", 1771237800000);
    expect_time("2026-02-16T12:30:00+02:00", 1771237800000);
    expect_time("2026-02-16T05:00:00-0530", 1771237800000);
    expect_time("2024-02-29", 1709164800000);
    expect_time("", -1);
    expect_time("2026-02", -1);
    expect_time("2026-13-01", -1);
    expect_time("2026-02-16T", -1);
    expect_time("2026-02-16T25:00", -1);
    expect_time("2026-02-16T10:30:00+2", -1);
    expect_time("2026-02-16T10:30:00Zx", -1);
    expect_time("yesterday!", -1);
}

/* ---- headings ---- */

/* All headings as "1:Text|2:Other". */
static void expect_headings(const char *text, const char *want)
{
    struct entry_scan scan = {.text = str(text)};
    struct entry_heading heading;
    char got[512] = "";
    size_t len = 0;
    while (entry_next_heading(&scan, &heading)) {
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%u:%.*s", len == 0 ? "" : "|",
                                heading.level, (int)heading.text.len, heading.text.data);
    }
    assert_string_equal(got, want);
}

static void test_headings(void **state)
{
    (void)state;
    expect_headings("", "");
    expect_headings("# One\n## Two ##\n####### seven\n#none\n###### Six", "1:One|2:Two|6:Six");
    expect_headings("   # In\n    # code\n\t# tab\n", "1:In");
    expect_headings("#\n# #\n# a#\n# \\# b #\n", "1:|1:|1:a#|1:\\# b");
    expect_headings("Title\n=====\n\nSub\n---\ntext\n", "1:Title|2:Sub");
    expect_headings("two\nlines\n===\n", "1:two\nlines");
    expect_headings("\n---\n\n***\n- item\n---\n> quote\n---\n1. one\n---\n", "");
    expect_headings("# a\r\nb\r\n===\r\n", "1:a|1:b");
    expect_headings("# \xc3\x9c"
                    "ber\n## \xe6\x97\xa5\xe6\x9c\xac\n",
                    "1:\xc3\x9c"
                    "ber|2:\xe6\x97\xa5\xe6\x9c\xac");
}

static void test_headings_not_in_blocks(void **state)
{
    (void)state;
    expect_headings("```sh\n# no\n```\n# yes\n", "1:yes");
    expect_headings("~~~~\n# no\n~~~\n```\n# no\n~~~~\n# yes\n", "1:yes");
    expect_headings("````\n```\n# no\n````\n# yes", "1:yes");
    expect_headings("``` a`b\n# yes\n", "1:yes");
    expect_headings("```\n# never closed\n", "");
    expect_headings("---\ntitle: x\n---\n# yes\n", "1:yes");
    expect_headings("---\ntitle: x\n", "");
}

static void expect_section(const char *text, const char *name, const char *want)
{
    struct entry_section section;
    bool found = entry_find_section(str(text), str(name), &section);
    assert_int_equal(found, want != NULL);
    if (found && want != NULL) {
        struct ng_str part = {text + section.heading.at, section.end - section.heading.at};
        assert_str(part, want);
    }
}

static void test_sections(void **state)
{
    (void)state;
    const char *text = "# A\na\n## B\nb\n### C\nc\n## D\nd\n# B\nlast";
    expect_section(text, "A", "# A\na\n## B\nb\n### C\nc\n## D\nd\n");
    expect_section(text, "B", "## B\nb\n### C\nc\n");
    expect_section(text, " C ", "### C\nc\n");
    expect_section(text, "## D", "## D\nd\n");
    expect_section(text, "d", NULL);
    expect_section(text, "", NULL);
    expect_section("T\n=\nx\n\nU\n-\ny\n", "T", "T\n=\nx\n\nU\n-\ny\n");
    expect_section("# A\n\ntwo\n  lines\n=====\nx\n", "two lines", "two\n  lines\n=====\nx\n");
    expect_section("two\r\nlines\n=====\nx\n", "two\nlines", "two\r\nlines\n=====\nx\n");
    expect_section("two\nlines\n=====\nx\n", "twolines", NULL);
    expect_section("two\nlines\n=====\nx\n", "two lines more", NULL);
    struct entry_section section;
    assert_true(entry_find_section(str(text), str("B"), &section));
    assert_int_equal(section.again, strlen("# A\na\n## B\nb\n### C\nc\n## D\nd\n"));
    assert_true(entry_find_section(str(text), str("C"), &section));
    assert_true(section.again == SIZE_MAX);
    assert_false(entry_may_head(str("- one\nmore\n--x\n")));
    assert_true(entry_may_head(str("one\n---\n")));
    assert_true(entry_may_head(str("one\n  ## h")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),       cmocka_unit_test(test_characters),
        cmocka_unit_test(test_line_places), cmocka_unit_test(test_times),
        cmocka_unit_test(test_headings),    cmocka_unit_test(test_headings_not_in_blocks),
        cmocka_unit_test(test_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
