/* SPDX-License-Identifier: MIT */
/* files_save.c - replaces a file: writes a temporary file, syncs it, then exchanges the two
 * names. The file that the exchange moves out tells if another program saved meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "files_state.h"

#define FILES_SWAPS_MAX 64 /* attempts while other programs keep replacing the file */
#define FILES_XATTRS_MAX 4096
#define FILES_XATTR_VALUE_MAX 65536

struct ng_str files_temp_name(struct call *call, struct ng_str op, const char *ending)
{
    return arena_printf(&call->arena, FILES_TEMP_PREFIX "%.*s%s", (int)op.len, op.data, ending);
}

/* ---- writing the temporary file */

static int write_all(struct call *call, struct ng_str path, int fd, struct ng_str data)
{
    if (fd_put(fd, data) != NG_OK) {
        return files_fail_os(call, errno, "save", path);
    }
    return NG_OK;
}

int files_write_range(struct call *call, struct ng_str path, int from, int to, off_t at,
                      off_t end, char *block)
{
    int rc = NG_OK;
    if (lseek(to, at, SEEK_SET) < 0) {
        rc = files_fail_os(call, errno, "save", path);
    }
    ssize_t got = 1;
    while (rc == NG_OK && at < end && got != 0) {
        got = pread(from, block, size_min(FILES_BLOCK, (size_t)(end - at)), at);
        if (got > 0) {
            at += got;
            rc = write_all(call, path, to, str_make(block, (size_t)got));
        } else if (got < 0 && errno != EINTR) {
            rc = files_fail_os(call, errno, "read", path);
        }
        if (rc == NG_OK) {
            rc = files_check_cancelled(call);
        }
    }
    return rc;
}

/* Copies the whole content. Holes stay holes, so that the copy uses no more blocks. */
static int write_copy(struct call *call, struct ng_str path, int from, int to)
{
    struct stat st;
    char *block = alloc_bytes(FILES_BLOCK);
    if (block == NULL) {
        return call_no_memory(call);
    }
    int rc = NG_OK;
    if (fstat(from, &st) != 0) {
        rc = files_fail_os(call, errno, "read", path);
    }
    off_t at = 0;
    while (rc == NG_OK && at < st.st_size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            break; /* the rest is a hole */
        }
        data = i64_max(data, at); /* -1: this file system does not report holes */
        off_t end = lseek(from, data, SEEK_HOLE);
        if (end <= data || end > st.st_size) {
            end = st.st_size;
        }
        rc = files_write_range(call, path, from, to, data, end, block);
        at = end;
    }
    free(block);
    if (rc == NG_OK && ftruncate(to, st.st_size) != 0) {
        rc = files_fail_os(call, errno, "save", path);
    }
    return rc;
}

/* Access lists must be kept, like the mode; other attributes only if the file system permits.
 */
static int keep_attributes(struct call *call, struct ng_str path, int from, int to)
{
    char *names = alloc_bytes(FILES_XATTRS_MAX);
    char *value = alloc_bytes(FILES_XATTR_VALUE_MAX);
    int rc = NG_OK;
    ssize_t len = 0;
    if (names == NULL || value == NULL) {
        rc = call_no_memory(call);
    } else {
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
    mode_t mode = from.st_mode & 0777U; /* set-user-ID would name another user */
    if (op->keep_owner) {
        mode = from.st_mode & 07777U;
        rc = keep_attributes(call, path, op->fd, fd);
    }
    if (rc == NG_OK && fchmod(fd, mode) != 0) {
        rc = call_fail(call, NG_EFORBIDDEN,
                       "Cannot save %.*s: its mode (%04o) cannot be kept. Run the gateway as "
                       "its owner.",
                       (int)path.len, path.data, (unsigned)mode);
    }
    return rc;
}

/* Writes the new file, complete and synced, as `complete` in the folder of `place`. */
static int write_temp(struct file_op *op, struct file_place *place, struct ng_str writing,
                      struct ng_str complete)
{
    struct call *call = op->call;
    mode_t mode = S_IRUSR | S_IWUSR;
    if (!op->keep_mode && op->mode == 0) {
        mode |= S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH; /* the umask applies */
    }
    op->temp = openat(place->dir, writing.data,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (op->temp < 0) {
        return files_fail_temp(op, place, errno);
    }
    (void)flock(op->temp, LOCK_EX | LOCK_NB); /* blocks other gateways after the exchange */
    int rc = op->copy ? write_copy(call, place->path, op->fd, op->temp)
                      : write_all(call, place->path, op->temp, op->next);
    if (rc == NG_OK && op->put == FILE_PUT_RENAME) {
        rc = keep_owner_and_mode(op, place->path, op->temp);
    }
    if (rc == NG_OK && op->mode != 0 && fchmod(op->temp, op->mode & 07777U) != 0) {
        rc = files_fail_os(call, errno, "save", place->path);
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

bool files_identify(int dir, const char *name, struct file_identity *ret)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) {
        return false;
    }
    *ret = files_identity(&st);
    return true;
}

/* True if `name` is the open file `fd` with this content or, if that is not loaded, this hash.
 */
static bool is_unchanged(struct file_op *op, int dir, const char *name, int fd,
                         struct ng_str content, const char *expected)
{
    struct file_identity named;
    struct file_identity opened;
    char hash[FILES_HASH_SIZE];
    if (!files_identify(dir, name, &named) || !files_identify(fd, "", &opened) ||
        !files_same(named, opened)) {
        return false;
    }
    if (content.data != NULL) {
        return files_has_content(fd, content);
    }
    return files_hash_fd(op->call, op->place.path, fd, hash) == NG_OK &&
           strcmp(hash, expected) == 0;
}

bool files_is_as_read(struct file_op *op, int dir, const char *name)
{
    return is_unchanged(op, dir, name, op->fd, op->present.data, op->record.before);
}

/* ---- replacing a file */

/* True if `temp` is `put`, the file that was in place. Ours has to be as it was written. */
static bool is_out(struct file_op *op, int dir, const char *temp, int put)
{
    struct file_identity ours;
    struct file_identity out;
    struct file_identity expected;
    if (!files_identify(dir, temp, &out) || !files_identify(put, "", &expected) ||
        !files_identify(op->temp, "", &ours) || !files_same(out, expected)) {
        return false;
    }
    return !files_same(out, ours) ||
           is_unchanged(op, dir, temp, op->temp, op->copy ? str_make(NULL, 0) : op->next,
                        op->record.after);
}

/* *put: the file that was put in place last, -1: ours; it becomes the one that is put there
 * now. It is kept open: no other file gets the inode number of an open one. */
static int swap_back(struct file_op *op, struct file_place *place, const char *temp, int *put,
                     bool *ret_done)
{
    int putting = openat(place->dir, temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (putting < 0) {
        return files_fail_os(op->call, errno, "save", place->path);
    }
    int rc = NG_OK;
    if (renameat2(place->dir, temp, place->dir, place->name.data, RENAME_EXCHANGE) == 0) {
        *ret_done = is_out(op, place->dir, temp, *put >= 0 ? *put : op->temp);
    } else if (errno == ENOENT && (renameat2(place->dir, temp, place->dir, place->name.data,
                                             RENAME_NOREPLACE) == 0 ||
                                   errno == EEXIST)) {
        *ret_done = true; /* our file was removed or renamed: the other one has its name back */
    } else {
        rc = files_fail_os(op->call, errno, "save", place->path);
    }
    files_close_fd(put);
    *put = putting;
    return rc;
}

/*
 * The exchange moved out a save of another program: put it back. If this second exchange moves
 * out a file that is not ours, the other program saved again in between, and that save is
 * newer: each exchange puts back the file that came out last, until the file that was put in
 * comes out.
 */
static int put_back(struct file_op *op, struct file_place *place, const char *temp)
{
    int put = -1;
    int rc = NG_OK;
    bool done = false;
    for (unsigned i = 0; i < FILES_SWAPS_MAX && rc == NG_OK && !done; i++) {
        rc = swap_back(op, place, temp, &put, &done);
    }
    files_close_fd(&put);
    if (rc != NG_OK || done) {
        return rc;
    }
    return call_fail(op->call, NG_ECONFLICT,
                     "Another program keeps replacing %.*s. Try again when it is done.",
                     (int)place->path.len, place->path.data);
}

/*
 * The check after the exchange decides. But until that has put another program's save back, a
 * third program could read our file and save on top of it: hence one before the exchange, too.
 */
static int replace(struct file_op *op, struct file_place *place, const char *temp,
                   enum file_saved *ret)
{
    if (!files_is_as_read(op, place->dir, place->name.data)) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    if (renameat2(place->dir, temp, place->dir, place->name.data, RENAME_EXCHANGE) != 0) {
        if (errno == ENOENT) {
            *ret = FILE_AGAIN; /* the file was removed */
            return NG_OK;
        }
        if (errno == EBUSY) {
            op->put = FILE_PUT_MOUNT; /* the next attempt writes in place */
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        /* File systems without exchange: the old file has just been compared. */
        if ((errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) &&
            renameat(place->dir, temp, place->dir, place->name.data) == 0) {
            return NG_OK;
        }
        return files_fail_os(op->call, errno, "save", place->path);
    }
    if (files_is_as_read(op, place->dir, temp)) {
        return NG_OK;
    }
    *ret = FILE_AGAIN;
    return put_back(op, place, temp);
}

/* ---- creating a file */

int files_rename_new(int from_dir, const char *from, int to_dir, const char *to)
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
    if (files_rename_new(place->dir, temp, place->dir, place->name.data) == 0) {
        return NG_OK;
    }
    if (errno == EEXIST || errno == ENOENT) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    return files_fail_name(op->call, errno, "create", place, "");
}

/* Removes the temporary file, unless it is another program's save that could not be put back.
 */
static void drop_temp(struct file_op *op, struct file_place *place, const char *temp, int rc)
{
    struct file_identity named;
    struct file_identity ours;
    bool foreign = rc != NG_OK && files_identify(place->dir, temp, &named) &&
                   files_identify(op->temp, "", &ours) && !files_same(named, ours);
    if (foreign) {
        log_write(NG_LOG_WARNING, "files",
                  "the content that another program saved as %s is kept beside it as %s",
                  place->real.data, temp);
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
        return call_no_memory(call);
    }
    int rc = files_make_parents(call, place);
    files_choose_put(op, place);
    if (rc == NG_OK) {
        rc = write_temp(op, place, writing, complete);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (op->put != FILE_PUT_RENAME) {
        return files_save_in_place(op, place, complete.data, ret);
    }
    files_op_enter(op, FILE_OP_SAVED);
    rc = place->exists ? replace(op, place, complete.data, ret)
                       : put_new(op, place, complete.data, ret);
    if (rc == NG_OK && *ret == FILE_AGAIN) {
        files_op_enter(op, FILE_OP_INTENDED);
    }
    drop_temp(op, place, complete.data, rc);
    if (rc == NG_OK && *ret == FILE_SAVED && files_sync_folder(place->dir, op->temp) != 0) {
        rc = files_fail_os(call, errno, "save", place->path);
    }
    return rc;
}

/* ---- removing and moving */

int files_fail_rename(struct file_op *op, int error, const char *what,
                      const struct file_place *place)
{
    if (files_is_refusal(error)) {
        files_op_enter(op,
                       FILE_OP_INTENDED); /* the system has refused it: nothing was renamed */
    }
    return files_fail_name(op->call, error, what, place, "");
}

int files_remove(struct file_op *op, struct file_place *place, enum file_saved *ret)
{
    struct call *call = op->call;
    *ret = FILE_SAVED;
    struct ng_str temp = files_temp_name(call, op->record.op, FILES_TEMP_COMPLETE);
    if (temp.data == NULL) {
        return call_no_memory(call);
    }
    if (!files_is_as_read(op, place->dir, place->name.data)) {
        files_op_enter(op, FILE_OP_INTENDED); /* a copy to another file system does not count */
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    files_op_enter(op, FILE_OP_SAVED);
    if (files_rename_new(place->dir, place->name.data, place->dir, temp.data) != 0) {
        if (errno == ENOENT) {
            files_op_enter(op, FILE_OP_INTENDED);
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        return files_fail_rename(op, errno, "remove", place);
    }
    if (!files_is_as_read(op, place->dir, temp.data)) {
        *ret = FILE_AGAIN;
        if (files_rename_new(place->dir, temp.data, place->dir, place->name.data) != 0 &&
            errno != EEXIST) {
            return files_fail_os(call, errno, "put back", place->path);
        }
        files_op_enter(op, FILE_OP_INTENDED);
    }
    (void)unlinkat(place->dir, temp.data, 0);
    if (*ret == FILE_SAVED && files_sync_folder(place->dir, op->fd) != 0) {
        return files_fail_os(call, errno, "remove", place->path);
    }
    return NG_OK;
}

int files_remove_folder(struct file_op *op, enum file_saved *ret)
{
    struct file_place *place = &op->place;
    *ret = FILE_SAVED;
    if (str_is(place->name, ".")) {
        return call_fail(op->call, NG_EINVAL,
                         "%.*s is a root of the gateway and cannot be removed. Take it out of "
                         "`roots` instead.",
                         (int)place->path.len, place->path.data);
    }
    files_op_enter(op, FILE_OP_SAVED);
    if (unlinkat(place->dir, place->name.data, AT_REMOVEDIR) != 0) {
        int error = errno;
        if (files_is_refusal(error)) {
            files_op_enter(op, FILE_OP_INTENDED);
        }
        if (error == ENOENT || error == ENOTDIR) {
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        if (error == ENOTEMPTY || error == EEXIST) {
            return call_fail(op->call, NG_EFAILED,
                             "The folder %.*s is not empty. Delete what is in it first.",
                             (int)place->path.len, place->path.data);
        }
        return files_fail_name(op->call, error, "remove", place, "");
    }
    if (files_sync_folder(place->dir, -1) != 0) {
        return files_fail_os(op->call, errno, "remove", place->path);
    }
    return NG_OK;
}

/* Does a root lie here? */
static bool is_root(const struct file_place *place)
{
    for (size_t i = 0; i < place->roots->count; i++) {
        if (str_equal(ng_str_of(place->roots->items[i].real), place->real)) {
            return true;
        }
    }
    return str_is(place->name, ".");
}

static bool drop_folder(struct files *files, struct call *call, struct ng_str path)
{
    struct file_place place;
    int rc = files_resolve(files, call, path, &place);
    bool dropped = rc == NG_OK && files_place_type(&place) == NG_FILE_DIRECTORY &&
                   str_equal(place.real, path) && !is_root(&place) &&
                   unlinkat(place.dir, place.name.data, AT_REMOVEDIR) == 0;
    /* One that is there already, as an earlier attempt has removed it, holds up nothing. */
    bool gone = rc == NG_OK && !place.exists;
    files_place_done(&place);
    if (rc != NG_OK) {
        call_reset_result(call);
    }
    return dropped || gone;
}

void files_drop_folders(struct files *files, struct call *call, struct ng_str path,
                        struct ng_str top)
{
    bool dropped = true;
    while (dropped && files_is_below(path, top)) {
        while (path.data[--path.len] != '/') {
        }
        dropped = drop_folder(files, call, path);
    }
}

int files_make_folder(struct file_op *op, enum file_saved *ret)
{
    struct file_place *place = &op->place;
    *ret = FILE_SAVED;
    int rc = files_make_parents(op->call, place);
    if (rc != NG_OK) {
        return rc;
    }
    files_op_enter(op, FILE_OP_SAVED);
    if (mkdirat(place->dir, place->name.data, op->mode & 0777U) != 0) {
        int error = errno;
        if (files_is_refusal(error)) {
            files_op_enter(op, FILE_OP_INTENDED);
        }
        if (error == EEXIST) {
            *ret = FILE_AGAIN;
            return NG_OK;
        }
        return files_fail_name(op->call, error, "create", place, "");
    }
    if (files_sync_folder(place->dir, -1) != 0) {
        return files_fail_os(op->call, errno, "create", place->path);
    }
    return NG_OK;
}
