/* SPDX-License-Identifier: MIT */
/* query_check.h - refuses queries with conditions or an order that their collection does not
 * have. */
#ifndef NOTEGATE_BACKENDS_QUERY_CHECK_H
#define NOTEGATE_BACKENDS_QUERY_CHECK_H

#include <notegate/backend.h>

/* Is `name` a field or a built-in of the collection that can be compared (`ordered`: that has
 * an order)? *ret_number: its values are numbers. */
typedef bool query_find_fn(const void *collection, struct ng_str name, bool ordered,
                           bool *ret_number);

/* NG_OK, or the call has failed with NG_EINVAL. `name`: of the collection. */
int query_check(struct ng_call *call, const struct ng_query *query, const char *name,
                query_find_fn *find, const void *collection);
/* Does the comparison need values with an order? Tags have none. */
bool query_is_ordered(enum ng_op op);

#endif
