/* SPDX-License-Identifier: MIT */
/* export.c - exports everything as one snapshot, on servers without snapshots. First the
 * outboxes are emptied, then everything up to the last sequence number given by then is shown.
 * Versions never change, so writes may continue. Collections without history show their state
 * at the time they are read. */
#include <stdio.h>

#include "core/base/array.h"
#include "core/base/hash.h"
#include "db.h"

/* Documents held in memory at a time, and the longest wait for the outboxes to be emptied. */
#define STEP_DOCS 50
#define DRAIN_NAP_MS 10

struct export_state {
    struct mongo *db;
    struct ng_call *call;
    ng_record_fn *record;
    void *user;
    const struct db_collection *collection;
    uint64_t last_seq;
    bson_t *docs[STEP_DOCS];
    size_t count;
    struct bytes after;
    struct state state;
    struct ng_key key;
    uint64_t newest; /* the document's revision in the snapshot */
    uint64_t *seen;  /* hashes of the names already shown from the documents' own collections */
    size_t seen_count, seen_cap;
    int stop;
    int rc;
};

static int count_waiting(struct mongo *db, const struct db_collection *collection,
                         uint64_t until_stamp, uint64_t *ret, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t part;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "notegate.waiting", &part);
    BSON_APPEND_INT64(&part, "$gt", 0);
    BSON_APPEND_INT64(&part, "$lte", (int64_t)until_stamp);
    (void)bson_append_document_end(&filter, &part);
    (void)op_count(db, collection->name, &filter, ret, fault);
    bson_destroy(&filter);
    return fault->rc;
}

/* end_ms: compared with monotonic_ms(); 0: as long as the call lasts. */
static int drain(struct mongo *db, struct ng_call *call, uint32_t flags, int64_t end_ms)
{
    size_t count = 0;
    struct fault fault = {0};
    uint64_t until = stamp_next(db);
    int rc = NG_OK;
    struct db_collection **list = collections_list(db, &count);
    for (size_t i = 0; i < count && list != NULL && rc == NG_OK;) {
        uint64_t waiting = 0;
        if ((list[i]->flags & flags) == 0 && flags != 0) {
            i++;
            continue;
        }
        rc = count_waiting(db, list[i], until, &waiting, &fault);
        if (rc == NG_OK && waiting == 0) {
            i++;
        } else if (rc == NG_OK && call->host->cancelled(call)) {
            rc = ng_fail(call, NG_ECANCELLED, "waiting for the outboxes was cancelled");
        } else if (rc == NG_OK && end_ms != 0 && monotonic_ms() >= end_ms) {
            rc = ng_fail(call, NG_ETIMEOUT, "the outboxes are not empty yet; try again");
        } else if (rc == NG_OK) {
            relay_kick(db, list[i]);
            sleep_ms(DRAIN_NAP_MS);
        }
    }
    free(list);
    if (fault.rc != NG_OK) {
        return fault_fail(call, &fault, "waiting for the outboxes");
    }
    if (list != NULL) {
        return rc;
    }
    return ng_fail(call, NG_EINTERNAL, "no memory");
}

int relay_drain(struct mongo *db, struct ng_call *call)
{
    return drain(db, call, 0, 0);
}

int relay_settle(void *self, struct ng_call *call, uint32_t flags, int64_t wait_ms)
{
    return drain(self, call, flags, monotonic_ms() + wait_ms);
}

static int show(struct export_state *export, const struct ng_record *record)
{
    export->stop = export->record(export->user, record) != 0;
    return export->stop;
}

static void show_revision(struct export_state *export, struct ng_doc *doc, bool newest)
{
    struct ng_record record = {
        .size = sizeof(record), .kind = NG_RECORD_REVISION, .doc = doc, .newest = newest};
    (void)show(export, &record);
}

/* ---- the versions of one document, a page at a time ---- */

struct version_list {
    bson_t *list[STEP_DOCS];
    size_t count;
    uint64_t last_seq, newest;
};

static int keep_version(void *user, const bson_t *version)
{
    struct version_list *versions = user;
    uint64_t seq = member_u64(version, "seq");
    if (seq == 0 || seq > versions->last_seq) {
        return 1;
    }
    versions->list[versions->count++] = bson_copy(version);
    return versions->count == STEP_DOCS;
}

static int note_newest(void *user, const bson_t *version)
{
    struct version_list *versions = user;
    uint64_t seq = member_u64(version, "seq");
    if (seq != 0 && seq <= versions->last_seq) {
        versions->newest = member_u64(version, "revision");
        return 1;
    }
    return 0;
}

static int show_version(struct export_state *export, const bson_t *version)
{
    struct ng_doc doc;
    if (state_apply(&export->state, version) != NG_OK) {
        return ng_fail(export->call, NG_EUNAVAILABLE,
                       "the history of a document in %s is damaged: run `notegate verify`",
                       export->collection->name);
    }
    version_row(version, &export->key, &doc);
    doc.json = bytes_str(&export->state.json);
    doc.text = bytes_str(&export->state.text);
    show_revision(export, &doc, doc.revision == export->newest);
    return NG_OK;
}

static int show_history(struct export_state *export, const bson_t *main)
{
    struct fault fault;
    struct version_list versions = {.last_seq = export->last_seq};
    struct ng_range range = {.size = sizeof(range), .from = 1, .limit = UINT32_MAX};
    struct ng_str name = member_str(main, "_id");
    export->key.collection = ng_str_of(export->collection->name);
    export->key.space = member_str(main, "space");
    export->key.id = member_str(main, "notegate.id");
    int rc = versions_each(export->db, export->collection->name, name, NULL, &range,
                           note_newest, &versions, &fault);
    export->newest = versions.newest;
    export->state.revision = 0;
    range.ascending = true;
    range.with_body = true;
    bool more = versions.newest > 0;
    while (rc == NG_OK && more && !export->stop) {
        versions.count = 0;
        rc = versions_each(export->db, export->collection->name, name, NULL, &range,
                           keep_version, &versions, &fault);
        more = versions.count == STEP_DOCS;
        if (versions.count > 0) {
            range.from = member_u64(versions.list[versions.count - 1], "revision") + 1;
        }
        int shown = NG_OK;
        for (size_t i = 0; i < versions.count; i++) {
            if (shown == NG_OK && !export->stop) {
                shown = show_version(export, versions.list[i]);
            }
            bson_destroy(versions.list[i]);
        }
        if (shown != NG_OK) {
            return shown;
        }
    }
    if (rc == NG_OK) {
        return rc;
    }
    return fault_fail(export->call, &fault, "the export");
}

/* Without history: the present state. */
static int show_present(struct export_state *export, const bson_t *main)
{
    struct bytes json = {0};
    struct ng_doc doc;
    uint64_t created = member_u64(main, "notegate.created_event");
    int rc = body_row(export->collection, main, true, &json, &doc);
    if (rc == NG_OK && created > 0 && created <= export->last_seq && doc.revision > 0) {
        doc.created_seq = created;
        if (doc.seq == 0 || doc.seq > export->last_seq) {
            doc.seq = created;
        }
        show_revision(export, &doc, true);
    }
    bytes_done(&json);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(export->call, rc, "a document of %s cannot be read",
                   export->collection->name);
}

/* ---- documents ---- */

static int keep_doc(void *user, const bson_t *doc)
{
    struct export_state *export = user;
    export->docs[export->count++] = bson_copy(doc);
    return export->count == STEP_DOCS;
}

static int next_docs(struct export_state *export, const char *collection,
                     const char *of_collection)
{
    struct fault fault;
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    export->count = 0;
    nest_str(&filter, "_id", "$gt", bytes_str(&export->after));
    if (of_collection != NULL) {
        BSON_APPEND_UTF8(&filter, "collection", of_collection);
    }
    nest_i32(&opts, "sort", "_id", 1);
    BSON_APPEND_INT64(&opts, "limit", STEP_DOCS);
    bool good = op_find(export->db, collection, &filter, &opts, keep_doc, export, &fault);
    bson_destroy(&filter);
    bson_destroy(&opts);
    if (!good) {
        return fault_fail(export->call, &fault, "the export");
    }
    if (export->count == 0) {
        return NG_OK;
    }
    return bytes_set(&export->after, member_str(export->docs[export->count - 1], "_id"));
}

/* ---- tombstones may leave their collection while it is read: each is shown once ---- */

static int compare_hashes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int note_seen(struct export_state *export, const bson_t *doc)
{
    if (array_reserve((void **)&export->seen, &export->seen_cap, export->seen_count + 1,
                      sizeof(*export->seen), SIZE_MAX / 4 / sizeof(*export->seen)) != NG_OK) {
        return ng_fail(export->call, NG_EINTERNAL, "no memory for the export");
    }
    export->seen[export->seen_count++] = hash_fnv(HASH_FNV_BASIS, member_str(doc, "_id"));
    return NG_OK;
}

/* A tombstone that left its collection, shown under its name there. */
static int show_tombstone(struct export_state *export, const bson_t *tombstone)
{
    bson_t as_main = BSON_INITIALIZER;
    bson_t own;
    int rc = NG_OK;
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, member_str(tombstone, "document"));
    bool seen = export->seen_count > 0 && bsearch(&hash, export->seen, export->seen_count,
                                                  sizeof(hash), compare_hashes) != NULL;
    if (!seen && member_doc(tombstone, "notegate", &own)) {
        put_str(&as_main, "_id", member_str(tombstone, "document"));
        put_str(&as_main, "space", member_str(tombstone, "space"));
        BSON_APPEND_DOCUMENT(&as_main, "notegate", &own);
        rc = show_history(export, &as_main);
    }
    bson_destroy(&as_main);
    return rc;
}

static int export_docs(struct export_state *export, bool tombstones)
{
    const struct db_collection *collection = export->collection;
    bool history = (collection->flags & NG_COLLECTION_NO_HISTORY) == 0;
    int rc = NG_OK;
    bool more = true;
    export->after.len = 0;
    while (rc == NG_OK && more && !export->stop) {
        rc = next_docs(export, tombstones ? OWN_TOMBSTONES : collection->name,
                       tombstones ? collection->name : NULL);
        more = rc == NG_OK && export->count > 0;
        for (size_t i = 0; i < export->count; i++) {
            if (rc == NG_OK && !export->stop) {
                if (tombstones) {
                    rc = show_tombstone(export, export->docs[i]);
                } else if (history) {
                    rc = show_history(export, export->docs[i]);
                } else {
                    rc = show_present(export, export->docs[i]);
                }
                if (rc == NG_OK && collection->is_entry && !tombstones) {
                    rc = note_seen(export, export->docs[i]);
                }
            }
            bson_destroy(export->docs[i]);
        }
        if (rc == NG_OK && export->call->host->cancelled(export->call)) {
            rc = ng_fail(export->call, NG_ECANCELLED, "the export was cancelled");
        }
    }
    return rc;
}

/* ---- events, answers ---- */

static int report_event(void *user, const struct ng_event *event)
{
    struct export_state *export = user;
    if (event->seq > export->last_seq) {
        export->rc = 1; /* the end of the snapshot */
        return 1;
    }
    struct ng_record record = {.size = sizeof(record), .kind = NG_RECORD_EVENT, .event = event};
    export->newest = event->seq;
    return show(export, &record);
}

static int export_events(struct export_state *export)
{
    int rc = NG_OK;
    uint64_t since = 0;
    bool more = true;
    export->rc = 0;
    while (rc == NG_OK && more && export->rc == 0 && !export->stop) {
        export->newest = since;
        rc = read_changes(export->db, export->call, since, 200, report_event, export);
        more = export->newest != since;
        since = export->newest;
    }
    return rc;
}

static int export_answers(struct export_state *export)
{
    struct fault fault;
    bson_t filter = BSON_INITIALIZER;
    int rc = NG_OK;
    export->count = 0;
    BSON_APPEND_UTF8(&filter, "state", "kept");
    bson_t opts = BSON_INITIALIZER;
    nest_i32(&opts, "sort", "_id", 1);
    for (int64_t skip = 0; rc == NG_OK && !export->stop; skip += STEP_DOCS) {
        bson_t page;
        export->count = 0;
        bson_copy_to(&opts, &page);
        BSON_APPEND_INT64(&page, "skip", skip);
        BSON_APPEND_INT64(&page, "limit", STEP_DOCS);
        if (!op_find(export->db, OWN_ANSWERS, &filter, &page, keep_doc, export, &fault)) {
            rc = fault_fail(export->call, &fault, "the export");
        }
        bson_destroy(&page);
        size_t count = export->count;
        for (size_t i = 0; i < count; i++) {
            const bson_t *doc = export->docs[i];
            struct ng_answer answer = {
                .size = sizeof(answer),
                .scope = member_str(doc, "_id"),
                .body_hash = member_str(doc, "body_hash"),
                .reply = member_str(doc, "reply"),
                .time_ms = member_i64(doc, "time"),
                .expires_ms = member_i64(doc, "expires"),
            };
            struct ng_record record = {
                .size = sizeof(record), .kind = NG_RECORD_ANSWER, .answer = &answer};
            if (rc == NG_OK && !export->stop) {
                (void)show(export, &record);
            }
            bson_destroy(export->docs[i]);
        }
        if (count < STEP_DOCS) {
            break;
        }
    }
    bson_destroy(&opts);
    bson_destroy(&filter);
    return rc;
}

int export_run(void *self, struct ng_call *call, ng_record_fn *record, void *user)
{
    struct mongo *db = self;
    struct export_state export = {.db = db, .call = call, .record = record, .user = user};
    size_t count = 0;
    int rc = relay_drain(db, call);
    struct fault fault;
    if (rc == NG_OK && !last_seq_read(db, &fault)) {
        rc = fault_fail(call, &fault, "the export");
    }
    export.last_seq = atomic_load(&db->last_seq);
    struct db_collection **list = collections_list(db, &count);
    if (rc == NG_OK && list == NULL) {
        rc = ng_fail(call, NG_EINTERNAL, "no memory for the export");
    }
    for (size_t i = 0; i < count && rc == NG_OK && !export.stop; i++) {
        export.collection = list[i];
        export.seen_count = 0;
        rc = export_docs(&export, false);
        if (rc == NG_OK && list[i]->is_entry && !export.stop) {
            if (export.seen_count > 0) {
                qsort(export.seen, export.seen_count, sizeof(*export.seen), compare_hashes);
            }
            rc = export_docs(&export, true);
        }
    }
    free(list);
    if (rc == NG_OK && !export.stop) {
        rc = export_events(&export);
    }
    if (rc == NG_OK && !export.stop) {
        rc = export_answers(&export);
    }
    if (rc == NG_OK && !export.stop) {
        struct ng_record end = {
            .size = sizeof(end), .kind = NG_RECORD_SEQ, .seq = export.last_seq};
        (void)show(&export, &end);
    }
    free(export.seen);
    bytes_done(&export.after);
    state_done(&export.state);
    return rc;
}
