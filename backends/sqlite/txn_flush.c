/* SPDX-License-Identifier: MIT */
/* txn_flush.c - the end of a transaction: the row, field values and counts of each document are
 * written once. */
#include "txn.h"

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
    if (txn->db->txn_seq != atomic_load(&txn->db->last_seq)) {
        return txn_meta(conn, "seq", txn->db->txn_seq);
    }
    return NG_OK;
}
