/* SPDX-License-Identifier: MIT */
/* query_check.h - refuses queries with conditions or an order that their collection does not
 * have. */
#ifndef NOTEGATE_BACKENDS_QUERY_CHECK_H
#define NOTEGATE_BACKENDS_QUERY_CHECK_H

#include <notegate/backend.h>

struct db_field; /* the backend's own */

/* The values that a condition or an order is about. */
struct subject {
    const struct db_field *field; /* NULL: a built-in one */
    const char *column;           /* of built-in ones; of fields if the backend says so */
    bool number;
    bool is_time; /* milliseconds */
};

/* Is `name` a field or a built-in of the collection that can be compared (`ordered`: that has
 * an order)? */
typedef bool query_find_fn(const void *collection, struct ng_str name, bool ordered,
                           struct subject *ret);

/* The built-in one of this name; columns: of id, author, created, updated, created_seq, seq,
 * revision. */
bool subject_built_in(struct ng_str name, const char *const columns[7], struct subject *ret);
/* NG_OK, or the call has failed with NG_EINVAL. `name`: of the collection. */
int query_check(struct ng_call *call, const struct ng_query *query, const char *name,
                query_find_fn *find, const void *collection);
/* Does the comparison need values with an order? Tags have none. */
bool query_is_ordered(enum ng_op op);

#endif
