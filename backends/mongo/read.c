/* SPDX-License-Identifier: MIT */
/* read.c - one document, its history, and the feed of changes. */
#include "core/base/array.h"
#include "db.h"

#include <stdio.h>

/* How often a document is read again because an intent on it was just completed. */
#define READS_MAX 20

static int find_main(struct mongo *db, const struct db_collection *collection,
                     struct ng_str name, bson_t **ret, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    put_str(&filter, "_id", name);
    *ret = op_find_one(db, collection->name, &filter, NULL, fault);
    bson_destroy(&filter);
    return fault->rc;
}

/* The tombstone of an entry that has left its collection. */
static int find_tombstone(struct mongo *db, const struct db_collection *collection,
                          struct ng_str name, bson_t **ret, struct fault *fault)
{
    struct bytes ref = {0};
    bson_t filter = BSON_INITIALIZER;
    int rc = name_tombstone(collection->name, name, &ref);
    put_str(&filter, "_id", bytes_str(&ref));
    if (rc == NG_OK) {
        *ret = op_find_one(db, OWN_TOMBSTONES, &filter, NULL, fault);
        rc = fault->rc;
    }
    bson_destroy(&filter);
    bytes_done(&ref);
    return rc;
}

int doc_load(struct mongo *db, const struct db_collection *collection, struct ng_str name,
             bson_t **ret, struct fault *fault)
{
    *ret = NULL;
    for (unsigned i = 0;; i++) {
        int rc = find_main(db, collection, name, ret, fault);
        if (rc == NG_OK && *ret == NULL && collection->is_entry) {
            rc = find_tombstone(db, collection, name, ret, fault);
        }
        if (rc != NG_OK) {
            return rc;
        }
        if (*ret == NULL) {
            return NG_ENOTFOUND;
        }
        if (i < READS_MAX && member_str(*ret, "notegate.intent").data != NULL &&
            intent_finish(db, *ret, fault)) {
            bson_destroy(*ret);
            continue;
        }
        if (member_u64(*ret, "notegate.revision") == 0) {
            bson_destroy(*ret); /* only the placeholder of an intent */
            *ret = NULL;
            return NG_ENOTFOUND;
        }
        return NG_OK;
    }
}

struct target {
    const struct db_collection *collection;
    struct bytes name;
    bson_t *doc;
};

static int target_load(struct mongo *db, struct ng_call *call, const struct ng_key *key,
                       struct target *ret)
{
    struct fault fault = {0};
    memset(ret, 0, sizeof(*ret));
    ret->collection = collection_find(db, key->collection);
    int rc = NG_ENOTFOUND;
    if (ret->collection != NULL) {
        rc = name_document(ret->collection, key->space, key->id, &ret->name);
    }
    if (rc != NG_OK && rc != NG_ENOTFOUND && rc != NG_EINVAL) {
        return ng_fail(call, rc, "out of memory for the name of a document");
    }
    /* no name is invalid UTF-8 */
    if (rc == NG_OK) {
        rc = doc_load(db, ret->collection, bytes_str(&ret->name), &ret->doc, &fault);
    } else {
        rc = NG_ENOTFOUND;
    }
    if (rc == NG_ENOTFOUND) {
        return ng_fail(call, rc, "there is no such document");
    }
    if (rc == NG_OK) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "reading a document");
}

static void target_done(struct target *target)
{
    bytes_done(&target->name);
    if (target->doc != NULL) {
        bson_destroy(target->doc);
    }
}

static int report_newest(struct ng_call *call, const struct target *target, ng_row_fn *row,
                         void *user)
{
    struct bytes json = {0};
    struct ng_doc doc;
    int rc = body_row(target->collection, target->doc, true, &json, &doc);
    if (rc == NG_OK) {
        (void)row(user, &doc);
    } else {
        rc = ng_fail(call, rc, "a document of %s cannot be read", target->collection->name);
    }
    bytes_done(&json);
    return rc;
}

static int fail_version(struct ng_call *call, int rc, const struct fault *fault)
{
    if (fault->rc != NG_OK) {
        return fault_fail(call, fault, "reading an earlier revision");
    }
    if (rc == NG_ENOTFOUND) {
        return ng_fail(call, rc, "that revision is not kept");
    }
    if (rc == NG_EINTERNAL) {
        return ng_fail(call, rc, "no memory for the history");
    }
    return ng_fail(call, NG_EUNAVAILABLE,
                   "the history of this document in MongoDB is damaged: run `notegate verify` "
                   "and restore from a backup");
}

struct version_reader {
    struct mongo *db;
    const struct target *target;
    const struct ng_key *key;
    struct ng_call *call;
    bool with_body;
    struct state state;
    bson_t **list; /* of a history */
    size_t count, cap;
    uint32_t left; /* rows that may still be shown */
    int rc;
};

/* Rows are kept until the client is released, as callbacks may read again. */
static int keep_version(void *user, const bson_t *version)
{
    struct version_reader *reader = user;
    reader->rc = array_reserve((void **)&reader->list, &reader->cap, reader->count + 1,
                               sizeof(*reader->list), UINT32_MAX);
    if (reader->rc != NG_OK) {
        return 1;
    }
    reader->list[reader->count++] = bson_copy(version);
    return 0;
}

static void reader_done(struct version_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        bson_destroy(reader->list[i]);
    }
    free(reader->list);
    state_done(&reader->state);
}

static int report_version(struct version_reader *reader, const bson_t *version, ng_row_fn *row,
                          void *user, bool *ret_stop)
{
    struct ng_doc doc;
    struct fault fault = {0};
    int rc = NG_OK;
    version_row(version, reader->key, &doc);
    if (reader->with_body) {
        rc = version_load(reader->db, reader->target->collection->name,
                          bytes_str(&reader->target->name), reader->target->doc, doc.revision,
                          &reader->state, &fault);
        if (rc != NG_OK) {
            return fail_version(reader->call, rc, &fault);
        }
        doc.json = bytes_str(&reader->state.json);
        doc.text = bytes_str(&reader->state.text);
    }
    *ret_stop = row(user, &doc) != 0;
    return NG_OK;
}

static int get_version(struct mongo *db, struct ng_call *call, const struct target *target,
                       const struct ng_key *key, uint64_t revision, ng_row_fn *row, void *user)
{
    struct version_reader reader = {
        .db = db, .target = target, .key = key, .call = call, .with_body = true};
    struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1};
    struct fault fault;
    bool stop = false;
    int rc = versions_each(db, target->collection->name, bytes_str(&target->name), target->doc,
                           &range, keep_version, &reader, &fault);
    if (rc == NG_OK) {
        rc = reader.rc;
    }
    if (rc == NG_OK && reader.count == 0) {
        rc = NG_ENOTFOUND;
    }
    if (rc == NG_OK) {
        rc = report_version(&reader, reader.list[0], row, user, &stop);
    } else {
        rc = fail_version(call, rc, &fault);
    }
    reader_done(&reader);
    return rc;
}

int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user)
{
    struct mongo *db = self;
    struct target target;
    int rc = target_load(db, call, key, &target);
    if (rc == NG_OK) {
        if (revision == 0 || revision == member_u64(target.doc, "notegate.revision")) {
            rc = report_newest(call, &target, row, user);
        } else {
            rc = get_version(db, call, &target, key, revision, row, user);
        }
    }
    target_done(&target);
    return rc;
}

/* ---- history ---- */

/* The newest revision as shown in the history of a collection that keeps no versions. */
static int history_newest(struct version_reader *reader, ng_row_fn *row, void *user,
                          bool *ret_stop)
{
    struct bytes json = {0};
    struct ng_doc doc;
    int rc = body_row(reader->target->collection, reader->target->doc, reader->with_body, &json,
                      &doc);
    reader->left--;
    if (rc != NG_OK) {
        rc = ng_fail(reader->call, rc, "a document of %s cannot be read",
                     reader->target->collection->name);
    } else {
        if (!reader->with_body) {
            doc.json = str_of(NULL, 0);
        }
        *ret_stop = row(user, &doc) != 0;
    }
    bytes_done(&json);
    return rc;
}

static bool in_range(const struct ng_range *range, uint64_t revision)
{
    return revision >= range->from && (range->to == 0 || revision <= range->to);
}

/* Builds a page of a descending history from its end, as each splice is applied to the version
 * before it. */
static int load_bodies(struct version_reader *reader, struct bytes *bodies)
{
    struct fault fault = {0};
    for (size_t i = reader->count; i-- > 0;) {
        uint64_t revision = member_u64(reader->list[i], "revision");
        int rc = version_load(reader->db, reader->target->collection->name,
                              bytes_str(&reader->target->name), reader->target->doc, revision,
                              &reader->state, &fault);
        if (rc == NG_OK) {
            rc = bytes_set(&bodies[2 * i], bytes_str(&reader->state.json));
        }
        if (rc == NG_OK) {
            rc = bytes_set(&bodies[2 * i + 1], bytes_str(&reader->state.text));
        }
        if (rc != NG_OK) {
            return fail_version(reader->call, rc, &fault);
        }
    }
    return NG_OK;
}

static int report_loaded(struct version_reader *reader, struct bytes *bodies, ng_row_fn *row,
                         void *user, bool *ret_stop)
{
    for (size_t i = 0; i < reader->count && !*ret_stop; i++) {
        struct ng_doc doc;
        version_row(reader->list[i], reader->key, &doc);
        doc.json = bytes_str(&bodies[2 * i]);
        doc.text = bytes_str(&bodies[2 * i + 1]);
        *ret_stop = row(user, &doc) != 0;
    }
    return NG_OK;
}

static int report_page(struct version_reader *reader, bool ascending, ng_row_fn *row,
                       void *user, bool *ret_stop)
{
    int rc = NG_OK;
    if (!reader->with_body || ascending) {
        for (size_t i = 0; i < reader->count && rc == NG_OK && !*ret_stop; i++) {
            rc = report_version(reader, reader->list[i], row, user, ret_stop);
        }
        return rc;
    }
    struct bytes *bodies = calloc(2 * reader->count + 1, sizeof(*bodies));
    if (bodies == NULL) {
        return ng_fail(reader->call, NG_EINTERNAL, "no memory for the history");
    }
    rc = load_bodies(reader, bodies);
    if (rc == NG_OK) {
        rc = report_loaded(reader, bodies, row, user, ret_stop);
    }
    for (size_t i = 0; i < 2 * reader->count; i++) {
        bytes_done(&bodies[i]);
    }
    free(bodies);
    return rc;
}

/* Revisions held in memory at a time. */
#define HISTORY_PAGE 32

static int history_pages(struct version_reader *reader, struct ng_range range, ng_row_fn *row,
                         void *user, bool *ret_stop)
{
    struct mongo *db = reader->db;
    struct fault fault;
    bool end = false;
    int rc = NG_OK;
    while (rc == NG_OK && !*ret_stop && !end && reader->left > 0) {
        range.limit = u32_min(reader->left, HISTORY_PAGE);
        range.with_body = false;
        rc = versions_each(db, reader->target->collection->name,
                           bytes_str(&reader->target->name), reader->target->doc, &range,
                           keep_version, reader, &fault);
        if (rc == NG_OK) {
            rc = reader->rc;
        }
        if (rc != NG_OK) {
            return fail_version(reader->call, rc, &fault);
        }
        size_t count = reader->count;
        if (count > 0) {
            uint64_t last = member_u64(reader->list[count - 1], "revision");
            rc = report_page(reader, range.ascending, row, user, ret_stop);
            if (range.ascending) {
                range.from = last + 1;
            }
            if (!range.ascending) {
                range.to = last - 1;
            }
            end = !range.ascending && last <= 1;
        }
        for (size_t i = 0; i < count; i++) {
            bson_destroy(reader->list[i]);
        }
        reader->count = 0;
        reader->left -= (uint32_t)count;
        end = end || count < range.limit;
        if (rc == NG_OK && reader->call->host->cancelled(reader->call)) {
            rc = ng_fail(reader->call, NG_ECANCELLED, "reading the history was cancelled");
        }
    }
    return rc;
}

int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct mongo *db = self;
    struct target target;
    int rc = target_load(db, call, key, &target);
    if (rc != NG_OK) {
        target_done(&target);
        return rc;
    }
    uint64_t newest = member_u64(target.doc, "notegate.revision");
    struct version_reader reader = {.db = db,
                                    .target = &target,
                                    .key = key,
                                    .call = call,
                                    .with_body = range->with_body,
                                    .left = range->limit};
    struct ng_range part = *range;
    bool stop = false;
    bool shows_newest = in_range(range, newest);
    if (part.from == 0) {
        part.from = 1;
    }
    if (part.to == 0 || part.to >= newest) {
        part.to = newest - 1;
    }
    if (shows_newest && !range->ascending && reader.left > 0) {
        rc = history_newest(&reader, row, user, &stop);
    }
    if (rc == NG_OK && !stop && part.to >= part.from && part.to > 0) {
        rc = history_pages(&reader, part, row, user, &stop);
    }
    if (rc == NG_OK && !stop && shows_newest && range->ascending && reader.left > 0) {
        rc = history_newest(&reader, row, user, &stop);
    }
    reader_done(&reader);
    target_done(&target);
    return rc;
}

/* ---- changes ---- */

struct feed {
    bson_t **list;
    size_t count, cap;
    int rc;
};

static int keep_event(void *user, const bson_t *event)
{
    struct feed *feed = user;
    feed->rc = array_reserve((void **)&feed->list, &feed->cap, feed->count + 1,
                             sizeof(*feed->list), UINT32_MAX);
    if (feed->rc != NG_OK) {
        return 1;
    }
    feed->list[feed->count++] = bson_copy(event);
    return 0;
}

void event_row(const bson_t *from, struct ng_event *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->seq = member_u64(from, "_id");
    ret->time_ms = member_i64(from, "time");
    ret->key.collection = member_str(from, "collection");
    ret->key.space = member_str(from, "space");
    ret->key.id = member_str(from, "id");
    ret->revision = member_u64(from, "revision");
    ret->agent = member_str(from, "agent");
    ret->tool = member_str(from, "tool");
    ret->action = member_str(from, "action");
    ret->data = member_str(from, "data");
}

int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user)
{
    struct mongo *db = self;
    struct feed feed = {0};
    struct fault fault;
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    if (limit == 0) {
        return NG_OK;
    }
    nest_i64(&filter, "_id", "$gt", since > INT64_MAX ? INT64_MAX : (int64_t)since);
    BSON_APPEND_BOOL(&filter, "quiet", false);
    nest_i32(&opts, "sort", "_id", 1);
    BSON_APPEND_INT64(&opts, "limit", limit);
    int rc = NG_OK;
    if (!op_find(db, OWN_EVENTS, &filter, &opts, keep_event, &feed, &fault)) {
        rc = fault_fail(call, &fault, "reading the changes");
    }
    if (rc == NG_OK && feed.rc != NG_OK) {
        rc = ng_fail(call, feed.rc, "no memory for the changes");
    }
    bool stop = false;
    for (size_t i = 0; i < feed.count && rc == NG_OK && !stop; i++) {
        struct ng_event one;
        event_row(feed.list[i], &one);
        stop = event(user, &one) != 0;
    }
    for (size_t i = 0; i < feed.count; i++) {
        bson_destroy(feed.list[i]);
    }
    free(feed.list);
    bson_destroy(&filter);
    bson_destroy(&opts);
    return rc;
}
