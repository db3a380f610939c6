/* SPDX-License-Identifier: MIT */
/*
 * nb_cache.c - indexes of notebooks that were read lately, found by the hash of the file. An
 * index holds positions only, so it fits any copy of the same bytes.
 */
#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "nb.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct nb_kept {
    atomic_int refs;
    char revision[NB_REVISION_MAX];
    size_t bytes; /* of memory */
    struct nb nb; /* without bytes of the file */
};

struct nb_cache {
    struct lock lock;
    struct nb_kept *items[NB_CACHE_MAX]; /* most recently used first */
    size_t count, bytes;
};

struct nb_cache *nb_cache_new(void)
{
    struct nb_cache *cache = alloc_zeroed(1, sizeof(*cache));
    if (cache != NULL) {
        lock_init(&cache->lock, LOCK_CELLS_INDEXES);
    }
    return cache;
}

void nb_kept_unref(struct nb_kept *kept)
{
    if (atomic_fetch_sub(&kept->refs, 1) == 1) {
        free(kept->nb.cells);
        free(kept);
    }
}

void nb_cache_free(struct nb_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (size_t i = 0; i < cache->count; i++) {
        nb_kept_unref(cache->items[i]);
    }
    lock_done(&cache->lock);
    free(cache);
}

void nb_cache_size(struct nb_cache *cache, size_t *ret_bytes, size_t *ret_count)
{
    lock_take(&cache->lock);
    *ret_bytes = cache->bytes;
    *ret_count = cache->count;
    lock_release(&cache->lock);
}

/* With the lock held; `count`: there is none. */
static size_t cache_find(const struct nb_cache *cache, struct ng_str revision)
{
    size_t i = 0;
    while (i < cache->count && !str_is(revision, cache->items[i]->revision)) {
        i++;
    }
    return i;
}

/* With the lock held. */
static void cache_use(struct nb_cache *cache, size_t index)
{
    struct nb_kept *kept = cache->items[index];
    memmove(cache->items + 1, cache->items, index * sizeof(*cache->items));
    cache->items[0] = kept;
}

static bool cache_get(struct nb_cache *cache, struct ng_str revision, struct nb *ret)
{
    lock_take(&cache->lock);
    size_t i = cache_find(cache, revision);
    bool found = i < cache->count;
    if (found) {
        struct nb_kept *kept = cache->items[i];
        atomic_fetch_add(&kept->refs, 1);
        *ret = kept->nb;
        ret->kept = kept;
        cache_use(cache, i);
    }
    lock_release(&cache->lock);
    return found;
}

/* Takes over a reference, unless the index is there already. */
static bool cache_put(struct nb_cache *cache, struct nb_kept *kept)
{
    lock_take(&cache->lock);
    bool fresh = cache_find(cache, ng_str_of(kept->revision)) == cache->count;
    while (fresh && cache->count > 0 &&
           (cache->count == NB_CACHE_MAX || cache->bytes > NB_CACHE_BYTES - kept->bytes)) {
        struct nb_kept *last = cache->items[--cache->count];
        cache->bytes -= last->bytes;
        nb_kept_unref(last);
    }
    if (fresh) {
        cache->items[cache->count++] = kept;
        cache->bytes += kept->bytes;
        cache_use(cache, cache->count - 1);
    }
    lock_release(&cache->lock);
    return fresh;
}

/* Keeps the index, whose cells are then shared. Without memory it stays as it is. */
static void cache_keep(struct nb_cache *cache, struct ng_str revision, struct nb *nb)
{
    /* The array of cells grows by half. */
    size_t cells = nb->cell_count + nb->cell_count / 2;
    size_t bytes = sizeof(struct nb_kept) + cells * sizeof(*nb->cells);
    if (revision.len == 0 || revision.len >= NB_REVISION_MAX || bytes > NB_CACHE_BYTES / 4) {
        return;
    }
    struct nb_kept *kept = alloc_zeroed(1, sizeof(*kept));
    if (kept == NULL) {
        return;
    }
    atomic_init(&kept->refs, 2); /* of the cache and of this index */
    memcpy(kept->revision, revision.data, revision.len);
    kept->bytes = bytes;
    kept->nb = *nb;
    kept->nb.bytes = (struct ng_str){NULL, 0};
    nb->kept = kept;
    if (!cache_put(cache, kept)) {
        atomic_fetch_sub(&kept->refs, 1);
    }
}

enum nb_fault nb_cache_index(struct nb_cache *cache, struct ng_str bytes,
                             struct ng_str revision, struct nb *ret, struct nb_error *error)
{
    if (cache_get(cache, revision, ret)) {
        ret->bytes = bytes;
        *error = (struct nb_error){.fault = NB_FINE};
        return NB_FINE;
    }
    enum nb_fault fault = nb_index(bytes, ret, error);
    if (fault == NB_FINE) {
        cache_keep(cache, revision, ret);
    }
    return fault;
}
