/* SPDX-License-Identifier: MIT */
/* test_merge_counts.c - the lines that a changed stretch adds and removes. */
#include "core/base/merge/line_counts.h"

#include <string.h>

#include "core/base/text/diff.h"
#include "test_merge_rig.h"

#define ROUNDS 20000

static void test_counts(void **state)
{
    static const struct {
        const char *old, *new;
        uint64_t added, removed;
    } rows[] = {
        {"", "", 0, 0},
        {"", "x", 1, 0},
        {"", "x\n", 2, 0},
        {"x\n", "", 0, 2},
        {"x", "", 0, 1},
        {"a\nb\n", "a\nb\n", 0, 0},
        {"a\nb\n", "a\nb\nc\n", 1, 0},
        {"a\nb\nc\n", "a\nb\n", 0, 1},
        {"a\nb", "a\nb\nc", 1, 0},
        {"a\nb\nc", "a\nb", 0, 1},
        {"a\nb", "a\nb\n", 1, 0},
        {"a\nb\n", "b\n", 0, 1},
        {"a\nb\n", "x\na\nb\n", 1, 0},
        {"x\nab\n", "x\nac\nab\n", 1, 0},
        {"x\nac\nab\n", "x\nab\n", 0, 1},
        {"a\nb\nc\n", "a\nB\nc\n", 1, 1},
        {"a\nlong line\nc\n", "a\nlonger line\nc\n", 1, 1},
        {"a\nb\n", "a b\n", 1, 2},
        {"a b\n", "a\nb\n", 2, 1},
        /* an upper bound: the line between is equal */
        {"a\nb\nc\n", "A\nb\nC\n", 3, 3},
        {"a\r\n", "a\n", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        struct ng_str old = ng_str_of(rows[i].old);
        struct ng_splice splice;
        uint64_t added = 99;
        uint64_t removed = 99;
        rig_splice(old, ng_str_of(rows[i].new), &splice);
        assert_int_equal(line_counts(old, &splice, &added, &removed), NG_OK);
        assert_int_equal(added, rows[i].added);
        assert_int_equal(removed, rows[i].removed);
    }
}

static void test_splices_that_do_not_fit(void **state)
{
    static const struct ng_splice splices[] = {
        {4, 0, {"", 0}}, {0, 4, {"", 0}}, {2, 2, {"", 0}}, {1, UINT64_MAX, {"", 0}}};
    uint64_t added = 0;
    uint64_t removed = 0;
    (void)state;
    for (size_t i = 0; i < NG_COUNT(splices); i++) {
        assert_int_equal(line_counts(ng_str_of("abc"), &splices[i], &added, &removed),
                         NG_EINVAL);
    }
}

/* At least as many as a comparison finds, and their difference is that of the texts. */
static void test_counts_are_a_bound(void **state)
{
    static struct rig_text old, new, old_lines, new_lines;
    unsigned seed = rig_seed();
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct ng_splice splice;
        struct diff diff;
        uint64_t added = 0;
        uint64_t removed = 0;
        rig_random(&seed, &old, 12);
        rig_set(&new, rig_str(&old));
        rig_edit(&seed, &new);
        rig_splice(rig_str(&old), rig_str(&new), &splice);
        assert_int_equal(line_counts(rig_str(&old), &splice, &added, &removed), NG_OK);
        rig_set(&old_lines, rig_str(&old));
        rig_set(&new_lines, rig_str(&new));
        rig_add(&old_lines, "\n", old.len > 0);
        rig_add(&new_lines, "\n", new.len > 0);
        assert_int_equal(diff_lines(rig_str(&old_lines), rig_str(&new_lines), &diff), NG_OK);
        assert_in_range(diff.added, 0, added);
        assert_in_range(diff.removed, 0, removed);
        assert_true(added - removed == rig_pieces(rig_str(&new)) - rig_pieces(rig_str(&old)));
        diff_done(&diff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_splices_that_do_not_fit),
        cmocka_unit_test(test_counts_are_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
