/* SPDX-License-Identifier: MIT */
/* test_merge_hunks.c - hunks of the difference of two texts, and how they slide. */
#include "core/base/merge/merge_hunks.h"

#include <string.h>

#include "core/base/text/diff.h"
#include "test_merge_rig.h"

#define ROUNDS 4000

/* Is it the beginning of a line, or the end of the text? */
static bool is_start(struct ng_str text, size_t at)
{
    return at == 0 || at == text.len || text.data[at - 1] == '\n';
}

/* The hunks are apart, and make side of base. */
static void expect_hunks(const struct merge_hunks *hunks)
{
    static struct rig_text made;
    size_t at = 0;
    made.len = 0;
    for (size_t i = 0; i < hunks->count; i++) {
        const struct merge_hunk *hunk = &hunks->items[i];
        assert_true(i == 0 || hunk->base > at);
        assert_true(hunk->base < hunk->base_end || hunk->side < hunk->side_end);
        assert_true(is_start(hunks->base, hunk->base) && is_start(hunks->base, hunk->base_end));
        rig_add(&made, hunks->base.data + at, hunk->base - at);
        assert_int_equal(hunk->side, made.len);
        rig_add(&made, hunks->side.data + hunk->side, hunk->side_end - hunk->side);
        at = hunk->base_end;
    }
    rig_add(&made, hunks->base.data + at, hunks->base.len - at);
    assert_int_equal(made.len, hunks->side.len);
    assert_memory_equal(made.data, hunks->side.data, made.len);
}

static void test_random_hunks(void **state)
{
    static struct rig_text base, side;
    struct merge_hunks hunks;
    unsigned seed = rig_seed();
    unsigned slid = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t steps = DIFF_STEPS_MAX;
        rig_random(&seed, &base, 30);
        rig_set(&side, rig_str(&base));
        for (unsigned i = rig_below(&seed, 6); i > 0; i--) {
            rig_edit(&seed, &side);
        }
        rig_add(&base, "\n", base.len > 0);
        rig_add(&side, "\n", side.len > 0);
        assert_int_equal(merge_hunks_find(rig_str(&base), rig_str(&side), &steps, &hunks),
                         NG_OK);
        assert_false(hunks.coarse);
        expect_hunks(&hunks);
        for (size_t i = 0; i < hunks.count; i++) {
            while (merge_hunks_slide(&hunks, i, &steps)) {
                slid++;
                expect_hunks(&hunks);
            }
        }
        merge_hunks_done(&hunks);
    }
    assert_in_range(slid, ROUNDS / 20, UINT32_MAX);
}

/* Behind MERGE_HUNKS_MAX hunks the last one takes in the rest. */
static void test_too_many_hunks(void **state)
{
    enum { LINES = MERGE_HUNKS_MAX + 50 };
    static struct rig_text base, side;
    struct merge_hunks hunks;
    (void)state;
    for (int lines = LINES - 50; lines <= LINES; lines += 50) {
        int64_t steps = DIFF_STEPS_MAX;
        rig_set(&base, ng_str_of(""));
        rig_set(&side, ng_str_of(""));
        for (int i = 0; i < lines; i++) {
            rig_add(&base, "a\n", 2);
            rig_add(&side, "a\nc\n", 4);
        }
        rig_add(&base, "z\n", 2);
        rig_add(&side, "z\n", 2);
        assert_int_equal(merge_hunks_find(rig_str(&base), rig_str(&side), &steps, &hunks),
                         NG_OK);
        assert_int_equal(hunks.count, MERGE_HUNKS_MAX);
        assert_int_equal(hunks.coarse, lines == LINES);
        expect_hunks(&hunks);
        merge_hunks_done(&hunks);
    }
}

/* With no steps left: one hunk between the common beginning and end. */
static void test_no_steps(void **state)
{
    struct merge_hunks hunks;
    int64_t steps = 0;
    (void)state;
    assert_int_equal(merge_hunks_find(ng_str_of("a\nb\nc\nd\ne\n"),
                                      ng_str_of("a\nB\nc\nD\ne\n"), &steps, &hunks),
                     NG_OK);
    assert_true(hunks.coarse);
    assert_int_equal(hunks.count, 1);
    assert_int_equal(hunks.items[0].base, 2);
    assert_int_equal(hunks.items[0].base_end, 8);
    expect_hunks(&hunks);
    merge_hunks_done(&hunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_hunks),
        cmocka_unit_test(test_too_many_hunks),
        cmocka_unit_test(test_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
