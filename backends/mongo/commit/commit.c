/* SPDX-License-Identifier: MIT */
/*
 * commit.c - stores a batch. One document that exists is changed by one update. Everything else
 * is a transaction: several documents, the answer of a call with an idempotency key, a
 * condition alone, the creation of an entry, whose tombstone may be elsewhere, and an update
 * whose outcome is unknown, as the commit waits until a majority has what was read.
 */
#include "put.h"

#include <stdio.h>

struct change {
    struct mongo *db;
    struct put puts[NG_CHANGES_MAX];
    size_t count;
    size_t failed; /* the put whose condition did not hold */
    const struct ng_answer *answer;
    bool unknown;     /* its update was sent before, and may have been made */
    int64_t until_ms; /* monotonic: no further attempt */
    struct fault fault;
};

/* MongoDB recommends at most 1,000 documents a transaction. */
_Static_assert(NG_CHANGES_MAX + 1 <= 1000, "a batch fits into one transaction");

/* ---- one document ---- */

/* A condition on a document that is not in its collection: inserting and deleting it conflicts
 * with its creation elsewhere. */
static int touch_absent(struct session *session, const struct put *put, struct fault *fault)
{
    const char *collection = put->prepared->collection->name;
    bson_t *name = put_filter(put, false);
    if (op_insert(session->db, session, collection, name, fault)) {
        (void)op_delete(session->db, session, collection, put_filter(put, false), false, NULL,
                        fault);
    }
    bson_destroy(name);
    return fault->rc;
}

/* Finds out why the condition did not hold. NG_OK: our own update changed the document. */
static int put_explain(struct mongo *db, struct session *session, struct put *put,
                       const bson_t *doc, bool unknown, struct fault *fault)
{
    const struct prepared *prepared = put->prepared;
    put->landed = doc_is_of(doc, put->batch);
    if (!put->landed && put_fits(put, doc)) {
        relay_kick(db, prepared->collection);
        (void)fault_refuse(fault, NG_EBUSY,
                           "the outbox of this document is full; try again in a moment");
        return NG_PENDING;
    }
    if (!put->landed && unknown &&
        event_is_of(db, session, prepared->collection->name, bytes_str(&prepared->name),
                    put->first->revision, put->batch, &put->landed, fault) != NG_OK) {
        return fault->rc;
    }
    if (put->landed) {
        return NG_OK;
    }
    return fault_refuse(fault, NG_ECONFLICT, "the document is at revision %llu, not %llu",
                        (unsigned long long)member_u64(doc, "notegate.revision"),
                        (unsigned long long)put->first->base_revision);
}

/* The document is not in its collection: inserts it if its tombstone is the base. */
static int put_absent(struct session *session, struct put *put, bool unknown,
                      struct fault *fault)
{
    const struct prepared *prepared = put->prepared;
    bson_t *tombstone = NULL;
    int rc = tombstone_load(session->db, session, prepared->collection,
                            bytes_str(&prepared->name), &tombstone, fault);
    if (rc != NG_OK) {
        return rc;
    }
    bool fits = put_fits(put, tombstone);
    if (!fits && unknown && tombstone != NULL) {
        rc = put_explain(session->db, session, put, tombstone, unknown, fault);
    } else if (!fits) {
        rc = fault_conflict(fault);
    }
    bson_destroy(tombstone);
    if (!fits) {
        return rc;
    }
    if (put_is_condition(put)) {
        return touch_absent(session, put, fault);
    }
    if (!put->inserts) {
        rc = put_make(put, true, fault);
    }
    if (rc == NG_OK &&
        !op_insert(session->db, session, prepared->collection->name, &put->change, fault)) {
        rc = fault->rc;
        if (fault->duplicate && unknown) {
            rc = NG_PENDING; /* its first attempt may have been committed just now */
        } else if (fault->duplicate) {
            rc = fault_conflict(fault);
        }
    }
    return rc;
}

/* Sends the change once. *ret_done: the condition held. false: a fault. */
static bool put_send(struct mongo *db, struct session *session, struct put *put, bool *ret_done,
                     struct fault *fault)
{
    const char *collection = put->prepared->collection->name;
    atomic_fetch_add(&db->stat_updates, 1);
    if (put->inserts) {
        *ret_done = op_insert(db, session, collection, &put->change, fault);
        return *ret_done || (fault->duplicate && !fault->outcome_unknown);
    }
    bson_t *filter = put_filter(put, true);
    bson_t change;
    if (put_is_condition(put)) {
        /* A write without a change: another transaction's change conflicts with it. */
        return op_update(db, session, collection, filter,
                         bson_of("$set:{notegate.checked:t}", put->batch), ret_done, fault);
    }
    bson_add(filter, "notegate.outbox_bytes:{$lte:l}",
             (int64_t)(DOCUMENT_BYTES_MAX - put->change.len));
    (void)bson_init_static(&change, bson_get_data(&put->change), put->change.len);
    return op_update(db, session, collection, filter, &change, ret_done, fault);
}

/* In a transaction, or alone by one operation. NG_PENDING: again, and in a transaction. */
static int put_apply(struct mongo *db, struct session *session, struct put *put, bool unknown,
                     struct fault *fault)
{
    bool done = false;
    if (session != NULL && put->inserts && !unknown) {
        return put_absent(session, put, unknown, fault);
    }
    /* In a transaction the second insert of a document ends it. */
    bool sends = session == NULL || !put->inserts;
    if (sends && (!put_send(db, session, put, &done, fault) || done)) {
        return fault->rc;
    }
    bson_t *doc =
        op_find_one(db, session, put->prepared->collection->name, put_filter(put, false),
                    bson_of("projection:{%:0, %:0}", WORDS, TERMS), fault);
    int rc = fault->rc;
    if (doc != NULL) {
        rc = put_explain(db, session, put, doc, unknown, fault);
    } else if (rc == NG_OK && session != NULL) {
        rc = put_absent(session, put, unknown, fault);
    } else if (rc == NG_OK) {
        rc = NG_PENDING;
    }
    bson_destroy(doc);
    return rc;
}

/* ---- the transaction ---- */

/* The puts that change something, or the conditions. *ret_landed: an earlier attempt made one
 * of them, and with it all others, so that the rest of the step is left out. */
static int puts_apply(struct session *session, struct change *change, bool conditions,
                      bool *ret_landed, struct fault *fault)
{
    int rc = NG_OK;
    for (size_t i = 0; i < change->count && rc == NG_OK && !*ret_landed; i++) {
        struct put *put = &change->puts[i];
        if (put_is_condition(put) == conditions) {
            change->failed = i;
            put->landed = false;
            rc =
                put_apply(change->db, session, put, change->unknown || session->repeats, fault);
            *ret_landed = put->landed;
        }
    }
    return rc;
}

static int change_step(struct session *session, void *user, struct fault *fault)
{
    struct change *change = user;
    bool landed = false;
    memset(fault, 0, sizeof(*fault));
    /* The documents first: their states are read by the first operation, so a change of
     * another gateway, or the relay's, seldom comes between. */
    int rc = puts_apply(session, change, false, &landed, fault);
    if (rc == NG_OK) {
        rc = puts_apply(session, change, true, &landed, fault);
    }
    if (rc == NG_OK && change->answer != NULL && !landed) {
        rc = answer_store(session, change->answer, fault);
    }
    return rc;
}

/* An outcome that the server did not tell: the change may have been made. */
static void note_unknown(struct change *change, bool *ret_maybe)
{
    const struct fault *fault = &change->fault;
    change->unknown = change->unknown || fault->outcome_unknown;
    *ret_maybe = *ret_maybe || (fault->outcome_unknown && !fault->none_made);
}

static int change_run(struct change *change, bool alone)
{
    struct mongo *db = change->db;
    bool maybe = false;
    int rc = NG_PENDING;
    if (alone) {
        rc = put_apply(db, NULL, &change->puts[0], false, &change->fault);
        note_unknown(change, &maybe);
        if (change->unknown) {
            rc = NG_PENDING;
        }
    }
    for (unsigned tried = 0; rc == NG_PENDING || (rc == NG_EUNAVAILABLE && change->unknown &&
                                                  monotonic_ms() < change->until_ms);
         tried++) {
        if (tried > 0) {
            queue_shed(db);
            back_off(tried);
        }
        rc = txn_run(db, change_step, change, change->until_ms, &change->fault);
    }
    if (maybe && rc != NG_OK && rc != NG_ECONFLICT) {
        rc = fault_unknown(db, &change->fault);
    }
    if (rc == NG_ECONFLICT && change->answer != NULL) {
        /* The document may have been changed by this very call, sent once before. */
        rc = answer_check(db, change->answer, &change->fault);
    }
    return rc;
}

/* ---- batches ---- */

static void change_end(struct change *change)
{
    for (size_t i = 0; i < change->count; i++) {
        put_end(&change->puts[i]);
    }
}

static void job_end(struct job *job, const struct change *change, int rc)
{
    job->rc = rc;
    if (rc != NG_OK) {
        (void)snprintf(job->batch->error, sizeof(job->batch->error), "%s", change->fault.text);
        job->batch->failed_put = change->failed;
        return;
    }
    atomic_fetch_add(&change->db->stat_puts, job->put_count);
}

/* Collections cannot be made in a transaction with their indexes. */
static int change_make(struct change *change, struct job **jobs, size_t count)
{
    struct mongo *db = change->db;
    const struct job *first = jobs[0];
    int rc = NG_OK;
    collection_prepare(db, OWN_EVENTS);
    for (size_t i = 0; i < first->put_count && rc == NG_OK; i++) {
        struct put *put = &change->puts[change->count++];
        put_begin(db, put, &jobs[count - 1]->puts[i], jobs[count - 1]->batch->puts[i]);
        put_add(db, put, first->batch->puts[i], first->puts[i].hash);
        for (size_t j = 1; j < count; j++) {
            put_add(db, put, jobs[j]->batch->puts[0], jobs[j]->puts[0].hash);
        }
        if (!put_is_condition(put)) {
            rc = put_make(put, put->first->base_revision == 0, &change->fault);
        }
        collection_prepare(db, put->prepared->collection->name);
    }
    return rc;
}

/* Until the last of the calls ends, or shortly before, as the last attempt may take as long as
 * one operation may. Without such a time: as long as one operation. */
static int64_t until_of(const struct mongo *db, struct job *const *jobs, size_t count)
{
    int64_t until = 0;
    int64_t alone = monotonic_ms() + db->timeout_ms;
    for (size_t i = 0; i < count; i++) {
        const struct ng_batch *batch = jobs[i]->batch;
        int64_t one = alone;
        if (NG_HAS(batch, deadline_ns) && batch->deadline_ns != 0) {
            int64_t deadline = batch->deadline_ns / 1000000;
            one = i64_min(i64_max(alone, deadline - db->timeout_ms), deadline);
        }
        until = i64_max(until, one);
    }
    return until;
}

void commit_jobs(struct mongo *db, struct job **jobs, size_t count)
{
    struct change change;
    const struct job *first = jobs[0];
    change.db = db;
    change.count = 0;
    change.failed = 0;
    change.answer = first->batch->answer;
    change.unknown = false;
    change.until_ms = until_of(db, jobs, count);
    memset(&change.fault, 0, sizeof(change.fault));
    int rc = change_make(&change, jobs, count);
    if (rc == NG_OK) {
        /* A new entry may have a tombstone elsewhere. */
        bool alone = change.count == 1 && job_is_plain(first) &&
                     !(change.puts[0].inserts && change.puts[0].prepared->collection->is_entry);
        rc = change_run(&change, alone);
    }
    for (size_t i = 0; i < count; i++) {
        job_end(jobs[i], &change, rc);
    }
    if (rc == NG_OK && first->put_count > 0) {
        const struct db_collection *one = first->puts[0].collection;
        relay_kick(db, first->put_count == 1 ? one : NULL);
    }
    change_end(&change);
}
