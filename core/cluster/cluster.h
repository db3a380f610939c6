/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - the gateways that share one database: the id of this one, the leases of all, and
 * the poll of what other gateways change.
 *
 * Each gateway has an id, kept in its data directory, and sends heartbeats: every few seconds
 * it writes its document in the collection "gateways". If that document does not change for the
 * length of a lease, by the observer's clock, the lease has expired: the gateway counts as
 * dead, and others recover its work. If documents are not shared, there is only the id.
 */
#ifndef NOTEGATE_CORE_CLUSTER_H
#define NOTEGATE_CORE_CLUSTER_H

#include "core/call/call.h"

struct cluster;

/* Length of a lease, if cluster_set_lease() sets no other. */
#define CLUSTER_LEASE_MS 15000
/* Hexadecimal digits of an id. */
#define CLUSTER_ID_LEN 24

/* After the store is open, before anything of it is in use. */
int cluster_open(struct gateway *gateway, struct call *call, struct cluster **ret);
/* Runs on the cluster's thread after each heartbeat: reads what other gateways changed. Before
 * cluster_start(). */
typedef int cluster_step_fn(void *user, struct call *call);
void cluster_each_step(struct cluster *cluster, cluster_step_fn *step, void *user);
/* Sets the length of this gateway's leases, at any time; the intervals of its heartbeats and
 * polls follow. For tests: all gateways of one database must have the same. */
void cluster_set_lease(struct cluster *cluster, int64_t lease_ms);
/* Begins to send heartbeats and to poll (shared documents only). */
int cluster_start(struct cluster *cluster);
/* No more. May be called more than once; NULL is a no-op. */
void cluster_stop(struct cluster *cluster);
void cluster_free(struct cluster *cluster);

/* This gateway's id. cluster NULL: "". */
struct ng_str cluster_id(const struct cluster *cluster);
/* May that gateway still hold its lease? This one does. */
bool cluster_is_alive(struct cluster *cluster, struct ng_str id);
/* The ids of all other gateways that announced themselves until now, living or not, as the
 * database knows them: in memory of the call. cluster NULL, documents not shared: none. Waits.
 */
int cluster_peers(struct cluster *cluster, struct call *call, struct ng_str **ret,
                  size_t *ret_count);
/* From then on all others find this gateway. Their data must be ready before. Waits. */
int cluster_announce(struct cluster *cluster, struct call *call);
/* Does this gateway hold its lease? Else it must not continue work that only one may do. */
bool cluster_has_lease(struct cluster *cluster);

#endif
