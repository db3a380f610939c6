/* SPDX-License-Identifier: MIT */
/* writer.c - one transaction: conditions, revisions, events and answers of every batch, then
 * each touched document's row once. */
#include "db.h"

#include <stdio.h>
#include <time.h>

/* Buckets of the documents that a transaction touches. */
#define TOUCHED_BUCKETS 256
/* A splice is only worth it while the chain stays below the document plus this. */
#define CHAIN_SLACK 256
/* Authors up to this long are compared with the one before; any agent's name fits. */
#define AUTHOR_MAX 128

/* How often a transaction is tried that lacks memory, and the pause before each. */
#define MEMORY_TRIES 20
#define MEMORY_PAUSE_NS 10000000L

/* A document inside the transaction. */
struct touched {
    struct touched *next;  /* in its bucket */
    struct touched *later; /* in the order of touching */
    struct ng_key key;     /* lent by the first put */
    int64_t doc, shelf;
    bool exists;      /* has a row */
    bool was_deleted; /* that row says so */
    uint64_t old_created_seq;
    struct bytes old_fields;
    char old_author[AUTHOR_MAX];
    size_t old_author_len; /* SIZE_MAX: not known */
    uint64_t revision;
    bool deleted;
    uint64_t created_seq;
    uint64_t json_size, text_size, chain_count, chain_bytes;
    uint64_t seq;
    const struct ng_put *put; /* the newest, or NULL: only looked at */
    const struct prepared *prepared;
};

struct txn {
    struct db *db;
    struct touched *buckets[TOUCHED_BUCKETS];
    struct touched *first, *last;
};

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

/* A new number for (collection, space). < 0: failed. */
static int64_t add_shelf(struct conn *conn, const struct ng_key *key)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF_ADD);
    if (stmt != NULL) {
        (void)bind_text(stmt, 1, key->collection);
        (void)bind_text(stmt, 2, key->space);
    }
    return conn_run(conn, stmt) == SQLITE_OK ? sqlite3_last_insert_rowid(conn->sql) : -1;
}

/* The number of (collection, space), which another document of the transaction may have made
 * since this one was looked at. < 0: failed. */
static int64_t shelf_of(struct conn *conn, const struct ng_key *key)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF);
    if (stmt == NULL) {
        return -1;
    }
    (void)bind_text(stmt, 1, key->collection);
    (void)bind_text(stmt, 2, key->space);
    int rc = sqlite3_step(stmt);
    int64_t shelf = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? add_shelf(conn, key) : shelf;
}

/* Its shelf and row, as far as they are there. */
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
    int ret = rc == SQLITE_ROW || rc == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
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

/* The document as this transaction sees it. NULL: failed. */
static struct touched *touch(struct txn *txn, const struct ng_key *key)
{
    struct touched **bucket = &txn->buckets[bucket_of(key)];
    for (struct touched *doc = *bucket; doc != NULL; doc = doc->next) {
        if (str_same(doc->key.id, key->id) && str_same(doc->key.space, key->space) &&
            str_same(doc->key.collection, key->collection)) {
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

/* A splice that turns `before` bytes into `after`. What does not add up is stored whole. */
static bool splice_fits(const struct ng_splice *splice, uint64_t before, struct ng_str after)
{
    return splice->at <= before && splice->removed <= before - splice->at &&
           before - splice->removed + splice->inserted.len == after.len &&
           splice->at + splice->inserted.len <= after.len &&
           (splice->inserted.len == 0 ||
            memcmp(after.data + splice->at, splice->inserted.data, splice->inserted.len) == 0);
}

static enum log_kind kind_of(const struct touched *doc, const struct ng_put *put)
{
    if (put->no_history) {
        return LOG_NONE;
    }
    uint64_t cost = put->json_splice.inserted.len + put->text_splice.inserted.len;
    bool splice = doc->revision > 0 && !doc->deleted && !put->deleted && doc->chain_count > 0 &&
                  doc->chain_count < WHOLE_EVERY &&
                  doc->chain_bytes + cost < put->json.len + put->text.len + CHAIN_SLACK &&
                  splice_fits(&put->json_splice, doc->json_size, put->json) &&
                  splice_fits(&put->text_splice, doc->text_size, put->text);
    return splice ? LOG_SPLICE : LOG_WHOLE;
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
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

int txn_put(struct txn *txn, struct ng_put *put, const struct prepared *prepared)
{
    struct db *db = txn->db;
    struct touched *doc = touch(txn, &put->key);
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
        doc->created_seq = put->created_seq; /* an import's */
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
        doc->chain_count = kind == LOG_WHOLE ? 1 : 0;
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

/* Takes out or puts in every value of the blob. Those in both stay untouched where `other` has
 * them and the position is the same. */
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
    if (str_same(before, after) && doc->old_created_seq == doc->created_seq) {
        return NG_OK;
    }
    int rc = write_values(conn, STMT_VALUE_DROP, doc, before, doc->old_created_seq);
    return rc == NG_OK ? write_values(conn, STMT_VALUE_ADD, doc, after, doc->created_seq) : rc;
}

static int flush_row(struct conn *conn, const struct touched *doc)
{
    const struct ng_put *put = doc->put;
    struct ng_str old_author = str_of(doc->old_author, doc->old_author_len);
    enum statement which =
        str_same(old_author, put->agent) ? STMT_DOC_UPDATE_OWN : STMT_DOC_UPDATE;
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
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

static int flush_counts(struct conn *conn, const struct touched *doc)
{
    int live = (doc->deleted ? 0 : 1) - (doc->exists && !doc->was_deleted ? 1 : 0);
    int dead = (doc->deleted ? 1 : 0) - (doc->exists && doc->was_deleted ? 1 : 0);
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
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
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
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

static int set_meta(struct conn *conn, const char *name, uint64_t number)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_META_SET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, ng_str_of(name));
    (void)bind_u64(stmt, 2, number);
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
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
        return set_meta(conn, "seq", txn->db->txn_seq);
    }
    return NG_OK;
}

/* ---- batches ---- */

static int check_answer(struct conn *conn, struct ng_batch *batch)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_ANSWER_GET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_blob(stmt, 1, batch->answer->scope);
    int rc = sqlite3_step(stmt);
    bool taken = rc == SQLITE_ROW && sqlite3_column_int64(stmt, 3) > batch->answer->time_ms;
    (void)sqlite3_reset(stmt);
    if (taken) {
        (void)snprintf(batch->error, sizeof(batch->error),
                       "another call with this idempotency key was answered already");
        return NG_EKEYREUSED;
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

static int store_answer(struct conn *conn, const struct ng_answer *answer)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_ANSWER_SET);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_blob(stmt, 1, answer->scope);
    (void)bind_blob(stmt, 2, answer->body_hash);
    (void)bind_blob(stmt, 3, answer->reply);
    (void)sqlite3_bind_int64(stmt, 4, answer->time_ms);
    (void)sqlite3_bind_int64(stmt, 5, answer->expires_ms);
    return conn_run(conn, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

/* Every condition is looked at before the first row is written, so a batch whose condition
 * fails has changed nothing. */
static int check_conditions(struct txn *txn, struct ng_batch *batch)
{
    for (size_t i = 0; i < batch->put_count; i++) {
        const struct ng_put *put = &batch->puts[i];
        const struct touched *doc = touch(txn, &put->key);
        if (doc == NULL) {
            return NG_EINTERNAL;
        }
        if (doc->revision != put->base_revision) {
            batch->failed_put = i;
            (void)snprintf(batch->error, sizeof(batch->error),
                           "the document is at revision %llu, the change was made on %llu",
                           (unsigned long long)doc->revision,
                           (unsigned long long)put->base_revision);
            return NG_ECONFLICT;
        }
    }
    return NG_OK;
}

static int apply_batch(struct txn *txn, struct job *job)
{
    struct ng_batch *batch = job->batch;
    batch->error[0] = '\0';
    int rc = batch->answer != NULL ? check_answer(txn->db->writer, batch) : NG_OK;
    if (rc == NG_OK) {
        rc = check_conditions(txn, batch);
    }
    for (size_t i = 0; i < batch->put_count && rc == NG_OK; i++) {
        if (batch->puts[i].revision != batch->puts[i].base_revision) {
            rc = txn_put(txn, &batch->puts[i], &job->puts[i]);
        }
    }
    if (rc == NG_OK && batch->answer != NULL) {
        rc = store_answer(txn->db->writer, batch->answer);
    }
    return rc;
}

/* A fault of the batch or of the whole store? The latter ends the transaction. */
static bool is_refusal(int rc)
{
    return rc == NG_ECONFLICT || rc == NG_EKEYREUSED;
}

static bool writes_nothing(const struct job *jobs)
{
    for (const struct job *job = jobs; job != NULL; job = job->next) {
        if (job->batch->put_count > 0 || job->batch->answer != NULL) {
            return false;
        }
    }
    return jobs != NULL;
}

/* How long a checkpoint after a failed commit waits for readers. */
#define SETTLE_BUSY_MS 200

/*
 * After a failed sync the system may have thrown away pages of the log that it had not written
 * yet, and says so only once. What lies in the log goes into the database and the log begins
 * anew, so that no later commit stands behind pages that a power cut would miss. Busy readers
 * put it off: then the next commit tries again.
 */
static int settle_log(struct db *db, bool *ret_settled)
{
    *ret_settled = true;
    if (!db->suspect || db->memory) {
        return SQLITE_OK;
    }
    (void)sqlite3_busy_timeout(db->writer->sql, SETTLE_BUSY_MS);
    int rc = sqlite3_wal_checkpoint_v2(db->writer->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                       NULL);
    (void)sqlite3_busy_timeout(db->writer->sql, BUSY_MS);
    *ret_settled = rc != SQLITE_BUSY;
    return rc == SQLITE_BUSY ? SQLITE_OK : rc;
}

/* Nothing is wrong with the file or the batch: there was no memory, ours or SQLite's. */
static bool lacks_memory(struct db *db)
{
    int code = sqlite3_errcode(db->writer->sql);
    return code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE ||
           code == SQLITE_NOMEM;
}

/* ret_again: it failed for want of memory, and nothing of it happened. */
static int try_transaction(struct db *db, struct job *jobs, const struct job *until,
                           char *error, bool *ret_again)
{
    struct txn *txn = txn_new(db);
    bool settled = false;
    bool begun = txn != NULL && settle_log(db, &settled) == SQLITE_OK &&
                 work_sync(db) == SQLITE_OK &&
                 conn_exec(db->writer, STMT_BEGIN_WRITE) == SQLITE_OK;
    int rc = begun ? NG_OK : NG_EINTERNAL;
    for (struct job *job = jobs; job != until && rc == NG_OK; job = job->next) {
        job->rc = apply_batch(txn, job);
        rc = job->rc == NG_OK || is_refusal(job->rc) ? NG_OK : job->rc;
    }
    if (rc == NG_OK && (db->suspect || jobs == NULL)) {
        rc = set_meta(db->writer, "settled", db->txn_seq);
    }
    if (rc == NG_OK) {
        rc = txn_flush(txn);
    }
    bool committing = rc == NG_OK;
    if (rc == NG_OK && conn_exec(db->writer, STMT_COMMIT) != SQLITE_OK) {
        rc = NG_EINTERNAL;
    }
    if (rc != NG_OK) {
        *ret_again = rc == NG_EINTERNAL && !committing && lacks_memory(db);
        rc = conn_error(db->writer, "the commit", error, DB_ERROR_MAX);
        if (!sqlite3_get_autocommit(db->writer->sql)) {
            (void)conn_exec(db->writer, STMT_ROLLBACK);
        }
        db->suspect = db->suspect || committing;
        atomic_fetch_add(&db->stat_failures, 1);
    } else {
        atomic_store(&db->last_seq, db->txn_seq);
        db->suspect = db->suspect && !settled;
        atomic_fetch_add(&db->stat_transactions, 1);
    }
    txn_free(txn);
    return rc;
}

/* One transaction with these jobs; `until` (or NULL) ends the list. NG_OK: committed. What is
 * committed may record what was done already: a moment without memory must not lose it. */
static int run_transaction(struct db *db, struct job *jobs, const struct job *until,
                           char *error)
{
    const struct timespec pause = {0, MEMORY_PAUSE_NS};
    bool again = false;
    int rc = try_transaction(db, jobs, until, error, &again);
    for (int tries = 1; again && tries < MEMORY_TRIES; tries++) {
        (void)nanosleep(&pause, NULL);
        again = false;
        rc = try_transaction(db, jobs, until, error, &again);
    }
    return rc;
}

static void fail_all(struct job *jobs, const struct job *until, int rc, const char *error)
{
    for (struct job *job = jobs; job != until; job = job->next) {
        job->rc = rc;
        (void)snprintf(job->batch->error, sizeof(job->batch->error), "%s", error);
    }
}

/* When what failed may be the fault of one batch (too big, no memory), each gets a transaction
 * of its own. */
static void commit_singly(struct db *db, struct job *jobs)
{
    char error[DB_ERROR_MAX];
    for (struct job *job = jobs; job != NULL; job = job->next) {
        int rc = run_transaction(db, job, job->next, error);
        if (rc != NG_OK) {
            fail_all(job, job->next, rc, error);
        }
    }
}

void writer_commit(struct db *db, struct job *jobs)
{
    char error[DB_ERROR_MAX];
    for (struct job *job = jobs; job != NULL; job = job->next) {
        atomic_fetch_add(&db->stat_batches, 1);
        atomic_fetch_add(&db->stat_puts, job->batch->put_count);
    }
    if (writes_nothing(jobs)) {
        return;
    }
    turn_take(db);
    gate_enter_writer(db);
    int rc = run_transaction(db, jobs, NULL, error);
    if (rc != NG_OK && jobs != NULL) {
        bool whole_store = rc == NG_EFULL || rc == NG_EUNAVAILABLE;
        if (whole_store || jobs->next == NULL) {
            fail_all(jobs, NULL, rc, error);
        } else {
            commit_singly(db, jobs);
        }
    }
    gate_leave_writer(db);
    turn_give(db);
}
