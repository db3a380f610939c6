/* SPDX-License-Identifier: MIT */
/* cells_source.c - reads the source of a cell again before it is executed: people and other
 * agents edit while a run is queued and while earlier cells run. */
#include "cells_run.h"
#include "core/base/str.h"

#include <string.h>

bool cells_has_source(const struct nb *nb, size_t index, struct ng_str source)
{
    struct nb_text text = {0};
    (void)nb_decode_lines(&text, nb->bytes, nb->cells[index].source);
    bool same = !text.failed && str_equal(nb_text_str(&text), source);
    nb_text_done(&text);
    return same;
}

size_t cells_run_find(const struct nb *nb, const char *handle, struct ng_str source)
{
    size_t index = cells_find(nb, ng_str_of(handle));
    bool by_place = strncmp(handle, "index:", 6) == 0;
    if (!by_place || (index != SIZE_MAX && cells_has_source(nb, index, source))) {
        return index;
    }
    index = SIZE_MAX;
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (nb->cells[i].type != NB_CODE || nb->cells[i].id_unique ||
            !cells_has_source(nb, i, source)) {
            continue;
        }
        if (index != SIZE_MAX) {
            return SIZE_MAX;
        }
        index = i;
    }
    return index;
}

/* ---- reading the file ---- */

/* The kernel thread waits for the read, so only the end of the run can happen meanwhile. */
enum { REFRESH_IDLE = 0, REFRESH_READING = 1, REFRESH_RUN_OVER = 2 };

static int take_chunk(void *user, struct ng_str bytes)
{
    struct nb_text *text = user;
    nb_add_str(text, bytes);
    if (text->failed) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}

static bool read_file(struct ng_call *call, struct cells_run *run, struct nb_text *bytes)
{
    struct ng_str path = ng_str_of(run->path);
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_stat(call, path, &file);
    bool same = file.bytes == run->bytes && file.modified_ms == run->modified_ms;
    if (rc != NG_OK || same || file.type != NG_FILE_REGULAR || file.bytes > CELLS_FILE_MAX ||
        call->host->file_stream(call, path, take_chunk, bytes, &file) != NG_OK) {
        return false;
    }
    run->bytes = file.bytes;
    run->modified_ms = file.modified_ms;
    return true;
}

/* Compares the cell with the file. True: it has another source, appended to *ret. *ret_gone: it
 * is no code cell any more. If the file cannot be read the known source is used; saving will
 * report the reason. */
static bool compare_with_file(struct ng_call *call, struct cells_run *run, struct nb_text *ret,
                              bool *ret_gone)
{
    const struct run_cell *cell = &run->run->cells[run->refresh_cell];
    struct ng_str source = nb_text_str(&cell->source);
    struct nb_text bytes = {0};
    struct nb nb;
    struct nb_error error;
    bool changed = false;
    if (read_file(call, run, &bytes) && nb_index(nb_text_str(&bytes), &nb, &error) == NB_FINE) {
        size_t index = cells_run_find(&nb, cell->handle, source);
        if (index == SIZE_MAX && nb.cell_count == run->notebook_cells) {
            index = cells_find(&nb, ng_str_of(cell->handle)); /* same position, new source */
        }
        *ret_gone = index == SIZE_MAX || nb.cells[index].type != NB_CODE;
        changed = !*ret_gone && !cells_has_source(&nb, index, source);
        if (changed) {
            (void)nb_decode_lines(ret, nb.bytes, nb.cells[index].source);
        }
        nb_done(&nb);
    }
    nb_text_done(&bytes);
    return changed;
}

static int refresh_source(struct ng_call *call, void *user)
{
    struct cells_run *run = user;
    struct nb_text source = {0};
    bool gone = false;
    bool changed = compare_with_file(call, run, &source, &gone);
    struct kernels *kernels = run->self->kernels;
    uint64_t number = run->run->number;
    size_t cell = run->refresh_cell;
    if (atomic_exchange(&run->refresh_state, REFRESH_IDLE) == REFRESH_RUN_OVER) {
        nb_text_done(&source);
        return cells_run_over(call, run);
    }
    /* The run may end and be freed from here on. */
    kernels_set_source(kernels, number, cell, changed ? &source : NULL, gone);
    return NG_PENDING;
}

bool cells_run_refresh(void *user, size_t cell)
{
    struct cells_run *run = user;
    int none = REFRESH_IDLE;
    if (!atomic_compare_exchange_strong(&run->refresh_state, &none, REFRESH_READING)) {
        return false; /* the read for the preceding cell is in progress */
    }
    run->refresh_cell = cell;
    (void)run->call->host->continue_on_worker(run->call, refresh_source, run);
    return true;
}

bool cells_run_is_refreshing(struct cells_run *run)
{
    int reads = REFRESH_READING;
    return atomic_compare_exchange_strong(&run->refresh_state, &reads, REFRESH_RUN_OVER);
}
