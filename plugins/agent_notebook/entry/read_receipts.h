/* SPDX-License-Identifier: MIT */
/* read_receipts.h - read receipts: events that say which agent opened which entry. A read only
 * queues its receipt in memory; a thread writes receipts a little later. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_READ_RECEIPTS_H
#define NOTEGATE_AGENT_NOTEBOOK_READ_RECEIPTS_H

#include "notebook.h"

/* The collection of the documents whose events are the receipts: a few documents for each
 * agent, overwritten by each receipt. */
#define READ_RECEIPTS_COLLECTION "notebook_openings"

/* The contents of a receipt. Borrowed for the call. */
struct read_receipt {
    struct ng_key key;
    struct ng_str title, summary, status;
    uint64_t version;
};

int read_receipts_start(struct ng_call *call, struct read_receipts **ret);
/* Writes the receipts that are queued and joins the thread. NULL is a no-op. */
void read_receipts_stop(struct read_receipts *receipts);
/* Queues a receipt, or counts the read in the one that is queued: then its event has the member
 * `count`. NG_EWOULDBLOCK: the queue is full and the call may not wait; NG_EBUSY: it
 * stayed full. */
int read_receipts_add(struct read_receipts *receipts, struct ng_call *call,
                      const struct read_receipt *from);
/* Before a change of the entry: hands its queued receipts to the store, so that they come
 * before the change. NG_EWOULDBLOCK: call again where the call may block. */
int read_receipts_flush(struct read_receipts *receipts, struct ng_call *call,
                        const struct ng_key *key);
/* Around a deletion: no receipt reaches the store between the function of the deletion and its
 * place in the queue of the store. NG_EWOULDBLOCK: call again where the call may block. */
int read_receipts_lock(struct read_receipts *receipts, struct ng_call *call);
void read_receipts_unlock(struct read_receipts *receipts);
/* Inside the change that deletes the entry: receipts of versions below `version` are dropped
 * from here on. */
void read_receipts_deleted(struct read_receipts *receipts, const struct ng_key *key,
                           uint64_t version);

#endif
