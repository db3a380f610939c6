/* SPDX-License-Identifier: MIT */
/* trail.h - a walk over changes, newest first; for the files of the walk. */
#ifndef NOTEGATE_SQLITE_TRAIL_H
#define NOTEGATE_SQLITE_TRAIL_H

#include "trail_select.h"

struct trail_walk {
    struct trail_select select;
    uint64_t looks;     /* most work of the walk */
    uint64_t looks_end; /* most work up to the end of its present part */
    ng_event_fn *event;
    void *user;
    struct sql event_sql; /* has values of the statement */
    sqlite3_stmt *event_stmt;
    int event_index; /* its parameter: the number */
    uint64_t next;   /* begin of the next walk; 0: there are no more changes */
    bool stop;
};

/* Passes this change, if the row of `log` has what the filter wants. SQLITE_OK or the error. */
int trail_pass(struct trail_walk *walk, uint64_t seq);
/* Has the walk looked at enough? Then the next one begins with this change. */
bool trail_is_tired(struct trail_walk *walk, uint64_t seq);
/* trail_docs.c: along the revisions of the few documents. SQLITE_OK or the error. */
int trail_walk_docs(struct trail_walk *walk);

#endif
