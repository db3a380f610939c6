/* SPDX-License-Identifier: MIT */
/* kernel_query.c - information about kernels and their runs. */
#include "kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run_cell_done(struct run_cell *cell)
{
    nb_text_done(&cell->source);
    nb_text_done(&cell->page);
    outputs_done(&cell->outputs);
}

void run_patches_done(struct run_patches *patches)
{
    for (size_t i = 0; i < patches->count; i++) {
        nb_text_done(&patches->items[i].data);
        nb_text_done(&patches->items[i].metadata);
    }
    free(patches->items);
    memset(patches, 0, sizeof(*patches));
}

void run_free(struct run *run)
{
    if (run == NULL) {
        return;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        run_cell_done(&run->cells[i]);
    }
    if (run->late != NULL) {
        run_cell_done(run->late);
        free(run->late);
    }
    run_patches_done(&run->patches);
    free(run->cells);
    free(run->notebook);
    free(run->folder);
    free(run);
}

const struct run_cell *kernels_cell(struct kernels *kernels, struct ng_str notebook,
                                    const char *handle, bool only_waiting)
{
    const struct kernel *kernel = kernels_find(kernels, notebook);
    if (kernel == NULL) {
        return NULL;
    }
    for (const struct run *run = kernel->first; run != NULL; run = run->next) {
        for (size_t i = 0; i < run->cell_count; i++) {
            const struct run_cell *cell = &run->cells[i];
            bool waits = cell->state == CELL_PENDING || cell->state == CELL_RUNNING;
            if ((waits || !only_waiting) && strcmp(cell->handle, handle) == 0) {
                return cell;
            }
        }
    }
    return NULL;
}

static const char *state_name(const struct kernel *kernel)
{
    switch (kernel->state) {
    case KERNEL_NEW:
    case KERNEL_STARTING:
        return "starting";
    case KERNEL_RESTARTING:
        return "restarting";
    case KERNEL_READY:
        if (kernel->execution.active || kernel_is_between_cells(kernel)) {
            return "busy";
        }
        return "idle";
    case KERNEL_ENDING:
    case KERNEL_DYING:
    case KERNEL_GONE:
        break;
    }
    return "ending";
}

static void fill_info(const struct kernel *kernel, struct kernel_info *ret)
{
    memset(ret, 0, sizeof(*ret));
    (void)snprintf(ret->notebook, sizeof(ret->notebook), "%s", kernel->notebook);
    memcpy(ret->name, kernel->spec.name, sizeof(ret->name));
    (void)snprintf(ret->language, sizeof(ret->language), "%s", kernel->spec.language);
    ret->state = state_name(kernel);
    ret->queued = kernel->queued;
}

bool kernels_info(struct kernels *kernels, struct ng_str notebook, struct kernel_info *ret)
{
    kernels_lock(kernels);
    const struct kernel *kernel = kernels_find(kernels, notebook);
    if (kernel != NULL) {
        fill_info(kernel, ret);
    }
    kernels_unlock(kernels);
    return kernel != NULL;
}

size_t kernels_list(struct kernels *kernels, struct kernel_info *ret, size_t max)
{
    size_t count = 0;
    kernels_lock(kernels);
    for (const struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (!kernel_takes_runs(kernel)) {
            continue;
        }
        if (count < max) {
            fill_info(kernel, &ret[count]);
        }
        count++;
    }
    kernels_unlock(kernels);
    return count;
}
