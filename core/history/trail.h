/* SPDX-License-Identifier: MIT */
/*
 * trail.h - the changes of all documents, newest first, and the revision that a document had at
 * a point.
 */
#ifndef NOTEGATE_CORE_TRAIL_H
#define NOTEGATE_CORE_TRAIL_H

#include "notegate/documents.h"
#include "point.h"

/* Changes that one walk looks at, by their numbers. */
#define TRAIL_LOOKS_MAX 50000

/*
 * Passes the changes that the call may see and `trail` selects, newest first, as one that is
 * borrowed. *ret_next: `until` of a walk that goes on; 0: there are no more. May block. NG_OK,
 * or the store's error, which the call has.
 */
int trail_walk(struct call *call, const struct ng_trail *trail, ng_event_fn *event, void *user,
               uint64_t *ret_next);

/* See revision_at in struct ng_host. `name` is that of the argument. */
int as_of_find(struct call *call, const struct ng_key *key, const char *name,
               const struct point *point, struct ng_as_of *ret);

#endif
