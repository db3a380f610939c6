/* SPDX-License-Identifier: MIT */
/* cells_runs.c - the table of background runs, and the last execution of each cell. */
#include "cells_lease.h"
#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/base/str.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"

struct last_run {
    uint64_t hash; /* of notebook and handle */
    struct cells_last last;
};

struct cells_runs {
    struct lock lock;
    struct cells_run *first; /* newest first */
    size_t count;
    struct last_run *lasts; /* ring buffer */
    size_t last_count, last_cap, last_at;
};

int cells_runs_open(struct ng_call *call, struct cells_runs **ret)
{
    struct cells_runs *runs = calloc(1, sizeof(*runs));
    if (runs == NULL) {
        return cells_no_memory(call);
    }
    lock_init(&runs->lock, LOCK_CELLS_RUNS);
    *ret = runs;
    return NG_OK;
}

void cells_run_free(struct cells_run *run)
{
    if (run == NULL) {
        return;
    }
    run_free(run->run);
    kernelspec_done(&run->spec);
    nb_text_done(&run->text);
    free(run->owner);
    free(run->path);
    free(run->fallback);
    free(run->asked);
    free(run);
}

void cells_runs_close(struct cells_runs *runs)
{
    if (runs == NULL) {
        return;
    }
    while (runs->first != NULL) {
        struct cells_run *run = runs->first;
        runs->first = run->next;
        cells_run_free(run);
    }
    free(runs->lasts);
    lock_done(&runs->lock);
    free(runs);
}

void cells_runs_lock(struct cells_runs *runs)
{
    lock_take(&runs->lock);
}

void cells_runs_unlock(struct cells_runs *runs)
{
    lock_release(&runs->lock);
}

static size_t bytes_of(const struct cells_run *run)
{
    size_t bytes = run->text.len;
    for (size_t i = 0; i < run->run->cell_count; i++) {
        const struct run_cell *cell = &run->run->cells[i];
        bytes += cell->outputs.bytes + cell->outputs.kept_bytes + cell->source.len;
    }
    return bytes;
}

/* Frees the oldest ended run without readers, except the newest run. False: there is none. With
 * the lock held. */
static bool forget_oldest(struct cells_runs *runs)
{
    struct cells_run **found = NULL;
    for (struct cells_run **at = &runs->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->over && (*at)->refs == 1 && at != &runs->first) {
            found = at;
        }
    }
    if (found == NULL) {
        return false;
    }
    struct cells_run *run = *found;
    *found = run->next;
    runs->count--;
    cells_run_free(run);
    return true;
}

static size_t bytes_over(const struct cells_runs *runs)
{
    size_t bytes = 0;
    for (const struct cells_run *run = runs->first; run != NULL; run = run->next) {
        if (run->over) {
            bytes += bytes_of(run);
        }
    }
    return bytes;
}

void cells_runs_add(struct cells_runs *runs, struct cells_run *run)
{
    cells_runs_lock(runs);
    run->background = true;
    run->refs = 2;
    run->next = runs->first;
    runs->first = run;
    runs->count++;
    while (runs->count > CELLS_RUNS_MAX && forget_oldest(runs)) {
    }
    cells_runs_unlock(runs);
}

void cells_runs_over(struct cells_runs *runs, struct cells_run *run, int rc,
                     struct ng_str message)
{
    if (run->leased) {
        run->leased = false;
        cells_lease_leave(run->self, run->run->notebook);
    }
    if (!run->background) {
        cells_run_free(run);
        return;
    }
    cells_runs_lock(runs);
    if (rc != NG_OK && rc != run->code) { /* saving failed, or the run did not begin */
        run->code = rc;
        run->text.len = 0;
        nb_add_str(&run->text, message);
    }
    run->over = true;
    run->refs--;
    while (bytes_over(runs) > CELLS_RUNS_BYTES_MAX && forget_oldest(runs)) {
    }
    cells_runs_unlock(runs);
}

void cells_runs_unref(struct cells_runs *runs, struct cells_run *run)
{
    cells_runs_lock(runs);
    run->refs--;
    cells_runs_unlock(runs);
}

struct cells_run *cells_runs_get(struct cells_runs *runs, struct ng_str id, struct ng_str owner)
{
    struct cells_run *found = NULL;
    cells_runs_lock(runs);
    for (struct cells_run *run = runs->first; run != NULL; run = run->next) {
        if (str_is(id, run->id) && str_is(owner, run->owner)) {
            found = run;
            run->refs++;
            break;
        }
    }
    cells_runs_unlock(runs);
    return found;
}

/* ---- last executions ---- */

static uint64_t hash_of(struct ng_str notebook, const char *handle)
{
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, notebook);
    return hash_fnv(hash_fnv_byte(hash, '\0'), ng_str_of(handle));
}

static struct last_run *last_of(struct cells_runs *runs, uint64_t hash)
{
    for (size_t i = 0; i < runs->last_count; i++) {
        if (runs->lasts[i].hash == hash) {
            return &runs->lasts[i];
        }
    }
    return NULL;
}

static struct last_run *last_place(struct cells_runs *runs, uint64_t hash)
{
    struct last_run *last = last_of(runs, hash);
    if (last != NULL) {
        return last;
    }
    if (runs->last_count < CELLS_LAST_MAX) {
        if (array_reserve((void **)&runs->lasts, &runs->last_cap, runs->last_count + 1,
                          sizeof(*runs->lasts), CELLS_LAST_MAX) != NG_OK) {
            return NULL;
        }
        return &runs->lasts[runs->last_count++];
    }
    runs->last_at = (runs->last_at + 1) % CELLS_LAST_MAX;
    return &runs->lasts[runs->last_at];
}

void cells_runs_remember(struct cells_runs *runs, const struct run *run)
{
    cells_runs_lock(runs);
    for (size_t i = 0; i < run->cell_count; i++) {
        const struct run_cell *cell = &run->cells[i];
        if (cell->started_ms == 0 || cell->state == CELL_NOT_RUN) {
            continue;
        }
        uint64_t hash = hash_of(ng_str_of(run->notebook), cell->handle);
        struct last_run *last = last_place(runs, hash);
        if (last != NULL) {
            last->hash = hash;
            last->last = (struct cells_last){true, cell->state == CELL_OK,
                                             cell->ended_ms - cell->started_ms, cell->ended_ms};
        }
    }
    cells_runs_unlock(runs);
}

struct cells_last cells_last_run(struct cells *self, struct ng_str notebook, const char *handle)
{
    struct cells_last found = {.known = false};
    cells_runs_lock(self->runs);
    const struct last_run *last = last_of(self->runs, hash_of(notebook, handle));
    if (last != NULL) {
        found = last->last;
    }
    cells_runs_unlock(self->runs);
    return found;
}
