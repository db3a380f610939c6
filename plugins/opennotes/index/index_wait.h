/* SPDX-License-Identifier: MIT */
/* index_wait.h - calls that wait for an index without keeping a worker. */
#ifndef NOTEGATE_OPENNOTES_INDEX_WAIT_H
#define NOTEGATE_OPENNOTES_INDEX_WAIT_H

#include <notegate/plugin.h>

/* Not a result of a tool: it returns so from notes_index_begin() on, and runs again. */
#define NOTES_WAITS 2

typedef int notes_wait_fn(void *user, struct ng_call *call);

struct notes_indexes;

/* Runs it, from its beginning as often as it returns NOTES_WAITS: on another worker, when what
 * it waits for is done. Before notes_index_begin() it must only read. */
int notes_wait_run(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                   void *user);

/* For what the gateway asks again (a listing): runs it once. NG_PENDING: it waits. */
int notes_wait_once(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                    void *user);

/* Which indexes are being made and how far they are, in call memory; {NULL, 0}: none. */
struct ng_str notes_wait_tell(struct notes_indexes *indexes, struct ng_call *call);

#endif
