/* SPDX-License-Identifier: MIT */
/* kernel_state.h - what the parts of the kernels' thread (kernel_*.c) share. All of it is used
 * with the lock held; sockets by that thread alone. */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNEL_STATE_H
#define NOTEGATE_PLUGIN_CELLS_KERNEL_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/lock.h"
#include "kernel.h"
#include "supervisor/supervisor_client.h"
#include "zeromq.h"

enum kernel_state {
    KERNEL_NEW = 0, /* to be launched by the thread, which does it without the lock */
    KERNEL_STARTING = 1,
    KERNEL_READY = 2,
    KERNEL_RESTARTING = 3, /* the old process is to end, then a new one begins */
    KERNEL_ENDING = 4,
    KERNEL_DYING = 5, /* the process is gone, what it sent is still taken */
    KERNEL_GONE = 6   /* to be freed */
};

enum kernel_channel { CHANNEL_SHELL, CHANNEL_CONTROL, CHANNEL_IOPUB, CHANNEL_STDIN, CHANNELS };

/* A cell at work. Its run may be gone: then the kernel is only waited for. */
struct execution {
    bool active;
    char id[WIRE_ID_SIZE]; /* of the request */
    struct run *run;
    bool replied, idle, aborted, failed;
    bool begun;          /* the kernel has said that it runs the code */
    bool exits;          /* the code told the kernel to end */
    bool error_on_iopub; /* on iopub */
    /* 0: not yet. done: reply and idle have come; heard: output came after that. */
    int64_t replied_ms, done_ms, output_ms;
    int64_t idle_ms, interrupted_ms;
    struct nb_text error; /* the content of a reply that says error */
};

/* The cell before, of the same run: what it put out may come late. */
struct previous_cell {
    char id[WIRE_ID_SIZE];
    const struct run *run; /* compared, never followed */
    size_t at;
};

/* The last cell of the run before: threads of it may put out more after its end. That is kept
 * for the next run, which saves and tells it. */
struct late_output {
    char id[WIRE_ID_SIZE]; /* of the request; "": there is none */
    struct run_cell cell;
    struct run_patches patches; /* of displays, wherever they are */
};

/* Where something with a display id was shown. */
struct display_place {
    char id[OUTPUT_DISPLAY_ID_MAX + 1];
    char handle[NB_ID_MAX + 16];
    size_t ordinal;
    size_t bytes; /* of this output */
    size_t rest;  /* how many more its cell may have */
};

#define DISPLAY_PLACES_MAX 1024

struct kernel {
    struct kernels *kernels;
    struct kernel *next;
    uint32_t id; /* for the holder; anew with each process */
    char *notebook, *folder;
    struct kernelspec spec;
    enum kernel_state state;
    int64_t pid;
    char connection_file[4096];
    struct wire_key key;
    char session[WIRE_ID_SIZE];
    void *sockets[CHANNELS];
    bool info_replied, iopub_seen;
    bool lost;      /* the one before ended by itself: told to the next run */
    bool restarted; /* it was ended by a tool: told, too */
    bool fresh;     /* no run has used it yet */
    bool interrupt_requested, restart_requested,
        end_requested; /* by others: the thread does it */
    unsigned starts;
    int64_t started_ms, info_request_ms, ready_ms, used_ms, ending_ms, output_ms;
    int end_signal;                   /* the last that was sent so that it ends */
    char exit_reason[KERNEL_WHY_MAX]; /* its process ended */
    struct execution execution;
    struct previous_cell previous;
    struct late_output late;
    struct run *first; /* the one at work, then those that wait */
    size_t queued;
    struct display_place *places;
    size_t place_count;
};

struct kernels {
    struct kernels_options options;
    char *folder; /* of the connection files, mode 0700; the thread's own */
    struct lock lock;
    atomic_int lock_waiters; /* threads that want the lock: the kernels' own lets them */
    pthread_t thread;
    bool running; /* the thread */
    bool stopping;
    int wake; /* eventfd */
    struct zeromq zmq;
    void *context;
    struct supervisor_client supervisor;
    struct kernel *first;
    struct run *ended; /* runs that are over and whose owners are to be told */
    uint32_t last_id;
    /* Notebooks whose kernel ended by itself, for the next run's answer. */
    uint64_t runs; /* that were queued */
    char **lost;
    size_t lost_count;
    char buffer[SUPERVISOR_PACKET_MAX];
};

int64_t kernel_now_ms(void);  /* steady clock */
int64_t kernel_time_ms(void); /* Unix time */

/* ---- kernel_launch.c ---- */

/* Connection file, sockets, process; what is left of one before goes. By the thread, without
 * the lock, while the kernel is new. false: `why` says what did not go. */
bool kernel_launch(struct kernel *kernel, char why[KERNEL_WHY_MAX]);
/* Sockets and connection file of a process that is gone. Needs no lock. */
void kernel_disconnect(struct kernel *kernel);

/* ---- kernel_talk.c: messages ---- */

/* false: it could not be sent. ret_id: of the message, or NULL. */
bool kernel_send(struct kernel *kernel, enum kernel_channel channel, const char *type,
                 struct ng_str content, char ret_id[WIRE_ID_SIZE]);
/* Would a question of the kernel come here? It is lost where that channel is not connected. */
bool kernel_has_stdin(struct kernel *kernel);
/* Takes what has come, some at a time; true: there may be more. */
bool kernel_receive(struct kernel *kernel);
void kernel_interrupt(struct kernel *kernel);

/* ---- kernel_advance_runs.c: runs on one kernel ---- */

/* Whatever is due: the next cell, a timeout, a cancellation, an answer that does not come. */
void kernel_advance_runs(struct kernel *kernel);
/* The run at the head of the queue ends so. */
void kernel_end_run(struct kernel *kernel, enum run_fault fault, const char *why);
/* The process is gone: what ran and what waits is told. */
void kernel_fail_runs(struct kernel *kernel, enum run_fault fault, const char *why);
/* The cell that runs is over, in this state. */
void kernel_cell_over(struct kernel *kernel, enum cell_state state);

/* ---- kernel_output.c: what cells put out ---- */

void kernel_take_output(struct kernel *kernel, const struct wire_message *message);
/* Displays of a cell that is over, which later ones may change. */
void kernel_keep_displays(struct kernel *kernel, const struct run_cell *cell);
/* Threads of this cell, whose request had this id, may go on. */
void kernel_expect_late(struct kernel *kernel, const char *id, const struct run_cell *cell);
/* What came after the run before goes to this one: changes of displays when it begins, the rest
 * when it ends. */
void kernel_give_patches(struct kernel *kernel, struct run *run);
void kernel_give_late(struct kernel *kernel, struct run *run);
void kernel_drop_late(struct kernel *kernel);

/* ---- kernel_life.c ---- */

void kernel_free(struct kernel *kernel);
/* It never got ready: all its runs are told why. */
void kernel_fail_start(struct kernel *kernel, const char *why);
/* Asks the process to end; it is killed when it does not. state: what it is until then. Only
 * by the kernels' thread, or when that has ended: it uses sockets. */
void kernel_shut_down(struct kernel *kernel, enum kernel_state state);
void kernel_process_ended(struct kernel *kernel, int status, struct ng_str tail);
/* Whatever is due. */
void kernel_advance(struct kernel *kernel);

/* ---- kernel_loop.c ---- */

void kernels_wake(struct kernels *kernels);
/* The thread is begun with the first kernel. false: it could not be. */
bool kernels_begin(struct kernels *kernels);
/* The run is over; its owner is told by the next kernels_notify_ended(). */
void kernels_ended(struct kernels *kernels, struct run *run);
/* Without the lock. */
void kernels_notify_ended(struct kernels *kernels);
/* Not one that is about to end. */
bool kernel_takes_runs(const struct kernel *kernel);
/* A run has begun and waits for what its next cell holds by now. */
bool kernel_is_between_cells(const struct kernel *kernel);
bool kernel_is_busy(const struct kernel *kernel);
/* The one that takes runs of this notebook; NULL: none. */
struct kernel *kernels_find(struct kernels *kernels, const char *notebook);
void kernels_remember_lost(struct kernels *kernels, const char *notebook);
bool kernels_forget_lost(struct kernels *kernels, const char *notebook);

#endif
