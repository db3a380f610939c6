/* SPDX-License-Identifier: MIT */
/*
 * trail.h - the changes of all documents, newest first, and the revision that a document had at
 * a point.
 */
#ifndef NOTEGATE_CORE_TRAIL_H
#define NOTEGATE_CORE_TRAIL_H

#include "notegate/documents.h"
#include "point.h"

/* Changes that one walk looks at: by their numbers, or, where the backend has trail(), those
 * that it reads. */
#define TRAIL_LOOKS_MAX 50000
/* Shared documents, whose changes get their numbers after they are answered: the longest wait
 * for these. */
#define TRAIL_SETTLE_MS 2000

/*
 * Passes the changes that the call may see and `wanted` selects, newest first; each is lent for
 * its callback, which may read the store. *ret_next: `until` of a walk that goes on; 0: there
 * are no more. May block. NG_OK, or the store's error, which the call has.
 */
int trail_walk(struct call *call, const struct ng_trail *wanted, ng_event_fn *event, void *user,
               uint64_t *ret_next);

/* See runs in struct ng_host. */
int trail_runs(struct call *call, const struct ng_trail *wanted, ng_run_fn *run, void *user);

/* ---- for the files of this folder ---- */

/* Is the text one of the names? */
bool trail_names_have(const struct ng_names *names, struct ng_str text);
/* Does the filter select the change, whatever its number? */
bool trail_wants(const struct ng_trail *wanted, const struct ng_event *event);
/* trail_walk() by trail() of the backend; `until` is a number that there is. */
int trail_ask(struct call *call, const struct ng_trail *wanted, ng_event_fn *event, void *user,
              uint64_t *ret_next);
/* NG_EFORBIDDEN: the call may not use one of the spaces. */
int trail_check_spaces(struct call *call, const struct ng_trail *wanted);
/* Without keys a caller may use the spaces that it names. */
bool trail_sees(struct call *call, const struct ng_trail *wanted, const struct ng_key *key);
/* Waits until all changes so far have their numbers, but not longer than TRAIL_SETTLE_MS; then
 * the newest are not seen. */
int trail_settle(struct call *call);

/* See revision_at in struct ng_host. `name` is that of the argument. */
int as_of_find(struct call *call, const struct ng_key *key, const char *name,
               const struct point *point, struct ng_as_of *ret);

#endif
