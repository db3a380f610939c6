/* SPDX-License-Identifier: MIT */
/* kernel_queue.c - accepts runs: chooses their kernel and enforces the limits. */
#include "kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kernel *kernel_new(struct kernels *kernels, const struct run *run,
                                 struct kernelspec *spec)
{
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return NULL;
    }
    kernel->notebook = strdup(run->notebook);
    kernel->folder = strdup(run->folder);
    kernel->origin = ORIGIN_STARTED;
    if (kernel->notebook == NULL || kernel->folder == NULL) {
        kernel_free(kernel);
        return NULL;
    }
    kernel->kernels = kernels;
    if (kernels->options.watch != NULL) {
        kernels->options.watch(kernels->options.watch_user, kernel->notebook, true);
    }
    kernel->spec = *spec;
    memset(spec, 0, sizeof(*spec));
    if (kernels_forget_lost(kernels, run->notebook)) {
        kernel->origin = ORIGIN_AFTER_LOSS;
    }
    kernel->next = kernels->first;
    kernels->first = kernel;
    return kernel;
}

/* At the limit ends the kernel that was idle longest. False: all are busy. */
static bool make_room(struct kernels *kernels)
{
    struct kernel *oldest = NULL;
    size_t count = 0;
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (!kernel_takes_runs(kernel)) {
            continue;
        }
        count++;
        if (!kernel_is_busy(kernel) && (oldest == NULL || kernel->used_ms < oldest->used_ms)) {
            oldest = kernel;
        }
    }
    if (count < kernels->options.max_kernels) {
        return true;
    }
    if (oldest == NULL) {
        return false;
    }
    kernels_remember_lost(kernels, oldest->notebook);
    kernel_set_state(oldest, KERNEL_ENDING);
    oldest->end_request = END_IDLE; /* sockets are used by the kernel thread only */
    return true;
}

static void refuse(struct kernels *kernels, struct run *run, enum run_fault fault,
                   const char *why)
{
    run->state = RUN_DONE;
    run->fault = fault;
    for (size_t i = 0; i < run->cell_count; i++) {
        run->cells[i].state = CELL_NOT_RUN;
    }
    (void)snprintf(run->why, sizeof(run->why), "%s", why);
    kernels_ended(kernels, run);
}

/* Appends to the queue; urgent runs go to its front. */
static void queue(struct kernel *kernel, struct run *run, bool urgent)
{
    struct run **at = &kernel->first;
    while (*at != NULL && !(urgent && (*at)->state != RUN_RUNNING)) {
        at = &(*at)->next;
    }
    run->next = *at;
    run->state = RUN_STARTING;
    if (kernel->state == KERNEL_READY) {
        run->state = RUN_QUEUED;
    }
    run->queued_ms = kernel_now_ms();
    run->reported_ms = run->queued_ms;
    kernel->queued++;
    *at = run;
}

static struct run *find_run(struct kernels *kernels, uint64_t number)
{
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        for (struct run *run = kernel->first; run != NULL; run = run->next) {
            if (run->number == number) {
                return run;
            }
        }
    }
    return NULL;
}

void kernels_set_source(struct kernels *kernels, uint64_t number, size_t cell,
                        struct nb_text *source, bool gone)
{
    kernels_lock(kernels);
    struct run *run = find_run(kernels, number);
    struct run_cell *waiting = NULL;
    if (run != NULL && run->at == cell) {
        waiting = &run->cells[cell];
    }
    if (waiting != NULL && waiting->source_state == SOURCE_REQUESTED &&
        waiting->state == CELL_PENDING) {
        waiting->source_state = SOURCE_CURRENT;
        if (gone) {
            waiting->source_state = SOURCE_GONE;
        } else if (source != NULL && !source->failed) {
            struct nb_text before = waiting->source;
            waiting->source = *source;
            *source = before;
            waiting->source_state = SOURCE_CHANGED;
        }
    }
    kernels_unlock(kernels);
    if (source != NULL) {
        nb_text_done(source);
    }
    kernels_wake(kernels);
}

void kernels_run(struct kernels *kernels, struct run *run, struct kernelspec *spec)
{
    kernels_lock(kernels);
    run->number = ++kernels->runs;
    struct kernel *kernel = kernels_find(kernels, ng_str_of(run->notebook));
    if (kernels->stopping) {
        refuse(kernels, run, RUN_STOPPED, "The gateway is ending.");
    } else if (!kernels_begin(kernels)) {
        refuse(kernels, run, RUN_NO_KERNEL,
               "A kernel could not be started: no thread could be made.");
    } else if (kernel != NULL && kernel->queued >= KERNEL_QUEUE_MAX) {
        refuse(kernels, run, RUN_BUSY, "Too many runs wait for the kernel of this notebook.");
    } else if (kernel == NULL && !make_room(kernels)) {
        refuse(kernels, run, RUN_BUSY,
               "All kernels are at work, and no more may be started (cells.max_kernels).");
    } else {
        if (kernel == NULL) {
            kernel = kernel_new(kernels, run, spec);
        }
        if (kernel == NULL) {
            refuse(kernels, run, RUN_NO_KERNEL, "Out of memory while starting a kernel.");
        } else {
            queue(kernel, run, false);
        }
    }
    kernels_unlock(kernels);
    kernels_notify_ended(kernels);
    kernels_wake(kernels);
}

void kernels_control(struct kernels *kernels, struct run *run, enum kernels_command command)
{
    kernels_lock(kernels);
    struct kernel *kernel = kernels_find(kernels, ng_str_of(run->notebook));
    run->timeout_ms = INT32_MAX;
    if (command == KERNELS_INTERRUPT) {
        run->timeout_ms = KERNEL_INTERRUPT_MS + KERNEL_GRACE_MAX_MS;
    }
    if (kernels->stopping) {
        refuse(kernels, run, RUN_STOPPED, "The gateway is ending.");
    } else if (kernel == NULL) {
        refuse(kernels, run, RUN_NO_KERNEL,
               "No active kernel session found for this notebook. The kernel may not be "
               "started.");
    } else if (command == KERNELS_INTERRUPT && !kernel->execution.active &&
               !kernel_is_between_cells(kernel)) {
        run->state = RUN_DONE;
        (void)snprintf(run->why, sizeof(run->why), "Nothing runs in the kernel.");
        kernels_ended(kernels, run);
    } else {
        kernel->interrupt_requested =
            kernel->interrupt_requested || command == KERNELS_INTERRUPT;
        kernel->restart_requested = kernel->restart_requested || command == KERNELS_RESTART;
        queue(kernel, run, true);
    }
    kernels_unlock(kernels);
    kernels_notify_ended(kernels);
    kernels_wake(kernels);
}

void kernels_watch_late(struct kernels *kernels, struct run *run)
{
    kernels_lock(kernels);
    struct kernel *kernel = kernels_find(kernels, ng_str_of(run->notebook));
    if (kernel != NULL) {
        struct run *before = kernel->late.watch;
        kernel->late.watch = run;
        run = before;
    }
    if (run != NULL) {
        kernels_ended(kernels, run);
    }
    kernels_unlock(kernels);
    kernels_notify_ended(kernels);
    kernels_wake(kernels);
}

bool kernels_is_late(struct kernels *kernels, const struct run *run)
{
    kernels_lock(kernels);
    const struct kernel *kernel = kernels_find(kernels, ng_str_of(run->notebook));
    bool other = kernel != NULL && kernel->late.id[0] != '\0' &&
                 strcmp(kernel->late.id, run->late_id) != 0;
    kernels_unlock(kernels);
    return !other;
}

void kernels_lose(struct kernels *kernels, const char *notebook)
{
    kernels_lock(kernels);
    struct kernel *kernel = kernels_find(kernels, ng_str_of(notebook));
    if (kernel != NULL) {
        kernel->end_request = END_LOST;
    }
    kernels_remember_lost(kernels, notebook);
    kernels_unlock(kernels);
    kernels_wake(kernels);
}
