/* SPDX-License-Identifier: MIT */
/* disk.c - the files of the store and the room around them: are they still what their names
 * lead to, and does what is to be written fit. */
#include "db.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define KIB 1024

static int log_path(const struct db *db, char path[DB_PATH_MAX + 8])
{
    return snprintf(path, DB_PATH_MAX + 8, "%s-wal", db->path);
}

static bool is_same(const struct file_id *id, const struct stat *status)
{
    return id->device == status->st_dev && id->inode == status->st_ino;
}

int disk_note_files(struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    struct stat file;
    struct stat wal;
    (void)log_path(db, log);
    if (db->memory) {
        return NG_OK;
    }
    if (stat(db->path, &file) != 0 || stat(log, &wal) != 0) {
        (void)snprintf(error, error_max, "%s went away while it was opened: try again",
                       db->path);
        return NG_EUNAVAILABLE;
    }
    db->file = (struct file_id){file.st_dev, file.st_ino};
    db->log = (struct file_id){wal.st_dev, wal.st_ino};
    return NG_OK;
}

static int check_file(const char *path, const struct file_id *id, char *error, size_t error_max)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            (void)snprintf(error, error_max,
                           "%.400s cannot be looked at (error %d): check its folder", path,
                           errno);
            return NG_EUNAVAILABLE;
        }
        (void)snprintf(error, error_max,
                       "%.350s is gone: put it back, or stop the gateway and restore it from a "
                       "backup",
                       path);
        return NG_EUNAVAILABLE;
    }
    if (!is_same(id, &status)) {
        (void)snprintf(error, error_max,
                       "%.300s is another file than the one that the gateway opened: restart "
                       "it to serve that file, or put the opened one back",
                       path);
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

int disk_check_files(const struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    if (db->memory || db->log.inode == 0) {
        return NG_OK; /* nothing to lose, or not open yet */
    }
    int rc = check_file(db->path, &db->file, error, error_max);
    if (rc == NG_OK) {
        (void)log_path(db, log);
        rc = check_file(log, &db->log, error, error_max);
    }
    return rc;
}

uint64_t disk_free(const struct db *db)
{
    struct statvfs room;
    if (db->memory || statvfs(db->path, &room) != 0 || room.f_blocks == 0) {
        return UINT64_MAX; /* not known: the next write will tell */
    }
    /* What is kept for root is room for root only. */
    uint64_t blocks = geteuid() == 0 ? room.f_bfree : room.f_bavail;
    return blocks * room.f_frsize;
}

/* By how much the database grows when the log is copied into it. */
static uint64_t copy_bytes(struct conn *writer)
{
    struct stat status;
    sqlite3_stmt *stmt = conn_stmt(writer, STMT_PAGE_COUNT);
    if (stmt == NULL || stat(writer->db->path, &status) != 0) {
        return 0;
    }
    uint64_t bytes = 0;
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        bytes = column_u64(stmt, 0) * DB_PAGE_BYTES;
    }
    (void)sqlite3_reset(stmt);
    uint64_t size = (uint64_t)status.st_size;
    return bytes > size ? bytes - size : 0;
}

bool disk_takes_copy(struct conn *writer)
{
    uint64_t bytes = copy_bytes(writer);
    uint64_t room = bytes == 0 ? UINT64_MAX : disk_free(writer->db);
    return room >= DISK_SPARE_BYTES && room - DISK_SPARE_BYTES >= bytes;
}

uint64_t disk_need(struct db *db)
{
    /* The row of the document and its revision in the log, and the pages of their indices. */
    uint64_t need = DISK_WRITE_BYTES + 2 * (uint64_t)db->txn_bytes;
    if (db->trouble == TROUBLE_SYNC) {
        need += copy_bytes(db->writer);
    }
    return (need + KIB - 1) / KIB * KIB;
}
