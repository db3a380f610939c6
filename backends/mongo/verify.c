/* SPDX-License-Identifier: MIT */
/* verify.c - recomputes the stored data: the hash of each newest state, each kept revision
 * along its chain, and the event of each change. */
#include <stdio.h>

#include "db.h"

/* Documents held in memory at a time. */
#define STEP_DOCS 50

struct verify_state {
    struct mongo *db;
    struct ng_call *call;
    ng_finding_fn *finding;
    void *user;
    const struct db_collection *collection;
    bson_t *docs[STEP_DOCS];
    size_t count;
    struct bytes after; /* _id of the last document checked */
    struct state state;
    uint64_t last; /* last revision seen in the chain */
    const bson_t *doc;
    uint64_t oldest;
    bool any;
};

static void found(struct verify_state *verify, const bson_t *doc, const char *what,
                  uint64_t revision)
{
    char text[512];
    struct ng_str name = member_str(doc, "_id");
    (void)snprintf(text, sizeof(text), "%s %.*s, revision %llu: %s", verify->collection->name,
                   str_clip(name, 100), name.data != NULL ? name.data : "",
                   (unsigned long long)revision, what);
    verify->finding(verify->user, text);
}

static bool hash_is(const bson_t *from, const char *path, struct ng_str json,
                    struct ng_str text, bool deleted)
{
    unsigned char hash[HASH_BYTES];
    content_hash(CONTENT_HASH_ROTATED, json, text, deleted, hash);
    return str_equal(member_str(from, path), str_of((const char *)hash, HASH_BYTES));
}

static void check_newest(struct verify_state *verify, const bson_t *doc)
{
    struct bytes json = {0};
    struct ng_doc row;
    if (body_row(verify->collection, doc, true, &json, &row) != NG_OK ||
        !hash_is(doc, "notegate.hash", row.json, row.text, row.deleted)) {
        found(verify, doc, "its content does not match its hash", row.revision);
    }
    bytes_done(&json);
}

static int check_version(void *user, const bson_t *version)
{
    struct verify_state *verify = user;
    uint64_t revision = member_u64(version, "revision");
    bool whole = member_i64(version, "kept") == KEPT_WHOLE;
    if (!verify->any) {
        verify->oldest = revision;
    }
    verify->any = true;
    verify->last = revision;
    if (!whole && verify->state.revision + 1 != revision) {
        found(verify, verify->doc, "the revision before it is missing", revision);
        verify->state.revision = 0;
        return 0;
    }
    if (state_apply(&verify->state, version) != NG_OK ||
        !hash_is(version, "hash", bytes_str(&verify->state.json),
                 bytes_str(&verify->state.text), member_bool(version, "deleted"))) {
        found(verify, verify->doc, "it is damaged in the history", revision);
        verify->state.revision = 0;
    }
    return 0;
}

static int check_doc(struct verify_state *verify, const bson_t *doc)
{
    struct fault fault;
    struct ng_range range = {.size = sizeof(range),
                             .from = 1,
                             .limit = UINT32_MAX,
                             .with_body = true,
                             .ascending = true};
    uint64_t newest = member_u64(doc, "notegate.revision");
    if (newest == 0) {
        return NG_OK;
    }
    check_newest(verify, doc);
    verify->state.revision = 0;
    verify->last = 0;
    verify->any = false;
    verify->doc = doc;
    int rc = versions_each(verify->db, verify->collection->name, member_str(doc, "_id"), doc,
                           &range, check_version, verify, &fault);
    if (rc != NG_OK) {
        return fault_fail(verify->call, &fault, "verifying");
    }
    bool kept = (verify->collection->flags & NG_COLLECTION_NO_HISTORY) == 0;
    if (kept && verify->last < newest) {
        found(verify, doc, "it is missing in the history", newest);
    }
    return NG_OK;
}

static int keep_doc(void *user, const bson_t *doc)
{
    struct verify_state *verify = user;
    verify->docs[verify->count++] = bson_copy(doc);
    return verify->count == STEP_DOCS;
}

static int next_docs(struct verify_state *verify)
{
    struct fault fault;
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    verify->count = 0;
    nest_str(&filter, "_id", "$gt", bytes_str(&verify->after));
    nest_i32(&opts, "sort", "_id", 1);
    BSON_APPEND_INT64(&opts, "limit", STEP_DOCS);
    bool good =
        op_find(verify->db, verify->collection->name, &filter, &opts, keep_doc, verify, &fault);
    bson_destroy(&filter);
    bson_destroy(&opts);
    if (!good) {
        return fault_fail(verify->call, &fault, "verifying");
    }
    if (verify->count == 0) {
        return NG_OK;
    }
    return bytes_set(&verify->after, member_str(verify->docs[verify->count - 1], "_id"));
}

static int check_collection(struct verify_state *verify)
{
    int rc = NG_OK;
    bool more = true;
    verify->after.len = 0;
    while (rc == NG_OK && more) {
        rc = next_docs(verify);
        more = rc == NG_OK && verify->count > 0;
        for (size_t i = 0; i < verify->count; i++) {
            if (rc == NG_OK) {
                rc = check_doc(verify, verify->docs[i]);
            }
            bson_destroy(verify->docs[i]);
        }
        if (rc == NG_OK && verify->call->host->cancelled(verify->call)) {
            rc = ng_fail(verify->call, NG_ECANCELLED, "verifying was cancelled");
        }
    }
    return rc;
}

int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user)
{
    struct mongo *db = self;
    struct verify_state verify = {.db = db, .call = call, .finding = finding, .user = user};
    size_t count = 0;
    int rc = NG_OK;
    struct db_collection **list = collections_list(db, &count);
    if (list == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory to verify");
    }
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        verify.collection = list[i];
        rc = check_collection(&verify);
    }
    free(list);
    bytes_done(&verify.after);
    state_done(&verify.state);
    return rc;
}
