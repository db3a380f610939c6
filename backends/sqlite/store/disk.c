/* SPDX-License-Identifier: MIT */
/* disk.c - the disk around the store: is there room for the next write. */
#include "core/base/minmax.h"
#include "db.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define KIB 1024

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

uint64_t disk_bytes(struct conn *writer)
{
    sqlite3_stmt *stmt = conn_stmt(writer, STMT_PAGE_COUNT);
    uint64_t bytes = 0;
    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        bytes = column_u64(stmt, 0) * DB_PAGE_BYTES;
    }
    (void)sqlite3_reset(stmt);
    return bytes;
}

/* The growth of the database when the log is copied into it. */
static uint64_t copy_bytes(struct conn *writer)
{
    struct stat status;
    if (stat(writer->db->path, &status) != 0) {
        return 0;
    }
    uint64_t bytes = disk_bytes(writer);
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
