/* SPDX-License-Identifier: MIT */
/* test_feed_rig.c - shared code of test_feed*.c; see the header.
 */
#include "test_feed_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/config/config.h"

#define WAIT_MS 30000

/* ---- a gateway with a feed of its own, over a store whose reading can be made to fail ---- */

struct reading reading = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

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

void reading_set(int fail, bool hold)
{
    pthread_mutex_lock(&reading.lock);
    reading.fail = fail;
    reading.hold = hold;
    pthread_cond_broadcast(&reading.moved);
    pthread_mutex_unlock(&reading.lock);
}

const struct ng_collection things = {.name = "things"};

static const struct ng_collection others = {.name = "others"};

void bench_open_as(struct bench *bench, size_t backlog, uint32_t flags)
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
    call_init_spares(&bench->gateway);
    assert_int_equal(store_open(call, &bench->backend,
                                config_view(bench->harness.gateway->config, "sqlite"),
                                &bench->gateway.store),
                     NG_OK);
    assert_int_equal(store_declare(bench->gateway.store, call, &things), NG_OK);
    assert_int_equal(store_declare(bench->gateway.store, call, &others), NG_OK);
    call_unref(call);
    assert_int_equal(feed_new(&bench->gateway, backlog, &bench->gateway.feed), NG_OK);
}

void bench_open(struct bench *bench, size_t backlog)
{
    bench_open_as(bench, backlog, 0);
}

void bench_close(struct bench *bench)
{
    pool_stop(bench->gateway.pool); /* no read is under way any more */
    feed_free(bench->gateway.feed);
    store_close(bench->gateway.store);
    call_free_spares(&bench->gateway);
    harness_close(&bench->harness);
}

/* ---- writing ---- */

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

void put_as(struct bench *bench, const struct put *put)
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

void put_thing(struct bench *bench, const char *id)
{
    struct put put = {"things", "shared", id, 0};
    put_as(bench, &put);
}

void put_things(struct bench *bench, const char *prefix, unsigned count)
{
    char id[64];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "%s%u", prefix, i);
        put_thing(bench, id);
    }
}

/* ---- reading ---- */

static void reader_woken(void *user)
{
    struct reader *reader = user;
    pthread_mutex_lock(&reader->lock);
    reader->woken = true;
    reader->wakes++;
    pthread_cond_signal(&reader->moved);
    pthread_mutex_unlock(&reader->lock);
}

const struct feed_filter everything = {.all_spaces = true};

int reader_try(struct bench *bench, struct reader *reader, const struct feed_filter *filter,
               uint64_t since)
{
    memset(reader, 0, sizeof(*reader));
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->moved, NULL);
    return feed_open(bench->gateway.feed, filter, since, ng_str_of("reader"), reader_woken,
                     reader, &reader->feed);
}

void reader_open(struct bench *bench, struct reader *reader, const struct feed_filter *filter,
                 uint64_t since)
{
    assert_int_equal(reader_try(bench, reader, filter, since), NG_OK);
}

void reader_close(struct reader *reader)
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

int reader_next(struct reader *reader, const struct ng_event **ret)
{
    int rc;
    while ((rc = feed_next(reader->feed, ret)) == NG_PENDING) {
        reader_wait(reader);
    }
    return rc;
}

uint64_t expect_event(struct reader *reader, const char *id)
{
    const struct ng_event *event = NULL;
    assert_int_equal(reader_next(reader, &event), NG_OK);
    assert_int_equal(event->key.id.len, strlen(id));
    assert_memory_equal(event->key.id.data, id, strlen(id));
    assert_int_equal(feed_position(reader->feed), event->seq);
    return event->seq;
}

void expect_things(struct reader *reader, const char *prefix, unsigned from, unsigned count)
{
    char id[64];
    for (unsigned i = from; i < from + count; i++) {
        (void)snprintf(id, sizeof(id), "%s%u", prefix, i);
        (void)expect_event(reader, id);
    }
}

void expect_nothing(struct reader *reader)
{
    const struct ng_event *event = NULL;
    assert_int_equal(feed_next(reader->feed, &event), NG_PENDING);
}

void wait_told(struct bench *bench)
{
    struct feed *feed = bench->gateway.feed;
    int64_t until = clock_monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    for (bool told = false; !told;) {
        lock_take(&feed->lock);
        told = feed->told == feed->pushed;
        lock_release(&feed->lock);
        assert_true(clock_monotonic_ns() < until);
        (void)usleep(1000);
    }
    /* Held while a reader gets an event. */
    lock_take(&feed->readers_lock);
    lock_release(&feed->readers_lock);
}
