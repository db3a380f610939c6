/* SPDX-License-Identifier: MIT */
/* files_in_place.c - writes into the file that is there, if no other file can take its name: it
 * is a mount of its own, or has several names. The old and the new content lie beside it until
 * it is whole, so that recovery can restore it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "files_state.h"

/* A disk writes at least so many bytes as one. */
#define FILES_SECTOR ((size_t)512)
#define FILES_FACT_SIZE 120

void files_choose_put(struct file_op *op, const struct file_place *place)
{
    struct stat st;
    struct statx mount;
    if (op->put == FILE_PUT_MOUNT) {
        return; /* the exchange has told */
    }
    op->put = FILE_PUT_RENAME;
    if (!place->exists || op->copy) {
        return;
    }
    if (fstat(op->fd, &st) == 0 && st.st_nlink > 1) {
        op->put = FILE_PUT_LINKS;
    }
    if (statx(op->fd, "", AT_EMPTY_PATH, STATX_TYPE, &mount) == 0 &&
        (mount.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
        op->put = FILE_PUT_MOUNT;
    }
}

int files_fail_temp(struct file_op *op, const struct file_place *place, int error)
{
    struct stat st;
    char fact[FILES_FACT_SIZE] = "";
    if (op->put == FILE_PUT_MOUNT) {
        (void)snprintf(fact, sizeof(fact),
                       "it is a mount, so its old content is kept beside it meanwhile, and ");
    } else if (op->put == FILE_PUT_LINKS && fstat(op->fd, &st) == 0) {
        (void)snprintf(
            fact, sizeof(fact),
            "it has %llu names, so its old content is kept beside it meanwhile, and ",
            (unsigned long long)st.st_nlink);
    }
    return files_fail_name(op->call, error, "save", place, fact);
}

/* ---- the save */

/* Writes `data` over the content of the open file. */
static int overwrite(struct file_op *op, struct file_place *place, struct ng_str data)
{
    if (lseek(op->fd, 0, SEEK_SET) != 0 || fd_put(op->fd, data) != NG_OK ||
        ftruncate(op->fd, (off_t)data.len) != 0 || fsync(op->fd) != 0) {
        return files_fail_os(op->call, errno, "save", place->path);
    }
    return NG_OK;
}

/* Puts the old content beside the file, on disk. */
static int keep_old(struct file_op *op, struct file_place *place, const char *old)
{
    int fd = openat(place->dir, old, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    S_IRUSR | S_IWUSR);
    int rc = NG_OK;
    if (fd < 0 || fd_put(fd, op->present.data) != NG_OK || fsync(fd) != 0 ||
        files_sync_folder(place->dir, op->temp) != 0) {
        rc = files_fail_temp(op, place, errno);
    }
    files_close_fd(&fd);
    return rc;
}

static bool is_current(struct file_op *op, struct file_place *place)
{
    struct file_identity named;
    struct file_identity opened;
    return files_identify(op->fd, "", &opened) &&
           files_identify(place->dir, place->name.data, &named) && files_same(named, opened);
}

/* *ret_whole: false if the file is neither old nor new. */
static int put_new_content(struct file_op *op, struct file_place *place, enum file_saved *ret,
                           bool *ret_whole)
{
    if (!files_is_as_read(op, place->dir, place->name.data)) {
        *ret = FILE_AGAIN;
        return NG_OK;
    }
    files_op_enter(op, FILE_OP_SAVED);
    int rc = overwrite(op, place, op->next);
    if (rc == NG_OK && is_current(op, place)) {
        return NG_OK;
    }
    struct result failure = op->call->staged;
    int back = overwrite(op, place, op->present.data);
    *ret_whole = back == NG_OK;
    if (back != NG_OK) {
        return back;
    }
    op->call->staged = failure;
    files_op_enter(op, FILE_OP_INTENDED);
    *ret = FILE_AGAIN; /* unless it failed, another program has put a file of its own there */
    return rc;
}

int files_save_in_place(struct file_op *op, struct file_place *place, const char *temp,
                        enum file_saved *ret)
{
    struct call *call = op->call;
    bool whole = true;
    struct ng_str old = files_temp_name(call, op->record.op, FILES_TEMP_OLD);
    int rc = old.data != NULL ? keep_old(op, place, old.data) : call_no_memory(call);
    if (rc == NG_OK) {
        rc = put_new_content(op, place, ret, &whole);
    }
    if (whole) {
        (void)unlinkat(place->dir, temp, 0);
        if (old.data != NULL) {
            (void)unlinkat(place->dir, old.data, 0);
        }
    } else {
        log_write(NG_LOG_WARNING, "files",
                  "%s is half written; its old content is beside it as %s until it is restored",
                  place->real.data, old.data);
    }
    return rc;
}

/* ---- recovery */

/* The file, its old and its new content: open files and a block of each. */
enum torn_part { TORN_NOW, TORN_OLD, TORN_NEW, TORN_PARTS };

struct torn {
    int fds[TORN_PARTS];
    off_t sizes[TORN_PARTS];
    char *blocks[TORN_PARTS];
    size_t filled[TORN_PARTS];
};

static bool torn_open(struct torn *torn, int dir, const char *const names[TORN_PARTS])
{
    bool open = true;
    for (size_t i = 0; i < TORN_PARTS; i++) {
        struct stat st;
        torn->fds[i] = files_open_beneath(dir, names[i],
                                          (i == TORN_NOW ? O_RDWR : O_RDONLY) | O_NOFOLLOW |
                                              O_NONBLOCK | O_NOCTTY);
        torn->blocks[i] = alloc_bytes(FILES_BLOCK);
        open = open && torn->fds[i] >= 0 && torn->blocks[i] != NULL &&
               fstat(torn->fds[i], &st) == 0;
        torn->sizes[i] = open ? st.st_size : 0;
    }
    return open;
}

static void torn_close(struct torn *torn)
{
    for (size_t i = 0; i < TORN_PARTS; i++) {
        files_close_fd(&torn->fds[i]);
        free(torn->blocks[i]);
    }
}

/* The blocks at `at`. False: errno. */
static bool torn_read(struct torn *torn, off_t at)
{
    for (size_t i = 0; i < TORN_PARTS; i++) {
        ssize_t got = 1;
        torn->filled[i] = 0;
        while (got > 0 && torn->filled[i] < FILES_BLOCK) {
            got = pread(torn->fds[i], torn->blocks[i] + torn->filled[i],
                        FILES_BLOCK - torn->filled[i], at + (off_t)torn->filled[i]);
            torn->filled[i] += got > 0 ? (size_t)got : 0;
        }
        if (got < 0) {
            return false;
        }
    }
    return true;
}

static bool torn_is(const struct torn *torn, enum torn_part part, size_t from, size_t to)
{
    return to <= torn->filled[part] &&
           memcmp(torn->blocks[TORN_NOW] + from, torn->blocks[part] + from, to - from) == 0;
}

/* True if each sector of the blocks is old or new. Where the new content ends, the old one goes
 * on until the file is cut. */
static bool torn_fits(const struct torn *torn)
{
    size_t at = 0;
    size_t ending = torn->filled[TORN_NEW];
    while (at < torn->filled[TORN_NOW]) {
        size_t end = size_min(at + FILES_SECTOR, torn->filled[TORN_NOW]);
        end = at < ending && ending < end ? ending : end;
        if (!torn_is(torn, TORN_OLD, at, end) && !torn_is(torn, TORN_NEW, at, end)) {
            return false;
        }
        at = end;
    }
    return true;
}

/* *ret: the file is what a write that was cut off leaves, not what another program saved. */
static int torn_check(struct call *call, struct ng_str path, struct torn *torn, bool *ret)
{
    off_t least = i64_min(torn->sizes[TORN_OLD], torn->sizes[TORN_NEW]);
    off_t most = i64_max(torn->sizes[TORN_OLD], torn->sizes[TORN_NEW]);
    off_t size = torn->sizes[TORN_NOW];
    *ret = size >= least && size <= most;
    for (off_t at = 0; *ret && at < size; at += (off_t)FILES_BLOCK) {
        if (!torn_read(torn, at)) {
            return files_fail_os(call, errno, "restore", path);
        }
        *ret = torn_fits(torn);
    }
    return NG_OK;
}

static int torn_restore(struct call *call, struct ng_str path, const struct torn *torn)
{
    int rc = files_write_range(call, path, torn->fds[TORN_OLD], torn->fds[TORN_NOW], 0,
                               torn->sizes[TORN_OLD], torn->blocks[TORN_OLD]);
    if (rc == NG_OK && (ftruncate(torn->fds[TORN_NOW], torn->sizes[TORN_OLD]) != 0 ||
                        fsync(torn->fds[TORN_NOW]) != 0)) {
        rc = files_fail_os(call, errno, "restore", path);
    }
    return rc;
}

int files_restore(struct call *call, struct file_place *place, const char *old,
                  const char *complete, bool *ret_restored)
{
    struct torn torn;
    const char *const names[TORN_PARTS] = {place->name.data, old, complete};
    bool is_torn = false;
    int rc = NG_OK;
    if (!torn_open(&torn, place->dir, names)) {
        rc = files_fail_os(call, errno, "restore", place->path);
    } else {
        rc = torn_check(call, place->path, &torn, &is_torn);
    }
    if (rc == NG_OK && is_torn) {
        rc = torn_restore(call, place->path, &torn);
    }
    torn_close(&torn);
    *ret_restored = rc == NG_OK && is_torn;
    return rc;
}
