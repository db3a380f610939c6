/* SPDX-License-Identifier: MIT */
/* find.h - the server that has the keys: the one named, the one that a Sentinel names, or the
 * node of a cluster. */
#ifndef NOTEGATE_REDIS_FIND_H
#define NOTEGATE_REDIS_FIND_H

#include "pool.h"

/* Opens a connection to the server, and finds it first if it is not known. limit: of a single
 * server; each step of a search has its own. */
int find_open(struct redis_pool *pool, struct ng_call *call, const struct socket_limit *limit,
              struct conn **ret, struct conn_error *ret_error);
/* Asks the Sentinels again, at most once a second, so that an idle gateway notices a failover.
 * No effect if none answers, or without Sentinels. */
void find_look(struct redis_pool *pool, struct ng_call *call);

#endif
