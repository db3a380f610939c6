/* SPDX-License-Identifier: MIT */
/* cells_kernels.c - listKernels, interruptKernel, restartKernel. */
#include "cells_lease.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAX SUPERVISOR_KERNELS_MAX

static void add_specs(struct nb_text *out, const struct kernelspecs *specs)
{
    if (specs->count == 0) {
        nb_add_word(out, "No kernel is installed. Install one, for example Debian's "
                         "python3-ipykernel.");
        return;
    }
    nb_add_word(out, "Installed kernels:");
    for (size_t i = 0; i < specs->count; i++) {
        const char *language = specs->items[i].language;
        if (language[0] == '\0') {
            language = "language unknown";
        }
        nb_addf(out, "\n- %s: %.300s (%.100s)", specs->items[i].name,
                specs->items[i].display_name, language);
    }
}

/* A caller that may read the file may know about its kernel. */
static bool may_see(struct ng_call *call, struct ng_str notebook)
{
    struct ng_file file = {.size = sizeof(file)};
    return call->host->file_stat(call, notebook, &file) == NG_OK;
}

static int add_others(struct cells *self, struct ng_call *call, struct nb_text *out)
{
    struct cells_other *others = NULL;
    size_t count = 0;
    size_t listed = 0;
    int rc = cells_lease_others(self, call, &others, &count);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        const struct cells_other *other = &others[i];
        if (!may_see(call, other->notebook)) {
            continue;
        }
        nb_add_if(out, listed++ == 0, "\n\nKernels of other gateways:");
        nb_addf(out, "\n- for %.*s: gateway %.*s", (int)other->notebook.len,
                other->notebook.data, (int)other->gateway.len, other->gateway.data);
        nb_add_if(out, other->where.len > 0, " at ");
        nb_add_str(out, other->where);
    }
    return rc;
}

int cells_kernels_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct kernelspecs specs;
    struct nb_text out = {0};
    (void)args;
    struct kernel_info *list = calloc(LIST_MAX, sizeof(*list));
    if (list == NULL || !kernelspecs_load(&specs)) {
        free(list);
        return cells_no_memory(call);
    }
    add_specs(&out, &specs);
    kernelspecs_done(&specs);
    size_t count = kernels_list(self->kernels, list, LIST_MAX);
    size_t listed = 0;
    for (size_t i = 0; i < count && i < LIST_MAX; i++) {
        if (!may_see(call, ng_str_of(list[i].notebook))) {
            continue;
        }
        nb_add_if(&out, listed++ == 0, "\n\nRunning kernels:");
        nb_addf(&out, "\n- %s for %s: %s, %zu run(s) waiting or running", list[i].name,
                list[i].notebook, list[i].state, list[i].queued);
    }
    free(list);
    int rc = add_others(self, call, &out);
    if (rc != NG_OK) {
        nb_text_done(&out);
        return rc;
    }
    return cells_reply(call, (struct ng_str){NULL, 0}, &out);
}

/* ---- interrupt and restart: the call waits for completion ---- */

/* In call memory. */
struct control_request {
    struct ng_call *call;
    struct ng_deferred *deferred;
    struct ng_str path; /* of the notebook */
    bool restart;
};

static bool control_cancelled(void *user)
{
    const struct control_request *request = user;
    return request->call->host->cancelled(request->call);
}

static int answer(const struct control_request *request, const struct run *run)
{
    struct ng_call *call = request->call;
    switch (run->fault) {
    case RUN_FINE:
        break;
    case RUN_TIMED_OUT:
        return ng_fail(call, NG_ETIMEOUT,
                       "The kernel was interrupted, and the cell is still running: "
                       "restartKernel ends it");
    case RUN_CANCELLED:
        return ng_fail(call, NG_ECANCELLED, "%s", run->why);
    default:
        return ng_fail(call, CELLS_EKERNEL, "%s", run->why);
    }
    const char *text = run->why;
    if (text[0] == '\0' && request->restart) {
        text = "Successfully restarted the kernel.";
    } else if (text[0] == '\0') {
        text = "Successfully interrupted notebook execution.";
    }
    return cells_replyf(call, request->path, "%s", text);
}

static void control_done(struct run *run, void *user)
{
    const struct control_request *request = user;
    const struct ng_host *host = request->call->host;
    struct ng_deferred *deferred = request->deferred;
    int rc = answer(request, run);
    run_free(run);
    host->finish(deferred, rc);
}

static int control(struct cells *self, struct ng_call *call, enum kernels_command command)
{
    struct ng_str path;
    struct ng_file file = {.size = sizeof(file)};
    int rc = cells_path(self, call, CELLS_CHANGES, &path);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->host->file_stat(call, path, &file);
    if (rc != NG_OK) {
        return rc;
    }
    struct kernel_info info;
    if (!kernels_info(self->kernels, file.real, &info)) {
        rc = cells_lease_find(self, call, file.real);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct control_request *request = ng_alloc(call, sizeof(*request));
    struct run *run = calloc(1, sizeof(*run));
    if (run != NULL) {
        run->notebook = strndup(file.real.data, file.real.len);
    }
    if (request == NULL || run == NULL || run->notebook == NULL) {
        run_free(run);
        return cells_no_memory(call);
    }
    *request = (struct control_request){call, call->host->defer(call), path,
                                        command == KERNELS_RESTART};
    run->cancelled = control_cancelled;
    run->done = control_done;
    run->user = request;
    kernels_control(self->kernels, run, command);
    return NG_PENDING;
}

int cells_interrupt_run(void *user, struct ng_call *call, struct ng_str args)
{
    (void)args;
    return control(user, call, KERNELS_INTERRUPT);
}

int cells_restart_run(void *user, struct ng_call *call, struct ng_str args)
{
    (void)args;
    return control(user, call, KERNELS_RESTART);
}
