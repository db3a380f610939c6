/* SPDX-License-Identifier: MIT */
/* kernel_loop.c - the thread that all kernels are spoken with by, and the table of them. */
#include "kernel_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often a kernel at work is looked at, one that waits, and all while none is there. */
#define LOOP_BUSY_MS 10
#define LOOP_IDLE_MS 500
/* A kernel that begins is asked this often whether it is there. */
#define LOOP_ASK_MS 250
/* What all kernels have to end by themselves when the gateway does. */
#define LOOP_STOP_MS 3000
#define LOST_MAX 1024

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t kernel_now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

int64_t kernel_time_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

void kernels_lock(struct kernels *kernels)
{
    (void)pthread_mutex_lock(&kernels->lock);
}

void kernels_unlock(struct kernels *kernels)
{
    (void)pthread_mutex_unlock(&kernels->lock);
}

void kernels_wake(struct kernels *kernels)
{
    uint64_t one = 1;
    (void)!write(kernels->wake, &one, sizeof(one));
}

struct kernel *kernels_find(struct kernels *kernels, const char *notebook)
{
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->state != KERNEL_GONE && strcmp(kernel->notebook, notebook) == 0) {
            return kernel;
        }
    }
    return NULL;
}

/* ---- what was lost, for the next answer ---- */

void kernels_remember_lost(struct kernels *kernels, const char *notebook)
{
    char *copy = strdup(notebook);
    char **lost = kernels->lost_count == LOST_MAX
                      ? NULL
                      : realloc(kernels->lost, (kernels->lost_count + 1) * sizeof(*lost));
    if (copy == NULL || lost == NULL) {
        free(copy);
        return;
    }
    kernels->lost = lost;
    lost[kernels->lost_count++] = copy;
}

bool kernels_forget_lost(struct kernels *kernels, const char *notebook)
{
    bool found = false;
    for (size_t i = 0; i < kernels->lost_count;) {
        if (strcmp(kernels->lost[i], notebook) == 0) {
            free(kernels->lost[i]);
            kernels->lost[i] = kernels->lost[--kernels->lost_count];
            found = true;
        } else {
            i++;
        }
    }
    return found;
}

/* ---- one kernel's life ---- */

static void kernel_free(struct kernel *kernel)
{
    kernel_disconnect(kernel);
    kernelspec_done(&kernel->spec);
    nb_text_done(&kernel->execution.error);
    free(kernel->notebook);
    free(kernel->folder);
    free(kernel->places);
    free(kernel);
}

static void kernel_fail_start(struct kernel *kernel, const char *why)
{
    kernel->state = KERNEL_GONE;
    kernel_fail_runs(kernel, RUN_NO_KERNEL, why);
}

void kernel_shut_down(struct kernel *kernel, enum kernel_state state)
{
    if (kernel->state == KERNEL_GONE) {
        return;
    }
    if (kernel->execution.active) {
        kernel_interrupt(kernel);
    }
    kernel->state = state;
    kernel->ending_ms = kernel_now_ms();
    (void)kernel_send(
        kernel, CHANNEL_CONTROL, "shutdown_request",
        ng_str_of(state == KERNEL_RESTARTING ? "{\"restart\":true}" : "{\"restart\":false}"),
        NULL);
}

static void how_it_ended(int status, struct ng_str tail, char why[KERNEL_WHY_MAX])
{
    int used =
        WIFSIGNALED(status)
            ? snprintf(why, KERNEL_WHY_MAX, "signal %d (%s)", WTERMSIG(status),
                       sigabbrev_np(WTERMSIG(status)) == NULL ? "?"
                                                              : sigabbrev_np(WTERMSIG(status)))
            : snprintf(why, KERNEL_WHY_MAX, "exit code %d", WEXITSTATUS(status));
    size_t room = KERNEL_WHY_MAX - (size_t)used - 64;
    size_t skip = tail.len > room ? tail.len - room : 0;
    while (skip < tail.len && ((unsigned char)tail.data[skip] & 0xc0) == 0x80) {
        skip++;
    }
    if (tail.len > skip) {
        (void)snprintf(why + used, KERNEL_WHY_MAX - (size_t)used, "; the last it wrote: %.*s",
                       (int)(tail.len - skip), tail.data + skip);
    }
}

static void kernel_process_ended(struct kernel *kernel, int status, struct ng_str tail)
{
    char how[KERNEL_WHY_MAX];
    char why[KERNEL_WHY_MAX];
    enum kernel_state before = kernel->state;
    while (before == KERNEL_READY && kernel_receive(kernel)) {
        /* what it said before it ended is kept */
    }
    how_it_ended(status, tail, how);
    kernel_disconnect(kernel);
    if (before == KERNEL_STARTING && kernel->starts < KERNEL_STARTS_MAX) {
        if (!kernel_launch(kernel, why)) {
            kernel_fail_start(kernel, why);
        }
        return;
    }
    if (before == KERNEL_RESTARTING) {
        kernel->starts = 0;
        kernel->fresh = true;
        kernel->execution.active = false;
        if (!kernel_launch(kernel, why)) {
            kernel_fail_start(kernel, why);
        }
        return;
    }
    if (before == KERNEL_STARTING) {
        (void)snprintf(why, sizeof(why), "The kernel `%s` ended before it was ready: %.800s",
                       kernel->spec.name, how);
        kernel_fail_start(kernel, why);
        return;
    }
    kernel->state = KERNEL_GONE;
    if (before == KERNEL_READY) {
        kernels_remember_lost(kernel->kernels, kernel->notebook);
        struct execution *execution = &kernel->execution;
        if (execution->active && execution->replied && !execution->failed) {
            /* It said that the cell is done, and ended by itself: quit(). */
            if (execution->run != NULL) {
                execution->run->kernel_ended = true;
            }
            kernel_cell_over(kernel, CELL_OK);
        }
        (void)snprintf(why, sizeof(why), "The kernel ended: %.800s", how);
        kernel_fail_runs(kernel, RUN_KERNEL_DIED, why);
    } else {
        kernel_fail_runs(kernel, RUN_STOPPED, "The kernel was ended.");
    }
}

static void kernel_look_starting(struct kernel *kernel, int64_t now)
{
    const struct kernels_options *options = &kernel->kernels->options;
    if (kernel->info_replied && kernel->iopub_seen) {
        kernel->state = KERNEL_READY;
        kernel->starts = 0;
        kernel->used_ms = now;
    } else if (now - kernel->started_ms >= options->start_timeout_ms) {
        char why[KERNEL_WHY_MAX];
        (void)snprintf(why, sizeof(why),
                       "The kernel `%s` did not get ready within %lld s (cells.start_timeout).",
                       kernel->spec.name, (long long)(options->start_timeout_ms / 1000));
        (void)holding_signal(&kernel->kernels->holding, kernel->id, SIGKILL);
        kernel_fail_start(kernel, why);
    } else if (kernel->pid != 0 && now - kernel->asked_ms >= LOOP_ASK_MS) {
        kernel->asked_ms = now;
        (void)kernel_send(kernel, CHANNEL_SHELL, "kernel_info_request", ng_str_of("{}"), NULL);
    }
}

static void kernel_look_ending(struct kernel *kernel, int64_t now)
{
    int64_t since = now - kernel->ending_ms;
    if (since >= 2 * (int64_t)KERNEL_SHUTDOWN_MS) {
        return; /* killed; its end will be told */
    }
    if (since >= KERNEL_SHUTDOWN_MS) {
        (void)holding_signal(&kernel->kernels->holding, kernel->id, SIGKILL);
        kernel->ending_ms = now - 2 * (int64_t)KERNEL_SHUTDOWN_MS;
    }
}

/* What runs is over; what waits runs on the new process. */
static void kernel_restart(struct kernel *kernel)
{
    kernel_shut_down(kernel, KERNEL_RESTARTING);
    if (kernel->execution.run != NULL) {
        kernel_cell_over(kernel, CELL_INTERRUPTED);
    }
    kernel->execution.active = false;
}

static void kernel_look(struct kernel *kernel)
{
    const struct kernels_options *options = &kernel->kernels->options;
    int64_t now = kernel_now_ms();
    char why[KERNEL_WHY_MAX];
    if (kernel->state == KERNEL_NEW && !kernel_launch(kernel, why)) {
        kernel_fail_start(kernel, why);
    }
    if (kernel->asked_restart && kernel->state == KERNEL_READY) {
        kernel->asked_restart = false;
        kernel_restart(kernel);
    }
    if (kernel->state == KERNEL_STARTING) {
        kernel_look_starting(kernel, now);
    } else if (kernel->state == KERNEL_RESTARTING || kernel->state == KERNEL_ENDING) {
        kernel_look_ending(kernel, now);
    }
    kernel_work(kernel);
    bool idle =
        kernel->state == KERNEL_READY && kernel->first == NULL && !kernel->execution.active;
    if (idle && (kernel->unused || now - kernel->used_ms >= options->idle_timeout_ms)) {
        kernel_shut_down(kernel, KERNEL_ENDING);
    }
}

/* ---- the thread ---- */

static struct kernel *by_id(struct kernels *kernels, uint32_t id)
{
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->id == id && kernel->state != KERNEL_GONE) {
            return kernel;
        }
    }
    return NULL;
}

static void take_news(struct kernels *kernels, const struct holding_news *news)
{
    struct kernel *kernel = by_id(kernels, news->id);
    char why[KERNEL_WHY_MAX];
    char text[128];
    if (kernel == NULL) {
        return;
    }
    if (news->kind == HOLDER_STARTED) {
        kernel->pid = news->value;
    } else if (news->kind == HOLDER_FAILED) {
        (void)snprintf(why, sizeof(why), "The kernel `%s` could not be started (%s): %s",
                       kernel->spec.name, kernel->spec.argv[0],
                       strerror_r(news->value, text, sizeof(text)));
        kernel_disconnect(kernel);
        kernel_fail_start(kernel, why);
    } else {
        kernel_process_ended(kernel, news->value, news->tail);
    }
}

/* The process that holds them is gone, and they with it. */
static void all_lost(struct kernels *kernels)
{
    holding_close(&kernels->holding);
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->state != KERNEL_GONE) {
            kernel->state = KERNEL_GONE;
            kernels_remember_lost(kernels, kernel->notebook);
            kernel_fail_runs(kernel, RUN_KERNEL_DIED,
                             "The process that holds the kernels ended.");
        }
    }
}

static void take_all_news(struct kernels *kernels)
{
    struct holding_news news;
    int rc = 0;
    while (kernels->holding.socket >= 0 &&
           (rc = holding_news(&kernels->holding, kernels->buffer, &news)) > 0) {
        take_news(kernels, &news);
    }
    if (rc < 0) {
        all_lost(kernels);
    }
}

static void free_gone(struct kernels *kernels)
{
    struct kernel **at = &kernels->first;
    while (*at != NULL) {
        struct kernel *kernel = *at;
        if (kernel->state == KERNEL_GONE) {
            *at = kernel->next;
            kernel_free(kernel);
        } else {
            at = &kernel->next;
        }
    }
}

static bool is_busy(const struct kernel *kernel)
{
    return kernel->state != KERNEL_READY || kernel->first != NULL || kernel->execution.active;
}

/* Everything that has come, and everything that is due. Returns how long to wait. */
static long turn(struct kernels *kernels)
{
    bool more = false;
    bool busy = false;
    take_all_news(kernels);
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        more = kernel_receive(kernel) || more;
        kernel_look(kernel);
        busy = busy || is_busy(kernel);
    }
    free_gone(kernels);
    return more ? 0 : busy ? LOOP_BUSY_MS : kernels->first != NULL ? LOOP_IDLE_MS : -1;
}

static size_t fill_items(struct kernels *kernels, zmq_pollitem_t *items, size_t max)
{
    size_t count = 0;
    items[count++] = (zmq_pollitem_t){.fd = kernels->wake, .events = ZMQ_POLLIN};
    if (kernels->holding.socket >= 0) {
        items[count++] = (zmq_pollitem_t){.fd = kernels->holding.socket, .events = ZMQ_POLLIN};
    }
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        for (int i = 0; i < CHANNELS && kernel->sockets[i] != NULL && count < max; i++) {
            items[count++] =
                (zmq_pollitem_t){.socket = kernel->sockets[i], .events = ZMQ_POLLIN};
        }
    }
    return count;
}

#define ITEMS_MAX (HOLDER_KERNELS_MAX * CHANNELS + 2)

static void *loop(void *user)
{
    struct kernels *kernels = user;
    zmq_pollitem_t *items = calloc(ITEMS_MAX, sizeof(*items));
    kernels_lock(kernels);
    while (items != NULL && !kernels->stopping) {
        long wait_ms = turn(kernels);
        size_t count = fill_items(kernels, items, ITEMS_MAX);
        uint64_t ignored;
        kernels_unlock(kernels);
        if (kernels->zmq.library != NULL) {
            (void)kernels->zmq.poll(items, (int)count, wait_ms);
            if ((items[0].revents & ZMQ_POLLIN) != 0) {
                (void)!read(kernels->wake, &ignored, sizeof(ignored));
            }
        } else {
            (void)!read(kernels->wake, &ignored, sizeof(ignored)); /* the first kernel wakes */
        }
        kernels_lock(kernels);
    }
    kernels_unlock(kernels);
    free(items);
    return NULL;
}

/* ---- opening and closing ---- */

struct kernels *kernels_new(const struct kernels_options *options)
{
    struct kernels *kernels = calloc(1, sizeof(*kernels));
    if (kernels == NULL) {
        return NULL;
    }
    kernels->options = *options;
    kernels->holding.socket = -1;
    kernels->wake = eventfd(0, EFD_CLOEXEC);
    if (kernels->wake < 0) {
        free(kernels);
        return NULL;
    }
    (void)pthread_mutex_init(&kernels->lock, NULL);
    return kernels;
}

/* With the lock held. The thread is begun with the first kernel. */
static bool begin_thread(struct kernels *kernels)
{
    if (!kernels->running) {
        (void)mkdir(kernels->options.runtime_folder, S_IRWXU);
        kernels->running = pthread_create(&kernels->thread, NULL, loop, kernels) == 0;
    }
    return kernels->running;
}

static void end_all(struct kernels *kernels)
{
    int64_t until = kernel_now_ms() + LOOP_STOP_MS;
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        kernel_fail_runs(kernel, RUN_STOPPED, "The gateway is ending.");
        kernel_shut_down(kernel, KERNEL_ENDING);
    }
    while (kernels->first != NULL && kernel_now_ms() < until) {
        zmq_pollitem_t item = {.fd = kernels->holding.socket, .events = ZMQ_POLLIN};
        kernels_unlock(kernels);
        (void)kernels->zmq.poll(&item, 1, 50);
        kernels_lock(kernels);
        take_all_news(kernels);
        free_gone(kernels);
    }
    while (kernels->first != NULL) {
        struct kernel *kernel = kernels->first;
        kernels->first = kernel->next;
        kernel_free(kernel);
    }
}

void kernels_free(struct kernels *kernels)
{
    if (kernels == NULL) {
        return;
    }
    kernels_lock(kernels);
    kernels->stopping = true;
    bool running = kernels->running;
    kernels_unlock(kernels);
    if (running) {
        kernels_wake(kernels);
        (void)pthread_join(kernels->thread, NULL);
        kernels_lock(kernels);
        end_all(kernels);
        kernels_unlock(kernels);
    }
    holding_close(&kernels->holding);
    if (kernels->context != NULL) {
        (void)kernels->zmq.ctx_term(kernels->context);
    }
    for (size_t i = 0; i < kernels->lost_count; i++) {
        free(kernels->lost[i]);
    }
    free(kernels->lost);
    (void)close(kernels->wake);
    (void)pthread_mutex_destroy(&kernels->lock);
    (void)rmdir(kernels->options.runtime_folder);
    free(kernels->options.runtime_folder);
    free(kernels);
}

/* ---- runs that come ---- */

static bool copy_list(char ***ret, char *const *list)
{
    size_t count = 0;
    while (list[count] != NULL) {
        count++;
    }
    *ret = calloc(count + 1, sizeof(**ret));
    for (size_t i = 0; *ret != NULL && i < count; i++) {
        (*ret)[i] = strdup(list[i]);
        if ((*ret)[i] == NULL) {
            return false;
        }
    }
    return *ret != NULL;
}

static bool copy_spec(struct kernelspec *ret, const struct kernelspec *spec)
{
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->name, spec->name, sizeof(ret->name));
    ret->message_interrupt = spec->message_interrupt;
    ret->folder = strdup(spec->folder);
    ret->display_name = strdup(spec->display_name);
    ret->language = strdup(spec->language);
    ret->prefix = strdup(spec->prefix);
    return copy_list(&ret->argv, spec->argv) && copy_list(&ret->env, spec->env) &&
           ret->folder != NULL && ret->display_name != NULL && ret->language != NULL &&
           ret->prefix != NULL;
}

static struct kernel *kernel_new(struct kernels *kernels, const struct run *run,
                                 const struct kernelspec *spec)
{
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return NULL;
    }
    kernel->kernels = kernels;
    kernel->notebook = strdup(run->notebook);
    kernel->folder = strdup(run->folder);
    kernel->fresh = true;
    if (kernel->notebook == NULL || kernel->folder == NULL || !copy_spec(&kernel->spec, spec)) {
        kernel_free(kernel);
        return NULL;
    }
    kernel->lost = kernels_forget_lost(kernels, run->notebook);
    kernel->next = kernels->first;
    kernels->first = kernel;
    return kernel;
}

/* At the cap the one that is idle longest goes; false: all are at work. */
static bool make_room(struct kernels *kernels)
{
    struct kernel *oldest = NULL;
    size_t count = 0;
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->state == KERNEL_GONE || kernel->state == KERNEL_ENDING) {
            continue;
        }
        count++;
        if (!is_busy(kernel) && (oldest == NULL || kernel->used_ms < oldest->used_ms)) {
            oldest = kernel;
        }
    }
    if (count < kernels->options.max_kernels) {
        return true;
    }
    if (oldest == NULL) {
        return false;
    }
    kernels_remember_lost(kernels, oldest->notebook);
    kernel_shut_down(oldest, KERNEL_ENDING);
    return true;
}

static void refuse(struct run *run, enum run_fault fault, const char *why)
{
    run->state = RUN_DONE;
    run->fault = fault;
    for (size_t i = 0; i < run->cell_count; i++) {
        run->cells[i].state = CELL_NOT_RUN;
    }
    (void)snprintf(run->why, sizeof(run->why), "%s", why);
    run->done(run, run->user);
}

static void queue(struct kernel *kernel, struct run *run)
{
    struct run **at = &kernel->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    run->next = NULL;
    run->state = kernel->state == KERNEL_READY ? RUN_QUEUED : RUN_STARTING;
    run->queued_ms = kernel_now_ms();
    kernel->unused = false;
    kernel->queued++;
    *at = run;
}

void kernels_run(struct kernels *kernels, struct run *run, const struct kernelspec *spec)
{
    kernels_lock(kernels);
    struct kernel *kernel = kernels_find(kernels, run->notebook);
    if (kernel != NULL && kernel->state == KERNEL_ENDING) {
        kernel = NULL; /* a new one, beside the one that ends */
    }
    if (kernels->stopping) {
        refuse(run, RUN_STOPPED, "The gateway is ending.");
    } else if (!begin_thread(kernels)) {
        refuse(run, RUN_NO_KERNEL, "A kernel could not be started: no thread could be made.");
    } else if (kernel != NULL && kernel->queued >= KERNEL_QUEUE_MAX) {
        refuse(run, RUN_BUSY, "Too many runs wait for the kernel of this notebook.");
    } else if (kernel == NULL && !make_room(kernels)) {
        refuse(run, RUN_BUSY,
               "All kernels are at work, and no more may be started (cells.max_kernels).");
    } else {
        bool starts = kernel == NULL;
        kernel = starts ? kernel_new(kernels, run, spec) : kernel;
        if (kernel == NULL) {
            refuse(run, RUN_NO_KERNEL, "Out of memory while starting a kernel.");
        } else {
            queue(kernel, run);
        }
    }
    kernels_unlock(kernels);
    kernels_wake(kernels);
}
