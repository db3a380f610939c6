/* SPDX-License-Identifier: MIT */
/* audit_disk.c - write, sync, rename, sync of the folder. */
#include "audit_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#define DISK_READ_STEP ((size_t)16 * 1024)

int audit_disk_fail(int rc, const char *name, const char *verb, struct buf *error)
{
    const char *reason = text_errno(errno);
    if (rc == NG_EINTERNAL) {
        reason = "out of memory";
    } else if (rc == NG_ETOOLARGE) {
        reason = "it is too large";
    } else if (rc == NG_ENOTFOUND) {
        reason = "it is missing";
    }
    (void)buf_printf(error, "the audit log's file %s cannot be %s: %s", name, verb, reason);
    return rc;
}

/* Closes without a change of errno. */
static void disk_close(int fd)
{
    int number = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = number;
}

int audit_disk_sync_folder(int dir, const char *folder)
{
    int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && fsync(fd) == 0 ? NG_OK : NG_EUNAVAILABLE;
    disk_close(fd);
    return rc;
}

int audit_disk_open(const char *path, bool make, int *ret_fd, struct buf *error)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int len = snprintf(above, sizeof(above), "%.*s/", slash == NULL ? 1 : (int)(slash - path),
                       slash == NULL ? "." : path);
    bool fits = len >= 0 && (size_t)len < sizeof(above);
    bool there = true;
    errno = ENAMETOOLONG;
    if (fits && make) {
        there = (mkdir(path, S_IRWXU) == 0 || errno == EEXIST) &&
                audit_disk_sync_folder(AT_FDCWD, above) == NG_OK;
    }
    *ret_fd = fits && there ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*ret_fd >= 0) {
        return NG_OK;
    }
    if (errno == ENOENT && !make) {
        return NG_ENOTFOUND;
    }
    (void)buf_printf(error, "the folder of the audit log, %s, cannot be %s: %s", path,
                     there ? "opened" : "made", text_errno(errno));
    return NG_EUNAVAILABLE;
}

static int disk_read_all(int fd, struct buf *out)
{
    size_t got = 1;
    int rc = NG_OK;
    while (rc == NG_OK && got > 0) {
        size_t room = size_min(DISK_READ_STEP, out->max - out->len);
        char *to = buf_reserve(out, room);
        if (to == NULL) {
            return out->rc;
        }
        if (room == 0) {
            char more;
            rc = fd_get(&fd, &more, sizeof(more), &got);
            return rc == NG_OK && got > 0 ? NG_ETOOLARGE : rc;
        }
        rc = fd_get(&fd, to, room, &got);
        out->len += got;
    }
    return rc;
}

/* A file that is one. *ret_fd: to be closed in any case. */
static int disk_open_file(int dir, const char *name, int *ret_fd)
{
    struct stat info;
    *ret_fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*ret_fd < 0) {
        return errno == ENOENT || errno == ENOTDIR ? NG_ENOTFOUND : NG_EUNAVAILABLE;
    }
    errno = EINVAL;
    return fstat(*ret_fd, &info) == 0 && S_ISREG(info.st_mode) ? NG_OK : NG_EUNAVAILABLE;
}

int audit_disk_read(int dir, const char *name, struct buf *out)
{
    int fd;
    int rc = disk_open_file(dir, name, &fd);
    if (rc == NG_OK) {
        rc = disk_read_all(fd, out);
    }
    disk_close(fd);
    return rc == NG_EFAILED ? NG_EUNAVAILABLE : rc;
}

int audit_disk_each(int dir, const char *name, uint64_t from, audit_disk_fn *fn, void *user)
{
    char piece[DISK_READ_STEP];
    size_t got = 1;
    int fd;
    int rc = disk_open_file(dir, name, &fd);
    if (rc == NG_OK && lseek(fd, (off_t)from, SEEK_SET) < 0) {
        rc = NG_EUNAVAILABLE;
    }
    while (rc == NG_OK && got > 0) {
        if (fd_get(&fd, piece, sizeof(piece), &got) != NG_OK) {
            rc = NG_EUNAVAILABLE;
        } else if (got > 0) {
            rc = fn(user, str_make(piece, got));
        }
    }
    disk_close(fd);
    return rc;
}

/* ---- writing ---- */

/* The part of a name before its last slash; "." where it has none. */
static void disk_folder(const char *name, char out[AUDIT_DISK_NAME_SIZE])
{
    const char *slash = strrchr(name, '/');
    if (slash == NULL) {
        (void)snprintf(out, AUDIT_DISK_NAME_SIZE, ".");
    } else {
        (void)snprintf(out, AUDIT_DISK_NAME_SIZE, "%.*s", (int)(slash - name), name);
    }
}

int audit_disk_make_folders(int dir, const char *name)
{
    char folder[AUDIT_DISK_NAME_SIZE];
    char above[AUDIT_DISK_NAME_SIZE];
    for (const char *at = strchr(name, '/'); at != NULL; at = strchr(at + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(at - name), name);
        disk_folder(folder, above);
        if (mkdirat(dir, folder, S_IRWXU) != 0 && errno != EEXIST) {
            return NG_EUNAVAILABLE;
        }
        int rc = audit_disk_sync_folder(dir, above);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

int audit_disk_new(int dir, mode_t mode)
{
    int fd = openat(dir, AUDIT_DISK_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                    mode);
    /* The mode also of one that a killed process left. */
    if (fd >= 0 && fchmod(fd, mode) != 0) {
        disk_close(fd);
        fd = -1;
    }
    return fd;
}

int audit_disk_new_done(int dir, int fd, const char *name, int rc)
{
    char folder[AUDIT_DISK_NAME_SIZE];
    if (rc == NG_OK && fsync(fd) != 0) {
        rc = NG_EUNAVAILABLE;
    }
    disk_close(fd);
    if (rc != NG_OK) {
        return rc;
    }
    disk_folder(name, folder);
    return renameat(dir, AUDIT_DISK_NEW, dir, name) == 0 ? audit_disk_sync_folder(dir, folder)
                                                         : NG_EUNAVAILABLE;
}

int audit_disk_replace(int dir, const char *name, struct ng_str bytes, mode_t mode)
{
    int fd = audit_disk_new(dir, mode);
    int rc = fd >= 0 && fd_put(fd, bytes) == NG_OK ? NG_OK : NG_EUNAVAILABLE;
    return audit_disk_new_done(dir, fd, name, rc);
}

/* ---- many files ---- */

static void batch_note_folder(struct audit_disk_batch *batch, const char *name)
{
    char folder[AUDIT_DISK_NAME_SIZE];
    size_t i = 0;
    disk_folder(name, folder);
    while (i < batch->folder_count && strcmp(batch->folders[i], folder) != 0) {
        i++;
    }
    if (i == batch->folder_count) {
        memcpy(batch->folders[batch->folder_count++], folder, sizeof(folder));
    }
}

int audit_disk_batch_put(struct audit_disk_batch *batch, int dir, const char *name,
                         struct ng_str bytes, mode_t mode)
{
    int rc = batch->count == AUDIT_DISK_BATCH_MAX ? audit_disk_batch_sync(batch, dir) : NG_OK;
    int fd = rc == NG_OK ? audit_disk_new(dir, mode) : -1;
    if (fd < 0) {
        return NG_EUNAVAILABLE;
    }
    if (fd_put(fd, bytes) != NG_OK || renameat(dir, AUDIT_DISK_NEW, dir, name) != 0) {
        disk_close(fd);
        return NG_EUNAVAILABLE;
    }
    /* The disk gets its place on it now: then one commit of the file system has all of them. */
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    batch->fds[batch->count++] = fd;
    batch_note_folder(batch, name);
    return NG_OK;
}

int audit_disk_batch_sync(struct audit_disk_batch *batch, int dir)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < batch->count; i++) {
        rc = fsync(batch->fds[i]) == 0 ? NG_OK : NG_EUNAVAILABLE;
    }
    for (size_t i = 0; rc == NG_OK && i < batch->folder_count; i++) {
        rc = audit_disk_sync_folder(dir, batch->folders[i]);
    }
    audit_disk_batch_drop(batch);
    return rc;
}

void audit_disk_batch_drop(struct audit_disk_batch *batch)
{
    while (batch->count > 0) {
        disk_close(batch->fds[--batch->count]);
    }
    batch->folder_count = 0;
}

int audit_disk_clear(int dir, const char *folder, const char *keep)
{
    int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int rc = NG_OK;
    if (stream == NULL) {
        rc = fd < 0 && errno == ENOENT ? NG_OK : NG_EUNAVAILABLE;
        disk_close(fd);
        return rc;
    }
    for (errno = 0; (entry = readdir(stream)) != NULL; errno = 0) {
        if (entry->d_name[0] == '.' || (keep != NULL && strcmp(entry->d_name, keep) == 0)) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) != 0) {
            break;
        }
    }
    int number = errno;
    if (number != 0) {
        rc = NG_EUNAVAILABLE;
    } else if (keep == NULL) {
        (void)unlinkat(dir, folder, AT_REMOVEDIR); /* an empty folder does no harm */
    }
    (void)closedir(stream);
    errno = number;
    return rc;
}
