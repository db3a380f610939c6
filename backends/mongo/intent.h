/* SPDX-License-Identifier: MIT */
/* intent.h - what the two files of intents share. */
#ifndef NOTEGATE_MONGO_INTENT_H
#define NOTEGATE_MONGO_INTENT_H

#include "db.h"

int64_t intent_now_ms(void);
int intent_fail(struct fault *fault, int rc, const char *text);
bson_t *intent_find(struct mongo *db, const char *batch, struct fault *fault);
/* From open to another state. *ret_moved false: somebody did that before. */
bool intent_decide(struct mongo *db, const char *batch, const char *state, bool *ret_moved,
                   struct fault *fault);
/* Applies (`done`) or takes back, then forgets. */
bool intent_apply(struct mongo *db, const char *batch, bool done, struct fault *fault);

#endif
