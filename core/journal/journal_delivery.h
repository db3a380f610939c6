/* SPDX-License-Identifier: MIT */
/* journal_delivery.h - the delivery of the journal: one thread that brings events to it, in
 * order, at least once. Its state is part of the front's. */
#ifndef NOTEGATE_CORE_JOURNAL_DELIVERY_H
#define NOTEGATE_CORE_JOURNAL_DELIVERY_H

#include <pthread.h>
#include <stdatomic.h>

#include "journal.h"
#include "journal_zone.h"

/* How long a wait lasts before it looks again at what does not wake it. */
#define DELIVERY_WAIT_FIRST_MS 100

struct journal_front {
    struct gateway *gateway;
    struct store *store;
    struct ng_journal functions;    /* what plugins call: the front's own, around inner */
    const struct ng_journal *inner; /* the module's or the documents' */
    void *db;                       /* of inner */
    struct journal_zone *zone;
    bool shared; /* other gateways write to the store too */
    bool remote; /* the journal can be away while nothing is written */
    pthread_t thread;
    bool running;

    pthread_mutex_t lock;
    pthread_cond_t wake;   /* of the delivery: something is to be done */
    pthread_cond_t moved;  /* of flushers: a round has ended */
    pthread_cond_t rwlock; /* of who waits at the gate (journal_rwlock.c) */
    /* Under the lock: */
    size_t readers; /* who is within the gate together with others */
    bool exclusive; /* one is, or is about to be, with nobody else */
    bool stopping;
    bool degraded;
    struct call *current; /* the delivery's call, to be cancelled by a stop */
    uint64_t failures;    /* rounds that failed, ever */
    uint64_t flush_asked; /* tickets of flushers */
    uint64_t flush_tried; /* ... a round was begun for */
    uint64_t flush_done;  /* ... after which nothing was left */
    uint64_t cursor;      /* all events up to this are delivered */
    uint64_t stored;      /* ... and this is on disk */
    uint64_t seen;        /* events up to this were told by the watch, or before it */
    uint64_t wanted;      /* the last one told that is for the journal */
    int64_t backlog;      /* those of them that were told and are not delivered */
    uint64_t opened;      /* the last event when the front was opened */
    bool counted;         /* those between cursor and opened are in the backlog */

    uint64_t *pins; /* hashes of pinned revisions, sorted; of the upkeep that runs */
    size_t pin_count;
    atomic_llong keep_ms; /* journal.keep; 0: for good */
    atomic_llong kept_ms; /* when what was older went last */
    bool poll;            /* shared: this gateway has committed something for the journal */
    bool asleep;          /* the delivery has nothing to do: an event wakes it */
    /* Of the delivery's thread: */
    int64_t poll_ms; /* shared: the wait until the next look */
    char **spaces;   /* those that are noted, sorted */
    size_t space_count;
    bool follows;     /* shared: another gateway delivers */
    int64_t lease_ns; /* shared: this gateway delivers, and need not look who does until then */
};

/* journal_lease.c: shared documents. Is it this gateway that delivers? One does, as long as it
 * lives; that two do for a moment is harmless, as each event is delivered once by its id. */
int journal_lease_take(struct journal_front *front, struct call *call, bool *ret_mine);

/* Up to where all events were delivered, by whichever gateway, as documents say. */
int delivery_stored_cursor(struct journal_front *front, struct call *call, uint64_t *ret);
/* Where the last delivery ended. Before delivery_start. */
int delivery_load_cursor(struct journal_front *front, struct call *call);
/* Watches the store and starts the thread. */
int delivery_start(struct journal_front *front, struct call *call);
/* With the front's lock held: waits until CLOCK_MONOTONIC reaches `until_ns` (false) or the
 * condition is signalled. */
bool delivery_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/*
 * journal_rwlock.c: who writes entries or a summary passes the gate with others; a dump, a
 * restore passes it alone, as nothing may come between its look and its step. Nobody holds a
 * lock meanwhile: who waits does so no longer than its call lasts, and not over a stop. NG_OK,
 * NG_ETIMEOUT, NG_ECANCELLED; after NG_OK the same is to leave.
 */
int journal_rwlock_lock(struct journal_front *front, struct call *call, bool exclusive);
void journal_rwlock_unlock(struct journal_front *front, bool exclusive);

/* journal_merge.c: see restore_over in struct ng_journal. After a flush. */
int journal_merge(struct journal_front *front, struct ng_call *call, struct ng_str space,
                  struct ng_str json, struct ng_str base);

/* journal_pins.c: the versions that checkpoints name, in documents, so that the store's upkeep
 * knows them wherever the journal is. Declares the collection; notes those of one checkpoint.
 */
int journal_pins_declare(struct journal_front *front, struct call *call);
int journal_pins_put(struct journal_front *front, struct call *call, struct ng_str space,
                     struct ng_str id, struct ng_str json);
/* The versions of a checkpoint that is gone need no longer stay. */
int journal_pins_delete(struct journal_front *front, struct call *call, struct ng_str space,
                        struct ng_str id);

/* journal_keep.c: the spaces that there are entries of, and what is too old of them. Declares
 * the collection; notes the spaces of entries (the delivery's thread); frees. */
int journal_keep_declare(struct journal_front *front, struct call *call);
int journal_keep_note(struct journal_front *front, struct call *call,
                      const struct ng_entry *const *entries, size_t count);
void journal_keep_close(struct journal_front *front);

#endif
