/* SPDX-License-Identifier: MIT */
/* feed_types.h - types shared by the files of the feed. Included by feed*.c only. */
#ifndef NOTEGATE_CORE_FEED_TYPES_H
#define NOTEGATE_CORE_FEED_TYPES_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/store/store.h"
#include "feed.h"

/* Bytes of events in the ring, whatever limits.stream_backlog says. */
#define FEED_RING_BYTES ((size_t)8 * 1024 * 1024)
/* Bytes of texts that are kept of events, for all readers together. */
#define FEED_TEXT_BYTES ((size_t)8 * 1024 * 1024)

/* An event as feed_print() has formatted it. */
struct feed_text {
    atomic_size_t *total; /* feed->text_bytes */
    size_t len;
    char data[];
};

/* Immutable, but for `text`, which is set once. */
struct feed_event {
    atomic_uint refs;
    _Atomic(struct feed_text *) text; /* NULL: not made, or not kept */
    size_t bytes;
    struct ng_event event; /* into texts */
    char texts[];
};

/*
 * The thread of the feed.
 *
 *   from      to        when
 *   RUNNING   ASLEEP    it waits for events
 *   ASLEEP    RUNNING   a commit wakes it, or its time is up
 *   any       STOPPING  feed_free()
 */
enum feed_state { FEED_RUNNING = 0, FEED_ASLEEP, FEED_STOPPING };

/* Locks in this order: readers_lock, reader->lock, lock. The committing thread takes only the
 * last, which is held only for a short read of the ring. */
struct feed {
    struct gateway *gateway;
    struct store *store;
    pthread_t thread;

    struct lock lock;
    pthread_cond_t wake; /* of the thread */
    struct feed_event **ring;
    size_t backlog; /* places in it */
    size_t bytes;
    /* Events are counted from 0; the ring holds those from first to pushed - 1. */
    uint64_t first, pushed;
    uint64_t told;        /* the readers have been shown those before */
    uint64_t dropped_seq; /* events behind it are in the ring, or come later */
    uint64_t last_seq;    /* of the pushed events */
    uint64_t seen_seq;    /* a reader may have got it from the store before it was pushed */
    atomic_size_t reader_count; /* while there are none, the thread is not woken */
    atomic_size_t text_bytes;
    bool shared; /* other gateways write too: the ring is filled from the store */
    /* shared: */
    bool known;      /* the position in the store is known; until then the ring stays empty */
    bool poll;       /* this gateway has committed: it will be in the store soon */
    bool more;       /* there is more in the store */
    int64_t poll_ms; /* the wait between two looks, if nothing wakes */
    int64_t poll_most_ms; /* its limit: long while the store tells of commits itself */
    int64_t polled_ns;
    struct call *call; /* shared: of the read under way */
    bool retry;        /* a reader waits for room among the workers */
    enum feed_state state;

    struct lock readers_lock;
    struct feed_reader *readers;
};

/* Everything under `lock`, but what never changes. */
struct feed_reader {
    struct feed_reader *prev, *next; /* under feed->readers_lock */
    struct feed *feed;
    struct feed_filter filter;
    struct ng_str agent;
    void (*wake)(void *user);
    void *wake_user;
    atomic_uint refs; /* of the caller that opened it, and the read under way */

    struct lock lock;
    bool closed;
    bool waiting; /* told that there is nothing now; to be woken */
    bool retry;
    bool live;         /* reads the ring, else the store */
    uint64_t cursor;   /* live: the next event of the ring */
    uint64_t position; /* everything up to this was given, or is not wanted */
    struct feed_event *current;
    /* Not live: */
    bool reading;      /* a worker is at it */
    int failed;        /* how reading ended */
    uint64_t read_to;  /* the store was read up to here */
    struct call *call; /* of the read under way */
    struct task task;
    struct feed_event **batch; /* events that were read and match the filter */
    size_t count, taken, cap;
};

/* feed.c */
void feed_polled(struct feed *feed, bool good, bool asked, size_t events, bool more);

/* feed_ring.c */
struct feed_event *feed_event_new(const struct ng_event *from);
struct feed_event *feed_event_ref(struct feed_event *event);
void feed_event_unref(struct feed_event *event); /* NULL is a no-op */
/* With feed->lock held: an event by its count, the oldest out, a new one in (its reference
 * passes), the first behind `seq`. */
struct feed_event *feed_ring_at(const struct feed *feed, uint64_t index);
void feed_ring_drop(struct feed *feed);
void feed_ring_push(struct feed *feed, struct feed_event *event);
uint64_t feed_ring_find(const struct feed *feed, uint64_t seq);
/* On the committing thread: a store_watch_fn. */
void feed_watch(void *user, const struct ng_event *events, size_t count);

/* feed.c */
/* With reader->lock held. */
bool feed_wants(const struct feed_reader *reader, const struct ng_event *event);
void feed_reader_wake(struct feed_reader *reader);

/* feed_read.c; with reader->lock held, but for the first two. */
struct feed_reader *feed_reader_new(struct feed *feed, const struct feed_filter *filter,
                                    struct ng_str agent);
void feed_reader_unref(struct feed_reader *reader);
/* Has a worker read what follows read_to. NG_OK: reader is woken when it did. NG_EBUSY. */
int feed_read_submit(struct feed_reader *reader);
void feed_read_forget(struct feed_reader *reader);
void feed_read_cancel(struct feed_reader *reader);

/* shared: new events of the store into the ring. On the feed's thread, without locks. */
void feed_poll(struct feed *feed);

#endif
