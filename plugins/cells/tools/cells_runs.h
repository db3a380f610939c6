/* SPDX-License-Identifier: MIT */
/* cells_runs.h - runs in progress and ended runs, for getNotebookRun and for the status of
 * cells. */
#ifndef NOTEGATE_PLUGIN_CELLS_RUNS_H
#define NOTEGATE_PLUGIN_CELLS_RUNS_H

#include <stdatomic.h>

#include "cells.h"

/* Runs in the table; the oldest ended run is removed first. */
#define CELLS_RUNS_MAX 256
/* Outputs of ended runs; the newest run is kept in any case. */
#define CELLS_RUNS_BYTES_MAX ((size_t)64 * 1024 * 1024)
/* Size of a run's handle with NUL: random digits and, if there are other gateways, its name. */
#define CELLS_RUN_ID_SIZE (WIRE_ID_SIZE + 40)
/* Cells whose last execution is known. */
#define CELLS_LAST_MAX 10000

/* A run and its call. */
struct cells_run {
    struct cells_run *next;
    char id[CELLS_RUN_ID_SIZE];
    char *owner; /* "space/agent" */
    struct cells *self;
    struct ng_call *call;
    struct ng_deferred *deferred;
    struct run *run;
    char *path;            /* of the notebook, as named by the caller */
    size_t notebook_cells; /* state of the file when the run was created */
    uint64_t bytes;
    int64_t modified_ms;
    atomic_int refresh_state; /* see cells_source.c */
    size_t refresh_cell;
    struct kernelspec spec; /* of the kernel to start; moved into the kernel */
    char *fallback;         /* kernel named by the notebook, but not installed */
    char *asked;            /* kernel named by the caller, or NULL */
    size_t skipped;         /* cells that are not code, or tagged skip-execution */
    unsigned losses;        /* cells_lease_take() */
    bool leased;            /* cells_lease_leave() is due */
    struct ng_later *later; /* of a watch for late output (cells_late.c); it has no answer */
    bool is_late;
    unsigned reads;  /* reads of a file that looks half written, when saving */
    bool background; /* in the table */
    bool over;       /* immutable: outputs are saved and `text` is the answer */
    int code;        /* outcome of the answer */
    struct nb_text text;
    unsigned refs;
};

void cells_run_free(struct cells_run *run); /* NULL is a no-op */
/* Adds a background run. It has two references: the table's and the execution's. */
void cells_runs_add(struct cells_runs *runs, struct cells_run *run);
void cells_runs_unref(struct cells_runs *runs, struct cells_run *run);
/* Drops the execution's reference when its call has completed; frees a run outside of the
 * table. */
void cells_runs_over(struct cells_runs *runs, struct cells_run *run, int rc,
                     struct ng_str message);
/* Takes a reference. NULL: no such run of this owner. */
struct cells_run *cells_runs_get(struct cells_runs *runs, struct ng_str id,
                                 struct ng_str owner);
/* Records the last executions of its cells. */
void cells_runs_remember(struct cells_runs *runs, const struct run *run);
void cells_runs_lock(struct cells_runs *runs);
void cells_runs_unlock(struct cells_runs *runs);

#endif
