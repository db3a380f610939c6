/* SPDX-License-Identifier: MIT */
/* test_diff.c - comparison of two texts by lines; unified diffs are applied by patch(1). */
#include "core/base/text/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static struct ng_str str(const char *text)
{
    return ng_str_of(text);
}

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
    assert_int_equal(diff_unified(&diff, DIFF_CONTEXT, str("a"), str("b"), keep, ret), 0);
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
    /* Unchanged lines are equal on both sides, in the same order. */
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
        cmocka_unit_test(test_diff_texts),
        cmocka_unit_test(test_diff_is_short),
        cmocka_unit_test(test_patch_applies),
        cmocka_unit_test(test_diff_has_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
