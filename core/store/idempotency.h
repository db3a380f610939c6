/* SPDX-License-Identifier: MIT */
/*
 * idempotency.h - idempotency keys: a write that comes twice with one key is done once.
 *
 * The scope of a key is agent, space and tool. While the first call runs, repeats wait for it;
 * afterwards they get its stored answer, which was committed together with the change.
 */
#ifndef NOTEGATE_CORE_IDEMPOTENCY_H
#define NOTEGATE_CORE_IDEMPOTENCY_H

#include "core/call/call.h"
#include "notegate/backend.h"

struct idempotency_table;
struct idempotency_claim; /* a key that a running call holds */

/* Longest key a caller may send, in bytes, and how long answers are kept. */
#define IDEMPOTENCY_KEY_MAX 256
#define IDEMPOTENCY_KEEP_MS ((int64_t)24 * 3600 * 1000)

struct idempotency_table *idempotency_new(void);
void idempotency_free(struct idempotency_table *table);

enum idempotency_state {
    IDEMPOTENCY_RUN = 1,  /* the call holds the key now: run the tool */
    IDEMPOTENCY_WAIT = 2, /* another call holds it: `call->task` is submitted to the pool when
                      that one ended */
    IDEMPOTENCY_ANSWERED = 3, /* call->staged is the stored answer (or NG_EKEYREUSED) */
    IDEMPOTENCY_FAILED = 4    /* call->staged says why */
};

/* May block. Uses call->idempotency_key, caller, tool and args. */
enum idempotency_state idempotency_begin(struct call *call);
/* The change of the call was refused because another gateway did it meanwhile: that one's
 * answer becomes this call's. NG_ENOTFOUND: there is none any more. May block. */
int idempotency_adopt(struct call *call);
/* Agent, space, tool and key, as answers are stored under. Lent for the call, which holds one.
 */
struct ng_str idempotency_scope_of(const struct call *call);
/* A name for the call's new documents: the same for each retry. {NULL, 0}: it has no key, or
 * memory is out. */
struct ng_str idempotency_token(struct call *call);
/* The call ended: waiting repeats go on. */
void idempotency_end(struct call *call);
/* The answer to store with the call's change, made of the reply so far. Memory of the
 * call. */
int idempotency_answer(struct call *call, struct ng_answer *ret);

#endif
