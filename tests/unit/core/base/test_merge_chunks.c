/* SPDX-License-Identifier: MIT */
/* test_merge_chunks.c - a long array in chunks. */
#include "core/base/merge/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/minmax.h"
#include "test_merge_rig.h"

#define ITEMS_MAX 4000
#define ROUNDS 4000

static uint64_t weight(const void *items, size_t count)
{
    const unsigned *numbers = items;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += numbers[i];
    }
    return sum;
}

/* The chunks hold these items, in chunks that are neither empty nor too full. */
static void expect_items(const struct chunks *chunks, const unsigned *items, size_t count)
{
    struct chunks_place place = {0, 0, 0};
    static unsigned copy[ITEMS_MAX];
    for (size_t i = 0; i < count; i++) {
        const unsigned *item = chunks_next(chunks, &place);
        assert_non_null(item);
        assert_int_equal(*item, items[i]);
    }
    assert_null(chunks_next(chunks, &place));
    assert_true(chunks->total == weight(items, count));
    assert_true(place.before == chunks->total);
    for (size_t i = 0; i < chunks->count; i++) {
        assert_in_range(chunks->list[i].count, 1, chunks->most);
    }
    place = chunks_find(chunks, 0);
    chunks_copy(chunks, place, count, copy);
    assert_memory_equal(copy, items, count * sizeof(items[0]));
}

/* As an array, replaced at random places. */
static void test_random_replacements(void **state)
{
    static unsigned items[ITEMS_MAX], put[64];
    struct chunks chunks;
    size_t count = 0;
    unsigned seed = rig_seed();
    (void)state;
    chunks_init(&chunks, sizeof(items[0]), 16, weight);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = rig_below(&seed, (unsigned)count + 1);
        size_t removed = size_min(rig_below(&seed, 50), count - at);
        size_t come = rig_below(&seed, round % 100 < 60 ? 64 : 5);
        come = size_min(come, ITEMS_MAX - count + removed);
        for (size_t i = 0; i < come; i++) {
            put[i] = 1 + rig_below(&seed, 100);
        }
        /* Anywhere within the item. */
        uint64_t within = at < count ? rig_below(&seed, items[at]) : 0;
        struct chunks_place place = chunks_find(&chunks, weight(items, at) + within);
        assert_true(place.before == weight(items, at));
        assert_int_equal(chunks_replace(&chunks, place, removed, put, come), NG_OK);
        memmove(items + at + come, items + at + removed,
                (count - at - removed) * sizeof(items[0]));
        memcpy(items + at, put, come * sizeof(items[0]));
        count = count - removed + come;
        if (round % 50 == 0) {
            expect_items(&chunks, items, count);
        }
    }
    expect_items(&chunks, items, count);
    assert_int_equal(chunks_replace(&chunks, chunks_find(&chunks, 0), count, NULL, 0), NG_OK);
    assert_int_equal(chunks.count, 0);
    assert_true(chunks.total == 0);
    chunks_done(&chunks);
}

static void test_without_memory(void **state)
{
    static const unsigned items[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct chunks chunks;
    int rc = NG_EINTERNAL;
    (void)state;
    chunks_init(&chunks, sizeof(items[0]), 4, weight);
    assert_int_equal(chunks_replace(&chunks, chunks_find(&chunks, 0), 0, items, 6), NG_OK);
    for (long n = 0; rc != NG_OK; n++) {
        assert_true(n < 20);
        alloc_fail_after(n);
        rc = chunks_replace(&chunks, chunks_find(&chunks, weight(items, 6)), 0, items + 6, 4);
        alloc_fail_after(-1);
        assert_true(rc != NG_OK || n > 1);
        expect_items(&chunks, items, rc == NG_OK ? 10 : 6);
    }
    chunks_done(&chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_replacements),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
