/* SPDX-License-Identifier: MIT */
/* disk.c - the files of the store and the disk around them: do their names still lead to them,
 * and is there room for the next write. */
#include "core/base/minmax.h"
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define KIB 1024

static int log_path(const struct db *db, char path[DB_PATH_MAX + 8])
{
    return snprintf(path, DB_PATH_MAX + 8, "%s-wal", db->path);
}

int disk_hold_files(struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    (void)log_path(db, log);
    if (db->memory) {
        return NG_OK;
    }
    /* An O_PATH descriptor can be closed without releasing the POSIX locks of sqlite. */
    db->file_fd = open(db->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    db->log_fd = open(log, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (db->file_fd < 0 || (db->log_fd < 0 && errno != ENOENT)) {
        (void)snprintf(error, error_max,
                       "%.400s cannot be kept open (error %d): check that it exists, and the "
                       "limit of open files",
                       db->path, errno);
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

void disk_release_files(struct db *db)
{
    if (db->file_fd >= 0) {
        (void)close(db->file_fd);
    }
    if (db->log_fd >= 0) {
        (void)close(db->log_fd);
    }
}

/* Compares the numbers of both descriptor and name each time: some file systems do not give a
 * file a lasting number. */
static int check_file(const char *path, int fd, char *error, size_t error_max)
{
    struct stat named;
    struct stat held;
    int number = 0;
    if (stat(path, &named) != 0 || fstat(fd, &held) != 0) {
        number = errno;
    }
    if (number == ENOENT || number == ENOTDIR) {
        (void)snprintf(error, error_max,
                       "%.350s is gone: put it back, or stop the gateway and restore it from a "
                       "backup",
                       path);
    } else if (number != 0) {
        (void)snprintf(error, error_max,
                       "%.400s cannot be checked (error %d): check its folder", path, number);
    } else if (named.st_dev != held.st_dev || named.st_ino != held.st_ino ||
               held.st_nlink == 0) {
        (void)snprintf(error, error_max,
                       "%.300s is another file than the one that the gateway opened: restart "
                       "it to serve that file, or put the opened one back",
                       path);
    } else {
        return NG_OK;
    }
    return NG_EUNAVAILABLE;
}

int disk_check_files(const struct db *db, char *error, size_t error_max)
{
    char log[DB_PATH_MAX + 8];
    /* A store in memory has no files; while the store is opened they are not known yet. */
    int rc = NG_OK;
    if (db->file_fd >= 0) {
        rc = check_file(db->path, db->file_fd, error, error_max);
    }
    if (rc == NG_OK && db->log_fd >= 0) {
        (void)log_path(db, log);
        rc = check_file(log, db->log_fd, error, error_max);
    }
    return rc;
}

uint64_t disk_free(const struct db *db)
{
    struct statvfs room;
    if (db->memory || statvfs(db->path, &room) != 0 || room.f_blocks == 0) {
        return UINT64_MAX; /* unknown: let the next write find out */
    }
    /* The reserve of root is no room for others. */
    uint64_t blocks = room.f_bavail;
    if (geteuid() == 0) {
        blocks = room.f_bfree;
    }
    return blocks * room.f_frsize;
}

/* The growth of the database when the log is copied into it. */
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
    return bytes - u64_min(bytes, (uint64_t)status.st_size);
}

bool disk_takes_copy(struct conn *writer)
{
    uint64_t bytes = copy_bytes(writer);
    uint64_t room = UINT64_MAX;
    if (bytes != 0) {
        room = disk_free(writer->db);
    }
    return room >= DISK_SPARE_BYTES && room - DISK_SPARE_BYTES >= bytes;
}

uint64_t disk_need(struct db *db)
{
    /* The row of the document, its revision in the log, and index pages. */
    uint64_t need = DISK_WRITE_BYTES + 2 * (uint64_t)db->txn_bytes;
    if (db->trouble == TROUBLE_SYNC) {
        need += copy_bytes(db->writer);
    }
    return (need + KIB - 1) / KIB * KIB;
}
