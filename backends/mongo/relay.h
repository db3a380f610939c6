/* SPDX-License-Identifier: MIT */
/* relay.h - shared by relay.c, relay_move.c and tombstone_gc.c. */
#ifndef NOTEGATE_MONGO_RELAY_H
#define NOTEGATE_MONGO_RELAY_H

#include "db.h"

/* Moves the outboxes of the collections marked in `dirty`. false: something is left, or the
 * lease is lost. */
bool relay_move(struct mongo *db, uint64_t dirty);
uint64_t relay_mark(const struct db_collection *collection);
/* Deletes the tombstones of entries from their collections once their events were moved. */
void tombstone_gc(struct mongo *db);

#endif
