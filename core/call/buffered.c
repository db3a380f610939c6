/* SPDX-License-Identifier: MIT */
/* buffered.c - quota.c for bytes. The metric also counts answers, which have no agent. */
#include "buffered.h"

#include "gateway.h"
#include "quota.h"

int buffered_take(struct gateway *gateway, struct ng_str agent, size_t own, size_t count)
{
    size_t limit = atomic_load(&gateway->limits.buffered);
    int rc = quota_acquire_many(gateway->buffered, agent, own, count, limit);
    if (rc != NG_OK) {
        return rc;
    }
    if (metrics_use(gateway->metrics, METRICS_BUFFERED, (int64_t)count) > (int64_t)limit) {
        buffered_give(gateway, agent, count);
        return NG_EBUSY;
    }
    return NG_OK;
}

void buffered_give(struct gateway *gateway, struct ng_str agent, size_t count)
{
    quota_release_many(gateway->buffered, agent, count);
    (void)metrics_use(gateway->metrics, METRICS_BUFFERED, -(int64_t)count);
}
