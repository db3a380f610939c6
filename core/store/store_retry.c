/* SPDX-License-Identifier: MIT */
/*
 * store_retry.c - shared stores: a change that lost against another gateway is retried on that
 * gateway's write, on threads of the store, in order of arrival.
 */
#include <assert.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "idempotency.h"
#include "store_txn.h"

/* Limits of one change: tries, and time if its call has no deadline. */
#define STORE_ROUNDS_MAX 512
#define STORE_RETRY_MS 60000
/* The wait before a try: random, at most 2^losses ms and this, at least half of it. */
#define STORE_BACK_OFF_MAX_NS ((int64_t)16 * 1000000)
/* A gateway's turn: commits of one document that follow one another hold other gateways off.
 * After this many commits' time, and this time at least, there is a gap. */
#define STORE_TURN_COMMITS 8
#define STORE_TURN_MIN_NS ((int64_t)20 * 1000000)
/* For so long after a change was lost, others want the document: then the gap is as long as
 * their longest wait and this many commits, so that each of them tries once in it. */
#define STORE_CONTENDED_NS ((int64_t)1000 * 1000000)
#define STORE_GAP_COMMITS 2
/* No gap is longer. */
#define STORE_GAP_MAX_NS ((int64_t)100 * 1000000)

/* ---- the list of due retries ---- */

/* With retry's lock. */
static void retry_insert(struct store_retry *retry, struct store_txn *txn)
{
    struct store_txn **at = &retry->first;
    while (*at != NULL && (*at)->due_ns <= txn->due_ns) {
        at = &(*at)->next;
    }
    txn->next = *at;
    *at = txn;
    pthread_cond_signal(&retry->wake);
}

static void retry_submit(struct store_txn *txn, int64_t delay_ns)
{
    struct store_retry *retry = &txn->store->retry;
    lock_take(&retry->lock);
    txn->due_ns = clock_monotonic_ns() + delay_ns;
    if (txn->use != TXN_IDLE) {
        txn->use = TXN_WAKE_PENDING;
    } else {
        retry_insert(retry, txn);
    }
    lock_release(&retry->lock);
}

void store_retry_release(struct store_txn *txn)
{
    struct store_retry *retry = &txn->store->retry;
    lock_take(&retry->lock);
    bool wake = txn->use == TXN_WAKE_PENDING;
    assert(txn->use != TXN_IDLE);
    txn->use = TXN_IDLE;
    if (wake) {
        retry_insert(retry, txn);
    }
    lock_release(&retry->lock);
}

/* Random back-off: two gateways that conflict with each other retry at different times. */
static int64_t retry_delay(const struct cached_doc *cached, int64_t now)
{
    if (cached->losses <= 1) {
        return i64_max(cached->gap_until_ns - now, 0);
    }
    int64_t most =
        i64_min((int64_t)1000000 << u64_min(cached->losses, 6), STORE_BACK_OFF_MAX_NS);
    uint64_t mixed = (uint64_t)now ^ (uint64_t)(uintptr_t)cached;
    mixed = (mixed ^ mixed >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return most / 2 + (int64_t)(mixed >> 33) % (most / 2);
}

/* ---- the wait queues of the cached documents ---- */

static bool cached_doc_blocks(const struct cached_doc *cached)
{
    return cached->poisoned != 0 || (cached->yielding && cached->queued > 0);
}

void store_retry_wake(struct store *store, struct cached_doc *cached)
{
    struct store_txn *txn = cached->waiters_first;
    (void)store;
    if (txn == NULL || cached->owner != NULL || cached_doc_blocks(cached)) {
        return;
    }
    cached->waiters_first = txn->next;
    if (cached->waiters_first == NULL) {
        cached->waiters_last = NULL;
    }
    cached->owner = txn;
    txn->owns = cached;
    txn->was_queued = true;
    retry_submit(txn, retry_delay(cached, clock_monotonic_ns()));
}

static void cached_doc_enqueue_first(struct cached_doc *cached, struct store_txn *txn)
{
    txn->next = cached->waiters_first;
    if (cached->waiters_first == NULL) {
        cached->waiters_last = txn;
    }
    cached->waiters_first = txn;
}

static void cached_doc_enqueue(struct cached_doc *cached, struct store_txn *txn)
{
    txn->next = NULL;
    *(cached->waiters_first == NULL ? &cached->waiters_first : &cached->waiters_last->next) =
        txn;
    cached->waiters_last = txn;
}

void store_retry_lost(struct cached_doc *cached)
{
    cached->losses++;
    cached->contended_until_ns = clock_monotonic_ns() + STORE_CONTENDED_NS;
}

void store_retry_begins(struct cached_doc *cached)
{
    int64_t now = clock_monotonic_ns();
    if (now - cached->ended_ns > STORE_BACK_OFF_MAX_NS || cached->turn_ns == 0) {
        cached->turn_ns = now;
    }
}

void store_retry_ended(struct cached_doc *cached, int64_t took_ns)
{
    int64_t now = clock_monotonic_ns();
    int64_t most = i64_max(took_ns * STORE_TURN_COMMITS, STORE_TURN_MIN_NS);
    bool contended = now < cached->contended_until_ns;
    bool over = now - cached->turn_ns > most;
    if (cached->poisoned != 0) {
        cached->stale = true;
    }
    if (cached->queued > 0) {
        cached->yielding = cached->yielding || over;
    } else if (cached->yielding || (over && contended)) {
        cached->yielding = false;
        cached->stale = true; /* to read it again is a gap, where no other gateway has come */
        cached->turn_ns = 0;
        if (contended) {
            int64_t gap = STORE_BACK_OFF_MAX_NS + took_ns * STORE_GAP_COMMITS;
            cached->gap_until_ns = now + i64_min(gap, STORE_GAP_MAX_NS);
        }
    }
    cached->ended_ns = now;
}

int store_retry_admit(struct store_txn *txn)
{
    int rc = NG_OK;
    int64_t now = clock_monotonic_ns();
    lock_take(&txn->store->table.lock);
    for (size_t i = 0; i < txn->count && rc == NG_OK; i++) {
        struct cached_doc *cached = txn->docs[i].cached;
        bool queue = cached->waiters_first != NULL || cached->owner != NULL ||
                     cached->gap_until_ns > now;
        if (cached_doc_blocks(cached) || (queue && !txn->was_queued)) {
            txn->wait_for = cached;
            rc = NG_PENDING;
        }
    }
    lock_release(&txn->store->table.lock);
    return rc;
}

void store_retry_disown(struct store_txn *txn)
{
    struct cached_doc *cached = txn->owns;
    if (cached != NULL) {
        txn->owns = NULL;
        cached->owner = NULL;
        store_retry_wake(txn->store, cached);
    }
}

void store_retry_wait(struct store_txn *txn)
{
    struct store *store = txn->store;
    atomic_fetch_add(&store->in_flight, 1);
    atomic_fetch_add(&txn->refs, 1);
    lock_take(&store->table.lock);
    struct cached_doc *cached = txn->wait_for;
    txn->wait_for = NULL;
    store_retry_disown(txn);
    cached_doc_enqueue(cached, txn);
    /* `use` guards against the end of a commit: from here on one thread has the transaction
     * alone. */
    lock_take(&store->retry.lock);
    txn->use = TXN_IDLE;
    lock_release(&store->retry.lock);
    store_retry_wake(store, cached);
    lock_release(&store->table.lock);
}

/* ---- failed commits ---- */

bool store_retry_failed(struct store_txn *txn, int rc)
{
    /* A transaction that stores another call's answer does not adopt it. */
    bool own = !txn->waited;
    txn->adopt = rc == NG_EKEYREUSED && own && txn->batch.answer != NULL &&
                 txn->call->idempotency != NULL;
    if (rc != NG_ECONFLICT && !txn->adopt) {
        return false;
    }
    txn->rounds++;
    atomic_fetch_add(&txn->store->reruns, rc == NG_ECONFLICT ? 1 : 0);
    return true;
}

void store_retry_enlist(struct store_txn *txn, const struct cached_doc *owned)
{
    /* The reference of the commit becomes that of the list. */
    atomic_fetch_add(&txn->store->in_flight, 1);
    size_t failed = txn->batch.failed_put < txn->count ? txn->batch.failed_put : 0;
    if (txn->adopt || txn->count == 0) {
        retry_submit(txn, 0);
    } else {
        struct cached_doc *cached = txn->docs[failed].cached;
        txn->was_queued = false;
        if (cached == owned) {
            cached_doc_enqueue_first(cached, txn); /* it was its turn */
        } else {
            cached_doc_enqueue(cached, txn);
        }
    }
}

/* ---- the memory of the call: its run and later retries take turns ---- */

void store_run_begins(struct store *store, struct call *call)
{
    lock_take(&store->retry.lock);
    while (call->memory_busy) {
        lock_wait(&store->retry.released, &store->retry.lock);
    }
    call->memory_busy = true;
    lock_release(&store->retry.lock);
}

void store_run_ends(struct store *store, struct call *call)
{
    lock_take(&store->retry.lock);
    call->memory_busy = false;
    struct store_txn *txn = call->memory_waiters;
    if (txn != NULL) {
        call->memory_waiters = txn->next;
        retry_insert(&store->retry, txn);
    }
    pthread_cond_broadcast(&store->retry.released);
    lock_release(&store->retry.lock);
}

/* Others may hold what this one waits for until they have had their turn. */
static void retry_give_turn(struct store_txn *txn)
{
    lock_take(&txn->store->table.lock);
    store_retry_disown(txn);
    lock_release(&txn->store->table.lock);
}

/* False: it waits in the call's list. */
static bool retry_claim_memory(struct store_txn *txn)
{
    struct store_retry *retry = &txn->store->retry;
    struct call *call = txn->call;
    bool taken = true;
    if (txn->waited) {
        return true; /* inside of the run, which does nothing but wait for it */
    }
    lock_take(&retry->lock);
    if (call->memory_busy && txn->owns != NULL) {
        lock_release(&retry->lock);
        retry_give_turn(txn);
        lock_take(&retry->lock);
    }
    if (call->memory_busy) {
        struct store_txn **at = &call->memory_waiters;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        txn->next = NULL;
        *at = txn;
        taken = false;
    } else {
        call->memory_busy = true;
    }
    lock_release(&retry->lock);
    return taken;
}

static void retry_locked(void *user)
{
    struct store_txn *txn = user;
    txn->mutex = call_mutex(txn->call);
    retry_submit(txn, 0);
}

/* A plugin that takes one call at a time: its functions count as a call. False: it waits. */
static bool retry_lock(struct store_txn *txn)
{
    struct async_mutex *mutex = txn->waited ? NULL : call_mutex(txn->call);
    if (mutex == NULL || txn->mutex != NULL) {
        return true;
    }
    retry_give_turn(txn);
    txn->mutex_waiter.enter = retry_locked;
    txn->mutex_waiter.user = txn;
    if (!async_mutex_lock(mutex, &txn->mutex_waiter)) {
        return false;
    }
    txn->mutex = mutex;
    return true;
}

/* ---- running again ---- */

static int retry_check(struct store_txn *txn)
{
    struct call *call = txn->call;
    struct store_retry *retry = &txn->store->retry;
    int64_t now = clock_monotonic_ns();
    bool own = txn->done == NULL; /* else what follows it must not be left half done */
    if (txn->began_ns == 0) {
        txn->began_ns = now;
    }
    lock_take(&retry->lock);
    bool stopping = retry->stopping;
    lock_release(&retry->lock);
    if (stopping) {
        return call_fail(call, NG_EUNAVAILABLE,
                         "the gateway is stopping; the change was not made");
    }
    if (own && call_has(call, CALL_CANCELLED) && !call_has(call, CALL_CANCEL_MASKED)) {
        return call_fail(call, NG_ECANCELLED, "the caller left before the change was made");
    }
    if (own && call->deadline_ns != 0 && now >= call->deadline_ns) {
        return call_fail(call, NG_ETIMEOUT,
                         "other gateways kept changing this document until the call timed out; "
                         "the change was not made");
    }
    if (txn->rounds > STORE_ROUNDS_MAX ||
        now - txn->began_ns > (int64_t)STORE_RETRY_MS * 1000000) {
        return call_fail(call, NG_EBUSY,
                         "other gateways kept changing this document, %u attempts failed; try "
                         "again in a moment",
                         txn->rounds);
    }
    return NG_OK;
}

static int retry_attempt(struct store_txn *txn, bool *ret_settled)
{
    struct call *call = txn->call;
    int rc = retry_check(txn);
    if (rc != NG_OK) {
        return rc;
    }
    call->may_block = true;
    if (txn->adopt) {
        rc = idempotency_adopt(call);
        txn->adopt = false;
        if (rc != NG_ENOTFOUND) {
            *ret_settled = rc == NG_OK;
            return rc;
        }
    }
    txn_take_back(txn);
    return txn_attempt(txn, ret_settled);
}

/* Its sentence, while the call's memory is its own. */
static void retry_tell(struct store_txn *txn, int rc)
{
    struct call *call = txn->call;
    char sentence[sizeof(call->failed_text)];
    if (txn->done == NULL && rc != NG_OK) {
        struct ng_str text = utf8_cut(call->staged.message, sizeof(sentence) - 1);
        (void)snprintf(sentence, sizeof(sentence), "%.*s", (int)text.len,
                       text.data == NULL ? "" : text.data);
        call_fail_later(call, rc, sentence);
    }
}

static void retry_finish(struct store_txn *txn, int rc)
{
    if (txn->done != NULL) {
        txn->done(txn->user, rc);
    } else {
        call_complete(txn->call);
    }
}

static void retry_leave(struct store_txn *txn)
{
    struct async_mutex *mutex = txn->mutex;
    if (mutex != NULL) {
        txn->mutex = NULL;
        async_mutex_unlock(mutex);
    }
    if (!txn->waited) {
        store_run_ends(txn->store, txn->call);
    }
}

static void retry_run(struct store_txn *txn)
{
    struct store *store = txn->store;
    struct call *call = txn->call;
    bool settled = false;
    if (!retry_lock(txn) || !retry_claim_memory(txn)) {
        return;
    }
    call_ref(call);
    assert(txn->use == TXN_IDLE);
    txn->use = TXN_BUSY;
    int rc = retry_attempt(txn, &settled);
    txn_unlock(txn);
    bool ends = settled || (rc != NG_OK && rc != NG_PENDING);
    if (ends) {
        retry_tell(txn, rc);
    }
    retry_leave(txn);
    if (rc == NG_PENDING) {
        store_retry_wait(txn);
    } else {
        if (ends) { /* else it gave up its turn when it queued, and may have another one */
            lock_take(&store->table.lock);
            store_retry_disown(txn);
            lock_release(&store->table.lock);
        }
        store_retry_release(txn);
    }
    if (ends) {
        retry_finish(txn, rc);
    }
    txn_unref(txn);
    call_unref(call);
    store_batch_ended(store);
}

/* With the lock held: sleeps until something is due. NULL: the store is closed. */
static struct store_txn *retry_next(struct store_retry *retry)
{
    for (;;) {
        struct store_txn *txn = retry->first;
        if (txn == NULL && retry->ending) {
            return NULL;
        }
        int64_t now = clock_monotonic_ns();
        if (txn == NULL) {
            lock_wait(&retry->wake, &retry->lock);
        } else if (txn->due_ns <= now || retry->stopping) {
            retry->first = txn->next;
            return txn;
        } else {
            struct timespec at = {(time_t)(txn->due_ns / 1000000000),
                                  (long)(txn->due_ns % 1000000000)};
            (void)lock_wait_until(&retry->wake, &retry->lock, &at);
        }
    }
}

static void *retry_thread(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-retry");
    struct store_retry *retry = user;
    struct store_txn *txn = NULL;
    lock_take(&retry->lock);
    while ((txn = retry_next(retry)) != NULL) {
        retry->running++;
        lock_release(&retry->lock);
        retry_run(txn);
        lock_take(&retry->lock);
        retry->running--;
        pthread_cond_broadcast(&retry->released);
    }
    lock_release(&retry->lock);
    return NULL;
}

/* ---- beginning and end ---- */

int store_retry_start(struct store *store)
{
    struct store_retry *retry = &store->retry;
    lock_init(&retry->lock, LOCK_STORE_RETRY);
    lock_cond_init(&retry->wake);
    lock_cond_init(&retry->released);
    for (size_t i = 0; i < STORE_RETRY_THREADS && store->shared; i++) {
        if (pthread_create(&retry->threads[i], NULL, retry_thread, retry) != 0) {
            return NG_EINTERNAL;
        }
        retry->thread_count++;
    }
    return NG_OK;
}

void store_retry_stop(struct store *store)
{
    struct store_retry *retry = &store->retry;
    lock_take(&retry->lock);
    retry->stopping = true;
    pthread_cond_broadcast(&retry->wake);
    while (retry->running > 0) {
        lock_wait(&retry->released, &retry->lock);
    }
    lock_release(&retry->lock);
}

void store_retry_done(struct store *store)
{
    struct store_retry *retry = &store->retry;
    lock_take(&retry->lock);
    retry->ending = true;
    pthread_cond_broadcast(&retry->wake);
    lock_release(&retry->lock);
    for (size_t i = 0; i < retry->thread_count; i++) {
        (void)pthread_join(retry->threads[i], NULL);
    }
    retry->thread_count = 0;
    pthread_cond_destroy(&retry->released);
    pthread_cond_destroy(&retry->wake);
    lock_done(&retry->lock);
}
