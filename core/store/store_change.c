/* SPDX-License-Identifier: MIT */
/*
 * store_change.c - writes: functions from the present document to the next, run under the
 * document's lock against the newest state, their results queued in the backend in the order of
 * the locks.
 */
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "idem.h"
#include "store_operation.h"

static int operation_load(struct operation *op)
{
    for (size_t i = 0; i < op->count; i++) {
        const struct ng_change *change = op->pieces[i].change;
        int rc = change->is_new && op->rounds == 0
                     ? store_assume_new(op->store, op->call, op->pieces[i].entry)
                     : NG_OK;
        rc = rc != NG_OK ? rc
                         : store_load(op->store, op->call, op->pieces[i].entry, &change->key);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

void staged_keep(struct staged *staged, const struct call *call)
{
    staged->work = call->work;
    staged->writer = call->reply_writer;
    staged->reply_len = call->reply_buf.len;
    staged->reply_open = call->reply_open;
}

void staged_restore(const struct staged *staged, struct call *call)
{
    call_reset_result(call);
    call->work = staged->work;
    if (call->work.last_part != NULL) {
        call->work.last_part->next = NULL;
    }
    if (staged->reply_open) {
        call->reply_writer = staged->writer;
        call->reply_buf.len = staged->reply_len;
        call->reply_open = true;
    }
}

static void reply_mark_take(struct reply_mark *mark, const struct call *call)
{
    mark->text = call->work.text.data;
    mark->last_part = call->work.last_part;
    mark->reply_len = call->reply_buf.len;
    mark->reply_open = call->reply_open;
}

static bool reply_mark_same(const struct reply_mark *a, const struct reply_mark *b)
{
    return a->text == b->text && a->last_part == b->last_part && a->reply_len == b->reply_len &&
           a->reply_open == b->reply_open;
}

void operation_take_back(struct operation *op)
{
    struct call *call = op->call;
    struct reply_mark now;
    reply_mark_take(&now, call);
    if (!reply_mark_same(&op->first, &op->last) && reply_mark_same(&op->last, &now)) {
        staged_restore(&op->before, call);
    } else if (op->gave_revision) {
        call->work.revision_kind = REVISION_NONE;
    }
    op->gave_revision = false;
}

/* The answer of the call's idempotency key, made of what was replied. */
static int operation_answer(struct operation *op, struct ng_answer *made,
                            const struct ng_answer **ret)
{
    struct call *call = op->call;
    bool stores = op->own_answer && call->idem != NULL && call->after_rc == NG_OK &&
                  (!call->idem_stored || op->stores);
    int rc = stores ? idem_answer(call, made) : NG_OK;
    *ret = stores ? made : op->given;
    return rc;
}

static int operation_into_queue(struct operation *op, const struct ng_answer *answer,
                                bool *ret_retry)
{
    struct call *call = op->call;
    int rc = operation_batch(op, answer);
    if (rc != NG_OK) {
        return rc;
    }
    bool stores = op->own_answer && answer != NULL;
    op->stores = op->stores || stores;
    call->idem_stored = call->idem_stored || stores; /* before the commit's end may look */
    return operation_queue(op, ret_retry);
}

/* What memory says is true: of a shared store only if it was read just now, or is what this
 * process is writing. */
static bool operation_saw_newest(struct operation *op)
{
    bool newest = true;
    struct store_table *table = &op->store->table;
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < op->count && op->store->shared; i++) {
        struct entry *entry = op->pieces[i].entry;
        if (entry->queued == 0 && !entry->read_now) {
            entry->stale = true;
            newest = false;
        }
    }
    pthread_mutex_unlock(&table->lock);
    return newest;
}

/* One round of functions and queueing. *ret_over: no further one. */
static int operation_round(struct operation *op, bool *ret_settled, bool *ret_over)
{
    const struct ng_answer *answer = NULL;
    struct ng_answer made;
    int rc = operation_load(op);
    if (rc != NG_OK) {
        return rc;
    }
    rc = operation_run(op);
    if (rc == NG_OK) {
        rc = operation_answer(op, &made, &answer);
    }
    reply_mark_take(&op->last, op->call);
    bool settled = rc == NG_OK && operation_is_settled(op, answer);
    if ((settled || (rc != NG_OK && rc != NG_PENDING)) && !operation_saw_newest(op)) {
        *ret_over = false; /* it may be otherwise by now */
        return NG_OK;
    }
    if (settled || rc != NG_OK) {
        *ret_settled = settled;
        return rc;
    }
    bool retry = false;
    rc = operation_into_queue(op, answer, &retry);
    *ret_over = !retry;
    return rc;
}

int operation_attempt(struct operation *op, bool *ret_settled)
{
    struct call *call = op->call;
    int rc = operation_lock(op);
    if (rc == NG_OK && op->store->shared) {
        rc = store_retry_admit(op);
    }
    staged_keep(&op->before, call);
    reply_mark_take(&op->first, call);
    op->last = op->first;
    bool over = false;
    for (int attempt = 0; rc == NG_OK && !over && attempt < STORE_ATTEMPTS_MAX; attempt++) {
        if (attempt > 0) {
            staged_restore(&op->before, call);
        }
        over = true;
        rc = operation_round(op, ret_settled, &over);
    }
    if (rc < 0 && op->stores) {
        call->idem_stored = false; /* a later try of the tool keeps it */
        op->stores = false;
    }
    return rc != NG_OK || over
               ? rc
               : call_fail(call, NG_EUNAVAILABLE,
                           "the changes before this one keep failing; try again");
}

/* The first attempt, on the caller's thread. NG_PENDING: it goes on by itself. */
static int operation_start(struct operation *op, bool *ret_settled)
{
    int rc = operation_attempt(op, ret_settled);
    operation_unlock(op);
    if (rc == NG_PENDING) {
        store_retry_park(op);
    } else {
        store_retry_let_go(op);
    }
    if (rc == NG_OK && !*ret_settled) {
        rc = NG_PENDING;
    }
    operation_unref(op);
    return rc;
}

static int store_start(struct store *store, struct call *call, const struct ng_change *changes,
                       size_t count, struct operation **ret)
{
    if (count > NG_CHANGES_MAX) {
        return call_fail(call, NG_EINTERNAL,
                         "one change touches %zu documents, at most %d can be", count,
                         NG_CHANGES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        int rc = store_check_key(store, call, &changes[i].key);
        if (rc != NG_OK) {
            return rc;
        }
    }
    *ret = operation_new(store, call, changes, count);
    return *ret == NULL ? operation_no_memory(call) : NG_OK;
}

int store_change(struct store *store, struct call *call, const struct ng_change *changes,
                 size_t count)
{
    struct operation *op = NULL;
    int rc = store_start(store, call, changes, count, &op);
    if (rc != NG_OK) {
        return rc;
    }
    bool settled = false;
    op->own_answer = true;
    call_hold(call); /* before the commit can end */
    rc = operation_start(op, &settled);
    if (rc == NG_PENDING) {
        call->held = true; /* the run has not ended, nor has the call then */
        return NG_PENDING;
    }
    atomic_fetch_sub(&call->pending, 1);
    return rc;
}

/* waited: by this thread, in the call's own run. */
static int store_write_as(struct operation *op, const struct ng_answer *answer, bool waited,
                          store_done_fn *done, void *user)
{
    bool settled = false;
    op->done = done;
    op->user = user;
    if (answer != NULL) {
        op->answer = *answer;
        op->given = &op->answer;
    }
    op->waited = waited;
    int rc = operation_start(op, &settled);
    if (rc == NG_OK) {
        done(user, NG_OK);
    }
    return rc == NG_PENDING ? NG_OK : rc;
}

int store_write_answered(struct store *store, struct call *call,
                         const struct ng_change *changes, size_t count,
                         const struct ng_answer *answer, store_done_fn *done, void *user)
{
    struct operation *op = NULL;
    int rc = store_start(store, call, changes, count, &op);
    return rc != NG_OK ? rc : store_write_as(op, answer, false, done, user);
}

int store_write(struct store *store, struct call *call, const struct ng_change *changes,
                size_t count, store_done_fn *done, void *user)
{
    return store_write_answered(store, call, changes, count, NULL, done, user);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int rc;
};

static void waiter_done(void *user, int rc)
{
    struct waiter *waiter = user;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->rc = rc;
    pthread_cond_signal(&waiter->wake);
    pthread_mutex_unlock(&waiter->lock);
}

int store_write_answered_wait(struct store *store, struct call *call,
                              const struct ng_change *changes, size_t count,
                              const struct ng_answer *answer)
{
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NG_OK};
    struct operation *op = NULL;
    int rc = store_start(store, call, changes, count, &op);
    if (rc == NG_OK) {
        rc = store_write_as(op, answer, true, waiter_done, &waiter);
    }
    if (rc != NG_OK) {
        return rc;
    }
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done) {
        pthread_cond_wait(&waiter.wake, &waiter.lock);
    }
    pthread_mutex_unlock(&waiter.lock);
    pthread_mutex_destroy(&waiter.lock);
    pthread_cond_destroy(&waiter.wake);
    return waiter.rc;
}

int store_write_wait(struct store *store, struct call *call, const struct ng_change *changes,
                     size_t count)
{
    return store_write_answered_wait(store, call, changes, count, NULL);
}
