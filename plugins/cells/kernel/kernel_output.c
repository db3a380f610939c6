/* SPDX-License-Identifier: MIT */
/* kernel_output.c - assigns output to a cell: the running one, the preceding one, cells whose
 * displays are updated, or, between runs, the last one. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "kernel_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_id(struct ng_str id, const char *known)
{
    return known[0] != '\0' && str_is(id, known);
}

/* ---- display updates ---- */

void kernel_keep_displays(struct kernel *kernel, const struct run_cell *cell)
{
    size_t kept = 0;
    for (size_t i = 0; i < kernel->place_count; i++) {
        if (strcmp(kernel->places[i].handle, cell->handle) != 0) {
            kernel->places[kept++] = kernel->places[i];
        }
    }
    kernel->place_count = kept;
    for (size_t i = 0; i < cell->outputs.count; i++) {
        const struct output *output = &cell->outputs.items[i];
        if (output->display_id[0] == '\0' || kernel->place_count == DISPLAY_PLACES_MAX) {
            continue;
        }
        struct display_place *places =
            realloc(kernel->places, (kernel->place_count + 1) * sizeof(*places));
        if (places == NULL) {
            return;
        }
        kernel->places = places;
        struct display_place *place = &places[kernel->place_count++];
        memcpy(place->id, output->display_id, sizeof(place->id));
        memcpy(place->handle, cell->handle, sizeof(place->handle));
        place->ordinal = outputs_ordinal(&cell->outputs, i);
        place->bytes = output->text.len + output->metadata.len;
        place->rest = cell->outputs.cap;
    }
}

/* Charges the update to the quota of its cell, which is for what comes after its run: nothing
 * of the file goes for it. False: over the quota, the display stays. */
static bool has_room(struct kernel *kernel, struct display_place *place, size_t bytes)
{
    if (bytes > place->bytes && bytes - place->bytes > place->rest) {
        return false;
    }
    for (size_t i = 0; i < kernel->place_count; i++) {
        if (strcmp(kernel->places[i].handle, place->handle) == 0) {
            kernel->places[i].rest = kernel->places[i].rest + place->bytes - bytes;
        }
    }
    place->bytes = bytes;
    return true;
}

static void add_patch(struct run_patches *patches, const struct display_place *place,
                      const struct output_update *update)
{
    struct run_patch *patch = NULL;
    for (size_t i = 0; i < patches->count; i++) {
        if (patches->items[i].ordinal == place->ordinal &&
            strcmp(patches->items[i].handle, place->handle) == 0) {
            patch = &patches->items[i];
            nb_text_done(&patch->data);
            nb_text_done(&patch->metadata);
        }
    }
    if (patch == NULL) {
        struct run_patch *items =
            realloc(patches->items, (patches->count + 1) * sizeof(*items));
        if (items == NULL) {
            return;
        }
        patches->items = items;
        patch = &items[patches->count++];
        memset(patch, 0, sizeof(*patch));
        memcpy(patch->handle, place->handle, sizeof(patch->handle));
        patch->ordinal = place->ordinal;
    }
    nb_add_str(&patch->data, nb_text_str(&update->data));
    nb_add_str(&patch->metadata, nb_text_str(&update->metadata));
}

static bool is_of_run(const struct run *run, const char *handle)
{
    for (size_t i = 0; run != NULL && i <= run->at && i < run->cell_count; i++) {
        if (strcmp(handle, run->cells[i].handle) == 0) {
            return true;
        }
    }
    return false;
}

/* Updates the same display in earlier cells of this run and of earlier runs. run: NULL if none
 * is running. */
static void update_elsewhere(struct kernel *kernel, struct run *run,
                             const struct wire_message *message)
{
    struct output_update update = {0};
    if (!output_update_of(message, &update)) {
        return;
    }
    struct wire_message as_update = *message;
    as_update.type = ng_str_of("update_display_data");
    struct run_patches *patches = &kernel->late.patches;
    if (run != NULL) {
        patches = &run->patches;
        for (size_t i = 0; i < run->at; i++) {
            (void)outputs_take(&run->cells[i].outputs, &as_update);
        }
    }
    for (size_t i = 0; i < kernel->place_count; i++) {
        struct display_place *place = &kernel->places[i];
        if (strcmp(place->id, update.display_id) == 0 && !is_of_run(run, place->handle) &&
            has_room(kernel, place, update.data.len + update.metadata.len)) {
            add_patch(patches, place, &update);
        }
    }
    output_update_done(&update);
}

/* ---- late output ---- */

void kernel_drop_late(struct kernel *kernel)
{
    struct late_output *late = &kernel->late;
    struct run *watch = late->watch;
    run_cell_done(&late->cell);
    run_patches_done(&late->patches);
    memset(late, 0, sizeof(*late));
    late->watch = watch;
}

void kernel_expect_late(struct kernel *kernel, const char *id, const struct run_cell *cell)
{
    struct late_output *late = &kernel->late;
    kernel_drop_late(kernel);
    kernel_advance_late(kernel, true); /* the outputs of this run are to be saved first */
    nb_add_str(&late->cell.source, nb_text_str(&cell->source));
    if (late->cell.source.failed) {
        nb_text_done(&late->cell.source);
        return;
    }
    memcpy(late->id, id, sizeof(late->id));
    memcpy(late->cell.handle, cell->handle, sizeof(late->cell.handle));
    late->cell.index = cell->index;
    late->cell.count = cell->count;
    late->cell.before = outputs_ordinal(&cell->outputs, cell->outputs.count);
    outputs_begin(&late->cell.outputs, cell->outputs.cap);
}

void kernel_give_patches(struct kernel *kernel, struct run *run)
{
    run->patches = kernel->late.patches;
    memset(&kernel->late.patches, 0, sizeof(kernel->late.patches));
}

void kernel_give_late(struct kernel *kernel, struct run *run)
{
    struct run_cell *cell = &kernel->late.cell;
    bool anything =
        cell->outputs.count > 0 || cell->outputs.dropped > 0 || cell->outputs.cleared;
    /* The new run of the same cell replaces its outputs. */
    if (kernel->late.id[0] == '\0' || !anything || is_of_run(run, cell->handle)) {
        return;
    }
    run->late = malloc(sizeof(*run->late));
    if (run->late != NULL) {
        *run->late = *cell;
        memset(cell, 0, sizeof(*cell));
        kernel->late.id[0] = '\0';
    }
}

static void copy_patches(const struct run_patches *patches, struct run *run)
{
    struct run_patch *copies = calloc(patches->count + 1, sizeof(*copies));
    run->patches.items = copies;
    run->patches.count = copies != NULL ? patches->count : 0;
    for (size_t i = 0; i < run->patches.count; i++) {
        copies[i] = patches->items[i];
        memset(&copies[i].data, 0, sizeof(copies[i].data));
        memset(&copies[i].metadata, 0, sizeof(copies[i].metadata));
        nb_add_str(&copies[i].data, nb_text_str(&patches->items[i].data));
        nb_add_str(&copies[i].metadata, nb_text_str(&patches->items[i].metadata));
    }
}

/* A copy: the next run reports it, too. */
static void copy_late(const struct late_output *late, struct run *run)
{
    copy_patches(&late->patches, run);
    memcpy(run->late_id, late->id, sizeof(run->late_id));
    run->late = malloc(sizeof(*run->late));
    if (run->late == NULL) {
        return;
    }
    *run->late = late->cell;
    memset(&run->late->source, 0, sizeof(run->late->source));
    memset(&run->late->page, 0, sizeof(run->late->page));
    nb_add_str(&run->late->source, nb_text_str(&late->cell.source));
    outputs_copy(&late->cell.outputs, &run->late->outputs);
}

bool kernel_has_late(const struct kernel *kernel)
{
    return kernel->late.unsaved && kernel->late.watch != NULL;
}

void kernel_advance_late(struct kernel *kernel, bool ends)
{
    struct late_output *late = &kernel->late;
    struct run *watch = late->watch;
    int64_t now = kernel_now_ms();
    int64_t wait_ms = (int64_t)KERNEL_LATE_MS << int_min(late->saves, KERNEL_LATE_DOUBLINGS);
    bool due = late->unsaved && (ends || now - late->since_ms >= wait_ms);
    if (watch == NULL || !(due || ends)) {
        return;
    }
    if (due) {
        copy_late(late, watch);
        late->unsaved = false;
        late->saves++;
    }
    late->watch = NULL;
    watch->state = RUN_DONE;
    kernels_ended(kernel->kernels, watch);
}

/* The run that has begun, also while none of its cells is executed: their sources are read
 * first.
 */
static struct run *begun_run(const struct kernel *kernel)
{
    struct run *run = kernel->first;
    return run != NULL && run->state == RUN_RUNNING && run->cell_count > 0 ? run : NULL;
}

/* Output while no cell runs belongs to the last cell that ran, whatever its parent: kernels set
 * the parent of a thread's output in different ways. */
static void take_late(struct kernel *kernel, const struct wire_message *message)
{
    struct late_output *late = &kernel->late;
    if (late->id[0] == '\0') {
        return;
    }
    update_elsewhere(kernel, begun_run(kernel), message);
    if (outputs_take(&late->cell.outputs, message)) {
        late->since_ms = late->unsaved ? late->since_ms : kernel_now_ms();
        late->unsaved = true;
    }
}

void kernel_take_output(struct kernel *kernel, const struct wire_message *message)
{
    struct execution *execution = &kernel->execution;
    const struct previous_cell *previous = &kernel->previous;
    struct run *run = begun_run(kernel);
    bool has_previous = run != NULL && previous->run == run && previous->id[0] != '\0';
    bool executes = run != NULL && execution->run == run;
    if (is_id(message->parent_id, kernel->late.id) || !(executes || has_previous)) {
        take_late(kernel, message);
        return;
    }
    bool is_previous = has_previous && (!executes || is_id(message->parent_id, previous->id));
    struct run_cell *cell = &run->cells[is_previous ? previous->at : run->at];
    update_elsewhere(kernel, run, message);
    if (outputs_take(&cell->outputs, message) && !is_previous) {
        execution->error_on_iopub = execution->error_on_iopub || cell->outputs.has_error;
        execution->output_ms = kernel_now_ms();
    }
}
