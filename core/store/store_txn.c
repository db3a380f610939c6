/* SPDX-License-Identifier: MIT */
/* store_txn.c - a change as a whole: its locks, its batch in the backend's queue, and
 * what its end makes of the documents in memory. */
#include "store_txn.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "disk.h"

/* ---- locks ---- */

static int txn_doc_order(const void *left, const void *right)
{
    const struct txn_doc *const *a = left;
    const struct txn_doc *const *b = right;
    return ((*a)->cached > (*b)->cached) - ((*a)->cached < (*b)->cached);
}

void txn_unlock(struct store_txn *txn)
{
    for (size_t i = 0; i < txn->count; i++) {
        if (txn->docs[i].locked) {
            lock_release(&txn->docs[i].cached->lock);
            txn->docs[i].locked = false;
        }
    }
}

/* All cached documents in one order for everybody, so that two changes of several documents
 * cannot block each other. */
int txn_lock(struct store_txn *txn)
{
    struct txn_doc *order[NG_CHANGES_MAX];
    for (size_t i = 0; i < txn->count; i++) {
        order[i] = &txn->docs[i];
    }
    if (txn->count > 1) {
        qsort(order, txn->count, sizeof(struct txn_doc *), txn_doc_order);
    }
    for (size_t i = 0; i < txn->count; i++) {
        if (i > 0 && order[i]->cached == order[i - 1]->cached) {
            return call_fail(txn->call, NG_EINTERNAL,
                             "one change names the same document twice");
        }
        if (!txn->call->may_block) {
            if (!lock_try(&order[i]->cached->lock)) {
                return NG_EWOULDBLOCK;
            }
        } else {
            lock_take(&order[i]->cached->lock);
        }
        order[i]->locked = true;
        order[i]->cached->read_now = false;
        order[i]->cached->doubted = false;
    }
    return NG_OK;
}

void txn_unref(struct store_txn *txn)
{
    if (atomic_fetch_sub_explicit(&txn->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < txn->count; i++) {
        txn_doc_reset(&txn->docs[i]);
        if (txn->docs[i].cached != NULL) {
            table_leave(&txn->store->table, txn->docs[i].cached);
        }
    }
    arena_done(&txn->arena);
    free(txn);
}

int txn_run(struct store_txn *txn)
{
    for (size_t i = 0; i < txn->count; i++) {
        txn_doc_reset(&txn->docs[i]);
    }
    for (size_t i = 0; i < txn->count; i++) {
        int rc = txn_doc_run(txn, &txn->docs[i]);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (txn->count > 0) {
        const struct txn_doc *first = &txn->docs[0];
        const struct version *now = first->next != NULL ? first->next : first->base;
        if (txn->done == NULL && txn->call->staged.revision_kind == REVISION_NONE) {
            txn->call->staged.revision_kind = REVISION_NUMBER;
            if (now->doc.deleted) {
                txn->call->staged.revision_number = 0;
            } else {
                txn->call->staged.revision_number = now->doc.revision;
            }
            txn->gave_revision = true;
        }
    }
    return NG_OK;
}

/* ---- queueing and the end ---- */

/* The next versions become the newest ones, unless the versions they depend on have failed
 * meanwhile.
 */
static bool txn_publish(struct store_txn *txn)
{
    struct store_table *table = &txn->store->table;
    bool good = true;
    lock_take(&table->lock);
    for (size_t i = 0; i < txn->count; i++) {
        const struct txn_doc *doc = &txn->docs[i];
        good =
            good && doc->cached->poisoned == 0 && version_same(doc->cached->newest, doc->base);
    }
    for (size_t i = 0; i < txn->count && good; i++) {
        struct txn_doc *doc = &txn->docs[i];
        if (doc->cached->queued++ == 0 && txn->store->shared) {
            store_retry_begins(doc->cached);
        }
        if (doc->next != NULL) {
            version_unref(doc->cached->newest);
            doc->cached->newest = version_ref(doc->next);
        }
    }
    lock_release(&table->lock);
    return good;
}

/* took_ns: of the commit that ended. */
static void cached_doc_drained(struct store *store, struct cached_doc *cached, int64_t took_ns)
{
    if (store->shared) {
        store_retry_ended(cached, took_ns);
    }
    if (cached->queued > 0) {
        return;
    }
    cached->poisoned = 0;
    version_unref(cached->newest);
    if (cached->committed == NULL) {
        cached->newest = NULL;
    } else {
        cached->newest = version_ref(cached->committed);
    }
    if (store->shared) {
        store_retry_wake(store, cached);
    }
}

static void txn_retract(struct store_txn *txn)
{
    struct store_table *table = &txn->store->table;
    lock_take(&table->lock);
    for (size_t i = 0; i < txn->count; i++) {
        struct txn_doc *doc = &txn->docs[i];
        doc->cached->queued--;
        if (doc->next != NULL) {
            version_unref(doc->cached->newest);
            doc->cached->newest = version_ref(doc->base);
        }
        cached_doc_drained(txn->store, doc->cached, 0);
    }
    lock_release(&table->lock);
}

static void txn_doc_committed(struct store_txn *txn, struct txn_doc *doc,
                              const struct ng_put *put)
{
    struct cached_doc *cached = doc->cached;
    bool creates = doc->base->doc.revision == 0 || doc->base->doc.deleted;
    /* Its base version was committed before it: commits end in order. */
    uint64_t created_seq =
        creates || cached->committed == NULL ? put->seq : cached->committed->doc.created_seq;
    struct version *form = version_commit(doc->next, put, created_seq);
    table_set_committed(&txn->store->table, cached, form);
    cached->seen_ns = clock_monotonic_ns();
    if (cached->newest == doc->next) {
        version_unref(cached->newest);
        cached->newest = version_ref(form);
    }
}

/* Returns the code of the first failure where the batch only failed because it was built on
 * that one, else rc. retry: it waits for its next turn from here on. */
static int txn_settle(struct store_txn *txn, int rc, bool retry)
{
    struct store *store = txn->store;
    int64_t took_ns = clock_monotonic_ns() - txn->queued_ns;
    struct cached_doc *cached_docs[NG_CHANGES_MAX];
    size_t count = txn->count;
    int first = rc;
    lock_take(&store->table.lock);
    for (size_t i = 0; i < count; i++) {
        struct txn_doc *doc = &txn->docs[i];
        struct cached_doc *cached = doc->cached;
        cached_docs[i] = cached;
        cached->queued--;
        if (rc == NG_OK) {
            cached->losses = 0;
        }
        if (rc == NG_OK && doc->next != NULL) {
            txn_doc_committed(txn, doc, &txn->puts[i]);
        } else if (rc != NG_OK && cached->poisoned == 0) {
            cached->poisoned = rc;
            if (rc == NG_ECONFLICT && i == txn->batch.failed_put) {
                store_retry_lost(cached);
            }
            if (rc == NG_ECONFLICT && doc->change->is_new) {
                table_set_committed(&store->table, cached, NULL); /* it was only assumed */
            }
        } else if (rc == NG_ECONFLICT) {
            first = store_poisoned_code(cached->poisoned);
        }
    }
    /* The next waiter continues after all of this. */
    struct cached_doc *owned = txn->owns;
    txn->owns = NULL;
    if (retry) {
        store_retry_enlist(txn, owned);
    }
    for (size_t i = 0; i < count; i++) {
        cached_doc_drained(store, cached_docs[i], took_ns);
    }
    if (owned != NULL) {
        owned->owner = NULL;
        store_retry_wake(store, owned); /* another thread may have it now */
    }
    lock_release(&store->table.lock);
    return first;
}

/* The changes noted in the call are made. Before the call goes on. */
static void txn_confirm(struct store_txn *txn)
{
    for (size_t i = 0; i < txn->count; i++) {
        struct call_change *noted = txn->docs[i].noted;
        if (noted != NULL) {
            noted->seq = txn->puts[i].seq;
            noted->is_stored = true;
        }
    }
}

static void txn_tell(struct store_txn *txn)
{
    struct store *store = txn->store;
    struct ng_event events[NG_CHANGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < txn->count; i++) {
        const struct ng_put *put = &txn->puts[i];
        if (put->quiet || txn->docs[i].next == NULL) {
            continue;
        }
        struct ng_event *event = &events[count++];
        memset(event, 0, sizeof(*event));
        event->size = sizeof(*event);
        event->seq = put->seq;
        event->time_ms = put->time_ms;
        event->key = put->key;
        event->revision = put->revision;
        event->agent = put->agent;
        event->tool = put->tool;
        event->action = put->action;
        event->data = put->event_data;
        event->origin = put->origin;
    }
    for (size_t i = 0; i < txn->count; i++) {
        store_saw(store, txn->puts[i].seq);
    }
    lock_take(&store->watch_lock);
    for (size_t i = 0; i < store->watcher_count && count > 0; i++) {
        const struct store_watcher *watcher = &store->watchers[i];
        size_t at = 0;
        while (watcher->collection != NULL && at < count &&
               !str_is(events[at].key.collection, watcher->collection)) {
            at++;
        }
        if (at < count) {
            watcher->watch(watcher->user, events, count);
        }
    }
    lock_release(&store->watch_lock);
}

void store_batch_ended(struct store *store)
{
    if (atomic_fetch_sub(&store->in_flight, 1) == 1) {
        lock_take(&store->idle_lock);
        pthread_cond_broadcast(&store->idle);
        lock_release(&store->idle_lock);
    }
}

/* Kept results do not show what a commit under way changes. */
static void txn_hides_results(struct store_txn *txn, bool begins)
{
    for (size_t i = 0; i < txn->count && !txn->store->shared; i++) {
        const struct ng_key *key = &txn->docs[i].change->key;
        if (begins) {
            results_change_begins(&txn->store->results, key);
        } else {
            results_change_ended(&txn->store->results, key);
        }
    }
}

/* On the committing thread: the batch is on disk, or has failed. */
static void txn_done(void *user, struct ng_batch *batch, int rc)
{
    struct store_txn *txn = user;
    struct store *store = txn->store;
    struct call *call = txn->call;
    store_done_fn *done = txn->done;
    void *done_user = txn->user;
    if (call->gateway != NULL && call->gateway->metrics != NULL) {
        metrics_commit(call->gateway->metrics, rc == NG_OK,
                       clock_monotonic_ns() - txn->queued_ns);
        if (disk_wants(call->gateway->disk, rc)) {
            disk_committed(call->gateway->disk, rc, batch->error);
        }
    }
    bool retry = false;
    int first = rc;
    if (store->shared) {
        /* Not while a change that is made of this one is on its way to the backend. */
        lock_take(&store->order);
        retry = store_retry_failed(txn, rc);
        first = txn_settle(txn, rc, retry);
        lock_release(&store->order);
    } else {
        first = txn_settle(txn, rc, false);
        txn_hides_results(txn, false);
    }
    if (retry) {
        store_batch_ended(store);
        return;
    }
    const char *sentence = batch->error[0] != '\0' ? batch->error : "the change was not stored";
    if (first != rc) {
        rc = first;
        sentence = "this change depends on a change that could not be stored; try again";
    }
    bool refused = rc == NG_OK && txn->refused != 0;
    if (refused) {
        rc = txn->refused;
        sentence = txn->refusal.data;
    }
    if (rc == NG_OK) {
        txn_confirm(txn);
        txn_tell(txn);
    } else if (done != NULL && refused) {
        /* The functions have failed the call. */
    } else if (done != NULL) {
        /* Nothing else uses the call until done() lets it go on. */
        call_fail(call, rc, "%s", sentence);
    } else {
        call_fail_later(call, rc, sentence);
    }
    txn_unref(txn);
    if (done != NULL) {
        done(done_user, rc);
    } else {
        call_complete(call);
    }
    store_batch_ended(store); /* last: what done() queues must not find the backend closed */
}

/* For the audit log. Before the commit is queued: once it ends, another thread may go on with
 * the call. */
static void txn_note(struct store_txn *txn)
{
    struct arena *arena = &txn->call->arena;
    bool failed = arena->failed;
    bool oom = arena->oom;
    for (size_t i = 0; i < txn->count; i++) {
        struct txn_doc *doc = &txn->docs[i];
        const struct ng_collection *collection =
            store_collection(txn->store, doc->change->key.collection);
        if (doc->next != NULL && collection != NULL &&
            (collection->flags & NG_COLLECTION_QUIET) == 0) {
            doc->noted = call_note_change(txn->call, &doc->change->key, doc->next->doc.revision,
                                          doc->next->doc.action);
        }
    }
    arena->failed = failed; /* an audit line that lacks it is no reason to refuse the change */
    arena->oom = oom;
}

static int txn_commit(struct store_txn *txn)
{
    struct call *call = txn->call;
    txn->queued_ns = clock_monotonic_ns();
    atomic_fetch_add(&txn->store->in_flight, 1);
    atomic_fetch_add(&txn->refs, 1);
    (void)atomic_fetch_add_explicit(&txn->store->round_trips, 1, memory_order_relaxed);
    txn_hides_results(txn, true);
    int rc = txn->store->backend->commit(txn->store->db, &txn->batch, txn_done, txn);
    if (rc != NG_OK) {
        txn_hides_results(txn, false);
        atomic_fetch_sub(&txn->refs, 1);
        store_batch_ended(txn->store);
        txn_retract(txn);
        return call_fail(call, rc, "%s",
                         txn->batch.error[0] != '\0'
                             ? txn->batch.error
                             : "too many changes wait to be written; try again in a moment");
    }
    return NG_OK;
}

int txn_queue(struct store_txn *txn, bool *ret_retry)
{
    struct store *store = txn->store;
    int rc = NG_OK;
    if (store->shared) {
        lock_take(&store->order);
    }
    *ret_retry = !txn_publish(txn);
    if (!*ret_retry) {
        if (call_notes_changes(txn->call->gateway)) {
            txn_note(txn);
        }
        rc = txn_commit(txn);
    }
    if (store->shared && rc == NG_OK && !*ret_retry) {
        /* Before the commit can end: if it fails, the change may wait for another document.
         * Where the last one was lost, it keeps its turn until it has come through: what is
         * built on it would be lost with it. */
        lock_take(&store->table.lock);
        if (txn->owns != NULL && txn->owns->losses == 0) {
            store_retry_disown(txn);
        }
        lock_release(&store->table.lock);
    }
    if (store->shared) {
        lock_release(&store->order);
    }
    return rc;
}

int txn_batch(struct store_txn *txn, const struct ng_answer *answer)
{
    txn->puts = arena_zalloc(&txn->arena, (txn->count + 1) * sizeof(*txn->puts));
    txn->put_list = arena_zalloc(&txn->arena, (txn->count + 1) * sizeof(*txn->put_list));
    if (txn->puts == NULL || txn->put_list == NULL) {
        return txn_no_memory(txn->call);
    }
    for (size_t i = 0; i < txn->count; i++) {
        if (txn_doc_put(txn, &txn->docs[i], &txn->puts[i]) != NG_OK) {
            return txn_no_memory(txn->call);
        }
        txn->put_list[i] = &txn->puts[i];
    }
    txn->batch.size = sizeof(txn->batch);
    txn->batch.puts = txn->put_list;
    txn->batch.put_count = txn->count;
    txn->batch.error[0] = '\0';
    txn->batch.failed_put = 0;
    txn->batch.answer = NULL;
    txn->batch.deadline_ns = 0;
    if (txn->done == NULL) { /* else what follows it must not be left half done */
        txn->batch.deadline_ns = txn->call->deadline_ns;
    }
    if (answer != NULL) {
        txn->answer = *answer;
        txn->batch.answer = &txn->answer;
    }
    return NG_OK;
}

/* Nothing changed, nothing queued before it, no answer to keep: then there is nothing to wait
 * for. */
bool txn_is_settled(struct store_txn *txn)
{
    bool settled = true;
    lock_take(&txn->store->table.lock);
    for (size_t i = 0; i < txn->count; i++) {
        settled = settled && txn->docs[i].next == NULL && txn->docs[i].cached->queued == 0;
    }
    lock_release(&txn->store->table.lock);
    return settled;
}

struct store_txn *txn_new(struct store *store, struct call *call,
                          const struct ng_change *changes, size_t count)
{
    struct store_txn *txn = alloc_zeroed(1, sizeof(*txn));
    if (txn == NULL) {
        return NULL;
    }
    txn->store = store;
    txn->call = call;
    txn->use = TXN_BUSY;
    atomic_init(&txn->refs, 1);
    arena_init(&txn->arena, 0);
    txn->arena.first = 1024;
    txn->docs = arena_zalloc(&txn->arena, (count + 1) * sizeof(*txn->docs));
    struct ng_change *copies = arena_zalloc(&txn->arena, (count + 1) * sizeof(*copies));
    if (txn->docs == NULL || copies == NULL) {
        txn_unref(txn);
        return NULL;
    }
    txn->count = count;
    for (size_t i = 0; i < count; i++) {
        txn->docs[i].change = &copies[i];
        copies[i] = changes[i];
        txn->docs[i].cached = table_use(&store->table, &changes[i].key);
        if (txn->docs[i].cached == NULL) {
            txn_unref(txn);
            return NULL;
        }
        copies[i].key = cached_doc_key(txn->docs[i].cached); /* outlives the caller's */
    }
    return txn;
}
