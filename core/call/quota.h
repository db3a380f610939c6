/* SPDX-License-Identifier: MIT */
/* quota.h - a limited number of places that agents take and give back; one agent has at most
 * half of them. Any thread. */
#ifndef NOTEGATE_CORE_QUOTA_H
#define NOTEGATE_CORE_QUOTA_H

#include "notegate/abi.h"

struct quota;

/* NULL: out of memory. */
struct quota *quota_new(void);
/* NULL is a no-op. */
void quota_free(struct quota *quota);
/* limit: how many there are just now. NG_EBUSY: all are taken, or this agent has half of them
 * (rounded up). NG_EINTERNAL: out of memory. */
int quota_acquire(struct quota *quota, struct ng_str agent, size_t limit);
/* The same for many units at once, for example bytes. own: bytes that the growing object has
 * already; one object alone may take more than half. */
int quota_acquire_many(struct quota *quota, struct ng_str agent, size_t own, size_t count,
                       size_t limit);
void quota_release_many(struct quota *quota, struct ng_str agent, size_t count);
/* How many the agent with the most has, and its name; 0 where none are taken. */
size_t quota_most(struct quota *quota, char *agent, size_t size, size_t *ret_len);
/* One that this agent has taken. */
void quota_release(struct quota *quota, struct ng_str agent);

#endif
