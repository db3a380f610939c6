/* SPDX-License-Identifier: MIT */
/* cluster_state.h - the cluster as its own files see it; others include cluster.h. */
#ifndef NOTEGATE_CORE_CLUSTER_STATE_H
#define NOTEGATE_CORE_CLUSTER_STATE_H

#include <limits.h>
#include <stdatomic.h>

#include "cluster.h"
#include "core/base/lock.h"
#include "core/store/store.h"

#define CLUSTER_COLLECTION "gateways"
#define CLUSTER_SPACE "~:gateway"
/* Gateways known at a time. */
#define CLUSTER_PEERS_MAX 256
/* The document with the secret that all gateways share; no gateway has an id like it. */
#define CLUSTER_SECRET_ID "secret"
/* Of a document of the collection. */
#define CLUSTER_DEPTH 2

struct peer {
    char id[CLUSTER_ID_LEN + 1];
    struct cluster_address address;
    uint64_t revision;
    int64_t seen_ns; /* when it was seen to change */
    uint64_t poll;   /* the latest that found its document */
    bool is_dead;
};

/* Whether the gateway has what it took. */
struct cluster_hold {
    atomic_bool left; /* cluster_leave() */
    bool told_left;   /* a heartbeat said so; of one thread at a time */
    bool lapsed;      /* since the last heartbeat */
    uint64_t lapses;  /* cluster_lapses() */
};

struct cluster {
    struct gateway *gateway;
    char id[CLUSTER_ID_LEN + 1];
    char name[CLUSTER_NAME_SIZE];
    char host[HOST_NAME_MAX + 1]; /* of this machine, as far as it needs no escapes */
    bool shared;
    pthread_t thread;
    bool running;
    struct lock lock;
    pthread_cond_t wake;
    bool stopping;
    struct call *call;            /* of the poll under way */
    atomic_int_fast64_t lease_ns; /* cluster_set_lease() */
    /* Heartbeats, looks and polls by clock_boot_ns(): a gateway whose machine slept has lost
     * its lease. */
    /* When this gateway last sent a heartbeat and then saw the others; 0: never. */
    atomic_int_fast64_t heartbeat_ns;
    atomic_int_fast64_t looked_ns; /* when the last look that succeeded began */
    atomic_uint_fast64_t term;     /* cluster_term() */
    int64_t polled_ns;             /* when the others were polled last */
    int64_t since_ns;              /* since when, without a gap */
    struct peer peers[CLUSTER_PEERS_MAX];
    size_t peer_count;
    uint64_t polls;
    atomic_uint_fast64_t deaths; /* cluster_deaths() */
    bool complains;
    bool has_secret;
    char secret[CLUSTER_SECRET_LEN + 1]; /* from then on unchanged */
    uint64_t minutes;                    /* cluster_minutes() */
    int64_t minute_ns;                   /* when that number was first seen */
    struct cluster_address address;      /* this one's */
    struct cluster_hold hold;            /* of this one */
    cluster_step_fn *step;               /* cluster_each_step() */
    void *step_user;
    cluster_step_fn *look; /* cluster_each_look() */
    void *look_user;
};

/* In the collection of the gateways. */
struct ng_key cluster_key(struct ng_str id);
/* Under the lock. NULL: none of this id was seen. */
struct peer *cluster_peer(struct cluster *cluster, struct ng_str id);

bool cluster_id_is_valid(const char *id);

/* cluster_process.c */
int cluster_process_open(struct cluster *cluster, struct call *call);

/* cluster_address.c */
int cluster_address_open(struct cluster *cluster, struct call *call);
/* Under the lock: from another gateway's document. */
void cluster_address_take(struct cluster_address *address, const struct ng_value *body);
/* On the cluster's thread: the secret, once; the minutes, when one has passed. */
int cluster_secret_step(struct cluster *cluster, struct call *call);
/* The document with the secret, as a poll found it. */
void cluster_secret_row(struct cluster *cluster, const struct ng_doc *row, struct call *call);

#endif
