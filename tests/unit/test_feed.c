/* SPDX-License-Identifier: MIT */
/* test_feed.c - every event once and in order, from the store, from the ring and at the seam
 * between them, while writers write and readers come and go. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "feed_types.h"
#include "str.h"

#define SEAM_WRITERS 4
#define SEAM_READERS 6
#define SEAM_WRITES 200
#define MANY 1000
#define WAIT_MS 30000
#define LARGE_BYTES ((size_t)1024 * 1024)

/* ---- a gateway with a feed of its own, over a store whose reading can be made to fail ---- */

struct bench {
    struct harness harness;
    struct gateway gateway; /* the harness's, with another store and feed */
    struct ng_documents backend;
    const struct ng_documents *inner;
    void *db;
};

static struct reading {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int fail;   /* of the next reads */
    bool hold;  /* reads wait until it is false */
    int inside; /* reads that are under way */
    const struct ng_documents *inner;
    void *db;
} reading = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int bench_backend_open(struct ng_call *call, const struct ng_conf *conf, void **ret_db)
{
    (void)call;
    (void)conf;
    *ret_db = reading.db;
    return NG_OK;
}

static void bench_backend_close(void *db)
{
    (void)db; /* the harness's */
}

static int bench_changes(void *db, struct ng_call *call, uint64_t since, uint32_t limit,
                         ng_event_fn *event, void *user)
{
    pthread_mutex_lock(&reading.lock);
    reading.inside++;
    pthread_cond_broadcast(&reading.moved);
    while (reading.hold) {
        pthread_cond_wait(&reading.moved, &reading.lock);
    }
    int fail = reading.fail;
    reading.inside--;
    pthread_cond_broadcast(&reading.moved);
    pthread_mutex_unlock(&reading.lock);
    return fail != NG_OK ? fail : reading.inner->changes(db, call, since, limit, event, user);
}

static void reading_set(int fail, bool hold)
{
    pthread_mutex_lock(&reading.lock);
    reading.fail = fail;
    reading.hold = hold;
    pthread_cond_broadcast(&reading.moved);
    pthread_mutex_unlock(&reading.lock);
}

static const struct ng_collection things = {.name = "things"};
static const struct ng_collection others = {.name = "others"};

static void bench_open_as(struct bench *bench, size_t backlog, uint32_t flags)
{
    static const char *const sets[] = {"plugins=", "documents=memory", "limits.workers=4",
                                       NULL};
    memset(bench, 0, sizeof(*bench));
    harness_open(&bench->harness, sets);
    reading.inner = store_backend(bench->harness.gateway->store, &reading.db);
    reading_set(NG_OK, false);
    bench->backend = *reading.inner;
    bench->backend.open = bench_backend_open;
    bench->backend.close = bench_backend_close;
    bench->backend.changes = bench_changes;
    bench->backend.flags |= flags;
    struct call *call = harness_new_call(&bench->harness);
    memcpy(&bench->gateway, bench->harness.gateway, sizeof(bench->gateway));
    atomic_init(&bench->gateway.spare_call, NULL);
    assert_int_equal(store_open(call, &bench->backend,
                                config_view(bench->harness.gateway->config, "sqlite"),
                                &bench->gateway.store),
                     NG_OK);
    assert_int_equal(store_declare(bench->gateway.store, call, &things), NG_OK);
    assert_int_equal(store_declare(bench->gateway.store, call, &others), NG_OK);
    call_unref(call);
    assert_int_equal(feed_new(&bench->gateway, backlog, &bench->gateway.feed), NG_OK);
}

static void bench_open(struct bench *bench, size_t backlog)
{
    bench_open_as(bench, backlog, 0);
}

static void bench_close(struct bench *bench)
{
    pool_stop(bench->gateway.pool); /* no read is under way any more */
    feed_free(bench->gateway.feed);
    store_close(bench->gateway.store);
    call_free_spare(&bench->gateway);
    harness_close(&bench->harness);
}

/* ---- writing ---- */

struct put {
    const char *collection, *space, *id;
    size_t data_bytes; /* of the event's data; 0: none */
};

static int put_fn(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                  void *user)
{
    const struct put *put = user;
    struct ng_str pieces[2] = {present->text, ng_str_of("x")};
    if (put->data_bytes > 0) {
        char *json = arena_alloc(&call_of(call)->arena, put->data_bytes);
        assert_non_null(json);
        memset(json, ' ', put->data_bytes);
        json[0] = '{';
        json[put->data_bytes - 1] = '}';
        call->host->draft_event(next, str_make(json, put->data_bytes));
    }
    return call->host->draft_text(next, pieces, present->text.len < 64 ? 2 : 1);
}

static void put_as(struct bench *bench, const struct put *put)
{
    struct call *call = call_new(&bench->gateway);
    assert_non_null(call);
    call->may_block = true;
    call->pub.tool = ng_str_of("writer");
    call->caller.all_spaces = true;
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(put->collection), ng_str_of(put->space), ng_str_of(put->id)},
        .fn = put_fn,
        .user = (void *)(uintptr_t)put,
        .action = "put",
    };
    assert_int_equal(store_write_wait(bench->gateway.store, call, &change, 1), NG_OK);
    call_unref(call);
}

static void put_thing(struct bench *bench, const char *id)
{
    struct put put = {"things", "shared", id, 0};
    put_as(bench, &put);
}

/* Each of its own document, so that each is a change. */
static void put_things(struct bench *bench, const char *prefix, unsigned count)
{
    char id[64];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "%s%u", prefix, i);
        put_thing(bench, id);
    }
}

/* ---- reading ---- */

struct reader {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool woken;
    unsigned wakes;
    struct feed_reader *feed;
};

static void reader_woken(void *user)
{
    struct reader *reader = user;
    pthread_mutex_lock(&reader->lock);
    reader->woken = true;
    reader->wakes++;
    pthread_cond_signal(&reader->moved);
    pthread_mutex_unlock(&reader->lock);
}

static const struct feed_filter everything = {.all_spaces = true};

static int reader_try(struct bench *bench, struct reader *reader,
                      const struct feed_filter *filter, uint64_t since)
{
    memset(reader, 0, sizeof(*reader));
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->moved, NULL);
    return feed_open(bench->gateway.feed, filter, since, ng_str_of("reader"), reader_woken,
                     reader, &reader->feed);
}

static void reader_open(struct bench *bench, struct reader *reader,
                        const struct feed_filter *filter, uint64_t since)
{
    assert_int_equal(reader_try(bench, reader, filter, since), NG_OK);
}

static void reader_close(struct reader *reader)
{
    feed_close(reader->feed);
    pthread_cond_destroy(&reader->moved);
    pthread_mutex_destroy(&reader->lock);
}

static void reader_wait(struct reader *reader)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&reader->lock);
    while (!reader->woken) {
        assert_int_equal(pthread_cond_timedwait(&reader->moved, &reader->lock, &until), 0);
    }
    reader->woken = false;
    pthread_mutex_unlock(&reader->lock);
}

/* The next event, waited for. */
static int reader_next(struct reader *reader, const struct ng_event **ret)
{
    int rc;
    while ((rc = feed_next(reader->feed, ret)) == NG_PENDING) {
        reader_wait(reader);
    }
    return rc;
}

static uint64_t expect_event(struct reader *reader, const char *id)
{
    const struct ng_event *event = NULL;
    assert_int_equal(reader_next(reader, &event), NG_OK);
    assert_int_equal(event->key.id.len, strlen(id));
    assert_memory_equal(event->key.id.data, id, strlen(id));
    assert_int_equal(feed_position(reader->feed), event->seq);
    return event->seq;
}

static void expect_things(struct reader *reader, const char *prefix, unsigned from,
                          unsigned count)
{
    char id[64];
    for (unsigned i = from; i < from + count; i++) {
        (void)snprintf(id, sizeof(id), "%s%u", prefix, i);
        (void)expect_event(reader, id);
    }
}

static void expect_nothing(struct reader *reader)
{
    const struct ng_event *event = NULL;
    assert_int_equal(feed_next(reader->feed, &event), NG_PENDING);
}

/* Until the feed's thread has shown the readers all there is. */
static void wait_told(struct bench *bench)
{
    struct feed *feed = bench->gateway.feed;
    int64_t until = clock_monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    for (bool told = false; !told;) {
        pthread_mutex_lock(&feed->lock);
        told = feed->told == feed->pushed;
        pthread_mutex_unlock(&feed->lock);
        assert_true(clock_monotonic_ns() < until);
        (void)usleep(1000);
    }
    /* Who is being shown something now holds this. */
    pthread_mutex_lock(&feed->readers_lock);
    pthread_mutex_unlock(&feed->readers_lock);
}

/* ---- what a reader is given ---- */

static void test_an_event_is_whole(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    const struct ng_event *event = NULL;
    bench_open(&bench, 100);
    reader_open(&bench, &reader, &everything, UINT64_MAX);
    expect_nothing(&reader);
    struct put put = {"things", "~ada", "it", 10};
    put_as(&bench, &put);
    assert_int_equal(reader_next(&reader, &event), NG_OK);
    assert_int_equal(event->seq, store_last_seq(bench.gateway.store));
    assert_int_equal(event->revision, 1);
    assert_true(str_is(event->key.collection, "things"));
    assert_true(str_is(event->key.space, "~ada"));
    assert_true(str_is(event->key.id, "it"));
    assert_true(str_is(event->agent, "local"));
    assert_true(str_is(event->tool, "writer"));
    assert_true(str_is(event->action, "put"));
    assert_true(str_is(event->data, "{        }"));
    assert_true(event->time_ms > 0);
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_positions(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    bench_open(&bench, 4);
    reader_open(&bench, &reader, &everything, 0);
    expect_nothing(&reader);
    reader_close(&reader);
    assert_int_equal(reader_try(&bench, &reader, &everything, 1), NG_EINVAL);
    put_things(&bench, "a", 10);
    uint64_t last = store_last_seq(bench.gateway.store);
    assert_int_equal(reader_try(&bench, &reader, &everything, last + 1), NG_EINVAL);
    reader_open(&bench, &reader, &everything, last);
    expect_nothing(&reader);
    put_thing(&bench, "b");
    (void)expect_event(&reader, "b");
    reader_close(&reader);
    /* From the store, over the seam, into the ring. */
    reader_open(&bench, &reader, &everything, 0);
    expect_things(&reader, "a", 0, 10);
    (void)expect_event(&reader, "b");
    uint64_t position = feed_position(reader.feed);
    reader_close(&reader);
    reader_open(&bench, &reader, &everything, position - 1);
    (void)expect_event(&reader, "b");
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static bool wants_even(void *user, const struct ng_event *event)
{
    (void)user;
    return (event->key.id.data[event->key.id.len - 1] - '0') % 2 == 0;
}

static void test_filters(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader[5];
    static const struct ng_str spaces[] = {{"~ada", 4}, {"team", 4}};
    const struct feed_filter filters[5] = {
        {.all_spaces = true, .collection = ng_str_of("others")},
        {.spaces = spaces, .space_count = 2},
        {.all_spaces = true, .tool = ng_str_of("nobody")},
        {.all_spaces = true, .wants = wants_even},
        {.spaces = NULL},
    };
    static const struct put puts[] = {
        {"things", "shared", "p0", 0},
        {"others", "~ada", "p1", 0},
        {"things", "team", "p2", 0},
        {"others", "shared", "p3", 0},
    };
    bench_open(&bench, 3);
    for (int round = 0; round < 2; round++) { /* live, then from the store */
        for (size_t i = 0; i < NG_COUNT(filters); i++) {
            reader_open(&bench, &reader[i], &filters[i], round == 0 ? UINT64_MAX : 0);
        }
        for (size_t i = 0; i < NG_COUNT(puts) && round == 0; i++) {
            for (size_t j = 0; j < NG_COUNT(filters); j++) {
                const struct ng_event *event = NULL;
                while (feed_next(reader[j].feed, &event) == NG_OK) {
                }
            }
            wait_told(&bench);
            put_as(&bench, &puts[i]);
            wait_told(&bench);
        }
        if (round == 1) {
            (void)expect_event(&reader[0], "p1");
            (void)expect_event(&reader[0], "p3");
            (void)expect_event(&reader[1], "p1");
            (void)expect_event(&reader[1], "p2");
            (void)expect_event(&reader[3], "p0");
            (void)expect_event(&reader[3], "p2");
        } else {
            assert_int_equal(reader[0].wakes, 2);
            assert_int_equal(reader[1].wakes, 2);
            assert_int_equal(reader[2].wakes, 0);
            assert_int_equal(reader[4].wakes, 0);
            /* What nobody wants moves the position all the same. */
            assert_int_equal(feed_position(reader[2].feed),
                             store_last_seq(bench.gateway.store));
        }
        for (size_t i = 0; i < NG_COUNT(filters); i++) {
            reader_close(&reader[i]);
        }
    }
    bench_close(&bench);
}

/* ---- readers that are slow ---- */

static void test_too_far_behind(void **state)
{
    (void)state;
    struct bench bench;
    struct reader slow;
    struct reader careless;
    const struct ng_event *event = NULL;
    const struct feed_filter none = {.all_spaces = true, .tool = ng_str_of("nobody")};
    bench_open(&bench, 8);
    reader_open(&bench, &slow, &everything, UINT64_MAX);
    reader_open(&bench, &careless, &none, UINT64_MAX);
    expect_nothing(&careless);
    put_things(&bench, "a", 8); /* exactly what the ring holds */
    expect_things(&slow, "a", 0, 8);
    put_things(&bench, "b", 9);
    wait_told(&bench);
    assert_int_equal(feed_next(slow.feed, &event), NG_ETOOLARGE);
    assert_int_equal(feed_next(slow.feed, &event), NG_ETOOLARGE);
    uint64_t position = feed_position(slow.feed);
    reader_close(&slow);
    reader_open(&bench, &slow, &everything, position);
    expect_things(&slow, "b", 0, 9);
    /* Who waits for something else has not fallen behind. */
    put_things(&bench, "c", 20);
    wait_told(&bench);
    assert_int_equal(feed_next(careless.feed, &event), NG_PENDING);
    reader_close(&slow);
    reader_close(&careless);
    bench_close(&bench);
}

/* The ring is bounded by bytes too: then readers go on in the store, and are not cut. */
static void test_large_events(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    char id[16];
    bench_open(&bench, 100);
    reader_open(&bench, &reader, &everything, UINT64_MAX);
    put_thing(&bench, "first");
    (void)expect_event(&reader, "first");
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof(id), "l%u", i);
        struct put put = {"things", "shared", id, LARGE_BYTES};
        put_as(&bench, &put);
    }
    wait_told(&bench);
    pthread_mutex_lock(&bench.gateway.feed->lock);
    assert_true(bench.gateway.feed->bytes <= FEED_RING_BYTES);
    pthread_mutex_unlock(&bench.gateway.feed->lock);
    expect_things(&reader, "l", 0, 12);
    put_thing(&bench, "last");
    (void)expect_event(&reader, "last");
    expect_nothing(&reader);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_the_store_fails(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    const struct ng_event *event = NULL;
    bench_open(&bench, 2);
    put_things(&bench, "a", 5);
    reading_set(NG_EUNAVAILABLE, false);
    reader_open(&bench, &reader, &everything, 0);
    assert_int_equal(reader_next(&reader, &event), NG_EUNAVAILABLE);
    assert_int_equal(reader_next(&reader, &event), NG_EUNAVAILABLE);
    reader_close(&reader);
    reading_set(NG_OK, false);
    reader_open(&bench, &reader, &everything, 0);
    expect_things(&reader, "a", 0, 5);
    reader_close(&reader);
    bench_close(&bench);
}

static void test_closing_while_it_reads(void **state)
{
    (void)state;
    struct bench bench;
    struct reader reader;
    bench_open(&bench, 2);
    put_things(&bench, "a", 5);
    reading_set(NG_OK, true);
    reader_open(&bench, &reader, &everything, 0);
    expect_nothing(&reader);
    pthread_mutex_lock(&reading.lock);
    while (reading.inside == 0) {
        pthread_cond_wait(&reading.moved, &reading.lock);
    }
    pthread_mutex_unlock(&reading.lock);
    reader_close(&reader); /* its memory is ours from here on */
    memset(&reader, 0, sizeof(reader));
    reading_set(NG_OK, false);
    bench_close(&bench);
}

/* ---- many at once ---- */

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

/* Where other gateways write too, the ring is filled from the store. */
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
        cmocka_unit_test(test_an_event_is_whole),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_too_far_behind),
        cmocka_unit_test(test_large_events),
        cmocka_unit_test(test_the_store_fails),
        cmocka_unit_test(test_closing_while_it_reads),
        cmocka_unit_test(test_the_seam),
        cmocka_unit_test(test_a_shared_store),
        cmocka_unit_test(test_closing_while_others_are_woken),
        cmocka_unit_test(test_only_those_are_woken_that_want_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
