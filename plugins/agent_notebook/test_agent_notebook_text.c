/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_text.c - words, summaries' cuts, headings and line comparison of the
 * agent notebook, from the inside; unified diffs are applied by patch(1). */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff.h"
#include "entry.h"
#include "entry_text.h"

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
    assert_int_equal(entry_chars(str("abc"), 2), 2);
    assert_int_equal(entry_chars(str("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x"), 3), 9);
    assert_int_equal(entry_chars(str("ab"), 5), 2);
    assert_false(entry_longer(str("\xc3\xa9\xc3\xa9"), 2));
    assert_true(entry_longer(str("\xc3\xa9\xc3\xa9."), 2));
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
    assert_int_equal(entry_find(text, str("b"), 3), 3);
    assert_true(entry_find(text, str("b"), 4) == SIZE_MAX);
    assert_true(entry_find(text, str(""), 0) == SIZE_MAX);
}

/* ---- times ---- */

static void expect_time(const char *text, int64_t want)
{
    int64_t got = -1;
    assert_int_equal(entry_time_parse(str(text), &got), want >= 0);
    if (want >= 0) {
        assert_int_equal(got, want);
    }
}

static void test_times(void **state)
{
    (void)state;
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
    if (found) {
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

/* ---- comparing ---- */

struct text {
    char data[1 << 16];
    size_t len;
};

static int keep(void *user, struct ng_str piece)
{
    struct text *text = user;
    assert_true(text->len + piece.len < sizeof(text->data));
    memcpy(text->data + text->len, piece.data, piece.len);
    text->len += piece.len;
    text->data[text->len] = '\0';
    return 0;
}

static void unified(const char *old, const char *new, struct text *ret)
{
    struct diff diff;
    ret->len = 0;
    ret->data[0] = '\0';
    assert_int_equal(diff_lines(str(old), str(new), &diff), NG_OK);
    assert_int_equal(diff_unified(&diff, str("a"), str("b"), keep, ret), 0);
    diff_done(&diff);
}

static void test_diff_texts(void **state)
{
    struct text got;
    (void)state;
    unified("a\nb\n", "a\nb\n", &got);
    assert_string_equal(got.data, "");
    unified("", "", &got);
    assert_string_equal(got.data, "");
    unified("", "x", &got);
    assert_string_equal(got.data,
                        "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n");
    unified("x\n", "", &got);
    assert_string_equal(got.data, "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
    unified("x", "x\n", &got);
    assert_string_equal(got.data,
                        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
    unified("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", &got);
    assert_string_equal(got.data,
                        "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

/* Myers' own example: the shortest way has five differences. */
static void test_diff_is_short(void **state)
{
    struct diff diff;
    (void)state;
    assert_int_equal(diff_lines(str("A\nB\nC\nA\nB\nB\nA\n"), str("C\nB\nA\nB\nA\nC\n"), &diff),
                     NG_OK);
    assert_int_equal(diff.removed + diff.added, 5);
    diff_done(&diff);
}

static void write_file(const char *path, const char *data, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *path, const char *want, size_t len)
{
    static char got[1 << 16];
    FILE *file = fopen(path, "rb");
    /* patch removes what became empty. */
    size_t read = file == NULL ? 0 : fread(got, 1, sizeof(got), file);
    if (file != NULL) {
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(read, len);
    assert_memory_equal(got, want, len);
}

static void random_text(unsigned *seed, struct text *text, unsigned words)
{
    static const char *const lines[] = {"a\n",  "b\n", "\n",      "long line\n", "- x\n",
                                        "+y\n", "c\n", "--- z\n", "@@ 1\n",      "\\ q\n"};
    unsigned count = (unsigned)rand_r(seed) % 40;
    text->len = 0;
    for (unsigned i = 0; i < count; i++) {
        (void)keep(text, str(lines[(unsigned)rand_r(seed) % words]));
    }
    if (text->len > 0 && rand_r(seed) % 3 == 0) {
        text->len--; /* no line end at the end */
    }
    text->data[text->len] = '\0';
}

static void test_patch_applies(void **state)
{
    static struct text old, new, diff;
    char dir[] = "/tmp/notegate-diff-XXXXXX";
    char path[64];
    char patch[64];
    char command[256];
    (void)state;
    if (system("command -v patch >/dev/null 2>&1") != 0) {
        print_message("patch(1) is not installed\n");
        skip();
    }
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    (void)snprintf(patch, sizeof(patch), "%s/diff", dir);
    (void)snprintf(command, sizeof(command), "patch -s -t -F0 --binary %s %s >%s/out 2>&1",
                   path, patch, dir);
    unsigned seed = 7;
    for (int round = 0; round < 150; round++) {
        random_text(&seed, &old, 2 + (unsigned)round % 9);
        random_text(&seed, &new, 2 + (unsigned)round % 9);
        unified(old.data, new.data, &diff);
        write_file(path, old.data, old.len);
        write_file(patch, diff.data, diff.len);
        if (diff.len > 0) {
            assert_int_equal(system(command), 0);
        }
        expect_file(path, new.data, new.len);
    }
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* Two large texts with nothing in common but many equal lines: it ends, and is true. */
static void test_diff_has_a_budget(void **state)
{
    enum { LINES = 30000 };
    char *old = malloc((size_t)LINES * 8 + 1);
    char *new = malloc((size_t)LINES * 8 + 1);
    struct diff diff;
    unsigned seed = 3;
    size_t a = 0;
    size_t b = 0;
    (void)state;
    assert_non_null(old);
    assert_non_null(new);
    for (int i = 0; i < LINES; i++) {
        a += (size_t)snprintf(old + a, 8, "%u\n", (unsigned)rand_r(&seed) % 1000);
        b += (size_t)snprintf(new + b, 8, "%u\n", (unsigned)rand_r(&seed) % 1000);
    }
    assert_int_equal(diff_lines(str(old), str(new), &diff), NG_OK);
    /* What stays is the same on both sides, in the same order. */
    assert_int_equal(diff.old_count - diff.removed, diff.new_count - diff.added);
    size_t j = 0;
    for (size_t i = 0; i < diff.old_count; i++) {
        if (diff.gone[i] != 0) {
            continue;
        }
        while (diff.come[j] != 0) {
            j++;
        }
        size_t len = diff.old_at[i + 1] - diff.old_at[i];
        assert_int_equal(diff.new_at[j + 1] - diff.new_at[j], len);
        assert_memory_equal(old + diff.old_at[i], new + diff.new_at[j], len);
        j++;
    }
    diff_done(&diff);
    free(old);
    free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_line_places),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_headings),
        cmocka_unit_test(test_headings_not_in_blocks),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_diff_texts),
        cmocka_unit_test(test_diff_is_short),
        cmocka_unit_test(test_patch_applies),
        cmocka_unit_test(test_diff_has_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
