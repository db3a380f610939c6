/* SPDX-License-Identifier: MIT */
/* feed_read.c - readers, and what is read from the store: on a worker, events that are older
 * than the ring; on the feed's thread, those that other gateways make. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "feed_types.h"

/* One read: events checked, bytes of the kept ones, time. */
#define FEED_READ_EVENTS 1000
#define FEED_READ_BYTES ((size_t)256 * 1024)
#define FEED_READ_MS 60000
#define FEED_BATCH_FIRST 64

/* ---- readers ---- */

static size_t filter_bytes(const struct feed_filter *filter)
{
    size_t bytes =
        filter->space_count * sizeof(struct ng_str) + filter->collection.len + filter->tool.len;
    for (size_t i = 0; i < filter->space_count; i++) {
        bytes += filter->spaces[i].len;
    }
    return bytes;
}

static struct ng_str copy_text(char **at, struct ng_str text)
{
    struct ng_str copy = {NULL, 0};
    if (text.data != NULL) {
        if (text.len > 0) {
            memcpy(*at, text.data, text.len);
        }
        copy = str_make(*at, text.len);
        *at += text.len;
    }
    return copy;
}

/* The texts lie behind the reader. */
struct feed_reader *feed_reader_new(struct feed *feed, const struct feed_filter *filter,
                                    struct ng_str agent)
{
    size_t bytes = filter_bytes(filter) + agent.len;
    struct feed_reader *reader = alloc_zeroed(1, sizeof(*reader) + bytes + 1);
    if (reader == NULL) {
        return NULL;
    }
    lock_init(&reader->lock, LOCK_FEED_READER);
    struct ng_str *spaces = (struct ng_str *)(void *)(reader + 1);
    char *at = (char *)(spaces + filter->space_count);
    for (size_t i = 0; i < filter->space_count; i++) {
        spaces[i] = copy_text(&at, filter->spaces[i]);
    }
    atomic_init(&reader->refs, 1);
    reader->feed = feed;
    reader->filter = *filter;
    reader->filter.spaces = spaces;
    reader->filter.collection = copy_text(&at, filter->collection);
    reader->filter.tool = copy_text(&at, filter->tool);
    reader->agent = copy_text(&at, agent);
    return reader;
}

void feed_read_forget(struct feed_reader *reader)
{
    for (size_t i = reader->taken; i < reader->count; i++) {
        feed_event_unref(reader->batch[i]);
    }
    free(reader->batch);
    reader->batch = NULL;
    reader->count = 0;
    reader->taken = 0;
    reader->cap = 0;
}

void feed_reader_unref(struct feed_reader *reader)
{
    if (atomic_fetch_sub(&reader->refs, 1) != 1) {
        return;
    }
    feed_read_forget(reader);
    feed_event_unref(reader->current);
    lock_done(&reader->lock);
    free(reader);
}

/* ---- on a worker ---- */

struct feed_round {
    struct feed_reader *reader;
    size_t events, bytes;
    int rc;
};

/* With the lock held. */
static int batch_add(struct feed_reader *reader, struct feed_event *event)
{
    if (reader->count == reader->cap) {
        size_t cap = reader->cap == 0 ? FEED_BATCH_FIRST : reader->cap * 2;
        struct feed_event **batch =
            alloc_resize(reader->batch, cap * sizeof(struct feed_event *));
        if (batch == NULL) {
            return NG_EINTERNAL;
        }
        reader->batch = batch;
        reader->cap = cap;
    }
    reader->batch[reader->count++] = event;
    return NG_OK;
}

/* One row. Filters are asked under the lock: after feed_close() they are not asked any more. */
static int round_take(void *user, const struct ng_event *row)
{
    struct feed_round *round = user;
    struct feed_reader *reader = round->reader;
    lock_take(&reader->lock);
    bool past = reader->filter.ends && row->seq > reader->filter.until;
    if (reader->closed) {
        round->rc = NG_ECANCELLED;
    } else if (past) {
        reader->read_to = reader->filter.until;
    } else if (feed_wants(reader, row)) {
        struct feed_event *event = feed_event_new(row);
        round->rc = event == NULL ? NG_EINTERNAL : batch_add(reader, event);
        if (round->rc == NG_OK) {
            round->bytes += event->bytes;
        } else {
            feed_event_unref(event);
        }
    }
    if (round->rc == NG_OK && !past) {
        round->events++;
        reader->read_to = row->seq;
    }
    lock_release(&reader->lock);
    return round->rc != NG_OK || past || round->bytes >= FEED_READ_BYTES;
}

/* The end of a round. all: no event follows that was committed before `mark` was read. */
static void round_end(struct feed_reader *reader, int rc, bool all, uint64_t mark)
{
    struct feed *feed = reader->feed;
    lock_take(&reader->lock);
    reader->call = NULL;
    reader->reading = false;
    reader->failed = rc;
    if (all && reader->filter.ends) {
        mark = u64_max(reader->filter.until, mark);
    }
    if (all && mark > reader->read_to) {
        reader->read_to = mark;
    }
    lock_take(&feed->lock);
    if (reader->read_to > feed->seen_seq) {
        feed->seen_seq = reader->read_to;
    }
    lock_release(&feed->lock);
    feed_reader_wake(reader);
    lock_release(&reader->lock);
}

static void read_run(struct task *task)
{
    struct feed_reader *reader =
        (struct feed_reader *)(void *)((char *)task - offsetof(struct feed_reader, task));
    struct feed *feed = reader->feed;
    struct feed_round round = {.reader = reader};
    struct call *call = call_new(feed->gateway);
    int rc = call == NULL ? NG_EINTERNAL : NG_OK;
    lock_take(&feed->lock);
    uint64_t mark = feed->dropped_seq; /* committed: the store has all up to here */
    lock_release(&feed->lock);
    lock_take(&reader->lock);
    reader->call = call;
    if (reader->closed) {
        rc = NG_ECANCELLED;
    }
    uint64_t since = reader->read_to;
    lock_release(&reader->lock);
    if (rc == NG_OK) {
        call->may_block = true;
        call->deadline_ns = clock_monotonic_ns() + (int64_t)FEED_READ_MS * 1000000;
        rc = store_changes(feed->store, call, since, FEED_READ_EVENTS, round_take, &round);
        if (round.rc != NG_OK) {
            rc = round.rc;
        }
    }
    bool all = rc == NG_OK && round.events < FEED_READ_EVENTS && round.bytes < FEED_READ_BYTES;
    round_end(reader, rc, all, mark);
    call_unref(call);
    feed_reader_unref(reader);
}

int feed_read_submit(struct feed_reader *reader)
{
    reader->task.run = read_run;
    (void)atomic_fetch_add(&reader->refs, 1);
    reader->reading = true;
    int rc = pool_submit(reader->feed->gateway->pool, reader->agent, &reader->task);
    if (rc != NG_OK) {
        reader->reading = false;
        (void)atomic_fetch_sub(&reader->refs, 1);
    }
    /* or its agent's half of the queue */
    if (rc != NG_ERATE) {
        return rc;
    }
    return NG_EBUSY;
}

void feed_read_cancel(struct feed_reader *reader)
{
    if (reader->call != NULL) {
        call_cancel(reader->call);
    }
}

/* ---- stores that several gateways write to ---- */

struct feed_poll {
    struct feed *feed;
    bool known, asked;
    uint64_t since;
    size_t events;
};

static int poll_take(void *user, const struct ng_event *row)
{
    struct feed_poll *poll = user;
    struct feed *feed = poll->feed;
    struct feed_event *event = poll->known ? feed_event_new(row) : NULL;
    if (event == NULL && poll->known) {
        return 1; /* the next round tries again */
    }
    lock_take(&feed->lock);
    if (poll->known) {
        feed_ring_push(feed, event);
    } else {
        feed->dropped_seq = row->seq;
        feed->last_seq = row->seq;
    }
    lock_release(&feed->lock);
    store_saw_seq(feed->store, row->seq);
    poll->events++;
    return 0;
}

/* The position of the feed, if the backend knows it without reading all events. */
static void poll_begin(struct feed *feed, struct feed_poll *poll)
{
    uint64_t last = poll->known ? 0 : store_look_seq(feed->store);
    lock_take(&feed->lock);
    if (last > feed->last_seq) {
        feed->dropped_seq = last;
        feed->last_seq = last;
    }
    poll->since = feed->last_seq;
    poll->asked = feed->poll;
    feed->poll = false;
    lock_release(&feed->lock);
}

void feed_poll(struct feed *feed)
{
    struct feed_poll poll = {.feed = feed, .known = feed->known};
    struct call *call = call_new(feed->gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        call->may_block = true;
        call->deadline_ns = clock_monotonic_ns() + (int64_t)FEED_READ_MS * 1000000;
        lock_take(&feed->lock);
        feed->call = call;
        lock_release(&feed->lock);
        poll_begin(feed, &poll);
        rc = store_changes(feed->store, call, poll.since, FEED_READ_EVENTS, poll_take, &poll);
    }
    lock_take(&feed->lock);
    feed->call = NULL;
    bool more = rc == NG_OK && poll.events == FEED_READ_EVENTS;
    feed->known = feed->known || (rc == NG_OK && !more);
    feed->poll = feed->poll || (rc != NG_OK && poll.asked);
    feed_polled(feed, rc == NG_OK, poll.asked, poll.events, more);
    lock_release(&feed->lock);
    call_unref(call);
}
