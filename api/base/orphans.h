/* SPDX-License-Identifier: MIT */
/*
 * orphans.h - reaps programs that came to this process when their parents ended.
 *
 * As a subreaper the gateway becomes their parent, and it stays so until it asks how they
 * ended: else each keeps a place in the table of processes. A child that a plugin has started
 * itself is that plugin's to wait for. The kernel gives orphans to the main thread, so only
 * children of that thread are looked at, but for those that were its own before (of a plugin's
 * start()); and only what has ended long enough for a plugin to have waited for it.
 *
 * Only the main thread uses it.
 */
#ifndef NOTEGATE_API_ORPHANS_H
#define NOTEGATE_API_ORPHANS_H

#include "process.h"

/* One that has ended is reaped at the second look. */
#define ORPHANS_LOOK_MS 5000
/* Children of the main thread; with more, those above it have to wait for their turn. */
#define ORPHANS_MAX 2048

struct orphans_set {
    size_t count;
    struct {
        pid_t pid;
        uint64_t start;
    } items[ORPHANS_MAX];
};

struct orphans {
    bool off;                  /* some of our own could not be noted */
    bool open;                 /* some could not be checked yet: until then nothing is reaped */
    uint64_t begin, end;       /* in ticks since the boot, as struct process has them */
    struct orphans_set before; /* all there were at orphans_begin() */
    struct orphans_set own;    /* never reaped */
    struct orphans_set seen;   /* ended, at the last look */
};

/* Children that start between begin and end are children of the main thread: plugins start
 * there. Older orphans may arrive meanwhile; an orphan that starts and ends in between is taken
 * for one of our own children and stays. */
void orphans_begin(struct orphans *orphans);
void orphans_end(struct orphans *orphans);
/* How many were reaped. Does not block. */
size_t orphans_reap(struct orphans *orphans);

#endif
