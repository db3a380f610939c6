/* SPDX-License-Identifier: MIT */
/* buffered.h - bytes in memory for bodies and subscriptions, by agent: limits.buffered, of
 * which one agent has half. Any thread. */
#ifndef NOTEGATE_CORE_BUFFERED_H
#define NOTEGATE_CORE_BUFFERED_H

#include "notegate/abi.h"

struct gateway;

/* own: bytes that the growing object has already; one object alone may take more than half.
 * NG_EBUSY: there is no room, and nothing is taken. NG_EINTERNAL: out of memory. */
int buffered_take(struct gateway *gateway, struct ng_str agent, size_t own, size_t count);
void buffered_give(struct gateway *gateway, struct ng_str agent, size_t count);

#endif
