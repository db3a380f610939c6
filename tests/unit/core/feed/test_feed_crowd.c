/* SPDX-License-Identifier: MIT */
/* test_feed_crowd.c - many readers and writers at once: no gap, no duplicate, no needless
 * wake-up. */
#include "test_feed_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

#define SEAM_WRITERS 4
#define SEAM_READERS 6
#define SEAM_WRITES 200
#define MANY 1000

struct writer {
    struct bench *bench;
    unsigned number;
    atomic_bool *stop;
};

static void *writer_run(void *user)
{
    struct writer *writer = user;
    char id[32];
    for (unsigned i = 0; i < SEAM_WRITES; i++) {
        (void)snprintf(id, sizeof(id), "w%u.%u", writer->number, i);
        put_thing(writer->bench, id);
    }
    return NULL;
}

struct collector {
    struct bench *bench;
    uint64_t seqs[SEAM_WRITERS * SEAM_WRITES + 1];
    size_t count;
    unsigned cuts;
};

/* Reads to the last event; where it was too slow it goes on where it was. */
static void *collector_run(void *user)
{
    struct collector *collector = user;
    struct reader reader;
    const struct ng_event *event = NULL;
    reader_open(collector->bench, &reader, &everything, 0);
    while (collector->count < NG_COUNT(collector->seqs)) {
        int rc = reader_next(&reader, &event);
        if (rc == NG_ETOOLARGE) {
            uint64_t position = feed_position(reader.feed);
            collector->cuts++;
            reader_close(&reader);
            reader_open(collector->bench, &reader, &everything, position);
            continue;
        }
        assert_int_equal(rc, NG_OK);
        collector->seqs[collector->count++] = event->seq;
        if (str_is(event->key.id, "end")) {
            break;
        }
    }
    reader_close(&reader);
    return NULL;
}

/* backlog: small, so that readers go back and forth over the seam. */
static void run_seam(size_t backlog, uint32_t flags)
{
    struct bench bench;
    pthread_t writers[SEAM_WRITERS];
    pthread_t readers[SEAM_READERS];
    struct writer work[SEAM_WRITERS];
    struct collector *collectors = calloc(SEAM_READERS, sizeof(*collectors));
    assert_non_null(collectors);
    bench_open_as(&bench, backlog, flags);
    for (unsigned i = 0; i < SEAM_WRITERS; i++) {
        work[i] = (struct writer){&bench, i, NULL};
        assert_int_equal(pthread_create(&writers[i], NULL, writer_run, &work[i]), 0);
    }
    for (unsigned i = 0; i < SEAM_READERS; i++) {
        collectors[i].bench = &bench;
        assert_int_equal(pthread_create(&readers[i], NULL, collector_run, &collectors[i]), 0);
    }
    for (unsigned i = 0; i < SEAM_WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    put_thing(&bench, "end");
    for (unsigned i = 0; i < SEAM_READERS; i++) {
        pthread_join(readers[i], NULL);
        assert_int_equal(collectors[i].count, SEAM_WRITERS * SEAM_WRITES + 1);
        for (size_t j = 1; j < collectors[i].count; j++) {
            assert_true(collectors[i].seqs[j] > collectors[i].seqs[j - 1]);
        }
    }
    free(collectors);
    bench_close(&bench);
}

static void test_the_seam(void **state)
{
    (void)state;
    run_seam(4, 0);
    run_seam(64, 0);
    run_seam(100000, 0);
}

/* If other gateways write too, the ring is filled from the store. */
static void test_a_shared_store(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    run_seam(4, NG_DOCUMENTS_SHARED);
    run_seam(100000, NG_DOCUMENTS_SHARED);
    bench_open_as(&bench, 100, NG_DOCUMENTS_SHARED);
    reader_open(&bench, &reader, &everything, UINT64_MAX);
    expect_nothing(&reader);
    struct store *own = bench.gateway.store;
    struct call *call = harness_new_call(&bench.harness);
    assert_int_equal(store_declare(bench.harness.gateway->store, call, &things), NG_OK);
    call_unref(call);
    bench.gateway.store = bench.harness.gateway->store; /* the other gateway's */
    put_things(&bench, "theirs", 3);
    bench.gateway.store = own;
    expect_things(&reader, "theirs", 0, 3);
    put_thing(&bench, "ours");
    (void)expect_event(&reader, "ours");
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

/* Readers that come and go while others are woken. */
static void *churn_run(void *user)
{
    struct writer *writer = user;
    while (!atomic_load(writer->stop)) {
        struct reader readers[8];
        const struct ng_event *event = NULL;
        for (size_t i = 0; i < NG_COUNT(readers); i++) {
            uint64_t since = i % 2 == 0 ? UINT64_MAX : 0;
            reader_open(writer->bench, &readers[i], &everything, since);
            int rc = feed_next(readers[i].feed, &event);
            assert_true(rc == NG_PENDING || rc == NG_OK || rc == NG_ETOOLARGE);
        }
        for (size_t i = 0; i < NG_COUNT(readers); i++) {
            reader_close(&readers[i]);
            memset(&readers[i], 0, sizeof(readers[i]));
        }
    }
    return NULL;
}

static void test_closing_while_others_are_woken(void **state)
{
    (void)state;
    struct bench bench;
    pthread_t writers[SEAM_WRITERS];
    pthread_t churns[3];
    struct writer work[SEAM_WRITERS];
    atomic_bool stop = false;
    bench_open(&bench, 16);
    struct writer churn = {&bench, 0, &stop};
    for (size_t i = 0; i < NG_COUNT(churns); i++) {
        assert_int_equal(pthread_create(&churns[i], NULL, churn_run, &churn), 0);
    }
    for (unsigned i = 0; i < SEAM_WRITERS; i++) {
        work[i] = (struct writer){&bench, i, NULL};
        assert_int_equal(pthread_create(&writers[i], NULL, writer_run, &work[i]), 0);
    }
    for (unsigned i = 0; i < SEAM_WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < NG_COUNT(churns); i++) {
        pthread_join(churns[i], NULL);
    }
    bench_close(&bench);
}

static void test_only_those_are_woken_that_want_it(void **state)
{
    (void)state;
    struct bench bench;
    const struct feed_filter filter = {.all_spaces = true, .collection = ng_str_of("others")};
    struct reader *readers = calloc(MANY, sizeof(*readers));
    assert_non_null(readers);
    bench_open(&bench, 100);
    for (unsigned i = 0; i < MANY; i++) {
        reader_open(&bench, &readers[i], i % 10 == 0 ? &filter : &everything, UINT64_MAX);
        expect_nothing(&readers[i]);
    }
    put_thing(&bench, "a");
    wait_told(&bench);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(readers[i].wakes, i % 10 == 0 ? 0 : 1);
        if (i % 10 != 0) {
            (void)expect_event(&readers[i], "a");
        }
        expect_nothing(&readers[i]);
        reader_close(&readers[i]);
    }
    free(readers);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_seam),
        cmocka_unit_test(test_a_shared_store),
        cmocka_unit_test(test_closing_while_others_are_woken),
        cmocka_unit_test(test_only_those_are_woken_that_want_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
