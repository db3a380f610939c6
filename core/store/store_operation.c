/* SPDX-License-Identifier: MIT */
/* store_operation.c - a change as a whole: its locks, its batch in the backend's queue, and
 * what its end makes of the documents in memory. */
#include "store_operation.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit.h"
#include "disk.h"

/* ---- locks ---- */

static int piece_order(const void *left, const void *right)
{
    const struct piece *const *a = left;
    const struct piece *const *b = right;
    return ((*a)->entry > (*b)->entry) - ((*a)->entry < (*b)->entry);
}

void operation_unlock(struct operation *op)
{
    for (size_t i = 0; i < op->count; i++) {
        if (op->pieces[i].locked) {
            pthread_mutex_unlock(&op->pieces[i].entry->lock);
            op->pieces[i].locked = false;
        }
    }
}

/* All entries in one order for everybody, so that two changes of several documents cannot block
 * each other. */
int operation_lock(struct operation *op)
{
    struct piece *order[NG_CHANGES_MAX];
    for (size_t i = 0; i < op->count; i++) {
        order[i] = &op->pieces[i];
    }
    qsort(order, op->count, sizeof(struct piece *), piece_order);
    for (size_t i = 0; i < op->count; i++) {
        if (i > 0 && order[i]->entry == order[i - 1]->entry) {
            return call_fail(op->call, NG_EINTERNAL,
                             "one change names the same document twice");
        }
        if (!op->call->may_block) {
            if (pthread_mutex_trylock(&order[i]->entry->lock) != 0) {
                return NG_EWOULDBLOCK;
            }
        } else {
            pthread_mutex_lock(&order[i]->entry->lock);
        }
        order[i]->locked = true;
        order[i]->entry->read_now = false;
    }
    return NG_OK;
}

void operation_unref(struct operation *op)
{
    if (atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < op->count; i++) {
        piece_reset(&op->pieces[i]);
        if (op->pieces[i].entry != NULL) {
            table_leave(&op->store->table, op->pieces[i].entry);
        }
    }
    arena_done(&op->arena);
    free(op);
}

int operation_run(struct operation *op)
{
    for (size_t i = 0; i < op->count; i++) {
        piece_reset(&op->pieces[i]);
    }
    for (size_t i = 0; i < op->count; i++) {
        int rc = piece_run(op, &op->pieces[i]);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (op->count > 0) {
        const struct piece *first = &op->pieces[0];
        const struct version *now = first->next != NULL ? first->next : first->base;
        if (op->done == NULL && op->call->work.revision_kind == REVISION_NONE) {
            op->call->work.revision_kind = REVISION_NUMBER;
            op->call->work.revision_number = now->doc.deleted ? 0 : now->doc.revision;
            op->gave_revision = true;
        }
    }
    return NG_OK;
}

/* ---- queueing and the end ---- */

/* The next versions become the newest ones, unless what they were made of has failed meanwhile.
 */
static bool operation_publish(struct operation *op)
{
    struct store_table *table = &op->store->table;
    bool good = true;
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < op->count; i++) {
        const struct piece *piece = &op->pieces[i];
        good = good && piece->entry->failing == 0 &&
               version_same(piece->entry->newest, piece->base);
    }
    for (size_t i = 0; i < op->count && good; i++) {
        struct piece *piece = &op->pieces[i];
        if (piece->entry->queued++ == 0 && op->store->shared) {
            piece->entry->chain_ns = clock_monotonic_ns();
        }
        if (piece->next != NULL) {
            version_unref(piece->entry->newest);
            piece->entry->newest = version_ref(piece->next);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return good;
}

/* took_ns: of the commit that ended. */
static void entry_drained(struct store *store, struct entry *entry, int64_t took_ns)
{
    if (store->shared) {
        store_retry_ended(entry, took_ns);
    }
    if (entry->queued > 0) {
        return;
    }
    entry->failing = 0;
    version_unref(entry->newest);
    entry->newest = entry->committed == NULL ? NULL : version_ref(entry->committed);
    if (store->shared) {
        store_retry_wake(store, entry);
    }
}

static void operation_retract(struct operation *op)
{
    struct store_table *table = &op->store->table;
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < op->count; i++) {
        struct piece *piece = &op->pieces[i];
        piece->entry->queued--;
        if (piece->next != NULL) {
            version_unref(piece->entry->newest);
            piece->entry->newest = version_ref(piece->base);
        }
        entry_drained(op->store, piece->entry, 0);
    }
    pthread_mutex_unlock(&table->lock);
}

static void piece_committed(struct operation *op, struct piece *piece, uint64_t seq)
{
    struct entry *entry = piece->entry;
    bool creates = piece->base->doc.revision == 0 || piece->base->doc.deleted;
    /* What it was made of was committed before it, in this order. */
    uint64_t created_seq =
        creates || entry->committed == NULL ? seq : entry->committed->doc.created_seq;
    struct version *form = version_commit(piece->next, seq, created_seq);
    table_set_committed(&op->store->table, entry, form);
    entry->seen_ns = clock_monotonic_ns();
    if (entry->newest == piece->next) {
        version_unref(entry->newest);
        entry->newest = version_ref(form);
    }
}

/* Returns the code of the first failure where the batch only failed because it was built on
 * that one, else rc. retry: it waits for its next turn from here on. */
static int operation_settle(struct operation *op, int rc, bool retry)
{
    struct store *store = op->store;
    int64_t took_ns = clock_monotonic_ns() - op->queued_ns;
    struct entry *entries[NG_CHANGES_MAX];
    size_t count = op->count;
    int first = rc;
    pthread_mutex_lock(&store->table.lock);
    for (size_t i = 0; i < count; i++) {
        struct piece *piece = &op->pieces[i];
        struct entry *entry = piece->entry;
        entries[i] = entry;
        entry->queued--;
        if (rc == NG_OK && piece->next != NULL) {
            piece_committed(op, piece, op->puts[i].seq);
        } else if (rc != NG_OK && entry->failing == 0) {
            entry->failing = rc;
            if (rc == NG_ECONFLICT && piece->change->is_new) {
                table_set_committed(&store->table, entry, NULL); /* it was only assumed */
            }
        } else if (rc == NG_ECONFLICT) {
            first = store_failing_code(entry->failing);
        }
    }
    if (retry) {
        store_retry_enlist(op); /* another thread may have it now */
    }
    for (size_t i = 0; i < count; i++) {
        entry_drained(store, entries[i], took_ns);
    }
    pthread_mutex_unlock(&store->table.lock);
    return first;
}

static void operation_tell(struct operation *op)
{
    struct store *store = op->store;
    struct ng_event events[NG_CHANGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < op->count; i++) {
        const struct ng_put *put = &op->puts[i];
        if (put->quiet || op->pieces[i].next == NULL) {
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
    }
    for (size_t i = 0; i < op->count; i++) {
        store_saw_seq(store, op->puts[i].seq);
    }
    pthread_mutex_lock(&store->watch_lock);
    for (size_t i = 0; i < store->watcher_count && count > 0; i++) {
        store->watchers[i].watch(store->watchers[i].user, events, count);
    }
    pthread_mutex_unlock(&store->watch_lock);
}

void store_batch_ended(struct store *store)
{
    if (atomic_fetch_sub(&store->in_flight, 1) == 1) {
        pthread_mutex_lock(&store->idle_lock);
        pthread_cond_broadcast(&store->idle);
        pthread_mutex_unlock(&store->idle_lock);
    }
}

/* On the committing thread: the batch is on disk, or has failed. */
static void operation_done(void *user, struct ng_batch *batch, int rc)
{
    struct operation *op = user;
    struct store *store = op->store;
    struct call *call = op->call;
    store_done_fn *done = op->done;
    void *done_user = op->user;
    if (call->gateway != NULL && call->gateway->metrics != NULL) {
        metrics_commit(call->gateway->metrics, rc == NG_OK,
                       clock_monotonic_ns() - op->queued_ns);
        disk_committed(call->gateway->disk, rc, batch->error);
    }
    bool retry = false;
    int first = rc;
    if (store->shared) {
        /* Not while a change that is made of this one is on its way to the backend. */
        pthread_mutex_lock(&store->order);
        retry = store_retry_failed(op, rc);
        first = operation_settle(op, rc, retry);
        pthread_mutex_unlock(&store->order);
    } else {
        first = operation_settle(op, rc, false);
    }
    if (retry) {
        store_batch_ended(store);
        return;
    }
    const char *sentence = batch->error[0] != '\0' ? batch->error : "the change was not stored";
    if (first != rc) {
        rc = first;
        sentence = "a change that this one was made on could not be stored; try again";
    }
    if (rc == NG_OK) {
        operation_tell(op);
    } else if (done != NULL) {
        /* Nothing else uses the call until done() lets it go on. */
        call_fail(call, rc, "%s", sentence);
    } else {
        call_fail_later(call, rc, sentence);
    }
    operation_unref(op);
    if (done != NULL) {
        done(done_user, rc);
    } else {
        call_release(call);
    }
    store_batch_ended(store); /* last: what done() queues must not find the backend closed */
}

/* For the audit log. Before the commit is queued: once it ends, another thread may go on with
 * the call. */
static void operation_note(struct operation *op)
{
    struct arena *arena = &op->call->arena;
    bool failed = arena->failed;
    bool starved = arena->starved;
    for (size_t i = 0; i < op->count; i++) {
        const struct piece *piece = &op->pieces[i];
        const struct ng_collection *collection =
            store_collection(op->store, piece->change->key.collection);
        if (piece->next != NULL && collection != NULL &&
            (collection->flags & NG_COLLECTION_QUIET) == 0) {
            audit_note(op->call, piece->change->key.collection, piece->change->key.id,
                       piece->next->doc.revision);
        }
    }
    arena->failed = failed; /* an audit line that lacks it is no reason to refuse the change */
    arena->starved = starved;
}

static int operation_commit(struct operation *op)
{
    struct call *call = op->call;
    op->queued_ns = clock_monotonic_ns();
    atomic_fetch_add(&op->store->in_flight, 1);
    atomic_fetch_add(&op->refs, 1);
    (void)atomic_fetch_add_explicit(&op->store->round_trips, 1, memory_order_relaxed);
    int rc = op->store->backend->commit(op->store->db, &op->batch, operation_done, op);
    if (rc != NG_OK) {
        atomic_fetch_sub(&op->refs, 1);
        store_batch_ended(op->store);
        operation_retract(op);
        return call_fail(call, rc, "%s",
                         op->batch.error[0] != '\0'
                             ? op->batch.error
                             : "too many changes wait to be written; try again in a moment");
    }
    return NG_OK;
}

int operation_queue(struct operation *op, bool *ret_retry)
{
    struct store *store = op->store;
    int rc = NG_OK;
    if (store->shared) {
        pthread_mutex_lock(&store->order);
    }
    *ret_retry = !operation_publish(op);
    if (!*ret_retry) {
        operation_note(op);
        rc = operation_commit(op);
    }
    if (store->shared) {
        pthread_mutex_unlock(&store->order);
    }
    return rc;
}

int operation_batch(struct operation *op, const struct ng_answer *answer)
{
    op->puts = arena_zalloc(&op->arena, (op->count + 1) * sizeof(*op->puts));
    op->put_list = arena_zalloc(&op->arena, (op->count + 1) * sizeof(*op->put_list));
    if (op->puts == NULL || op->put_list == NULL) {
        return operation_no_memory(op->call);
    }
    for (size_t i = 0; i < op->count; i++) {
        if (piece_put(op, &op->pieces[i], &op->puts[i]) != NG_OK) {
            return operation_no_memory(op->call);
        }
        op->put_list[i] = &op->puts[i];
    }
    op->batch.size = sizeof(op->batch);
    op->batch.puts = op->put_list;
    op->batch.put_count = op->count;
    op->batch.error[0] = '\0';
    op->batch.failed_put = 0;
    op->batch.answer = NULL;
    if (answer != NULL) {
        op->answer = *answer;
        op->batch.answer = &op->answer;
    }
    return NG_OK;
}

/* Nothing changed, nothing queued before it, no answer to keep: then there is nothing to wait
 * for. */
bool operation_is_settled(struct operation *op, const struct ng_answer *answer)
{
    bool settled = answer == NULL;
    pthread_mutex_lock(&op->store->table.lock);
    for (size_t i = 0; i < op->count; i++) {
        settled = settled && op->pieces[i].next == NULL && op->pieces[i].entry->queued == 0;
    }
    pthread_mutex_unlock(&op->store->table.lock);
    return settled;
}

struct operation *operation_new(struct store *store, struct call *call,
                                const struct ng_change *changes, size_t count)
{
    struct operation *op = alloc_zeroed(1, sizeof(*op));
    if (op == NULL) {
        return NULL;
    }
    op->store = store;
    op->call = call;
    op->held = true;
    atomic_init(&op->refs, 1);
    arena_init(&op->arena, 0);
    op->arena.first = 1024;
    op->pieces = arena_zalloc(&op->arena, (count + 1) * sizeof(*op->pieces));
    struct ng_change *copies = arena_zalloc(&op->arena, (count + 1) * sizeof(*copies));
    if (op->pieces == NULL || copies == NULL) {
        operation_unref(op);
        return NULL;
    }
    op->count = count;
    for (size_t i = 0; i < count; i++) {
        op->pieces[i].change = &copies[i];
        copies[i] = changes[i];
        op->pieces[i].entry = table_use(&store->table, &changes[i].key);
        if (op->pieces[i].entry == NULL) {
            operation_unref(op);
            return NULL;
        }
        copies[i].key = entry_key(op->pieces[i].entry); /* outlives the caller's */
    }
    return op;
}
