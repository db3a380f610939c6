/* SPDX-License-Identifier: MIT */
/* test_store_crowd.c - many writers and readers at once, also where commits fail.
 */
#include "test_store_rig.h"

#include <stdio.h>

#define WRITERS 16
#define WRITES 200
#define SHARED_DOCS 3

static struct {
    struct bench *bench;
    atomic_bool over;
    atomic_uint wrong;
} crowd;

static void *crowd_write(void *user)
{
    const unsigned *number = user;
    char id[8];
    for (unsigned i = 0; i < WRITES; i++) {
        struct write write;
        (void)snprintf(id, sizeof(id), "d%u", (i + *number) % SHARED_DOCS);
        write_new(crowd.bench, &write, id, "x");
        write_start(crowd.bench, &write);
        write_end(&write, NG_OK);
    }
    return NULL;
}

/* Revision n has n letters, and no reader goes back in time. */
static void *crowd_read(void *user)
{
    uint64_t last = 0;
    struct ng_key key = key_of("d0");
    (void)user;
    while (!atomic_load(&crowd.over)) {
        struct call *call = harness_new_call(&crowd.bench->harness);
        const struct ng_doc *doc = NULL;
        bool good = store_get(crowd.bench->store, call, &key, 0, &doc) == NG_OK &&
                    doc->text.len == doc->revision && doc->revision >= last;
        if (!good) {
            atomic_fetch_add(&crowd.wrong, 1);
        } else {
            last = doc->revision;
        }
        call_unref(call);
    }
    return NULL;
}

static void test_crowd(void **state)
{
    struct bench bench;
    pthread_t writers[WRITERS];
    pthread_t readers[2];
    unsigned numbers[WRITERS];
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    crowd.bench = &bench;
    atomic_store(&crowd.over, false);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, crowd_read, NULL), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&writers[i], NULL, crowd_write, &numbers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    atomic_store(&crowd.over, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(readers[i], NULL);
    }
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARED_DOCS; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "d%u", i);
        sum += change(&bench, id, NULL, NG_OK);
    }
    assert_int_equal(sum, WRITERS * WRITES);
    bench_close(&bench);
}

static void *crowd_try(void *user)
{
    unsigned *stored = user;
    for (unsigned i = 0; i < WRITES; i++) {
        struct write write;
        write_new(crowd.bench, &write, "d0", "x");
        write_start(crowd.bench, &write);
        pthread_mutex_lock(&held.lock);
        while (!write.done) {
            pthread_cond_wait(&held.moved, &held.lock);
        }
        pthread_mutex_unlock(&held.lock);
        *stored += write.call->final.rc == NG_OK;
        call_unref(write.call);
    }
    return NULL;
}

/* Commits that fail between others: what was acknowledged is there, and nothing else. */
static void test_crowd_failing(void **state)
{
    struct bench bench;
    pthread_t writers[WRITERS];
    pthread_t reader;
    unsigned stored[WRITERS] = {0};
    unsigned sum = 0;
    (void)state;
    bench_open(&bench, NG_DOCUMENTS_MEMORY);
    crowd.bench = &bench;
    atomic_store(&crowd.over, false);
    atomic_store(&crowd.wrong, 0);
    held.fail_each = 7;
    assert_int_equal(pthread_create(&reader, NULL, crowd_read, NULL), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, crowd_try, &stored[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
        sum += stored[i];
    }
    atomic_store(&crowd.over, true);
    pthread_join(reader, NULL);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_true(sum > 0 && sum < WRITERS * WRITES);
    held.fail_each = 0;
    assert_int_equal(change(&bench, "d0", NULL, NG_OK), sum);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_crowd_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
