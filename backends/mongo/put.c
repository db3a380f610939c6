/* SPDX-License-Identifier: MIT */
/*
 * put.c - applies the queued changes of one document in one update, conditional on the revision
 * they are based on.
 *
 * If the outcome is unknown - the connection broke, the server was stepping down - the same
 * update is sent again. Its condition holds at most once, and the batch id it stores tells
 * whether the new revision is ours.
 */
#include "db.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A tombstone stays in its collection longer than this after its event was moved
 * (tombstone_gc.c), so a look-up there is valid for this long. */
#define LOOKED_UP_MS 2000

uint64_t stamp_next(struct mongo *db)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t stamp = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    uint64_t last = atomic_load(&db->last_stamp);
    do {
        if (stamp <= last) {
            stamp = last + 1;
        }
    } while (!atomic_compare_exchange_weak(&db->last_stamp, &last, stamp));
    return stamp;
}

void batch_id(struct mongo *db, char ret[BATCH_ID_MAX])
{
    bson_oid_t oid;
    (void)db;
    bson_oid_init(&oid, NULL);
    bson_oid_to_string(&oid, ret);
}

int batch_fault(struct job *job, const struct fault *fault)
{
    (void)snprintf(job->batch->error, sizeof(job->batch->error), "%s", fault->text);
    if (fault->rc != NG_OK) {
        job->rc = fault->rc;
    } else {
        job->rc = NG_EINTERNAL;
    }
    return job->rc;
}

static void filter_name(bson_t *filter, const struct prepared *prepared)
{
    bson_init(filter);
    put_str(filter, "_id", bytes_str(&prepared->name));
}

bool tombstone_find(struct mongo *db, const struct prepared *prepared, uint64_t *ret,
                    struct fault *fault)
{
    struct bytes name = {0};
    bson_t filter = BSON_INITIALIZER;
    *ret = 0;
    memset(fault, 0, sizeof(*fault));
    if (!prepared->collection->is_entry) {
        bson_destroy(&filter);
        return true;
    }
    fault->rc = name_tombstone(prepared->collection->name, bytes_str(&prepared->name), &name);
    put_str(&filter, "_id", bytes_str(&name));
    bson_t *found = NULL;
    if (fault->rc == NG_OK) {
        found = op_find_one(db, OWN_TOMBSTONES, &filter, NULL, fault);
    }
    if (found != NULL) {
        *ret = member_u64(found, "notegate.revision");
        bson_destroy(found);
    }
    bson_destroy(&filter);
    bytes_done(&name);
    return fault->rc == NG_OK;
}

static bool marked(const bson_t *doc, const char *batch)
{
    bson_iter_t iter;
    bson_iter_t entries;
    struct ng_str mine = ng_str_of(batch);
    if (str_equal(member_str(doc, "notegate.batch"), mine)) {
        return true;
    }
    if (!bson_iter_init_find(&iter, doc, "outbox") || !bson_iter_recurse(&iter, &entries)) {
        return false;
    }
    while (bson_iter_next(&entries)) {
        bson_iter_t entry, found;
        if (bson_iter_recurse(&entries, &entry) && bson_iter_find(&entry, "batch")) {
            found = entry;
            if (str_equal(iter_str(&found), mine)) {
                return true;
            }
        }
    }
    return false;
}

/* Looks for the event of a revision, which names the batch that made it. */
static int moved_by(struct mongo *db, const char *collection, struct ng_str document,
                    uint64_t revision, const char *batch, bool *ret, struct fault *fault)
{
    struct bytes ref = {0};
    bson_t filter = BSON_INITIALIZER;
    int rc = name_version(collection, document, revision, &ref);
    put_str(&filter, "ref", bytes_str(&ref));
    bson_t *event = NULL;
    if (rc == NG_OK) {
        event = op_find_one(db, OWN_EVENTS, &filter, NULL, fault);
    }
    if (event != NULL) {
        *ret = str_equal(member_str(event, "batch"), ng_str_of(batch));
        bson_destroy(event);
    }
    bson_destroy(&filter);
    bytes_done(&ref);
    if (rc != NG_OK) {
        return rc;
    }
    return fault->rc;
}

static bool intent_decided(struct mongo *db, const char *batch, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", batch);
    BSON_APPEND_UTF8(&filter, "state", "done");
    bson_t *intent = op_find_one(db, OWN_INTENTS, &filter, NULL, fault);
    bool decided = intent != NULL;
    if (intent != NULL) {
        bson_destroy(intent);
    }
    bson_destroy(&filter);
    return decided;
}

static bool marks_document(struct mongo *db, const char *collection, struct ng_str document,
                           const char *batch, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    bson_t fields;
    bool marks = false;
    put_str(&filter, "_id", document);
    BSON_APPEND_DOCUMENT_BEGIN(&opts, "projection", &fields);
    BSON_APPEND_INT32(&fields, "outbox.batch", 1);
    BSON_APPEND_INT32(&fields, "notegate", 1);
    (void)bson_append_document_end(&opts, &fields);
    bson_t *doc = op_find_one(db, collection, &filter, &opts, fault);
    if (doc != NULL) {
        marks = marked(doc, batch);
        bson_destroy(doc);
    }
    bson_destroy(&filter);
    bson_destroy(&opts);
    return marks;
}

/* Searches in the order in which a change moves: the intent, the document, the events. */
int batch_landed(struct mongo *db, const char *collection, struct ng_str document,
                 uint64_t revision, const char *batch, bool *ret, struct fault *fault)
{
    *ret = intent_decided(db, batch, fault);
    if (fault->rc == NG_OK && !*ret) {
        *ret = marks_document(db, collection, document, batch, fault);
    }
    if (fault->rc == NG_OK && !*ret) {
        return moved_by(db, collection, document, revision, batch, ret, fault);
    }
    return fault->rc;
}

/* ---- one update ---- */

struct work {
    struct mongo *db;
    struct job **jobs;
    size_t count;
    const struct prepared *prepared;
    const struct ng_put *first, *last, *creator;
    char batch[BATCH_ID_MAX];
    bson_t outbox;
    uint64_t outbox_bytes, stamp;
    size_t body_bytes;
    bson_t change; /* the update, or the document to insert */
    bool inserts;
    int64_t until_ms;
    bool outcome_unknown; /* it was sent, and the outcome is unknown */
    struct fault fault;
};

static int work_fail(struct work *work, int rc, const char *text)
{
    work->fault.rc = rc;
    (void)snprintf(work->fault.text, sizeof(work->fault.text), "%s", text);
    return rc;
}

static int conflict(struct work *work)
{
    return work_fail(work, NG_ECONFLICT,
                     "the document was changed in the meantime; read it again and retry");
}

static int work_make(struct work *work, bool inserts)
{
    bson_destroy(&work->change);
    work->inserts = inserts;
    int rc;
    if (inserts) {
        rc = body_insert(NULL, work->prepared, work->last, &work->outbox, work->outbox_bytes,
                         work->batch, work->stamp, &work->change);
    } else {
        rc = body_update(work->prepared, work->last, work->creator, &work->outbox,
                         work->outbox_bytes, work->batch, work->stamp, &work->change);
    }
    if (rc == NG_ETOOLARGE) {
        work->fault.rc = rc;
        (void)snprintf(work->fault.text, sizeof(work->fault.text),
                       "the document would have %zu bytes with its history to come, the most "
                       "that MongoDB takes here are %zu",
                       (size_t)work->change.len, DOCUMENT_BYTES_MAX);
    } else if (rc != NG_OK) {
        (void)work_fail(work, rc, "the document's JSON cannot be stored");
    }
    return rc;
}

static int work_begin(struct work *work)
{
    work->prepared = &work->jobs[0]->puts[0];
    work->first = work->jobs[0]->batch->puts[0];
    work->last = work->jobs[work->count - 1]->batch->puts[0];
    work->until_ms = monotonic_ms() + work->db->timeout_ms;
    bson_init(&work->outbox);
    bson_init(&work->change);
    batch_id(work->db, work->batch);
    for (size_t i = 0; i < work->count; i++) {
        const struct ng_put *put = work->jobs[i]->batch->puts[0];
        uint64_t stamp = stamp_next(work->db);
        if (work->stamp == 0 || put->created_seq == 0) {
            work->stamp = stamp;
        }
        if (put->created_seq == 0) {
            work->creator = put;
        }
        work->outbox_bytes += outbox_add(&work->outbox, (uint32_t)i, put,
                                         work->jobs[i]->puts[0].hash, work->batch, stamp);
    }
    return work_make(work, work->first->base_revision == 0);
}

static void work_end(struct work *work)
{
    bson_destroy(&work->outbox);
    bson_destroy(&work->change);
}

/* Sends the update once. *ret_done: it was made. */
static bool send_update(struct work *work, bool *ret_done)
{
    bson_t filter;
    int64_t matched = 0;
    int64_t room = (int64_t)(DOCUMENT_BYTES_MAX - work->change.len);
    filter_name(&filter, work->prepared);
    put_u64(&filter, "notegate.revision", work->first->base_revision);
    nest_bool(&filter, "notegate.intent", "$exists", false);
    nest_i64(&filter, "notegate.outbox_bytes", "$lte", room);
    bool good = op_update(work->db, work->prepared->collection->name, &filter, &work->change,
                          &matched, &work->fault);
    bson_destroy(&filter);
    *ret_done = good && matched > 0;
    return good;
}

static bool send_insert(struct work *work, bool *ret_done)
{
    int64_t from = monotonic_ms();
    uint64_t tombstone = 0;
    *ret_done = false;
    if (!tombstone_find(work->db, work->prepared, &tombstone, &work->fault)) {
        return false;
    }
    if (tombstone != work->first->base_revision || monotonic_ms() - from > LOOKED_UP_MS) {
        return true; /* the look-up took too long: try again */
    }
    bool good =
        op_insert(work->db, work->prepared->collection->name, &work->change, &work->fault);
    *ret_done = good;
    return good || work->fault.duplicate;
}

/* Finds out why the condition did not hold. NG_OK: our own update changed the document;
 * NG_PENDING: try again. */
static int explain_conflict(struct work *work)
{
    bool landed = false;
    uint64_t base = work->first->base_revision;
    bson_t filter;
    filter_name(&filter, work->prepared);
    bson_t *doc =
        op_find_one(work->db, work->prepared->collection->name, &filter, NULL, &work->fault);
    bson_destroy(&filter);
    if (work->fault.rc != NG_OK) {
        return NG_PENDING;
    }
    int rc = NG_OK;
    if (doc == NULL) {
        uint64_t tombstone = 0;
        if (!tombstone_find(work->db, work->prepared, &tombstone, &work->fault)) {
            rc = work->fault.rc;
        } else if (tombstone != base) {
            rc = conflict(work);
        } else {
            rc = work_make(work, true);
            if (rc == NG_OK) {
                rc = NG_PENDING;
            }
        }
    } else if (marked(doc, work->batch)) {
        rc = NG_OK;
    } else if (member_str(doc, "notegate.intent").data != NULL) {
        (void)intent_help(work->db, doc, work->prepared->collection->name, &work->fault);
        if (work->fault.rc != NG_OK && !work->fault.outcome_unknown) {
            rc = work->fault.rc;
        } else {
            rc = NG_PENDING;
        }
    } else if (member_u64(doc, "notegate.revision") == base && base > 0) {
        relay_kick(work->db, work->prepared->collection); /* its outbox is full */
        if (work->inserts) {
            rc = work_make(work, false);
        } else {
            rc = NG_OK;
        }
        if (rc == NG_OK) {
            rc = NG_PENDING;
        }
    } else {
        /* The driver may have sent it twice: the first update may have been made, and its event
         * moved. */
        rc = moved_by(work->db, work->prepared->collection->name,
                      bytes_str(&work->prepared->name), work->first->revision, work->batch,
                      &landed, &work->fault);
        if (rc == NG_OK && !landed) {
            rc = conflict(work);
        }
    }
    if (doc != NULL) {
        bson_destroy(doc);
    }
    return rc;
}

static int work_run(struct work *work)
{
    for (unsigned tried = 0;; tried++) {
        bool done = false;
        bool good;
        if (work->inserts) {
            good = send_insert(work, &done);
        } else {
            good = send_update(work, &done);
        }
        atomic_fetch_add(&work->db->stat_updates, 1);
        if (done) {
            return NG_OK;
        }
        work->outcome_unknown = work->outcome_unknown || (!good && work->fault.outcome_unknown);
        if (!good && !work->outcome_unknown) {
            return work->fault.rc;
        }
        int rc = NG_PENDING;
        if (good) {
            rc = explain_conflict(work);
        }
        if (rc != NG_PENDING && (rc != NG_EUNAVAILABLE || !work->outcome_unknown)) {
            work->outcome_unknown = false;
            return rc;
        }
        if (monotonic_ms() >= work->until_ms) {
            if (work->fault.rc != NG_OK) {
                return work->fault.rc;
            }
            return work_fail(work, NG_EBUSY,
                             "the outbox of this document is full, or another change of it "
                             "does not end; try again in a moment");
        }
        atomic_fetch_add(&work->db->stat_retries, 1);
        back_off(tried);
    }
}

/* Checks a condition without storing anything. */
static void check_one(struct mongo *db, struct job *job)
{
    const struct ng_put *put = job->batch->puts[0];
    struct fault fault;
    bson_t *doc = NULL;
    uint64_t revision = 0;
    int rc = doc_load(db, job->puts[0].collection, bytes_str(&job->puts[0].name), &doc, &fault);
    if (rc == NG_OK) {
        revision = member_u64(doc, "notegate.revision");
        bson_destroy(doc);
    } else if (rc != NG_ENOTFOUND) {
        (void)batch_fault(job, &fault);
        return;
    }
    if (revision != put->base_revision) {
        fault.rc = NG_ECONFLICT;
        (void)snprintf(fault.text, sizeof(fault.text),
                       "the document is at revision %llu, not %llu",
                       (unsigned long long)revision, (unsigned long long)put->base_revision);
        (void)batch_fault(job, &fault);
        job->batch->failed_put = 0;
        return;
    }
    job->rc = NG_OK;
}

/* Claims the answers of the jobs. Returns how many jobs may continue; the job after them has
 * failed. */
static size_t claim_all(struct work *work)
{
    struct fault fault;
    for (size_t i = 0; i < work->count; i++) {
        struct job *job = work->jobs[i];
        if (job->batch->answer == NULL) {
            continue;
        }
        if (answer_claim(work->db, job, work->batch, work->prepared,
                         work->jobs[i]->batch->puts[0]->revision, &fault) != NG_OK) {
            (void)batch_fault(job, &fault);
            return i;
        }
    }
    return work->count;
}

void put_group(struct mongo *db, struct job **jobs, size_t count)
{
    struct work work = {.db = db, .jobs = jobs, .count = count};
    size_t allowed = count;
    if (jobs[0]->batch->puts[0]->revision == jobs[0]->batch->puts[0]->base_revision) {
        check_one(db, jobs[0]);
        if (jobs[0]->rc == NG_OK && jobs[0]->batch->answer != NULL) {
            answer_only(db, jobs[0]);
        }
        return;
    }
    int rc = work_begin(&work);
    if (rc == NG_OK) {
        allowed = claim_all(&work);
    }
    if (rc == NG_OK && allowed < count) {
        /* A refused job fails those based on it, but not those before it. */
        for (size_t i = 0; i < count; i++) {
            if (i != allowed && jobs[i]->batch->answer != NULL && i < allowed) {
                answer_settle(db, jobs[i], work.batch, false);
            }
            if (i > allowed) {
                (void)conflict(&work);
                (void)batch_fault(jobs[i], &work.fault);
            }
        }
        work_end(&work);
        if (allowed > 0) {
            put_group(db, jobs, allowed);
        }
        return;
    }
    if (rc == NG_OK) {
        rc = work_run(&work);
    }
    for (size_t i = 0; i < count; i++) {
        jobs[i]->rc = rc;
        if (rc != NG_OK) {
            (void)batch_fault(jobs[i], &work.fault);
            jobs[i]->rc = rc;
            jobs[i]->batch->failed_put = 0;
        }
        /* If it is unknown whether it was stored, the claim stays and is checked later. */
        if (jobs[i]->batch->answer != NULL && (rc == NG_OK || !work.outcome_unknown)) {
            answer_settle(db, jobs[i], work.batch, rc == NG_OK);
        }
    }
    if (rc == NG_OK) {
        atomic_fetch_add(&db->stat_puts, count);
        relay_kick(db, jobs[0]->puts[0].collection);
    }
    work_end(&work);
}
