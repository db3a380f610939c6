/* SPDX-License-Identifier: MIT */
/* cells_late.c - saves output of threads that comes after the end of a run. The watch of a
 * kernel has no call until there is some: a call that waits would keep the gateway from
 * stopping. */
#include "cells_lease.h"
#include "cells_run.h"

#include <stdlib.h>
#include <string.h>

static void late_free(struct cells_run *late)
{
    if (late->later != NULL) {
        (void)late->self->host->start_later(late->later, NULL, NULL);
    }
    cells_run_free(late);
}

static void late_ended(void *user, int rc, struct ng_str message)
{
    struct cells_run *late = user;
    cells_runs_over(late->self->runs, late, rc, message);
}

static int late_save(struct ng_call *call, void *user)
{
    struct cells_run *late = user;
    int rc = call->host->on_complete(call, late_ended, late);
    if (rc != NG_OK) {
        late_free(late);
        return rc;
    }
    rc = cells_lease_take(late->self, call, ng_str_of(late->run->notebook), &late->losses);
    late->leased = rc == NG_OK;
    return rc == NG_OK ? cells_run_save(call, late) : rc;
}

/* Called by the kernel thread. */
static void late_due(struct run *run, void *user)
{
    struct cells_run *late = user;
    struct ng_later *later = late->later;
    bool any = run->late != NULL || run->patches.count > 0;
    late->later = any ? NULL : later;
    if (!any || late->self->host->start_later(later, late_save, late) != NG_OK) {
        late_free(late);
    }
}

void cells_late_watch(struct ng_call *call, const struct cells_run *run)
{
    struct cells_run *late = calloc(1, sizeof(*late));
    if (late == NULL) {
        return;
    }
    late->self = run->self;
    late->is_late = true;
    late->path = strdup(run->path);
    late->run = calloc(1, sizeof(*late->run));
    late->later = call->host->later(call);
    if (late->run != NULL) {
        late->run->notebook = strdup(run->run->notebook);
        late->run->done = late_due;
        late->run->user = late;
    }
    if (late->path == NULL || late->later == NULL || late->run == NULL ||
        late->run->notebook == NULL) {
        late_free(late);
        return;
    }
    kernels_watch_late(late->self->kernels, late->run);
}
