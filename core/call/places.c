/* SPDX-License-Identifier: MIT */
/* places.c - counts by agent; an agent without a place costs nothing, so the table is bounded
 * by the places. */
#include "places.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/str.h"

#define PLACES_BUCKETS 256

struct holder {
    struct holder *next;
    size_t count;
    size_t len;
    char agent[];
};

struct places {
    pthread_mutex_t lock;
    size_t taken;
    struct holder *buckets[PLACES_BUCKETS];
};

struct places *places_new(void)
{
    struct places *places = alloc_zeroed(1, sizeof(*places));
    if (places != NULL && pthread_mutex_init(&places->lock, NULL) != 0) {
        free(places);
        return NULL;
    }
    return places;
}

void places_free(struct places *places)
{
    if (places == NULL) {
        return;
    }
    for (size_t i = 0; i < PLACES_BUCKETS; i++) {
        while (places->buckets[i] != NULL) {
            struct holder *holder = places->buckets[i];
            places->buckets[i] = holder->next;
            free(holder);
        }
    }
    (void)pthread_mutex_destroy(&places->lock);
    free(places);
}

/* Where the agent's holder hangs, or would. */
static struct holder **places_find(struct places *places, struct ng_str agent)
{
    struct holder **at = &places->buckets[str_hash(agent) % PLACES_BUCKETS];
    while (*at != NULL && !str_equal(str_make((*at)->agent, (*at)->len), agent)) {
        at = &(*at)->next;
    }
    return at;
}

static int places_add(struct holder **at, struct ng_str agent)
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
static int places_put(struct places *places, struct holder **at, struct ng_str agent,
                      size_t count)
{
    int rc = *at == NULL ? places_add(at, agent) : NG_OK;
    if (rc == NG_OK) {
        (*at)->count += count;
        places->taken += count;
    }
    return rc;
}

int places_take(struct places *places, struct ng_str agent, size_t limit)
{
    pthread_mutex_lock(&places->lock);
    struct holder **at = places_find(places, agent);
    size_t has = *at == NULL ? 0 : (*at)->count;
    int rc = places->taken >= limit || has >= limit - limit / 2
                 ? NG_EBUSY
                 : places_put(places, at, agent, 1);
    pthread_mutex_unlock(&places->lock);
    return rc;
}

int places_take_many(struct places *places, struct ng_str agent, size_t own, size_t count,
                     size_t limit)
{
    pthread_mutex_lock(&places->lock);
    struct holder **at = places_find(places, agent);
    size_t has = *at == NULL ? 0 : (*at)->count;
    size_t most = has <= own ? limit : limit - limit / 2;
    bool full = places->taken > limit || count > limit - places->taken || has > most ||
                count > most - has;
    int rc = full ? NG_EBUSY : places_put(places, at, agent, count);
    pthread_mutex_unlock(&places->lock);
    return rc;
}

void places_give_many(struct places *places, struct ng_str agent, size_t count)
{
    pthread_mutex_lock(&places->lock);
    struct holder **at = places_find(places, agent);
    struct holder *holder = *at;
    if (holder != NULL) {
        count = count < holder->count ? count : holder->count;
        places->taken -= count;
        holder->count -= count;
        if (holder->count == 0) {
            *at = holder->next;
            free(holder);
        }
    }
    pthread_mutex_unlock(&places->lock);
}

void places_give(struct places *places, struct ng_str agent)
{
    places_give_many(places, agent, 1);
}

size_t places_most(struct places *places, char *agent, size_t size, size_t *ret_len)
{
    const struct holder *most = NULL;
    size_t count = 0;
    pthread_mutex_lock(&places->lock);
    for (size_t i = 0; i < PLACES_BUCKETS; i++) {
        for (const struct holder *at = places->buckets[i]; at != NULL; at = at->next) {
            most = at->len <= size && (most == NULL || at->count > most->count) ? at : most;
        }
    }
    *ret_len = most == NULL ? 0 : most->len;
    if (most != NULL) {
        count = most->count;
        memcpy(agent, most->agent, most->len);
    }
    pthread_mutex_unlock(&places->lock);
    return count;
}
