/* SPDX-License-Identifier: MIT */
/* places.h - a limited number of places that agents take and give back; one agent has at most
 * half of them. Any thread. */
#ifndef NOTEGATE_CORE_PLACES_H
#define NOTEGATE_CORE_PLACES_H

#include "notegate/abi.h"

struct places;

/* NULL: out of memory. */
struct places *places_new(void);
/* NULL is a no-op. */
void places_free(struct places *places);
/* limit: how many there are just now. NG_EBUSY: all are taken, or this agent has half of them
 * (rounded up). NG_EINTERNAL: out of memory. */
int places_take(struct places *places, struct ng_str agent, size_t limit);
/* The same for many at once, as bytes are. own: what the thing that grows here has already; one
 * thing alone may take more than half. */
int places_take_many(struct places *places, struct ng_str agent, size_t own, size_t count,
                     size_t limit);
void places_give_many(struct places *places, struct ng_str agent, size_t count);
/* How many the agent with the most has, and its name; 0 where none are taken. */
size_t places_most(struct places *places, char *agent, size_t size, size_t *ret_len);
/* One that this agent has taken. */
void places_give(struct places *places, struct ng_str agent);

#endif
