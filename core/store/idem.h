/* SPDX-License-Identifier: MIT */
/*
 * idem.h - idempotency keys: a write that comes twice with one key is done once.
 *
 * The scope of a key is agent, space and tool. While the first call runs, repeats wait for it;
 * afterwards they get its stored answer, which was committed together with the change.
 */
#ifndef NOTEGATE_CORE_IDEM_H
#define NOTEGATE_CORE_IDEM_H

#include "core/call/call.h"
#include "notegate/backend.h"

struct idem_table;
struct idem; /* a key that a running call holds */

/* Longest key a caller may send, in bytes, and how long answers are kept. */
#define IDEM_KEY_MAX 256
#define IDEM_KEEP_MS ((int64_t)24 * 3600 * 1000)

struct idem_table *idem_new(void);
void idem_free(struct idem_table *table);

enum idem_state {
    IDEM_RUN = 1,  /* the call holds the key now: run the tool */
    IDEM_WAIT = 2, /* another call holds it: `call->task` is submitted to the pool when that one
                      ended */
    IDEM_ANSWERED = 3, /* call->work is the stored answer (or NG_EKEYREUSED) */
    IDEM_FAILED = 4    /* call->work says why */
};

/* May block. Uses call->idempotency_key, caller, tool and args. */
enum idem_state idem_begin(struct call *call);
/* The change of the call was refused because another gateway did it meanwhile: that one's
 * answer becomes this call's. NG_ENOTFOUND: there is none any more. May block. */
int idem_adopt(struct call *call);
/* Agent, space, tool and key, as answers are stored under. Lent for the call, which holds one.
 */
struct ng_str idem_scope_of(const struct call *call);
/* A name for what the call makes: the same for each repeat of it. {NULL, 0}: it has no key, or
 * memory is out. */
struct ng_str idem_token(struct call *call);
/* The call ended: waiting repeats go on. */
void idem_end(struct call *call);
/* The answer to store with the call's change, made of what was replied so far. Memory of the
 * call. */
int idem_answer(struct call *call, struct ng_answer *ret);

#endif
