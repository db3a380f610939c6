/* SPDX-License-Identifier: MIT */
/* array.c - room for one more item in an array on the heap. */
#include "array.h"

#include "arena.h"
#include "minmax.h"

#define ARRAY_FIRST 8

int array_reserve(void **inout_items, size_t *inout_cap, size_t count, size_t item_bytes,
                  size_t max)
{
    if (count <= *inout_cap) {
        return NG_OK;
    }
    if (count > max || max > SIZE_MAX / 2 / item_bytes) {
        return NG_ETOOLARGE;
    }
    size_t cap = size_max(size_max(*inout_cap + *inout_cap / 2, count), ARRAY_FIRST);
    cap = size_min(cap, max);
    void *items = alloc_resize(*inout_items, cap * item_bytes);
    if (items == NULL) {
        return NG_EINTERNAL;
    }
    *inout_items = items;
    *inout_cap = cap;
    return NG_OK;
}
