/* SPDX-License-Identifier: MIT */
/* kernel_ask.c - what tools ask of the kernels beside runs. */
#include "kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run_free(struct run *run)
{
    if (run == NULL) {
        return;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        nb_text_done(&run->cells[i].source);
        nb_text_done(&run->cells[i].page);
        outputs_done(&run->cells[i].outputs);
    }
    for (size_t i = 0; i < run->patch_count; i++) {
        nb_text_done(&run->patches[i].data);
        nb_text_done(&run->patches[i].metadata);
    }
    free(run->patches);
    free(run->cells);
    free(run->notebook);
    free(run->folder);
    free(run);
}

const struct run_cell *kernels_cell(struct kernels *kernels, const char *notebook,
                                    const char *handle)
{
    const struct kernel *kernel = kernels_find(kernels, notebook);
    const struct run *run = kernel == NULL ? NULL : kernel->first;
    for (; run != NULL; run = run->next) {
        for (size_t i = 0; i < run->cell_count; i++) {
            const struct run_cell *cell = &run->cells[i];
            if ((cell->state == CELL_PENDING || cell->state == CELL_RUNNING) &&
                strcmp(cell->handle, handle) == 0) {
                return cell;
            }
        }
    }
    return NULL;
}

static const char *state_word(const struct kernel *kernel)
{
    switch (kernel->state) {
    case KERNEL_NEW:
    case KERNEL_STARTING:
        return "starting";
    case KERNEL_RESTARTING:
        return "restarting";
    case KERNEL_READY:
        return kernel->execution.active ? "busy" : "idle";
    default:
        return "ending";
    }
}

static void tell(const struct kernel *kernel, struct kernel_info *ret)
{
    memset(ret, 0, sizeof(*ret));
    (void)snprintf(ret->notebook, sizeof(ret->notebook), "%s", kernel->notebook);
    memcpy(ret->name, kernel->spec.name, sizeof(ret->name));
    (void)snprintf(ret->display_name, sizeof(ret->display_name), "%s",
                   kernel->spec.display_name);
    (void)snprintf(ret->language, sizeof(ret->language), "%s", kernel->spec.language);
    ret->state = state_word(kernel);
    ret->pid = kernel->pid;
    ret->queued = kernel->queued;
    ret->idle_ms = kernel->used_ms == 0 || kernel->execution.active
                       ? 0
                       : kernel_now_ms() - kernel->used_ms;
}

bool kernels_info(struct kernels *kernels, const char *notebook, struct kernel_info *ret)
{
    kernels_lock(kernels);
    const struct kernel *kernel = kernels_find(kernels, notebook);
    if (kernel != NULL) {
        tell(kernel, ret);
    }
    kernels_unlock(kernels);
    return kernel != NULL;
}

size_t kernels_list(struct kernels *kernels, struct kernel_info *ret, size_t max)
{
    size_t count = 0;
    kernels_lock(kernels);
    for (const struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->state == KERNEL_GONE) {
            continue;
        }
        if (count < max) {
            tell(kernel, &ret[count]);
        }
        count++;
    }
    kernels_unlock(kernels);
    return count;
}

/* Which wish of the kernel is set. */
enum wish { WISH_INTERRUPT, WISH_RESTART, WISH_END };

static bool wish(struct kernels *kernels, const char *notebook, enum wish wish)
{
    kernels_lock(kernels);
    struct kernel *kernel = kernels_find(kernels, notebook);
    if (kernel != NULL) {
        kernel->asked_interrupt = kernel->asked_interrupt || wish == WISH_INTERRUPT;
        kernel->asked_restart = kernel->asked_restart || wish == WISH_RESTART;
        kernel->unused = kernel->unused || wish == WISH_END;
    }
    kernels_unlock(kernels);
    if (kernel != NULL) {
        kernels_wake(kernels);
    }
    return kernel != NULL;
}

bool kernels_interrupt(struct kernels *kernels, const char *notebook)
{
    return wish(kernels, notebook, WISH_INTERRUPT);
}

bool kernels_restart(struct kernels *kernels, const char *notebook)
{
    return wish(kernels, notebook, WISH_RESTART);
}

bool kernels_end(struct kernels *kernels, const char *notebook)
{
    return wish(kernels, notebook, WISH_END);
}
