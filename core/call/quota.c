/* SPDX-License-Identifier: MIT */
/* quota.c - counts by agent; an agent without a place costs nothing, so the table is bounded
 * by the places. */
#include "quota.h"

#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

#define QUOTA_BUCKETS 256

struct holder {
    struct holder *next;
    size_t count;
    size_t len;
    char agent[];
};

struct quota {
    struct lock lock;
    size_t taken;
    struct holder *buckets[QUOTA_BUCKETS];
};

struct quota *quota_new(void)
{
    struct quota *quota = alloc_zeroed(1, sizeof(*quota));
    if (quota != NULL) {
        lock_init(&quota->lock, LOCK_QUOTA);
    }
    return quota;
}

void quota_free(struct quota *quota)
{
    if (quota == NULL) {
        return;
    }
    for (size_t i = 0; i < QUOTA_BUCKETS; i++) {
        while (quota->buckets[i] != NULL) {
            struct holder *holder = quota->buckets[i];
            quota->buckets[i] = holder->next;
            free(holder);
        }
    }
    lock_done(&quota->lock);
    free(quota);
}

/* The link of the agent's holder; *link is NULL if it has none. */
static struct holder **quota_find(struct quota *quota, struct ng_str agent)
{
    struct holder **at = &quota->buckets[str_hash(agent) % QUOTA_BUCKETS];
    while (*at != NULL && !str_equal(str_make((*at)->agent, (*at)->len), agent)) {
        at = &(*at)->next;
    }
    return at;
}

static int quota_add(struct holder **at, struct ng_str agent)
{
    struct holder *holder = alloc_zeroed(1, sizeof(*holder) + agent.len);
    if (holder == NULL) {
        return NG_EINTERNAL;
    }
    holder->len = agent.len;
    if (agent.len > 0) {
        memcpy(holder->agent, agent.data, agent.len);
    }
    *at = holder;
    return NG_OK;
}

/* With the lock held. */
static int quota_put(struct quota *quota, struct holder **at, struct ng_str agent, size_t count)
{
    int rc = *at == NULL ? quota_add(at, agent) : NG_OK;
    if (rc == NG_OK) {
        (*at)->count += count;
        quota->taken += count;
    }
    return rc;
}

int quota_acquire(struct quota *quota, struct ng_str agent, size_t limit)
{
    lock_take(&quota->lock);
    struct holder **at = quota_find(quota, agent);
    size_t has = *at == NULL ? 0 : (*at)->count;
    int rc = quota->taken >= limit || has >= limit - limit / 2 ? NG_EBUSY
                                                               : quota_put(quota, at, agent, 1);
    lock_release(&quota->lock);
    return rc;
}

int quota_acquire_many(struct quota *quota, struct ng_str agent, size_t own, size_t count,
                       size_t limit)
{
    lock_take(&quota->lock);
    struct holder **at = quota_find(quota, agent);
    size_t has = *at == NULL ? 0 : (*at)->count;
    size_t most = has <= own ? limit : limit - limit / 2;
    bool full = quota->taken > limit || count > limit - quota->taken || has > most ||
                count > most - has;
    int rc = full ? NG_EBUSY : quota_put(quota, at, agent, count);
    lock_release(&quota->lock);
    return rc;
}

void quota_release_many(struct quota *quota, struct ng_str agent, size_t count)
{
    lock_take(&quota->lock);
    struct holder **at = quota_find(quota, agent);
    struct holder *holder = *at;
    if (holder != NULL) {
        count = size_min(count, holder->count);
        quota->taken -= count;
        holder->count -= count;
        if (holder->count == 0) {
            *at = holder->next;
            free(holder);
        }
    }
    lock_release(&quota->lock);
}

void quota_release(struct quota *quota, struct ng_str agent)
{
    quota_release_many(quota, agent, 1);
}

size_t quota_most(struct quota *quota, char *agent, size_t size, size_t *ret_len)
{
    const struct holder *most = NULL;
    size_t count = 0;
    lock_take(&quota->lock);
    for (size_t i = 0; i < QUOTA_BUCKETS; i++) {
        for (const struct holder *at = quota->buckets[i]; at != NULL; at = at->next) {
            if (at->len <= size && (most == NULL || at->count > most->count)) {
                most = at;
            }
        }
    }
    if (most == NULL) {
        *ret_len = 0;
    } else {
        *ret_len = most->len;
    }
    if (most != NULL) {
        count = most->count;
        memcpy(agent, most->agent, most->len);
    }
    lock_release(&quota->lock);
    return count;
}
