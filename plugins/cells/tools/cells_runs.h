/* SPDX-License-Identifier: MIT */
/* cells_runs.h - runs that are under way or were: for getNotebookRun, and for how cells last
 * ended. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUNS_H
#define NOTEGATE_PLUGIN_CELLS_RUNS_H

#include <stdatomic.h>

#include "cells.h"

/* Runs that are remembered, the oldest that is over goes first. */
#define CELLS_RUNS_MAX 256
/* Outputs of runs that are over; the newest stays in any case. */
#define CELLS_RUNS_BYTES_MAX ((size_t)64 * 1024 * 1024)
/* Cells whose last end is remembered. */
#define CELLS_LAST_MAX 10000

/* One run and the call that it belongs to. */
struct cells_run {
    struct cells_run *next;
    char id[WIRE_ID_SIZE];
    char *owner; /* "space/agent" */
    struct cells *self;
    struct ng_call *call;
    struct ng_deferred *deferred;
    struct run *run;
    char *path;            /* of the notebook, as the caller named it */
    size_t notebook_cells; /* its cells when the run was asked for, and of its file */
    uint64_t bytes;
    int64_t modified_ms;
    atomic_int refresh_state; /* cells_turn.c */
    size_t refresh_cell;
    struct kernelspec spec; /* what a kernel is started from; empty after that */
    char *fallback;         /* the kernel that the notebook names and that is not installed */
    char *asked;            /* the kernel that the caller names, or NULL */
    size_t skipped;         /* cells that are no code, or are tagged skip-execution */
    unsigned reads;         /* of a file that looks half written when it is to be saved */
    bool background;        /* it is in the table */
    bool over; /* nothing of it changes any more: all is on disk, `text` is the answer */
    int code;  /* of the answer: NG_OK, or how it failed */
    struct nb_text text;
    unsigned refs;
};

void cells_run_free(struct cells_run *run); /* NULL is a no-op */
/* Adds a run that goes on without its call; it then has two references, the table's and that
 * of what runs. */
void cells_runs_add(struct cells_runs *runs, struct cells_run *run);
void cells_runs_unref(struct cells_runs *runs, struct cells_run *run);
/* Its call has ended: one reference less, and without a place in the table it is freed. */
void cells_runs_over(struct cells_runs *runs, struct cells_run *run, int rc,
                     struct ng_str message);
/* One more reference; NULL: there is none that this owner may see. */
struct cells_run *cells_runs_get(struct cells_runs *runs, struct ng_str id,
                                 struct ng_str owner);
/* How its cells ended is remembered. */
void cells_runs_remember(struct cells_runs *runs, const struct run *run);
void cells_runs_lock(struct cells_runs *runs);
void cells_runs_unlock(struct cells_runs *runs);

#endif
