/* SPDX-License-Identifier: MIT */
/*
 * record.h - journal.record_calls: every call of a tool becomes a memory entry of the journal.
 *
 * The entry says which tool, with which arguments (what the tool's schema marks as secret left
 * out, the whole cut) and how it ended. It goes the way of all entries, by an event beside the
 * documents; but off the call's path: a thread writes what ended calls leave in a bounded
 * queue, and what cannot be written is counted and forgotten.
 */
#ifndef NOTEGATE_CORE_RECORD_H
#define NOTEGATE_CORE_RECORD_H

#include "core/call/call.h"

struct recorder;

/* Of the entries. */
#define RECORD_COLLECTION "calls"
/* Bytes of arguments in an entry, and of one string among them. */
#define RECORD_ARGUMENTS_MAX 2000
#define RECORD_STRING_MAX 300
/* Ended calls that wait to be written. */
#define RECORD_QUEUE_MAX 4096

/* If journal.record_calls is off: NG_OK, and *ret stays NULL. */
int record_open(struct gateway *gateway, struct call *call, struct recorder **ret);
/* Writes what waits, for some seconds at most. Before the store is closed; NULL is a no-op. */
void record_close(struct recorder *recorder);
/* A call has ended. Quick. recorder NULL: nothing. */
void record_call(struct recorder *recorder, const struct call *call, const char *outcome,
                 int64_t took_ns);
/* Calls that were not recorded. */
uint64_t record_lost(const struct recorder *recorder);

/* record_redact.c: the arguments as one line of text; a member that the schema marks with
 * "writeOnly": true, "x-notegate-secret": true or "format": "password" is "[redacted]". */
void record_print(struct buf *out, const struct ng_value *args, const struct ng_value *schema);

#endif
