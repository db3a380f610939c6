/* SPDX-License-Identifier: MIT */
/* store_txn.h - a write from its functions to the end of its commit. Included by store*.c
 * only. */
#ifndef NOTEGATE_CORE_STORE_TXN_H
#define NOTEGATE_CORE_STORE_TXN_H

#include "store_types.h"

/* A change function is run again where the state it saw failed to reach the disk meanwhile, or
 * where it was older than what another gateway wrote. */
#define STORE_ATTEMPTS_MAX 8

/* One document of a transaction. */
struct txn_doc {
    const struct ng_change *change;
    struct cached_doc *cached;
    struct version *base; /* seen by the function; a reference */
    struct version *next; /* made by the function; a reference, NULL: no change */
    struct ng_draft draft;
    bool locked;
    struct call_change *noted; /* in its call, for the audit log; or NULL */
};

/* The answer of a call before the functions ran: their replies can be rolled back.
 */
struct reply_snapshot {
    struct result staged;
    struct ng_writer writer;
    size_t reply_len;
};

/* Marks the state of the reply: two marks differ if a reply was made between them. */
struct reply_mark {
    const char *text;
    const struct part *last_part;
    size_t reply_len;
    bool reply_open;
};

static inline void reply_snapshot_take(struct reply_snapshot *snapshot, const struct call *call)
{
    snapshot->staged = call->staged;
    snapshot->writer = call->reply_writer;
    snapshot->reply_len = call->reply_buf.len;
}

static inline void reply_mark_take(struct reply_mark *mark, const struct call *call)
{
    mark->text = call->staged.text.data;
    mark->last_part = call->staged.last_part;
    mark->reply_len = call->reply_buf.len;
    mark->reply_open = call_reply_is_open(call);
}

/*
 * Does a thread use the transaction? A commit can end, and want it to run again, while the
 * thread that queued it is still in it (shared stores).
 *
 *   from          to            when
 *   BUSY          IDLE          its thread leaves it, or it waits for a document
 *   BUSY          WAKE_PENDING  its commit has ended first
 *   WAKE_PENDING  IDLE          its thread leaves it: it joins the list of what is due
 *   IDLE          BUSY          a thread runs it again
 */
enum txn_use { TXN_IDLE = 0, TXN_BUSY, TXN_WAKE_PENDING };

/* The memory outlives the call's run. One owner at a time: the thread that starts it, then
 * (shared stores) a thread of store_retry.c. */
struct store_txn {
    struct store *store;
    struct call *call;
    struct ng_batch batch;
    struct ng_answer answer;
    struct arena arena; /* changes, puts, fields, docs */
    struct txn_doc *docs;
    struct ng_put *puts;
    struct ng_put **put_list; /* of them, for the batch */
    size_t count;
    atomic_int refs; /* of its run, its commit, and the list it waits in */
    int64_t queued_ns;
    store_done_fn *done; /* NULL: store_change(), the answer of the call waits for it */
    void *user;
    bool stores; /* the call's answer is in its batch */
    int refused; /* the code of its functions, told when what they saw is stored; or 0 */
    struct ng_str refusal; /* its sentence; in the arena */
    bool waited;           /* a thread waits for its end in the call's own run */

    /* Shared stores only: running again. */
    const struct ng_answer *given; /* the answer to keep, or NULL */
    struct reply_snapshot before;  /* the call's answer, without replies of the functions */
    struct reply_mark first, last; /* before and after they ran last */
    bool gave_revision;
    unsigned rounds; /* commits that another gateway was faster than */
    int64_t began_ns;
    int64_t due_ns;
    struct store_txn *next; /* in a document's wait queue, that of the threads, or the call's */
    struct cached_doc *owns;     /* it owns the right to queue on this document next */
    struct cached_doc *wait_for; /* out of an attempt: it has to wait for this document */
    bool was_queued;             /* it had its turn in a wait queue: it waits in no other */
    bool adopt;                  /* its idempotency key was used elsewhere: take that answer */
    enum txn_use use;            /* with the lock of struct store_retry */
    struct async_mutex *mutex;   /* of the plugin of its call, where it holds it */
    struct async_mutex_waiter mutex_waiter;
};

/* ---- txn_doc.c ---- */

int txn_no_memory(struct call *call);
/* Rolls back the last run. */
void txn_doc_reset(struct txn_doc *doc);
/* It changes nothing: a condition on the state that was seen. With the table's lock. */
void txn_doc_keep(struct txn_doc *doc);
/* Runs the function against cached->newest. NG_PENDING: a shared store, and what this would be
 * made of has failed: txn->wait_for. */
int txn_doc_run(struct store_txn *txn, struct txn_doc *doc);
/* Fills in the put of the batch. */
int txn_doc_put(struct store_txn *txn, struct txn_doc *doc, struct ng_put *put);
/* The code of a change that depends on a failed one. */
int store_poisoned_code(int poisoned);

/* ---- store_txn.c ---- */

struct store_txn *txn_new(struct store *store, struct call *call,
                          const struct ng_change *changes, size_t count);
void txn_unref(struct store_txn *txn);
int txn_lock(struct store_txn *txn);
void txn_unlock(struct store_txn *txn);
/* Runs all functions. */
int txn_run(struct store_txn *txn);
/* Makes the batch of their versions. */
int txn_batch(struct store_txn *txn, const struct ng_answer *answer);
/* Queues it; the new versions are the newest state then. *ret_retry: not queued, because the
 * state they read has failed meanwhile. */
int txn_queue(struct store_txn *txn, bool *ret_retry);
void store_batch_ended(struct store *store);
/* Nothing changed and nothing is queued before it: there is nothing to wait for. */
bool txn_is_settled(struct store_txn *txn);

/* ---- store_change.c ---- */

/* Rolls back the functions' replies of the last run. */
void txn_take_back(struct store_txn *txn);
void reply_snapshot_restore(const struct reply_snapshot *snapshot, struct call *call);
/* Runs the functions and queues the result. NG_OK with *ret_settled: nothing to wait for.
 * NG_PENDING: it has to wait for txn->wait_for, after txn_unlock(). */
int txn_attempt(struct store_txn *txn, bool *ret_settled);

/* ---- store_retry.c: what other gateways' changes make necessary ---- */

int store_retry_start(struct store *store);
/* Nothing of this process runs a function from here on: what would run again fails. */
void store_retry_stop(struct store *store);
void store_retry_done(struct store *store);
/* May the functions run now? NG_PENDING: txn->wait_for. With the locks of the cached documents.
 */
int store_retry_admit(struct store_txn *txn);
/* It waits until its document lets it go; its owner must not use it any more. */
void store_retry_wait(struct store_txn *txn);
/* The owner uses it no more. */
void store_retry_release(struct store_txn *txn);
/* The commit of `txn` has failed with rc. True: that is not its end, it is run again. */
bool store_retry_failed(struct store_txn *txn, int rc);
/* With the table's lock: such a one waits for its turn from here on, in front of the others
 * where it had the turn of this document. */
void store_retry_enlist(struct store_txn *txn, const struct cached_doc *owned);
/* With the table's lock: the next waiter of this document continues, if the document is
 * free. */
void store_retry_wake(struct store *store, struct cached_doc *cached);
/* With the table's lock: it queued, ended, or waits elsewhere; the next one's turn. */
void store_retry_disown(struct store_txn *txn);
/* With the table's lock: another gateway was faster with this document. */
void store_retry_lost(struct cached_doc *cached);
/* With the table's lock: a change of this document is queued, and none was. */
void store_retry_begins(struct cached_doc *cached);
/* With the table's lock: changes of this document have ended, the last with this latency. */
void store_retry_ended(struct cached_doc *cached, int64_t took_ns);

#endif
