/* SPDX-License-Identifier: MIT */
/* maintain.c - upkeep that can wait: thins old history to one revision a day, deletes expired
 * answers and the events of quiet changes. Several gateways may do this at once, as each step
 * can be repeated. */
#include "core/base/array.h"
#include "db.h"

#define LOOK_DOCS 100
#define DAY_MS INT64_C(86400000)

typedef bool pinned_fn(void *user, const struct ng_key *key, uint64_t revision);

struct old {
    uint64_t revision;
    int64_t time_ms;
    bool drop;
};

struct thin_state {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    int64_t cutoff_ms;
    pinned_fn *pinned;
    void *user;
    bson_t *docs[LOOK_DOCS];
    size_t doc_count;
    struct bytes after;
    struct old *list;
    size_t count, cap;
    bool failed;
};

static int64_t day_of(int64_t time_ms)
{
    if (time_ms >= 0) {
        return time_ms / DAY_MS;
    }
    return -((-time_ms + DAY_MS - 1) / DAY_MS);
}

/* Collects the versions up to the first that is too young to drop, which may be the last of its
 * day. */
static int keep_old(void *user, const bson_t *version)
{
    struct thin_state *thin = user;
    thin->failed = array_reserve((void **)&thin->list, &thin->cap, thin->count + 1,
                                 sizeof(*thin->list), UINT32_MAX) != NG_OK;
    if (thin->failed) {
        return 1;
    }
    thin->list[thin->count++] = (struct old){.revision = member_u64(version, "revision"),
                                             .time_ms = member_i64(version, "time")};
    return thin->list[thin->count - 1].time_ms >= thin->cutoff_ms;
}

/* Marks the versions to drop: not the first, not the last of a day, and no pinned one. */
static size_t mark(struct thin_state *thin, const bson_t *doc)
{
    size_t dropped = 0;
    struct ng_key key = {ng_str_of(thin->collection->name), member_str(doc, "space"),
                         member_str(doc, "notegate.id")};
    for (size_t i = 1; i < thin->count; i++) {
        struct old *row = &thin->list[i];
        bool last_of_day =
            i + 1 == thin->count || day_of(thin->list[i + 1].time_ms) != day_of(row->time_ms);
        row->drop = !last_of_day && row->time_ms < thin->cutoff_ms &&
                    (thin->pinned == NULL || !thin->pinned(thin->user, &key, row->revision));
        dropped += row->drop;
    }
    return dropped;
}

/* Stores the revision whole, as its predecessor is dropped. */
static int make_whole(struct thin_state *thin, struct ng_str name, uint64_t revision,
                      struct fault *fault)
{
    static const char *const spliced[] = {"json_at", "json_removed", "text_at", "text_removed"};
    struct state state = {0};
    struct bytes ref = {0};
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    bson_t part;
    int64_t matched = 0;
    int rc =
        version_load(thin->db, thin->collection->name, name, NULL, revision, &state, fault);
    if (rc == NG_OK) {
        rc = name_version(thin->collection->name, name, revision, &ref);
    }
    if (rc == NG_OK) {
        put_str(&filter, "_id", bytes_str(&ref));
        BSON_APPEND_INT32(&filter, "kept", KEPT_SPLICE);
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &part);
        BSON_APPEND_INT32(&part, "kept", KEPT_WHOLE);
        put_str(&part, "json", bytes_str(&state.json));
        put_str(&part, "text", bytes_str(&state.text));
        (void)bson_append_document_end(&update, &part);
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$unset", &part);
        for (size_t i = 0; i < NG_COUNT(spliced); i++) {
            BSON_APPEND_UTF8(&part, spliced[i], "");
        }
        (void)bson_append_document_end(&update, &part);
        if (op_update(thin->db, OWN_VERSIONS, &filter, &update, &matched, fault)) {
            rc = NG_OK;
        } else {
            rc = fault->rc;
        }
    }
    bson_destroy(&filter);
    bson_destroy(&update);
    state_done(&state);
    bytes_done(&ref);
    return rc;
}

static int drop_run(struct thin_state *thin, struct ng_str name, size_t first, size_t last,
                    struct fault *fault)
{
    struct bytes low = {0};
    struct bytes high = {0};
    bson_t filter = BSON_INITIALIZER;
    bson_t part;
    const char *collection = thin->collection->name;
    int rc = make_whole(thin, name, thin->list[last + 1].revision, fault);
    if (rc == NG_OK) {
        rc = name_version(collection, name, thin->list[first].revision, &low);
    }
    if (rc == NG_OK) {
        rc = name_version(collection, name, thin->list[last].revision, &high);
    }
    if (rc == NG_OK) {
        BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &part);
        put_str(&part, "$gte", bytes_str(&low));
        put_str(&part, "$lte", bytes_str(&high));
        (void)bson_append_document_end(&filter, &part);
        if (op_delete(thin->db, OWN_VERSIONS, &filter, true, NULL, fault)) {
            rc = NG_OK;
        } else {
            rc = fault->rc;
        }
    }
    bson_destroy(&filter);
    bytes_done(&low);
    bytes_done(&high);
    return rc;
}

static int fail_thinning(struct thin_state *thin, int rc, const struct fault *fault)
{
    if (fault->rc != NG_OK) {
        return fault_fail(thin->call, fault, "thinning history");
    }
    return ng_fail(
        thin->call, rc == NG_EINTERNAL ? rc : NG_EUNAVAILABLE,
        "a history in %s is damaged: run `notegate verify` and restore from a backup",
        thin->collection->name);
}

static int thin_doc(struct thin_state *thin, const bson_t *doc)
{
    struct fault fault = {0};
    struct ng_str name = member_str(doc, "_id");
    struct ng_range range = {
        .size = sizeof(range), .from = 1, .limit = UINT32_MAX, .ascending = true};
    range.to = member_u64(doc, "notegate.revision") - 1;
    thin->count = 0;
    int rc = versions_each(thin->db, thin->collection->name, name, NULL, &range, keep_old, thin,
                           &fault);
    if (rc != NG_OK || thin->failed) {
        return fail_thinning(thin, NG_EINTERNAL, &fault);
    }
    if (mark(thin, doc) == 0) {
        return NG_OK;
    }
    for (size_t i = 0; i < thin->count && rc == NG_OK;) {
        if (!thin->list[i].drop) {
            i++;
            continue;
        }
        size_t last = i;
        while (last + 1 < thin->count && thin->list[last + 1].drop) {
            last++;
        }
        rc = drop_run(thin, name, i, last, &fault);
        i = last + 1;
    }
    if (rc == NG_OK) {
        return rc;
    }
    return fail_thinning(thin, rc, &fault);
}

static int keep_doc(void *user, const bson_t *doc)
{
    struct thin_state *thin = user;
    thin->docs[thin->doc_count++] = bson_copy(doc);
    return thin->doc_count == LOOK_DOCS;
}

static int next_docs(struct thin_state *thin)
{
    struct fault fault;
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    bson_t part;
    thin->doc_count = 0;
    nest_str(&filter, "_id", "$gt", bytes_str(&thin->after));
    nest_i64(&filter, "notegate.revision", "$gt", 2);
    nest_date(&filter, "notegate.created", "$lt", thin->cutoff_ms);
    nest_i32(&opts, "sort", "_id", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&opts, "projection", &part);
    BSON_APPEND_INT32(&part, "space", 1);
    BSON_APPEND_INT32(&part, "notegate", 1);
    (void)bson_append_document_end(&opts, &part);
    BSON_APPEND_INT64(&opts, "limit", LOOK_DOCS);
    bool good =
        op_find(thin->db, thin->collection->name, &filter, &opts, keep_doc, thin, &fault);
    bson_destroy(&filter);
    bson_destroy(&opts);
    if (!good) {
        return fault_fail(thin->call, &fault, "thinning history");
    }
    if (thin->doc_count == 0) {
        return NG_OK;
    }
    return bytes_set(&thin->after, member_str(thin->docs[thin->doc_count - 1], "_id"));
}

static int thin_collection(struct thin_state *thin)
{
    int rc = NG_OK;
    bool more = true;
    thin->after.len = 0;
    while (rc == NG_OK && more) {
        rc = next_docs(thin);
        more = rc == NG_OK && thin->doc_count > 0;
        for (size_t i = 0; i < thin->doc_count; i++) {
            if (rc == NG_OK) {
                rc = thin_doc(thin, thin->docs[i]);
            }
            bson_destroy(thin->docs[i]);
        }
        if (rc == NG_OK && more && thin->call->host->cancelled(thin->call)) {
            rc = ng_fail(thin->call, NG_ETIMEOUT,
                         "maintenance reached its time limit; the next run continues it");
        }
    }
    return rc;
}

/* Deletes expired answers and the events of quiet changes, but not the event with the last
 * number. */
static int drop_expired(struct mongo *db, struct ng_call *call, int64_t now_ms)
{
    struct fault fault;
    bson_t answers = BSON_INITIALIZER;
    bson_t quiet = BSON_INITIALIZER;
    nest_date(&answers, "expires", "$lte", now_ms);
    BSON_APPEND_BOOL(&quiet, "quiet", true);
    nest_date(&quiet, "time", "$lt", now_ms - DAY_MS);
    nest_u64(&quiet, "_id", "$lt", atomic_load(&db->last_seq));
    bool good = op_delete(db, OWN_ANSWERS, &answers, true, NULL, &fault) &&
                op_delete(db, OWN_EVENTS, &quiet, true, NULL, &fault);
    bson_destroy(&answers);
    bson_destroy(&quiet);
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "removing expired data");
}

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 pinned_fn *pinned, void *user)
{
    struct mongo *db = self;
    size_t count = 0;
    struct thin_state thin = {.db = db, .call = call, .pinned = pinned, .user = user};
    int rc = drop_expired(db, call, now_ms);
    if (rc != NG_OK || keep_ms == 0) {
        return rc;
    }
    thin.cutoff_ms = now_ms - keep_ms;
    rc = relay_drain(db, call);
    struct db_collection **list = collections_list(db, &count);
    for (size_t i = 0; i < count && list != NULL && rc == NG_OK; i++) {
        thin.collection = list[i];
        if ((list[i]->flags & NG_COLLECTION_NO_HISTORY) == 0) {
            rc = thin_collection(&thin);
        }
    }
    free(list);
    free(thin.list);
    bytes_done(&thin.after);
    return rc;
}
