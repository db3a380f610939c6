/* SPDX-License-Identifier: MIT */
/*
 * deferrals.h - the calls of one plugin that a deferral keeps from ending. One that is never
 * finished keeps its call's memory for ever: /metrics shows their number and the age of the
 * oldest. Any thread.
 */
#ifndef NOTEGATE_CORE_DEFERRALS_H
#define NOTEGATE_CORE_DEFERRALS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/lock.h"

struct call;
struct plugin;

struct deferrals {
    struct lock lock;
    struct call *first, *last; /* the oldest first */
    size_t count;
};

/* In a call. Under the lock but for `plugin`. */
struct deferral {
    struct plugin *plugin; /* the plugin that lists the call, or did last; NULL: none yet. Set
                              by the call's run while the count is 0. */
    unsigned count;        /* not finished yet */
    int64_t since_ns;      /* CLOCK_MONOTONIC */
    struct call *before, *after;
};

void deferrals_init(struct deferrals *deferrals);
void deferrals_done(struct deferrals *deferrals);
/* A deferral of the call was taken, by its run; finished, by any thread. */
void deferrals_add(struct call *call);
void deferrals_remove(struct call *call);
/* *ret_since_ns: of the oldest; 0 where there is none. */
size_t deferrals_look(struct deferrals *deferrals, int64_t *ret_since_ns);

#endif
