/* SPDX-License-Identifier: MIT */
/*
 * revision_at.c - the kept revisions of a document around a point, in few requests: one for the
 * document with its outbox, then each looks 100 versions up by their names, equally far from
 * each other, and leaves a hundredth of the revisions. Numbers and times of versions grow with
 * their revisions. Where most are thinned out, their names tell nothing: there the versions
 * from the middle on are read.
 */
#include "read.h"

#include "core/base/minmax.h"

/* Versions of one request: by name, and in a row. */
#define NAMED_MOST 100
#define ROW_MOST 400

/* Revision 0: none. */
struct kept_row {
    uint64_t revision, seq; /* seq 0: none yet, so it is after all numbers */
    int64_t time_ms;
};

/* A search: `before` is the newest kept revision up to `floor`, `after` the oldest from
 * `ceiling` on; what is kept between these two is not known. */
struct around {
    struct mongo *db;
    const char *collection;
    struct bytes name;
    uint64_t seq;
    int64_t time_ms;
    struct kept_row before, after;
    uint64_t floor, ceiling;
    size_t seen;  /* rows of the last request that are before the point */
    bool is_thin; /* names would find too few */
};

static bool around_is_after(const struct around *around, const struct kept_row *row)
{
    bool later = row->seq == 0 || row->seq > around->seq;
    return (around->seq != UINT64_MAX && later) || row->time_ms > around->time_ms;
}

/* Rows come in their order: nothing is behind the first one after the point. */
static int around_take(void *user, const bson_t *version)
{
    struct around *around = user;
    const struct kept_row row = {member_u64(version, "revision"), member_u64(version, "seq"),
                                 member_i64(version, "time")};
    if (row.revision <= around->floor || row.revision >= around->ceiling) {
        return 0;
    }
    if (around_is_after(around, &row)) {
        around->after = row;
        around->ceiling = row.revision;
        return 1;
    }
    around->before = row;
    around->floor = row.revision;
    around->seen++;
    return 0;
}

/* Changes that have not been moved yet. */
static void around_take_outbox(struct around *around, const bson_t *doc)
{
    bson_iter_t iter, entries;
    bson_t entry;
    bool done =
        !bson_iter_init_find(&iter, doc, "outbox") || !bson_iter_recurse(&iter, &entries);
    while (!done && bson_iter_next(&entries)) {
        if (iter_doc(&entries, &entry) && member_i64(&entry, "kept") != KEPT_NONE) {
            done = around_take(around, &entry) != 0;
        }
    }
}

static int around_find(struct around *around, bson_t *filter, size_t most, struct fault *fault)
{
    bson_t *opts = bson_of("sort:{_id:1}, limit:l, batchSize:l, singleBatch:T, "
                           "projection:{revision:1, seq:1, time:1}",
                           (int64_t)most, (int64_t)most);
    around->seen = 0;
    bson_add(filter, "kept:{$gt:i}", KEPT_NONE);
    (void)op_find(around->db, NULL, OWN_VERSIONS, filter, opts, around_take, around, fault);
    return fault->rc;
}

static int around_find_named(struct around *around, struct fault *fault)
{
    bson_t names = BSON_INITIALIZER;
    struct bytes name = {0};
    uint64_t floor = around->floor;
    uint64_t left = around->ceiling - floor - 1;
    uint64_t count = u64_min(left, NAMED_MOST);
    uint64_t step = (left + 1) / (count + 1);
    int rc = NG_OK;
    for (uint64_t i = 0; i < count && rc == NG_OK; i++) {
        rc = name_version(around->collection, bytes_str(&around->name), floor + (i + 1) * step,
                          &name);
        bson_item(&names, (uint32_t)i, bytes_str(&name));
    }
    if (rc == NG_OK) {
        rc = around_find(around, bson_of("_id:{$in:A}", &names), count, fault);
    } else {
        rc = fault_refuse(fault, rc, "no memory for the versions");
    }
    if (left == count) {
        around->floor = around->ceiling - 1; /* these were all */
    }
    around->is_thin = around->ceiling - around->floor > left / 2;
    bytes_done(&name);
    bson_destroy(&names);
    return rc;
}

/* All versions from this revision on, as many as fit. */
static int around_find_from(struct around *around, uint64_t from, struct fault *fault)
{
    uint64_t ceiling = around->ceiling;
    bson_t *filter =
        version_range(around->collection, bytes_str(&around->name), from, ceiling - 1);
    if (filter == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory for the versions");
    }
    int rc = around_find(around, filter, ROW_MOST, fault);
    if (around->seen == 0) {
        around->ceiling = from; /* none is kept from here to the one that is after the point */
    } else if (around->ceiling < ceiling || around->seen < ROW_MOST) {
        around->floor = around->ceiling - 1;
    }
    return rc;
}

static int around_search(struct around *around, struct ng_call *call, struct fault *fault)
{
    int rc = NG_OK;
    while (rc == NG_OK && around->ceiling - around->floor > 1) {
        uint64_t left = around->ceiling - around->floor - 1;
        if (around->is_thin && left > NAMED_MOST) {
            rc = around_find_from(around, around->floor + 1 + left / 2, fault);
        } else {
            rc = around_find_named(around, fault);
        }
        if (rc == NG_OK && call->host->cancelled(call)) {
            rc = fault_refuse(fault, NG_ECANCELLED, "reading the history was cancelled");
        }
    }
    return rc;
}

/* The newest revision, which is always kept, and the outbox. */
static int around_load(struct around *around, const struct db_collection *collection,
                       struct ng_str space, struct fault *fault)
{
    bson_t *opts = bson_of("projection:{notegate.revision:1, notegate.seq:1, "
                           "notegate.updated:1, outbox.revision:1, outbox.time:1, "
                           "outbox.kept:1}");
    bson_t *doc =
        op_find_one(around->db, NULL, collection->name,
                    bson_of("_id:s, space:s", bytes_str(&around->name), space), opts, fault);
    if (fault->rc == NG_OK && doc == NULL) {
        (void)tombstone_load(around->db, NULL, collection, bytes_str(&around->name), &doc,
                             fault);
    }
    if (doc == NULL) {
        return fault->rc == NG_OK ? NG_ENOTFOUND : fault->rc;
    }
    const struct kept_row newest = {member_u64(doc, REVISION), body_seq(doc),
                                    member_i64(doc, "notegate.updated")};
    if (around_is_after(around, &newest)) {
        around->after = newest;
        around->ceiling = newest.revision;
        around_take_outbox(around, doc);
    } else {
        around->before = newest;
        around->floor = around->ceiling = newest.revision;
    }
    bson_destroy(doc);
    return NG_OK;
}

int read_revision_at(void *self, struct ng_call *call, const struct ng_key *key, uint64_t seq,
                     int64_t time_ms, struct ng_kept *ret)
{
    struct mongo *db = self;
    struct fault fault = {0};
    const struct db_collection *collection = collection_find(db, key->collection);
    struct around around = {.db = db, .seq = seq, .time_ms = time_ms};
    int rc = NG_ENOTFOUND;
    if (collection != NULL) {
        around.collection = collection->name;
        rc = name_document(collection, key->space, key->id, &around.name);
    }
    if (rc == NG_OK) {
        rc = around_load(&around, collection, key->space, &fault);
    }
    if (rc == NG_ENOTFOUND || rc == NG_EINVAL) { /* no name is invalid UTF-8 */
        rc = ng_fail(call, NG_ENOTFOUND, "there is no such document");
    } else {
        if (rc == NG_OK) {
            rc = around_search(&around, call, &fault);
        }
        rc = fault_end(call, rc, &fault, "reading earlier revisions");
    }
    if (rc == NG_OK) {
        const struct kept_row *before = &around.before;
        const struct kept_row *after = &around.after;
        const struct ng_kept kept = {sizeof(kept),    before->revision, before->seq,
                                     before->time_ms, after->revision,  after->seq,
                                     after->time_ms};
        ng_fill(ret, &kept);
    }
    bytes_done(&around.name);
    return rc;
}
