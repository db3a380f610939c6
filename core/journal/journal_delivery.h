/* SPDX-License-Identifier: MIT */
/* journal_delivery.h - delivery of events to the journal by one thread, in order, at least
 * once; its state is part of struct journal_front. */
#ifndef NOTEGATE_CORE_JOURNAL_DELIVERY_H
#define NOTEGATE_CORE_JOURNAL_DELIVERY_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/store/store.h"
#include "journal.h"

#define DELIVERY_PAGE NG_DELIVERY_MAX /* events of one read of the feed */
/* Hexadecimal digits of a mark, and a NUL. */
#define DELIVERY_MARK_SIZE 33
/* First wait after a failure, and the step of waits that a cancellation does not wake. */
#define DELIVERY_WAIT_FIRST_MS 100

/*
 * The thread of the delivery. Transitions, under the lock (delivery_enter()):
 *
 *   from       to         when
 *   STOPPED    RUNNING    delivery_start() has created the thread
 *   STOPPED    STOPPING   journal_stop() without a thread
 *   RUNNING    SLEEPING   nothing to deliver: an event of interest signals `wake`
 *   SLEEPING   RUNNING    woken by an event, a flush or a poll
 *   RUNNING    STOPPING   journal_stop(), or the thread could not be created
 *   SLEEPING   STOPPING   journal_stop()
 *   STOPPING   STOPPING   journal_stop() once more
 */
enum delivery_state {
    DELIVERY_STOPPED = 0,
    DELIVERY_RUNNING = 1,
    DELIVERY_SLEEPING = 2,
    DELIVERY_STOPPING = 3
};

struct journal_front {
    struct gateway *gateway;
    struct store *store;
    struct ng_journal functions;    /* the functions for plugins: wrappers of `inner` */
    const struct ng_journal *inner; /* of the module, or of the journal in documents */
    void *db;                       /* handle of `inner` */
    pthread_t thread;
    bool remote; /* a module with a health check: probe it while there is nothing to deliver */

    struct lock lock;
    pthread_cond_t wake;   /* of the delivery */
    pthread_cond_t moved;  /* of flushers: a round has ended */
    pthread_cond_t rwlock; /* of callers of journal_rwlock_lock() and journal_turn_take() */
    /* Under the lock: */
    enum delivery_state state;
    size_t readers;    /* holders of the shared lock */
    bool exclusive;    /* the exclusive lock is held or requested */
    bool degraded;     /* the last round failed */
    bool poll;         /* shared documents: this gateway has committed an event of interest */
    struct call *turn; /* the one that has it: journal_turn_take() */
    struct call *current; /* the call of the delivery, to be cancelled by a stop */
    uint64_t failures;    /* rounds that failed since the start */
    uint64_t flush_asked; /* last ticket of a flush */
    uint64_t flush_tried; /* last ticket before the present round */
    uint64_t flush_done;  /* last ticket whose events are all delivered */
    uint64_t cursor;      /* all events up to this one are delivered */
    uint64_t stored;      /* the cursor in the database */
    uint64_t seen;        /* the last event that the watch, or a round, has reported */
    uint64_t wanted;      /* the last event of interest */
    int64_t backlog;      /* events of interest up to `seen` that are not delivered */
    uint64_t opened;      /* the last event at the start; 0 once the backlog includes it */

    struct store_pins pins;  /* of checkpoints, for the upkeep in progress */
    atomic_llong keep_ms;    /* journal.keep; 0: no limit */
    _Atomic int64_t kept_ms; /* time of the last trim */
    char *referenced; /* NULL, or collections that any gateway references, between spaces */
    atomic_size_t entered; /* collections of this gateway that are in the list of all */
    /* Used by the thread of the delivery only: */
    int64_t poll_ms;               /* wait until the next poll */
    int64_t checked_ns;            /* the last delivery_check_journal() */
    char mark[DELIVERY_MARK_SIZE]; /* of the journal, if it is like the cursor's; else "" */
    uint64_t delivered;            /* the last event that the journal took */
    char **spaces;                 /* sorted: the spaces noted for journal.keep */
    size_t space_count;
    bool follows; /* shared documents: another gateway delivers */
    int64_t
        lease_ns; /* shared documents: this gateway delivers; no check of the lease before */
};

/* journal_lease.c: shared documents. *ret_mine: this gateway delivers. A live owner keeps the
 * lease. Two owners for a moment are harmless: entries are delivered once by their event id. */
int journal_lease_take(struct journal_front *front, struct call *call, bool *ret_mine);

/* journal_cursor.c: the cursor in the database, of any gateway. */
int delivery_stored_cursor(struct journal_front *front, struct call *call, uint64_t *ret);
/* Continues at the stored cursor. Before delivery_start(), then on its thread. */
int delivery_load_cursor(struct journal_front *front, struct call *call);
int delivery_store_cursor(struct journal_front *front, struct call *call, uint64_t seq);
/* Compares the mark in the journal with that of the cursor. If the journal lost data, the
 * delivery goes back to the last event that it has, and NG_EUNAVAILABLE tells so; *ret_more: it
 * had no mark before. A journal without marks is asked for its health. */
int delivery_check_journal(struct journal_front *front, struct call *call, bool *ret_more);

/* journal_backlog.c: adds the events of interest behind the cursor, up to one, to the backlog.
 */
void delivery_count_older(struct journal_front *front, uint64_t until);
/* Shared documents: adds those behind the last event that was counted. */
void delivery_count_newer(struct journal_front *front);
/* Shared documents: another gateway has moved the cursor from `from` to the present one. */
void delivery_count_moved(struct journal_front *front, uint64_t from);

/* journal_referenced.c: events of these collections become entries. Of this gateway: */
bool delivery_declares(const struct journal_front *front, struct ng_str collection);
/* Of any gateway on this database, as far as known. Not with the lock held. */
bool delivery_wants(struct journal_front *front, struct ng_str collection);
/* Reads which collections the other gateways reference. ret_grew: NULL, or whether there are
 * new ones. */
int delivery_look_referenced(struct journal_front *front, struct call *call, bool *ret_grew);
/* Shared documents: enters the collections of this gateway into that list, before their first
 * event, and releases them in the store. From any thread. */
int delivery_enter_referenced(struct journal_front *front, struct call *call);

/* Makes a call the one that a stop cancels, and cancels it if that came before. Returns the
 * former one. */
struct call *delivery_set_current(struct journal_front *front, struct call *call);
/* With the lock held: changes the state; asserts that the table above has the transition. */
void delivery_enter(struct journal_front *front, enum delivery_state state);
/* Watches the store and starts the thread. */
int delivery_start(struct journal_front *front, struct call *call);
/* With the lock held: waits until CLOCK_MONOTONIC reaches `until_ns` (false) or the condition
 * is signalled. */
bool delivery_wait_until(pthread_cond_t *cond, struct lock *lock, int64_t until_ns);

/*
 * journal_rwlock.c: writers of entries and summaries take the lock shared; a dump or a restore
 * takes it exclusively, because no write may come between its read and its commit. No mutex is
 * held meanwhile: a call waits at most until its deadline, and not after a stop. NG_OK,
 * NG_ETIMEOUT, NG_ECANCELLED; after NG_OK the caller unlocks with the same `exclusive`.
 */
int journal_rwlock_lock(struct journal_front *front, struct call *call, bool exclusive);
void journal_rwlock_unlock(struct journal_front *front, bool exclusive);
/*
 * The journal in documents does one dump, restore or removal of a checkpoint of this process at
 * a time; writers hold the generation instead. Waits in the same way, and before
 * journal_rwlock_lock(): a call that waits for its turn does not stop the delivery. For another
 * journal both are no-ops.
 */
int journal_turn_take(struct journal_front *front, struct call *call);
void journal_turn_release(struct journal_front *front);

/* journal_merge.c: restore_over of struct ng_journal, after a flush, in a turn. */
int journal_merge(struct journal_front *front, struct ng_call *call, struct ng_str space,
                  struct ng_str json, struct ng_str base);

/* journal_pins.c: the versions that checkpoints name, stored in documents: the upkeep of the
 * store needs them also while the journal is unreachable. Stores the pins of one checkpoint. */
int journal_pins_put(struct journal_front *front, struct call *call, struct ng_str space,
                     struct ng_str id, struct ng_str json);
/* Offers them to the store. */
void journal_pins_offer(struct journal_front *front);
/* Removes the pins of a deleted checkpoint. */
int journal_pins_delete(struct journal_front *front, struct call *call, struct ng_str space,
                        struct ng_str id);

/* journal_keep.c: the spaces with entries, for journal.keep. Stores the spaces of new entries.
 * On the thread of the delivery. */
int journal_keep_note(struct journal_front *front, struct call *call,
                      const struct ng_entry *const *entries, size_t count);
void journal_keep_close(struct journal_front *front);

#endif
