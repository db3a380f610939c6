/* SPDX-License-Identifier: MIT */
/* writer.c - one transaction of many batches: their conditions, revisions and answers, the
 * handling of failures, and checkpoints of the log. */
#include "core/base/minmax.h"
#include "txn.h"

#include "db.h"
#include <stdio.h>
#include <time.h>

/* Retries of a transaction that ran out of memory, and the pause before each. */
#define MEMORY_TRIES 20
#define MEMORY_PAUSE_NS 10000000L
/* After this many batches in a row that find no disk space, the rest of the queue is refused,
 * too. */
#define FULL_TRIES 8

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
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        return NG_OK;
    }
    return NG_EINTERNAL;
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
    if (conn_run(conn, stmt) == SQLITE_OK) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

/* Checks all conditions before the first row is written: a batch that is refused has changed
 * nothing. */
static int check_conditions(struct txn *txn, struct ng_batch *batch)
{
    for (size_t i = 0; i < batch->put_count; i++) {
        const struct ng_put *put = batch->puts[i];
        const struct touched *doc = txn_touch(txn, &put->key);
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
    int rc = NG_OK;
    if (batch->answer != NULL) {
        rc = check_answer(txn->db->writer, batch);
    }
    if (rc == NG_OK) {
        rc = check_conditions(txn, batch);
    }
    for (size_t i = 0; i < batch->put_count && rc == NG_OK; i++) {
        struct ng_put *put = batch->puts[i];
        if (put->revision != put->base_revision) {
            put->time_ms = i64_max(put->time_ms, txn->db->last_ms);
            txn->db->last_ms = put->time_ms;
            rc = txn_put(txn, put, &job->puts[i]);
        }
    }
    if (rc == NG_OK && batch->answer != NULL) {
        rc = store_answer(txn->db->writer, batch->answer);
    }
    return rc;
}

/* An error of the batch or of the whole store? The latter ends the transaction. */
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

/* Milliseconds for which a checkpoint after a failed commit waits for readers. */
#define SETTLE_BUSY_MS 200

/* After a failed sync the system may have dropped pages of the log that it had not written, and
 * reports that only once. So the log is copied into the database and restarts: no later commit
 * may stand behind pages that a power cut would lose. Busy readers delay this to the next
 * commit. */
static int settle_log(struct db *db, bool *ret_settled)
{
    *ret_settled = true;
    if (atomic_load(&db->trouble) != TROUBLE_SYNC || db->memory) {
        return SQLITE_OK;
    }
    (void)sqlite3_busy_timeout(db->writer->sql, SETTLE_BUSY_MS);
    int rc = sqlite3_wal_checkpoint_v2(db->writer->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                       NULL);
    (void)sqlite3_busy_timeout(db->writer->sql, BUSY_MS);
    *ret_settled = rc != SQLITE_BUSY;
    if (rc != SQLITE_BUSY) {
        return rc;
    }
    return SQLITE_OK;
}

/* The file and the batch are good: memory ran out, ours or that of sqlite. */
static bool lacks_memory(struct db *db)
{
    int code = sqlite3_errcode(db->writer->sql);
    return code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE ||
           code == SQLITE_NOMEM;
}

/* Size of the transaction: determines the room that it needs. */
static size_t bytes_of(const struct job *jobs, const struct job *until)
{
    size_t bytes = 0;
    for (const struct job *job = jobs; job != until; job = job->next) {
        bytes += job->bytes;
    }
    return bytes;
}

/* Rolls the transaction back and remembers the room that it lacked. */
static void roll_back(struct db *db, const struct job *jobs, int rc)
{
    if (rc == NG_EFULL && jobs != NULL) {
        atomic_store(&db->needed, disk_need(db));
    }
    if (!sqlite3_get_autocommit(db->writer->sql)) {
        (void)conn_exec(db->writer, STMT_ROLLBACK);
    }
    atomic_fetch_add(&db->stat_failures, 1);
}

/* ret_again: it ran out of memory and has changed nothing. */
static int try_transaction(struct db *db, struct job *jobs, const struct job *until,
                           char *error, bool *ret_again)
{
    struct txn *txn = txn_new(db);
    bool settled = false;
    db->txn_bytes = bytes_of(jobs, until);
    bool begun = txn != NULL && settle_log(db, &settled) == SQLITE_OK &&
                 work_sync(db) == SQLITE_OK &&
                 conn_exec(db->writer, STMT_BEGIN_WRITE) == SQLITE_OK;
    int rc = NG_EINTERNAL;
    if (begun) {
        rc = NG_OK;
    }
    for (struct job *job = jobs; job != until && rc == NG_OK; job = job->next) {
        job->rc = apply_batch(txn, job);
        if (job->rc == NG_OK || is_refusal(job->rc)) {
            rc = NG_OK;
        } else {
            rc = job->rc;
        }
    }
    if (rc == NG_OK && (atomic_load(&db->trouble) != TROUBLE_NONE || jobs == NULL)) {
        rc = txn_meta(db->writer, "settled", db->txn_seq);
    }
    if (rc == NG_OK) {
        rc = txn_flush(txn);
    }
    if (rc == NG_OK) {
        rc = work_commit(db, "the commit", error, DB_ERROR_MAX);
    } else {
        *ret_again = rc == NG_EINTERNAL && lacks_memory(db);
        rc = conn_error(db->writer, "the commit", error, DB_ERROR_MAX);
    }
    if (rc != NG_OK) {
        roll_back(db, jobs, rc);
    } else {
        atomic_store(&db->last_seq, db->txn_seq);
        if (settled) {
            atomic_store(&db->trouble, TROUBLE_NONE);
        }
        if (jobs != NULL) {
            atomic_store(&db->needed, 0);
        }
        atomic_fetch_add(&db->stat_transactions, 1);
    }
    txn_free(txn);
    return rc;
}

/* Commits these jobs in one transaction; `until` (or NULL) ends the list. NG_OK: committed. The
 * transaction may record work that is done already, so a moment without memory must not lose
 * it. */
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

/* If the failure may be caused by a single batch (too large, out of memory, or no room for all
 * of them at once), each batch gets a transaction of its own. */
static void commit_singly(struct db *db, struct job *jobs)
{
    char error[DB_ERROR_MAX];
    int refused = 0; /* in a row, without disk space */
    for (struct job *job = jobs; job != NULL; job = job->next) {
        int rc = run_transaction(db, job, job->next, error);
        if (rc == NG_EFULL) {
            refused = refused + 1;
        } else {
            refused = 0;
        }
        if (rc != NG_OK) {
            fail_all(job, refused == FULL_TRIES ? NULL : job->next, rc, error);
        }
        if (refused == FULL_TRIES) {
            break;
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
    writer_lock(db);
    if (db->memory) {
        gate_enter_writer(db);
    }
    int rc = run_transaction(db, jobs, NULL, error);
    if (rc != NG_OK && jobs != NULL) {
        if (rc == NG_EUNAVAILABLE || jobs->next == NULL) {
            fail_all(jobs, NULL, rc, error);
        } else {
            commit_singly(db, jobs);
        }
    }
    if (db->memory) {
        gate_leave_writer(db);
    }
    writer_unlock(db);
}

/* ---- the write-ahead log ---- */

/* Runs after each commit of the writer, as the automatic checkpoint of sqlite would. That one
 * copies what readers permit, but the log restarts only at a moment without readers: if reads
 * overlap all the time it would grow without limit. From WAL_RESTART_PAGES on the writer waits
 * for the readers of the log; new readers use the database alone. */
static int wal_committed(void *user, sqlite3 *sql, const char *name, int pages)
{
    struct conn *conn = user;
    if (pages < conn->wal_pages) { /* the log has restarted */
        conn->wal_copy_at = WAL_COPY_PAGES;
        conn->wal_restart_at = WAL_RESTART_PAGES;
    }
    conn->wal_pages = pages;
    bool due = pages >= conn->wal_restart_at || pages >= conn->wal_copy_at;
    if (due && !disk_takes_copy(conn)) {
        return SQLITE_OK;
    }
    if (pages >= conn->wal_restart_at) {
        (void)sqlite3_busy_timeout(sql, WAL_RESTART_MS);
        (void)sqlite3_wal_checkpoint_v2(sql, name, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
        (void)sqlite3_busy_timeout(sql, BUSY_MS);
        conn->wal_restart_at = pages + pages / 2; /* do not wait often for a long reader */
        conn->wal_copy_at = pages + WAL_AGAIN_PAGES;
    } else if (pages >= conn->wal_copy_at) {
        (void)sqlite3_wal_checkpoint_v2(sql, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        conn->wal_copy_at = pages + WAL_AGAIN_PAGES;
    }
    return SQLITE_OK; /* the commit is done in any case */
}

void wal_follow(struct conn *writer)
{
    writer->wal_copy_at = WAL_COPY_PAGES;
    writer->wal_restart_at = WAL_RESTART_PAGES;
    (void)sqlite3_wal_hook(writer->sql, wal_committed, writer);
}

void writer_lock(struct db *db)
{
    struct writer_lock *lock = &db->writer_lock;
    lock_take(&lock->lock);
    uint64_t mine = lock->next++;
    while (lock->serving != mine) {
        lock_wait(&lock->moved, &lock->lock);
    }
    lock_release(&lock->lock);
}

void writer_unlock(struct db *db)
{
    struct writer_lock *lock = &db->writer_lock;
    lock_take(&lock->lock);
    lock->serving++;
    pthread_cond_broadcast(&lock->moved);
    lock_release(&lock->lock);
}

int work_sync(struct db *db)
{
    int rc = SQLITE_OK;
    if (db->relaxed) {
        rc = sqlite3_exec(db->writer->sql, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
        db->relaxed = rc != SQLITE_OK;
    }
    return rc;
}

void work_enter(struct db *db)
{
    writer_lock(db);
    if (db->memory) {
        gate_enter_writer(db);
    }
}

int work_open(struct db *db, bool durable)
{
    int rc = SQLITE_OK;
    if (durable) {
        rc = work_sync(db);
    }
    if (!durable && !db->memory) {
        db->relaxed = true;
        rc = sqlite3_exec(db->writer->sql, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = conn_exec(db->writer, STMT_BEGIN_WRITE);
    }
    return rc;
}

/* The state of the log after a failed COMMIT. If a page found no room, the COMMIT ended before
 * its last page was written; if the index of the log could not grow, after it. */
static enum log_trouble trouble_of(const struct conn *writer, int rc)
{
    bool reached_disk = rc == SQLITE_FULL || rc == SQLITE_IOERR_SHMSIZE ||
                        rc == SQLITE_IOERR_SHMMAP ||
                        (rc == SQLITE_IOERR_WRITE && conn_lacks_room(writer, rc));
    if (reached_disk) {
        return TROUBLE_TAIL;
    }
    return TROUBLE_SYNC;
}

int work_commit(struct db *db, const char *doing, char *error, size_t error_max)
{
    int rc = disk_check_files(db, error, error_max);
    if (rc == NG_OK && conn_exec(db->writer, STMT_COMMIT) != SQLITE_OK) {
        enum log_trouble trouble =
            trouble_of(db->writer, sqlite3_extended_errcode(db->writer->sql));
        if (trouble > atomic_load(&db->trouble)) {
            atomic_store(&db->trouble, trouble);
        }
        rc = conn_error(db->writer, doing, error, error_max);
    }
    return rc;
}

int work_close(struct db *db, bool keep)
{
    char error[DB_ERROR_MAX];
    int rc = SQLITE_OK;
    if (keep && work_commit(db, "upkeep", error, sizeof(error)) != NG_OK) {
        rc = SQLITE_ERROR;
    }
    if (!sqlite3_get_autocommit(db->writer->sql)) {
        (void)conn_exec(db->writer, STMT_ROLLBACK);
    }
    (void)work_sync(db); /* the next commit retries it before it promises anything */
    return rc;
}

void work_leave(struct db *db)
{
    bool failed = atomic_load(&db->trouble) != TROUBLE_NONE;
    if (db->memory) {
        gate_leave_writer(db);
    }
    writer_unlock(db);
    if (failed) {
        /* Wake the idle writer, which handles it. */
        lock_take(&db->queue_lock);
        pthread_cond_signal(&db->queued);
        lock_release(&db->queue_lock);
    }
}

int work_begin(struct db *db, bool durable)
{
    work_enter(db);
    return work_open(db, durable);
}

int work_end(struct db *db, bool keep)
{
    int rc = work_close(db, keep);
    work_leave(db);
    return rc;
}
