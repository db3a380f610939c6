/* SPDX-License-Identifier: MIT */
/* key_ops.h - operations on keys, for REST and for the command line alike. */
#ifndef NOTEGATE_API_KEY_OPS_H
#define NOTEGATE_API_KEY_OPS_H

#include "core/call/call.h"

enum key_op { KEY_OP_LIST = 1, KEY_OP_SHOW, KEY_OP_ADD, KEY_OP_SET, KEY_OP_REVOKE };

/* Memory of the call. */
struct key_job {
    enum key_op op;
    struct ng_str id;   /* SHOW, SET, REVOKE */
    struct ng_str name; /* LIST: only this agent's, and the one with this id; absent: all */
    bool all;           /* LIST: also those that have ended */
    bool force;         /* REVOKE: also the last one */
};

/* A step for dispatch_step(), user: a struct key_job. Replies with a JSON object: {"keys":[..]}
 * for LIST, else the key; for ADD with its text as "key", and for ADD and SET with those of the
 * given spaces that are new, if there are any, as "new_spaces". The request of these two is
 * call->args_text. */
int key_ops_step(struct ng_call *pub, void *user);
/* Does the operation change keys? */
bool key_op_changes(enum key_op op);
/* May this caller see and make keys? */
bool key_ops_allowed(const struct call *call);

#endif
