/* SPDX-License-Identifier: MIT */
/* cells_status.c - the status line of a cell. */
#include "cells.h"

#include <stdio.h>
#include <string.h>

static void add_part(struct nb_text *out, const char *name, const char *value)
{
    nb_add_if(out, out->len > 0 && out->data[out->len - 1] != '\n', " | ");
    nb_add_word(out, name);
    nb_add_word(out, value);
}

static void add_duration(struct nb_text *out, int64_t ms)
{
    char text[32];
    if (ms < 1000) {
        (void)snprintf(text, sizeof(text), "%lldms", (long long)ms);
    } else {
        (void)snprintf(text, sizeof(text), "%lld.%02llds", (long long)(ms / 1000),
                       (long long)(ms % 1000 / 10));
    }
    add_part(out, "Duration: ", text);
}

bool cells_unsaved(struct cells *self, const struct notebook_file *notebook, const char *handle)
{
    char real[4096];
    (void)snprintf(real, sizeof(real), "%.*s", (int)notebook->file.real.len,
                   notebook->file.real.data);
    kernels_lock(self->kernels);
    bool unsaved = kernels_cell(self->kernels, real, handle, false) != NULL;
    kernels_unlock(self->kernels);
    return unsaved;
}

const char *cells_execution(struct cells *self, const struct notebook_file *notebook,
                            const char *handle)
{
    char real[4096];
    const char *word = "idle";
    (void)snprintf(real, sizeof(real), "%.*s", (int)notebook->file.real.len,
                   notebook->file.real.data);
    kernels_lock(self->kernels);
    const struct run_cell *cell = kernels_cell(self->kernels, real, handle, true);
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
    char number[32];
    int64_t order = 0;
    add_part(out, "Execution: ", cells_execution(self, notebook, handle));
    if (nb_integer(notebook->nb.bytes, cell->count, &order)) {
        (void)snprintf(number, sizeof(number), "[%lld]", (long long)order);
        add_part(out, "Order: ", number);
    }
    if (last.known) {
        add_part(out, "Last run: ", last.good ? "success" : "failed");
        add_duration(out, last.duration_ms);
    }
}

void cells_status(struct cells *self, struct ng_call *call,
                  const struct notebook_file *notebook, size_t index, struct nb_text *out)
{
    static const char *const words[] = {"unselected", "selected", "active"};
    char handle[CELLS_HANDLE_MAX];
    const struct nb_cell *cell = &notebook->nb.cells[index];
    cells_handle(&notebook->nb, index, handle);
    add_part(out,
             "Selection: ", words[cells_selection(self, call, notebook->file.real, handle)]);
    if (cell->type == NB_CODE) {
        add_execution(self, notebook, index, handle, out);
    }
    add_part(out, cell->output_count > 0 ? "Has output" : "No output", "");
}
