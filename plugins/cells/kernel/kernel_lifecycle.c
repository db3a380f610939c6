/* SPDX-License-Identifier: MIT */
/* kernel_lifecycle.c - the states of one kernel from launch to exit. */
#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "kernel_state.h"
#include "notebook/screen.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Interval of kernel_info requests to a starting kernel. */
#define INFO_REQUEST_MS 250
/* Some kernels have no stdin channel: stop waiting for it after this time. */
#define STDIN_WAIT_MS 3000
/* The last messages of an exited process may arrive after the news of its exit: read on until
 * none has come for DRAIN_QUIET_MS, at most DRAIN_MAX_MS. */
#define DRAIN_QUIET_MS 100
#define DRAIN_MAX_MS 5000
#define EXIT_REASON_MAX (KERNEL_WHY_MAX - 200)

void kernel_set_state(struct kernel *kernel, enum kernel_state state)
{
#define TO(name) (1U << KERNEL_##name)
    static const unsigned allowed[] = {
        [KERNEL_NEW] = TO(STARTING) | TO(GONE),
        [KERNEL_STARTING] = TO(READY) | TO(NEW) | TO(RESTARTING) | TO(ENDING) | TO(GONE),
        [KERNEL_READY] = TO(RESTARTING) | TO(DYING) | TO(ENDING) | TO(GONE),
        [KERNEL_RESTARTING] = TO(NEW) | TO(ENDING) | TO(GONE),
        [KERNEL_ENDING] = TO(ENDING) | TO(GONE),
        [KERNEL_DYING] = TO(GONE),
        [KERNEL_GONE] = 0,
    };
#undef TO
    assert((allowed[kernel->state] & 1U << state) != 0);
    (void)allowed; /* without asserts */
    kernel->state = state;
    if (state == KERNEL_GONE || state == KERNEL_NEW) {
        kernel_advance_late(kernel, true);
    }
}

void kernel_free(struct kernel *kernel)
{
    const struct kernels *kernels = kernel->kernels; /* NULL: it never was in the table */
    kernel_disconnect(kernel);
    if (kernels != NULL && kernels->options.watch != NULL) {
        kernels->options.watch(kernels->options.watch_user, kernel->notebook, false);
    }
    kernelspec_done(&kernel->spec);
    nb_text_done(&kernel->execution.error);
    kernel_drop_late(kernel);
    free(kernel->notebook);
    free(kernel->folder);
    free(kernel->places);
    free(kernel);
}

void kernel_fail_start(struct kernel *kernel, const char *why)
{
    kernel_set_state(kernel, KERNEL_GONE);
    kernel_fail_runs(kernel, RUN_NO_KERNEL, why);
}

void kernel_shut_down(struct kernel *kernel, enum kernel_state state)
{
    if (kernel->state == KERNEL_GONE || kernel->state == KERNEL_DYING) {
        return;
    }
    if (kernel->state == KERNEL_NEW) {
        kernel_set_state(kernel, KERNEL_GONE); /* there is no process yet */
        return;
    }
    if (kernel->execution.active) {
        kernel_interrupt(kernel);
    }
    kernel_set_state(kernel, state);
    kernel->ending_ms = kernel_now_ms();
    kernel->end_signal = 0;
    const char *content = "{\"restart\":false}";
    if (state == KERNEL_RESTARTING) {
        content = "{\"restart\":true}";
    }
    (void)kernel_send(kernel, CHANNEL_CONTROL, "shutdown_request", ng_str_of(content), NULL);
}

/* ---- exit of the process ---- */

static void describe_exit(int status, struct ng_str tail, char why[KERNEL_WHY_MAX])
{
    int used = snprintf(why, KERNEL_WHY_MAX, "exit code %d", WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        used = snprintf(why, KERNEL_WHY_MAX, "signal %d (SIG%s)", WTERMSIG(status),
                        name == NULL ? "?" : name);
    }
    struct nb_text clean = {0};
    screen_show(&clean, tail);
    struct ng_str said = nb_text_str(&clean);
    while (said.len > 0 &&
           (said.data[said.len - 1] == '\n' || said.data[said.len - 1] == ' ')) {
        said.len--;
    }
    size_t room = (size_t)EXIT_REASON_MAX - (size_t)used - 64;
    size_t skip = said.len - size_min(said.len, room);
    while (skip < said.len && !utf8_is_start(said.data[skip])) {
        skip++;
    }
    if (said.len > skip && !clean.failed) {
        (void)snprintf(why + used, (size_t)(EXIT_REASON_MAX - used), "; its last output: %.*s",
                       (int)(said.len - skip), said.data + skip);
    }
    nb_text_done(&clean);
}

/* Launches without the lock, as files and programs may be slow. Runs may be queued meanwhile;
 * other threads do not change the state of a new kernel. */
static void launch(struct kernel *kernel)
{
    char why[KERNEL_WHY_MAX];
    kernel->pid = 0;
    kernel_drop_late(kernel);
    kernels_unlock(kernel->kernels);
    bool good = kernel_launch(kernel, why);
    kernels_lock(kernel->kernels);
    if (good) {
        kernel_set_state(kernel, KERNEL_STARTING);
    } else {
        kernel_fail_start(kernel, why);
    }
}

void kernel_process_ended(struct kernel *kernel, int status, struct ng_str tail)
{
    char why[KERNEL_WHY_MAX];
    describe_exit(status, tail, kernel->exit_reason);
    (void)kernel_receive(kernel); /* its last messages precede this event */
    switch (kernel->state) {
    case KERNEL_STARTING:
        if (kernel->starts < KERNEL_STARTS_MAX) {
            kernel_set_state(kernel, KERNEL_NEW);
            return;
        }
        (void)snprintf(why, sizeof(why), "The kernel `%s` ended before it was ready: %.800s",
                       kernel->spec.name, kernel->exit_reason);
        kernel_fail_start(kernel, why);
        break;
    case KERNEL_RESTARTING:
        kernel->starts = 0;
        kernel->origin = ORIGIN_AFTER_RESTART;
        kernel->execution.active = false;
        kernel_set_state(kernel, KERNEL_NEW);
        break;
    case KERNEL_READY:
        kernels_remember_lost(kernel->kernels, kernel->notebook);
        kernel_set_state(kernel, KERNEL_DYING);
        kernel->ending_ms = kernel_now_ms();
        kernel->received_ms = kernel->ending_ms;
        break;
    case KERNEL_ENDING:
    case KERNEL_NEW:
    case KERNEL_DYING:
    case KERNEL_GONE:
        kernel_set_state(kernel, KERNEL_GONE);
        kernel_fail_runs(kernel, RUN_STOPPED, "The kernel was ended.");
        break;
    }
}

/* All messages of the exited process have been read. */
static void finish_dying(struct kernel *kernel)
{
    char why[KERNEL_WHY_MAX];
    struct execution *execution = &kernel->execution;
    kernel_set_state(kernel, KERNEL_GONE);
    if (execution->active && execution->reply == REPLY_OK) {
        /* It replied and then exited by itself: quit(). */
        if (execution->run != NULL) {
            execution->run->kernel_ended = true;
        }
        kernel_cell_over(kernel, CELL_OK);
    }
    (void)snprintf(why, sizeof(why), "the kernel ended: %.900s", kernel->exit_reason);
    kernel_fail_runs(kernel, RUN_KERNEL_DIED, why);
}

/* ---- due events ---- */

static void advance_starting(struct kernel *kernel, int64_t now)
{
    const struct kernels_options *options = &kernel->kernels->options;
    bool answers = kernel->info_replied && kernel->iopub_seen;
    if (answers && kernel->ready_ms == 0) {
        kernel->ready_ms = now;
    }
    if (answers && (kernel_has_stdin(kernel) || now - kernel->ready_ms >= STDIN_WAIT_MS)) {
        kernel_set_state(kernel, KERNEL_READY);
        kernel_release_ports(kernel);
        kernel->starts = 0;
        kernel->used_ms = now;
        for (struct run *run = kernel->first; run != NULL; run = run->next) {
            run->queued_ms = now; /* the start does not count against its timeout */
        }
    } else if (now - kernel->started_ms >= options->start_timeout_ms) {
        char why[KERNEL_WHY_MAX];
        (void)snprintf(why, sizeof(why),
                       "The kernel `%s` did not get ready within %lld s (cells.start_timeout).",
                       kernel->spec.name, (long long)(options->start_timeout_ms / 1000));
        (void)supervisor_signal(&kernel->kernels->supervisor, kernel->id, SIGKILL);
        kernel_fail_start(kernel, why);
    } else if (kernel->pid != 0 && now - kernel->info_request_ms >= INFO_REQUEST_MS) {
        kernel->info_request_ms = now;
        (void)kernel_send(kernel, CHANNEL_SHELL, "kernel_info_request", ng_str_of("{}"), NULL);
    }
}

/* Shutdown request for the first half of KERNEL_SHUTDOWN_MS, then SIGTERM, then SIGKILL. */
static void advance_ending(struct kernel *kernel, int64_t now)
{
    int64_t since = now - kernel->ending_ms;
    int due = 0;
    if (since >= KERNEL_SHUTDOWN_MS) {
        due = SIGKILL;
    } else if (since >= KERNEL_SHUTDOWN_MS / 2) {
        due = SIGTERM;
    }
    if (due != kernel->end_signal) {
        kernel->end_signal = due;
        (void)supervisor_signal(&kernel->kernels->supervisor, kernel->id, due);
    }
}

/* Ends the running run; queued runs continue on the new process. */
static void restart(struct kernel *kernel)
{
    struct run *run = kernel->execution.run;
    kernel_shut_down(kernel, KERNEL_RESTARTING);
    if (run != NULL) {
        (void)snprintf(run->why, sizeof(run->why), "the kernel was restarted");
        kernel_cell_over(kernel, CELL_INTERRUPTED);
    } else if (kernel_is_between_cells(kernel) && kernel->first->at > 0) {
        kernel_end_run(kernel, RUN_ABORTED, "The kernel was restarted");
    } else if (kernel_is_between_cells(kernel)) {
        kernel->first->state = RUN_QUEUED; /* it has not used the old process */
    }
    kernel->execution.active = false;
}

static void apply_restart(struct kernel *kernel)
{
    if (!kernel->restart_requested) {
        return;
    }
    if (kernel->state == KERNEL_READY || kernel->state == KERNEL_STARTING) {
        restart(kernel);
    }
    kernel->restart_requested = false; /* in all other states a new process follows anyway */
}

static void end_if_idle(struct kernel *kernel, int64_t now)
{
    const struct kernels_options *options = &kernel->kernels->options;
    bool idle =
        kernel->state == KERNEL_READY && kernel->first == NULL && !kernel->execution.active;
    if (idle && now - kernel->used_ms >= options->idle_timeout_ms) {
        kernels_remember_lost(kernel->kernels, kernel->notebook);
        kernel_shut_down(kernel, KERNEL_ENDING);
    }
}

/* Another gateway has its notebook: no output of it is used any more. */
static void apply_loss(struct kernel *kernel)
{
    if (kernel->end_request != END_LOST || kernel->state == KERNEL_GONE) {
        return;
    }
    if (kernel->state != KERNEL_ENDING) {
        kernel_shut_down(kernel, KERNEL_ENDING);
    }
    kernel->end_request = END_NONE;
    kernel_drop_late(kernel);
    kernel_fail_runs(kernel, RUN_LOST,
                     "Another gateway has taken over the kernel of this notebook.");
}

void kernel_advance(struct kernel *kernel)
{
    apply_loss(kernel);
    apply_restart(kernel);
    if (kernel->state == KERNEL_NEW) {
        launch(kernel);
    }
    int64_t now = kernel_now_ms();
    switch (kernel->state) {
    case KERNEL_STARTING:
        advance_starting(kernel, now);
        break;
    case KERNEL_ENDING:
        if (kernel->end_request == END_IDLE) {
            kernel->end_request = END_NONE;
            kernel_shut_down(kernel, KERNEL_ENDING);
        }
        advance_ending(kernel, now);
        break;
    case KERNEL_RESTARTING:
        advance_ending(kernel, now);
        break;
    case KERNEL_DYING:
        if (kernel_has_stdin(kernel)) {
            /* libzmq's thread has not noticed the exit yet, so it has not read the last
             * messages either. */
            kernel->received_ms = now;
        }
        if (now - kernel->received_ms >= DRAIN_QUIET_MS ||
            now - kernel->ending_ms >= DRAIN_MAX_MS) {
            finish_dying(kernel);
        }
        break;
    default:
        break;
    }
    kernel_advance_runs(kernel);
    kernel_advance_late(kernel, false);
    end_if_idle(kernel, now);
}
