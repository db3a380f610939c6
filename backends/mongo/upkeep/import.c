/* SPDX-License-Identifier: MIT */
/* import.c - fills an empty store from an export. A mark is stored while an import runs, and
 * gateways that see it refuse to serve. If it was interrupted, the next one first deletes what
 * it left, by the name that an import gives to its batch: never what a gateway has stored. */
#include "upkeep.h"

/* Documents and bytes sent to the server at once. */
#define BUFFER_DOCS 200
#define BUFFER_BYTES ((size_t)8 * 1024 * 1024)
/* The batch of all that an import stores. */
#define BATCH "import"

enum { BUFFER_VERSIONS, BUFFER_MAINS, BUFFER_EVENTS, BUFFER_ANSWERS, BUFFERS };

struct buffer {
    const char *collection;
    struct docs docs;
};

struct import {
    struct buffer buffers[BUFFERS];
    struct state state; /* of the current document */
    struct bytes name;
    const struct db_collection *collection;
    uint64_t last_seq, last_event;
};

static int buffer_flush(struct mongo *db, struct buffer *buffer, struct fault *fault)
{
    if (buffer->docs.count > 0) {
        collection_prepare(db, buffer->collection);
        (void)op_insert_many(db, NULL, buffer->collection, (void *)buffer->docs.list,
                             buffer->docs.count, fault);
    }
    docs_clear(&buffer->docs);
    return fault->rc;
}

/* Takes the document. */
static int buffer_add(struct mongo *db, size_t at, const char *collection, bson_t *doc,
                      struct fault *fault)
{
    struct buffer *buffer = &db->import->buffers[at];
    if (buffer->docs.is_full || buffer->collection != collection) {
        (void)buffer_flush(db, buffer, fault);
    }
    buffer->collection = collection;
    buffer->docs.most = BUFFER_DOCS;
    buffer->docs.bytes_most = BUFFER_BYTES;
    (void)docs_add(&buffer->docs, doc);
    if (buffer->docs.rc != NG_OK) {
        return fault_refuse(fault, buffer->docs.rc, "no memory");
    }
    return fault->rc;
}

void import_drop(struct mongo *db)
{
    struct import *import = db->import;
    if (import != NULL) {
        for (size_t i = 0; i < BUFFERS; i++) {
            docs_done(&import->buffers[i].docs);
        }
        state_done(&import->state);
        bytes_done(&import->name);
        free(import);
        db->import = NULL;
    }
}

/* ---- beginning ---- */

static void clear_all(struct mongo *db, struct fault *fault)
{
    static const char *const own[] = {OWN_VERSIONS, OWN_EVENTS, OWN_ANSWERS};
    struct db_collection *collection = NULL;
    bool good = op_delete(db, NULL, OWN_TOMBSTONES, bson_of("notegate.batch:t", BATCH), true,
                          NULL, fault);
    while (good && (collection = collection_next(db, collection)) != NULL) {
        good = op_delete(db, NULL, collection->name, bson_of("notegate.batch:t", BATCH), true,
                         NULL, fault);
    }
    for (size_t i = 0; i < NG_COUNT(own) && good; i++) {
        good = op_delete(db, NULL, own[i], bson_of("batch:t", BATCH), true, NULL, fault);
    }
    atomic_store(&db->last_seq, 0);
}

/* Nothing is there; after an interrupted import, nothing besides what it left. */
static void check_empty(struct mongo *db, bool interrupted, struct fault *fault)
{
    struct db_collection *collection = NULL;
    const char *left = interrupted ? BATCH : "";
    bson_t *found =
        op_find_one(db, NULL, OWN_EVENTS, bson_of("batch:{$ne:t}", left), NULL, fault);
    while (fault->rc == NG_OK && found == NULL &&
           (collection = collection_next(db, collection)) != NULL) {
        found = op_find_one(db, NULL, collection->name, bson_of("notegate.batch:{$ne:t}", left),
                            NULL, fault);
    }
    if (found != NULL) {
        (void)fault_refuse(fault, NG_EINVAL,
                           "the database %s on MongoDB at %s is not empty: an import needs an "
                           "empty one, name another in mongo.database",
                           db->database, db->where);
    }
    bson_destroy(found);
}

int import_begin(void *self, struct ng_call *call)
{
    struct mongo *db = self;
    struct fault fault;
    if (db->import != NULL) {
        return ng_fail(call, NG_EINVAL, "an import is running");
    }
    bson_t *former = op_find_one(db, NULL, OWN_META, restore_mark(), NULL, &fault);
    atomic_store(&db->importing, true);
    if (fault.rc == NG_OK) {
        check_empty(db, former != NULL, &fault);
    }
    if (fault.rc == NG_OK &&
        op_upsert(db, NULL, OWN_META, restore_mark(), bson_of("$set:{gateway:t}", db->gateway),
                  NULL, &fault)) {
        db->import = calloc(1, sizeof(*db->import));
        if (db->import == NULL) {
            (void)fault_refuse(&fault, NG_EINTERNAL, "no memory");
        }
    }
    if (fault.rc == NG_OK && former != NULL) {
        clear_all(db, &fault);
    }
    if (fault.rc != NG_OK) {
        import_drop(db);
        atomic_store(&db->importing, false);
    }
    bson_destroy(former);
    return fault_end(call, fault.rc, &fault, "the import");
}

/* ---- records ---- */

/* The collection and the name of a document. NULL: it has none here. */
static const struct db_collection *place(struct mongo *db, const struct ng_key *key,
                                         struct bytes *ret_name, struct fault *fault)
{
    const struct db_collection *collection = collection_find(db, key->collection);
    if (collection == NULL) {
        (void)fault_refuse(fault, NG_EINVAL, "no plugin here declares the collection \"%.*s\"",
                           str_clip(key->collection, NG_COLLECTION_MAX), key->collection.data);
    } else if (name_document(collection, key->space, key->id, ret_name) != NG_OK) {
        (void)fault_refuse(fault, NG_EINVAL, "a document's space or id is not UTF-8");
        collection = NULL;
    }
    return collection;
}

static int add_main(struct mongo *db, const struct ng_record *record,
                    const struct prepared *prepared, const struct ng_put *put,
                    struct fault *fault)
{
    const char *collection = prepared->collection->name;
    bson_t outbox = BSON_INITIALIZER;
    bson_t made;
    int rc = body_insert(record->doc, prepared, put, &outbox, 0, BATCH,
                         (uint64_t)clock_unix_ms(), &made);
    bson_t *doc = bson_copy(&made);
    bson_destroy(&made);
    if (rc == NG_OK) {
        return buffer_add(db, BUFFER_MAINS, collection, doc, fault);
    }
    bson_destroy(doc);
    return fault_refuse(fault, rc,
                        "the document \"%.*s\" of %s has %zu bytes, more than " DOCUMENT_LIMIT,
                        str_clip(put->key.id, 100), put->key.id.data, collection,
                        (size_t)put->json.len + put->text.len);
}

static int add_version(struct mongo *db, const struct ng_record *record,
                       const struct prepared *prepared, const struct ng_put *put,
                       struct fault *fault)
{
    const char *collection = prepared->collection->name;
    struct ng_str name = bytes_str(&prepared->name);
    struct bytes ref = {0};
    bson_t outbox = BSON_INITIALIZER;
    bson_t entry;
    int rc = name_version(collection, name, put->revision, &ref);
    (void)outbox_add(&outbox, 0, put, prepared->hash, BATCH, 0);
    if (rc == NG_OK && member_doc(&outbox, "0", &entry)) {
        rc = buffer_add(db, BUFFER_VERSIONS, OWN_VERSIONS,
                        version_bson(collection, name, bytes_str(&ref), record->doc->seq,
                                     record->doc->created_seq, &entry),
                        fault);
    }
    bson_destroy(&outbox);
    bytes_done(&ref);
    return rc;
}

static int add_revision(struct mongo *db, const struct ng_record *record, struct fault *fault)
{
    struct import *import = db->import;
    struct state *state = &import->state;
    struct bytes name = {0};
    struct ng_put put;
    struct prepared prepared = {.collection = place(db, &record->doc->key, &name, fault)};
    bool same = prepared.collection == import->collection &&
                str_equal(bytes_str(&name), bytes_str(&import->name));
    bytes_done(&import->name);
    import->name = prepared.name = name;
    import->collection = prepared.collection;
    if (fault->rc != NG_OK) {
        return fault->rc;
    }
    if (!same) {
        state_done(state);
    }
    put_of_record(record, bytes_str(&state->json), bytes_str(&state->text), &put);
    if (state->revision + 1 != put.revision) {
        put.base_revision = 0; /* no base for a splice: stored whole */
    }
    content_hash(CONTENT_HASH_ROTATED, put.json, put.text, put.deleted, prepared.hash);
    int rc = NG_OK;
    if (!put.no_history) {
        rc = add_version(db, record, &prepared, &put, fault);
    }
    if (rc == NG_OK && record->newest) {
        rc = add_main(db, record, &prepared, &put, fault);
    }
    if (rc == NG_OK && (bytes_set(&state->json, put.json) != NG_OK ||
                        bytes_set(&state->text, put.text) != NG_OK)) {
        rc = fault_refuse(fault, NG_EINTERNAL, "no memory");
    }
    state->revision = put.revision;
    import->last_seq = u64_max(record->doc->seq, import->last_seq);
    return rc;
}

static int add_event(struct mongo *db, const struct ng_event *event, struct fault *fault)
{
    struct import *import = db->import;
    struct bytes name = {0};
    struct bytes ref = {0};
    const struct db_collection *collection = place(db, &event->key, &name, fault);
    if (collection != NULL &&
        name_version(collection->name, bytes_str(&name), event->revision, &ref) == NG_OK) {
        bson_t *doc = event_bson(event, bytes_str(&ref), bytes_str(&name));
        bson_add(doc, "quiet:F, batch:t", BATCH);
        (void)buffer_add(db, BUFFER_EVENTS, OWN_EVENTS, doc, fault);
    }
    import->last_event = u64_max(event->seq, import->last_event);
    import->last_seq = u64_max(event->seq, import->last_seq);
    bytes_done(&name);
    bytes_done(&ref);
    return fault->rc;
}

static int add_record(struct mongo *db, const struct ng_record *record, struct fault *fault)
{
    bson_t *doc;
    switch (record->kind) {
    case NG_RECORD_REVISION:
        return add_revision(db, record, fault);
    case NG_RECORD_EVENT:
        return add_event(db, record->event, fault);
    case NG_RECORD_ANSWER:
        doc = bson_new();
        answer_doc(record->answer, doc);
        bson_add(doc, "batch:t", BATCH);
        return buffer_add(db, BUFFER_ANSWERS, OWN_ANSWERS, doc, fault);
    case NG_RECORD_SEQ:
        db->import->last_seq = u64_max(record->seq, db->import->last_seq);
        return NG_OK;
    }
    return fault_refuse(fault, NG_EINVAL, "a record has the unknown kind %d",
                        (int)record->kind);
}

int import_record(void *self, struct ng_call *call, const struct ng_record *record)
{
    struct fault fault = {0};
    return fault_end(call, add_record(self, record, &fault), &fault, "the import");
}

/* ---- the end ---- */

/* Keeps the last sequence number in an event that is never shown. */
static void keep_seq(struct mongo *db, struct fault *fault)
{
    struct import *import = db->import;
    if (import->last_seq > import->last_event) {
        bson_t *doc = bson_of("_id:u, ref:t, batch:t, quiet:T, time:d", import->last_seq, BATCH,
                              BATCH, clock_unix_ms());
        (void)op_insert(db, NULL, OWN_EVENTS, doc, fault);
        bson_destroy(doc);
    }
}

int import_end(void *self, struct ng_call *call, bool keep)
{
    struct mongo *db = self;
    struct fault fault = {0};
    struct fault ended = {0};
    uint64_t last_seq = db->import->last_seq;
    for (size_t i = 0; i < BUFFERS && keep && fault.rc == NG_OK; i++) {
        (void)buffer_flush(db, &db->import->buffers[i], &fault);
    }
    if (keep && fault.rc == NG_OK) {
        keep_seq(db, &fault);
    }
    import_drop(db);
    if (!keep || fault.rc != NG_OK) {
        clear_all(db, &ended);
        last_seq = 0;
    }
    if (ended.rc == NG_OK &&
        op_delete(db, NULL, OWN_META, restore_mark(), false, NULL, &ended)) {
        atomic_store(&db->last_seq, last_seq);
        atomic_store(&db->half_restored, false);
    }
    atomic_store(&db->importing, false);
    if (fault.rc == NG_OK) {
        fault = ended;
    }
    return fault_end(call, fault.rc, &fault, "the import");
}
