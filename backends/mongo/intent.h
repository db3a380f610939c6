/* SPDX-License-Identifier: MIT */
/* intent.h - shared by intent.c and intent_end.c. */
#ifndef NOTEGATE_MONGO_INTENT_H
#define NOTEGATE_MONGO_INTENT_H

#include "db.h"

int intent_fail(struct fault *fault, int rc, const char *text);
bson_t *intent_find(struct mongo *db, const char *batch, struct fault *fault);
/* Changes the state from open. *ret_moved false: it was changed before. */
bool intent_decide(struct mongo *db, const char *batch, const char *state, bool *ret_moved,
                   struct fault *fault);
/* Applies (`done`) or aborts the intent, then deletes it. */
bool intent_apply(struct mongo *db, const char *batch, bool done, struct fault *fault);

#endif
