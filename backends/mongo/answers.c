/* SPDX-License-Identifier: MIT */
/* answers.c - the answers of calls that came with an idempotency key. A scope is claimed before
 * the change it belongs to is made, by the batch that makes it. The changed document itself
 * tells whether a claim became an answer, so the two cannot disagree. */
#include "db.h"

#include <stdio.h>
#include <time.h>

/* A claim whose change was not applied within this time never will be: the writer gives up long
 * before. */
#define CLAIM_DEAD_TIMEOUTS 4
#define CLAIM_DEAD_MS 10000

static void put_scope(bson_t *doc, const char *key, struct ng_str scope)
{
    (void)bson_append_binary(doc, key, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)scope.data,
                             (uint32_t)scope.len);
}

static void put_binary(bson_t *doc, const char *key, struct ng_str bytes)
{
    const char *data = "";
    if (bytes.data != NULL) {
        data = bytes.data;
    }
    (void)bson_append_binary(doc, key, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)data,
                             (uint32_t)bytes.len);
}

void answer_doc(const struct ng_answer *answer, const char *state, const char *batch,
                bson_t *ret)
{
    bson_init(ret);
    put_scope(ret, "_id", answer->scope);
    BSON_APPEND_UTF8(ret, "state", state);
    BSON_APPEND_UTF8(ret, "batch", batch);
    BSON_APPEND_DATE_TIME(ret, "claimed", clock_unix_ms());
    BSON_APPEND_DATE_TIME(ret, "time", answer->time_ms);
    BSON_APPEND_DATE_TIME(ret, "expires", answer->expires_ms);
    put_binary(ret, "body_hash", answer->body_hash);
    put_binary(ret, "reply", answer->reply);
}

static bson_t *answer_find(struct mongo *db, struct ng_str scope, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    put_scope(&filter, "_id", scope);
    bson_t *found = op_find_one(db, OWN_ANSWERS, &filter, NULL, fault);
    bson_destroy(&filter);
    return found;
}

static void answer_drop(struct mongo *db, struct ng_str scope, struct ng_str batch,
                        struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    put_scope(&filter, "_id", scope);
    put_str(&filter, "batch", batch);
    (void)op_delete(db, OWN_ANSWERS, &filter, false, NULL, fault);
    bson_destroy(&filter);
}

/* Whether the change of a claim was applied. Kept answers need no check. */
static int is_kept(struct mongo *db, const bson_t *answer, bool *ret, struct fault *fault)
{
    char batch[BATCH_ID_MAX] = "";
    char collection[NG_COLLECTION_MAX + 1] = "";
    struct ng_str mark = member_str(answer, "batch");
    struct ng_str name = member_str(answer, "collection");
    *ret = str_equal(member_str(answer, "state"), ng_str_of("kept"));
    if (*ret || mark.len >= sizeof(batch) || name.len >= sizeof(collection) || name.len == 0) {
        return NG_OK;
    }
    memcpy(batch, mark.data, mark.len);
    memcpy(collection, name.data, name.len);
    return batch_landed(db, collection, member_str(answer, "document"),
                        member_u64(answer, "revision"), batch, ret, fault);
}

/* Handles an existing answer. NG_PENDING: claim again. */
static int answer_present(struct mongo *db, const bson_t *present, struct ng_str scope,
                          struct fault *fault)
{
    bool kept = false;
    int64_t now = clock_unix_ms();
    struct ng_str batch = member_str(present, "batch");
    if (member_i64(present, "expires") <= now) {
        answer_drop(db, scope, batch, fault);
        if (fault->rc != NG_OK) {
            return fault->rc;
        }
        return NG_PENDING;
    }
    int rc = is_kept(db, present, &kept, fault);
    if (rc != NG_OK) {
        return rc;
    }
    if (kept) {
        fault->rc = NG_EKEYREUSED;
        (void)snprintf(fault->text, sizeof(fault->text),
                       "a call with this idempotency key has been answered already");
        return NG_EKEYREUSED;
    }
    int64_t dead = CLAIM_DEAD_MS + CLAIM_DEAD_TIMEOUTS * db->timeout_ms;
    if (staleness_exceeds(&db->staleness, batch, dead)) {
        answer_drop(db, scope, batch, fault);
        if (fault->rc != NG_OK) {
            return fault->rc;
        }
        return NG_PENDING;
    }
    return NG_PENDING; /* its owner is still at work: soon it is kept or removed */
}

static int claim(struct mongo *db, const struct ng_answer *answer, const bson_t *doc,
                 struct fault *fault)
{
    int64_t until = monotonic_ms() + db->timeout_ms;
    for (unsigned tried = 0;; tried++) {
        if (op_insert(db, OWN_ANSWERS, doc, fault)) {
            return NG_OK;
        }
        if (!fault->duplicate && !fault->outcome_unknown) {
            return fault->rc;
        }
        bson_t *present = answer_find(db, answer->scope, fault);
        int rc = NG_PENDING;
        if (fault->rc != NG_OK && !fault->outcome_unknown) {
            rc = fault->rc;
        }
        if (present != NULL) {
            bool mine = str_equal(member_str(present, "batch"), member_str(doc, "batch"));
            if (mine) {
                rc = NG_OK;
            } else {
                rc = answer_present(db, present, answer->scope, fault);
            }
            bson_destroy(present);
        }
        if (rc != NG_PENDING) {
            return rc;
        }
        if (monotonic_ms() >= until) {
            fault->rc = NG_EUNAVAILABLE;
            (void)snprintf(fault->text, sizeof(fault->text),
                           "another call with the same idempotency key is still running; try "
                           "again in a moment");
            return fault->rc;
        }
        back_off(tried);
    }
}

int answer_claim(struct mongo *db, struct job *job, const char *batch,
                 const struct prepared *target, uint64_t revision, struct fault *fault)
{
    bson_t doc;
    answer_doc(job->batch->answer, "claimed", batch, &doc);
    BSON_APPEND_UTF8(&doc, "collection", target->collection->name);
    put_str(&doc, "document", bytes_str(&target->name));
    put_u64(&doc, "revision", revision);
    int rc = claim(db, job->batch->answer, &doc, fault);
    bson_destroy(&doc);
    return rc;
}

/* If it fails, the next reader of the claim finds out by itself. */
void answer_settle(struct mongo *db, struct job *job, const char *batch, bool keep)
{
    struct fault fault;
    struct ng_str scope = job->batch->answer->scope;
    if (!keep) {
        answer_drop(db, scope, ng_str_of(batch), &fault);
        return;
    }
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    int64_t matched = 0;
    put_scope(&filter, "_id", scope);
    BSON_APPEND_UTF8(&filter, "batch", batch);
    nest_text(&update, "$set", "state", "kept");
    (void)op_update(db, OWN_ANSWERS, &filter, &update, &matched, &fault);
    bson_destroy(&filter);
    bson_destroy(&update);
}

void answer_only(struct mongo *db, struct job *job)
{
    char batch[BATCH_ID_MAX];
    struct fault fault;
    bson_t doc;
    batch_id(db, batch);
    answer_doc(job->batch->answer, "kept", batch, &doc);
    job->rc = claim(db, job->batch->answer, &doc, &fault);
    if (job->rc != NG_OK) {
        fault.rc = job->rc;
        (void)batch_fault(job, &fault);
    }
    bson_destroy(&doc);
}

static int copy_out(struct ng_call *call, struct ng_str from, struct ng_str *ret)
{
    char *data = ng_alloc(call, from.len + 1);
    if (data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the stored answer");
    }
    if (from.len > 0) {
        memcpy(data, from.data, from.len);
    }
    data[from.len] = '\0';
    *ret = str_of(data, from.len);
    return NG_OK;
}

int answer_get(void *self, struct ng_call *call, struct ng_str scope, struct ng_answer *ret)
{
    struct mongo *db = self;
    struct fault fault;
    bool kept = false;
    bson_t *found = answer_find(db, scope, &fault);
    if (fault.rc != NG_OK) {
        return fault_fail(call, &fault, "reading a stored answer");
    }
    int rc = NG_ENOTFOUND;
    if (found != NULL && member_i64(found, "expires") > call->host->now_ms()) {
        rc = is_kept(db, found, &kept, &fault);
        if (rc != NG_OK) {
            rc = fault_fail(call, &fault, "reading a stored answer");
        } else if (kept) {
            rc = NG_OK;
        } else {
            rc = NG_ENOTFOUND;
        }
    }
    if (rc == NG_OK) {
        ret->time_ms = member_i64(found, "time");
        ret->expires_ms = member_i64(found, "expires");
        rc = copy_out(call, scope, &ret->scope);
        if (rc == NG_OK) {
            rc = copy_out(call, member_str(found, "body_hash"), &ret->body_hash);
        }
        if (rc == NG_OK) {
            rc = copy_out(call, member_str(found, "reply"), &ret->reply);
        }
    }
    if (found != NULL) {
        bson_destroy(found);
    }
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    return ng_fail(call, NG_ENOTFOUND, "no answer is stored for this key");
}
