/* SPDX-License-Identifier: MIT */
/* kernel_work.c - the runs of one kernel: a cell after the other, a run after the other. */
#include "kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_cell *cell_now(struct run *run)
{
    return &run->cells[run->at];
}

/* ---- the end of cells and runs ---- */

void kernel_end_run(struct kernel *kernel, enum run_fault fault, const char *why)
{
    struct run *run = kernel->first;
    kernel->first = run->next;
    kernel->queued--;
    kernel->used_ms = kernel_now_ms();
    if (kernel->execution.run == run) {
        kernel->execution.run = NULL;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        if (run->cells[i].state == CELL_PENDING || run->cells[i].state == CELL_RUNNING) {
            run->cells[i].state = CELL_NOT_RUN;
        }
    }
    run->next = NULL;
    run->state = RUN_DONE;
    if (run->fault == RUN_FINE) {
        run->fault = fault;
    }
    if (why != NULL && run->why[0] == '\0') {
        (void)snprintf(run->why, sizeof(run->why), "%s", why);
    }
    run->done(run, run->user);
}

void kernel_fail_runs(struct kernel *kernel, enum run_fault fault, const char *why)
{
    struct execution *execution = &kernel->execution;
    if (execution->run != NULL) {
        struct run_cell *cell = cell_now(execution->run);
        cell->state = fault == RUN_KERNEL_DIED ? CELL_DIED : CELL_INTERRUPTED;
        cell->ended_ms = kernel_time_ms();
    }
    execution->active = false;
    execution->run = NULL;
    while (kernel->first != NULL) {
        kernel_end_run(kernel, fault, why);
    }
}

/* Displays of this cell that later cells may change. */
static void remember_displays(struct kernel *kernel, const struct run_cell *cell)
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
        place->ordinal = i;
    }
}

void kernel_cell_over(struct kernel *kernel, enum cell_state state)
{
    struct execution *execution = &kernel->execution;
    struct run *run = execution->run;
    execution->active = state == CELL_STUCK;
    if (run == NULL) {
        return;
    }
    struct run_cell *cell = cell_now(run);
    cell->state = state;
    cell->ended_ms = kernel_time_ms();
    remember_displays(kernel, cell);
    execution->run = NULL;
    bool stop = state != CELL_OK && !(state == CELL_ERROR && cell->may_raise);
    run->at++;
    if (run->progress != NULL) {
        run->progress(run->user, run->at, run->cell_count);
    }
    if (stop || run->at == run->cell_count) {
        enum run_fault fault = state == CELL_TIMED_OUT     ? RUN_TIMED_OUT
                               : state == CELL_STUCK       ? RUN_TIMED_OUT
                               : state == CELL_INTERRUPTED ? RUN_CANCELLED
                                                           : RUN_FINE;
        kernel_end_run(kernel, fault, NULL);
    }
}

/* ---- what a cell puts out ---- */

static void add_patch(struct run *run, const struct display_place *place,
                      const struct output_update *update)
{
    struct run_patch *patch = NULL;
    for (size_t i = 0; i < run->patch_count; i++) {
        if (run->patches[i].ordinal == place->ordinal &&
            strcmp(run->patches[i].handle, place->handle) == 0) {
            patch = &run->patches[i];
            nb_text_done(&patch->data);
            nb_text_done(&patch->metadata);
        }
    }
    if (patch == NULL) {
        struct run_patch *patches =
            realloc(run->patches, (run->patch_count + 1) * sizeof(*patches));
        if (patches == NULL) {
            return;
        }
        run->patches = patches;
        patch = &patches[run->patch_count++];
        memset(patch, 0, sizeof(*patch));
        memcpy(patch->handle, place->handle, sizeof(patch->handle));
        patch->ordinal = place->ordinal;
    }
    nb_add_str(&patch->data, nb_text_str(&update->data));
    nb_add_str(&patch->metadata, nb_text_str(&update->metadata));
}

/* The same display in cells that were run before: in this run, and in earlier ones. */
static void update_elsewhere(struct kernel *kernel, const struct wire_message *message)
{
    struct run *run = kernel->execution.run;
    struct output_update update;
    if (!output_update_of(message, &update)) {
        return;
    }
    struct wire_message as_update = *message;
    as_update.type = ng_str_of("update_display_data");
    for (size_t i = 0; i < run->at; i++) {
        (void)outputs_take(&run->cells[i].outputs, &as_update);
    }
    for (size_t i = 0; i < kernel->place_count; i++) {
        bool in_run = false;
        for (size_t k = 0; k <= run->at; k++) {
            in_run = in_run || strcmp(kernel->places[i].handle, run->cells[k].handle) == 0;
        }
        if (!in_run && strcmp(kernel->places[i].id, update.display_id) == 0) {
            add_patch(run, &kernel->places[i], &update);
        }
    }
    output_update_done(&update);
}

void kernel_take_output(struct kernel *kernel, const struct wire_message *message)
{
    struct execution *execution = &kernel->execution;
    if (execution->run == NULL) {
        return;
    }
    struct run_cell *cell = cell_now(execution->run);
    update_elsewhere(kernel, message);
    (void)outputs_take(&cell->outputs, message);
    execution->error_told = execution->error_told || cell->outputs.has_error;
    execution->finished_ms = 0; /* the grace begins anew */
}

/* ---- beginning ---- */

static bool is_blank(struct ng_str source)
{
    for (size_t i = 0; i < source.len; i++) {
        if (strchr(" \t\r\n", source.data[i]) == NULL || source.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

static bool send_code(struct kernel *kernel, struct ng_str source)
{
    struct nb_text content = {0};
    nb_add_word(&content, "{\"code\":");
    nb_encode(&content, source, false);
    nb_add_word(&content, ",\"silent\":false,\"store_history\":true,\"user_expressions\":{},"
                          "\"allow_stdin\":false,\"stop_on_error\":true}");
    bool sent = !content.failed && kernel_send(kernel, CHANNEL_SHELL, "execute_request",
                                               nb_text_str(&content), kernel->execution.id);
    nb_text_done(&content);
    return sent;
}

static void begin_cell(struct kernel *kernel, struct run *run)
{
    struct execution *execution = &kernel->execution;
    struct run_cell *cell = cell_now(run);
    nb_text_done(&execution->error);
    memset(execution, 0, sizeof(*execution));
    outputs_done(&cell->outputs);
    outputs_begin(&cell->outputs, run->max_saved_output);
    cell->count = -1;
    cell->state = CELL_RUNNING;
    cell->started_ms = kernel_time_ms();
    execution->run = run;
    if (is_blank(nb_text_str(&cell->source))) {
        kernel_cell_over(kernel, CELL_OK); /* there is nothing to run */
        return;
    }
    execution->active = true;
    if (!send_code(kernel, nb_text_str(&cell->source))) {
        kernel_fail_runs(kernel, RUN_NO_KERNEL, "The kernel could not be asked to run a cell.");
    }
}

static void begin_run(struct kernel *kernel, struct run *run)
{
    if (run->state == RUN_RUNNING) {
        return;
    }
    run->state = RUN_RUNNING;
    run->deadline_ms = kernel_now_ms() + run->timeout_ms;
    run->new_kernel = kernel->fresh;
    run->state_lost = kernel->fresh && kernel->lost;
    kernel->fresh = false;
    kernel->lost = false;
    memcpy(run->kernel_name, kernel->spec.name, sizeof(run->kernel_name));
}

/* ---- while it runs ---- */

static void finish_cell(struct kernel *kernel)
{
    struct execution *execution = &kernel->execution;
    struct run *run = execution->run;
    if (run == NULL) {
        kernel_cell_over(kernel, CELL_OK); /* it was given up before */
        return;
    }
    struct run_cell *cell = cell_now(run);
    if (execution->failed && !execution->error_told) {
        outputs_add_error(&cell->outputs, nb_text_str(&execution->error));
    }
    enum cell_state state = run->stopping                                  ? run->stop_state
                            : execution->aborted                           ? CELL_NOT_RUN
                            : execution->failed || cell->outputs.has_error ? CELL_ERROR
                                                                           : CELL_OK;
    kernel_cell_over(kernel, state);
}

/* Reply and idle have come, in either order; what comes a moment later is still taken. */
static void look_at_execution(struct kernel *kernel, int64_t now)
{
    struct execution *execution = &kernel->execution;
    bool over = execution->replied &&
                (execution->idle || now - execution->replied_ms >= KERNEL_IDLE_WAIT_MS);
    if (!over) {
        return;
    }
    if (execution->finished_ms == 0) {
        execution->finished_ms = now;
    }
    if (now - execution->finished_ms >= KERNEL_GRACE_MS) {
        finish_cell(kernel);
    }
}

static void stop_run(struct kernel *kernel, struct run *run, enum cell_state state, int64_t now)
{
    run->stopping = true;
    run->stop_state = state;
    run->interrupted_ms = now;
    kernel_interrupt(kernel);
}

/* What a tool asked for. */
static void look_at_wishes(struct kernel *kernel, int64_t now)
{
    struct run *run = kernel->execution.run;
    if (kernel->asked_interrupt) {
        kernel->asked_interrupt = false;
        if (run != NULL && !run->stopping) {
            stop_run(kernel, run, CELL_INTERRUPTED, now);
        } else {
            kernel_interrupt(kernel);
        }
    }
}

static void look_at_run(struct kernel *kernel, struct run *run, int64_t now)
{
    if (kernel->execution.run != run) {
        return;
    }
    if (run->stopping) {
        if (now - run->interrupted_ms >= KERNEL_INTERRUPT_MS && !kernel->execution.replied) {
            kernel_cell_over(kernel, CELL_STUCK);
        }
    } else if (now >= run->deadline_ms) {
        stop_run(kernel, run, CELL_TIMED_OUT, now);
    } else if (run->cancelled != NULL && run->cancelled(run->user)) {
        stop_run(kernel, run, CELL_INTERRUPTED, now);
    }
}

/* Runs that wait and are not wanted any more, or whose time is over before they began. */
static void drop_waiting(struct kernel *kernel)
{
    struct run **at = &kernel->first;
    while (*at != NULL) {
        struct run *run = *at;
        bool waits = run->state != RUN_RUNNING;
        bool cancelled = waits && run->cancelled != NULL && run->cancelled(run->user);
        /* Starting a kernel has a limit of its own. */
        bool late = waits && kernel->state == KERNEL_READY &&
                    kernel_now_ms() - run->queued_ms >= run->timeout_ms;
        if (cancelled || late) {
            *at = run->next;
            run->next = kernel->first; /* to the head, where runs end */
            kernel->first = run;
            kernel_end_run(kernel, cancelled ? RUN_CANCELLED : RUN_TIMED_OUT,
                           cancelled ? "It was cancelled before it began."
                                     : "Its time was over before the kernel was free.");
            at = &kernel->first;
        } else {
            at = &run->next;
        }
    }
}

void kernel_work(struct kernel *kernel)
{
    int64_t now = kernel_now_ms();
    drop_waiting(kernel);
    if (kernel->state != KERNEL_READY) {
        return;
    }
    look_at_wishes(kernel, now);
    if (kernel->execution.active) {
        look_at_execution(kernel, now);
    }
    if (kernel->execution.active && kernel->first != NULL) {
        look_at_run(kernel, kernel->first, now);
    }
    while (!kernel->execution.active && kernel->first != NULL &&
           kernel->state == KERNEL_READY) {
        kernel->used_ms = now;
        begin_run(kernel, kernel->first);
        if (kernel->first->cell_count == 0) {
            kernel_end_run(kernel, RUN_FINE, NULL);
        } else {
            begin_cell(kernel, kernel->first);
        }
    }
}
