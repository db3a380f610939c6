/* SPDX-License-Identifier: MIT */
/* entry_opened.h - references of openings: collected in memory and written a little later, many
 * at once, so that no read waits for a disk or a server. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_OPENED_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_OPENED_H

#include "notebook.h"

/* Where openings are kept until the journal has them: a few documents that are written over. */
#define ENTRY_OPENED_COLLECTION "notebook_openings"

/* What a reference of an opening says. Lent. */
struct entry_opening {
    struct ng_key key;
    struct ng_str title, summary, status;
    uint64_t version;
};

int entry_opened_start(struct ng_call *call, struct entry_opened **ret);
/* Writes what is left and joins the thread. NULL is a no-op. */
void entry_opened_stop(struct entry_opened *opened);
/* The caller has opened an entry. Does not block and does not wait: NG_EWOULDBLOCK where it
 * would have to. */
int entry_opened_add(struct entry_opened *opened, struct ng_call *call,
                     const struct entry_opening *opening);
/* Before a change of the entry: openings of it that wait are sent on their way first, so that
 * references keep their order. NG_OK, or NG_EWOULDBLOCK: on a worker, please. */
int entry_opened_before(struct entry_opened *opened, struct ng_call *call,
                        const struct ng_key *key);
/* Around a deletion: no batch is handed to the store between its function and its place in the
 * store's queue. NG_EWOULDBLOCK: on a worker, please. */
int entry_opened_hold(struct entry_opened *opened, struct ng_call *call);
void entry_opened_release(struct entry_opened *opened);
/* The entry is deleted with this version: what was opened of it before and still waits is not
 * told any more. Inside the change. */
void entry_opened_deleted(struct entry_opened *opened, const struct ng_key *key,
                          uint64_t version);

#endif
