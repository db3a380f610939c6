/* SPDX-License-Identifier: MIT */
/* turn.c - who may use the writing connection: first come, first served, so that upkeep in
 * small steps never keeps the writer out. */
#include "db.h"

void turn_take(struct db *db)
{
    struct turn *turn = &db->turn;
    pthread_mutex_lock(&turn->lock);
    uint64_t mine = turn->next++;
    while (turn->serving != mine) {
        pthread_cond_wait(&turn->moved, &turn->lock);
    }
    pthread_mutex_unlock(&turn->lock);
}

void turn_give(struct db *db)
{
    struct turn *turn = &db->turn;
    pthread_mutex_lock(&turn->lock);
    turn->serving++;
    pthread_cond_broadcast(&turn->moved);
    pthread_mutex_unlock(&turn->lock);
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
    turn_take(db);
    gate_enter_writer(db);
}

int work_open(struct db *db, bool durable)
{
    int rc = durable ? work_sync(db) : SQLITE_OK;
    if (!durable && !db->memory) {
        db->relaxed = true;
        rc = sqlite3_exec(db->writer->sql, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = conn_exec(db->writer, STMT_BEGIN_WRITE);
    }
    return rc;
}

int work_close(struct db *db, bool keep)
{
    int rc = SQLITE_OK;
    if (keep) {
        rc = conn_exec(db->writer, STMT_COMMIT);
    }
    if (!sqlite3_get_autocommit(db->writer->sql)) {
        (void)conn_exec(db->writer, STMT_ROLLBACK);
    }
    (void)work_sync(db); /* who commits next tries again, before anything is promised */
    db->suspect = db->suspect || rc != SQLITE_OK;
    return rc;
}

void work_leave(struct db *db)
{
    bool failed = db->suspect;
    gate_leave_writer(db);
    turn_give(db);
    if (failed) {
        /* The idle writer settles it, and may be asleep. */
        pthread_mutex_lock(&db->queue_lock);
        pthread_cond_signal(&db->queued);
        pthread_mutex_unlock(&db->queue_lock);
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
