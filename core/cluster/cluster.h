/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - the gateways that share one database: who this one is, which others live, and
 * what has to be looked at now and then because others change it.
 *
 * Each gateway has an id, kept in its data directory, and beats: a document of the collection
 * "gateways" that it writes every few seconds. One whose document does not change any more for
 * CLUSTER_LEASE_MS, by the clock of who looks, is dead; what it had in hand is others' then.
 * Where documents are not shared there is the id, and nothing else.
 */
#ifndef NOTEGATE_CORE_CLUSTER_H
#define NOTEGATE_CORE_CLUSTER_H

#include "core/call/call.h"

struct cluster;

/* How often it looks at what others change, how often it beats, and after which silence another
 * one is dead. */
#define CLUSTER_STEP_MS 400
#define CLUSTER_HEARTBEAT_MS 3000
#define CLUSTER_LEASE_MS 15000
/* Hexadecimal digits of an id. */
#define CLUSTER_ID_LEN 24

/* After the store is open, before anything of it is in use. */
int cluster_open(struct gateway *gateway, struct call *call, struct cluster **ret);
/* Runs on the cluster's thread after each heartbeat: reads what other gateways changed. Before
 * cluster_start(). */
typedef int cluster_step_fn(void *user, struct call *call);
void cluster_each_step(struct cluster *cluster, cluster_step_fn *step, void *user);
/* Begins to send heartbeats and to poll (shared documents only). */
int cluster_start(struct cluster *cluster);
/* No more. May be called more than once; NULL is a no-op. */
void cluster_stop(struct cluster *cluster);
void cluster_free(struct cluster *cluster);

/* This gateway's id. cluster NULL: "". */
struct ng_str cluster_id(const struct cluster *cluster);
/* May that gateway still be at work? This one is. */
bool cluster_is_alive(struct cluster *cluster, struct ng_str id);
/* The ids of all other gateways that announced themselves until now, living or not, as the
 * database knows them: in memory of the call. cluster NULL, documents not shared: none. Waits.
 */
int cluster_peers(struct cluster *cluster, struct call *call, struct ng_str **ret,
                  size_t *ret_count);
/* From then on all others find this one. Before it leaves what they have to find. Waits. */
int cluster_announce(struct cluster *cluster, struct call *call);
/* Do the others know that this one lives? Else it must not go on with what only one may do. */
bool cluster_has_lease(struct cluster *cluster);

#endif
