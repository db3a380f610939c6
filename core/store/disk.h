/* SPDX-License-Identifier: MIT */
/*
 * disk.h - the room for the gateway's data: free space, and writes that were refused for lack
 * of it. Both are reported in the log, at /readyz and /metrics. Any thread.
 */
#ifndef NOTEGATE_CORE_DISK_H
#define NOTEGATE_CORE_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

struct disk;
struct files;

/* A file system with less free space is reported. */
#define DISK_LOW_PERCENT 10
/* File systems of roots that are checked. */
#define DISK_ROOTS_MAX 16

/* Bytes. */
struct disk_room {
    uint64_t free, total; /* of the file system; total 0: it cannot be told */
};

/* Of a folder, for this user. False: it cannot be told. */
bool disk_ask(const char *folder, struct disk_room *ret);
bool disk_is_low(const struct disk_room *room);
/* "12.5 GiB of 40.0 GiB are free" */
void disk_describe(const struct disk_room *room, struct buf *out);

/* data_dir is copied. NULL: no memory. */
struct disk *disk_new(const char *data_dir);
/* NULL is a no-op. */
void disk_close(struct disk *disk);
/* Checks again. Logs a warning when the disk has become low, once a minute an error while
 * writes are refused, and the end of both. Asks a local file system: may run on an event loop.
 */
void disk_look(struct disk *disk);
/* As it was at the last look; *ret_size: bytes of the files in the data directory. */
void disk_get(struct disk *disk, struct disk_room *ret, uint64_t *ret_size);

/* Lists the roots: functions of files.h, which is on a higher level. */
typedef void disk_root_fn(void *user, const char *path);
struct disk_roots {
    struct files *files;
    void (*each_disk)(struct files *files, const char *data_dir, disk_root_fn *each,
                      void *user);
    void (*each_gone)(struct files *files, disk_root_fn *each, void *user);
};
/* Before the first disk_look_roots(). */
void disk_set_roots(struct disk *disk, const struct disk_roots *roots);

/* The same for the file systems of the roots, but the data directory's, and whether the roots
 * are there. They may be far away: on workers only. */
void disk_look_roots(struct disk *disk);
/* The roots' file systems by the last look, from 0; a root's path is added to `path`. False:
 * there are no more. */
bool disk_root(struct disk *disk, unsigned index, struct buf *path, struct disk_room *ret);

/* Is the end of a commit with rc to be told? NULL: no. */
static inline bool disk_wants(const struct disk *disk, int rc)
{
    /* Its first member: disk.c asserts it. */
    const atomic_bool *refusing = (const atomic_bool *)(const void *)disk;
    return disk != NULL &&
           (rc == NG_EFULL ||
            (rc == NG_OK && atomic_load_explicit(refusing, memory_order_relaxed)));
}

/* Such a commit of the store has ended. */
void disk_committed(struct disk *disk, int rc, const char *error);
/* A call was refused for want of room, here or below a root: logged, at most once a minute. */
void disk_refused(struct disk *disk, struct ng_str message);
/* A problem found by the last look, as a sentence. False: there are no more. `index` from 0. */
bool disk_reason(struct disk *disk, unsigned index, struct buf *out);

#endif
