/* SPDX-License-Identifier: MIT */
/* The hash table and the growing array. */
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/hash_table.h"
#include "harness.h"

#define ITEMS 1000

struct item {
    struct hash_link link;
    size_t key;
};

static bool has_key(const struct hash_link *link, const void *key)
{
    return HASH_ITEM(link, struct item, link)->key == *(const size_t *)key;
}

/* Few different hashes, so that chains are long. */
static uint64_t hash_of(size_t key)
{
    return key % 7;
}

static void test_items_are_found_and_removed(void **state)
{
    (void)state;
    struct hash_table table = {0};
    struct item *items = calloc(ITEMS, sizeof(*items));
    size_t missing = ITEMS;
    assert_non_null(items);
    assert_null(hash_table_find(&table, 0, has_key, &missing));
    assert_null(hash_table_first(&table));
    for (size_t i = 0; i < ITEMS; i++) {
        items[i].key = i;
        assert_int_equal(hash_table_add(&table, &items[i].link, hash_of(i)), NG_OK);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        assert_ptr_equal(hash_table_find(&table, hash_of(i), has_key, &i), &items[i].link);
    }
    assert_null(hash_table_find(&table, hash_of(missing), has_key, &missing));
    for (size_t i = 0; i < ITEMS; i += 2) {
        hash_table_remove(&table, &items[i].link);
        assert_null(hash_table_find(&table, hash_of(i), has_key, &i));
    }
    size_t seen = 0;
    for (struct hash_link *link = hash_table_first(&table); link != NULL;
         link = hash_table_next(&table, link)) {
        assert_int_equal(HASH_ITEM(link, struct item, link)->key % 2, 1);
        seen++;
    }
    assert_int_equal(seen, ITEMS / 2);
    assert_int_equal(table.count, ITEMS / 2);
    hash_table_done(&table);
    free(items);
}

static void test_a_table_without_memory_goes_on(void **state)
{
    (void)state;
    struct hash_table table = {0};
    struct item items[40];
    alloc_fail_after(0);
    assert_int_equal(hash_table_add(&table, &items[0].link, 0), NG_EINTERNAL);
    assert_int_equal(table.count, 0);
    for (size_t i = 0; i < NG_COUNT(items); i++) {
        items[i].key = i;
        if (table.count > 0 && table.count == table.size) {
            alloc_fail_after(0); /* it cannot grow: the item goes into a chain */
        }
        assert_int_equal(hash_table_add(&table, &items[i].link, hash_of(i)), NG_OK);
    }
    alloc_fail_after(-1);
    for (size_t i = 0; i < NG_COUNT(items); i++) {
        assert_non_null(hash_table_find(&table, hash_of(i), has_key, &i));
    }
    hash_table_done(&table);
}

static void test_an_array_grows_up_to_its_maximum(void **state)
{
    (void)state;
    size_t *items = NULL;
    size_t cap = 0;
    for (size_t count = 0; count < ITEMS; count++) {
        assert_int_equal(array_reserve((void **)&items, &cap, count + 1, sizeof(*items), ITEMS),
                         NG_OK);
        items[count] = count;
    }
    assert_int_equal(cap, ITEMS);
    assert_int_equal(array_reserve((void **)&items, &cap, ITEMS + 1, sizeof(*items), ITEMS),
                     NG_ETOOLARGE);
    assert_int_equal(items[ITEMS - 1], ITEMS - 1);
    alloc_fail_after(0);
    assert_int_equal(
        array_reserve((void **)&items, &cap, ITEMS + 1, sizeof(*items), SIZE_MAX / 64),
        NG_EINTERNAL);
    alloc_fail_after(-1);
    assert_int_equal(cap, ITEMS);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_found_and_removed),
        cmocka_unit_test(test_a_table_without_memory_goes_on),
        cmocka_unit_test(test_an_array_grows_up_to_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
