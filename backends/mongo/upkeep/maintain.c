/* SPDX-License-Identifier: MIT */
/* maintain.c - upkeep that can wait: thins old history to one revision a day, deletes expired
 * answers, the events of quiet changes, and deleted documents that nothing shows. Several
 * gateways may do this at once, as each step can be repeated. */
#include "upkeep.h"

#define DAY_MS INT64_C(86400000)
/* How long a deleted document that nothing shows stays: a day longer than its events, whatever
 * the clocks of two gateways say. */
#define DELETED_MS (2 * DAY_MS)
/* Versions of one document that one run looks at; the next run goes on. */
#define OLD_MAX 50000

typedef bool pinned_fn(void *user, const struct ng_key *key, uint64_t revision);

struct thin_state {
    struct mongo *db;
    struct ng_call *call;
    const struct db_collection *collection;
    int64_t cutoff_ms;
    pinned_fn *pinned;
    void *user;
    struct docs old; /* of the present document */
};

static int64_t day_of(int64_t time_ms)
{
    return (time_ms - (time_ms < 0) * (DAY_MS - 1)) / DAY_MS;
}

/* Collects the versions up to the first that is too young to drop, which may be the last of its
 * day. */
static int keep_old(void *user, const bson_t *version)
{
    struct thin_state *thin = user;
    return docs_keep(&thin->old, version) || member_i64(version, "time") >= thin->cutoff_ms;
}

/* Neither the last version of a day nor one too young or pinned. */
static bool is_dropped(const struct thin_state *thin, const struct ng_key *key, size_t at)
{
    int64_t time_ms = member_i64(thin->old.list[at], "time");
    return at + 1 < thin->old.count && time_ms < thin->cutoff_ms &&
           day_of(member_i64(thin->old.list[at + 1], "time")) == day_of(time_ms) &&
           (thin->pinned == NULL ||
            !thin->pinned(thin->user, key, member_u64(thin->old.list[at], "revision")));
}

/* Drops the versions between two that stay. */
static int drop_between(struct thin_state *thin, struct ng_str name, size_t before,
                        size_t behind, struct fault *fault)
{
    uint64_t from = member_u64(thin->old.list[before], "revision") + 1;
    uint64_t to = member_u64(thin->old.list[behind], "revision") - 1;
    int rc = version_make_whole(thin->db, thin->collection->name, name, to + 1, fault);
    if (rc != NG_OK) {
        return rc;
    }
    bson_t *range = version_range(thin->collection->name, name, from, to);
    if (range == NULL) {
        return NG_EINTERNAL;
    }
    (void)op_delete(thin->db, NULL, OWN_VERSIONS, range, true, NULL, fault);
    return fault->rc;
}

static int thin_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct thin_state *thin = user;
    struct ng_str name = member_str(doc, "_id");
    struct ng_key key = {ng_str_of(thin->collection->name), member_str(doc, "space"),
                         member_str(doc, "notegate.id")};
    struct ng_range range = {
        .size = sizeof(range), .from = 1, .limit = UINT32_MAX, .ascending = true};
    range.to = member_u64(doc, "notegate.revision") - 1;
    docs_clear(&thin->old);
    int rc = versions_each(thin->db, thin->collection->name, name, NULL, &range, keep_old, thin,
                           fault);
    rc = int_min(rc, thin->old.rc);
    size_t kept = 0; /* the first stays */
    for (size_t i = 1; i < thin->old.count && rc == NG_OK; i++) {
        if (!is_dropped(thin, &key, i)) {
            if (kept + 1 < i) {
                rc = drop_between(thin, name, kept, i, fault);
            }
            kept = i;
        }
    }
    return rc;
}

static int thin_collection(struct thin_state *thin)
{
    struct fault fault;
    struct walk walk = {.db = thin->db,
                        .call = thin->call,
                        .collection = thin->collection->name,
                        .filter = bson_of("notegate.revision:{$gt:2}, notegate.created:{$lt:d}",
                                          thin->cutoff_ms),
                        .fields = bson_of("space:1, notegate.id:1, notegate.revision:1"),
                        .each = thin_doc,
                        .user = thin};
    int rc = walk_documents(&walk, &fault);
    if (rc == NG_ECANCELLED) {
        return ng_fail(thin->call, NG_ETIMEOUT,
                       "maintenance reached its time limit; the next run continues it");
    }
    if (rc == NG_EINTERNAL && fault.rc == NG_OK) {
        (void)fault_refuse(&fault, rc, "no memory");
    } else if (rc != NG_OK && fault.rc == NG_OK) {
        rc = fault_refuse(
            &fault, NG_EUNAVAILABLE,
            "a history in %s is damaged: run `notegate verify` and restore from a backup",
            thin->collection->name);
    }
    return fault_end(thin->call, rc, &fault, "thinning history");
}

/* Deletes deleted documents of quiet collections without history. One that is created again
 * begins at revision 1. It is not taken for what was there before: calls read a document when
 * they change it, and none takes that long; the events, which the relay knows by document and
 * revision, went before. */
static void drop_deleted(struct mongo *db, int64_t now_ms, struct fault *fault)
{
    const uint32_t hidden = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY;
    const struct db_collection *collection = NULL;
    bool good = true;
    while (good && (collection = collection_next(db, collection)) != NULL) {
        if ((collection->flags & hidden) == hidden && !collection->is_entry) {
            good = op_delete(db, NULL, collection->name,
                             bson_of("notegate.deleted:T, notegate.moved:{$lt:d}, "
                                     "notegate.waiting:{$exists:F}, notegate.seq:{$lt:u}",
                                     now_ms - DELETED_MS, atomic_load(&db->last_seq)),
                             true, NULL, fault);
        }
    }
}

/* Deletes expired answers and the events of quiet changes, but not the event with the last
 * number. */
static int drop_expired(struct mongo *db, struct ng_call *call, int64_t now_ms)
{
    struct fault fault;
    int64_t day_before = now_ms - DAY_MS;
    bool good = op_delete(db, NULL, OWN_ANSWERS, bson_of("expires:{$lte:d}", now_ms), true,
                          NULL, &fault);
    good = good && op_delete(db, NULL, OWN_EVENTS,
                             bson_of("quiet:T, time:{$lt:d}, _id:{$lt:u}", day_before,
                                     atomic_load(&db->last_seq)),
                             true, NULL, &fault);
    if (good) {
        drop_deleted(db, now_ms, &fault);
    }
    return fault_end(call, fault.rc, &fault, "removing expired data");
}

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 pinned_fn *pinned, void *user)
{
    struct mongo *db = self;
    struct thin_state thin = {.db = db,
                              .call = call,
                              .pinned = pinned,
                              .user = user,
                              .cutoff_ms = now_ms - keep_ms,
                              .old.most = OLD_MAX};
    int rc = drop_expired(db, call, now_ms);
    if (rc != NG_OK || keep_ms == 0) {
        return rc;
    }
    rc = relay_drain(db, call);
    while (rc == NG_OK && (thin.collection = collection_next(db, thin.collection)) != NULL) {
        if ((thin.collection->flags & NG_COLLECTION_NO_HISTORY) == 0) {
            rc = thin_collection(&thin);
        }
    }
    docs_done(&thin.old);
    return rc;
}
