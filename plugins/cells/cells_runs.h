/* SPDX-License-Identifier: MIT */
/* cells_runs.h - runs that are under way or were: for getNotebookRun, and for how cells last
 * ended. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUNS_H
#define NOTEGATE_PLUGIN_CELLS_RUNS_H

#include "cells.h"

/* Runs that are remembered, the oldest that is over goes first. */
#define CELLS_RUNS_MAX 256
/* Cells whose last end is remembered. */
#define CELLS_LAST_MAX 10000

/* One run and the call that it belongs to. */
struct cells_run {
    struct cells_run *next;
    char id[WIRE_ID_SIZE];
    char *owner; /* "space/agent" */
    struct cells *self;
    struct ng_call *call; /* NULL once it is over */
    struct ng_deferred *deferred;
    struct run *run;
    char *path;             /* of the notebook, as the caller named it */
    struct kernelspec spec; /* what a kernel is started from; empty after that */
    char *fallback;         /* the kernel that the notebook names and that is not installed */
    bool background;
    bool over; /* all is saved, `text` is the answer */
    int code;  /* of the answer: NG_OK, or how it failed */
    struct nb_text text;
    unsigned refs;
};

/* Takes the run over (it has one reference, the caller's). */
void cells_runs_add(struct cells_runs *runs, struct cells_run *run);
void cells_runs_unref(struct cells_runs *runs, struct cells_run *run);
/* One more reference; NULL: there is none that this owner may see. */
struct cells_run *cells_runs_get(struct cells_runs *runs, struct ng_str id,
                                 struct ng_str owner);
/* How its cells ended is remembered. */
void cells_runs_remember(struct cells_runs *runs, const struct run *run);
void cells_runs_lock(struct cells_runs *runs);
void cells_runs_unlock(struct cells_runs *runs);

#endif
