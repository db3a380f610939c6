/* SPDX-License-Identifier: MIT */
/* writer_lock.c - the lock of the writing connection, first come first served so that upkeep in
 * small steps never starves the writer; and short transactions under it. */
#include "db.h"

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
    gate_enter_writer(db);
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
    gate_leave_writer(db);
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
