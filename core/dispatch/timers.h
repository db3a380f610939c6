/* SPDX-License-Identifier: MIT */
/*
 * timers.h - one thread that ends calls at their deadline and starts the gateway's upkeep.
 *
 * A call that has begun, and has not ended a second after its deadline, is stuck: that is
 * logged, and again each minute until it ends, and struct tool.stuck counts it.
 */
#ifndef NOTEGATE_CORE_TIMERS_H
#define NOTEGATE_CORE_TIMERS_H

#include "core/base/buf.h"
#include "core/call/call.h"

struct timers;

/* upkeep() is to run on the timer thread every `upkeep_ms`; it must be quick. */
struct timers *timers_new(void (*upkeep)(void *user), void *user, int64_t upkeep_ms);
/* Only from now on: the members that upkeep() uses are set. */
void timers_begin_upkeep(struct timers *timers);
/* Joins the thread: no deadline ends a call any more; those still watched are cancelled, so
 * that their tools come to an end. Adding and removing go on working. */
void timers_stop(struct timers *timers);
/* When no call is left that could remove itself. NULL is a no-op. */
void timers_free(struct timers *timers);
/* The calls with a deadline that have begun and not ended, as a list of words; those that are
 * late come first, and there are at most a few. */
void timers_name_calls(struct timers *timers, struct buf *out);
/* At call->deadline_ns: dispatch_expire(call), unless timers_remove() came first. Holds a
 * reference until timers_remove(). */
void timers_add(struct timers *timers, struct call *call);
void timers_remove(struct timers *timers, struct call *call);

#endif
