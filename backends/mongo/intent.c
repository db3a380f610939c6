/* SPDX-License-Identifier: MIT */
/*
 * intent.c - a batch of several documents as one step, on servers that change one document at a
 * time.
 *
 * First the puts and then the intent are written. Each document is then locked by naming the
 * intent in it, in an order that is the same for all gateways, and only at the revision the put
 * is based on. Changing the intent's state from "open" to "done" is the commit, a single
 * update.
 *
 * After the commit any gateway may apply the puts and remove the locks, and does so when it
 * meets a locked document. Before it any gateway may abort an intent that is too old. So a
 * gateway that dies leaves nothing half done.
 */
#include "intent.h"

#include <stdio.h>
#include <time.h>

struct step {
    struct mongo *db;
    struct job *job;
    size_t *order; /* puts, sorted by document */
    char batch[BATCH_ID_MAX];
    struct fault fault;
};

static bool is_condition(const struct ng_put *put)
{
    return put->revision == put->base_revision;
}

int intent_fail(struct fault *fault, int rc, const char *text)
{
    fault->rc = rc;
    (void)snprintf(fault->text, sizeof(fault->text), "%s", text);
    return rc;
}

/* ---- writing the intent ---- */

/* The effect of a put on its document, as bytes, because names beginning with $ cannot be
 * stored. */
static int put_change(struct step *step, size_t i, bson_t *ret)
{
    const struct ng_put *put = step->job->batch->puts[i];
    const struct prepared *prepared = &step->job->puts[i];
    bson_t outbox = BSON_INITIALIZER;
    uint64_t stamp = stamp_next(step->db);
    uint64_t bytes = outbox_add(&outbox, 0, put, prepared->hash, step->batch, stamp);
    int rc = body_update(prepared, put, put->created_seq == 0 ? put : NULL, &outbox, bytes,
                         step->batch, stamp, ret);
    bson_destroy(&outbox);
    if (rc == NG_ETOOLARGE) {
        step->fault.rc = rc;
        (void)snprintf(step->fault.text, sizeof(step->fault.text),
                       "the document would have %zu bytes with its history to come, the most "
                       "that MongoDB takes here are %zu",
                       (size_t)ret->len, DOCUMENT_BYTES_MAX);
    }
    return rc;
}

static int write_put(struct step *step, size_t i)
{
    const struct ng_put *put = step->job->batch->puts[i];
    const struct prepared *prepared = &step->job->puts[i];
    bson_t doc = BSON_INITIALIZER;
    char name[BATCH_ID_MAX + 16];
    int rc = NG_OK;
    (void)snprintf(name, sizeof(name), "%s/%zu", step->batch, i);
    BSON_APPEND_UTF8(&doc, "_id", name);
    BSON_APPEND_UTF8(&doc, "intent", step->batch);
    BSON_APPEND_UTF8(&doc, "collection", prepared->collection->name);
    put_str(&doc, "document", bytes_str(&prepared->name));
    put_u64(&doc, "base", put->base_revision);
    if (!is_condition(put)) {
        bson_t change;
        rc = put_change(step, i, &change);
        (void)bson_append_binary(&doc, "change", -1, BSON_SUBTYPE_BINARY,
                                 bson_get_data(&change), change.len);
        bson_destroy(&change);
    }
    if (rc == NG_OK && !op_insert(step->db, OWN_INTENT_PUTS, &doc, &step->fault)) {
        rc = step->fault.rc;
    }
    bson_destroy(&doc);
    return rc;
}

/* The intent is written before its puts, so that the puts of a crashed gateway are found by
 * it. */
static int write_intent(struct step *step)
{
    bson_t doc = BSON_INITIALIZER;
    int rc = NG_OK;
    BSON_APPEND_UTF8(&doc, "_id", step->batch);
    BSON_APPEND_UTF8(&doc, "state", "open");
    BSON_APPEND_UTF8(&doc, "gateway", step->db->gateway);
    BSON_APPEND_DATE_TIME(&doc, "started", clock_unix_ms());
    if (!op_insert(step->db, OWN_INTENTS, &doc, &step->fault)) {
        rc = step->fault.rc;
    }
    bson_destroy(&doc);
    for (size_t i = 0; i < step->job->batch->put_count && rc == NG_OK; i++) {
        rc = write_put(step, i);
    }
    return rc;
}

/* ---- locking ---- */

static void filter_free(bson_t *filter)
{
    nest_bool(filter, "notegate.intent", "$exists", false);
}

/* Locks an existing document. *ret_done: it is locked for this batch. */
static bool lock_present(struct step *step, size_t i, bool *ret_done)
{
    const struct ng_put *put = step->job->batch->puts[i];
    const struct prepared *prepared = &step->job->puts[i];
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    int64_t matched = 0;
    size_t room = put->json.len + put->text.len;
    put_str(&filter, "_id", bytes_str(&prepared->name));
    put_u64(&filter, "notegate.revision", put->base_revision);
    filter_free(&filter);
    if (!is_condition(put)) {
        nest_i64(&filter, "notegate.outbox_bytes", "$lte",
                 (int64_t)DOCUMENT_BYTES_MAX - 2 * (int64_t)room - (int64_t)DOCUMENT_ROOM);
    }
    nest_text(&update, "$set", "notegate.intent", step->batch);
    bool good = op_update(step->db, prepared->collection->name, &filter, &update, &matched,
                          &step->fault);
    bson_destroy(&filter);
    bson_destroy(&update);
    *ret_done = good && matched > 0;
    return good;
}

/* Inserts a placeholder for a missing document, or for a tombstone that left its collection. It
 * is deleted and has the base revision, so readers see no difference. */
static bool lock_absent(struct step *step, size_t i, bool *ret_done)
{
    const struct ng_put *put = step->job->batch->puts[i];
    const struct prepared *prepared = &step->job->puts[i];
    uint64_t tombstone = 0;
    bson_t doc = BSON_INITIALIZER;
    bson_t own, list;
    *ret_done = false;
    if (!tombstone_find(step->db, prepared, &tombstone, &step->fault)) {
        bson_destroy(&doc);
        return false;
    }
    if (tombstone != put->base_revision) {
        bson_destroy(&doc);
        return true;
    }
    put_str(&doc, "_id", bytes_str(&prepared->name));
    put_str(&doc, "space", put->key.space);
    BSON_APPEND_ARRAY_BEGIN(&doc, "outbox", &list);
    (void)bson_append_array_end(&doc, &list);
    BSON_APPEND_DOCUMENT_BEGIN(&doc, "notegate", &own);
    put_str(&own, "id", put->key.id);
    put_u64(&own, "revision", put->base_revision);
    BSON_APPEND_BOOL(&own, "deleted", true);
    put_u64(&own, "outbox_bytes", 0);
    BSON_APPEND_UTF8(&own, "intent", step->batch);
    BSON_APPEND_UTF8(&own, "place_of", step->batch);
    (void)bson_append_document_end(&doc, &own);
    bool good = op_insert(step->db, prepared->collection->name, &doc, &step->fault);
    bson_destroy(&doc);
    *ret_done = good;
    return good || step->fault.duplicate;
}

/* Finds out why it cannot be locked. NG_PENDING: try again; NG_OK: it is locked. */
static int explain_lock_failure(struct step *step, size_t i)
{
    const struct ng_put *put = step->job->batch->puts[i];
    const struct prepared *prepared = &step->job->puts[i];
    uint64_t revision = 0;
    bool done = false;
    int rc = NG_PENDING;
    bson_t filter = BSON_INITIALIZER;
    put_str(&filter, "_id", bytes_str(&prepared->name));
    bson_t *doc =
        op_find_one(step->db, prepared->collection->name, &filter, NULL, &step->fault);
    bson_destroy(&filter);
    if (step->fault.rc != NG_OK) {
        if (step->fault.outcome_unknown) {
            return NG_PENDING;
        }
        return step->fault.rc;
    }
    if (doc == NULL) {
        bool good = lock_absent(step, i, &done);
        if (!good && !step->fault.outcome_unknown) {
            return step->fault.rc;
        }
        if (done) {
            return NG_OK;
        }
        if (good && !step->fault.duplicate) {
            return intent_fail(
                &step->fault, NG_ECONFLICT,
                "the document was changed in the meantime; read it again and retry");
        }
        return NG_PENDING;
    }
    revision = member_u64(doc, "notegate.revision");
    struct ng_str intent = member_str(doc, "notegate.intent");
    if (str_equal(intent, ng_str_of(step->batch))) {
        rc = NG_OK;
    } else if (intent.data != NULL) {
        (void)intent_help(step->db, doc, prepared->collection->name, &step->fault);
        if (step->fault.rc != NG_OK && !step->fault.outcome_unknown) {
            rc = step->fault.rc;
        } else {
            rc = NG_PENDING;
        }
    } else if (revision != put->base_revision) {
        step->fault.rc = NG_ECONFLICT;
        (void)snprintf(step->fault.text, sizeof(step->fault.text),
                       "a document of the change is at revision %llu, not %llu",
                       (unsigned long long)revision, (unsigned long long)put->base_revision);
        rc = NG_ECONFLICT;
    } else {
        relay_kick(step->db, prepared->collection); /* its outbox is full */
    }
    bson_destroy(doc);
    return rc;
}

static int lock_all(struct step *step, int64_t until_ms)
{
    size_t count = step->job->batch->put_count;
    for (size_t at = 0; at < count; at++) {
        size_t i = step->order[at];
        int rc = NG_PENDING;
        for (unsigned tried = 0; rc == NG_PENDING; tried++) {
            bool done = false;
            bool good = lock_present(step, i, &done);
            if (!good && !step->fault.outcome_unknown) {
                rc = step->fault.rc;
            } else {
                if (done) {
                    rc = NG_OK;
                } else {
                    rc = explain_lock_failure(step, i);
                }
            }
            if (rc == NG_PENDING && monotonic_ms() >= until_ms) {
                rc = intent_fail(&step->fault, NG_EBUSY,
                                 "another change of the same documents does not end; try again "
                                 "in a moment");
            } else if (rc == NG_PENDING) {
                back_off(tried);
            }
        }
        if (rc != NG_OK) {
            step->job->batch->failed_put = i;
            return rc;
        }
    }
    return NG_OK;
}

/* ---- the whole ---- */

static void sort_order(struct step *step)
{
    const struct prepared *puts = step->job->puts;
    size_t count = step->job->batch->put_count;
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        while (at > 0) {
            const struct prepared *a = &puts[step->order[at - 1]];
            const struct prepared *b = &puts[i];
            int by = strcmp(a->collection->name, b->collection->name);
            size_t len = size_min(a->name.len, b->name.len);
            if (by == 0) {
                by = memcmp(a->name.data, b->name.data, len);
            }
            if (by < 0 || (by == 0 && a->name.len < b->name.len)) {
                break;
            }
            step->order[at] = step->order[at - 1];
            at--;
        }
        step->order[at] = i;
    }
}

/* The commit. An unknown outcome is looked up until it is known. */
static int commit_point(struct step *step, int64_t until_ms)
{
    for (unsigned tried = 0;; tried++) {
        bool moved = false;
        bool good = intent_decide(step->db, step->batch, "done", &moved, &step->fault);
        if (good && moved) {
            return NG_OK;
        }
        if (good) {
            bson_t *intent = intent_find(step->db, step->batch, &step->fault);
            bool done =
                intent != NULL && str_equal(member_str(intent, "state"), ng_str_of("done"));
            if (intent != NULL) {
                bson_destroy(intent);
            }
            /* The intent is gone: another gateway has completed or aborted it. The locks are
             * gone as well, but the first changed document shows which. */
            if (step->fault.rc == NG_OK) {
                if (done || intent == NULL) {
                    return NG_PENDING;
                }
                return NG_EBUSY;
            }
        } else if (!step->fault.outcome_unknown && tried == 0) {
            return step->fault.rc;
        }
        if (monotonic_ms() >= until_ms) {
            if (step->fault.rc == NG_OK) {
                return NG_EUNAVAILABLE;
            }
            return step->fault.rc;
        }
        back_off(tried);
    }
}

static const struct prepared *first_change(const struct step *step, uint64_t *ret_revision)
{
    for (size_t i = 0; i < step->job->batch->put_count; i++) {
        if (!is_condition(step->job->batch->puts[i])) {
            *ret_revision = step->job->batch->puts[i]->revision;
            return &step->job->puts[i];
        }
    }
    *ret_revision = 0;
    return &step->job->puts[0];
}

/* Leaves an intent that was committed after all, which an unknown outcome allows. If the server
 * is down, the sweep of another gateway completes it. */
static void roll_back(struct step *step)
{
    struct fault fault;
    bool moved = false;
    bool done = false;
    if (!intent_decide(step->db, step->batch, "aborted", &moved, &fault)) {
        return;
    }
    bson_t *intent = NULL;
    if (!moved) {
        intent = intent_find(step->db, step->batch, &fault);
    }
    if (intent != NULL) {
        done = str_equal(member_str(intent, "state"), ng_str_of("done"));
        bson_destroy(intent);
    }
    if (fault.rc == NG_OK) {
        (void)intent_apply(step->db, step->batch, done, &fault);
    }
}

static int step_run(struct step *step)
{
    int64_t until = monotonic_ms() + step->db->timeout_ms;
    uint64_t revision = 0;
    const struct prepared *first = first_change(step, &revision);
    int rc = write_intent(step);
    if (rc == NG_OK) {
        rc = lock_all(step, until);
    }
    if (rc == NG_OK) {
        rc = commit_point(step, until + step->db->timeout_ms);
        if (rc == NG_PENDING) {
            bool landed = false;
            rc = batch_landed(step->db, first->collection->name, bytes_str(&first->name),
                              revision, step->batch, &landed, &step->fault);
            if (rc == NG_OK && !landed) {
                rc = intent_fail(&step->fault, NG_EBUSY,
                                 "the change took so long that another gateway undid it; try "
                                 "again");
            }
        }
        if (rc == NG_EUNAVAILABLE) {
            return rc; /* committed or not: the next gateway to see the intent finds out */
        }
    }
    if (rc == NG_OK) {
        struct fault fault;
        (void)intent_apply(step->db, step->batch, true, &fault);
    } else {
        roll_back(step);
    }
    return rc;
}

void intent_commit(struct mongo *db, struct job *job)
{
    struct step step = {.db = db, .job = job};
    uint64_t revision = 0;
    step.order = calloc(job->batch->put_count, sizeof(*step.order));
    if (step.order == NULL) {
        (void)intent_fail(&step.fault, NG_EINTERNAL, "no memory for the change");
        (void)batch_fault(job, &step.fault);
        return;
    }
    sort_order(&step);
    batch_id(db, step.batch);
    int rc = NG_OK;
    if (job->batch->answer != NULL) {
        const struct prepared *first = first_change(&step, &revision);
        rc = answer_claim(db, job, step.batch, first, revision, &step.fault);
    }
    bool claimed = rc == NG_OK && job->batch->answer != NULL;
    if (rc == NG_OK) {
        rc = step_run(&step);
    }
    if (claimed && rc != NG_EUNAVAILABLE) {
        answer_settle(db, job, step.batch, rc == NG_OK);
    }
    job->rc = rc;
    if (rc != NG_OK) {
        step.fault.rc = rc;
        (void)batch_fault(job, &step.fault);
    } else {
        atomic_fetch_add(&db->stat_puts, job->batch->put_count);
        relay_kick(db, NULL);
    }
    free(step.order);
}
