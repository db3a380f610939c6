/* SPDX-License-Identifier: MIT */
/*
 * audit_pending.h - the file `pending`: entries that are durable and in no tile yet.
 *
 * A record has the number of the entry in the log (8 bytes), its length (2), the hash of its
 * leaf (32) and the entry; numbers are big-endian. The hash finds the end of what a kill or a
 * power cut left.
 */
#ifndef NOTEGATE_CORE_AUDIT_PENDING_H
#define NOTEGATE_CORE_AUDIT_PENDING_H

#include <sys/types.h>

#include "core/audit/tlog/tlog_hash.h"
#include "core/base/buf.h"

#define AUDIT_PENDING_FILE "pending"
#define AUDIT_PENDING_HEAD ((size_t)8 + 2 + SHA256_BYTES)

struct audit_pending {
    int fd;         /* -1: not open */
    uint64_t first; /* number of the first entry, while count > 0 */
    uint64_t count;
    off_t len;
};

/* An entry of the file. */
struct audit_pending_entry {
    uint64_t number;
    struct tlog_hash leaf;
    struct ng_str text;
};

/* NG_OK to go on. */
typedef int audit_pending_fn(void *user, const struct audit_pending_entry *entry);

/* Opens or makes the file, and cuts off what follows its last whole record, or the first one
 * with a number of `end` or above. NG_OK; NG_EFAILED: its numbers do not follow each other;
 * NG_EUNAVAILABLE, NG_EINTERNAL. The sentence is in error.
 * audit_pending_close() in any case. */
int audit_pending_open(int dir, uint64_t end, struct audit_pending *ret, struct buf *error);
/* The same of a log that another process may be writing: nothing is made or cut. Without the
 * file it has no entries. */
int audit_pending_look(int dir, struct audit_pending *ret, struct buf *error);
void audit_pending_close(struct audit_pending *pending);

/* Adds a record to the bytes of a batch. NG_OK, NG_EINTERNAL; NG_ETOOLARGE: over the maximum of
 * the buffer, or over TLOG_ENTRY_MAX. */
int audit_pending_record(uint64_t number, struct ng_str entry, struct buf *batch);
/* Writes and syncs `count` records, the first of them number `first`. A failure
 * (NG_EUNAVAILABLE) takes them back; *ret_stale: that failed as well, and the file has to be
 * opened again. */
int audit_pending_append(struct audit_pending *pending, struct ng_str batch, uint64_t first,
                         uint64_t count, bool *ret_stale, struct buf *error);
/* All entries in order; their texts are lent for the call. NG_OK, fn's result,
 * NG_EUNAVAILABLE, NG_EINTERNAL; NG_EFAILED: the file is no longer what was written. */
int audit_pending_each(struct audit_pending *pending, audit_pending_fn *fn, void *user,
                       struct buf *error);
/* Empties it, once its entries are in tiles. NG_OK or NG_EUNAVAILABLE. */
int audit_pending_clear(struct audit_pending *pending, struct buf *error);

#endif
