/* SPDX-License-Identifier: MIT */
/* export.c - exports everything as of one moment, however long it takes: a snapshot of the
 * server lasts some minutes. First the outboxes are emptied, then everything up to the last
 * sequence number given by then is shown. Versions never change, so writes may continue.
 * Collections without history show their state at the time they are read. */
#include <search.h>

#include "upkeep.h"

struct export_state {
    struct mongo *db;
    struct ng_call *call;
    ng_record_fn *record;
    void *user;
    const struct db_collection *collection;
    uint64_t last_seq;
    bool tombstones; /* shown are those that left their collection */
    void *seen;      /* names of the entries shown: a tombstone may leave meanwhile */
    struct state state;
    struct ng_key key;
    bson_t *held; /* the version read last, until it is known whether it is the newest */
    bool stop;
};

static bool show(struct export_state *export, struct ng_record record)
{
    record.size = sizeof(record);
    export->stop = export->record(export->user, &record) != 0;
    return export->stop;
}

static void show_revision(struct export_state *export, struct ng_doc *doc, bool newest)
{
    (void)show(export,
               (struct ng_record){.kind = NG_RECORD_REVISION, .doc = doc, .newest = newest});
}

static int export_walk(struct export_state *export, struct walk walk, struct fault *fault)
{
    walk.db = export->db;
    walk.call = export->call;
    walk.user = export;
    int rc = walk_documents(&walk, fault);
    if (rc == NG_ECANCELLED) {
        return fault_refuse(fault, rc, "it was cancelled");
    }
    return rc;
}

/* ---- the versions of one document ---- */

static int show_held(struct export_state *export, bool newest, struct fault *fault)
{
    struct ng_doc doc;
    if (export->held == NULL || export->stop) {
        return export->stop;
    }
    if (state_apply(&export->state, export->held) != NG_OK) {
        return fault_refuse(fault, NG_EUNAVAILABLE,
                            "the history of a document in %s is damaged: run `notegate verify`",
                            export->collection->name);
    }
    version_row(export->held, &export->key, &doc);
    doc.json = bytes_str(&export->state.json);
    doc.text = bytes_str(&export->state.text);
    show_revision(export, &doc, newest);
    return export->stop;
}

static int hold_version(void *user, const bson_t *version, struct fault *fault)
{
    struct export_state *export = user;
    int rc = show_held(export, false, fault);
    bson_destroy(export->held);
    export->held = bson_copy(version);
    return rc;
}

static int show_history(struct export_state *export, struct ng_str name, struct fault *fault)
{
    bson_t *range = version_range(export->collection->name, name, 1, UINT64_MAX);
    if (range == NULL) {
        return fault_refuse(fault, NG_EINTERNAL, "no memory");
    }
    bson_add(range, "kept:{$gt:i}, seq:{$gt:0, $lte:u}", KEPT_NONE, export->last_seq);
    struct walk walk = {.collection = OWN_VERSIONS, .filter = range, .each = hold_version};
    int rc = export_walk(export, walk, fault);
    if (rc == NG_OK) {
        rc = show_held(export, true, fault);
    }
    bson_destroy(export->held);
    export->held = NULL;
    return rc;
}

/* Without history: the present state. */
static int show_present(struct export_state *export, const bson_t *main, struct fault *fault)
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
    if (rc != NG_OK) {
        return fault_refuse(fault, rc, "a document of %s cannot be read",
                            export->collection->name);
    }
    return export->stop;
}

/* ---- documents, events, answers ---- */

static int by_text(const void *left, const void *right)
{
    return strcmp(left, right);
}

static int export_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct export_state *export = user;
    struct ng_str name = member_str(doc, "_id");
    export->key.collection = ng_str_of(export->collection->name);
    export->key.space = member_str(doc, "space");
    export->key.id = member_str(doc, "notegate.id");
    if ((export->collection->flags & NG_COLLECTION_NO_HISTORY) != 0) {
        return show_present(export, doc, fault);
    }
    if (export->tombstones) {
        name = member_str(doc, "document");
    }
    if (export->collection->is_entry) {
        if (tfind(name.data, &export->seen, by_text) != NULL) {
            return NG_OK;
        }
        char *copy = str_dup(name);
        if (copy == NULL || tsearch(copy, &export->seen, by_text) == NULL) {
            free(copy);
            return fault_refuse(fault, NG_EINTERNAL, "no memory");
        }
    }
    return show_history(export, name, fault);
}

static int export_event(void *user, const bson_t *doc, struct fault *fault)
{
    struct export_state *export = user;
    struct ng_event event;
    (void)fault;
    event_row(doc, &event);
    return event.seq > export->last_seq ||
           show(export, (struct ng_record){.kind = NG_RECORD_EVENT, .event = &event});
}

static int export_answer(void *user, const bson_t *doc, struct fault *fault)
{
    struct ng_answer answer = {
        .size = sizeof(answer),
        .scope = member_str(doc, "_id"),
        .body_hash = member_str(doc, "body_hash"),
        .reply = member_str(doc, "reply"),
        .time_ms = member_i64(doc, "time"),
        .expires_ms = member_i64(doc, "expires"),
    };
    (void)fault;
    return show(user, (struct ng_record){.kind = NG_RECORD_ANSWER, .answer = &answer});
}

/* The documents of the collection, then the tombstones that left it. */
static int export_collection(struct export_state *export, struct fault *fault)
{
    const char *name = export->collection->name;
    struct walk walk = {.collection = name, .each = export_doc};
    if ((export->collection->flags & NG_COLLECTION_NO_HISTORY) == 0) {
        walk.fields = bson_of("space:1, notegate.id:1");
    } else {
        walk.fields = bson_of("%:0, %:0", WORDS, TERMS);
    }
    export->tombstones = false;
    int rc = export_walk(export, walk, fault);
    if (rc == NG_OK && export->collection->is_entry && !export->stop) {
        export->tombstones = true;
        walk.collection = OWN_TOMBSTONES;
        walk.filter = bson_of("collection:t", name);
        walk.fields = bson_of("document:1, space:1, notegate.id:1");
        rc = export_walk(export, walk, fault);
    }
    tdestroy(export->seen, free);
    export->seen = NULL;
    return rc;
}

int export_run(void *self, struct ng_call *call, ng_record_fn *record, void *user)
{
    struct mongo *db = self;
    struct export_state export = {.db = db, .call = call, .record = record, .user = user};
    struct fault fault = {0};
    int rc = relay_drain(db, call);
    if (rc != NG_OK) {
        return rc;
    }
    if (!last_seq_read(db, &fault)) {
        rc = fault.rc;
    }
    export.last_seq = atomic_load(&db->last_seq);
    while (rc == NG_OK && !export.stop &&
           (export.collection = collection_next(db, export.collection)) != NULL) {
        rc = export_collection(&export, &fault);
    }
    if (rc == NG_OK && !export.stop) {
        struct walk events = {
            .collection = OWN_EVENTS, .filter = bson_of("quiet:F"), .each = export_event};
        rc = export_walk(&export, events, &fault);
    }
    if (rc == NG_OK && !export.stop) {
        struct walk answers = {.collection = OWN_ANSWERS, .each = export_answer};
        rc = export_walk(&export, answers, &fault);
    }
    if (rc == NG_OK && !export.stop) {
        (void)show(&export, (struct ng_record){.kind = NG_RECORD_SEQ, .seq = export.last_seq});
    }
    state_done(&export.state);
    return fault_end(call, rc, &fault, "the export");
}
