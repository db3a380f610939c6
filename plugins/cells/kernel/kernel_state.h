/* SPDX-License-Identifier: MIT */
/* kernel_state.h - state shared by the files of the kernel thread (kernel_*.c). The lock guards
 * all of it; sockets are used by that thread alone. */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNEL_STATE_H
#define NOTEGATE_PLUGIN_CELLS_KERNEL_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "kernel.h"
#include "supervisor/supervisor_client.h"
#include "zeromq.h"

/*
 * from        event                                                   to
 * NEW         launched                                                STARTING
 * STARTING    answers on all channels                                 READY
 * STARTING    exits early, fewer than KERNEL_STARTS_MAX attempts      NEW
 * STARTING    restart tool                                            RESTARTING
 * READY       restart tool                                            RESTARTING
 * READY       exits by itself                                         DYING
 * RESTARTING  the old process has exited                              NEW
 * STARTING, READY, RESTARTING, ENDING   limit, idle, gateway stops    ENDING
 * any but GONE   start failed, exited, drained, supervisor lost       GONE
 *
 * kernel_set_state() asserts this table.
 */
enum kernel_state {
    KERNEL_NEW = 0, /* the kernel thread launches it, without the lock */
    KERNEL_STARTING = 1,
    KERNEL_READY = 2,
    KERNEL_RESTARTING = 3, /* the old process is shut down, a new one follows */
    KERNEL_ENDING = 4,
    KERNEL_DYING = 5, /* the process has exited, its last messages are still read */
    KERNEL_GONE = 6   /* to be freed */
};

enum kernel_end {
    END_NONE = 0,
    END_IDLE = 1, /* another notebook needs its place */
    END_LOST = 2  /* kernels_lose() */
};

enum reply { REPLY_NONE = 0, REPLY_OK = 1, REPLY_ERROR = 2, REPLY_ABORTED = 3 };

enum kernel_channel { CHANNEL_SHELL, CHANNEL_CONTROL, CHANNEL_IOPUB, CHANNEL_STDIN, CHANNELS };

/* The running cell. Without a run (it has ended): only wait for the kernel. */
struct execution {
    bool active;
    char id[WIRE_ID_SIZE]; /* msg_id of the request */
    /* Of a stuck cell: a request behind it. Kernels reply in order, so its reply shows that the
     * kernel is free, though it never replied for the cell. */
    char probe[WIRE_ID_SIZE];
    struct run *run;
    enum reply reply;
    bool begun;          /* execute_input has come: the kernel runs the code */
    bool exits;          /* the code told the kernel to end */
    bool error_on_iopub; /* the error was published on iopub */
    /* 0: not yet. done_ms: reply and idle have both arrived; output_ms: last output. */
    int64_t replied_ms, done_ms, output_ms;
    int64_t idle_ms, interrupted_ms;
    struct nb_text error; /* content of a reply with the status error */
};

/* The preceding cell of the same run: its output may arrive late. */
struct previous_cell {
    char id[WIRE_ID_SIZE];
    const struct run *run; /* compared only, never dereferenced */
    size_t at;
};

/* The last cell of the previous run: its threads may produce output after its end, which the
 * next run reports and saves. */
struct late_output {
    char id[WIRE_ID_SIZE]; /* msg_id of its request; "": none */
    struct run_cell cell;
    struct run_patches patches; /* updates of displays in any cell */
    struct run *watch;          /* kernels_watch_late(); NULL: none */
    bool unsaved;               /* output has come that no watch has got */
    int64_t since_ms;           /* of the oldest unsaved output */
    int saves;                  /* times that a watch got it */
};

/* The position of an output with a display id. */
struct display_place {
    char id[OUTPUT_DISPLAY_ID_MAX + 1];
    char handle[NB_ID_MAX + 16];
    size_t ordinal;
    size_t bytes; /* size of this output */
    size_t rest;  /* remaining quota of its cell for updates after its run */
};

#define DISPLAY_PLACES_MAX 1024
/* The four channels, and the heartbeat, which is not used. */
#define KERNEL_PORTS (CHANNELS + 1)

struct kernel {
    struct kernels *kernels;
    struct kernel *next;
    uint32_t id; /* for the supervisor; new for each process */
    char *notebook, *folder;
    struct kernelspec spec;
    enum kernel_state state;
    int64_t pid;
    char connection_file[4096];
    struct wire_key key;
    char session[WIRE_ID_SIZE];
    void *sockets[CHANNELS];
    /* Bound to the kernel's ports while it starts, so that no other program takes one. */
    int held_ports[KERNEL_PORTS];
    size_t held_count;
    bool info_replied, iopub_seen;
    enum kernel_origin origin; /* ORIGIN_USED as soon as a run has used the process */
    bool interrupt_requested, restart_requested; /* for the kernel thread, as end_request */
    enum kernel_end end_request;
    unsigned starts;
    int64_t started_ms, info_request_ms, ready_ms, used_ms, ending_ms, received_ms;
    int end_signal;                   /* last signal of the shutdown sequence */
    char exit_reason[KERNEL_WHY_MAX]; /* of the last process */
    struct execution execution;
    struct previous_cell previous;
    struct late_output late;
    struct run *first; /* the running run, then the queue */
    size_t queued;
    struct display_place *places;
    size_t place_count;
};

struct kernels {
    struct kernels_options options;
    char *folder; /* connection files, mode 0700; kernel thread only */
    struct lock lock;
    atomic_int
        lock_waiters; /* threads that wait for the lock: the kernel thread yields to them */
    pthread_t thread;
    bool running; /* the kernel thread exists */
    bool stopping;
    int wake; /* eventfd */
    struct zeromq zmq;
    void *context;
    struct supervisor_client supervisor;
    struct kernel *first;
    struct run *ended; /* ended runs whose done() is due */
    uint32_t last_id;
    /* Notebooks whose kernel exited by itself, for the answer of the next run. */
    uint64_t runs; /* created so far */
    char **lost;
    size_t lost_count, lost_cap;
    char buffer[SUPERVISOR_PACKET_MAX];
};

static inline int64_t kernel_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* ---- kernel_launch.c ---- */

/* Creates connection file, sockets and process after releasing those of an earlier process.
 * Called by the kernel thread without the lock, in KERNEL_NEW. False: `why` has the reason. */
bool kernel_launch(struct kernel *kernel, char why[KERNEL_WHY_MAX]);
/* The kernel has its ports, or is gone. */
void kernel_release_ports(struct kernel *kernel);
/* Releases sockets, ports and connection file of a process that is gone. Needs no lock. */
void kernel_disconnect(struct kernel *kernel);

/* ---- kernel_messages.c ---- */

/* False: not sent. ret_id: msg_id of the message, or NULL. */
bool kernel_send(struct kernel *kernel, enum kernel_channel channel, const char *type,
                 struct ng_str content, char ret_id[WIRE_ID_SIZE]);
/* Is the stdin channel connected? Otherwise input requests of the kernel would be lost. */
bool kernel_has_stdin(struct kernel *kernel);
/* Handles a batch of received messages. True: there may be more. */
bool kernel_receive(struct kernel *kernel);
void kernel_interrupt(struct kernel *kernel);

/* ---- kernel_runs.c ---- */

/* Handles due events: next cell, timeout, cancellation, missing reply. */
void kernel_advance_runs(struct kernel *kernel);
/* Ends the run at the head of the queue. */
void kernel_end_run(struct kernel *kernel, enum run_fault fault, const char *why);
/* Ends all runs: the process is gone. */
void kernel_fail_runs(struct kernel *kernel, enum run_fault fault, const char *why);
/* Ends the running cell. */
void kernel_cell_over(struct kernel *kernel, enum cell_state state);

/* ---- kernel_output.c ---- */

void kernel_take_output(struct kernel *kernel, const struct wire_message *message);
/* Remembers the displays of a cell whose run has ended, which later runs may update. */
void kernel_keep_displays(struct kernel *kernel, const struct run_cell *cell);
/* Accepts late output of threads of this cell, whose request had this id. */
void kernel_expect_late(struct kernel *kernel, const char *id, const struct run_cell *cell);
/* Hand late output of the previous run to this one: display updates when it begins, the rest
 * when it ends. */
void kernel_give_patches(struct kernel *kernel, struct run *run);
void kernel_give_late(struct kernel *kernel, struct run *run);
void kernel_drop_late(struct kernel *kernel);
/* Late output is to be saved, and a watch waits for it. */
bool kernel_has_late(const struct kernel *kernel);
/* Hands it to the watch: when it is due, or, with `ends`, whatever there is. */
void kernel_advance_late(struct kernel *kernel, bool ends);

/* ---- kernel_lifecycle.c ---- */

void kernel_set_state(struct kernel *kernel, enum kernel_state state);
void kernel_free(struct kernel *kernel);
/* Ends all runs: the kernel never became ready. */
void kernel_fail_start(struct kernel *kernel, const char *why);
/* Requests the process to exit; it is killed after a timeout. Uses sockets: only by the kernel
 * thread, or after its end. */
void kernel_shut_down(struct kernel *kernel, enum kernel_state state);
void kernel_process_ended(struct kernel *kernel, int status, struct ng_str tail);
/* Handles due events. */
void kernel_advance(struct kernel *kernel);

/* ---- kernel_loop.c ---- */

void kernels_wake(struct kernels *kernels);
/* Starts the kernel thread with the first kernel. False: it could not be started. */
bool kernels_begin(struct kernels *kernels);
/* Queues the run for kernels_notify_ended(). */
void kernels_ended(struct kernels *kernels, struct run *run);
/* Calls done() of ended runs. Without the lock. */
void kernels_notify_ended(struct kernels *kernels);
/* False from ENDING on, and if it was lost. */
bool kernel_takes_runs(const struct kernel *kernel);
/* A run has begun and waits for the present source of its next cell. */
bool kernel_is_between_cells(const struct kernel *kernel);
bool kernel_is_busy(const struct kernel *kernel);
/* The kernel of the notebook that takes runs; NULL: none. */
struct kernel *kernels_find(struct kernels *kernels, struct ng_str notebook);
void kernels_remember_lost(struct kernels *kernels, const char *notebook);
bool kernels_forget_lost(struct kernels *kernels, const char *notebook);

#endif
