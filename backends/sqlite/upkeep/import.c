/* SPDX-License-Identifier: MIT */
/* import.c - fills an empty store from an export, in one transaction that is kept or rolled
 * back. */
#include "../store/txn.h"
#include "core/base/minmax.h"
#include "upkeep.h"

struct import {
    struct txn *txn;     /* of the current document */
    struct bytes key[3]; /* its key, which the transaction borrows */
    uint64_t revision;   /* its last revision so far; 0: none */
    bool deleted;
    struct bytes json, text; /* of that revision */
    struct prepared prepared;
    uint64_t last_seq;
};

static void import_free(struct import *import)
{
    for (size_t i = 0; i < NG_COUNT(import->key); i++) {
        bytes_done(&import->key[i]);
    }
    bytes_done(&import->json);
    bytes_done(&import->text);
    bytes_done(&import->prepared.fields);
    txn_free(import->txn);
    free(import);
}

void import_abandon(struct db *db)
{
    if (db->import != NULL) {
        import_free(db->import);
        db->import = NULL;
        (void)work_end(db, false);
    }
}

int import_begin(void *self, struct ng_call *call)
{
    struct db *db = self;
    struct import *import = calloc(1, sizeof(*import));
    if (import == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the import");
    }
    sqlite3_stmt *stmt = NULL;
    bool ok =
        work_begin(db, true) == SQLITE_OK &&
        sqlite3_prepare_v2(db->writer->sql,
                           "SELECT EXISTS(SELECT 1 FROM docs) OR EXISTS(SELECT 1 FROM log)"
                           " OR EXISTS(SELECT 1 FROM answers)",
                           -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW;
    int rc = NG_OK;
    if (!ok) {
        rc = conn_fail(db->writer, call, "the import");
    } else if (sqlite3_column_int(stmt, 0) != 0) {
        rc = ng_fail(call, NG_EINVAL,
                     "%s is not empty: restore into a new data_dir, or move this one away",
                     db->path);
    }
    (void)sqlite3_finalize(stmt);
    if (rc != NG_OK) {
        import_free(import);
        (void)work_end(db, false);
        return rc;
    }
    db->import = import;
    return NG_OK;
}

static bool same_key(const struct import *import, const struct ng_key *key)
{
    return import->revision > 0 && str_equal(bytes_str(&import->key[0]), key->collection) &&
           str_equal(bytes_str(&import->key[1]), key->space) &&
           str_equal(bytes_str(&import->key[2]), key->id);
}

/* Begins the next document. */
static int start_doc(struct db *db, struct ng_call *call, const struct ng_key *key)
{
    struct import *import = db->import;
    if (origins_flush(db) != NG_OK) {
        return conn_fail(db->writer, call, "the import");
    }
    txn_free(import->txn);
    import->txn = txn_new(db);
    import->revision = 0;
    import->deleted = false;
    import->json.len = import->text.len = 0;
    if (bytes_set(&import->key[0], key->collection) == NG_OK &&
        bytes_set(&import->key[1], key->space) == NG_OK &&
        bytes_set(&import->key[2], key->id) == NG_OK && import->txn != NULL) {
        return NG_OK;
    }
    return ng_fail(call, NG_EINTERNAL, "no memory for the import");
}

static int check_revision(struct db *db, struct ng_call *call, const struct ng_doc *doc)
{
    struct import *import = db->import;
    if (doc->seq == 0) {
        return ng_fail(call, NG_EINVAL, "the import has a revision without a number");
    }
    import->prepared.collection = collection_find(db, doc->key.collection);
    if (import->prepared.collection == NULL) {
        return ng_fail(call, NG_EINVAL,
                       "the import has the collection \"%.*s\", which no plugin "
                       "here declares: switch its plugin on first",
                       doc->key.collection.len < NG_COLLECTION_MAX
                           ? (int)doc->key.collection.len
                           : NG_COLLECTION_MAX,
                       doc->key.collection.data != NULL ? doc->key.collection.data : "");
    }
    return NG_OK;
}

static int add_revision(struct db *db, struct ng_call *call, const struct ng_record *record)
{
    struct import *import = db->import;
    const struct ng_doc *doc = record->doc;
    int rc = NG_OK;
    if (!same_key(import, &doc->key)) {
        rc = start_doc(db, call, &doc->key);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = check_revision(db, call, doc);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_put put;
    put_of_record(record, bytes_str(&import->json), bytes_str(&import->text), &put);
    put.key = (struct ng_key){bytes_str(&import->key[0]), bytes_str(&import->key[1]),
                              bytes_str(&import->key[2])};
    content_hash(CONTENT_HASH_MIXED, doc->json, doc->text, doc->deleted, import->prepared.hash);
    rc = values_encode(import->prepared.collection, put.fields, put.field_count, doc->deleted,
                       &import->prepared.fields);
    if (rc != NG_OK) {
        return ng_fail(call, rc, "a field of the import was not declared");
    }
    db->txn_seq = doc->seq - 1; /* keeps its sequence number */
    rc = txn_put(import->txn, &put, &import->prepared);
    if (rc == NG_OK && record->newest) {
        rc = txn_flush(import->txn);
    }
    if (rc != NG_OK) {
        return conn_fail(db->writer, call, "the import");
    }
    import->revision = doc->revision;
    import->last_seq = u64_max(doc->seq, import->last_seq);
    if (bytes_set(&import->json, doc->json) != NG_OK ||
        bytes_set(&import->text, doc->text) != NG_OK) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the import");
    }
    return NG_OK;
}

/* The trail of an event whose revision is not kept; origins_flush() comes later. */
static int add_trail(struct db *db, const struct ng_event *event)
{
    sqlite3_stmt *stmt = NULL;
    int64_t shelf = 0;
    struct trail row = {
        .seq = event->seq,
        .agent = event->agent,
        .origin = &event->origin,
    };
    int rc = sqlite3_prepare_v2(db->writer->sql,
                                "SELECT d.doc,d.shelf FROM log l JOIN docs d ON d.doc=l.doc "
                                "WHERE l.seq=?1",
                                -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        (void)bind_u64(stmt, 1, event->seq);
        rc = sqlite3_step(stmt);
    }
    if (rc == SQLITE_ROW) {
        row.doc = sqlite3_column_int64(stmt, 0);
        shelf = sqlite3_column_int64(stmt, 1);
    }
    (void)sqlite3_finalize(stmt);
    bool good = rc == SQLITE_ROW && origins_add(db, shelf, &row) == NG_OK;
    return good ? SQLITE_OK : SQLITE_ERROR;
}

/* The event is stored in the row of its revision, or in a row of its own if that revision is
 * not kept. */
static int add_event(struct db *db, struct ng_call *call, const struct ng_event *event)
{
    static const char *const texts[] = {
        "UPDATE log SET tool=?5,data=?8,flags=flags&~2 WHERE seq=?1",
        "INSERT OR IGNORE INTO log(seq,doc,revision,kind,flags,time_ms,created_seq,created_ms,"
        "agent,tool,action,data,hash,text_size) SELECT ?1,d.doc,?2,0,0,?3,d.created_seq,"
        "d.created_ms,?4,?5,?6,?8,x'',0 FROM docs d JOIN shelves s ON s.shelf=d.shelf WHERE "
        "s.collection=?9 AND s.space=?10 AND d.id=?11",
    };
    int changed = 0;
    int rc = SQLITE_OK;
    size_t i = 0;
    for (; i < NG_COUNT(texts) && changed == 0 && rc == SQLITE_OK; i++) {
        sqlite3_stmt *stmt = NULL;
        rc = sqlite3_prepare_v2(db->writer->sql, texts[i], -1, &stmt, NULL);
        if (rc == SQLITE_OK) {
            (void)bind_u64(stmt, 1, event->seq);
            (void)bind_text(stmt, 5, event->tool);
            if (event->data.data != NULL) {
                (void)bind_blob(stmt, 8, event->data);
            }
            if (i == 1) {
                (void)bind_u64(stmt, 2, event->revision);
                (void)sqlite3_bind_int64(stmt, 3, event->time_ms);
                (void)bind_text(stmt, 4, event->agent);
                (void)bind_text(stmt, 6, event->action);
                (void)bind_text(stmt, 9, event->key.collection);
                (void)bind_text(stmt, 10, event->key.space);
                (void)bind_blob(stmt, 11, event->key.id);
            }
            rc = conn_run(db->writer, stmt);
            changed = sqlite3_changes(db->writer->sql);
        }
        (void)sqlite3_finalize(stmt);
    }
    if (rc == SQLITE_OK && changed > 0 && i == NG_COUNT(texts)) {
        rc = add_trail(db, event);
    }
    if (rc != SQLITE_OK) {
        return conn_fail(db->writer, call, "the import");
    }
    if (changed == 0) {
        return ng_fail(call, NG_EINVAL,
                       "the import has the event %llu of a document that it does not have",
                       (unsigned long long)event->seq);
    }
    db->import->last_seq = u64_max(event->seq, db->import->last_seq);
    return NG_OK;
}

static int add_answer(struct db *db, struct ng_call *call, const struct ng_answer *answer)
{
    /* Binding to no statement is harmless; running it fails. */
    sqlite3_stmt *stmt = conn_stmt(db->writer, STMT_ANSWER_SET);
    (void)bind_blob(stmt, 1, answer->scope);
    (void)bind_blob(stmt, 2, answer->body_hash);
    (void)bind_blob(stmt, 3, answer->reply);
    (void)sqlite3_bind_int64(stmt, 4, answer->time_ms);
    (void)sqlite3_bind_int64(stmt, 5, answer->expires_ms);
    if (conn_run(db->writer, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return conn_fail(db->writer, call, "the import");
}

int import_record(void *self, struct ng_call *call, const struct ng_record *record)
{
    struct db *db = self;
    switch (record->kind) {
    case NG_RECORD_REVISION:
        return add_revision(db, call, record);
    case NG_RECORD_EVENT:
        return add_event(db, call, record->event);
    case NG_RECORD_ANSWER:
        return add_answer(db, call, record->answer);
    case NG_RECORD_SEQ:
        db->import->last_seq = u64_max(record->seq, db->import->last_seq);
        return NG_OK;
    }
    return ng_fail(call, NG_EINVAL, "the import has a record of the unknown kind %d",
                   (int)record->kind);
}

int import_end(void *self, struct ng_call *call, bool keep)
{
    struct db *db = self;
    struct import *import = db->import;
    int rc = NG_OK;
    uint64_t last_seq = import->last_seq;
    if (keep) {
        sqlite3_stmt *stmt = conn_stmt(db->writer, STMT_META_SET);
        (void)bind_text(stmt, 1, ng_str_of("seq"));
        (void)bind_u64(stmt, 2, last_seq);
        if (conn_run(db->writer, stmt) != SQLITE_OK || origins_flush(db) != NG_OK) {
            rc = conn_fail(db->writer, call, "the import");
        }
    }
    if (keep && rc == NG_OK) {
        atomic_store(&db->last_seq, last_seq);
    }
    import_free(import);
    db->import = NULL;
    if (work_end(db, keep && rc == NG_OK) != SQLITE_OK) {
        atomic_store(&db->last_seq, 0);
        rc = ng_fail(call, NG_EUNAVAILABLE,
                     "the import failed: %s could not be written; check the disk", db->path);
    }
    return rc;
}
