/* SPDX-License-Identifier: MIT */
/* read.c - one document, its history, and the feed of changes. */
#include "read.h"

#include <stdio.h>

int doc_load(struct mongo *db, const struct db_collection *collection, struct ng_str space,
             struct ng_str name, bool confirmed, bson_t **ret, struct fault *fault)
{
    bson_t *opts = bson_of("projection:{%:0, %:0}", WORDS, TERMS);
    if (confirmed) {
        (void)linearizable(opts);
    }
    *ret = op_find_one(db, NULL, collection->name, bson_of("_id:s, space:s", name, space), opts,
                       fault);
    int rc = fault->rc;
    if (rc == NG_OK && *ret == NULL) {
        rc = tombstone_load(db, NULL, collection, name, ret, fault);
    }
    if (rc == NG_OK && *ret == NULL) {
        return NG_ENOTFOUND;
    }
    return rc;
}

struct target {
    const struct db_collection *collection;
    struct bytes name;
    bson_t *doc;
};

static int target_load(struct mongo *db, struct ng_call *call, const struct ng_key *key,
                       bool confirmed, struct target *ret)
{
    struct fault fault = {0};
    memset(ret, 0, sizeof(*ret));
    ret->collection = collection_find(db, key->collection);
    int rc = NG_ENOTFOUND;
    if (ret->collection != NULL) {
        rc = name_document(ret->collection, key->space, key->id, &ret->name);
    }
    if (rc == NG_OK) {
        rc = entry_load(db, ret->collection, key->space, bytes_str(&ret->name), confirmed,
                        &ret->doc, &fault);
    }
    if (rc == NG_ENOTFOUND || rc == NG_EINVAL) { /* no name is invalid UTF-8 */
        return ng_fail(call, NG_ENOTFOUND, "there is no such document");
    }
    return fault_end(call, rc, &fault, "reading a document");
}

static void target_done(struct target *target)
{
    bytes_done(&target->name);
    bson_destroy(target->doc);
}

/* Positive: the caller wants no more. */
static int report_newest(struct ng_call *call, const struct target *target, bool with_body,
                         ng_row_fn *row, void *user)
{
    struct bytes json = {0};
    struct ng_doc doc;
    int rc = body_row(target->collection, target->doc, with_body, &json, &doc);
    if (!with_body) {
        doc.json = str_of(NULL, 0);
    }
    if (rc == NG_OK) {
        rc = row(user, &doc) != 0;
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

/* Rows of a history are kept in pages until the client is released, as callbacks may read
 * again. */
#define HISTORY_PAGE 32

struct history {
    struct mongo *db;
    struct ng_call *call;
    const struct target *target;
    const struct ng_key *key;
    bool with_body, stop;
    bool splices;  /* they are given where the row before is that of the revision before */
    uint64_t last; /* revision of the row before; 0: none */
    struct state state;
    ng_row_fn *row;
    void *user;
};

/* Builds the content of a revision in history->state. */
static int load_state(struct history *history, uint64_t revision)
{
    struct fault fault = {0};
    const struct target *target = history->target;
    int rc = version_load(history->db, target->collection->name, bytes_str(&target->name),
                          target->doc, revision, &history->state, &fault);
    return rc == NG_OK ? rc : fail_version(history->call, rc, &fault);
}

/* The content of the row at `at` of the page, kept in `bodies` beside those of the others. */
static int load_body(struct history *history, const struct docs *page, size_t at,
                     struct bytes *bodies)
{
    const struct state *state = &history->state;
    int rc = load_state(history, member_u64(page->list[at], "revision"));
    if (rc == NG_OK && (bytes_set(&bodies[2 * at], bytes_str(&state->json)) != NG_OK ||
                        bytes_set(&bodies[2 * at + 1], bytes_str(&state->text)) != NG_OK)) {
        rc = ng_fail(history->call, NG_EINTERNAL, "no memory for the history");
    }
    return rc;
}

/* The contents are built from the oldest on, as each splice is applied to the version before
 * it. */
static int show_rows(struct history *history, const struct docs *page, bool ascending)
{
    struct bytes bodies[2 * HISTORY_PAGE] = {0};
    int rc = NG_OK;
    for (size_t i = 0; i < page->count && rc == NG_OK && history->with_body; i++) {
        rc = load_body(history, page, ascending ? i : page->count - 1 - i, bodies);
    }
    for (size_t i = 0; i < page->count && rc == NG_OK && !history->stop; i++) {
        struct ng_doc doc;
        version_row(page->list[i], history->key, &doc);
        if (history->with_body) {
            doc.json = bytes_str(&bodies[2 * i]);
            doc.text = bytes_str(&bodies[2 * i + 1]);
        }
        history->stop = history->row(history->user, &doc) != 0;
    }
    for (size_t i = 0; i < NG_COUNT(bodies); i++) {
        bytes_done(&bodies[i]);
    }
    return rc;
}

/* The rows as they are stored, contents and splices; the content of one whose base was not
 * shown is built. */
static int show_splices(struct history *history, const struct docs *page)
{
    int rc = NG_OK;
    for (size_t i = 0; i < page->count && rc == NG_OK && !history->stop; i++) {
        const bson_t *version = page->list[i];
        struct ng_doc doc;
        version_row(version, history->key, &doc);
        struct ng_splice splice = {member_u64(version, "text_at"),
                                   member_u64(version, "text_removed"),
                                   member_str(version, "text")};
        if (member_i64(version, "kept") == KEPT_WHOLE) {
            doc.json = member_str(version, "json");
            doc.text = member_str(version, "text");
        } else if (history->last > 0 && history->last + 1 == doc.revision) {
            doc.text_splice = &splice;
        } else {
            rc = load_state(history, doc.revision);
            doc.json = bytes_str(&history->state.json);
            doc.text = bytes_str(&history->state.text);
        }
        if (rc == NG_OK) {
            history->stop = history->row(history->user, &doc) != 0;
        }
        history->last = doc.revision;
    }
    return rc;
}

/* *ret_last: the revision of the last row; 0: there were none. */
static int show_page(struct history *history, const struct ng_range *range, size_t *ret_count,
                     uint64_t *ret_last)
{
    struct fault fault;
    struct docs page = {.most = HISTORY_PAGE};
    const struct target *target = history->target;
    int rc = versions_each(history->db, target->collection->name, bytes_str(&target->name),
                           target->doc, range, docs_keep, &page, &fault);
    rc = int_min(rc, page.rc);
    *ret_count = page.count;
    *ret_last = 0;
    if (page.count > 0) {
        *ret_last = member_u64(page.list[page.count - 1], "revision");
    }
    if (rc != NG_OK) {
        rc = fail_version(history->call, rc, &fault);
    } else if (history->splices) {
        rc = show_splices(history, &page);
    } else {
        rc = show_rows(history, &page, range->ascending);
    }
    docs_done(&page);
    return rc;
}

int read_get(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
             ng_row_fn *row, void *user)
{
    struct mongo *db = self;
    struct target target;
    int rc = target_load(db, call, key, false, &target);
    if (rc == NG_OK && (revision == 0 || revision == member_u64(target.doc, REVISION))) {
        rc = int_min(report_newest(call, &target, true, row, user), NG_OK);
    } else if (rc == NG_OK) {
        struct history history = {.db = db,
                                  .call = call,
                                  .target = &target,
                                  .key = key,
                                  .with_body = true,
                                  .row = row,
                                  .user = user};
        struct ng_range range = {
            .size = sizeof(range), .from = revision, .to = revision, .limit = 1};
        size_t count = 0;
        rc = show_page(&history, &range, &count, &revision);
        if (rc == NG_OK && count == 0) {
            rc = fail_version(call, NG_ENOTFOUND, &(struct fault){0});
        }
        state_done(&history.state);
    }
    target_done(&target);
    return rc;
}

int read_confirm(void *self, struct ng_call *call, const struct ng_key *key, ng_row_fn *row,
                 void *user)
{
    struct target target;
    int rc = target_load(self, call, key, true, &target);
    if (rc == NG_OK) {
        rc = int_min(report_newest(call, &target, true, row, user), NG_OK);
    }
    target_done(&target);
    return rc;
}

/* ---- history ---- */

/* The row of the newest revision with what only its version has. */
struct newest_row {
    const bson_t *version; /* NULL: the collection keeps none */
    ng_row_fn *row;
    void *user;
};

static int newest_row_show(void *user, const struct ng_doc *row)
{
    const struct newest_row *newest = user;
    struct ng_doc shown = *row;
    if (newest->version != NULL) {
        version_origin(newest->version, &shown);
    }
    return newest->row(newest->user, &shown);
}

/* The newest revision: its content is in the document, its origin in its version. */
static int history_newest(struct history *history, uint32_t *left)
{
    const struct target *target = history->target;
    uint64_t revision = member_u64(target->doc, REVISION);
    struct ng_range range = {
        .size = sizeof(range), .from = revision, .to = revision, .limit = 1};
    struct docs found = {.count = 0};
    struct fault fault;
    if (*left == 0 || history->stop) {
        return NG_OK;
    }
    (*left)--;
    int rc = versions_each(history->db, target->collection->name, bytes_str(&target->name),
                           target->doc, &range, docs_keep, &found, &fault);
    rc = int_min(rc, found.rc);
    if (rc != NG_OK) {
        rc = fail_version(history->call, rc, &fault);
    } else {
        struct newest_row newest = {found.count > 0 ? found.list[0] : NULL, history->row,
                                    history->user};
        rc = report_newest(history->call, target, history->with_body, newest_row_show, &newest);
    }
    docs_done(&found);
    history->stop = rc > 0;
    return int_min(rc, NG_OK);
}

static int history_pages(struct history *history, struct ng_range range, uint32_t *left)
{
    int rc = NG_OK;
    bool end = range.to == 0 || range.to < range.from;
    while (rc == NG_OK && !history->stop && !end && *left > 0) {
        size_t count = 0;
        uint64_t last = 0;
        range.limit = u32_min(*left, HISTORY_PAGE);
        rc = show_page(history, &range, &count, &last);
        *left -= (uint32_t)count;
        end = count < range.limit;
        if (range.ascending) {
            range.from = last + 1;
        } else {
            range.to = last - 1;
            end = end || last <= 1;
        }
        if (rc == NG_OK && history->call->host->cancelled(history->call)) {
            rc = ng_fail(history->call, NG_ECANCELLED, "reading the history was cancelled");
        }
    }
    return rc;
}

int read_history(void *self, struct ng_call *call, const struct ng_key *key,
                 const struct ng_range *range, ng_row_fn *row, void *user)
{
    struct target target;
    struct history history = {.db = self,
                              .call = call,
                              .target = &target,
                              .key = key,
                              .with_body = range->with_body,
                              .row = row,
                              .user = user};
    history.splices = NG_HAS(range, flags) && (range->flags & NG_RANGE_SPLICES) != 0 &&
                      range->with_body && range->ascending;
    struct ng_range part = *range;
    uint32_t left = range->limit;
    int rc = target_load(self, call, key, false, &target);
    if (rc == NG_OK) {
        uint64_t newest = member_u64(target.doc, REVISION);
        bool shows_newest = newest >= range->from && (range->to == 0 || newest <= range->to);
        part.with_body = history.splices;
        part.from = u64_max(range->from, 1);
        if (part.to == 0 || part.to >= newest) {
            part.to = newest - 1;
        }
        if (shows_newest && !range->ascending) {
            rc = history_newest(&history, &left);
        }
        if (rc == NG_OK) {
            rc = history_pages(&history, part, &left);
        }
        if (rc == NG_OK && shows_newest && range->ascending) {
            rc = history_newest(&history, &left);
        }
    }
    state_done(&history.state);
    target_done(&target);
    return rc;
}

/* ---- changes ---- */

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
    ret->origin = origin_of(from);
    ret->gateway = member_str(from, "gateway");
}

/* A mongos does not tell of an election in the shard that has the events. */
static int confirm_changes(struct mongo *db, uint64_t since, struct fault *fault)
{
    uint64_t last = atomic_load(&db->last_seq);
    if (db->sharded && last > since) {
        bson_destroy(op_find_one(db, NULL, OWN_EVENTS, bson_of("_id:u", last),
                                 linearizable(bson_new()), fault));
    }
    return fault->rc;
}

static int find_changes(struct mongo *db, uint64_t since, uint32_t limit, struct docs *events,
                        struct fault *fault)
{
    if (limit > 0) {
        (void)op_find(
            db, NULL, OWN_EVENTS, bson_of("quiet:F, _id:{$gt:u}", u64_min(since, INT64_MAX)),
            bson_of("sort:{_id:1}, limit:l", (int64_t)limit), docs_keep, events, fault);
    }
    return int_min(fault->rc, events->rc);
}

int read_changes(void *self, struct ng_call *call, uint64_t since, uint32_t limit,
                 ng_event_fn *event, void *user)
{
    struct mongo *db = self;
    struct docs events = {0};
    struct fault fault = {0};
    uint64_t doubts = atomic_load(&db->doubts);
    int rc;
    do {
        docs_done(&events);
        rc = confirm_changes(db, since, &fault);
        if (rc == NG_OK) {
            rc = find_changes(db, since, limit, &events, &fault);
        }
    } while (rc == NG_OK && doubts_grew(db, &doubts) && !call->host->cancelled(call));
    for (size_t i = 0; i < events.count && rc == NG_OK; i++) {
        struct ng_event one;
        event_row(events.list[i], &one);
        last_seq_saw(db, one.seq);
        if (event(user, &one) != 0) {
            break;
        }
    }
    docs_done(&events);
    return fault_end(call, rc, &fault, "reading the changes");
}
