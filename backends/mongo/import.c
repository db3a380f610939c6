/* SPDX-License-Identifier: MIT */
/* import.c - fills an empty store from an export. A mark is stored while an import runs: if it
 * was interrupted, the next one first deletes what it left. */
#include <stdio.h>
#include <time.h>

#include "db.h"

/* Documents and bytes sent to the server at once. */
#define BUFFER_DOCS 200
#define BUFFER_BYTES ((size_t)8 * 1024 * 1024)

struct buffer {
    char collection[NG_COLLECTION_MAX + 1];
    bson_t *docs[BUFFER_DOCS];
    size_t count, bytes;
};

struct import {
    struct buffer versions, mains, events, answers;
    struct state state; /* of the current document */
    struct bytes name;
    const struct db_collection *collection;
    uint64_t last_seq, last_event;
    bool whole; /* its newest revision was read */
};

static int buffer_flush(struct mongo *db, struct ng_call *call, struct buffer *buffer)
{
    struct fault fault = {0};
    const bson_t *docs[BUFFER_DOCS];
    for (size_t i = 0; i < buffer->count; i++) {
        docs[i] = buffer->docs[i];
    }
    bool good = op_insert_many(db, buffer->collection, docs, buffer->count, true, &fault);
    for (size_t i = 0; i < buffer->count; i++) {
        bson_destroy(buffer->docs[i]);
    }
    buffer->count = 0;
    buffer->bytes = 0;
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "the import");
}

/* Takes ownership of the document. */
static int buffer_add(struct mongo *db, struct ng_call *call, struct buffer *buffer,
                      const char *collection, bson_t *doc)
{
    int rc = NG_OK;
    if (buffer->count == BUFFER_DOCS || buffer->bytes + doc->len > BUFFER_BYTES ||
        strcmp(buffer->collection, collection) != 0) {
        rc = buffer_flush(db, call, buffer);
    }
    (void)snprintf(buffer->collection, sizeof(buffer->collection), "%s", collection);
    buffer->docs[buffer->count++] = doc;
    buffer->bytes += doc->len;
    return rc;
}

static void buffer_done(struct buffer *buffer)
{
    for (size_t i = 0; i < buffer->count; i++) {
        bson_destroy(buffer->docs[i]);
    }
    buffer->count = 0;
}

void import_drop(struct mongo *db)
{
    struct import *import = db->import;
    if (import != NULL) {
        buffer_done(&import->versions);
        buffer_done(&import->mains);
        buffer_done(&import->events);
        buffer_done(&import->answers);
        state_done(&import->state);
        bytes_done(&import->name);
        free(import);
        db->import = NULL;
    }
}

/* ---- beginning ---- */

static const char *const own_collections[] = {OWN_VERSIONS, OWN_EVENTS,      OWN_ANSWERS,
                                              OWN_INTENTS,  OWN_INTENT_PUTS, OWN_TOMBSTONES};

static int clear_all(struct mongo *db, struct ng_call *call)
{
    struct fault fault;
    size_t count = 0;
    bson_t all = BSON_INITIALIZER;
    struct db_collection **list = collections_list(db, &count);
    bool good = list != NULL;
    for (size_t i = 0; i < count && good; i++) {
        good = op_delete(db, list[i]->name, &all, true, NULL, &fault);
    }
    for (size_t i = 0; i < NG_COUNT(own_collections) && good; i++) {
        good = op_delete(db, own_collections[i], &all, true, NULL, &fault);
    }
    bson_destroy(&all);
    free(list);
    if (list == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the import");
    }
    atomic_store(&db->last_seq, 0);
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "removing an import");
}

static int check_empty(struct mongo *db, struct ng_call *call)
{
    struct fault fault = {0};
    size_t count = 0;
    uint64_t found = 0;
    bson_t all = BSON_INITIALIZER;
    struct db_collection **list = collections_list(db, &count);
    bool good = list != NULL;
    for (size_t i = 0; i < count && good && found == 0; i++) {
        good = op_count(db, list[i]->name, &all, &found, &fault);
    }
    good = good && (found > 0 || op_count(db, OWN_EVENTS, &all, &found, &fault));
    bson_destroy(&all);
    free(list);
    if (!good) {
        return fault_fail(call, &fault, "the import");
    }
    if (found == 0) {
        return NG_OK;
    }
    return ng_fail(call, NG_EINVAL,
                   "the database %s on MongoDB at %s is not empty: an import needs "
                   "an empty one, name another in mongo.database",
                   db->database, db->where);
}

static void mark_filter(bson_t *filter)
{
    bson_init(filter);
    BSON_APPEND_UTF8(filter, "_id", "import");
}

static int mark_set(struct mongo *db, struct ng_call *call)
{
    struct fault fault;
    bson_t mark;
    mark_filter(&mark);
    bool good = op_insert(db, OWN_META, &mark, &fault) || fault.duplicate;
    bson_destroy(&mark);
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "the import");
}

static int mark_clear(struct mongo *db, struct ng_call *call)
{
    struct fault fault;
    bson_t mark;
    mark_filter(&mark);
    bool good = op_delete(db, OWN_META, &mark, false, NULL, &fault);
    bson_destroy(&mark);
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "the import");
}

int import_begin(void *self, struct ng_call *call)
{
    struct mongo *db = self;
    struct fault fault;
    bson_t filter;
    if (db->import != NULL) {
        return ng_fail(call, NG_EINVAL, "an import is running");
    }
    mark_filter(&filter);
    bson_t *mark = op_find_one(db, OWN_META, &filter, NULL, &fault);
    bson_destroy(&filter);
    int rc = NG_OK;
    if (fault.rc != NG_OK) {
        rc = fault_fail(call, &fault, "the import");
    }
    if (mark != NULL) {
        bson_destroy(mark);
        rc = clear_all(db, call); /* left by an interrupted import */
    } else if (rc == NG_OK) {
        rc = check_empty(db, call);
    }
    if (rc == NG_OK) {
        rc = mark_set(db, call);
    }
    if (rc == NG_OK) {
        db->import = calloc(1, sizeof(*db->import));
        if (db->import != NULL) {
            rc = NG_OK;
        } else {
            rc = ng_fail(call, NG_EINTERNAL, "no memory for the import");
        }
    }
    return rc;
}

/* ---- revisions ---- */

static void put_of(const struct ng_record *record, struct ng_put *put)
{
    const struct ng_doc *doc = record->doc;
    memset(put, 0, sizeof(*put));
    put->size = sizeof(*put);
    put->key = doc->key;
    put->base_revision = doc->revision - 1;
    put->revision = doc->revision;
    put->deleted = doc->deleted;
    put->quiet = true; /* its event comes as a record of its own */
    put->no_history = record->no_history;
    put->json = doc->json;
    put->text = doc->text;
    put->time_ms = doc->updated_ms;
    put->created_ms = doc->created_ms;
    put->created_seq = NG_SEQ_KEEP;
    put->agent = doc->author;
    put->action = doc->action;
    put->fields = record->fields;
    if (record->newest) {
        put->field_count = record->field_count;
    } else {
        put->field_count = 0;
    }
}

static int add_version(struct mongo *db, struct ng_call *call, const struct ng_record *record,
                       struct ng_put *put, const unsigned char hash[HASH_BYTES])
{
    struct import *import = db->import;
    struct bytes ref = {0};
    bson_t outbox = BSON_INITIALIZER;
    bson_t entry;
    bool first = import->state.revision == 0 || import->state.revision + 1 != put->revision;
    if (first) {
        put->base_revision = 0; /* no base for a splice: stored whole */
    }
    splice_between(bytes_str(&import->state.json), put->json, &put->json_splice);
    splice_between(bytes_str(&import->state.text), put->text, &put->text_splice);
    (void)outbox_add(&outbox, 0, put, hash, "import", 0);
    int rc =
        name_version(import->collection->name, bytes_str(&import->name), put->revision, &ref);
    if (rc == NG_OK && !put->no_history && member_doc(&outbox, "0", &entry)) {
        bson_t *doc = bson_new();
        put_str(doc, "_id", bytes_str(&ref));
        BSON_APPEND_UTF8(doc, "collection", import->collection->name);
        put_str(doc, "document", bytes_str(&import->name));
        put_u64(doc, "seq", record->doc->seq);
        put_u64(doc, "created_seq", record->doc->created_seq);
        (void)bson_concat(doc, &entry);
        rc = buffer_add(db, call, &import->versions, OWN_VERSIONS, doc);
    }
    bson_destroy(&outbox);
    bytes_done(&ref);
    return rc;
}

static int add_main(struct mongo *db, struct ng_call *call, const struct ng_record *record,
                    const struct ng_put *put, const unsigned char hash[HASH_BYTES])
{
    struct import *import = db->import;
    struct prepared prepared = {.collection = import->collection, .name = import->name};
    bson_t outbox = BSON_INITIALIZER;
    bson_t *doc = bson_new();
    bson_t made;
    memcpy(prepared.hash, hash, HASH_BYTES);
    int rc = body_insert(record->doc, &prepared, put, &outbox, 0, "import",
                         (uint64_t)clock_unix_ms(), &made);
    bson_destroy(&outbox);
    if (rc != NG_OK) {
        bson_destroy(&made);
        bson_destroy(doc);
        return ng_fail(call, rc,
                       "the document \"%.*s\" of %s cannot be imported: it has %zu bytes, the "
                       "most that MongoDB takes here are %zu",
                       str_clip(put->key.id, 100), put->key.id.data, import->collection->name,
                       (size_t)put->json.len + put->text.len, DOCUMENT_BYTES_MAX);
    }
    (void)bson_concat(doc, &made);
    bson_destroy(&made);
    import->whole = true;
    return buffer_add(db, call, &import->mains, import->collection->name, doc);
}

static int start_doc(struct mongo *db, struct ng_call *call, const struct ng_record *record)
{
    struct import *import = db->import;
    const struct ng_key *key = &record->doc->key;
    struct bytes name = {0};
    const struct db_collection *collection = collection_find(db, key->collection);
    if (collection == NULL) {
        return ng_fail(call, NG_EINVAL,
                       "the import has documents of \"%.*s\", which no plugin here declares",
                       str_clip(key->collection, NG_COLLECTION_MAX), key->collection.data);
    }
    int rc = name_document(collection, key->space, key->id, &name);
    if (rc == NG_OK && (collection != import->collection ||
                        !str_equal(bytes_str(&name), bytes_str(&import->name)))) {
        import->collection = collection;
        import->whole = false;
        import->state.revision = 0;
        import->state.json.len = 0;
        import->state.text.len = 0;
        rc = bytes_set(&import->name, bytes_str(&name));
    }
    bytes_done(&name);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(call, rc, "the import has a document without a name");
}

static int add_revision(struct mongo *db, struct ng_call *call, const struct ng_record *record)
{
    struct import *import = db->import;
    struct ng_put put;
    unsigned char hash[HASH_BYTES];
    int rc = start_doc(db, call, record);
    if (rc != NG_OK) {
        return rc;
    }
    put_of(record, &put);
    content_hash(CONTENT_HASH_ROTATED, put.json, put.text, put.deleted, hash);
    rc = add_version(db, call, record, &put, hash);
    if (rc == NG_OK && record->newest) {
        rc = add_main(db, call, record, &put, hash);
    }
    if (rc == NG_OK && (bytes_set(&import->state.json, put.json) != NG_OK ||
                        bytes_set(&import->state.text, put.text) != NG_OK)) {
        rc = ng_fail(call, NG_EINTERNAL, "no memory for the import");
    }
    import->state.revision = put.revision;
    if (record->doc->seq > import->last_seq) {
        import->last_seq = record->doc->seq;
    }
    return rc;
}

/* ---- events, answers ---- */

static int add_event(struct mongo *db, struct ng_call *call, const struct ng_event *event)
{
    struct import *import = db->import;
    struct bytes name = {0};
    struct bytes ref = {0};
    const struct db_collection *collection = collection_find(db, event->key.collection);
    if (collection == NULL) {
        return ng_fail(
            call, NG_EINVAL, "the import has events of \"%.*s\", which no plugin here declares",
            str_clip(event->key.collection, NG_COLLECTION_MAX), event->key.collection.data);
    }
    int rc = name_document(collection, event->key.space, event->key.id, &name);
    if (rc == NG_OK) {
        rc = name_version(collection->name, bytes_str(&name), event->revision, &ref);
    }
    if (rc == NG_OK) {
        bson_t *doc = bson_new();
        put_u64(doc, "_id", event->seq);
        put_str(doc, "ref", bytes_str(&ref));
        BSON_APPEND_UTF8(doc, "collection", collection->name);
        put_str(doc, "document", bytes_str(&name));
        put_str(doc, "space", event->key.space);
        put_str(doc, "id", event->key.id);
        put_u64(doc, "revision", event->revision);
        BSON_APPEND_DATE_TIME(doc, "time", event->time_ms);
        put_str(doc, "agent", event->agent);
        put_str(doc, "tool", event->tool);
        put_str(doc, "action", event->action);
        if (event->data.data != NULL) {
            put_str(doc, "data", event->data);
        }
        BSON_APPEND_BOOL(doc, "quiet", false);
        BSON_APPEND_UTF8(doc, "batch", "import");
        rc = buffer_add(db, call, &import->events, OWN_EVENTS, doc);
    }
    import->last_event = u64_max(event->seq, import->last_event);
    import->last_seq = u64_max(event->seq, import->last_seq);
    bytes_done(&name);
    bytes_done(&ref);
    return rc;
}

static int add_answer(struct mongo *db, struct ng_call *call, const struct ng_answer *answer)
{
    bson_t made;
    bson_t *doc = bson_new();
    answer_doc(answer, "kept", "import", &made);
    (void)bson_concat(doc, &made);
    bson_destroy(&made);
    return buffer_add(db, call, &db->import->answers, OWN_ANSWERS, doc);
}

int import_record(void *self, struct ng_call *call, const struct ng_record *record)
{
    struct mongo *db = self;
    if (db->import == NULL) {
        return ng_fail(call, NG_EINVAL, "no import was started");
    }
    switch (record->kind) {
    case NG_RECORD_REVISION:
        return add_revision(db, call, record);
    case NG_RECORD_EVENT:
        return add_event(db, call, record->event);
    case NG_RECORD_ANSWER:
        return add_answer(db, call, record->answer);
    case NG_RECORD_SEQ:
        if (record->seq > db->import->last_seq) {
            db->import->last_seq = record->seq;
        }
        return NG_OK;
    }
    return ng_fail(call, NG_EINVAL, "the import has a record of the unknown kind %d",
                   (int)record->kind);
}

/* Keeps the last sequence number in an event that is never shown. */
static int keep_seq(struct mongo *db, struct ng_call *call)
{
    struct import *import = db->import;
    struct fault fault;
    bson_t doc = BSON_INITIALIZER;
    bool good = true;
    if (import->last_seq > import->last_event) {
        put_u64(&doc, "_id", import->last_seq);
        BSON_APPEND_UTF8(&doc, "ref", "import");
        BSON_APPEND_BOOL(&doc, "quiet", true);
        BSON_APPEND_DATE_TIME(&doc, "time", clock_unix_ms());
        good = op_insert(db, OWN_EVENTS, &doc, &fault);
    }
    bson_destroy(&doc);
    if (good) {
        return NG_OK;
    }
    return fault_fail(call, &fault, "the import");
}

int import_end(void *self, struct ng_call *call, bool keep)
{
    struct mongo *db = self;
    struct import *import = db->import;
    if (import == NULL) {
        return ng_fail(call, NG_EINVAL, "no import was started");
    }
    int rc = NG_OK;
    uint64_t last_seq = import->last_seq;
    if (keep && import->state.revision > 0 && !import->whole) {
        rc = ng_fail(call, NG_EINVAL,
                     "the import is incomplete: the newest revision of a document is missing");
    }
    struct buffer *buffers[] = {&import->versions, &import->mains, &import->events,
                                &import->answers};
    for (size_t i = 0; i < NG_COUNT(buffers) && keep && rc == NG_OK; i++) {
        rc = buffer_flush(db, call, buffers[i]);
    }
    if (keep && rc == NG_OK) {
        rc = keep_seq(db, call);
    }
    bool thrown_away = !keep || rc != NG_OK;
    import_drop(db);
    int cleared = NG_OK;
    if (thrown_away) {
        cleared = clear_all(db, call);
    }
    if (cleared == NG_OK) {
        cleared = mark_clear(db, call);
    }
    if (!thrown_away && cleared == NG_OK) {
        atomic_store(&db->last_seq, last_seq);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return cleared;
}
