/* SPDX-License-Identifier: MIT */
/*
 * audit_writer.h - writes the audit log off the path of calls: ended calls leave their entries
 * in a queue, and a thread appends them to the log, and signs a checkpoint now and then.
 *
 * While the disk refuses entries they wait in memory, and are tried again.
 */
#ifndef NOTEGATE_CORE_AUDIT_WRITER_H
#define NOTEGATE_CORE_AUDIT_WRITER_H

#include "audit_entry.h"

/* Time between two appends, checkpoints, attempts after a failure, and checkpoints that the
 * gateway's log tells, to be kept elsewhere. */
#define AUDIT_APPEND_MS 200
#define AUDIT_CHECKPOINT_MS 10000
#define AUDIT_RETRY_MS 1000
#define AUDIT_TELL_MS 3600000
/* Entries that wait: from then on changes are to be refused, and entries of calls that changed
 * nothing are counted and dropped. */
#define AUDIT_WAITING_MAX ((size_t)100000)

struct audit_writer;

/* Opens the log in this folder (audit_log_open()), and starts the thread. */
int audit_writer_open(const char *path, struct ng_str name, struct audit_writer **ret,
                      struct buf *error);
/* Writes what waits, and a last checkpoint. What the disk still refuses is lost, and told in
 * the gateway's log. NULL is a no-op. */
void audit_writer_close(struct audit_writer *writer);

/* Queues a copy. Any thread, quick. */
void audit_writer_put(struct audit_writer *writer, const struct audit_entry *entry);

/* Do AUDIT_WAITING_MAX entries wait? Any thread. */
bool audit_writer_is_full(const struct audit_writer *writer);
/* Is the disk refusing entries? Adds the sentence then. Any thread. */
bool audit_writer_is_failing(struct audit_writer *writer, struct buf *sentence);
/* Entries that were dropped since the start. */
uint64_t audit_writer_dropped(const struct audit_writer *writer);

#endif
