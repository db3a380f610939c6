/* SPDX-License-Identifier: MIT */
/* answers.c - the answers of calls that came with an idempotency key, each stored in the
 * transaction of its change. */
#include "put.h"

static void put_binary(bson_t *doc, const char *key, struct ng_str bytes)
{
    const char *data = "";
    if (bytes.data != NULL) {
        data = bytes.data;
    }
    (void)bson_append_binary(doc, key, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)data,
                             (uint32_t)bytes.len);
}

static void answer_members(const struct ng_answer *answer, bson_t *ret)
{
    bson_add(ret, "state:t, time:d, expires:d", "kept", answer->time_ms, answer->expires_ms);
    put_binary(ret, "body_hash", answer->body_hash);
    put_binary(ret, "reply", answer->reply);
}

void answer_doc(const struct ng_answer *answer, bson_t *ret)
{
    put_binary(ret, "_id", answer->scope);
    answer_members(answer, ret);
}

static bson_t *filter_scope(struct ng_str scope)
{
    bson_t *filter = bson_new();
    put_binary(filter, "_id", scope);
    return filter;
}

static int refuse_answered(struct fault *fault)
{
    return fault_refuse(fault, NG_EKEYREUSED,
                        "a call with this idempotency key has been answered already");
}

/* An expired answer is replaced. An answer that is valid does not match, so that the server
 * tries to insert a second one with its _id. */
int answer_store(struct session *session, const struct ng_answer *answer, struct fault *fault)
{
    bson_t *filter = filter_scope(answer->scope);
    bson_t members = BSON_INITIALIZER;
    bson_add(filter, "expires:{$lte:d}", clock_unix_ms());
    answer_members(answer, &members);
    (void)op_upsert(session->db, session, OWN_ANSWERS, filter, bson_of("$set:D", &members),
                    NULL, fault);
    bson_destroy(&members);
    if (fault->duplicate) {
        return refuse_answered(fault);
    }
    return fault->rc;
}

int answer_check(struct mongo *db, const struct ng_answer *answer, struct fault *fault)
{
    struct fault lookup;
    int rc = NG_ECONFLICT;
    bson_t *found =
        op_find_one(db, NULL, OWN_ANSWERS, filter_scope(answer->scope), NULL, &lookup);
    if (lookup.rc != NG_OK) {
        *fault = lookup;
        rc = lookup.rc;
    } else if (found != NULL && member_i64(found, "expires") > clock_unix_ms()) {
        rc = refuse_answered(fault);
    }
    if (found != NULL) {
        bson_destroy(found);
    }
    return rc;
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
    bson_t *found = op_find_one(db, NULL, OWN_ANSWERS, filter_scope(scope), NULL, &fault);
    if (fault.rc != NG_OK) {
        return fault_fail(call, &fault, "reading a stored answer");
    }
    int rc = NG_ENOTFOUND;
    if (found != NULL && member_i64(found, "expires") > call->host->now_ms()) {
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
    bson_destroy(found);
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    return ng_fail(call, NG_ENOTFOUND, "no answer is stored for this key");
}
