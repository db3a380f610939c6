/* SPDX-License-Identifier: MIT */
/* feed.h - outboxes become numbered events, and gateways learn of them. */
#ifndef NOTEGATE_MONGO_FEED_H
#define NOTEGATE_MONGO_FEED_H

#include "../document/document.h"

/* ---- relay.c ---- */

/* Looks up the last sequence number given. */
bool last_seq_read(struct mongo *db, struct fault *fault);
/* The same for events of the feed that come after the known ones: by the feed's index. */
bool last_seq_follow(struct mongo *db, struct fault *fault);
/* This number was given. */
void last_seq_saw(struct mongo *db, uint64_t seq);
int feed_open(struct mongo *db);
/* Moves what the queue has stored, so the queue is closed before. */
void feed_close(struct mongo *db);
/* Whether this gateway holds the lease. */
bool relay_is_owner(const struct mongo *db);
/* Tells the relay that an outbox of this collection (NULL: of any) is not empty. */
void relay_kick(struct mongo *db, const struct db_collection *collection);

/* ---- drain.c ---- */

/* Waits until everything committed before has been moved, whichever gateway holds the lease. */
int relay_drain(struct mongo *db, struct ng_call *call);
int relay_settle(void *self, struct ng_call *call, uint32_t flags, int64_t wait_ms);

/* ---- watch.c ---- */

/* Tells the core to look for changes; with a notice for the log, or NULL. */
void watch_tell(struct mongo *db, const char *notice);
void watch_set(void *self, ng_watch_fn *changed, void *user);

#endif
