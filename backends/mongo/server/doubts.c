/* SPDX-License-Identifier: MIT */
/*
 * doubts.c - for a moment after an election the new primary shows to a majority read less than
 * was acknowledged. One linearizable read waits until a majority has all of that, and other
 * reads show it from then on. So the first operation after each change of the members makes
 * one.
 */
#include "server.h"

static void members_changed(const mongoc_apm_topology_changed_t *event)
{
    struct mongo *db = mongoc_apm_topology_changed_get_context(event);
    (void)atomic_fetch_add(&db->doubts, 1);
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
    bson_destroy(op_find_one(db, &plain, OWN_EVENTS,
                             bson_of("_id:u", atomic_load(&db->last_seq)),
                             linearizable(bson_new()), fault));
    while (fault->rc == NG_OK && settled < doubts &&
           !atomic_compare_exchange_weak(&db->settled, &settled, doubts)) {
    }
    return fault->rc == NG_OK;
}

bool doubts_grew(const struct mongo *db, uint64_t *inout_seen)
{
    uint64_t doubts = atomic_load(&db->doubts);
    bool grew = doubts != *inout_seen;
    *inout_seen = doubts;
    return grew;
}
