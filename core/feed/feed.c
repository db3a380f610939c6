/* SPDX-License-Identifier: MIT */
/* feed.c - the thread that wakes readers, and what a reader is given next. */
#include "core/base/lock.h"
#include "feed_types.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"

/* Events the feed's thread shows to the readers in one go. */
#define FEED_TELL_MAX 64
/* After which a reader asks the workers again that had no room for it. */
#define FEED_RETRY_MS 100
/* Poll interval of a store that other gateways write to: doubled from the first to the last
 * while no events come. */
#define FEED_POLL_FIRST_MS 20
#define FEED_POLL_LAST_MS 250
/* The same while the store itself tells of commits: in case it missed one. */
#define FEED_POLL_WATCHED_MS 5000

/* ---- events of the store ---- */

/* On the backend's thread: another gateway may have committed. */
static void feed_changed(void *user, bool live, const char *notice)
{
    struct feed *feed = user;
    if (notice != NULL) {
        log_write(NG_LOG_WARNING, "feed", "%s", notice);
    }
    lock_take(&feed->lock);
    feed->poll_most_ms = live ? FEED_POLL_WATCHED_MS : FEED_POLL_LAST_MS;
    bool known = feed->poll; /* then it sleeps no longer than until that poll */
    feed->poll = true;
    if (!known && feed->state == FEED_ASLEEP) {
        feed->state = FEED_RUNNING;
        pthread_cond_signal(&feed->wake);
    }
    lock_release(&feed->lock);
}

/* ---- filters ---- */

static bool in_list(struct ng_str text, const struct ng_str *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(list[i], text)) {
            return true;
        }
    }
    return false;
}

bool feed_wants(const struct feed_reader *reader, const struct ng_event *event)
{
    const struct feed_filter *filter = &reader->filter;
    return (filter->collection.data == NULL ||
            str_equal(filter->collection, event->key.collection)) &&
           (filter->tool.data == NULL || str_equal(filter->tool, event->tool)) &&
           (filter->all_spaces ||
            in_list(event->key.space, filter->spaces, filter->space_count)) &&
           (filter->wants == NULL || filter->wants(filter->user, event));
}

/* ---- the thread that wakes ---- */

void feed_reader_wake(struct feed_reader *reader)
{
    if (reader->waiting && !reader->closed) {
        reader->waiting = false;
        reader->wake(reader->wake_user);
    }
}

/* One reader looks at new events, the first of which has this index: those in front of the one
 * that it wants, or all, it need not look at again. */
static void show_reader(struct feed_reader *reader, struct feed_event *const *events,
                        uint64_t index, size_t count)
{
    if (!reader->waiting || !reader->live || reader->cursor < index) {
        return;
    }
    for (size_t i = (size_t)(reader->cursor - index); i < count; i++) {
        const struct ng_event *event = &events[i]->event;
        if (event->seq > reader->position && feed_wants(reader, event)) {
            feed_reader_wake(reader);
            return;
        }
        reader->cursor = index + i + 1;
        reader->position = u64_max(event->seq, reader->position);
    }
}

static void show_events(struct feed *feed, struct feed_event *const *events, uint64_t index,
                        size_t count)
{
    lock_take(&feed->readers_lock);
    for (struct feed_reader *reader = feed->readers; reader != NULL; reader = reader->next) {
        lock_take(&reader->lock);
        show_reader(reader, events, index, count);
        lock_release(&reader->lock);
    }
    lock_release(&feed->readers_lock);
    for (size_t i = 0; i < count; i++) {
        feed_event_unref(events[i]);
    }
}

/* The ring went on without this thread: readers that had waited for it are not to blame, they
 * go on in the store. Also wakes those that the workers had no room for. */
static void wake_readers(struct feed *feed, uint64_t first)
{
    lock_take(&feed->readers_lock);
    for (struct feed_reader *reader = feed->readers; reader != NULL; reader = reader->next) {
        lock_take(&reader->lock);
        bool lost = reader->live && reader->waiting && reader->cursor < first;
        if (lost) {
            reader->live = false;
            reader->read_to = reader->position;
        }
        if (lost || reader->retry) {
            reader->retry = false;
            feed_reader_wake(reader);
        }
        lock_release(&reader->lock);
    }
    lock_release(&feed->readers_lock);
}

/* With the lock held: a wait has ended, unless the feed is stopping. */
static void feed_awake(struct feed *feed)
{
    if (feed->state == FEED_ASLEEP) {
        feed->state = FEED_RUNNING;
    }
}

/* With the lock held. */
static void feed_sleep_for(struct feed *feed, long wait_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    assert(feed->state == FEED_RUNNING);
    feed->state = FEED_ASLEEP;
    (void)lock_wait_until(&feed->wake, &feed->lock, &until);
    feed_awake(feed);
}

/* With the lock held: until there is something to tell, or to try again. */
static void feed_sleep(struct feed *feed)
{
    while (feed->state != FEED_STOPPING && feed->told == feed->pushed && !feed->retry) {
        assert(feed->state == FEED_RUNNING);
        feed->state = FEED_ASLEEP;
        lock_wait(&feed->wake, &feed->lock);
        feed_awake(feed);
    }
    if (feed->state != FEED_STOPPING && feed->told == feed->pushed && feed->retry) {
        feed_sleep_for(feed, FEED_RETRY_MS);
    }
}

/* The same for a poll of the store. True: poll. */
static bool feed_sleep_shared(struct feed *feed)
{
    while (feed->state != FEED_STOPPING) {
        int64_t gap = feed->poll ? FEED_POLL_FIRST_MS : feed->poll_ms;
        int64_t left = feed->polled_ns / 1000000 + gap - clock_monotonic_ns() / 1000000;
        if (feed->more || left <= 0) {
            return true;
        }
        if (feed->told != feed->pushed) {
            return false;
        }
        if (feed->retry) {
            feed_sleep_for(feed, i64_min(left, FEED_RETRY_MS));
            return false;
        }
        feed_sleep_for(feed, left);
    }
    return false;
}

/* With the lock held: how the look went. */
void feed_polled(struct feed *feed, bool good, bool asked, size_t events, bool more)
{
    bool soon = good && (asked || events > 0);
    feed->more = more;
    if (soon) {
        feed->poll_ms = FEED_POLL_FIRST_MS;
    } else {
        feed->poll_ms = i64_min(feed->poll_ms * 2, feed->poll_most_ms);
    }
    feed->polled_ns = clock_monotonic_ns();
}

static void *feed_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-feed");
    struct feed *feed = user;
    struct feed_event *events[FEED_TELL_MAX];
    lock_take(&feed->lock);
    for (;;) {
        if (!feed->shared) {
            feed_sleep(feed);
        } else if (feed_sleep_shared(feed)) {
            lock_release(&feed->lock);
            feed_poll(feed);
            lock_take(&feed->lock);
        }
        if (feed->state == FEED_STOPPING) {
            break;
        }
        bool lost = feed->told < feed->first;
        bool retry = feed->retry;
        feed->retry = false;
        if (lost) {
            feed->told = feed->first;
        }
        uint64_t first = feed->first;
        uint64_t index = feed->told;
        size_t count = 0;
        while (feed->told < feed->pushed && count < FEED_TELL_MAX) {
            events[count++] = feed_event_ref(feed_ring_at(feed, feed->told++));
        }
        lock_release(&feed->lock);
        if (lost || retry) {
            wake_readers(feed, first);
        }
        show_events(feed, events, index, count);
        lock_take(&feed->lock);
    }
    lock_release(&feed->lock);
    return NULL;
}

/* ---- reading ---- */

/* Is everything behind `seq` in the ring, or still to come? Then the reader continues there. */
static bool go_live(struct feed_reader *reader)
{
    struct feed *feed = reader->feed;
    lock_take(&feed->lock);
    bool live = reader->read_to >= feed->dropped_seq;
    if (live) {
        reader->cursor = feed_ring_find(feed, reader->read_to);
    }
    lock_release(&feed->lock);
    reader->live = live;
    return live;
}

/* The next event of the ring, wanted or not, as reader->current. */
static int ring_take(struct feed_reader *reader)
{
    struct feed *feed = reader->feed;
    int rc = NG_OK;
    lock_take(&feed->lock);
    if (feed->pushed - reader->cursor > feed->backlog) {
        rc = NG_ETOOLARGE;
    } else if (reader->cursor < feed->first) {
        rc = NG_EWOULDBLOCK; /* lost, but not because there were too many: they were large */
    } else if (reader->cursor == feed->pushed) {
        rc = NG_PENDING;
    } else {
        reader->current = feed_event_ref(feed_ring_at(feed, reader->cursor++));
    }
    lock_release(&feed->lock);
    return rc;
}

static int next_live(struct feed_reader *reader)
{
    int rc = NG_OK;
    while (rc == NG_OK) {
        rc = ring_take(reader);
        if (rc == NG_OK) {
            const struct ng_event *event = &reader->current->event;
            bool wanted = event->seq > reader->position && feed_wants(reader, event);
            reader->position = u64_max(event->seq, reader->position);
            if (wanted) {
                return NG_OK;
            }
            feed_event_unref(reader->current);
            reader->current = NULL;
        }
    }
    if (rc == NG_EWOULDBLOCK) {
        reader->live = false;
        reader->read_to = reader->position;
    }
    return rc;
}

/* Events that a worker read from the store, then further ones. */
static int next_stored(struct feed_reader *reader)
{
    if (reader->taken < reader->count) {
        reader->current = reader->batch[reader->taken];
        reader->batch[reader->taken++] = NULL;
        reader->position = reader->current->event.seq;
        return NG_OK;
    }
    if (reader->reading) {
        return NG_PENDING;
    }
    if (reader->failed != NG_OK) {
        return reader->failed;
    }
    if (reader->filter.ends && reader->read_to >= reader->filter.until) {
        return NG_ENOTFOUND;
    }
    reader->position = u64_max(reader->read_to, reader->position);
    feed_read_forget(reader);
    if (!reader->filter.ends && go_live(reader)) {
        return NG_EWOULDBLOCK;
    }
    int rc = feed_read_submit(reader);
    if (rc == NG_EBUSY) {
        reader->retry = true;
        lock_take(&reader->feed->lock);
        reader->feed->retry = true;
        pthread_cond_signal(&reader->feed->wake);
        lock_release(&reader->feed->lock);
        return NG_PENDING;
    }
    if (rc != NG_OK) {
        return rc;
    }
    return NG_PENDING;
}

int feed_next(struct feed_reader *reader, const struct ng_event **ret)
{
    lock_take(&reader->lock);
    feed_event_unref(reader->current);
    reader->current = NULL;
    int rc;
    do {
        if (reader->live) {
            rc = next_live(reader);
        } else {
            rc = next_stored(reader);
        }
    } while (rc == NG_EWOULDBLOCK); /* from the ring to the store, or back */
    reader->waiting = rc == NG_PENDING;
    if (rc == NG_OK) {
        *ret = &reader->current->event;
    }
    lock_release(&reader->lock);
    return rc;
}

uint64_t feed_position(const struct feed_reader *reader)
{
    struct feed_reader *changing = (struct feed_reader *)(uintptr_t)reader;
    lock_take(&changing->lock);
    uint64_t position = reader->position;
    lock_release(&changing->lock);
    return position;
}

/* ---- opening and closing ---- */

static int reader_begin(struct feed_reader *reader, uint64_t since)
{
    struct feed *feed = reader->feed;
    int rc = NG_OK;
    uint64_t stored = store_last_seq(feed->store);
    lock_take(&feed->lock);
    uint64_t last = u64_max(stored, feed->last_seq);
    last = u64_max(feed->seen_seq, last);
    if (since == UINT64_MAX) {
        reader->live = !reader->filter.ends;
        reader->cursor = feed->pushed;
        since = feed->last_seq;
    } else if (since > last && !feed->shared) { /* another gateway may be ahead of this one */
        rc = NG_EINVAL;
    }
    (void)atomic_fetch_add(&feed->reader_count, rc == NG_OK ? 1 : 0);
    reader->position = since;
    reader->read_to = since;
    lock_release(&feed->lock);
    return rc;
}

int feed_open(struct feed *feed, const struct feed_filter *filter, uint64_t since,
              struct ng_str agent, void (*wake)(void *user), void *user,
              struct feed_reader **ret)
{
    struct feed_reader *reader = feed_reader_new(feed, filter, agent);
    if (reader == NULL) {
        return NG_EINTERNAL;
    }
    reader->wake = wake;
    reader->wake_user = user;
    int rc = reader_begin(reader, since);
    if (rc != NG_OK) {
        feed_reader_unref(reader);
        return rc;
    }
    lock_take(&feed->readers_lock);
    reader->next = feed->readers;
    if (feed->readers != NULL) {
        feed->readers->prev = reader;
    }
    feed->readers = reader;
    lock_release(&feed->readers_lock);
    *ret = reader;
    return NG_OK;
}

void feed_close(struct feed_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    struct feed *feed = reader->feed;
    lock_take(&feed->readers_lock);
    if (reader->prev != NULL) {
        reader->prev->next = reader->next;
    } else {
        feed->readers = reader->next;
    }
    if (reader->next != NULL) {
        reader->next->prev = reader->prev;
    }
    lock_release(&feed->readers_lock);
    lock_take(&feed->lock);
    (void)atomic_fetch_sub(&feed->reader_count, 1);
    lock_release(&feed->lock);
    lock_take(&reader->lock);
    reader->closed = true;
    feed_read_cancel(reader);
    lock_release(&reader->lock);
    feed_reader_unref(reader);
}

static int feed_start(struct feed *feed)
{
    int rc = store_watch(feed->store, NULL, feed_watch, feed);
    if (rc != NG_OK) {
        return rc;
    }
    /* Later commits come to the ring; earlier events are in the store. */
    uint64_t last = store_last_seq(feed->store);
    lock_take(&feed->lock);
    feed->dropped_seq = u64_max(last, feed->dropped_seq);
    feed->last_seq = u64_max(last, feed->last_seq);
    lock_release(&feed->lock);
    /* Before the first reader, so that it misses no event. If the database is away, the thread
     * learns the position later. */
    while (feed->shared && !feed->known) {
        feed_poll(feed);
        if (!feed->known && !feed->more) {
            break;
        }
    }
    if (pthread_create(&feed->thread, NULL, feed_run, feed) != 0) {
        store_unwatch(feed->store, feed_watch, feed);
        return NG_EINTERNAL;
    }
    store_watch_others(feed->store, feed_changed, feed);
    return NG_OK;
}

static void feed_destroy(struct feed *feed)
{
    while (feed->first < feed->pushed) {
        feed_ring_drop(feed);
    }
    (void)pthread_cond_destroy(&feed->wake);
    lock_done(&feed->readers_lock);
    lock_done(&feed->lock);
    free(feed->ring);
    free(feed);
}

int feed_new(struct gateway *gateway, size_t backlog, struct feed **ret)
{
    struct feed *feed = alloc_zeroed(1, sizeof(*feed));
    if (feed == NULL) {
        return NG_EINTERNAL;
    }
    feed->gateway = gateway;
    feed->store = gateway->store;
    void *db = NULL;
    feed->shared = (store_backend(feed->store, &db)->flags & NG_DOCUMENTS_SHARED) != 0;
    feed->poll_ms = FEED_POLL_FIRST_MS;
    feed->poll_most_ms = FEED_POLL_LAST_MS;
    feed->known = !feed->shared;
    if (backlog > 0) {
        feed->backlog = backlog;
    } else {
        feed->backlog = 1;
    }
    feed->ring = alloc_zeroed(feed->backlog, sizeof(struct feed_event *));
    lock_cond_init(&feed->wake);
    lock_init(&feed->lock, LOCK_FEED);
    lock_init(&feed->readers_lock, LOCK_FEED_READERS);
    int rc = feed->ring == NULL ? NG_EINTERNAL : feed_start(feed);
    if (rc != NG_OK) {
        feed_destroy(feed);
        return rc;
    }
    *ret = feed;
    return NG_OK;
}

void feed_free(struct feed *feed)
{
    if (feed == NULL) {
        return;
    }
    store_watch_others(feed->store, NULL, NULL);
    store_unwatch(feed->store, feed_watch, feed);
    lock_take(&feed->lock);
    feed->state = FEED_STOPPING;
    if (feed->call != NULL) {
        call_cancel(feed->call);
    }
    pthread_cond_signal(&feed->wake);
    lock_release(&feed->lock);
    (void)pthread_join(feed->thread, NULL);
    feed_destroy(feed);
}
