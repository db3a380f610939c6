/* SPDX-License-Identifier: MIT */
/* index_wait.h - calls wait for an index without a worker. */
#ifndef NOTEGATE_OPENNOTES_INDEX_WAIT_H
#define NOTEGATE_OPENNOTES_INDEX_WAIT_H

#include <notegate/plugin.h>

/* Not a result of a tool: notes_index_begin() and its callers return it, and the tool runs
 * again. */
#define NOTES_WAITS 2

typedef int notes_wait_fn(void *user, struct ng_call *call);

struct notes_indexes;

/* Runs the function from its beginning as often as it returns NOTES_WAITS, each time on another
 * worker when the refresh is done. Before notes_index_begin() the function may only read. */
int notes_wait_run(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                   void *user);

/* For requests that the gateway repeats (a listing): runs the function once. NG_PENDING: it
 * waits. */
int notes_wait_once(struct notes_indexes *indexes, struct ng_call *call, notes_wait_fn *run,
                    void *user);

/* The indexes under way and their progress, in call memory; {NULL, 0}: none. */
struct ng_str notes_wait_tell(struct notes_indexes *indexes, struct ng_call *call);

#endif
