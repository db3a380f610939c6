/* SPDX-License-Identifier: MIT */
/*
 * chunks.h - a long array that is kept in chunks, so that a replacement in its middle moves one
 * chunk and not all that follows. Each item has a weight, by which places are found. Not for
 * use by two threads at a time.
 */
#ifndef NOTEGATE_CORE_CHUNKS_H
#define NOTEGATE_CORE_CHUNKS_H

#include "notegate/abi.h"

#define CHUNKS_MAX ((size_t)1 << 20)

/* The weight of `count` items. */
typedef uint64_t chunks_weight_fn(const void *items, size_t count);

struct chunk {
    char *items;
    size_t count; /* from 1 to `most` */
    uint64_t weight;
};

struct chunks {
    size_t item_bytes;
    size_t most;              /* items of a chunk */
    chunks_weight_fn *weight; /* NULL: 1 for each item */
    struct chunk *list;
    size_t count, cap;
    uint64_t total; /* weight of all */
};

/* A place between two items; at the end of all, `chunk` is the number of chunks. */
struct chunks_place {
    size_t chunk, index;
    uint64_t before; /* weight of all items before it */
};

void chunks_init(struct chunks *chunks, size_t item_bytes, size_t most,
                 chunks_weight_fn *weight);
void chunks_done(struct chunks *chunks);

/* The item that has the weight `at` in it, or the end. */
struct chunks_place chunks_find(const struct chunks *chunks, uint64_t at);
/* The item at the place, which moves behind it (its `before` too); NULL: the end. */
const void *chunks_next(const struct chunks *chunks, struct chunks_place *place);
/* Copies `count` items from the place on; they are there. */
void chunks_copy(const struct chunks *chunks, struct chunks_place place, size_t count,
                 void *out);
/* Replaces `removed` items from the place on, which are there, by `count` others. NG_OK;
 * NG_EINTERNAL (out of memory) or NG_ETOOLARGE (over CHUNKS_MAX): nothing has changed. */
int chunks_replace(struct chunks *chunks, struct chunks_place place, size_t removed,
                   const void *items, size_t count);

#endif
