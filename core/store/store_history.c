/* SPDX-License-Identifier: MIT */
/* store_history.c - reads of the history that a backend may offer: the kept revisions around a
 * point, and the changes that a filter selects. */
#include "core/module/abi_size.h"
#include "store_types.h"

int store_revision_at(struct store *store, struct call *call, const struct ng_key *key,
                      uint64_t seq, int64_t time_ms, struct ng_kept *ret)
{
    int rc = store_check_key(store, call, key);
    if (rc == NG_OK) {
        rc = store_needs_worker(store, call);
    }
    *ret = (struct ng_kept){.size = sizeof(*ret)};
    if (rc != NG_OK) {
        return rc;
    }
    return store->backend->revision_at(store->db, &call->pub, key, seq, time_ms, ret);
}

int store_trail(struct store *store, struct call *call, const struct ng_trail *trail,
                uint64_t looks, ng_event_fn *event, void *user, uint64_t *ret_next)
{
    int rc = store_needs_worker(store, call);
    *ret_next = 0;
    if (rc != NG_OK) {
        return rc;
    }
    struct abi_given given = {.backend = store->backend->name, .to.event = event, .user = user};
    rc = store->backend->trail(store->db, &call->pub, trail, looks, abi_give_event, &given,
                               ret_next);
    return abi_given_end(call, &given, rc);
}
