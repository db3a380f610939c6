/* SPDX-License-Identifier: MIT */
/*
 * merge_order.h - three-way merge of ordered lists of unique ids: the cells of a notebook.
 *
 * Presence: an id is in the result if both sides have it, or one side has it and base does not.
 * So an id that one side removed is gone, even if the other side moved it.
 *
 * Order: the lists are merged as lines are (merge3.h), an id is a line. A moved id is removed
 * at one place and inserted at another. If that is a conflict, they are merged once more
 * without the ids that are gone: then it does not matter what stood beside these. It remains a
 * conflict where both sides inserted different ids at one place or moved ids of one
 * neighbourhood in different ways.
 */
#ifndef NOTEGATE_CORE_MERGE_ORDER_H
#define NOTEGATE_CORE_MERGE_ORDER_H

#include "notegate/abi.h"

/* Ids of a list. */
#define MERGE_ORDER_MAX ((size_t)100 * 1000)

struct merge_list {
    const struct ng_str *ids;
    size_t count;
};

struct merge_order {
    struct ng_str *ids; /* the bytes of the ids are the caller's */
    size_t count;
    bool conflict; /* then there are no ids */
};

/* Present and before as in merge3.h. NG_OK; NG_EINVAL: an id is twice in a list; NG_ETOOLARGE:
 * a list is longer than MERGE_ORDER_MAX; NG_EINTERNAL: out of memory. merge_order_done() in any
 * case. */
int merge_order(const struct merge_list *base, const struct merge_list *present,
                const struct merge_list *before, struct merge_order *ret);
void merge_order_done(struct merge_order *order);

#endif
