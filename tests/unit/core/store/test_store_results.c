/* SPDX-License-Identifier: MIT */
/* test_store_results.c - results of queries that are answered from memory: when the store uses
 * one, and that no reader gets an older state than another reader has got. */
#include "test_store_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

#define READERS 3
#define ROUNDS 300

struct seen {
    size_t rows;
    uint64_t total;
    bool parsed; /* each row has its body */
    char first[16];
};

static int see(void *user, const struct ng_doc *row)
{
    struct seen *seen = user;
    if (seen->rows++ == 0) {
        (void)snprintf(seen->first, sizeof(seen->first), "%.*s", (int)row->key.id.len,
                       row->key.id.data);
    }
    seen->parsed = row->body != NULL;
    return 0;
}

static int see_one(void *user, const struct ng_doc *row)
{
    (void)see(user, row);
    return 1;
}

static struct ng_query all_of(const char *space)
{
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of("things"),
        .space = ng_str_of(space),
        .descending = true,
        .limit = 10,
        .want_total = true,
    };
    return query;
}

static int list_by(struct bench *bench, const struct ng_query *query, ng_row_fn *row,
                   bool may_block, struct seen *ret)
{
    struct call *call = harness_new_call(&bench->harness);
    memset(ret, 0, sizeof(*ret));
    call->may_block = may_block;
    int rc = store_query(bench->store, call, query, row, ret, &ret->total);
    call_unref(call);
    return rc;
}

static struct seen list(struct bench *bench, const char *space)
{
    struct ng_query query = all_of(space);
    struct seen seen;
    assert_int_equal(list_by(bench, &query, see, true, &seen), NG_OK);
    return seen;
}

/* Is the list in memory? Then an event loop gets it. */
static bool is_kept(struct bench *bench, const char *space)
{
    struct ng_query query = all_of(space);
    struct seen seen;
    int rc = list_by(bench, &query, see, false, &seen);
    assert_true(rc == NG_OK || rc == NG_EWOULDBLOCK);
    assert_true(rc == NG_EWOULDBLOCK || seen.parsed || seen.rows == 0);
    return rc == NG_OK;
}

static void test_kept_until_a_change(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "a", "x", NG_OK);
    assert_int_equal(list(&bench, "shared").total, 1);
    assert_false(is_kept(&bench, "shared")); /* it was asked once */
    assert_int_equal(list(&bench, "shared").total, 1);
    assert_true(is_kept(&bench, "shared"));
    struct seen seen = list(&bench, "shared");
    assert_true(seen.parsed && seen.rows == 1 && seen.total == 1);
    assert_string_equal(seen.first, "a");
    change(&bench, "b", "y", NG_OK);
    assert_false(is_kept(&bench, "shared"));
    seen = list(&bench, "shared");
    assert_true(seen.rows == 2 && seen.total == 2);
    assert_string_equal(seen.first, "b");
    bench_close(&bench);
}

/* A change of one space leaves the lists of others. */
static void test_other_spaces_stay(void **state)
{
    struct bench bench;
    struct write write;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    for (int i = 0; i < 2; i++) {
        (void)list(&bench, "shared");
        (void)list(&bench, "other");
    }
    write_new(&bench, &write, "a", "x");
    write.changes[0].key.space = ng_str_of("other");
    write_start(&bench, &write);
    assert_int_equal(write_end(&write, NG_OK), 1);
    assert_true(is_kept(&bench, "shared"));
    assert_false(is_kept(&bench, "other"));
    assert_int_equal(list(&bench, "other").total, 1);
    bench_close(&bench);
}

/* While a commit is under way another reader may see it already. */
static void test_not_while_a_commit_is_under_way(void **state)
{
    struct bench bench;
    struct write write;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "a", "x", NG_OK);
    for (int i = 0; i < 2; i++) {
        (void)list(&bench, "shared");
    }
    assert_true(is_kept(&bench, "shared"));
    held.hold = true;
    write_new(&bench, &write, "a", "y");
    write_start(&bench, &write);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list(&bench, "shared").total, 1);
        assert_false(is_kept(&bench, "shared"));
    }
    held.hold = false;
    held.count = 0;
    held.batches[0].done(held.batches[0].user, held.batches[0].batch, NG_EUNAVAILABLE);
    assert_int_equal(write_end(&write, NG_EUNAVAILABLE), 0);
    /* One that was refused has ended as well. */
    held.refuse = true;
    change(&bench, "a", "z", NG_EBUSY);
    held.refuse = false;
    for (int i = 0; i < 2; i++) {
        (void)list(&bench, "shared");
    }
    assert_true(is_kept(&bench, "shared"));
    bench_close(&bench);
}

/* Of a query whose rows were not all taken, of too long a query, and of deleted documents. */
static void test_what_is_not_kept(void **state)
{
    struct bench bench;
    struct seen seen;
    char text[STORE_QUERY_BYTES_MAX + 1];
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    change(&bench, "a", "x", NG_OK);
    change(&bench, "b", "x", NG_OK);
    struct ng_query query = all_of("shared");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list_by(&bench, &query, see_one, true, &seen), NG_OK);
        assert_int_equal(seen.rows, 1);
    }
    assert_int_equal(list_by(&bench, &query, see, false, &seen), NG_EWOULDBLOCK);
    query.with_deleted = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list_by(&bench, &query, see, true, &seen), NG_OK);
    }
    assert_int_equal(list_by(&bench, &query, see, false, &seen), NG_EWOULDBLOCK);
    memset(text, 'x', sizeof(text));
    struct ng_term term = {
        .field = ng_str_of("id"), .op = NG_TERM_EQ, .value = {text, sizeof(text)}};
    query = all_of("shared");
    query.terms = &term;
    query.term_count = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list_by(&bench, &query, see, true, &seen), NG_OK);
        assert_int_equal(seen.total, 0);
    }
    assert_int_equal(list_by(&bench, &query, see, false, &seen), NG_EWOULDBLOCK);
    bench_close(&bench);
}

/* The bytes and the number of what is kept have limits; each query has its own result. */
static void test_limits(void **state)
{
    struct bench bench;
    struct seen seen;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    for (int i = 0; i < 10; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "d%d", i);
        change(&bench, id, "x", NG_OK);
    }
    struct ng_query query = all_of("shared");
    for (unsigned i = 0; i < 2 * STORE_RESULTS_MAX; i++) {
        query.limit = 1 + i;
        for (int j = 0; j < 3; j++) {
            assert_int_equal(list_by(&bench, &query, see, true, &seen), NG_OK);
            assert_int_equal(seen.rows, i < 10 ? 1 + i : 10);
        }
    }
    assert_true(bench.store->results.count <= STORE_RESULTS_MAX);
    assert_true(bench.store->results.bytes > 0 &&
                bench.store->results.bytes <= STORE_RESULTS_BYTES_MAX);
    char *large = malloc(STORE_RESULT_BYTES_MAX + 1);
    assert_non_null(large);
    memset(large, 'x', STORE_RESULT_BYTES_MAX);
    large[STORE_RESULT_BYTES_MAX] = '\0';
    change(&bench, "d0", large, NG_OK);
    query.with_text = true;
    for (int j = 0; j < 3; j++) {
        assert_int_equal(list_by(&bench, &query, see, true, &seen), NG_OK);
        assert_int_equal(seen.rows, 10);
    }
    assert_int_equal(list_by(&bench, &query, see, false, &seen), NG_EWOULDBLOCK);
    free(large);
    bench_close(&bench);
}

/* ---- readers and a writer ---- */

struct race {
    struct bench *bench;
    atomic_uint acknowledged, seen; /* documents, at least */
    atomic_bool ended;
    atomic_uint wrong;
};

static void *read_on(void *user)
{
    struct race *race = user;
    while (!atomic_load(&race->ended)) {
        unsigned least = atomic_load(&race->acknowledged);
        unsigned others = atomic_load(&race->seen);
        struct ng_query query = all_of("shared");
        struct seen seen;
        int rc = list_by(race->bench, &query, see, true, &seen);
        if (rc != NG_OK || seen.total < least || seen.total < others) {
            (void)atomic_fetch_add(&race->wrong, 1);
        }
        while (others < seen.total &&
               !atomic_compare_exchange_weak(&race->seen, &others, (unsigned)seen.total)) {
        }
    }
    return NULL;
}

/* No reader sees less than was acknowledged, or than another one has seen. */
static void test_never_older(void **state)
{
    struct bench bench;
    struct race race = {.bench = &bench};
    pthread_t threads[READERS];
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &race), 0);
    }
    for (unsigned i = 1; i <= ROUNDS; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "d%u", i);
        assert_int_equal(change(&bench, id, "x", NG_OK), 1);
        atomic_store(&race.acknowledged, i);
    }
    atomic_store(&race.ended, true);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&race.wrong), 0);
    bench_close(&bench);
}

/* Another gateway may change what is asked for. */
static void test_not_of_a_shared_store(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY | NG_DOCUMENTS_SHARED);
    for (int i = 0; i < 3; i++) {
        (void)list(&bench, "shared");
        assert_false(is_kept(&bench, "shared"));
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_until_a_change),
        cmocka_unit_test(test_other_spaces_stay),
        cmocka_unit_test(test_not_while_a_commit_is_under_way),
        cmocka_unit_test(test_what_is_not_kept),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_never_older),
        cmocka_unit_test(test_not_of_a_shared_store),
    };
    return cmocka_run_group_tests_name("results of queries", tests, NULL, NULL);
}
