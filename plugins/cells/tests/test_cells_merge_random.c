/* SPDX-License-Identifier: MIT */
/* test_cells_merge_random.c - random merges of notebooks: none is invalid, what only one side
 * changed survives. The argument is their number. */
#include "core/base/str.h"
#include "test_cells_merge_rig.h"

#define MERGES 1000
#define CHANGES_MAX 5

struct trio {
    struct nb_text base, present, before;
};

static void trio_done(struct trio *trio)
{
    nb_text_done(&trio->base);
    nb_text_done(&trio->present);
    nb_text_done(&trio->before);
}

/* The result, empty with a conflict. */
static struct merge_result merged(struct ng_str base, struct ng_str present,
                                  struct ng_str before)
{
    struct merge_result result = {.text = {.len = 0}};
    assert_int_equal(notebook_merge(base, present, before, &result), NG_OK);
    assert_true(result.conflict.reason == MERGE_CLEAN || result.text.len == 0);
    return result;
}

static void merge_is(struct ng_str base, struct ng_str present, struct ng_str before,
                     struct ng_str want)
{
    struct merge_result result = merged(base, present, before);
    equal(buf_str(&result.text), want);
    merge_result_done(&result);
}

static void random_trio(unsigned *seed, struct trio *ret)
{
    static struct rig_notebook notebook;
    unsigned next = 100;
    rig_random(seed, &notebook);
    ret->before = rig_write(&notebook);
    for (unsigned i = rig_below(seed, CHANGES_MAX); i > 0; i--) {
        rig_change(seed, &notebook, &next);
    }
    ret->base = rig_write(&notebook);
    for (unsigned i = rig_below(seed, CHANGES_MAX); i > 0; i--) {
        rig_change(seed, &notebook, &next);
    }
    if (rig_below(seed, 10) == 0) { /* another program saved it */
        notebook.layout = rig_below(seed, RIG_LAYOUTS);
    }
    ret->present = rig_write(&notebook);
}

/* The cell with the id of that one; NULL: there is none, or no ids. */
static const struct nb_cell *same_cell(const struct nb *nb, const struct nb *other,
                                       const struct nb_cell *cell)
{
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (nb->cells[i].id.len > 0 &&
            str_equal(nb_bytes(nb->bytes, nb->cells[i].id), nb_bytes(other->bytes, cell->id))) {
            return &nb->cells[i];
        }
    }
    return NULL;
}

/* A cell that the undone changes did not touch keeps its bytes; it is gone only if present
 * lacks it. */
static void check_untouched(const struct nb *nb, const struct nb *base,
                            const struct nb *present, const struct nb *before)
{
    for (size_t i = 0; i < base->cell_count; i++) {
        const struct nb_cell *cell = &base->cells[i];
        const struct nb_cell *old = same_cell(before, base, cell);
        if (old == NULL || !str_equal(nb_bytes(before->bytes, old->whole),
                                      nb_bytes(base->bytes, cell->whole))) {
            continue;
        }
        const struct nb_cell *now = same_cell(present, base, cell);
        const struct nb_cell *made = same_cell(nb, base, cell);
        assert_int_equal(made != NULL, now != NULL);
        if (made != NULL && now != NULL) {
            equal(nb_bytes(nb->bytes, made->whole), nb_bytes(present->bytes, now->whole));
        }
    }
}

static void check_result(struct ng_str text, const struct trio *trio)
{
    struct nb nb;
    struct nb base;
    struct nb present;
    struct nb before;
    rig_check_valid(text, &nb);
    index_good(nb_text_str(&trio->base), &base);
    index_good(nb_text_str(&trio->present), &present);
    index_good(nb_text_str(&trio->before), &before);
    check_untouched(&nb, &base, &present, &before);
    nb_done(&nb);
    nb_done(&base);
    nb_done(&present);
    nb_done(&before);
}

static bool check_merge(const struct trio *trio)
{
    struct ng_str base = nb_text_str(&trio->base);
    struct ng_str present = nb_text_str(&trio->present);
    struct ng_str before = nb_text_str(&trio->before);
    merge_is(base, base, before, before);
    merge_is(base, present, base, present);
    struct merge_result result = merged(base, present, before);
    bool clean = result.conflict.reason == MERGE_CLEAN;
    if (clean) {
        struct ng_str text = buf_str(&result.text);
        check_result(text, trio);
        merge_is(text, text, present, present); /* undone again */
    } else {
        assert_true(result.conflict.reason != MERGE_NOT_TEXT &&
                    result.conflict.reason != MERGE_TOO_LARGE);
    }
    merge_result_done(&result);
    return clean;
}

static void test_random(void **state)
{
    unsigned rounds = *(const unsigned *)*state;
    unsigned seed = rig_seed();
    unsigned clean = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct trio trio;
        random_trio(&seed, &trio);
        clean += check_merge(&trio);
        trio_done(&trio);
    }
    print_message("%u of %u without a conflict\n", clean, rounds);
    assert_true(clean > rounds / 2);
}

/* Sides that swap have the same cells. */
static void check_presence(const struct trio *trio)
{
    struct ng_str base = nb_text_str(&trio->base);
    struct merge_result one =
        merged(base, nb_text_str(&trio->present), nb_text_str(&trio->before));
    struct merge_result other =
        merged(base, nb_text_str(&trio->before), nb_text_str(&trio->present));
    struct nb first;
    struct nb second;
    assert_int_equal(one.conflict.reason == MERGE_CLEAN, other.conflict.reason == MERGE_CLEAN);
    if (one.conflict.reason == MERGE_CLEAN) {
        index_good(buf_str(&one.text), &first);
        index_good(buf_str(&other.text), &second);
        assert_int_equal(first.cell_count, second.cell_count);
        for (size_t i = 0; i < first.cell_count; i++) {
            assert_true(!first.has_ids || same_cell(&second, &first, &first.cells[i]) != NULL);
        }
        nb_done(&first);
        nb_done(&second);
    }
    merge_result_done(&one);
    merge_result_done(&other);
}

static void test_presence(void **state)
{
    unsigned rounds = *(const unsigned *)*state / 2;
    unsigned seed = rig_seed();
    for (unsigned i = 0; i < rounds; i++) {
        struct trio trio;
        random_trio(&seed, &trio);
        check_presence(&trio);
        trio_done(&trio);
    }
}

/* One side changes some cells, the other one the others: all of it survives. */
static void test_disjoint(void **state)
{
    static struct rig_notebook sides[3]; /* base, present, before */
    static struct rig_notebook want;
    unsigned rounds = *(const unsigned *)*state / 2;
    unsigned seed = rig_seed();
    for (unsigned i = 0; i < rounds; i++) {
        rig_random(&seed, &sides[0]);
        sides[0].minor = 5;
        sides[1] = sides[2] = want = sides[0];
        for (size_t cell = 0; cell < want.count; cell++) {
            struct rig_notebook *side = &sides[1 + rig_below(&seed, 2)];
            for (unsigned changes = rig_below(&seed, 4); changes > 0; changes--) {
                rig_change_cell(&seed, side, cell);
            }
            want.cells[cell] = side->cells[cell];
        }
        struct nb_text texts[3];
        struct nb_text wanted = rig_write(&want);
        for (int side = 0; side < 3; side++) {
            texts[side] = rig_write(&sides[side]);
        }
        merge_is(nb_text_str(&texts[0]), nb_text_str(&texts[1]), nb_text_str(&texts[2]),
                 nb_text_str(&wanted));
        for (int side = 0; side < 3; side++) {
            nb_text_done(&texts[side]);
        }
        nb_text_done(&wanted);
    }
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : MERGES;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_random, &rounds),
        cmocka_unit_test_prestate(test_presence, &rounds),
        cmocka_unit_test_prestate(test_disjoint, &rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
