/* SPDX-License-Identifier: MIT */
/*
 * store_change.c - writes: functions from the present document to the next, run under the
 * document's lock against the newest state, their results queued in the backend in the order of
 * the locks.
 */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "idempotency.h"
#include "store_txn.h"

static int txn_load(struct store_txn *txn)
{
    for (size_t i = 0; i < txn->count; i++) {
        const struct ng_change *change = txn->docs[i].change;
        int rc = NG_OK;
        if (change->is_new && txn->rounds == 0) {
            rc = store_assume_new(txn->store, txn->call, txn->docs[i].cached);
        }
        if (rc != NG_OK) {
            return rc;
        }
        rc = store_load(txn->store, txn->call, txn->docs[i].cached, &change->key);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

void reply_snapshot_restore(const struct reply_snapshot *snapshot, struct call *call)
{
    call_reset_result(call);
    call->staged = snapshot->staged;
    if (call->staged.last_part != NULL) {
        call->staged.last_part->next = NULL;
    }
    if (snapshot->writer.buf != NULL) {
        call->reply_writer = snapshot->writer;
        call->reply_buf.len = snapshot->reply_len;
    }
}

static bool reply_mark_same(const struct reply_mark *a, const struct reply_mark *b)
{
    return a->text == b->text && a->last_part == b->last_part && a->reply_len == b->reply_len &&
           a->reply_open == b->reply_open;
}

void txn_take_back(struct store_txn *txn)
{
    struct call *call = txn->call;
    struct reply_mark now;
    reply_mark_take(&now, call);
    if (!reply_mark_same(&txn->first, &txn->last) && reply_mark_same(&txn->last, &now)) {
        reply_snapshot_restore(&txn->before, call);
    } else if (txn->gave_revision) {
        call->staged.revision_kind = REVISION_NONE;
    }
    txn->gave_revision = false;
}

/* The answer of the call's idempotency key, made of the reply. */
static int txn_answer(struct store_txn *txn, struct ng_answer *made,
                      const struct ng_answer **ret)
{
    struct call *call = txn->call;
    bool stores = txn->done == NULL && call->idempotency != NULL && call->after_rc == NG_OK &&
                  (call->answer_state == CALL_ANSWER_NONE || txn->stores);
    int rc = NG_OK;
    if (stores) {
        rc = idempotency_answer(call, made);
    }
    if (stores) {
        *ret = made;
    } else {
        *ret = txn->given;
    }
    return rc;
}

static int txn_into_queue(struct store_txn *txn, const struct ng_answer *answer,
                          bool *ret_retry)
{
    struct call *call = txn->call;
    int rc = txn_batch(txn, answer);
    if (rc != NG_OK) {
        return rc;
    }
    bool stores = txn->done == NULL && answer != NULL;
    txn->stores = txn->stores || stores;
    if (stores && call->answer_state == CALL_ANSWER_NONE) {
        call->answer_state = CALL_ANSWER_STORED; /* before the commit's end may look */
    }
    return txn_queue(txn, ret_retry);
}

/* Is the state in memory the newest? In a shared store only if the backend has just confirmed
 * it: a change that this process is writing may fail because another gateway was faster, and
 * what get() gives may be older than what another gateway has acknowledged. NG_PENDING: to be
 * asked again when such changes have ended (wait_for). */
static int txn_saw_newest(struct store_txn *txn, bool *ret)
{
    int rc = NG_OK;
    struct store_table *table = &txn->store->table;
    bool confirms = txn->store->backend->confirm != NULL;
    *ret = true;
    lock_take(&table->lock);
    for (size_t i = 0; i < txn->count && txn->store->shared; i++) {
        struct cached_doc *cached = txn->docs[i].cached;
        if (cached->queued > 0) {
            txn->wait_for = cached;
            rc = NG_PENDING;
        } else if (!cached->read_now || (confirms && !cached->doubted)) {
            cached->stale = true;
            cached->doubted = confirms;
            *ret = false;
        }
    }
    lock_release(&table->lock);
    return rc;
}

/* A refusal made of changes that this process is still writing: they may be lost, and nothing
 * may have been told of them. So it is told after them, by a batch of conditions alone. Shared
 * stores: txn_saw_newest() waits instead. */
static bool txn_refuses_early(struct store_txn *txn)
{
    bool early = false;
    bool lost = false; /* already: nothing to wait for */
    lock_take(&txn->store->table.lock);
    for (size_t i = 0; i < txn->count && !txn->store->shared; i++) {
        early = early || txn->docs[i].cached->queued > 0;
        lost = lost || txn->docs[i].cached->poisoned != 0;
    }
    lock_release(&txn->store->table.lock);
    return early && !lost;
}

static int txn_refuse_later(struct store_txn *txn, int refused, bool *ret_retry)
{
    txn->refusal = arena_copy(&txn->arena, str_or(txn->call->staged.message, ng_str_of("")));
    if (txn->refusal.data == NULL) {
        return txn_no_memory(txn->call);
    }
    txn->refused = refused;
    lock_take(&txn->store->table.lock);
    for (size_t i = 0; i < txn->count; i++) {
        txn_doc_keep(&txn->docs[i]);
    }
    lock_release(&txn->store->table.lock);
    return txn_into_queue(txn, NULL, ret_retry);
}

/* One round of functions and queueing. *ret_over: no further one. */
static int txn_round(struct store_txn *txn, bool *ret_settled, bool *ret_over)
{
    const struct ng_answer *answer = NULL;
    struct ng_answer made;
    bool retry = false;
    int rc = txn_load(txn);
    if (rc != NG_OK) {
        return rc;
    }
    txn->refused = 0;
    rc = txn_run(txn);
    if (rc < 0 && txn_refuses_early(txn)) {
        rc = txn_refuse_later(txn, rc, &retry);
        *ret_over = !retry;
        return rc;
    }
    if (rc == NG_OK && (txn->given != NULL || txn->call->idempotency != NULL)) {
        rc = txn_answer(txn, &made, &answer);
    }
    reply_mark_take(&txn->last, txn->call);
    bool settled = rc == NG_OK && answer == NULL &&
                   (txn->count == 0 || txn->docs[0].next == NULL) && txn_is_settled(txn);
    if (settled || (rc != NG_OK && rc != NG_PENDING)) {
        bool newest = true;
        if (txn_saw_newest(txn, &newest) != NG_OK) {
            reply_snapshot_restore(&txn->before, txn->call);
            return NG_PENDING;
        }
        if (!newest) {
            *ret_over = false; /* it may be otherwise by now */
            return NG_OK;
        }
    }
    if (settled || rc != NG_OK) {
        *ret_settled = settled;
        return rc;
    }
    rc = txn_into_queue(txn, answer, &retry);
    *ret_over = !retry;
    return rc;
}

int txn_attempt(struct store_txn *txn, bool *ret_settled)
{
    struct call *call = txn->call;
    int rc = txn_lock(txn);
    if (rc == NG_OK && txn->store->shared) {
        rc = store_retry_admit(txn);
    }
    reply_snapshot_take(&txn->before, call);
    reply_mark_take(&txn->first, call);
    txn->last = txn->first;
    bool over = false;
    for (int attempt = 0; rc == NG_OK && !over && attempt < STORE_ATTEMPTS_MAX; attempt++) {
        if (attempt > 0) {
            reply_snapshot_restore(&txn->before, call);
        }
        over = true;
        rc = txn_round(txn, ret_settled, &over);
    }
    if (rc < 0 && txn->stores) {
        call->answer_state = CALL_ANSWER_NONE; /* a later try of the tool keeps it */
        txn->stores = false;
    }
    if (rc != NG_OK || over) {
        return rc;
    }
    return call_fail(call, NG_EUNAVAILABLE,
                     "the changes before this one keep failing; try again");
}

/* The first attempt, on the caller's thread. NG_PENDING: it continues in the background. */
static int txn_start(struct store_txn *txn, bool *ret_settled)
{
    int rc = txn_attempt(txn, ret_settled);
    txn_unlock(txn);
    if (rc == NG_PENDING) {
        store_retry_wait(txn);
    } else if (txn->store->shared) {
        store_retry_release(txn);
    }
    if (rc == NG_OK && !*ret_settled) {
        rc = NG_PENDING;
    }
    txn_unref(txn);
    return rc;
}

static int check_changes(struct store *store, struct call *call,
                         const struct ng_change *changes, size_t count)
{
    int rc = NG_OK;
    if (count > NG_CHANGES_MAX) {
        return call_fail(call, NG_ETOOLARGE,
                         "one change has %zu documents; at most %d are allowed", count,
                         NG_CHANGES_MAX);
    }
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = store_check_key(store, call, &changes[i].key);
        if (rc == NG_OK && store_is_held(store)) {
            rc = store_check_held(store, call, changes[i].key.collection);
        }
    }
    return rc;
}

/* NULL: *ret_rc says why not. */
static struct store_txn *store_start(struct store *store, struct call *call,
                                     const struct ng_change *changes, size_t count, int *ret_rc)
{
    struct store_txn *txn = NULL;
    *ret_rc = check_changes(store, call, changes, count);
    if (*ret_rc == NG_OK) {
        txn = txn_new(store, call, changes, count);
        if (txn == NULL) {
            *ret_rc = txn_no_memory(call);
        }
    }
    return txn;
}

int store_change(struct store *store, struct call *call, const struct ng_change *changes,
                 size_t count)
{
    int rc;
    struct store_txn *txn = store_start(store, call, changes, count, &rc);
    if (txn == NULL) {
        return rc;
    }
    bool settled = false;
    call_pend(call); /* before the commit can end */
    rc = txn_start(txn, &settled);
    if (rc == NG_PENDING) {
        call->held = true; /* the run has not ended, nor has the call then */
        return NG_PENDING;
    }
    atomic_fetch_sub(&call->pending, 1);
    return rc;
}

/* waited: by this thread, in the call's own run. */
static int store_write_as(struct store_txn *txn, const struct ng_answer *answer, bool waited,
                          store_done_fn *done, void *user)
{
    bool settled = false;
    txn->done = done;
    txn->user = user;
    if (answer != NULL) {
        txn->answer = *answer;
        txn->given = &txn->answer;
    }
    txn->waited = waited;
    int rc = txn_start(txn, &settled);
    if (rc == NG_OK) {
        done(user, NG_OK);
    }
    if (rc != NG_PENDING) {
        return rc;
    }
    return NG_OK;
}

int store_write_answered(struct store *store, struct call *call,
                         const struct ng_change *changes, size_t count,
                         const struct ng_answer *answer, store_done_fn *done, void *user)
{
    int rc;
    struct store_txn *txn = store_start(store, call, changes, count, &rc);
    if (txn == NULL) {
        return rc;
    }
    return store_write_as(txn, answer, false, done, user);
}

int store_write(struct store *store, struct call *call, const struct ng_change *changes,
                size_t count, store_done_fn *done, void *user)
{
    return store_write_answered(store, call, changes, count, NULL, done, user);
}

/* Waits for one commit, or for several. */
struct waiter {
    struct lock lock;
    pthread_cond_t wake;
    size_t left;
};

#define WAITER_INITIALIZER(count)                                                              \
    {                                                                                          \
        LOCK_INITIALIZER(LOCK_STORE_CHANGE), PTHREAD_COND_INITIALIZER, count                   \
    }

struct waited {
    struct waiter *waiter;
    int rc;
};

static void waiter_done(void *user, int rc)
{
    struct waited *waited = user;
    struct waiter *waiter = waited->waiter;
    lock_take(&waiter->lock);
    waited->rc = rc;
    waiter->left--;
    pthread_cond_signal(&waiter->wake);
    lock_release(&waiter->lock);
}

static void waiter_wait(struct waiter *waiter)
{
    lock_take(&waiter->lock);
    while (waiter->left > 0) {
        lock_wait(&waiter->wake, &waiter->lock);
    }
    lock_release(&waiter->lock);
    lock_done(&waiter->lock);
    pthread_cond_destroy(&waiter->wake);
}

int store_write_answered_wait(struct store *store, struct call *call,
                              const struct ng_change *changes, size_t count,
                              const struct ng_answer *answer)
{
    struct waiter waiter = WAITER_INITIALIZER(1);
    struct waited waited = {&waiter, NG_OK};
    int rc;
    struct store_txn *txn = store_start(store, call, changes, count, &rc);
    if (txn != NULL) {
        rc = store_write_as(txn, answer, true, waiter_done, &waited);
    }
    if (rc != NG_OK) {
        return rc;
    }
    waiter_wait(&waiter);
    return waited.rc;
}

int store_write_wait(struct store *store, struct call *call, const struct ng_change *changes,
                     size_t count)
{
    return store_write_answered_wait(store, call, changes, count, NULL);
}

void store_write_each(struct store *store, struct store_each *items, size_t count)
{
    struct waiter waiter = WAITER_INITIALIZER(count);
    struct waited waited[STORE_EACH_MAX];
    for (size_t i = 0; i < count; i++) {
        struct store_each *item = &items[i];
        waited[i] = (struct waited){&waiter, NG_OK};
        struct store_txn *txn = store_start(store, item->call, &item->change, 1, &item->rc);
        if (txn != NULL) {
            item->rc = store_write_as(txn, NULL, true, waiter_done, &waited[i]);
        }
        if (item->rc != NG_OK) {
            waiter_done(&waited[i], item->rc); /* it is not called */
        }
    }
    waiter_wait(&waiter);
    for (size_t i = 0; i < count; i++) {
        items[i].rc = waited[i].rc;
    }
}
