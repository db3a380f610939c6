/* SPDX-License-Identifier: MIT */
/*
 * audit_disk.h - files below the folder of the audit log. One is replaced so that a kill or a
 * power cut at any moment leaves the former file or the new one, whole.
 */
#ifndef NOTEGATE_CORE_AUDIT_DISK_H
#define NOTEGATE_CORE_AUDIT_DISK_H

#include <sys/types.h>

#include "core/base/buf.h"

/* The file that is written before it gets its name, in the folder of the log. */
#define AUDIT_DISK_NEW "new"
/* Bytes of a name below the folder, with a NUL. */
#define AUDIT_DISK_NAME_SIZE 128

/* Opens the folder, and makes it (mode 0700) where `make`. *ret_fd: to be closed. NG_OK,
 * NG_ENOTFOUND (without `make`), NG_EUNAVAILABLE with the sentence in error. */
int audit_disk_open(const char *path, bool make, int *ret_fd, struct buf *error);

/* Adds the whole file. NG_OK, NG_ENOTFOUND, NG_ETOOLARGE (over out's maximum), NG_EINTERNAL
 * (memory); NG_EUNAVAILABLE: it cannot be read, and errno says why. */
int audit_disk_read(int dir, const char *name, struct buf *out);

/* A piece is lent for the call. NG_OK to go on. */
typedef int audit_disk_fn(void *user, struct ng_str piece);
/* Passes the bytes from `from` on in pieces. As audit_disk_read(), or fn's result. */
int audit_disk_each(int dir, const char *name, uint64_t from, audit_disk_fn *fn, void *user);

/* Makes the names in a folder durable. NG_OK, NG_EUNAVAILABLE with errno. */
int audit_disk_sync_folder(int dir, const char *folder);
/* Makes the folders of a name, and syncs each of them and the one above it: also those that are
 * there, which a killed process may have made. NG_OK, NG_EUNAVAILABLE with errno. */
int audit_disk_make_folders(int dir, const char *name);
/* Writes a new file beside, syncs it, gives it its name and syncs the folder, which is there.
 * NG_OK, or NG_EUNAVAILABLE with errno: the name has the former file, or already the new one.
 */
int audit_disk_replace(int dir, const char *name, struct ng_str bytes, mode_t mode);
/* The same in steps: the new file, empty; -1 and errno. */
int audit_disk_new(int dir, mode_t mode);
/* Syncs and closes the written file, and puts it in its place. rc: that of the writing; if it
 * is not NG_OK, the file is only closed, and rc returned. */
int audit_disk_new_done(int dir, int fd, const char *name, int rc);

/* Files with their names, which are not durable yet: many are synced at once for the price of
 * a few. */
#define AUDIT_DISK_BATCH_MAX 64
struct audit_disk_batch {
    size_t count, folder_count;
    int fds[AUDIT_DISK_BATCH_MAX];
    char folders[AUDIT_DISK_BATCH_MAX][AUDIT_DISK_NAME_SIZE];
};
/* As audit_disk_replace(), but a full batch is synced before, and this file later. */
int audit_disk_batch_put(struct audit_disk_batch *batch, int dir, const char *name,
                         struct ng_str bytes, mode_t mode);
/* Makes the files and their names durable, and empties the batch. NG_OK; NG_EUNAVAILABLE with
 * errno: any of them may not be. */
int audit_disk_batch_sync(struct audit_disk_batch *batch, int dir);
/* Empties it without that. */
void audit_disk_batch_drop(struct audit_disk_batch *batch);

/* Removes all files of a folder but `keep` (NULL: none), and without `keep` the folder too.
 * NG_OK also where there is none. NG_EUNAVAILABLE with errno. */
int audit_disk_clear(int dir, const char *folder, const char *keep);

/* The sentence of a failure: "the audit log's file NAME cannot be VERB: REASON". Uses errno,
 * but for NG_EINTERNAL and NG_ETOOLARGE. Returns rc. */
int audit_disk_fail(int rc, const char *name, const char *verb, struct buf *error);

#endif
