/* SPDX-License-Identifier: MIT */
/* chunks.c - a long array that is kept in chunks. */
#include "chunks.h"

#include "core/base/arena.h"
#include "core/base/array.h"
#include "core/base/minmax.h"

#include <stdlib.h>
#include <string.h>

/* Items in a new row of chunks: room for a few more in each. */
#define CHUNKS_FILL(most) ((most) / 4 * 3)

/* A part of the items that are distributed to new chunks. */
struct chunks_part {
    const char *items;
    size_t count;
};

void chunks_init(struct chunks *chunks, size_t item_bytes, size_t most,
                 chunks_weight_fn *weight)
{
    *chunks = (struct chunks){.item_bytes = item_bytes, .most = most, .weight = weight};
}

void chunks_done(struct chunks *chunks)
{
    for (size_t i = 0; i < chunks->count; i++) {
        free(chunks->list[i].items);
    }
    free(chunks->list);
    chunks->list = NULL;
    chunks->count = 0;
    chunks->cap = 0;
    chunks->total = 0;
}

static uint64_t chunks_weigh(const struct chunks *chunks, const void *items, size_t count)
{
    return chunks->weight == NULL ? count : chunks->weight(items, count);
}

struct chunks_place chunks_find(const struct chunks *chunks, uint64_t at)
{
    struct chunks_place place = {0, 0, 0};
    while (place.chunk < chunks->count &&
           at - place.before >= chunks->list[place.chunk].weight) {
        place.before += chunks->list[place.chunk].weight;
        place.chunk++;
    }
    if (place.chunk == chunks->count) {
        return place;
    }
    if (chunks->weight == NULL) {
        place.index = (size_t)(at - place.before);
        place.before = at;
        return place;
    }
    const struct chunk *chunk = &chunks->list[place.chunk];
    uint64_t weight = chunks_weigh(chunks, chunk->items, 1);
    while (at - place.before >= weight) {
        place.before += weight;
        place.index++;
        weight = chunks_weigh(chunks, chunk->items + place.index * chunks->item_bytes, 1);
    }
    return place;
}

const void *chunks_next(const struct chunks *chunks, struct chunks_place *place)
{
    if (place->chunk == chunks->count) {
        return NULL;
    }
    const struct chunk *chunk = &chunks->list[place->chunk];
    const char *item = chunk->items + place->index * chunks->item_bytes;
    place->before += chunks_weigh(chunks, item, 1);
    place->index++;
    if (place->index == chunk->count) {
        place->chunk++;
        place->index = 0;
    }
    return item;
}

void chunks_copy(const struct chunks *chunks, struct chunks_place place, size_t count,
                 void *out)
{
    char *to = out;
    while (count > 0) {
        const struct chunk *chunk = &chunks->list[place.chunk];
        size_t part = size_min(count, chunk->count - place.index);
        memcpy(to, chunk->items + place.index * chunks->item_bytes, part * chunks->item_bytes);
        to += part * chunks->item_bytes;
        count -= part;
        place.chunk++;
        place.index = 0;
    }
}

/* Replaces items within one chunk that has room for it. */
static void chunks_replace_within(struct chunks *chunks, struct chunk *chunk, size_t index,
                                  size_t removed, const void *items, size_t count)
{
    size_t bytes = chunks->item_bytes;
    char *at = chunk->items + index * bytes;
    size_t tail = chunk->count - index - removed;
    uint64_t less = chunks_weigh(chunks, at, removed);
    uint64_t more = chunks_weigh(chunks, items, count);
    memmove(at + count * bytes, at + removed * bytes, tail * bytes);
    if (count > 0) {
        memcpy(at, items, count * bytes);
    }
    chunk->count = chunk->count - removed + count;
    chunk->weight = chunk->weight - less + more;
    chunks->total = chunks->total - less + more;
}

/* Fills a new chunk from the parts, which are used up from the first one on. False: out of
 * memory. */
static bool chunks_fill(const struct chunks *chunks, struct chunks_part parts[3],
                        struct chunk *ret)
{
    size_t bytes = chunks->item_bytes;
    size_t fill = CHUNKS_FILL(chunks->most);
    *ret = (struct chunk){.items = alloc_bytes(chunks->most * bytes)};
    if (ret->items == NULL) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        size_t count = size_min(parts[i].count, fill - ret->count);
        if (count > 0) {
            memcpy(ret->items + ret->count * bytes, parts[i].items, count * bytes);
            parts[i].items += count * bytes;
            parts[i].count -= count;
            ret->count += count;
        }
    }
    ret->weight = chunks_weigh(chunks, ret->items, ret->count);
    return true;
}

/* Puts new chunks in the place of list[from, to). */
static int chunks_exchange(struct chunks *chunks, size_t from, size_t to, struct chunk *made,
                           size_t count)
{
    size_t total = chunks->count - (to - from) + count;
    int rc =
        array_reserve((void **)&chunks->list, &chunks->cap, total, sizeof(*made), CHUNKS_MAX);
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = from; i < to; i++) {
        chunks->total -= chunks->list[i].weight;
        free(chunks->list[i].items);
    }
    if (chunks->list != NULL) {
        memmove(chunks->list + from + count, chunks->list + to,
                (chunks->count - to) * sizeof(*made));
    }
    for (size_t i = 0; i < count; i++) {
        chunks->list[from + i] = made[i];
        chunks->total += made[i].weight;
    }
    chunks->count = total;
    return NG_OK;
}

/* Puts the parts into new chunks in the place of list[from, to). */
static int chunks_rebuild(struct chunks *chunks, size_t from, size_t to,
                          struct chunks_part parts[3])
{
    size_t items = parts[0].count + parts[1].count + parts[2].count;
    size_t fill = CHUNKS_FILL(chunks->most);
    size_t count = (items + fill - 1) / fill;
    struct chunk *made = alloc_zeroed(count + 1, sizeof(*made));
    int rc = made == NULL ? NG_EINTERNAL : NG_OK;
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = chunks_fill(chunks, parts, &made[i]) ? NG_OK : NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        rc = chunks_exchange(chunks, from, to, made, count);
    }
    for (size_t i = 0; rc != NG_OK && made != NULL && i < count; i++) {
        free(made[i].items);
    }
    free(made);
    return rc;
}

int chunks_replace(struct chunks *chunks, struct chunks_place place, size_t removed,
                   const void *items, size_t count)
{
    if (place.chunk == chunks->count && chunks->count > 0) { /* the end of the last chunk */
        place.chunk--;
        place.index = chunks->list[place.chunk].count;
    }
    size_t last = place.chunk;
    size_t end = place.index + removed; /* in the last chunk */
    while (last < chunks->count && end > chunks->list[last].count) {
        end -= chunks->list[last++].count;
    }
    if (chunks->count == 0) {
        struct chunks_part all[3] = {{items, count}, {NULL, 0}, {NULL, 0}};
        return chunks_rebuild(chunks, 0, 0, all);
    }
    struct chunk *chunk = &chunks->list[place.chunk];
    size_t whole = chunk->count - removed + count;
    if (last == place.chunk && whole > 0 && whole <= chunks->most) {
        chunks_replace_within(chunks, chunk, place.index, removed, items, count);
        return NG_OK;
    }
    struct chunks_part parts[3] = {
        {chunk->items, place.index},
        {items, count},
        {chunks->list[last].items + end * chunks->item_bytes, chunks->list[last].count - end},
    };
    return chunks_rebuild(chunks, place.chunk, last + 1, parts);
}
