/* SPDX-License-Identifier: MIT */
/* kernel_loop.c - the kernel thread and the table of kernels. */
#include "core/base/array.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "kernel_state.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Polling interval while a kernel is busy, and otherwise. */
#define LOOP_BUSY_MS 10
#define LOOP_IDLE_MS 500
/* Pause in which other threads can take the lock. */
#define LOOP_YIELD_NS 200000
/* Time for all kernels to exit when the gateway stops. */
#define LOOP_STOP_MS 3000
#define LOST_MAX 1024
/* Below the data directory. */
#define LOOP_FOLDER "kernels"

void kernels_lock(struct kernels *kernels)
{
    (void)atomic_fetch_add(&kernels->lock_waiters, 1);
    lock_take(&kernels->lock);
    (void)atomic_fetch_sub(&kernels->lock_waiters, 1);
}

void kernels_unlock(struct kernels *kernels)
{
    lock_release(&kernels->lock);
}

void kernels_wake(struct kernels *kernels)
{
    uint64_t one = 1;
    (void)!write(kernels->wake, &one, sizeof(one));
}

bool kernel_takes_runs(const struct kernel *kernel)
{
    return kernel->state <= KERNEL_RESTARTING && kernel->end_request != END_LOST;
}

bool kernel_is_busy(const struct kernel *kernel)
{
    return kernel->state != KERNEL_READY || kernel->first != NULL || kernel->execution.active;
}

struct kernel *kernels_find(struct kernels *kernels, struct ng_str notebook)
{
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel_takes_runs(kernel) && str_is(notebook, kernel->notebook)) {
            return kernel;
        }
    }
    return NULL;
}

/* ---- ended runs ---- */

void kernels_ended(struct kernels *kernels, struct run *run)
{
    struct run **at = &kernels->ended;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    run->next = NULL;
    *at = run;
}

void kernels_notify_ended(struct kernels *kernels)
{
    kernels_lock(kernels);
    struct run *run = kernels->ended;
    kernels->ended = NULL;
    kernels_unlock(kernels);
    while (run != NULL) {
        struct run *next = run->next;
        run->next = NULL;
        run->done(run, run->user); /* may free it */
        run = next;
    }
}

/* ---- kernels that exited by themselves ---- */

void kernels_remember_lost(struct kernels *kernels, const char *notebook)
{
    (void)kernels_forget_lost(kernels, notebook); /* avoids duplicates */
    if (array_reserve((void **)&kernels->lost, &kernels->lost_cap, kernels->lost_count + 1,
                      sizeof(*kernels->lost), LOST_MAX) != NG_OK) {
        return;
    }
    kernels->lost[kernels->lost_count] = strdup(notebook);
    kernels->lost_count += kernels->lost[kernels->lost_count] != NULL;
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

/* ---- the thread ---- */

static struct kernel *find_by_id(struct kernels *kernels, uint32_t id)
{
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        if (kernel->id == id && kernel->state != KERNEL_GONE) {
            return kernel;
        }
    }
    return NULL;
}

static void handle_event(struct kernels *kernels, const struct supervisor_event *event)
{
    struct kernel *kernel = find_by_id(kernels, event->id);
    char why[KERNEL_WHY_MAX];
    char text[128];
    if (kernel == NULL) {
        return;
    }
    if (event->kind == SUPERVISOR_STARTED) {
        kernel->pid = event->value;
    } else if (event->kind == SUPERVISOR_FAILED) {
        (void)snprintf(why, sizeof(why), "The kernel `%s` could not be started (%s): %s",
                       kernel->spec.name, kernel->spec.argv[0],
                       strerror_r(event->value, text, sizeof(text)));
        kernel_fail_start(kernel, why);
    } else {
        kernel_process_ended(kernel, event->value, event->tail);
    }
}

/* The supervisor exited, and all kernels with it. */
static void supervisor_lost(struct kernels *kernels)
{
    kernels_unlock(kernels);
    supervisor_close(&kernels->supervisor);
    supervisor_sweep(&kernels->supervisor);
    kernels_lock(kernels);
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        /* A new kernel will be launched by the next supervisor. */
        if (kernel->state != KERNEL_GONE && kernel->state != KERNEL_NEW) {
            kernel_set_state(kernel, KERNEL_GONE);
            kernels_remember_lost(kernels, kernel->notebook);
            kernel_fail_runs(kernel, RUN_KERNEL_DIED,
                             "the supervisor of kernels ended, and all kernels with it");
        }
    }
}

static void handle_events(struct kernels *kernels)
{
    struct supervisor_event event;
    int rc = 0;
    while (kernels->supervisor.socket >= 0 &&
           (rc = supervisor_receive(&kernels->supervisor, kernels->buffer, &event)) > 0) {
        handle_event(kernels, &event);
    }
    if (rc < 0) {
        supervisor_lost(kernels);
    }
}

/* Removes kernels from the table with the lock held, and frees them without it. */
static void free_gone(struct kernels *kernels)
{
    struct kernel **at = &kernels->first;
    struct kernel *gone = NULL;
    while (*at != NULL) {
        struct kernel *kernel = *at;
        if (kernel->state == KERNEL_GONE) {
            *at = kernel->next;
            kernel->next = gone;
            gone = kernel;
        } else {
            at = &kernel->next;
        }
    }
    if (gone == NULL) {
        return;
    }
    kernels_unlock(kernels);
    while (gone != NULL) {
        struct kernel *next = gone->next;
        kernel_free(gone);
        gone = next;
    }
    kernels_lock(kernels);
}

/* The supervisor exits with the last kernel: while one is running, the gateway treats callers
 * that it cannot inspect as its child processes. It may wait long for a process that cannot be
 * killed, so do not wait for it here. True: one is still exiting. */
static bool detach_idle_supervisor(struct kernels *kernels)
{
    if (kernels->first == NULL) {
        supervisor_detach(&kernels->supervisor);
    }
    return supervisor_is_detaching(&kernels->supervisor);
}

/* Handles received messages and due events. Returns the time to wait in ms. */
static long step(struct kernels *kernels)
{
    bool more = false;
    bool busy = false;
    handle_events(kernels);
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        more = kernel_receive(kernel) || more;
        kernel_advance(kernel);
        busy = busy || kernel_is_busy(kernel) || kernel_has_late(kernel);
    }
    free_gone(kernels);
    bool detaching = detach_idle_supervisor(kernels);
    if (more) {
        return 0;
    }
    if (busy) {
        return LOOP_BUSY_MS;
    }
    if (kernels->first != NULL || detaching) {
        return LOOP_IDLE_MS;
    }
    return -1;
}

static size_t fill_items(struct kernels *kernels, zmq_pollitem_t *items, size_t max)
{
    size_t count = 0;
    items[count++] = (zmq_pollitem_t){.fd = kernels->wake, .events = ZMQ_POLLIN};
    if (kernels->supervisor.socket >= 0) {
        items[count++] =
            (zmq_pollitem_t){.fd = kernels->supervisor.socket, .events = ZMQ_POLLIN};
    }
    for (struct kernel *kernel = kernels->first; kernel != NULL; kernel = kernel->next) {
        for (int i = 0; i < CHANNELS && kernel->sockets[i] != NULL && count < max; i++) {
            items[count++] =
                (zmq_pollitem_t){.socket = kernel->sockets[i], .events = ZMQ_POLLIN};
        }
    }
    return count;
}

#define ITEMS_MAX (SUPERVISOR_KERNELS_MAX * CHANNELS + 2)

/* Kernels run in another working directory: make the path absolute. */
static void make_folder(struct kernels *kernels)
{
    (void)mkdir(kernels->folder, S_IRWXU);
    char *whole = realpath(kernels->folder, NULL);
    if (whole != NULL) {
        free(kernels->folder);
        kernels->folder = whole;
    }
}

static void *loop(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-kernels");
    struct kernels *kernels = user;
    zmq_pollitem_t *items = calloc(ITEMS_MAX, sizeof(*items));
    make_folder(kernels);
    kernels_lock(kernels);
    while (items != NULL && !kernels->stopping) {
        long wait_ms = step(kernels);
        size_t count = fill_items(kernels, items, ITEMS_MAX);
        uint64_t ignored;
        bool loaded = kernels->zmq.library != NULL;
        kernels_unlock(kernels);
        kernels_notify_ended(kernels);
        if (atomic_load(&kernels->lock_waiters) > 0) {
            const struct timespec yield = {0, LOOP_YIELD_NS};
            (void)nanosleep(&yield, NULL);
        }
        if (loaded) {
            (void)kernels->zmq.poll(items, (int)count, wait_ms);
            if ((items[0].revents & ZMQ_POLLIN) != 0) {
                (void)!read(kernels->wake, &ignored, sizeof(ignored));
            }
        } else {
            (void)!read(kernels->wake, &ignored, sizeof(ignored)); /* until the first kernel */
        }
        kernels_lock(kernels);
    }
    kernels_unlock(kernels);
    free(items);
    return NULL;
}

/* ---- construction ---- */

/* Removes connection files, and processes, of a gateway that crashed: the data directory has
 * only one gateway at a time. */
static void clear_folder(struct kernels *kernels)
{
    char path[4096];
    const char *folder = kernels->folder;
    const struct dirent *entry;
    DIR *list = opendir(folder);
    bool left = false;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        int len = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "kernel-", 7) == 0 && len > 0 && len < (int)sizeof(path)) {
            left = true;
            (void)unlink(path);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    if (left) { /* inspecting all processes is slow */
        supervisor_sweep_stale(&kernels->supervisor);
    }
}

static bool name_folders(struct kernels *kernels, struct ng_str data)
{
    size_t size = data.len + sizeof("/" LOOP_FOLDER);
    char *folder = malloc(size);
    if (folder == NULL) {
        return false;
    }
    (void)snprintf(folder, size, "%.*s", (int)data.len, data.data);
    supervisor_init(&kernels->supervisor, folder);
    (void)snprintf(folder, size, "%.*s/" LOOP_FOLDER, (int)data.len, data.data);
    kernels->folder = folder;
    return true;
}

struct kernels *kernels_new(const struct kernels_options *options)
{
    struct kernels *kernels = calloc(1, sizeof(*kernels));
    if (kernels == NULL) {
        return NULL;
    }
    kernels->options = *options;
    kernels->wake = eventfd(0, EFD_CLOEXEC);
    if (kernels->wake < 0 || !name_folders(kernels, options->data_folder)) {
        if (kernels->wake >= 0) {
            (void)close(kernels->wake);
        }
        free(kernels);
        return NULL;
    }
    lock_init(&kernels->lock, LOCK_CELLS_KERNELS);
    clear_folder(kernels);
    return kernels;
}

bool kernels_begin(struct kernels *kernels)
{
    if (!kernels->running) {
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
    free_gone(kernels);
    while (kernels->first != NULL && kernel_now_ms() < until) {
        struct pollfd item = {.fd = kernels->supervisor.socket, .events = POLLIN};
        kernels_unlock(kernels);
        (void)poll(&item, 1, 50);
        kernels_lock(kernels);
        handle_events(kernels);
        free_gone(kernels);
    }
    while (kernels->first != NULL) {
        struct kernel *kernel = kernels->first;
        kernels->first = kernel->next;
        kernel_advance_late(kernel, true);
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
        kernels_notify_ended(kernels);
    }
    supervisor_close(&kernels->supervisor);
    if (kernels->context != NULL) {
        (void)kernels->zmq.ctx_term(kernels->context);
    }
    for (size_t i = 0; i < kernels->lost_count; i++) {
        free(kernels->lost[i]);
    }
    free(kernels->lost);
    (void)close(kernels->wake);
    lock_done(&kernels->lock);
    (void)rmdir(kernels->folder);
    free(kernels->folder);
    free(kernels);
}
