/* SPDX-License-Identifier: MIT */
/* cells_status.c - the status line of a cell. */
#include "cells.h"

#include <string.h>

bool cells_unsaved(struct cells *self, const struct notebook_file *notebook, const char *handle)
{
    kernels_lock(self->kernels);
    bool unsaved = kernels_cell(self->kernels, notebook->file.real, handle, false) != NULL;
    kernels_unlock(self->kernels);
    return unsaved;
}

const char *cells_execution(struct cells *self, const struct notebook_file *notebook,
                            const char *handle)
{
    const char *word = "idle";
    kernels_lock(self->kernels);
    const struct run_cell *cell =
        kernels_cell(self->kernels, notebook->file.real, handle, true);
    if (cell != NULL && cell->state == CELL_RUNNING) {
        word = "running";
    } else if (cell != NULL) {
        word = "pending";
    }
    kernels_unlock(self->kernels);
    return word;
}

static void add_execution(struct cells *self, const struct notebook_file *notebook,
                          size_t index, const char *handle, struct nb_text *out)
{
    const struct nb_cell *cell = &notebook->nb.cells[index];
    struct cells_last last = cells_last_run(self, notebook->file.real, handle);
    int64_t order = 0;
    nb_addf(out, " | Execution: %s", cells_execution(self, notebook, handle));
    if (nb_integer(notebook->nb.bytes, cell->count, &order)) {
        nb_addf(out, " | Order: [%lld]", (long long)order);
    }
    if (last.known) {
        nb_addf(out, " | Last run: %s | Duration: ", last.good ? "success" : "failed");
        if (last.duration_ms < 1000) {
            nb_addf(out, "%lldms", (long long)last.duration_ms);
        } else {
            nb_addf(out, "%lld.%02llds", (long long)(last.duration_ms / 1000),
                    (long long)(last.duration_ms % 1000 / 10));
        }
    }
}

void cells_status(struct cells *self, struct ng_call *call,
                  const struct notebook_file *notebook, size_t index, struct nb_text *out)
{
    static const char *const words[] = {"unselected", "selected", "active"};
    char handle[CELLS_HANDLE_MAX];
    const struct nb_cell *cell = &notebook->nb.cells[index];
    cells_handle(&notebook->nb, index, handle);
    nb_addf(out, "Selection: %s",
            words[cells_selection(self, call, notebook->file.real, handle)]);
    if (cell->type == NB_CODE) {
        add_execution(self, notebook, index, handle, out);
    }
    nb_add_word(out, cell->output_count > 0 ? " | Has output" : " | No output");
}
