/* SPDX-License-Identifier: MIT */
/* relay.h - what the files of the relay share. */
#ifndef NOTEGATE_MONGO_RELAY_H
#define NOTEGATE_MONGO_RELAY_H

#include "db.h"

/* Moves what is waiting in the collections whose mark is in `dirty`. false: something is left,
 * or the lease is lost. */
bool relay_move(struct mongo *db, uint64_t dirty);
uint64_t relay_mark(const struct db_collection *collection);
/* Takes tombstones of entries out of their collections once their events were moved. */
void tombstone_gc(struct mongo *db);

#endif
