/* SPDX-License-Identifier: MIT */
/* sql_temp.c - a file system for one statement: temporary files that count towards its memory,
 * and no other file at all. */
#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"
#include "sql_parts.h"

struct temp_file {
    sqlite3_file file;
    struct notes_sql_guard *guard;
    int64_t size;
    sqlite3_file *real; /* behind this struct, in the same memory */
};

static struct temp_file *temp_of(sqlite3_file *file)
{
    return (struct temp_file *)(void *)file;
}

static int temp_close(sqlite3_file *file)
{
    struct temp_file *temp = temp_of(file);
    temp->guard->temporary -= temp->size;
    temp->size = 0;
    if (temp->real->pMethods == NULL) {
        return SQLITE_OK;
    }
    return temp->real->pMethods->xClose(temp->real);
}

static int temp_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at)
{
    struct temp_file *temp = temp_of(file);
    return temp->real->pMethods->xRead(temp->real, data, len, at);
}

static int temp_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct temp_file *temp = temp_of(file);
    int64_t size = i64_max(at + len, temp->size);
    if (temp->guard->temporary + (size - temp->size) > temp->guard->bytes_max) {
        notes_sql_guard_stop(temp->guard, NOTES_SQL_TEMPORARY, "");
        return SQLITE_FULL;
    }
    temp->guard->temporary += size - temp->size;
    temp->size = size;
    return temp->real->pMethods->xWrite(temp->real, data, len, at);
}

static int temp_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct temp_file *temp = temp_of(file);
    int rc = temp->real->pMethods->xTruncate(temp->real, size);
    if (rc == SQLITE_OK && size < temp->size) {
        temp->guard->temporary -= temp->size - size;
        temp->size = size;
    }
    return rc;
}

static int temp_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK; /* not needed after a crash */
}

static int temp_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct temp_file *temp = temp_of(file);
    return temp->real->pMethods->xFileSize(temp->real, ret_size);
}

static int temp_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int temp_reserved(sqlite3_file *file, int *ret_reserved)
{
    (void)file;
    *ret_reserved = 0;
    return SQLITE_OK;
}

static int temp_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int temp_traits(sqlite3_file *file)
{
    struct temp_file *temp = temp_of(file);
    return temp->real->pMethods->xDeviceCharacteristics(temp->real);
}

static const sqlite3_io_methods temp_methods = {
    .iVersion = 1,
    .xClose = temp_close,
    .xRead = temp_read,
    .xWrite = temp_write,
    .xTruncate = temp_truncate,
    .xSync = temp_sync,
    .xFileSize = temp_size,
    .xLock = temp_lock,
    .xUnlock = temp_lock,
    .xCheckReservedLock = temp_reserved,
    .xFileControl = temp_control,
    .xDeviceCharacteristics = temp_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    struct notes_sql_guard *guard = vfs->pAppData;
    struct temp_file *temp = temp_of(file);
    temp->file.pMethods = NULL;
    if (name != NULL || (flags & SQLITE_OPEN_DELETEONCLOSE) == 0) {
        return SQLITE_CANTOPEN;
    }
    temp->guard = guard;
    temp->size = 0;
    temp->real = (sqlite3_file *)(void *)(temp + 1);
    int rc = guard->base->xOpen(guard->base, NULL, temp->real, flags, ret_flags);
    if (rc == SQLITE_OK) {
        temp->file.pMethods = &temp_methods;
    }
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_there)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *ret_there = 0;
    return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    (void)snprintf(out, (size_t)size, "%s", name);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int size, char *out)
{
    struct notes_sql_guard *guard = vfs->pAppData;
    return guard->base->xRandomness(guard->base, size, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    (void)microseconds;
    return 0;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret_days)
{
    struct notes_sql_guard *guard = vfs->pAppData;
    return guard->base->xCurrentTime(guard->base, ret_days);
}

int notes_sql_temp_register(struct notes_sql_guard *guard)
{
    guard->base = sqlite3_vfs_find(NULL);
    if (guard->base == NULL) {
        return SQLITE_ERROR;
    }
    (void)snprintf(guard->vfs_name, sizeof(guard->vfs_name), "opennotes-%p", (void *)guard);
    guard->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct temp_file) + guard->base->szOsFile,
        .mxPathname = guard->base->mxPathname,
        .zName = guard->vfs_name,
        .pAppData = guard,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_name,
        .xRandomness = vfs_random,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
    };
    return sqlite3_vfs_register(&guard->vfs, 0);
}
