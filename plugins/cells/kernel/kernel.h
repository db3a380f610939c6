/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the kernels of a gateway, one per notebook: started by the first run, given the
 * queued runs one after the other, shut down when idle or when the gateway stops.
 *
 * One thread (kernel_loop.c) exchanges messages with all kernels and never blocks on one.
 * Functions may be called from any thread unless their comment says otherwise. Read a run that
 * is not done yet with kernels_lock() held.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNEL_H
#define NOTEGATE_PLUGIN_CELLS_KERNEL_H

#include "kernelspec.h"
#include "output.h"

/* Runs that may be queued for one kernel. */
#define KERNEL_QUEUE_MAX 64
/* Time for a kernel to react to an interrupt; then the cell is reported as stuck. */
#define KERNEL_INTERRUPT_MS 5000
/* Time for a kernel to exit after a shutdown request before it is killed. */
#define KERNEL_SHUTDOWN_MS 5000
/* Grace period for output after the last cell is done; renewed by output up to the maximum. */
#define KERNEL_GRACE_MS 40
#define KERNEL_GRACE_MAX_MS 400
/* Time for a kernel to exit after its code called quit(). */
#define KERNEL_QUIT_MS 5000
/* Interval of progress reports. */
#define KERNEL_PROGRESS_MS 2000
/* A kernel that has not begun with a cell would miss an interrupt: it is delayed by this much
 * at most. */
#define KERNEL_BEGIN_MS 1000
/* Time between the reply and the idle status, before which all output has arrived. */
#define KERNEL_IDLE_WAIT_MS 4000
/* An interrupt may end the code that would have replied: idle and no reply for this long. */
#define KERNEL_REPLY_WAIT_MS 1000
/* Late output is saved after this time. It doubles with each save, so often at most, as a
 * thread may print for hours. */
#define KERNEL_LATE_MS 200
#define KERNEL_LATE_DOUBLINGS 6
/* Time to read the present source of a cell; then the known source is executed. */
#define KERNEL_SOURCE_MS 5000
/* Start attempts of a kernel that exits before it is ready. */
#define KERNEL_STARTS_MAX 3
#define KERNEL_WHY_MAX 1024
/* Descriptors that must be free before a kernel is started: libzmq aborts when they run out. */
#define KERNEL_DESCRIPTORS 64

struct kernels;
struct kernel;

enum cell_state {
    CELL_PENDING = 0,
    CELL_RUNNING = 1,
    CELL_OK = 2,
    CELL_ERROR = 3,       /* it raised an exception */
    CELL_TIMED_OUT = 4,   /* its time was over, and it was interrupted */
    CELL_INTERRUPTED = 5, /* cancelled, interrupted, or its kernel was restarted */
    CELL_STUCK = 6,       /* interrupted without effect */
    CELL_DIED = 7,        /* its kernel exited */
    CELL_NOT_RUN = 8      /* an earlier cell failed */
};

/*
 * The source that a cell is executed with is read again from the file when its turn comes:
 *
 * from       event                                                to
 * INITIAL    run->request_source() accepts                        REQUESTED
 * INITIAL    there is no request_source(), or it declines         CURRENT
 * REQUESTED  kernels_set_source(): the file has the same source   CURRENT
 * REQUESTED  kernels_set_source(): the file has another source    CHANGED
 * REQUESTED  kernels_set_source(): no code cell any more          GONE
 *
 * The cell is executed in CURRENT, in CHANGED, and in REQUESTED after KERNEL_SOURCE_MS.
 */
enum source_state {
    SOURCE_INITIAL = 0,
    SOURCE_REQUESTED = 1,
    SOURCE_CURRENT = 2,
    SOURCE_CHANGED = 3,
    SOURCE_GONE = 4
};

struct run_cell {
    char handle[NB_ID_MAX + 16]; /* for the caller: id, or "index:N" */
    size_t index;                /* position when the run was created */
    struct nb_text source;
    bool may_raise; /* tag raises-exception: its error does not stop the run */
    enum source_state source_state;
    int64_t source_requested_ms;
    enum cell_state state;
    struct outputs outputs;
    int64_t count;                /* execution_count; -1: none */
    int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
    struct nb_text page;          /* pager text of the kernel, shown beside the outputs */
    size_t before;                /* of late output: outputs of its cell before it */
};

/* A display of a cell of an earlier run that the kernel has updated. */
struct run_patch {
    char handle[NB_ID_MAX + 16];
    size_t ordinal; /* index of the output in its cell */
    struct nb_text data, metadata;
};

struct run_patches {
    struct run_patch *items;
    size_t count;
};

enum run_state { RUN_QUEUED = 0, RUN_STARTING = 1, RUN_RUNNING = 2, RUN_DONE = 3 };

enum run_fault {
    RUN_FINE = 0,
    RUN_NO_KERNEL = 1, /* the kernel could not be started: `why` */
    RUN_BUSY = 2,      /* too many kernels, or too many queued runs */
    RUN_KERNEL_DIED = 3,
    RUN_TIMED_OUT = 4,
    RUN_CANCELLED = 5,
    RUN_STOPPED = 6, /* the gateway stops */
    RUN_ABORTED = 7, /* the kernel aborted a cell without running it */
    RUN_LOST = 8     /* kernels_lose() */
};

/* State that the kernel's process has from earlier runs. */
enum kernel_origin {
    ORIGIN_USED = 0,         /* an earlier run used this process */
    ORIGIN_STARTED = 1,      /* first process of this notebook */
    ORIGIN_AFTER_LOSS = 2,   /* the previous process exited by itself */
    ORIGIN_AFTER_RESTART = 3 /* a tool restarted the kernel */
};

struct run {
    /* Set by the caller. */
    char *notebook;  /* real path: identifies the kernel */
    char *folder;    /* working directory of the kernel */
    uint64_t number; /* unique; assigned by kernels_run() */
    struct run_cell *cells;
    size_t cell_count;
    int64_t timeout_ms;
    size_t max_saved_output;
    /* Callbacks of the kernel thread, with the lock held: they must be quick and call no
     * function of kernels_*. Both may be NULL. `done` is monotonic: complete cells, plus a
     * fraction of the running one. */
    bool (*cancelled)(void *user);
    void (*progress)(void *user, double done, size_t total, const char *text);
    /* Requests the present source of a cell. True: kernels_set_source() follows. */
    bool (*request_source)(void *user, size_t cell);
    /* Last callback: the run belongs to the caller again. Called without the lock. */
    void (*done)(struct run *run, void *user);
    void *user;

    /* Set by the kernel thread. */
    enum run_state state;
    enum run_fault fault;
    char why[KERNEL_WHY_MAX];
    enum kernel_origin origin; /* of the kernel's process */
    bool kernel_ended;         /* the code ended the kernel: quit() */
    char kernel_name[KERNELSPEC_NAME_MAX + 1];
    struct run_patches patches;
    /* Output that threads of the previous run's last cell produced after its end, with that
     * cell's handle, source and count. NULL: none. */
    struct run_cell *late;
    char late_id[WIRE_ID_SIZE]; /* kernels_watch_late(): identity of that cell's run */

    /* Private to the kernel thread. */
    size_t at; /* index of the running cell */
    int64_t queued_ms, deadline_ms, interrupted_ms, reported_ms;
    double reported;     /* progress reported so far */
    bool stopping;       /* an interrupt is due: timeout, cancellation or a tool */
    bool interrupt_sent; /* the kernel has received it */
    enum cell_state stop_state;
    struct run *next;
};

struct kernel_info {
    char notebook[4096];
    char name[KERNELSPEC_NAME_MAX + 1];
    char language[128];
    const char *state; /* static: "starting", "idle", "busy", "restarting", "ending" */
    size_t queued;
};

struct kernels_options {
    size_t max_kernels;
    int64_t idle_timeout_ms, start_timeout_ms;
    struct ng_str data_folder; /* exclusive to this gateway; read by kernels_new() only */
    /* A kernel of the notebook begins or ceases to exist. May be NULL. Must be quick and call
     * no function of kernels_*, as the lock may be held. */
    void (*watch)(void *user, const char *notebook, bool exists);
    void *watch_user;
};

/* Kills kernels that a crashed gateway left behind in this data directory. NULL: out of
 * memory. */
struct kernels *kernels_new(const struct kernels_options *options);
/* Ends all runs (RUN_STOPPED) and all kernels, and waits for both. NULL is a no-op. */
void kernels_free(struct kernels *kernels);

void kernels_lock(struct kernels *kernels);
void kernels_unlock(struct kernels *kernels);

/* Queues a run. done() is called exactly once, possibly before this returns. spec: the kernel
 * to start where the notebook has none: then it is moved. */
void kernels_run(struct kernels *kernels, struct run *run, struct kernelspec *spec);
/* Answers request_source() of the run with this number; ignored if it has ended. source: NULL
 * if unchanged; ownership is taken. gone: do not execute the cell. */
void kernels_set_source(struct kernels *kernels, uint64_t number, size_t cell,
                        struct nb_text *source, bool gone);
void run_free(struct run *run); /* NULL is a no-op */
void run_cell_done(struct run_cell *cell);
void run_patches_done(struct run_patches *patches);

/* With the lock held: the cell in the runs of this notebook, which are not saved yet;
 * only_waiting: only if it is pending or running. NULL: none. */
const struct run_cell *kernels_cell(struct kernels *kernels, struct ng_str notebook,
                                    const char *handle, bool only_waiting);

/* The kernel of the notebook. False: there is none. */
bool kernels_info(struct kernels *kernels, struct ng_str notebook, struct kernel_info *ret);
/* All kernels. Returns their number, of which at most `max` are stored. */
size_t kernels_list(struct kernels *kernels, struct kernel_info *ret, size_t max);

enum kernels_command {
    /* Interrupts the running cell. Done when it has stopped; RUN_TIMED_OUT: it has not. */
    KERNELS_INTERRUPT = 1,
    /* Restarts the process: the running cell ends, queued runs continue on the new process.
     * Done when that is ready. */
    KERNELS_RESTART = 2
};

/* `run` has a notebook and no cells. done() is called exactly once, possibly before this
 * returns. RUN_NO_KERNEL: the notebook has no kernel, or it did not start again (`why`). */
void kernels_control(struct kernels *kernels, struct run *run, enum kernels_command command);

/* Waits for output that comes after the end of a run. `run` has a notebook and no cells. done()
 * is called once: with `late` or `patches`, all that has come since the end of the last run and
 * is to be saved, or without both when none of it is to be waited for any more: the kernel has
 * ended, or there is another watch. */
void kernels_watch_late(struct kernels *kernels, struct run *run);
/* Is the late output of this watch still to be saved? False: a later run has it, and saves it.
 */
bool kernels_is_late(struct kernels *kernels, const struct run *run);

/* Another gateway has, or had, the kernel of this notebook: ends the one that is here, its runs
 * with RUN_LOST. The answer of the first run on a new one says that variables are lost. */
void kernels_lose(struct kernels *kernels, const char *notebook);

#endif
