/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - the gateways that share one database: the id of this one, the leases of all, and
 * the poll of what other gateways change.
 *
 * Each gateway has an id, kept in its data directory, and sends heartbeats: every few seconds
 * it writes its document in the collection "gateways". If that document does not change for the
 * length of a lease, by the observer's time since its boot, the lease has expired: the gateway
 * counts as dead, and others recover its work. No time of another machine is read. If documents
 * are not shared, there is only the id.
 */
#ifndef NOTEGATE_CORE_CLUSTER_H
#define NOTEGATE_CORE_CLUSTER_H

#include "core/call/call.h"

struct cluster;
struct config;

/* Length of a lease, if cluster_set_lease() sets no other. */
#define CLUSTER_LEASE_MS 15000
/* After work of its thread that takes longer, cluster_each_look() is due again. */
#define CLUSTER_LOOK_MS 1000
/* Hexadecimal digits of an id. */
#define CLUSTER_ID_LEN 24
/* And of the secret. */
#define CLUSTER_SECRET_LEN 64
/* Characters of cluster.advertise. */
#define CLUSTER_URL_MAX 255

/* "ID.LIFE": an id, and a random number of its process. */
#define CLUSTER_LIFE_LEN 8
#define CLUSTER_NAME_SIZE (CLUSTER_ID_LEN + 1 + CLUSTER_LIFE_LEN + 1)

/* How a gateway is reached by the others. `token` shows that a request comes from one that
 * reads the same database; a new one with each start. url "": it does not advertise. */
struct cluster_address {
    char url[CLUSTER_URL_MAX + 1];
    char token[CLUSTER_SECRET_LEN + 1];
};

/* After the store is open, before anything of it is in use. */
int cluster_open(struct gateway *gateway, struct call *call, struct cluster **ret);
/* Runs on the cluster's thread after each heartbeat: reads what other gateways changed. Before
 * cluster_start(). */
typedef int cluster_step_fn(void *user, struct call *call);
void cluster_each_step(struct cluster *cluster, cluster_step_fn *step, void *user);
/* Runs on the cluster's thread as the first of each round, whatever fails after it: reads what
 * must not wait for writes. Before cluster_start(). */
void cluster_each_look(struct cluster *cluster, cluster_step_fn *look, void *user);
/* Looks again if the last look that succeeded began longer ago than CLUSTER_LOOK_MS: for work
 * on this thread that takes long. A failure is left to the next round. NULL is a no-op. */
void cluster_look_again(struct cluster *cluster, struct call *call);
/* Sets the length of this gateway's leases, at any time; the intervals of its heartbeats and
 * polls follow. For tests: all gateways of one database must have the same. */
void cluster_set_lease(struct cluster *cluster, int64_t lease_ms);
/* Begins to send heartbeats and to poll (shared documents only). */
int cluster_start(struct cluster *cluster);
/* No more. May be called more than once; NULL is a no-op. */
void cluster_stop(struct cluster *cluster);
void cluster_free(struct cluster *cluster);

/* Does this gateway share its database with others? NULL: no. */
bool cluster_is_shared(const struct cluster *cluster);
/* The secret that the gateways of one shared database have in common. False:
 * it was not read yet. Any thread. */
bool cluster_secret(struct cluster *cluster, char secret[CLUSTER_SECRET_LEN + 1]);
/* Minutes that the gateways of a shared database ran, one after the other or together: a number
 * in the database that one of them raises when it has seen it for a minute. It grows slower
 * than time, by the seconds of a poll, and no clock has a part in it. Known with the secret. */
uint64_t cluster_minutes(struct cluster *cluster);
/* Can cluster.advertise be an address? NG_EINVAL with a sentence: a start refuses it. */
int cluster_check_advertise(const struct config *config, struct buf *error);
/* Do others reach this gateway (cluster.advertise, shared documents)? NULL: no. */
bool cluster_advertises(const struct cluster *cluster);
/* Is it this gateway's token, in any way that takes the same time? */
bool cluster_is_token(const struct cluster *cluster, struct ng_str token);
/* Of a gateway, as of the last poll. False: none of this id was seen yet; cluster_peers()
 * looks. */
bool cluster_address(struct cluster *cluster, struct ng_str id, struct cluster_address *ret);
/* Of this start of this gateway; "" where it does not advertise. */
const char *cluster_token(const struct cluster *cluster);
/* Does that start of a gateway still hold what it took, as of the last poll? Not when it was
 * started again, has left, or lost its lease. */
bool cluster_holds(struct cluster *cluster, struct ng_str id, struct ng_str token);
/* This gateway holds nothing any more: what others find of it is theirs, as soon as they see
 * its next heartbeat. NULL: a no-op. */
void cluster_leave(struct cluster *cluster);
/* How often this gateway may have lost what it holds, because its lease ran out. Unlike the
 * term, which pauses at half a lease, it counts whole ones: what can be looked up again may be
 * used as long as others do not take it. Grows when a lapse begins and when it ends: what was
 * taken in between may be lost, too. */
uint64_t cluster_lapses(struct cluster *cluster);
/* This gateway's id. cluster NULL: "". */
struct ng_str cluster_id(const struct cluster *cluster);
/* May that gateway still hold its lease? This one does. Also true as long as this one cannot
 * look. */
bool cluster_is_alive(struct cluster *cluster, struct ng_str id);
/* The ids of all other gateways that announced themselves until now, living or not, as the
 * database knows them: in memory of the call. cluster NULL, documents not shared: none. Waits.
 */
int cluster_peers(struct cluster *cluster, struct call *call, struct ng_str **ret,
                  size_t *ret_count);
/* From then on all others find this gateway. Their data must be ready before. Waits. */
int cluster_announce(struct cluster *cluster, struct call *call);
/* Grows each time that this gateway finds another one dead. cluster NULL: 0. */
uint64_t cluster_deaths(const struct cluster *cluster);
/* Does this gateway hold its lease? Else it must not continue work that only one may do. */
bool cluster_has_lease(const struct cluster *cluster);
/* Grows each time that this gateway had lost its lease and has it again: others may have taken
 * over its work meanwhile. 0: it has no lease now. Takes no lock. */
uint64_t cluster_term(const struct cluster *cluster);

/* This process of this gateway, as cluster_find() knows it: "ID.LIFE". cluster NULL, documents
 * not shared: "". */
struct ng_str cluster_name(const struct cluster *cluster);
/* May the process of a gateway with this name still be running? Not if its gateway is dead, or
 * has started again. A gateway that seems dead is looked for in the database once more.
 * ret_where: its address as far as it is known, else the name of its machine, or absent; memory
 * of the call. Waits. */
int cluster_find(struct cluster *cluster, struct call *call, struct ng_str name,
                 bool *ret_alive, struct ng_str *ret_where);

#endif
