/* SPDX-License-Identifier: MIT */
/* files_save.c - putting a file in place: written beside it, made durable, then exchanged; what
 * comes out of the exchange tells whether another program saved meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "files_state.h"

#define FILES_SWAPS_MAX 64   /* while other programs replace the file faster than we swap */
#define FILES_COMPARED 16384 /* bytes at a time, on the stack */
#define FILES_XATTRS_MAX 4096
#define FILES_XATTR_VALUE_MAX 65536

struct ng_str files_temp_name(struct call *call, struct ng_str op, const char *ending)
{
    return arena_printf(&call->arena, FILES_TEMP_PREFIX "%.*s%s", (int)op.len, op.data, ending);
}

static int fail_memory(struct call *call)
{
    return call_fail(call, NG_EINTERNAL, "Out of memory while saving a file.");
}

/* ---- writing beside the target */

static int write_all(struct call *call, struct ng_str path, int fd, struct ng_str data)
{
    while (data.len > 0) {
        ssize_t put = write(fd, data.data, data.len);
        if (put < 0 && errno != EINTR) {
            return files_fail_os(call, errno, "save", path);
        }
        if (put > 0) {
            data = str_make(data.data + put, data.len - (size_t)put);
        }
    }
    return NG_OK;
}

/* The bytes of `from` from `at` on, up to `end`, into `to`. */
static int write_range(struct call *call, struct ng_str path, int from, int to, off_t at,
                       off_t end, char *block)
{
    int rc = NG_OK;
    if (lseek(to, at, SEEK_SET) < 0) {
        rc = files_fail_os(call, errno, "save", path);
    }
    ssize_t got = 1;
    while (rc == NG_OK && at < end && got != 0) {
        size_t room = FILES_BLOCK;
        if (end - at < (off_t)FILES_BLOCK) {
            room = (size_t)(end - at);
        }
        got = pread(from, block, room, at);
        if (got > 0) {
            at += got;
            rc = write_all(call, path, to, str_make(block, (size_t)got));
        } else if (got < 0 && errno != EINTR) {
            rc = files_fail_os(call, errno, "read", path);
        }
        if (rc == NG_OK && files_cancelled(call)) {
            rc = files_check_cancelled(call);
        }
    }
    return rc;
}

/* The content of `from`, whole, into `to`: holes stay holes, so that a copy takes no more room
 * than the file does. */
static int write_copy(struct call *call, struct ng_str path, int from, int to)
{
    struct stat st;
    char *block = alloc_bytes(FILES_BLOCK);
    if (block == NULL) {
        return fail_memory(call);
    }
    int rc = NG_OK;
    if (fstat(from, &st) != 0) {
        rc = files_fail_os(call, errno, "read", path);
    }
    off_t at = 0;
    while (rc == NG_OK && at < st.st_size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            break; /* nothing but a hole is left */
        }
        data = i64_max(data, at); /* a file system that does not tell: all is data */
        off_t end = lseek(from, data, SEEK_HOLE);
        if (end <= data || end > st.st_size) {
            end = st.st_size;
        }
        rc = write_range(call, path, from, to, data, end, block);
        at = end;
    }
    free(block);
    if (rc == NG_OK && ftruncate(to, st.st_size) != 0) {
        rc = files_fail_os(call, errno, "save", path);
    }
    return rc;
}

/* Access lists decide who may read a file just as its mode does; other attributes are kept
 * where the file system lets us. */
static int keep_attributes(struct call *call, struct ng_str path, int from, int to)
{
    char *names = alloc_bytes(FILES_XATTRS_MAX);
    char *value = alloc_bytes(FILES_XATTR_VALUE_MAX);
    int rc;
    if (names != NULL && value != NULL) {
        rc = NG_OK;
    } else {
        rc = fail_memory(call);
    }
    ssize_t len = 0;
    if (rc == NG_OK) {
        len = flistxattr(from, names, FILES_XATTRS_MAX);
    }
    ssize_t at = 0;
    while (rc == NG_OK && at < len) {
        const char *name = names + at;
        at += (ssize_t)strlen(name) + 1;
        ssize_t size = fgetxattr(from, name, value, FILES_XATTR_VALUE_MAX);
        if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) != 0 &&
            strcmp(name, "system.posix_acl_access") == 0) {
            rc = call_fail(call, NG_EFORBIDDEN,
                           "Cannot save %.*s: its access list cannot be kept. Run the gateway "
                           "as the file's owner.",
                           (int)path.len, path.data);
        }
    }
    free(names);
    free(value);
    return rc;
}

static int keep_owner_and_mode(struct file_op *op, struct ng_str path, int fd)
{
    struct call *call = op->call;
    struct stat from;
    struct stat to;
    if (!op->keep_mode) {
        return NG_OK;
    }
    if (fstat(op->fd, &from) != 0 || fstat(fd, &to) != 0) {
        return files_fail_os(call, errno, "save", path);
    }
    if (op->keep_owner && (from.st_uid != to.st_uid || from.st_gid != to.st_gid) &&
        fchown(fd, from.st_uid, from.st_gid) != 0) {
        return call_fail(call, NG_EFORBIDDEN,
                         "Cannot save %.*s: its owner (user %u, group %u) cannot be kept. Run "
                         "the gateway as its owner, or change the owner of the file.",
                         (int)path.len, path.data, (unsigned)from.st_uid,
                         (unsigned)from.st_gid);
    }
    int rc = NG_OK;
    if (op->keep_owner) {
        rc = keep_attributes(call, path, op->fd, fd);
    }
    /* Under another owner, "runs as its owner" would mean another user. */
    mode_t mode = from.st_mode & (op->keep_owner ? 07777U : 0777U);
    if (rc == NG_OK && fchmod(fd, mode) != 0) {
        rc = call_fail(call, NG_EFORBIDDEN,
                       "Cannot save %.*s: its mode (%04o) cannot be kept. Run the gateway as "
                       "its owner.",
                       (int)path.len, path.data, (unsigned)mode);
    }
    return rc;
}

/* The new file, whole and on disk, as `complete` in the folder of `place`. */
static int write_temp(struct file_op *op, struct file_place *place, struct ng_str writing,
                      struct ng_str complete)
{
    struct call *call = op->call;
    mode_t mode = S_IRUSR | S_IWUSR;
    if (!op->keep_mode) {
        mode |= S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH; /* less what the umask takes */
    }
    op->temp = openat(place->dir, writing.data,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (op->temp < 0) {
        return files_fail_os(call, errno, "save", place->path);
    }
    (void)flock(op->temp, LOCK_EX | LOCK_NB); /* other gateways wait from the exchange on */
    int rc;
    if (op->copy) {
        rc = write_copy(call, place->path, op->fd, op->temp);
    } else {
        rc = write_all(call, place->path, op->temp, op->next);
    }
    if (rc == NG_OK) {
        rc = keep_owner_and_mode(op, place->path, op->temp);
    }
    struct stat st;
    if (rc == NG_OK && (fsync(op->temp) != 0 || fstat(op->temp, &st) != 0 ||
                        renameat(place->dir, writing.data, place->dir, complete.data) != 0)) {
        rc = files_fail_os(call, errno, "save", place->path);
    } else if (rc == NG_OK) {
        op->written = st.st_mtim;
    }
    if (rc != NG_OK) {
        (void)unlinkat(place->dir, writing.data, 0);
    }
    return rc;
}

/* ---- identity */

struct identity {
    dev_t dev;
    ino_t ino;
};

static bool identify(int dir, const char *name, struct identity *ret)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    *ret = (struct identity){st.st_dev, st.st_ino};
    return true;
}

static bool same_identity(struct identity a, struct identity b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

/* Compared without any memory that could be missing just now. */
static bool same_content(int fd, struct ng_str expected)
{
    char block[FILES_COMPARED];
    size_t at = 0;
    ssize_t got = 1;
    while (got != 0) {
        got = pread(fd, block, sizeof(block), (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 || (size_t)got > expected.len - at ||
            memcmp(block, expected.data + at, (size_t)got) != 0) {
            return false;
        }
        at += (size_t)got;
    }
    return at == expected.len;
}

/* Is `name` the open file `fd`, with this content? Where that is not in memory, with this hash.
 */
static bool is_unchanged(struct file_op *op, int dir, const char *name, int fd,
                         struct ng_str content, const char *expected)
{
    struct identity named;
    struct stat st;
    char hash[FILES_HASH_SIZE];
    if (!identify(dir, name, &named) || fstat(fd, &st) != 0 ||
        !same_identity(named, (struct identity){st.st_dev, st.st_ino})) {
        return false;
    }
    if (content.data != NULL) {
        return same_content(fd, content);
    }
    return files_hash_fd(op->call, op->place.path, fd, hash) == NG_OK &&
           strcmp(hash, expected) == 0;
}

/* The file as it was read, and as it shall be; absent where an op does not load it. */
static struct ng_str content_before(const struct file_op *op)
{
    return op->present.data;
}

static struct ng_str content_after(const struct file_op *op)
{
    if (!op->copy) {
        return op->next;
    }
    return str_make(NULL, 0);
}

/* ---- in place of a file */

/*
 * What came out of the exchange is another program's save: it goes back. If what then comes out
 * is not ours, the other program saved once more in between, and that is newer still: each
 * exchange puts back what came out last, until what comes out is what was put in.
 */
static int put_back(struct file_op *op, struct file_place *place, const char *temp)
{
    struct identity expected;
    struct identity putting;
    struct identity out;
    struct stat ours;
    if (fstat(op->temp, &ours) != 0) {
        return files_fail_os(op->call, errno, "save", place->path);
    }
    expected = (struct identity){ours.st_dev, ours.st_ino};
    for (unsigned i = 0; i < FILES_SWAPS_MAX; i++) {
        if (!identify(place->dir, temp, &putting)) {
            return files_fail_os(op->call, errno, "save", place->path);
        }
        if (renameat2(place->dir, temp, place->dir, place->name.data, RENAME_EXCHANGE) != 0) {
            /* Ours was removed or renamed: theirs gets its name back. */
            bool gone = errno == ENOENT;
            if (gone && (renameat2(place->dir, temp, place->dir, place->name.data,
                                   RENAME_NOREPLACE) == 0 ||
                         errno == EEXIST)) {
                return NG_OK;
            }
            return files_fail_os(op->call, errno, "save", place->path);
        }
        if (identify(place->dir, temp, &out) && same_identity(out, expected) &&
            (out.ino != ours.st_ino || out.dev != ours.st_dev ||
             is_unchanged(op, place->dir, temp, op->temp, content_after(op),
                          op->record.after))) {
            return NG_OK;
        }
        expected = putting;
    }
    return call_fail(op->call, NG_ECONFLICT,
                     "Another program keeps replacing %.*s. Try again when it is done.",
                     (int)place->path.len, place->path.data);
}

/* Where the file system cannot exchange: renamed, as what was there has just been compared. */
static int replace_compared(struct file_op *op, struct file_place *place, const char *temp)
{
    if (renameat(place->dir, temp, place->dir, place->name.data) != 0) {
        return files_fail_os(op->call, errno, "save", place->path);
    }
    return NG_OK;
}

/*
 * Looked at just before the name changes hands: the look afterwards decides, but until it has
 * put another program's save back, a third one could read the file without it and save that.
 */
static bool is_as_read(struct file_op *op, struct file_place *place)
{
    return is_unchanged(op, place->dir, place->name.data, op->fd, content_before(op),
                        op->record.before);
}

static int replace(struct file_op *op, struct file_place *place, const char *temp,
                   enum file_saved *ret)
{
    if (!is_as_read(op, place)) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    if (renameat2(place->dir, temp, place->dir, place->name.data, RENAME_EXCHANGE) != 0) {
        if (errno == ENOENT) {
            *ret = FILE_AGAIN; /* the file is gone */
            return NG_OK;
        }
        if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
            return replace_compared(op, place, temp);
        }
        return files_fail_os(op->call, errno, "save", place->path);
    }
    if (is_unchanged(op, place->dir, temp, op->fd, content_before(op), op->record.before)) {
        return NG_OK;
    }
    *ret = FILE_AGAIN;
    return put_back(op, place, temp);
}

/* ---- where there is none */

/* `from` becomes `to` unless that is there: -1 with EEXIST. */
static int rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
        return -1;
    }
    if (linkat(from_dir, from, to_dir, to, 0) != 0) {
        return -1;
    }
    return unlinkat(from_dir, from, 0);
}

static int put_new(struct file_op *op, struct file_place *place, const char *temp,
                   enum file_saved *ret)
{
    char hash[FILES_HASH_SIZE];
    if (op->copy) {
        int rc = files_hash_fd(op->call, place->path, op->temp, hash);
        if (rc != NG_OK) {
            return rc;
        }
        if (strcmp(hash, op->record.after) != 0) {
            *ret = FILE_AGAIN; /* the source changed while it was copied */
            return NG_OK;
        }
    }
    if (rename_new(place->dir, temp, place->dir, place->name.data) == 0) {
        return NG_OK;
    }
    if (errno == EEXIST || errno == ENOENT) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    return files_fail_os(op->call, errno, "create", place->path);
}

/* The temporary name is free again, but another program's save that could not be given back
 * stays there. */
static void drop_temp(struct file_op *op, struct file_place *place, const char *temp, int rc)
{
    struct identity named;
    struct stat ours;
    bool foreign = rc != NG_OK && identify(place->dir, temp, &named) &&
                   fstat(op->temp, &ours) == 0 &&
                   !same_identity(named, (struct identity){ours.st_dev, ours.st_ino});
    if (foreign) {
        log_write(NG_LOG_WARNING, "files",
                  "what another program saved as %s is kept beside it as %s", place->real.data,
                  temp);
    } else {
        (void)unlinkat(place->dir, temp, 0);
    }
}

int files_save(struct file_op *op, struct file_place *place, enum file_saved *ret)
{
    struct call *call = op->call;
    *ret = FILE_SAVED;
    struct ng_str writing = files_temp_name(call, op->record.op, FILES_TEMP_WRITING);
    struct ng_str complete = files_temp_name(call, op->record.op, FILES_TEMP_COMPLETE);
    if (writing.data == NULL || complete.data == NULL) {
        return fail_memory(call);
    }
    int rc = files_make_parents(call, place);
    if (rc == NG_OK) {
        rc = write_temp(op, place, writing, complete);
    }
    if (rc != NG_OK) {
        return rc;
    }
    op->in_place = true;
    if (place->exists) {
        rc = replace(op, place, complete.data, ret);
    } else {
        rc = put_new(op, place, complete.data, ret);
    }
    op->in_place = rc != NG_OK || *ret == FILE_SAVED;
    drop_temp(op, place, complete.data, rc);
    if (rc == NG_OK && *ret == FILE_SAVED && files_sync_folder(place->dir, op->temp) != 0) {
        rc = files_fail_os(call, errno, "save", place->path);
    }
    return rc;
}

/* ---- away */

int files_remove(struct file_op *op, struct file_place *place, enum file_saved *ret)
{
    struct call *call = op->call;
    *ret = FILE_SAVED;
    struct ng_str temp = files_temp_name(call, op->record.op, FILES_TEMP_COMPLETE);
    if (temp.data == NULL) {
        return fail_memory(call);
    }
    if (!is_as_read(op, place)) {
        op->in_place = false; /* nor is the copy of a move across file systems, then */
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    op->in_place = true;
    if (rename_new(place->dir, place->name.data, place->dir, temp.data) != 0) {
        if (errno == ENOENT) {
            op->in_place = false;
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        return files_fail_os(call, errno, "remove", place->path);
    }
    if (!is_unchanged(op, place->dir, temp.data, op->fd, content_before(op),
                      op->record.before)) {
        *ret = FILE_AGAIN;
        if (rename_new(place->dir, temp.data, place->dir, place->name.data) != 0 &&
            errno != EEXIST) {
            return files_fail_os(call, errno, "put back", place->path);
        }
        op->in_place = false;
    }
    (void)unlinkat(place->dir, temp.data, 0);
    if (*ret == FILE_SAVED && files_sync_folder(place->dir, op->fd) != 0) {
        return files_fail_os(call, errno, "remove", place->path);
    }
    return NG_OK;
}

/* The copy is not wanted any more; what another program made of it stays. Told without reading
 * it: the call may have been cancelled. */
static void drop_copy(struct file_op *op)
{
    struct identity named;
    struct stat ours;
    if (identify(op->target.dir, op->target.name.data, &named) && fstat(op->temp, &ours) == 0 &&
        same_identity(named, (struct identity){ours.st_dev, ours.st_ino}) &&
        ours.st_mtim.tv_sec == op->written.tv_sec &&
        ours.st_mtim.tv_nsec == op->written.tv_nsec) {
        (void)unlinkat(op->target.dir, op->target.name.data, 0);
    }
}

/* To another file system: a copy, then the old one goes. */
static int move_across(struct file_op *op, enum file_saved *ret)
{
    enum file_saved removed = FILE_SAVED;
    op->copy = true;
    op->keep_mode = true;
    op->keep_owner = true;
    int rc = files_save(op, &op->target, ret);
    op->copy = false;
    if (rc != NG_OK || *ret == FILE_AGAIN) {
        return rc;
    }
    rc = files_remove(op, &op->place, &removed);
    /* Not where the old one has gone, whatever failed then: the copy is all there is. */
    struct identity old;
    if ((rc != NG_OK && identify(op->place.dir, op->place.name.data, &old)) ||
        removed == FILE_AGAIN) {
        drop_copy(op);
    }
    *ret = removed;
    return rc;
}

int files_rename(struct file_op *op, enum file_saved *ret)
{
    struct call *call = op->call;
    *ret = FILE_SAVED;
    int rc = files_make_parents(call, &op->target);
    if (rc != NG_OK) {
        return rc;
    }
    if (!is_as_read(op, &op->place)) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    op->in_place = true;
    if (rename_new(op->place.dir, op->place.name.data, op->target.dir, op->target.name.data) !=
        0) {
        if (errno == EXDEV) {
            return move_across(op, ret);
        }
        if (errno == EEXIST || errno == ENOENT) {
            op->in_place = false;
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        return files_fail_os(call, errno, "move", op->place.path);
    }
    if (!is_unchanged(op, op->target.dir, op->target.name.data, op->fd, content_before(op),
                      op->record.before)) {
        *ret = FILE_AGAIN; /* it goes back, to be looked at again */
        if (rename_new(op->target.dir, op->target.name.data, op->place.dir,
                       op->place.name.data) != 0) {
            return files_fail_os(call, errno, "move", op->place.path);
        }
        op->in_place = false;
        return NG_OK;
    }
    if (files_sync_folder(op->target.dir, op->fd) != 0 ||
        files_sync_folder(op->place.dir, op->fd) != 0) {
        return files_fail_os(call, errno, "move", op->place.path);
    }
    return NG_OK;
}
