/* SPDX-License-Identifier: MIT */
/* read_receipts.h - references of openings: collected in memory and written a little later,
 * many at once, so that no read waits for a disk or a server. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_READ_RECEIPTS_H
#define NOTEGATE_AGENT_NOTEBOOK_READ_RECEIPTS_H

#include "notebook.h"

/* Where openings are kept until the journal has them: a few documents that are written over. */
#define READ_RECEIPTS_COLLECTION "notebook_openings"

/* What a reference of an opening says. Lent. */
struct read_receipt {
    struct ng_key key;
    struct ng_str title, summary, status;
    uint64_t version;
};

int read_receipts_start(struct ng_call *call, struct read_receipts **ret);
/* Writes what is left and joins the thread. NULL is a no-op. */
void read_receipts_stop(struct read_receipts *receipts);
/* The caller has opened an entry. Does not block and does not wait: NG_EWOULDBLOCK where it
 * would have to. */
int read_receipts_add(struct read_receipts *receipts, struct ng_call *call,
                      const struct read_receipt *opening);
/* Before a change of the entry: openings of it that wait are sent on their way first, so that
 * references keep their order. NG_OK, or NG_EWOULDBLOCK: on a worker, please. */
int read_receipts_before(struct read_receipts *receipts, struct ng_call *call,
                         const struct ng_key *key);
/* Around a deletion: no batch is handed to the store between its function and its place in the
 * store's queue. NG_EWOULDBLOCK: on a worker, please. */
int read_receipts_hold(struct read_receipts *receipts, struct ng_call *call);
void read_receipts_release(struct read_receipts *receipts);
/* The entry is deleted with this version: what was opened of it before and still waits is not
 * told any more. Inside the change. */
void read_receipts_deleted(struct read_receipts *receipts, const struct ng_key *key,
                           uint64_t version);

#endif
