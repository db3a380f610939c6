/* SPDX-License-Identifier: MIT */
/* wal.c - the write-ahead log is copied into the database, and begins anew before it is long:
 * where the disk has room for the copy. */
#include "db.h"

/*
 * Runs behind each commit of the writer, as SQLite's own automatic checkpoint would. That
 * copies what readers let it, but the log begins anew only in a moment in which nobody reads
 * it: while reads overlap all the time it would grow without end. From WAL_RESTART_PAGES on the
 * readers of the log are waited for, as whoever comes meanwhile reads the database alone.
 */
static int wal_committed(void *user, sqlite3 *sql, const char *name, int pages)
{
    struct conn *conn = user;
    if (pages < conn->wal_pages) { /* it has begun anew */
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
        conn->wal_restart_at =
            pages + pages / 2; /* a reader that stays is not waited for often */
        conn->wal_copy_at = pages + WAL_AGAIN_PAGES;
    } else if (pages >= conn->wal_copy_at) {
        (void)sqlite3_wal_checkpoint_v2(sql, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        conn->wal_copy_at = pages + WAL_AGAIN_PAGES;
    }
    return SQLITE_OK; /* the commit is made, whatever comes of this */
}

void wal_follow(struct conn *writer)
{
    writer->wal_copy_at = WAL_COPY_PAGES;
    writer->wal_restart_at = WAL_RESTART_PAGES;
    (void)sqlite3_wal_hook(writer->sql, wal_committed, writer);
}
