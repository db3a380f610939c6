/* SPDX-License-Identifier: MIT */
/*
 * audit_writer.h - writes the audit log off the path of calls: ended calls leave their entries
 * in a queue, and a thread appends them to the log, and signs a checkpoint now and then.
 *
 * While the disk refuses entries they wait in memory, and are tried again.
 */
#ifndef NOTEGATE_CORE_AUDIT_WRITER_H
#define NOTEGATE_CORE_AUDIT_WRITER_H

#include "core/audit/audit_entry.h"
#include "core/audit/audit_epochs.h"
#include "core/audit/audit_mark.h"
#include "core/audit/audit_tiles.h"

/* Time between two appends, checkpoints, attempts after a failure, and checkpoints that the
 * gateway's log tells, to be kept elsewhere. */
#define AUDIT_APPEND_MS 200
#define AUDIT_CHECKPOINT_MS 10000
#define AUDIT_RETRY_MS 1000
#define AUDIT_TELL_MS 3600000
/* Entries that wait: from then on changes are to be refused, and entries of calls that changed
 * nothing are counted and dropped. */
#define AUDIT_WAITING_MAX ((size_t)100000)

/* Time between two prunings. */
#define AUDIT_PRUNE_MS 3600000

struct audit_writer;

/* When the log is opened: before the start, which fails where it cannot be; or by the thread,
 * so that there is no folder before there is an entry. */
enum audit_begin { AUDIT_AT_ONCE = 0, AUDIT_AT_FIRST_ENTRY };

/* Opens the log in this folder (audit_log_open()), and starts the thread. Copies path and name.
 */
int audit_writer_open(const char *path, struct ng_str name, enum audit_begin begin,
                      struct audit_writer **ret, struct buf *error);
/* From now on the log marks how far it has the changes of the store (audit_mark.h): when every
 * call has ended that was under way. last_seq: the newest change; a call that makes one knows
 * it before it ends, and then leaves its entry before it leaves its epoch. epochs NULL: there
 * is only the mark of a log that begins, the others come by audit_writer_settle(). Both live
 * until audit_writer_close(). Before the first call. */
void audit_writer_follow(struct audit_writer *writer, struct audit_epochs *epochs,
                         const atomic_uint_fast64_t *last_seq);
/* NG_PENDING until the writer's thread has done it, without waiting: ask again, with the same
 * mark. The entries that were queued before the first question are in the log then, and so is
 * the mark (NULL: none). *ret_entries: all that the log has. NG_OK; NG_EUNAVAILABLE: the disk
 * refuses, or the log cannot be opened. One thread. */
int audit_writer_settle(struct audit_writer *writer, const struct audit_mark *mark,
                        uint64_t *ret_entries);
/* Sets the limits of pruning; at any time. */
void audit_writer_keep(struct audit_writer *writer, int64_t keep_ms, uint64_t max_bytes);
/* No call is left. Writes what waits, and a last checkpoint. What the disk still refuses is
 * lost, and told in the gateway's log. NULL is a no-op. */
void audit_writer_close(struct audit_writer *writer);

/* Queues a copy. Any thread, quick. */
void audit_writer_put(struct audit_writer *writer, const struct audit_entry *entry);

/* Removes what tells the value, or the name, from all months (audit_values.h). Waits for the
 * writer's thread. *ret_count: how many names there were. NG_OK; NG_EUNAVAILABLE, NG_EINTERNAL
 * with the sentence. */
int audit_writer_redact(struct audit_writer *writer, struct ng_str value, uint64_t *ret_count,
                        struct buf *error);

/* Do AUDIT_WAITING_MAX entries wait? Any thread. */
bool audit_writer_is_full(const struct audit_writer *writer);
/* Is the disk refusing entries? Adds the sentence then. Any thread. */
bool audit_writer_is_failing(struct audit_writer *writer, struct buf *sentence);
/* Entries that are not in the log yet. Any thread. */
size_t audit_writer_waiting(const struct audit_writer *writer);
/* Entries that were dropped since the start. */
uint64_t audit_writer_dropped(const struct audit_writer *writer);

#endif
