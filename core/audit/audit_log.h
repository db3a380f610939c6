/* SPDX-License-Identifier: MIT */
/*
 * audit_log.h - the audit log as a folder: entries are appended to it, and folded into tiles
 * under a signed checkpoint (C2SP tlog-tiles).
 *
 * An append is durable when it returns: in `pending`. A fold writes the tiles that are new,
 * then `checkpoint`, then empties `pending`; a kill between any two of these steps leaves a
 * folder that opens with every entry. Partial tiles that the newest checkpoint does not need
 * are removed: each is the beginning of one that is there.
 *
 * One thread at a time, one process.
 */
#ifndef NOTEGATE_CORE_AUDIT_LOG_H
#define NOTEGATE_CORE_AUDIT_LOG_H

#include "audit_tiles.h"
#include "core/audit/tlog/checkpoint.h"

#define AUDIT_CHECKPOINT_FILE "checkpoint"
/* Bytes that one write adds to `pending`; its size that makes an append fold first. */
#define AUDIT_BATCH_MAX ((size_t)1024 * 1024)
#define AUDIT_PENDING_MAX ((off_t)16 * 1024 * 1024)

struct audit_log;

/* Opens the log in this folder, which is made where it is missing, with a key of this name
 * (origin of the checkpoints). An existing log keeps its key and name. What a kill left is
 * completed: the entries of `pending` are kept, not folded yet. NG_OK; NG_EFAILED: the log is
 * damaged; NG_EINVAL: the name; NG_EFORBIDDEN: others can read the key; NG_EUNAVAILABLE: the
 * disk; NG_EINTERNAL. The sentence is in error. */
int audit_log_open(const char *path, struct ng_str name, struct audit_log **ret,
                   struct buf *error);
void audit_log_close(struct audit_log *log);

/* Appends entries, each of at most TLOG_ENTRY_MAX bytes. *ret_done of them are durable,
 * whatever is returned; the caller brings the others again. NG_OK; NG_ETOOLARGE: entry
 * *ret_done is too long, or the log is full; otherwise as above. */
int audit_log_append(struct audit_log *log, const struct ng_str *entries, size_t count,
                     size_t *ret_done, struct buf *error);
/* Folds what is pending and signs a checkpoint; the first time also one of an empty tree.
 * Without news nothing is written. As above. */
int audit_log_fold(struct audit_log *log, struct buf *error);

/* Entries that are durable. */
uint64_t audit_log_size(const struct audit_log *log);
/* The newest checkpoint, and the key that signs. */
struct checkpoint audit_log_checkpoint(const struct audit_log *log);
const struct note_key *audit_log_key(const struct audit_log *log);

/* Reads the checkpoint of a folder, signed by this key. *ret_is_new: there is none. NG_OK;
 * NG_EFAILED: it is damaged or another key's; NG_EUNAVAILABLE, NG_EINTERNAL. */
int audit_log_read_checkpoint(int dir, const struct note_key *key, struct checkpoint *ret,
                              bool *ret_is_new, struct buf *error);

#endif
