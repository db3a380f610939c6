/* SPDX-License-Identifier: MIT */
/*
 * store_retry.c - shared stores: changes that another gateway was faster than are made again on
 * what it wrote, on threads of the store's own, one after the other in the order they came.
 */
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "idem.h"
#include "store_operation.h"

/* Tries of one change, and time for one whose call has no deadline. */
#define STORE_ROUNDS_MAX 512
#define STORE_RETRY_MS 60000
/* The wait before a try: random, below 2^tries ms and below this. */
#define STORE_BACK_OFF_MAX_MS 32
/* Commits of one document that follow one another without a gap hold other gateways off: after
 * this many commits' time, and this time at least, one gap is left. */
#define STORE_CHAIN_COMMITS 16
#define STORE_CHAIN_MIN_NS ((int64_t)20 * 1000000)

/* ---- the list of what is due ---- */

/* With retry's lock. */
static void retry_insert(struct store_retry *retry, struct operation *op)
{
    struct operation **at = &retry->first;
    while (*at != NULL && (*at)->due_ns <= op->due_ns) {
        at = &(*at)->next;
    }
    op->next = *at;
    *at = op;
    pthread_cond_signal(&retry->wake);
}

static void retry_submit(struct operation *op, int64_t delay_ns)
{
    struct store_retry *retry = &op->store->retry;
    pthread_mutex_lock(&retry->lock);
    op->due_ns = clock_monotonic_ns() + delay_ns;
    if (op->held) {
        op->came_early = true;
    } else {
        retry_insert(retry, op);
    }
    pthread_mutex_unlock(&retry->lock);
}

void store_retry_let_go(struct operation *op)
{
    struct store_retry *retry = &op->store->retry;
    if (!op->store->shared) {
        return;
    }
    pthread_mutex_lock(&retry->lock);
    op->held = false;
    if (op->came_early) {
        op->came_early = false;
        retry_insert(retry, op);
    }
    pthread_mutex_unlock(&retry->lock);
}

/* Who loses waits a little, others not as long: two that lose to each other get apart. */
static int64_t retry_delay(const struct operation *op)
{
    if (op->rounds <= 1) {
        return 0;
    }
    int64_t most = op->rounds > 5 ? STORE_BACK_OFF_MAX_MS : (int64_t)1 << op->rounds;
    uint64_t mixed = (uint64_t)clock_monotonic_ns() ^ (uint64_t)(uintptr_t)op;
    mixed = (mixed ^ mixed >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return (int64_t)(mixed >> 33) % (most * 1000000);
}

/* ---- the lists of the entries ---- */

static bool entry_blocks(const struct entry *entry)
{
    return entry->failing != 0 || (entry->draining && entry->queued > 0);
}

void store_retry_wake(struct store *store, struct entry *entry)
{
    struct operation *op = entry->parked_first;
    (void)store;
    if (op == NULL || entry->turn != NULL || entry_blocks(entry)) {
        return;
    }
    entry->parked_first = op->next;
    if (entry->parked_first == NULL) {
        entry->parked_last = NULL;
    }
    entry->turn = op;
    op->turn_of = entry;
    op->waits_behind = true;
    retry_submit(op, retry_delay(op));
}

static void entry_park(struct entry *entry, struct operation *op)
{
    op->next = NULL;
    *(entry->parked_first == NULL ? &entry->parked_first : &entry->parked_last->next) = op;
    entry->parked_last = op;
}

void store_retry_ended(struct entry *entry, int64_t took_ns)
{
    int64_t most = took_ns * STORE_CHAIN_COMMITS;
    most = most < STORE_CHAIN_MIN_NS ? STORE_CHAIN_MIN_NS : most;
    if (entry->failing != 0) {
        entry->stale = true;
    }
    if (entry->queued > 0) {
        entry->draining = entry->draining || clock_monotonic_ns() - entry->chain_ns > most;
    } else if (entry->draining) {
        entry->draining = false;
        entry->stale = true; /* to read it again is the gap */
    }
}

int store_retry_admit(struct operation *op)
{
    int rc = NG_OK;
    pthread_mutex_lock(&op->store->table.lock);
    for (size_t i = 0; i < op->count && rc == NG_OK; i++) {
        struct entry *entry = op->pieces[i].entry;
        bool queue = entry->parked_first != NULL || entry->turn != NULL;
        if (entry_blocks(entry) || (queue && !op->waits_behind)) {
            op->park_on = entry;
            rc = NG_PENDING;
        }
    }
    pthread_mutex_unlock(&op->store->table.lock);
    return rc;
}

/* With the table's lock: it queued, or waits elsewhere; the next one's turn. */
static void retry_pass(struct operation *op)
{
    struct entry *entry = op->turn_of;
    if (entry != NULL) {
        op->turn_of = NULL;
        entry->turn = NULL;
        store_retry_wake(op->store, entry);
    }
}

void store_retry_park(struct operation *op)
{
    struct store *store = op->store;
    atomic_fetch_add(&store->in_flight, 1);
    atomic_fetch_add(&op->refs, 1);
    pthread_mutex_lock(&store->table.lock);
    struct entry *entry = op->park_on;
    op->park_on = NULL;
    retry_pass(op);
    entry_park(entry, op);
    /* `held` is for commits: whoever has it from here on has it alone. */
    pthread_mutex_lock(&store->retry.lock);
    op->held = false;
    pthread_mutex_unlock(&store->retry.lock);
    store_retry_wake(store, entry);
    pthread_mutex_unlock(&store->table.lock);
}

/* ---- failed commits ---- */

bool store_retry_failed(struct operation *op, int rc)
{
    /* Who waits with an answer of another call's does not take it for this one's. */
    bool own = op->own_answer || !op->waited;
    op->adopt =
        rc == NG_EKEYREUSED && own && op->batch.answer != NULL && op->call->idem != NULL;
    if (rc != NG_ECONFLICT && !op->adopt) {
        return false;
    }
    op->rounds++;
    atomic_fetch_add(&op->store->reruns, rc == NG_ECONFLICT ? 1 : 0);
    return true;
}

void store_retry_enlist(struct operation *op)
{
    /* The reference of the commit becomes that of the list. */
    atomic_fetch_add(&op->store->in_flight, 1);
    size_t failed = op->batch.failed_put < op->count ? op->batch.failed_put : 0;
    if (op->adopt || op->count == 0) {
        retry_submit(op, 0);
    } else {
        op->waits_behind = false;
        entry_park(op->pieces[failed].entry, op);
    }
}

/* ---- the memory of the call: its run, and what is made again after it, take turns ---- */

void store_run_begins(struct store *store, struct call *call)
{
    if (store == NULL || !store->shared) {
        return;
    }
    pthread_mutex_lock(&store->retry.lock);
    while (call->turn_taken) {
        pthread_cond_wait(&store->retry.turned, &store->retry.lock);
    }
    call->turn_taken = true;
    pthread_mutex_unlock(&store->retry.lock);
}

void store_run_ends(struct store *store, struct call *call)
{
    if (store == NULL || !store->shared) {
        return;
    }
    pthread_mutex_lock(&store->retry.lock);
    call->turn_taken = false;
    struct operation *op = call->turn_waiting;
    if (op != NULL) {
        call->turn_waiting = op->next;
        retry_insert(&store->retry, op);
    }
    pthread_cond_broadcast(&store->retry.turned);
    pthread_mutex_unlock(&store->retry.lock);
}

/* False: it waits in the call's list. */
static bool retry_take_turn(struct operation *op)
{
    struct store_retry *retry = &op->store->retry;
    struct call *call = op->call;
    bool taken = true;
    if (op->waited) {
        return true; /* inside of the run, which does nothing but wait for it */
    }
    pthread_mutex_lock(&retry->lock);
    if (call->turn_taken) {
        struct operation **at = &call->turn_waiting;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        op->next = NULL;
        *at = op;
        taken = false;
    } else {
        call->turn_taken = true;
    }
    pthread_mutex_unlock(&retry->lock);
    return taken;
}

static void retry_entered_gate(void *user)
{
    struct operation *op = user;
    op->in_gate = true;
    retry_submit(op, 0);
}

/* A plugin that takes one call at a time: its functions count as a call. False: it waits. */
static bool retry_enter_gate(struct operation *op)
{
    struct gate *gate = op->waited ? NULL : dispatch_gate(op->call);
    if (gate == NULL || op->in_gate) {
        return true;
    }
    op->gate_entry.enter = retry_entered_gate;
    op->gate_entry.user = op;
    if (!gate_enter(gate, &op->gate_entry)) {
        return false;
    }
    op->in_gate = true;
    return true;
}

/* ---- running again ---- */

static int retry_check(struct operation *op)
{
    struct call *call = op->call;
    struct store_retry *retry = &op->store->retry;
    int64_t now = clock_monotonic_ns();
    bool own = op->done == NULL; /* else what follows it must not be left half done */
    op->began_ns = op->began_ns == 0 ? now : op->began_ns;
    pthread_mutex_lock(&retry->lock);
    bool stopping = retry->stopping;
    pthread_mutex_unlock(&retry->lock);
    if (stopping) {
        return call_fail(call, NG_EUNAVAILABLE,
                         "the gateway is stopping; the change was not made");
    }
    if (own && atomic_load(&call->cancelled) && !atomic_load(&call->cancel_masked)) {
        return call_fail(call, NG_ECANCELLED, "the caller left before the change was made");
    }
    if (own && call->deadline_ns != 0 && now >= call->deadline_ns) {
        return call_fail(call, NG_ETIMEOUT,
                         "other gateways kept changing this document until the call's time "
                         "was up; the change was not made");
    }
    if (op->rounds > STORE_ROUNDS_MAX ||
        now - op->began_ns > (int64_t)STORE_RETRY_MS * 1000000) {
        return call_fail(call, NG_EBUSY,
                         "other gateways kept changing this document, %u tries were in vain; "
                         "try again in a moment",
                         op->rounds);
    }
    return NG_OK;
}

static int retry_attempt(struct operation *op, bool *ret_settled)
{
    struct call *call = op->call;
    int rc = retry_check(op);
    if (rc != NG_OK) {
        return rc;
    }
    call->may_block = true;
    if (op->adopt) {
        rc = idem_adopt(call);
        op->adopt = false;
        if (rc != NG_ENOTFOUND) {
            *ret_settled = rc == NG_OK;
            return rc;
        }
    }
    operation_take_back(op);
    return operation_attempt(op, ret_settled);
}

/* Its sentence, while the call's memory is its own. */
static void retry_tell(struct operation *op, int rc)
{
    struct call *call = op->call;
    char sentence[sizeof(call->failed_text)];
    if (op->done == NULL && rc != NG_OK) {
        struct ng_str text = str_utf8_cut(call->work.message, sizeof(sentence) - 1);
        (void)snprintf(sentence, sizeof(sentence), "%.*s", (int)text.len,
                       text.data == NULL ? "" : text.data);
        call_fail_later(call, rc, sentence);
    }
}

static void retry_finish(struct operation *op, int rc)
{
    if (op->done != NULL) {
        op->done(op->user, rc);
    } else {
        call_release(op->call);
    }
}

static void retry_leave(struct operation *op)
{
    if (op->in_gate) {
        op->in_gate = false;
        gate_leave(dispatch_gate(op->call));
    }
    if (!op->waited) {
        store_run_ends(op->store, op->call);
    }
}

static void retry_run(struct operation *op)
{
    struct store *store = op->store;
    struct call *call = op->call;
    bool settled = false;
    if (!retry_enter_gate(op) || !retry_take_turn(op)) {
        return;
    }
    call_ref(call);
    op->held = true;
    int rc = retry_attempt(op, &settled);
    operation_unlock(op);
    bool ends = settled || (rc != NG_OK && rc != NG_PENDING);
    if (ends) {
        retry_tell(op, rc);
    }
    retry_leave(op);
    if (rc == NG_PENDING) {
        store_retry_park(op);
    } else {
        pthread_mutex_lock(&store->table.lock);
        retry_pass(op);
        pthread_mutex_unlock(&store->table.lock);
        store_retry_let_go(op);
    }
    if (ends) {
        retry_finish(op, rc);
    }
    operation_unref(op);
    call_unref(call);
    store_batch_ended(store);
}

/* With the lock held: sleeps until something is due. NULL: the store is closed. */
static struct operation *retry_next(struct store_retry *retry)
{
    for (;;) {
        struct operation *op = retry->first;
        if (op == NULL && retry->ending) {
            return NULL;
        }
        int64_t now = clock_monotonic_ns();
        if (op == NULL) {
            pthread_cond_wait(&retry->wake, &retry->lock);
        } else if (op->due_ns <= now || retry->stopping) {
            retry->first = op->next;
            return op;
        } else {
            struct timespec at = {(time_t)(op->due_ns / 1000000000),
                                  (long)(op->due_ns % 1000000000)};
            (void)pthread_cond_timedwait(&retry->wake, &retry->lock, &at);
        }
    }
}

static void *retry_thread(void *user)
{
    struct store_retry *retry = user;
    struct operation *op = NULL;
    pthread_mutex_lock(&retry->lock);
    while ((op = retry_next(retry)) != NULL) {
        retry->running++;
        pthread_mutex_unlock(&retry->lock);
        retry_run(op);
        pthread_mutex_lock(&retry->lock);
        retry->running--;
        pthread_cond_broadcast(&retry->turned);
    }
    pthread_mutex_unlock(&retry->lock);
    return NULL;
}

/* ---- beginning and end ---- */

int store_retry_start(struct store *store)
{
    struct store_retry *retry = &store->retry;
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&retry->lock, NULL);
    pthread_cond_init(&retry->wake, &monotonic);
    pthread_cond_init(&retry->turned, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
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
    pthread_mutex_lock(&retry->lock);
    retry->stopping = true;
    pthread_cond_broadcast(&retry->wake);
    while (retry->running > 0) {
        pthread_cond_wait(&retry->turned, &retry->lock);
    }
    pthread_mutex_unlock(&retry->lock);
}

void store_retry_done(struct store *store)
{
    struct store_retry *retry = &store->retry;
    pthread_mutex_lock(&retry->lock);
    retry->ending = true;
    pthread_cond_broadcast(&retry->wake);
    pthread_mutex_unlock(&retry->lock);
    for (size_t i = 0; i < retry->thread_count; i++) {
        (void)pthread_join(retry->threads[i], NULL);
    }
    retry->thread_count = 0;
    pthread_cond_destroy(&retry->turned);
    pthread_cond_destroy(&retry->wake);
    pthread_mutex_destroy(&retry->lock);
}
