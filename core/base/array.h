/* SPDX-License-Identifier: MIT */
/* array.h - room for one more item in an array on the heap. */
#ifndef NOTEGATE_CORE_ARRAY_H
#define NOTEGATE_CORE_ARRAY_H

#include "notegate/abi.h"

/*
 * Makes room for `count` items in *inout_items (of *inout_cap now, NULL and 0 at first), which
 * grows by half. *inout_items is a pointer to the items, passed as (void **)&items.
 * NG_OK; NG_ETOOLARGE (over `max` items) or NG_EINTERNAL (out of memory): nothing has changed.
 */
int array_reserve(void **inout_items, size_t *inout_cap, size_t count, size_t item_bytes,
                  size_t max);

#endif
