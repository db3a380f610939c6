/* SPDX-License-Identifier: MIT */
/* memory.h - the memory beside the entries: logged, recalled and summed up. All of it is in the
 * journal, reached through the host. Checkpoints use these functions, too. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_MEMORY_H
#define NOTEGATE_AGENT_NOTEBOOK_MEMORY_H

#include <notegate/journal.h>

/* The memories of an agent are events of one document, so that they keep their order. Only the
 * journal keeps them. */
#define MEMORY_COLLECTION "agent_memory"
/* Bytes of one memory, and of the long-term summary. */
#define MEMORY_CONTENT_MAX ((size_t)64 * 1024)
#define MEMORY_SUMMARY_MAX ((size_t)256 * 1024)
/* How long a recall waits for memories that were logged just before it. */
#define MEMORY_FLUSH_MS 2000

/* ---- memory.c ---- */

/* The journal in use and its handle. */
const struct ng_journal *memory_journal(struct ng_call *call, void **ret_handle);
/* Random ids in call memory; {NULL, 0}: the call has failed. */
struct ng_str memory_id(struct ng_call *call);
struct ng_str memory_uuid(struct ng_call *call);
/* An id that is the same at each attempt of a call with an idempotency key. {NULL, 0}: the call
 * has no key. */
struct ng_str memory_uuid_once(struct ng_call *call);
/* A day, or a time with or without seconds and offset (else of the gateway's zone), from 1970
 * on: what begins before that in UTC is 0. */
bool memory_time_read(struct ng_str text, int64_t *ret_ms);
/* "name": text; an absent text is left out. */
void memory_put(struct ng_call *call, struct ng_writer *writer, const char *name,
                struct ng_str text);
/* Members of a parsed object. */
struct ng_str memory_text(struct ng_call *call, const struct ng_value *body, const char *name);
uint64_t memory_int(struct ng_call *call, const struct ng_value *body, const char *name);
/* One entry of the journal as an object. */
void memory_write_entry(struct ng_call *call, struct ng_writer *writer,
                        const struct ng_entry *entry);
/* Waits for earlier commits to reach the journal. *ret_backlog: how many have not. */
int memory_flush(struct ng_call *call, uint64_t *ret_backlog);

#endif
