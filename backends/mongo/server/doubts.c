/* SPDX-License-Identifier: MIT */
/*
 * doubts.c - for a moment after an election the new primary shows to a majority read less than
 * was acknowledged. One linearizable read waits until a majority has all of that, and other
 * reads show it from then on. So the first operation with each new primary makes one.
 */
#include "server.h"

#include <stdio.h>

/* The linearizable read may take so long: what asks for it waits, and tries again. */
#define SETTLE_MS 1000

/* The host and the election of the primary; "": there is none. */
static void primary_of(const mongoc_topology_description_t *members, char ret[PRIMARY_MAX])
{
    size_t count = 0;
    mongoc_server_description_t **list =
        mongoc_topology_description_get_servers(members, &count);
    ret[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char election[25] = "";
        bson_iter_t iter;
        if (strcmp(mongoc_server_description_type(list[i]), "RSPrimary") != 0) {
            continue;
        }
        if (member(mongoc_server_description_hello_response(list[i]), "electionId", &iter) &&
            BSON_ITER_HOLDS_OID(&iter)) {
            bson_oid_to_string(bson_iter_oid(&iter), election);
        }
        (void)snprintf(ret, PRIMARY_MAX, "%s %s",
                       mongoc_server_description_host(list[i])->host_and_port, election);
    }
    mongoc_server_descriptions_destroy_all(list, count);
}

/* One at a time: the driver calls it with a lock of its own. */
static void members_changed(const mongoc_apm_topology_changed_t *event)
{
    struct mongo *db = mongoc_apm_topology_changed_get_context(event);
    char now[PRIMARY_MAX];
    primary_of(mongoc_apm_topology_changed_get_new_description(event), now);
    if (now[0] != '\0' && strcmp(now, db->primary) != 0) {
        (void)snprintf(db->primary, sizeof(db->primary), "%s", now);
        (void)atomic_fetch_add(&db->doubts, 1);
    }
}

void doubts_watch(struct mongo *db)
{
    mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();
    mongoc_apm_set_topology_changed_cb(callbacks, members_changed);
    (void)mongoc_client_pool_set_apm_callbacks(db->pool, callbacks, db);
    mongoc_apm_callbacks_destroy(callbacks);
}

bson_t *linearizable(bson_t *opts)
{
    bson_add(opts, "readConcern:{level:t}", MONGOC_READ_CONCERN_LEVEL_LINEARIZABLE);
    return opts;
}

bool doubts_settle(struct mongo *db, mongoc_client_t *client, struct fault *fault)
{
    struct session plain = {.db = db, .client = client};
    uint64_t doubts = atomic_load(&db->doubts);
    uint64_t settled = atomic_load(&db->settled);
    if (settled >= doubts) {
        return true;
    }
    bson_t *opts = bson_of("maxTimeMS:l", i64_min(db->timeout_ms, SETTLE_MS));
    bson_destroy(op_find_one(db, &plain, OWN_EVENTS,
                             bson_of("_id:u", atomic_load(&db->last_seq)), linearizable(opts),
                             fault));
    while (fault->rc == NG_OK && settled < doubts &&
           !atomic_compare_exchange_weak(&db->settled, &settled, doubts)) {
    }
    if (fault->rc == NG_OK) {
        return true;
    }
    /* Nothing was sent. A server that does not answer is away; one that answers so is in an
     * election, and what changes something tries again until its call ends. */
    fault->rc = NG_EUNAVAILABLE;
    fault->outcome_unknown = fault->answered;
    fault->none_made = fault->answered;
    return false;
}

bool doubts_grew(const struct mongo *db, uint64_t *inout_seen)
{
    uint64_t doubts = atomic_load(&db->doubts);
    bool grew = doubts != *inout_seen;
    *inout_seen = doubts;
    return grew;
}
