/* SPDX-License-Identifier: MIT */
/*
 * store_change.c - writes: functions from the present document to the next, run under the
 * document's lock against the newest state, their results queued in the backend in the order of
 * the locks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "audit.h"
#include "clock.h"
#include "gateway.h"
#include "idem.h"
#include "store_types.h"
#include "str.h"

/* A change function is run again where the state it saw failed to reach the disk meanwhile. */
#define STORE_ATTEMPTS_MAX 8

/* One document of an operation. */
struct piece {
    const struct ng_change *change;
    struct entry *entry;
    struct version *base; /* what the function saw; a reference */
    struct version *next; /* what it made; a reference, NULL: no change */
    struct ng_draft draft;
    bool locked;
};

/* A write from its functions to the end of its commit. The memory outlives the call's run. */
struct operation {
    struct store *store;
    struct call *call;
    struct ng_batch batch;
    struct ng_answer answer;
    struct arena arena; /* puts, fields, pieces */
    struct piece *pieces;
    struct ng_put *puts;
    size_t count;
    atomic_int refs; /* who started it and who commits it; the locks are the starter's */
    int64_t queued_ns;
    store_done_fn *done;
    void *user;
};

static int no_memory(struct call *call)
{
    return call_fail(call, NG_EINTERNAL, "out of memory while a change was made");
}

/* ---- the next version and its put ---- */

static int put_fields(struct operation *op, const struct ng_collection *collection,
                      const struct version *next, struct ng_put *put)
{
    put->fields = NULL;
    put->field_count = 0;
    return next->doc.deleted ? NG_OK
                             : store_fields(&op->arena, collection, next->doc.body,
                                            &put->fields, &put->field_count);
}

static const char *change_action(const struct piece *piece)
{
    if (piece->change->action != NULL) {
        return piece->change->action;
    }
    if (piece->draft.deleted) {
        return "deleted";
    }
    bool is_new = piece->base->doc.revision == 0 || piece->base->doc.deleted;
    return is_new ? "created" : "updated";
}

static struct version *piece_version(struct operation *op, struct piece *piece, int *rc)
{
    struct ng_draft *draft = &piece->draft;
    const struct entry *entry = piece->entry;
    struct blob *json =
        draft->json != NULL ? blob_ref(draft->json) : blob_ref(piece->base->json);
    struct blob *text =
        draft->text != NULL ? blob_ref(draft->text) : blob_ref(piece->base->text);
    if (draft->deleted) {
        blob_unref(json);
        blob_unref(text);
        json = blob_of(ng_str_of("{}"));
        text = blob_of(ng_str_of(""));
    }
    struct version *next = NULL;
    *rc = NG_EINTERNAL;
    if (json != NULL && text != NULL) {
        next = version_new(entry->key, entry->collection_len, entry->space_len, json, text, rc);
    }
    blob_unref(json);
    blob_unref(text);
    if (next == NULL) {
        return NULL;
    }
    const struct ng_doc *base = &piece->base->doc;
    bool creates = base->revision == 0 || base->deleted;
    next->doc.revision = base->revision + 1;
    next->doc.deleted = draft->deleted;
    next->doc.updated_ms = clock_unix_ms();
    next->doc.created_ms = creates ? next->doc.updated_ms : base->created_ms;
    next->doc.created_seq =
        creates ? 0 : base->created_seq; /* 0 as well: of one that is queued */
    *rc = version_name(next, op->call->caller.agent, ng_str_of(change_action(piece)));
    if (*rc == NG_OK) {
        *rc = version_reserve(next);
    }
    if (*rc != NG_OK) {
        version_unref(next);
        return NULL;
    }
    return next;
}

static int piece_put(struct operation *op, struct piece *piece, struct ng_put *put)
{
    const struct version *base = piece->base;
    const struct version *next = piece->next != NULL ? piece->next : base;
    const struct ng_collection *collection =
        store_collection(op->store, next->doc.key.collection);
    put->size = sizeof(*put);
    put->key = next->doc.key;
    put->base_revision = base->doc.revision;
    put->revision = next->doc.revision;
    if (piece->next == NULL) {
        return NG_OK;
    }
    bool creates = base->doc.revision == 0 || base->doc.deleted;
    put->deleted = next->doc.deleted;
    put->quiet = (collection->flags & NG_COLLECTION_QUIET) != 0;
    put->no_history = (collection->flags & NG_COLLECTION_NO_HISTORY) != 0;
    put->json = next->doc.json;
    put->text = next->doc.text;
    /* The form of a body that is not there is "": nothing to splice from. */
    struct ng_str from_json = creates ? str_make("", 0) : base->doc.json;
    struct ng_str from_text = creates ? str_make("", 0) : base->doc.text;
    put->json_splice = splice_between(from_json, put->json);
    if (piece->draft.spliced && !creates && !next->doc.deleted) {
        put->text_splice = piece->draft.splice;
    } else if (next->text == base->text) {
        put->text_splice.at = from_text.len;
    } else {
        put->text_splice = splice_between(from_text, put->text);
    }
    put->time_ms = next->doc.updated_ms;
    put->created_ms = next->doc.created_ms;
    put->created_seq = creates ? 0 : NG_SEQ_KEEP;
    put->agent = next->doc.author;
    put->tool = op->call->pub.tool;
    put->action = next->doc.action;
    put->event_data = piece->draft.event_data;
    return put_fields(op, collection, next, put);
}

/* ---- locks ---- */

static int piece_order(const void *left, const void *right)
{
    const struct piece *const *a = left;
    const struct piece *const *b = right;
    return ((*a)->entry > (*b)->entry) - ((*a)->entry < (*b)->entry);
}

static void operation_unlock(struct operation *op)
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
static int operation_lock(struct operation *op)
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
    }
    return NG_OK;
}

static void piece_reset(struct piece *piece)
{
    draft_done(&piece->draft);
    memset(&piece->draft, 0, sizeof(piece->draft));
    version_unref(piece->next);
    version_unref(piece->base);
    piece->next = NULL;
    piece->base = NULL;
}

static void operation_unref(struct operation *op)
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

/* ---- running the functions ---- */

/* What a change says that came behind a failed one: a conflict or a used key is the other
 * call's affair, that nothing can be written is everybody's. */
static int failing_code(int failing)
{
    return failing == NG_EFULL ? NG_EFULL : NG_EUNAVAILABLE;
}

static int piece_take_base(struct operation *op, struct piece *piece)
{
    struct store_table *table = &op->store->table;
    pthread_mutex_lock(&table->lock);
    int failing = piece->entry->failing;
    struct version *base = piece->entry->newest;
    piece->base = base == NULL ? NULL : version_ref(base);
    pthread_mutex_unlock(&table->lock);
    if (failing != 0) {
        return call_fail(
            op->call, failing_code(failing),
            "a change of this document that is being written has failed; try again");
    }
    return piece->base != NULL ? NG_OK : NG_EINTERNAL;
}

static int piece_conflict(struct operation *op, const struct piece *piece, uint64_t present)
{
    call_fail(op->call, NG_ECONFLICT, "revision %llu was expected, it is at revision %llu now",
              (unsigned long long)piece->change->expected_revision,
              (unsigned long long)present);
    op->call->work.hint =
        ng_str_of("Read it again and repeat the change on what is there now.");
    struct ng_writer *writer = call_host.details(&op->call->pub);
    json_object(writer);
    json_name(writer, "currentRevision");
    json_int(writer, (int64_t)present);
    json_end(writer);
    return NG_ECONFLICT;
}

static int piece_run(struct operation *op, struct piece *piece)
{
    int rc = piece_take_base(op, piece);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_doc *present = &piece->base->doc;
    if (piece->change->has_expected) {
        uint64_t revision = present->deleted ? 0 : present->revision;
        if (piece->change->expected_revision != revision) {
            return piece_conflict(op, piece, revision);
        }
    }
    piece->draft.call = op->call;
    piece->draft.base = piece->base;
    piece->draft.base_json = present->json;
    piece->draft.base_text = present->text;
    rc = piece->change->fn(&op->call->pub, present, &piece->draft, piece->change->user);
    if (rc != NG_OK) {
        return rc < 0 ? rc
                      : call_fail(op->call, NG_EINTERNAL, "a change function returned %d", rc);
    }
    if (piece->draft.rc != NG_OK) {
        return no_memory(op->call);
    }
    if (!draft_touched(&piece->draft) ||
        (piece->draft.deleted && (present->revision == 0 || present->deleted))) {
        return NG_OK;
    }
    piece->next = piece_version(op, piece, &rc);
    if (piece->next == NULL && rc != NG_EJSON) {
        return no_memory(op->call);
    }
    if (piece->next == NULL) {
        return call_fail(op->call, NG_EINTERNAL,
                         "`%.*s` made a document that is not a JSON object",
                         (int)op->call->pub.tool.len, op->call->pub.tool.data);
    }
    return NG_OK;
}

static int operation_run(struct operation *op)
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
        piece->entry->queued++;
        if (piece->next != NULL) {
            version_unref(piece->entry->newest);
            piece->entry->newest = version_ref(piece->next);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return good;
}

static void entry_drained(struct entry *entry)
{
    if (entry->queued > 0) {
        return;
    }
    entry->failing = 0;
    version_unref(entry->newest);
    entry->newest = entry->committed == NULL ? NULL : version_ref(entry->committed);
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
        entry_drained(piece->entry);
    }
    pthread_mutex_unlock(&table->lock);
}

/* Returns the code of the first failure where the batch only failed because it was built on
 * that one, else rc. */
static int operation_settle(struct operation *op, int rc)
{
    struct store_table *table = &op->store->table;
    int first = rc;
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < op->count; i++) {
        struct piece *piece = &op->pieces[i];
        struct entry *entry = piece->entry;
        entry->queued--;
        if (rc == NG_OK && piece->next != NULL) {
            bool creates = piece->base->doc.revision == 0 || piece->base->doc.deleted;
            uint64_t seq = op->puts[i].seq;
            /* What it was made of was committed before it, in this order. */
            uint64_t created_seq =
                creates || entry->committed == NULL ? seq : entry->committed->doc.created_seq;
            struct version *form = version_commit(piece->next, seq, created_seq);
            table_set_committed(table, entry, form);
            if (entry->newest == piece->next) {
                version_unref(entry->newest);
                entry->newest = version_ref(form);
            }
        } else if (rc != NG_OK && entry->failing == 0) {
            entry->failing = rc;
        } else if (rc == NG_ECONFLICT) {
            first = failing_code(entry->failing);
        }
        entry_drained(entry);
    }
    pthread_mutex_unlock(&table->lock);
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
        if (op->puts[i].seq > atomic_load(&store->last_seq)) {
            atomic_store(&store->last_seq, op->puts[i].seq);
        }
    }
    pthread_mutex_lock(&store->watch_lock);
    for (size_t i = 0; i < store->watcher_count && count > 0; i++) {
        store->watchers[i].watch(store->watchers[i].user, events, count);
    }
    pthread_mutex_unlock(&store->watch_lock);
}

static void store_batch_ended(struct store *store)
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
    }
    int first = operation_settle(op, rc);
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
}

static int operation_commit(struct operation *op)
{
    struct call *call = op->call;
    op->queued_ns = clock_monotonic_ns();
    atomic_fetch_add(&op->store->in_flight, 1);
    atomic_fetch_add(&op->refs, 1);
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

static int operation_batch(struct operation *op, const struct ng_answer *answer)
{
    op->puts = arena_zalloc(&op->arena, (op->count + 1) * sizeof(*op->puts));
    if (op->puts == NULL) {
        return no_memory(op->call);
    }
    for (size_t i = 0; i < op->count; i++) {
        if (piece_put(op, &op->pieces[i], &op->puts[i]) != NG_OK) {
            return no_memory(op->call);
        }
    }
    op->batch.size = sizeof(op->batch);
    op->batch.puts = op->puts;
    op->batch.put_count = op->count;
    if (answer != NULL) {
        op->answer = *answer;
        op->batch.answer = &op->answer;
    }
    return NG_OK;
}

/* Nothing changed, nothing queued before it, no answer to keep: then there is nothing to wait
 * for. */
static bool operation_is_settled(struct operation *op, const struct ng_answer *answer)
{
    bool settled = answer == NULL;
    pthread_mutex_lock(&op->store->table.lock);
    for (size_t i = 0; i < op->count; i++) {
        settled = settled && op->pieces[i].next == NULL && op->pieces[i].entry->queued == 0;
    }
    pthread_mutex_unlock(&op->store->table.lock);
    return settled;
}

static struct operation *operation_new(struct store *store, struct call *call,
                                       const struct ng_change *changes, size_t count)
{
    struct operation *op = alloc_zeroed(1, sizeof(*op));
    if (op == NULL) {
        return NULL;
    }
    op->store = store;
    op->call = call;
    atomic_init(&op->refs, 1);
    arena_init(&op->arena, 0);
    op->arena.first = 1024;
    op->pieces = arena_zalloc(&op->arena, (count + 1) * sizeof(*op->pieces));
    if (op->pieces == NULL) {
        operation_unref(op);
        return NULL;
    }
    op->count = count;
    for (size_t i = 0; i < count; i++) {
        op->pieces[i].change = &changes[i];
        op->pieces[i].entry = table_use(&store->table, &changes[i].key);
        if (op->pieces[i].entry == NULL) {
            operation_unref(op);
            return NULL;
        }
    }
    return op;
}

static int operation_load(struct operation *op)
{
    for (size_t i = 0; i < op->count; i++) {
        int rc =
            store_load(op->store, op->call, op->pieces[i].entry, &op->pieces[i].change->key);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

/* The answer as it was before the functions ran: only what they replied is taken back. */
struct staged {
    struct result work;
    struct ng_writer writer;
    size_t reply_len;
    bool reply_open;
};

static void staged_keep(struct staged *staged, const struct call *call)
{
    staged->work = call->work;
    staged->writer = call->reply_writer;
    staged->reply_len = call->reply_buf.len;
    staged->reply_open = call->reply_open;
}

static void staged_restore(const struct staged *staged, struct call *call)
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

/* Runs the functions and queues the result. NG_OK with *ret_settled: nothing to wait for. */
static int operation_start(struct operation *op, const struct ng_answer *answer,
                           bool own_answer, bool *ret_settled)
{
    int rc = operation_lock(op);
    if (rc == NG_OK) {
        rc = operation_load(op);
    }
    struct staged staged;
    staged_keep(&staged, op->call);
    for (int attempt = 0; rc == NG_OK && attempt < STORE_ATTEMPTS_MAX; attempt++) {
        if (attempt > 0) {
            staged_restore(&staged, op->call);
        }
        rc = operation_run(op);
        struct ng_answer made;
        if (rc == NG_OK && own_answer && op->call->idem != NULL && !op->call->idem_stored) {
            rc = idem_answer(op->call, &made);
            answer = &made;
        }
        if (rc == NG_OK && operation_is_settled(op, answer)) {
            *ret_settled = true;
            return NG_OK;
        }
        if (rc == NG_OK) {
            rc = operation_batch(op, answer);
        }
        if (rc == NG_OK && operation_publish(op)) {
            operation_note(op);
            bool stores = own_answer && answer != NULL;
            op->call->idem_stored = op->call->idem_stored || stores;
            rc = operation_commit(op);
            if (rc != NG_OK && stores) {
                op->call->idem_stored = false; /* a later try of the tool keeps it */
            }
            return rc;
        }
    }
    return rc != NG_OK ? rc
                       : call_fail(op->call, NG_EUNAVAILABLE,
                                   "the changes before this one keep failing; try again");
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
    return *ret == NULL ? no_memory(call) : NG_OK;
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
    call_hold(call); /* before the commit can end */
    rc = operation_start(op, NULL, true, &settled);
    operation_unlock(op);
    operation_unref(op);
    if (rc == NG_OK && !settled) {
        call->held = true; /* the run has not ended, nor has the call then */
        return NG_PENDING;
    }
    atomic_fetch_sub(&call->pending, 1);
    return rc;
}

int store_write_answered(struct store *store, struct call *call,
                         const struct ng_change *changes, size_t count,
                         const struct ng_answer *answer, store_done_fn *done, void *user)
{
    struct operation *op = NULL;
    int rc = store_start(store, call, changes, count, &op);
    if (rc != NG_OK) {
        return rc;
    }
    bool settled = false;
    op->done = done;
    op->user = user;
    rc = operation_start(op, answer, false, &settled);
    operation_unlock(op);
    operation_unref(op);
    if (rc == NG_OK && settled) {
        done(user, NG_OK);
    }
    return rc;
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
    int rc = store_write_answered(store, call, changes, count, answer, waiter_done, &waiter);
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
