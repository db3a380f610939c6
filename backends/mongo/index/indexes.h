/* SPDX-License-Identifier: MIT */
/* indexes.h - the indexes of all collections. */
#ifndef NOTEGATE_MONGO_INDEXES_H
#define NOTEGATE_MONGO_INDEXES_H

#include "../feed/feed.h"

int indexes_open(struct mongo *db);
void indexes_close(struct mongo *db);
/* Called before a write that may be the collection's first: a collection that does not exist
 * yet gets its indexes now. */
void collection_prepare(struct mongo *db, const char *name);
/* Tries to make the indexes that are missing, and tells of those that the server refuses.
 * advice NULL: tells nothing, and tries only those whose pause is over. */
void indexes_advise(struct mongo *db, ng_finding_fn *advice, void *user);
/* How many collections lack one, with those of our own as one. */
size_t indexes_missing(struct mongo *db);
/* Whether the collection has all these indexes, which may be called otherwise. */
bool indexes_are_there(struct mongo *db, const char *collection, const bson_t *wanted);
/* After the server refused an index: drops those of older versions that were in its way. true:
 * try again. The fault names a text index of another program. */
bool conflict_clear(struct mongo *db, const char *collection, const bson_t *wanted,
                    struct fault *fault);
/* For `notegate check`: missing rights, refused indexes, commands for a sharded cluster. */
int advise_run(void *self, struct ng_call *call, ng_finding_fn *advice, void *user);
/* The server no longer has it: searches filter until it is made again. */
void text_index_lost(struct db_collection *collection);

#endif
