/* SPDX-License-Identifier: MIT */
/* test_merge_order.c - three-way merge of ordered lists of ids. */
#include "core/base/merge/merge_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "test_merge_rig.h"

#define IDS_MAX 64
#define ROUNDS 3000

struct ids {
    struct ng_str items[IDS_MAX];
    struct merge_list list;
};

/* Each character of the text is an id. */
static void split(const char *text, struct ids *ret)
{
    size_t count = strlen(text);
    assert_true(count <= IDS_MAX);
    for (size_t i = 0; i < count; i++) {
        ret->items[i] = str_make(text + i, 1);
    }
    ret->list = (struct merge_list){ret->items, count};
}

static int merge(const char *const texts[3], struct merge_order *ret)
{
    struct ids ids[3];
    for (int i = 0; i < 3; i++) {
        split(texts[i], &ids[i]);
    }
    return merge_order(&ids[0].list, &ids[1].list, &ids[2].list, ret);
}

/* The merged ids, or "!". */
static void merge_text(const char *const texts[3], char ret[IDS_MAX * 3])
{
    struct merge_order order;
    size_t len = 0;
    assert_int_equal(merge(texts, &order), NG_OK);
    for (size_t i = 0; i < order.count; i++) {
        ret[len++] = order.ids[i].data[0];
    }
    if (order.conflict) {
        assert_int_equal(order.count, 0);
        ret[len++] = '!';
    }
    ret[len] = '\0';
    merge_order_done(&order);
}

static void test_orders(void **state)
{
    static const struct {
        const char *texts[3]; /* base, present, before */
        const char *want;
    } rows[] = {
        {{"abc", "abc", "cab"}, "cab"},
        {{"abc", "cab", "abc"}, "cab"},
        {{"abc", "cab", "cab"}, "cab"},
        {{"", "", ""}, ""},
        {{"", "a", ""}, "a"},
        {{"a", "", "a"}, ""},
        {{"a", "", ""}, ""},
        /* inserted and removed */
        {{"abc", "abxc", "bc"}, "bxc"},
        {{"ab", "abx", "yab"}, "yabx"},
        {{"aXb", "aXYb", "ab"}, "aYb"},
        {{"aXYb", "aXNYb", "ab"}, "aNb"},
        {{"aZb", "aZYb", "aXb"}, "aXYb"},
        {{"aXb", "aXb", "ab"}, "ab"},
        {{"aX", "aXb", "a"}, "ab"},
        {{"X", "Xb", ""}, "b"},
        {{"ab", "axb", "axb"}, "axb"},
        {{"abcd", "axbcd", "axbc"}, "axbc"},
        /* moved */
        {{"abcd", "bacd", "abdc"}, "badc"},
        {{"abcd", "dabc", "abcxd"}, "dabcx"},
        {{"abcd", "dabc", "abc"}, "abc"},
        {{"abc", "ab", "cab"}, "ab"},
        {{"aXb", "Xab", "ab"}, "ab"},
        {{"aZbM", "MaZYb", "aXb"}, "aXYb"},
        {{"abc", "bca", "cab"}, "cba"},
        /* incompatible */
        {{"ab", "axb", "ayb"}, "!"},
        {{"abcde", "eabcd", "eabcdf"}, "!"},
        {{"abcdef", "fabcde", "abfcde"}, "!"},
    };
    char got[IDS_MAX * 3];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        merge_text(rows[i].texts, got);
        assert_string_equal(got, rows[i].want);
    }
}

/* Ids may be any bytes; they must be unique. */
static void test_ids(void **state)
{
    static const char *const twice[3] = {"ab", "aba", "ab"};
    struct ng_str ids[] = {{"a\nb", 3}, {"\0", 1}, {"", 0}, {"1", 1}};
    struct merge_list base = {ids, 2};
    struct merge_list present = {ids, 3};
    struct merge_list before = {ids + 1, 1};
    struct merge_list far = {ids, MERGE_ORDER_MAX + 1};
    struct merge_order order;
    (void)state;
    assert_int_equal(merge(twice, &order), NG_EINVAL);
    merge_order_done(&order);
    assert_int_equal(merge_order(&base, &far, &before, &order), NG_ETOOLARGE);
    merge_order_done(&order);
    assert_int_equal(merge_order(&base, &present, &before, &order), NG_OK);
    assert_false(order.conflict);
    assert_int_equal(order.count, 2);
    assert_true(str_equal(order.ids[0], ids[1]));
    assert_true(str_equal(order.ids[1], ids[2]));
    merge_order_done(&order);
}

static void test_without_memory(void **state)
{
    static const char *const texts[3] = {"aXYb", "aXNYb", "ab"};
    struct merge_order order;
    int rc = NG_EINTERNAL;
    (void)state;
    for (long n = 0; rc != NG_OK; n++) {
        assert_true(n < 200);
        alloc_fail_after(n);
        rc = merge(texts, &order);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || rc == NG_EINTERNAL);
        assert_true(rc != NG_OK || n > 10);
        merge_order_done(&order);
    }
}

static void change(unsigned *seed, char *ids, char *next)
{
    size_t len = strlen(ids);
    size_t at = rig_below(seed, (unsigned)len + 1);
    unsigned what = rig_below(seed, 3);
    if (what == 0 || len == 0) { /* insert */
        memmove(ids + at + 1, ids + at, len - at + 1);
        ids[at] = (*next)++;
        return;
    }
    at = at == len ? len - 1 : at;
    char id = ids[at];
    memmove(ids + at, ids + at + 1, len - at);
    if (what == 1) { /* move */
        size_t to = rig_below(seed, (unsigned)len);
        memmove(ids + to + 1, ids + to, len - to);
        ids[to] = id;
    }
}

/* The result has each id that it must have once, and an undo of the undo gives present. */
static void test_random_orders(void **state)
{
    unsigned seed = rig_seed();
    unsigned clean = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char lists[3][IDS_MAX];
        char got[IDS_MAX * 3];
        char again[IDS_MAX * 3];
        char next = 'a' + (char)rig_below(&seed, 10);
        for (int list = 0; list < 3; list++) {
            (void)snprintf(lists[list], IDS_MAX, "%.*s", next - 'a', "abcdefghij");
        }
        for (int list = 1; list < 3; list++) {
            for (unsigned i = rig_below(&seed, 4); i > 0; i--) {
                change(&seed, lists[list], &next);
            }
        }
        const char *const texts[3] = {lists[0], lists[1], lists[2]};
        merge_text(texts, got);
        if (got[0] == '!') {
            continue;
        }
        clean++;
        for (char id = 'a'; id < next; id++) {
            bool in[3];
            for (int list = 0; list < 3; list++) {
                in[list] = strchr(lists[list], id) != NULL;
            }
            const char *at = strchr(got, id);
            bool want = (in[1] && in[2]) || (!in[0] && (in[1] || in[2]));
            assert_int_equal(at != NULL, want);
            assert_true(at == NULL || strchr(at + 1, id) == NULL);
        }
        const char *const undone[3] = {got, got, lists[1]};
        merge_text(undone, again);
        assert_string_equal(again, lists[1]);
    }
    assert_in_range(clean, ROUNDS / 4, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_random_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
