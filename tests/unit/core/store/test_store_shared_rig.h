/* SPDX-License-Identifier: MIT */
/* test_store_shared_rig.h - gateways on one shared store, and a plugin that changes
 * documents there. */
#ifndef NOTEGATE_TEST_STORE_SHARED_RIG_H
#define NOTEGATE_TEST_STORE_SHARED_RIG_H

#include "harness.h"

#include "core/store/store.h"
#include "hub.h"

#define GATEWAYS 3

extern const struct hub_control *hub; /* of the store, while a cluster is open */
struct ng_key key_of(struct ng_str id);
extern const struct ng_plugin plugin_desc;
extern const struct ng_plugin serial_desc; /* takes one call at a time */

struct cluster {
    struct harness harness[GATEWAYS];
};

void gateways_open_as(struct cluster *cluster, const struct ng_plugin *desc, const char *set);
void gateways_open(struct cluster *cluster);
void gateways_close(struct cluster *cluster);

struct agent {
    struct cluster *cluster;
    size_t number, gateway, writes;
    const char *documents; /* the members that name them */
};

/* Its writes, one after the other. */
void *agent_run(void *user);
void run_crowd(struct cluster *cluster, size_t agents, size_t writes, size_t gateways,
               const char *documents);

#endif
