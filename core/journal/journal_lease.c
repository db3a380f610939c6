/* SPDX-License-Identifier: MIT */
/* journal_lease.c - shared documents: one gateway delivers, named in a document as long as it
 * is alive (cluster.h). */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "journal_delivery.h"
#include "journal_documents.h"

#define LEASE_SPACE "shared"
#define LEASE_ID "relay"
/* Time between two checks of the lease. */
#define LEASE_LOOK_MS 2000

static int lease_write(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                       void *user)
{
    struct call *call = call_of(pub);
    struct ng_str id = cluster_id(call->gateway->cluster);
    (void)present;
    (void)user;
    struct ng_str json =
        arena_printf(&call->arena, "{\"gateway\":\"%.*s\"}", (int)id.len, id.data);
    if (json.data == NULL) {
        return NG_EINTERNAL;
    }
    return store_draft_json(next, json);
}

int journal_lease_take(struct journal_front *front, struct call *call, bool *ret_mine)
{
    struct cluster *cluster = front->gateway->cluster;
    int64_t now = clock_boot_ns();
    *ret_mine = false;
    if (!cluster_has_lease(cluster)) {
        return NG_OK; /* other gateways may take over */
    }
    if (now < front->lease_ns) {
        *ret_mine = true;
        return NG_OK;
    }
    struct ng_key key = journal_key(JOURNAL_STATE, ng_str_of(LEASE_SPACE), ng_str_of(LEASE_ID));
    const struct ng_doc *doc = NULL;
    int rc = store_get(front->store, call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_value *owner = NULL;
    uint64_t revision = 0;
    if (doc->revision > 0 && !doc->deleted) {
        owner = json_get(doc->body, "gateway");
        revision = doc->revision;
    }
    bool mine = owner != NULL && str_equal(owner->text, cluster_id(cluster));
    if (!mine && (owner == NULL || !cluster_is_alive(cluster, owner->text))) {
        struct ng_change change = {.size = sizeof(change),
                                   .key = key,
                                   .fn = lease_write,
                                   .has_expected = true,
                                   .expected_revision = revision};
        rc = store_write_wait(front->store, call, &change, 1);
        mine = rc == NG_OK;
        if (rc == NG_ECONFLICT) {
            call_reset_result(call); /* another gateway took it */
            rc = NG_OK;
        }
        if (mine && owner != NULL) {
            log_write(NG_LOG_INFO, "journal", "gateway %.*s is gone; this one delivers now",
                      (int)owner->text.len, owner->text.data);
        }
    }
    front->lease_ns = 0;
    if (mine) {
        front->lease_ns = now + (int64_t)LEASE_LOOK_MS * 1000000;
    }
    *ret_mine = mine;
    return rc;
}
