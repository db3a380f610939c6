/* SPDX-License-Identifier: MIT */
/* cells_kernels.c - listKernels, interruptKernel, restartKernel. */
#include "cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 64

static void add_specs(struct nb_text *out, const struct kernelspecs *specs)
{
    char line[1024];
    nb_add_word(out, specs->count > 0 ? "Installed kernels:" : "No kernel is installed.");
    for (size_t i = 0; i < specs->count; i++) {
        (void)snprintf(line, sizeof(line), "\n- %s: %.300s (%.100s)", specs->items[i].name,
                       specs->items[i].display_name,
                       specs->items[i].language[0] != '\0' ? specs->items[i].language
                                                           : "language unknown");
        nb_add_word(out, line);
    }
}

/* May the caller see this notebook's file? Then it may know of its kernel. */
static bool may_see(struct ng_call *call, const char *notebook)
{
    struct ng_file file = {.size = sizeof(file)};
    return call->host->file_stat(call, ng_str_of(notebook), &file) == NG_OK;
}

int cells_kernels_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct kernelspecs specs;
    struct nb_text out = {0};
    char line[4096 + 512];
    (void)args;
    struct kernel_info *list = calloc(LIST_MAX, sizeof(*list));
    if (list == NULL || !kernelspecs_load(&specs)) {
        free(list);
        return cells_no_memory(call);
    }
    add_specs(&out, &specs);
    kernelspecs_done(&specs);
    size_t count = kernels_list(self->kernels, list, LIST_MAX);
    size_t told = 0;
    for (size_t i = 0; i < count && i < LIST_MAX; i++) {
        if (!may_see(call, list[i].notebook)) {
            continue;
        }
        nb_add_word(&out, told++ == 0 ? "\n\nRunning kernels:" : "");
        (void)snprintf(line, sizeof(line), "\n- %s for %s: %s, %zu run(s) waiting or running",
                       list[i].name, list[i].notebook, list[i].state, list[i].queued);
        nb_add_word(&out, line);
    }
    free(list);
    return cells_reply(call, &out);
}

/* The real path of the notebook the call is about. */
static int real_path(struct cells *self, struct ng_call *call, char **ret)
{
    struct ng_str path;
    struct ng_file file = {.size = sizeof(file)};
    int rc = cells_path(self, call, &path);
    rc = rc != NG_OK ? rc : call->host->file_stat(call, path, &file);
    if (rc != NG_OK) {
        return rc;
    }
    *ret = cells_string(call, file.real);
    return *ret == NULL ? cells_no_memory(call) : NG_OK;
}

static int no_kernel(struct ng_call *call)
{
    return ng_fail(call, CELLS_EKERNEL,
                   "No active kernel session found for this notebook. The kernel may not be "
                   "started.");
}

int cells_interrupt_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    char *path = NULL;
    (void)args;
    int rc = real_path(self, call, &path);
    if (rc != NG_OK) {
        return rc;
    }
    return kernels_interrupt(self->kernels, path)
               ? ng_reply(call, ng_str_of("Successfully interrupted notebook execution."))
               : no_kernel(call);
}

int cells_restart_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    char *path = NULL;
    (void)args;
    int rc = real_path(self, call, &path);
    if (rc != NG_OK) {
        return rc;
    }
    return kernels_restart(self->kernels, path)
               ? ng_reply(call, ng_str_of("Successfully restarted the kernel."))
               : no_kernel(call);
}
