/* SPDX-License-Identifier: MIT */
/* kernel_runs.c - executes the runs of one kernel cell by cell. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_cell *current_cell(struct run *run)
{
    return &run->cells[run->at];
}

/* ---- end of cells and runs ---- */

void kernel_end_run(struct kernel *kernel, enum run_fault fault, const char *why)
{
    struct run *run = kernel->first;
    kernel->first = run->next;
    kernel->queued--;
    kernel->used_ms = kernel_now_ms();
    kernel->previous.run = NULL;
    if (run->state == RUN_RUNNING && run->cell_count > 0) {
        kernel->interrupt_requested = false;  /* the request was for this run */
        if (kernel->previous.id[0] != '\0') { /* a cell of it was executed */
            kernel_give_late(kernel, run);
            kernel_expect_late(kernel, kernel->previous.id, &run->cells[kernel->previous.at]);
        }
    }
    if (kernel->execution.run == run) {
        kernel->execution.run = NULL;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        if (run->cells[i].state == CELL_PENDING || run->cells[i].state == CELL_RUNNING) {
            run->cells[i].state = CELL_NOT_RUN;
        }
        if (run->cells[i].state != CELL_NOT_RUN) {
            kernel_keep_displays(kernel, &run->cells[i]);
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
    kernels_ended(kernel->kernels, run);
}

void kernel_fail_runs(struct kernel *kernel, enum run_fault fault, const char *why)
{
    struct execution *execution = &kernel->execution;
    if (execution->run != NULL) {
        struct run_cell *cell = current_cell(execution->run);
        cell->state = CELL_INTERRUPTED;
        if (fault == RUN_KERNEL_DIED) {
            cell->state = CELL_DIED;
        }
        cell->ended_ms = clock_unix_ms();
    }
    execution->active = false;
    execution->run = NULL;
    while (kernel->first != NULL) {
        kernel_end_run(kernel, fault, why);
    }
}

bool kernel_is_between_cells(const struct kernel *kernel)
{
    const struct run *run = kernel->first;
    return !kernel->execution.active && run != NULL && run->state == RUN_RUNNING &&
           run->cell_count > 0;
}

static bool stops_run(const struct run_cell *cell, enum cell_state state)
{
    return state != CELL_OK && !(state == CELL_ERROR && cell->may_raise);
}

static void report_progress(struct run *run, double done, const char *text)
{
    if (done > run->reported) {
        run->reported = done;
    }
    run->reported_ms = kernel_now_ms();
    if (run->progress != NULL) {
        run->progress(run->user, run->reported, run->cell_count, text);
    }
}

void kernel_cell_over(struct kernel *kernel, enum cell_state state)
{
    struct execution *execution = &kernel->execution;
    struct run *run = execution->run;
    execution->active = state == CELL_STUCK;
    kernel->used_ms = kernel_now_ms();
    kernel->previous.run = NULL;
    if (run == NULL) {
        return;
    }
    struct run_cell *cell = current_cell(run);
    cell->state = state;
    cell->ended_ms = clock_unix_ms();
    execution->run = NULL;
    if (state == CELL_STUCK) {
        (void)kernel_send(kernel, CHANNEL_SHELL, "kernel_info_request", ng_str_of("{}"),
                          execution->probe);
    }
    bool stop = stops_run(cell, state);
    if (execution->id[0] != '\0') { /* empty cells are not sent */
        memcpy(kernel->previous.id, execution->id, sizeof(execution->id));
        kernel->previous.at = run->at;
    }
    run->at++;
    report_progress(run, (double)run->at, NULL);
    if (stop || run->at == run->cell_count) {
        if (state == CELL_STUCK) {
            state = run->stop_state;
        }
        if (state == CELL_TIMED_OUT) {
            kernel_end_run(kernel, RUN_TIMED_OUT, NULL);
        } else if (state == CELL_INTERRUPTED) {
            kernel_end_run(kernel, RUN_CANCELLED, NULL);
        } else if (state == CELL_NOT_RUN) {
            kernel_end_run(kernel, RUN_ABORTED,
                           "The kernel aborted a cell without running it.");
        } else {
            kernel_end_run(kernel, RUN_FINE, NULL);
        }
    } else {
        kernel->previous.run = run;
    }
}

/* ---- start of cells and runs ---- */

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

/* Has the source to execute been determined? */
static bool has_source(struct run *run, int64_t now)
{
    struct run_cell *cell = current_cell(run);
    if (cell->source_state == SOURCE_INITIAL) {
        cell->source_requested_ms = now;
        cell->source_state = SOURCE_REQUESTED;
        if (run->request_source == NULL || !run->request_source(run->user, run->at)) {
            cell->source_state = SOURCE_CURRENT;
        }
    }
    return cell->source_state != SOURCE_REQUESTED ||
           now - cell->source_requested_ms >= KERNEL_SOURCE_MS;
}

static void skip_cell(struct kernel *kernel, struct run *run)
{
    current_cell(run)->state = CELL_NOT_RUN;
    run->at++;
    report_progress(run, (double)run->at, NULL);
    if (run->at == run->cell_count) {
        kernel_end_run(kernel, RUN_FINE, NULL);
    }
}

/* Kernels do not reply to a request with a NUL in its source. True: this run has ended. */
static bool ends_at_nul(struct kernel *kernel, struct run *run)
{
    struct run_cell *cell = current_cell(run);
    struct ng_str source = nb_text_str(&cell->source);
    const char *nul = memchr(source.data, '\0', source.len);
    char why[KERNEL_WHY_MAX];
    if (nul == NULL) {
        return false;
    }
    struct ng_str before = {source.data, (size_t)(nul - source.data)};
    size_t lines = 1 + str_count(before, '\n');
    (void)snprintf(
        why, sizeof(why),
        "Cell %.100s cannot be run: its source has a NUL character (character %zu, in "
        "line %zu); remove it",
        cell->handle, utf8_count(before) + 1, lines);
    kernel_end_run(kernel, RUN_ABORTED, why);
    return true;
}

static void begin_cell(struct kernel *kernel, struct run *run)
{
    struct execution *execution = &kernel->execution;
    struct run_cell *cell = current_cell(run);
    nb_text_done(&execution->error);
    memset(execution, 0, sizeof(*execution));
    outputs_done(&cell->outputs);
    outputs_begin(&cell->outputs, run->max_saved_output);
    cell->count = -1;
    cell->state = CELL_RUNNING;
    cell->started_ms = clock_unix_ms();
    execution->run = run;
    if (is_blank(nb_text_str(&cell->source))) {
        kernel_cell_over(kernel, CELL_OK); /* empty: nothing to execute */
        return;
    }
    execution->active = true;
    if (!send_code(kernel, nb_text_str(&cell->source))) {
        kernel_fail_runs(kernel, RUN_NO_KERNEL,
                         "The request to run a cell could not be sent to the kernel.");
    }
}

static void begin_run(struct kernel *kernel, struct run *run)
{
    if (run->state == RUN_RUNNING) {
        return;
    }
    run->state = RUN_RUNNING;
    run->deadline_ms = kernel_now_ms() + run->timeout_ms;
    memcpy(run->kernel_name, kernel->spec.name, sizeof(run->kernel_name));
    if (run->cell_count == 0) {
        return; /* a run without cells only waits for the kernel */
    }
    kernel->previous.id[0] = '\0';
    kernel_give_patches(kernel, run);
    run->origin = kernel->origin;
    kernel->origin = ORIGIN_USED;
}

/* ---- running ---- */

static void finish_cell(struct kernel *kernel)
{
    struct execution *execution = &kernel->execution;
    struct run *run = execution->run;
    if (run == NULL) {
        kernel_cell_over(kernel, CELL_OK); /* its run has ended before */
        return;
    }
    struct run_cell *cell = current_cell(run);
    if (execution->reply == REPLY_ERROR &&
        !execution->error_on_iopub) { /* some kernels report errors in the reply only */
        outputs_add_error(&cell->outputs, nb_text_str(&execution->error));
    }
    enum cell_state state = CELL_OK;
    if (run->stopping) {
        state = run->stop_state;
    } else if (execution->reply == REPLY_ABORTED) {
        state = CELL_NOT_RUN;
    } else if (execution->reply == REPLY_ERROR) {
        state = CELL_ERROR;
    }
    kernel_cell_over(kernel, state);
}

/* Has the grace period for late output passed? Output of the last cell is awaited; that of
 * others is accepted while the next cell runs. */
static bool is_quiet(const struct execution *execution, int64_t now)
{
    const struct run *run = execution->run;
    if (run == NULL ||
        (run->at + 1 < run->cell_count && execution->reply != REPLY_ERROR && !run->stopping)) {
        return true;
    }
    int64_t since = i64_max(execution->output_ms, execution->done_ms);
    return now - since >= KERNEL_GRACE_MS || now - execution->done_ms >= KERNEL_GRACE_MAX_MS;
}

/* An interrupt outside of user code can abort the request handler: the reply never comes. */
static bool has_lost_reply(const struct execution *execution, int64_t now)
{
    return execution->reply == REPLY_NONE && execution->idle_ms != 0 &&
           execution->interrupted_ms != 0 && execution->idle_ms >= execution->interrupted_ms &&
           now - execution->idle_ms >= KERNEL_REPLY_WAIT_MS;
}

/* Ends the cell when reply and idle status have arrived, in either order. */
static void advance_execution(struct kernel *kernel, int64_t now)
{
    struct execution *execution = &kernel->execution;
    int64_t last = i64_max(execution->output_ms, execution->replied_ms);
    /* Output still arriving precedes the idle status: extend the wait. */
    bool over = execution->reply != REPLY_NONE &&
                (execution->idle_ms != 0 || now - last >= KERNEL_IDLE_WAIT_MS);
    if (!over && !has_lost_reply(execution, now)) {
        return;
    }
    if (execution->done_ms == 0) {
        execution->done_ms = now;
    }
    if (execution->exits && now - execution->done_ms < KERNEL_QUIT_MS) {
        return; /* the process exits before the next cell */
    }
    if (is_quiet(execution, now)) {
        finish_cell(kernel);
    }
}

static void interrupt_run(struct kernel *kernel, struct run *run, enum cell_state state,
                          int64_t now)
{
    run->stopping = true;
    run->stop_state = state;
    run->interrupted_ms = now;
    run->interrupt_sent = kernel->execution.begun;
    if (run->interrupt_sent) {
        kernel_interrupt(kernel);
    }
}

/* Applies an interrupt request. If the cell has just ended it is meant for the next cell of the
 * run. */
static void apply_interrupt(struct kernel *kernel, int64_t now)
{
    struct run *run = kernel->execution.run;
    if (!kernel->interrupt_requested ||
        (run != NULL && kernel->execution.reply != REPLY_NONE) ||
        kernel_is_between_cells(kernel)) {
        return;
    }
    kernel->interrupt_requested = false;
    if (run != NULL && !run->stopping) {
        interrupt_run(kernel, run, CELL_INTERRUPTED, now);
    } else if (kernel->execution.active) {
        kernel_interrupt(kernel); /* idle kernels get no signal: some would exit */
    }
}

/* Clients time out on calls without progress. Each report adds a fraction of what remains of
 * the cell, so progress stays monotonic and below the end of the cell. */
static void report_if_due(const struct kernel *kernel, struct run *run, int64_t now)
{
    char text[NB_ID_MAX + 96] = "Starting the kernel";
    if (run->progress == NULL || now - run->reported_ms < KERNEL_PROGRESS_MS) {
        return;
    }
    if (run->state == RUN_RUNNING) {
        const struct run_cell *cell = current_cell(run);
        (void)snprintf(text, sizeof(text), "Cell %s is running (%lld s)", cell->handle,
                       (long long)((clock_unix_ms() - cell->started_ms) / 1000));
    } else if (kernel->state == KERNEL_READY) {
        (void)snprintf(text, sizeof(text), "Waiting for other runs of this kernel");
    }
    double most = (double)run->at + 0.9;
    report_progress(run, run->reported + (most - run->reported) / 8, text);
}

static void enforce_limits(struct kernel *kernel, struct run *run, int64_t now)
{
    if (kernel->execution.run != run) {
        return;
    }
    if (run->stopping) {
        if (!run->interrupt_sent &&
            (kernel->execution.begun || now - run->interrupted_ms >= KERNEL_BEGIN_MS)) {
            run->interrupt_sent = true;
            kernel_interrupt(kernel);
        }
        if (now - run->interrupted_ms >= KERNEL_INTERRUPT_MS &&
            kernel->execution.reply == REPLY_NONE) {
            kernel_cell_over(kernel, CELL_STUCK);
        }
    } else if (kernel->execution.reply != REPLY_NONE) {
        return; /* only its output is still being read */
    } else if (now >= run->deadline_ms) {
        interrupt_run(kernel, run, CELL_TIMED_OUT, now);
    } else if (run->cancelled != NULL && run->cancelled(run->user)) {
        interrupt_run(kernel, run, CELL_INTERRUPTED, now);
    }
}

/* Ends queued runs that were cancelled or whose timeout has passed. */
static void drop_expired(struct kernel *kernel, int64_t now)
{
    struct run **at = &kernel->first;
    while (*at != NULL) {
        struct run *run = *at;
        bool waits = run->state != RUN_RUNNING;
        bool cancelled = waits && run->cancelled != NULL && run->cancelled(run->user);
        /* The start of a kernel has its own timeout. */
        bool late =
            waits && kernel->state == KERNEL_READY && now - run->queued_ms >= run->timeout_ms;
        if (cancelled || late) {
            *at = run->next;
            run->next = kernel->first; /* kernel_end_run() ends the head of the queue */
            kernel->first = run;
            if (cancelled) {
                kernel_end_run(kernel, RUN_CANCELLED, "The run was cancelled before it began.");
            } else {
                kernel_end_run(kernel, RUN_TIMED_OUT,
                               "The run timed out before the kernel was free.");
            }
            at = &kernel->first;
        } else {
            report_if_due(kernel, run, now);
            at = &run->next;
        }
    }
}

/* Checks cancellation, interrupt and timeout between two cells. False: the run has ended. */
static bool may_go_on(struct kernel *kernel, const struct run *run, int64_t now)
{
    bool cancelled = run->cancelled != NULL && run->cancelled(run->user);
    bool late = now >= run->deadline_ms;
    bool begun = run->at > 0 || run->cells[0].source_state != SOURCE_INITIAL;
    if (!begun || !(kernel->interrupt_requested || cancelled || late)) {
        return true;
    }
    char why[KERNEL_WHY_MAX];
    const char *what = "The run was interrupted";
    enum run_fault fault = RUN_ABORTED;
    if (cancelled) {
        fault = RUN_CANCELLED;
    } else if (!kernel->interrupt_requested) {
        fault = RUN_TIMED_OUT;
        what = "The run reached its time limit (timeout)";
    }
    (void)snprintf(why, sizeof(why), "%s before cell %.100s began", what,
                   run->cells[run->at].handle);
    kernel_end_run(kernel, fault, why);
    return false;
}

void kernel_advance_runs(struct kernel *kernel)
{
    int64_t now = kernel_now_ms();
    drop_expired(kernel, now);
    if (kernel->state != KERNEL_READY) {
        return;
    }
    apply_interrupt(kernel, now);
    if (kernel->execution.active) {
        advance_execution(kernel, now);
    }
    if (kernel->execution.active && kernel->first != NULL) {
        enforce_limits(kernel, kernel->first, now);
    }
    while (!kernel->execution.active && kernel->first != NULL &&
           kernel->state == KERNEL_READY) {
        kernel->used_ms = now;
        begin_run(kernel, kernel->first);
        if (kernel->first->cell_count == 0) {
            kernel_end_run(kernel, RUN_FINE, NULL);
        } else if (!may_go_on(kernel, kernel->first, now)) {
            continue;
        } else if (!has_source(kernel->first, now)) {
            break;
        } else if (current_cell(kernel->first)->source_state == SOURCE_GONE) {
            skip_cell(kernel, kernel->first);
        } else if (!ends_at_nul(kernel, kernel->first)) {
            begin_cell(kernel, kernel->first);
        }
    }
}
