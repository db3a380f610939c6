/* SPDX-License-Identifier: MIT */
/* verify.c - recomputes the stored data: the hash of each newest state, each kept revision
 * along its chain, and the event of each change. */
#include <stdio.h>

#include "upkeep.h"

struct verify_state {
    struct mongo *db;
    struct ng_call *call;
    ng_finding_fn *finding;
    void *user;
    const struct db_collection *collection;
    struct state state;
    uint64_t last; /* last revision seen in the chain */
    const bson_t *doc;
};

static void found(struct verify_state *verify, const bson_t *doc, const char *what,
                  uint64_t revision)
{
    char text[512];
    struct ng_str name = member_str(doc, "_id");
    (void)snprintf(text, sizeof(text), "%s %.*s, revision %llu: %s", verify->collection->name,
                   str_clip(name, 100), name.data, (unsigned long long)revision, what);
    verify->finding(verify->user, text);
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

/* Whether a collection that only other gateways use keeps a history is not known here: it does
 * if there is any of the document. */
static bool keeps_history(const struct verify_state *verify)
{
    const struct db_collection *collection = verify->collection;
    bool unknown = collection->flags == 0 && collection->field_count == 0;
    return (collection->flags & NG_COLLECTION_NO_HISTORY) == 0 &&
           (!unknown || verify->last > 0);
}

static int check_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct verify_state *verify = user;
    struct ng_range range = {.size = sizeof(range),
                             .from = 1,
                             .limit = UINT32_MAX,
                             .with_body = true,
                             .ascending = true};
    uint64_t newest = member_u64(doc, "notegate.revision");
    check_newest(verify, doc);
    verify->state.revision = 0;
    verify->last = 0;
    verify->doc = doc;
    int rc = versions_each(verify->db, verify->collection->name, member_str(doc, "_id"), doc,
                           &range, check_version, verify, fault);
    if (rc == NG_OK && keeps_history(verify) && verify->last < newest) {
        found(verify, doc, "it is missing in the history", newest);
    }
    return rc;
}

int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user)
{
    struct mongo *db = self;
    struct verify_state verify = {.db = db, .call = call, .finding = finding, .user = user};
    struct fault fault = {0};
    int rc = NG_OK;
    while (rc == NG_OK &&
           (verify.collection = collection_next(db, verify.collection)) != NULL) {
        struct walk walk = {.db = db,
                            .call = call,
                            .collection = verify.collection->name,
                            .fields = bson_of("%:0, %:0", WORDS, TERMS),
                            .each = check_doc,
                            .user = &verify};
        rc = walk_documents(&walk, &fault);
    }
    state_done(&verify.state);
    if (rc == NG_ECANCELLED) {
        return ng_fail(call, rc, "verifying was cancelled");
    }
    return fault_end(call, rc, &fault, "verifying");
}
