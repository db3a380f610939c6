/* SPDX-License-Identifier: MIT */
/* txn.c - documents inside one transaction: their present state, their rows, and their new
 * revisions and events in the log. */
#include "txn.h"

/* Splices are used while the chain stays below the size of the document plus this. */
#define CHAIN_SLACK 256
/* A revision is stored whole after this many splices, or when they outgrow the document. Of a
 * small one the splices cost a read more than a whole copy costs the file. */
#define WHOLE_EVERY 128
#define WHOLE_EVERY_SMALL 32
#define WHOLE_SMALL_BYTES ((size_t)17 * 1024) /* 16 KiB of text, and its JSON */

struct txn *txn_new(struct db *db)
{
    struct txn *txn = calloc(1, sizeof(*txn));
    if (txn != NULL) {
        txn->db = db;
        db->txn_seq = atomic_load(&db->last_seq);
    }
    return txn;
}

void txn_free(struct txn *txn)
{
    if (txn == NULL) {
        return;
    }
    while (txn->first != NULL) {
        struct touched *doc = txn->first;
        txn->first = doc->later;
        bytes_done(&doc->old_fields);
        free(doc);
    }
    free(txn);
}

static unsigned bucket_of(const struct ng_key *key)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    const struct ng_str parts[] = {key->collection, key->space, key->id};
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        for (size_t j = 0; j < parts[i].len; j++) {
            hash = (hash ^ (unsigned char)parts[i].data[j]) * UINT64_C(0x100000001B3);
        }
        hash ^= hash >> 31;
    }
    return (unsigned)((hash ^ (hash >> 32)) % TOUCHED_BUCKETS);
}

/* Creates the number of (collection, space). < 0: failed. */
static int64_t add_shelf(struct conn *conn, const struct ng_key *key)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF_ADD);
    if (stmt != NULL) {
        (void)bind_text(stmt, 1, key->collection);
        (void)bind_text(stmt, 2, key->space);
    }
    if (conn_run(conn, stmt) != SQLITE_OK) {
        return -1;
    }
    return sqlite3_last_insert_rowid(conn->sql);
}

/* The number of (collection, space). Another document of the transaction may have created it
 * meanwhile. < 0: failed. */
static int64_t shelf_of(struct conn *conn, const struct ng_key *key)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF);
    if (stmt == NULL) {
        return -1;
    }
    (void)bind_text(stmt, 1, key->collection);
    (void)bind_text(stmt, 2, key->space);
    int rc = sqlite3_step(stmt);
    int64_t shelf = -1;
    if (rc == SQLITE_ROW) {
        shelf = sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_reset(stmt);
    if (rc != SQLITE_DONE) {
        return shelf;
    }
    return add_shelf(conn, key);
}

/* Loads its shelf and row, if they exist. */
static int load_row(struct conn *conn, struct touched *doc)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_DOC_STATE);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, doc->key.collection);
    (void)bind_text(stmt, 2, doc->key.space);
    (void)bind_blob(stmt, 3, doc->key.id);
    int rc = sqlite3_step(stmt);
    int ret = NG_EINTERNAL;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        ret = NG_OK;
    }
    if (rc == SQLITE_ROW) {
        doc->shelf = sqlite3_column_int64(stmt, 0);
    }
    if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 1) != SQLITE_NULL) {
        struct ng_str author = column_str(stmt, 10);
        doc->exists = true;
        doc->doc = sqlite3_column_int64(stmt, 1);
        doc->revision = column_u64(stmt, 2);
        doc->was_deleted = doc->deleted = sqlite3_column_int(stmt, 3) != 0;
        doc->old_created_seq = doc->created_seq = column_u64(stmt, 4);
        doc->json_size = column_u64(stmt, 5);
        doc->text_size = column_u64(stmt, 6);
        doc->chain_count = column_u64(stmt, 7);
        doc->chain_bytes = column_u64(stmt, 8);
        ret = bytes_set(&doc->old_fields, column_str(stmt, 9));
        if (author.len <= AUTHOR_MAX) {
            memcpy(doc->old_author, author.data, author.len);
            doc->old_author_len = author.len;
        }
    }
    (void)sqlite3_reset(stmt);
    return ret;
}

struct touched *txn_touch(struct txn *txn, const struct ng_key *key)
{
    struct touched **bucket = &txn->buckets[bucket_of(key)];
    for (struct touched *doc = *bucket; doc != NULL; doc = doc->next) {
        if (str_equal(doc->key.id, key->id) && str_equal(doc->key.space, key->space) &&
            str_equal(doc->key.collection, key->collection)) {
            return doc;
        }
    }
    struct touched *doc = calloc(1, sizeof(*doc));
    if (doc == NULL) {
        return NULL;
    }
    doc->key = *key;
    doc->old_author_len = SIZE_MAX;
    if (load_row(txn->db->writer, doc) != NG_OK) {
        bytes_done(&doc->old_fields);
        free(doc);
        return NULL;
    }
    doc->next = *bucket;
    *bucket = doc;
    if (txn->last != NULL) {
        txn->last->later = doc;
    } else {
        txn->first = doc;
    }
    txn->last = doc;
    return doc;
}

/* The splice from `before` bytes to `after`. An inconsistent one is replaced by the whole
 * text. */
static bool splice_fits(const struct ng_splice *splice, uint64_t before, struct ng_str after)
{
    return splice->at <= before && splice->removed <= before - splice->at &&
           before - splice->removed + splice->inserted.len == after.len &&
           splice->at + splice->inserted.len <= after.len &&
           (splice->inserted.len == 0 ||
            memcmp(after.data + splice->at, splice->inserted.data, splice->inserted.len) == 0);
}

static uint64_t whole_every(const struct ng_put *put)
{
    return put->text.len + put->json.len <= WHOLE_SMALL_BYTES ? WHOLE_EVERY_SMALL : WHOLE_EVERY;
}

static enum log_kind kind_of(const struct touched *doc, const struct ng_put *put)
{
    if (put->no_history) {
        return LOG_NONE;
    }
    uint64_t cost = put->json_splice.inserted.len + put->text_splice.inserted.len;
    bool splice = doc->revision > 0 && !doc->deleted && !put->deleted && doc->chain_count > 0 &&
                  doc->chain_count < whole_every(put) &&
                  doc->chain_bytes + cost < put->json.len + put->text.len + CHAIN_SLACK &&
                  splice_fits(&put->json_splice, doc->json_size, put->json) &&
                  splice_fits(&put->text_splice, doc->text_size, put->text);
    if (splice) {
        return LOG_SPLICE;
    }
    return LOG_WHOLE;
}

static int log_put(struct txn *txn, const struct touched *doc, const struct ng_put *put,
                   const struct prepared *prepared, enum log_kind kind)
{
    struct conn *conn = txn->db->writer;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_INSERT);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_u64(stmt, 1, doc->seq);
    (void)sqlite3_bind_int64(stmt, 2, doc->doc);
    (void)bind_u64(stmt, 3, put->revision);
    (void)sqlite3_bind_int(stmt, 4, (int)kind);
    (void)sqlite3_bind_int(stmt, 5,
                           (put->deleted ? LOG_DELETED : 0) | (put->quiet ? LOG_QUIET : 0));
    (void)sqlite3_bind_int64(stmt, 6, put->time_ms);
    (void)bind_u64(stmt, 7, doc->created_seq);
    (void)sqlite3_bind_int64(stmt, 8, put->created_ms);
    (void)bind_text(stmt, 9, put->agent);
    (void)bind_text(stmt, 10, put->tool);
    (void)bind_text(stmt, 11, put->action);
    if (put->event_data.data != NULL) {
        (void)bind_blob(stmt, 12, put->event_data);
    }
    (void)bind_blob(stmt, 13, str_of((const char *)prepared->hash, HASH_BYTES));
    (void)bind_u64(stmt, 18, put->text.len);
    if (kind == LOG_SPLICE) {
        (void)bind_u64(stmt, 14, put->json_splice.at);
        (void)bind_u64(stmt, 15, put->json_splice.removed);
        (void)bind_u64(stmt, 16, put->text_splice.at);
        (void)bind_u64(stmt, 17, put->text_splice.removed);
        (void)bind_blob(stmt, 19, put->json_splice.inserted);
        (void)bind_blob(stmt, 20, put->text_splice.inserted);
    } else if (kind == LOG_WHOLE) {
        (void)bind_blob(stmt, 19, put->json);
        (void)bind_blob(stmt, 20, put->text);
    }
    if (conn_run(conn, stmt) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    const struct trail row = {
        .seq = doc->seq,
        .doc = doc->doc,
        .agent = put->agent,
        .gateway = put->gateway,
        .origin = &put->origin,
    };
    return origins_add(txn->db, doc->shelf, &row);
}

int txn_put(struct txn *txn, struct ng_put *put, const struct prepared *prepared)
{
    struct db *db = txn->db;
    struct touched *doc = txn_touch(txn, &put->key);
    if (doc == NULL) {
        return NG_EINTERNAL;
    }
    if (doc->shelf == 0) {
        doc->shelf = shelf_of(db->writer, &put->key);
        if (doc->shelf <= 0) {
            doc->shelf = 0;
            return NG_EINTERNAL;
        }
    }
    if (doc->doc == 0) {
        doc->doc = db->next_doc++;
    }
    enum log_kind kind = kind_of(doc, put);
    put->seq = ++db->txn_seq;
    doc->seq = put->seq;
    if (put->created_seq == 0 || (put->created_seq == NG_SEQ_KEEP && doc->created_seq == 0)) {
        doc->created_seq = put->seq;
    } else if (put->created_seq != NG_SEQ_KEEP) {
        doc->created_seq = put->created_seq; /* of an import */
    }
    if (kind != LOG_NONE || !put->quiet) {
        int rc = log_put(txn, doc, put, prepared, kind);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (kind == LOG_SPLICE) {
        doc->chain_count++;
        doc->chain_bytes += put->json_splice.inserted.len + put->text_splice.inserted.len;
    } else {
        if (kind == LOG_WHOLE) {
            doc->chain_count = 1;
        } else {
            doc->chain_count = 0;
        }
        doc->chain_bytes = 0;
    }
    doc->revision = put->revision;
    doc->deleted = put->deleted;
    doc->json_size = put->json.len;
    doc->text_size = put->text.len;
    doc->put = put;
    doc->prepared = prepared;
    return NG_OK;
}

/* Removes or adds every value of the blob. Values that are also in `other`, at the same
 * position, stay. */
static int write_values(struct conn *conn, enum statement which, const struct touched *doc,
                        struct ng_str blob, uint64_t created_seq)
{
    struct value value;
    size_t at = 0;
    while (values_next(blob, &at, &value)) {
        if (value.kind == VALUE_TEXT) {
            continue;
        }
        sqlite3_stmt *stmt = conn_stmt(conn, which);
        if (stmt == NULL) {
            return NG_EINTERNAL;
        }
        (void)sqlite3_bind_int64(stmt, 1, value.field);
        (void)sqlite3_bind_int64(stmt, 2, doc->shelf);
        value_bind(stmt, 3, &value);
        (void)bind_u64(stmt, 4, created_seq);
        (void)sqlite3_bind_int64(stmt, 5, doc->doc);
        if (conn_run(conn, stmt) != SQLITE_OK) {
            return NG_EINTERNAL;
        }
    }
    return NG_OK;
}

static int flush_values(struct conn *conn, const struct touched *doc)
{
    struct ng_str before = bytes_str(&doc->old_fields);
    struct ng_str after = bytes_str(&doc->prepared->fields);
    if (str_equal(before, after) && doc->old_created_seq == doc->created_seq) {
        return NG_OK;
    }
    int rc = write_values(conn, STMT_VALUE_DROP, doc, before, doc->old_created_seq);
    if (rc != NG_OK) {
        return rc;
    }
    return write_values(conn, STMT_VALUE_ADD, doc, after, doc->created_seq);
}

static int flush_row(struct conn *conn, const struct touched *doc)
{
    const struct ng_put *put = doc->put;
    struct ng_str old_author = str_of(doc->old_author, doc->old_author_len);
    enum statement which = STMT_DOC_UPDATE;
    if (str_equal(old_author, put->agent)) {
        which = STMT_DOC_UPDATE_OWN;
    }
    if (!doc->exists) {
        which = STMT_DOC_INSERT;
    } else if (doc->was_deleted != doc->deleted || doc->old_created_seq != doc->created_seq) {
        which = STMT_DOC_REVIVE;
    }
    sqlite3_stmt *stmt = conn_stmt(conn, which);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc->doc);
    (void)sqlite3_bind_int64(stmt, 2, doc->shelf);
    (void)bind_blob(stmt, 3, doc->key.id);
    (void)bind_u64(stmt, 4, doc->revision);
    (void)sqlite3_bind_int(stmt, 5, doc->deleted);
    (void)bind_u64(stmt, 6, doc->seq);
    (void)bind_u64(stmt, 7, doc->created_seq);
    (void)sqlite3_bind_int64(stmt, 8, put->created_ms);
    (void)sqlite3_bind_int64(stmt, 9, put->time_ms);
    (void)bind_u64(stmt, 10, put->json.len);
    (void)bind_u64(stmt, 11, put->text.len);
    (void)bind_u64(stmt, 12, doc->chain_count);
    (void)bind_u64(stmt, 13, doc->chain_bytes);
    if (which != STMT_DOC_UPDATE_OWN) {
        (void)bind_text(stmt, 14, put->agent);
    }
    (void)bind_text(stmt, 15, put->action);
    (void)bind_blob(stmt, 16, str_of((const char *)doc->prepared->hash, HASH_BYTES));
    (void)bind_blob(stmt, 17, bytes_str(&doc->prepared->fields));
    (void)bind_blob(stmt, 18, put->json);
    (void)bind_blob(stmt, 19, put->text);
    if (conn_run(conn, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static int flush_counts(struct conn *conn, const struct touched *doc)
{
    int live = (doc->deleted ? 0 : 1) - (doc->exists && !doc->was_deleted);
    int dead = doc->deleted - (doc->exists && doc->was_deleted);
    if (live == 0 && dead == 0) {
        return NG_OK;
    }
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF_COUNT);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc->shelf);
    (void)sqlite3_bind_int(stmt, 2, live);
    (void)sqlite3_bind_int(stmt, 3, dead);
    if (conn_run(conn, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static int flush_dirty(struct txn *txn, const struct touched *doc)
{
    if (doc->prepared->collection->columns == 0) {
        return NG_OK;
    }
    struct conn *conn = txn->db->writer;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_DIRTY_ADD);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(stmt, 1, doc->prepared->collection->id);
    (void)sqlite3_bind_int64(stmt, 2, doc->doc);
    fts_mark(txn->db, doc->prepared->collection);
    if (conn_run(conn, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

int txn_meta(struct conn *conn, const char *name, uint64_t number)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_META_SET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, ng_str_of(name));
    (void)bind_u64(stmt, 2, number);
    if (conn_run(conn, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

int txn_flush(struct txn *txn)
{
    struct conn *conn = txn->db->writer;
    for (const struct touched *doc = txn->first; doc != NULL; doc = doc->later) {
        if (doc->put == NULL) {
            continue;
        }
        int rc = flush_row(conn, doc);
        if (rc == NG_OK) {
            rc = flush_values(conn, doc);
        }
        if (rc == NG_OK) {
            rc = flush_counts(conn, doc);
        }
        if (rc == NG_OK) {
            rc = flush_dirty(txn, doc);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    int rc = origins_flush(txn->db);
    if (rc == NG_OK && txn->db->txn_seq != atomic_load(&txn->db->last_seq)) {
        return txn_meta(conn, "seq", txn->db->txn_seq);
    }
    return rc;
}
