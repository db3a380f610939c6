/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the kernels of a gateway, one a notebook: they are started when something is to be
 * run, run what is queued one after the other, and go when they are idle, dead, or the gateway
 * ends.
 *
 * One thread (kernel_loop.c) speaks with all of them and never waits for one. Everything in
 * here may be called from any thread unless a line says otherwise. What a run looks like
 * meanwhile is read with kernels_lock() held.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_KERNEL_H
#define NOTEGATE_PLUGIN_CELLS_KERNEL_H

#include "kernelspec.h"
#include "output.h"

/* Runs that wait for one kernel. */
#define KERNEL_QUEUE_MAX 64
/* A kernel may answer an interrupt this long before it is said to go on. */
#define KERNEL_INTERRUPT_MS 5000
/* What a kernel has to end by itself before it is killed. */
#define KERNEL_SHUTDOWN_MS 5000
/* Output that comes after the last cell says that it is done; while it comes, at most this. */
#define KERNEL_GRACE_MS 40
#define KERNEL_GRACE_MAX_MS 400
/* A kernel that was told to end, quit(), has this long for it. */
#define KERNEL_QUIT_MS 5000
/* How often a run that goes on says so. */
#define KERNEL_PROGRESS_MS 2000
/* One that has not begun with a cell would miss an interrupt: it is waited for this long. */
#define KERNEL_BEGIN_MS 1000
/* After the reply, how long to wait for the word that all output was sent. */
#define KERNEL_IDLE_WAIT_MS 4000
/* An interrupt may end the code that would have replied: idle after it, and no reply this long.
 */
#define KERNEL_REPLY_WAIT_MS 1000
/* The source of a cell whose turn came is waited for this long: then it is as it was known. */
#define KERNEL_SOURCE_MS 5000
/* Tries to start one that dies at once (its ports may have been taken meanwhile). */
#define KERNEL_STARTS_MAX 3
#define KERNEL_WHY_MAX 1024
/* Descriptors that must be free before a kernel is started: libzmq aborts without. */
#define KERNEL_DESCRIPTORS 64

struct kernels;
struct kernel;

enum cell_state {
    CELL_PENDING = 0,
    CELL_RUNNING = 1,
    CELL_OK = 2,
    CELL_ERROR = 3,       /* it raised */
    CELL_TIMED_OUT = 4,   /* out of time, and interrupted */
    CELL_INTERRUPTED = 5, /* cancelled, interrupted, or its kernel restarted */
    CELL_STUCK = 6,       /* was interrupted and goes on all the same */
    CELL_DIED = 7,        /* its kernel ended meanwhile */
    CELL_NOT_RUN = 8      /* an earlier one failed */
};

struct run_cell {
    char handle[NB_ID_MAX + 16]; /* as the caller knows it: id, or "index:N" */
    size_t index;                /* where it was when the run was asked for */
    struct nb_text source;
    bool may_raise; /* tag raises-exception: its error stops nothing */
    /* What the file has was asked for when its turn came, and has come: it holds another source
     * by then, or is no code cell any more and not run. */
    bool asked, answered, changed, gone;
    int64_t asked_ms;
    enum cell_state state;
    struct outputs outputs;
    int64_t count;                /* execution_count; -1: none */
    int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
    struct nb_text page;          /* what the kernel wants to show beside the outputs */
};

/* Something shown earlier, in a cell of another run, that the kernel changed. */
struct run_patch {
    char handle[NB_ID_MAX + 16];
    size_t ordinal; /* which output of that cell */
    struct nb_text data, metadata;
};

struct run_patches {
    struct run_patch *items;
    size_t count;
};

enum run_state { RUN_QUEUED = 0, RUN_STARTING = 1, RUN_RUNNING = 2, RUN_DONE = 3 };

enum run_fault {
    RUN_FINE = 0,
    RUN_NO_KERNEL = 1, /* it could not be started: `why` */
    RUN_BUSY = 2,      /* too many kernels, or too many runs wait for this one */
    RUN_KERNEL_DIED = 3,
    RUN_TIMED_OUT = 4,
    RUN_CANCELLED = 5,
    RUN_STOPPED = 6, /* the gateway ends */
    RUN_ABORTED = 7  /* the kernel did not want to run a cell */
};

struct run {
    /* Set by who asks. */
    char *notebook;  /* real path: which kernel */
    char *folder;    /* where the kernel is started */
    uint64_t number; /* of all runs: kernels_run() gives it */
    struct run_cell *cells;
    size_t cell_count;
    int64_t timeout_ms;
    size_t max_saved_output;
    /* Called by the kernels' thread with the lock held: quick, and no call of kernels_*. Both
     * may be NULL. `done` only grows: whole cells, and a part of the one that runs. */
    bool (*cancelled)(void *user);
    void (*progress)(void *user, double done, size_t total, const char *text);
    /* The turn of a cell comes: kernels_set_source() tells soon what it holds by now. False:
     * it will not. */
    bool (*request_source)(void *user, size_t cell);
    /* The last word of the kernels about this run, which is the caller's again. No lock is
     * held. */
    void (*done)(struct run *run, void *user);
    void *user;

    /* Set by the kernels. */
    enum run_state state;
    enum run_fault fault;
    char why[KERNEL_WHY_MAX];
    bool new_kernel;   /* a kernel was started for it */
    bool state_lost;   /* ... because the one before had ended by itself */
    bool restarted;    /* ... or was restarted by a tool */
    bool kernel_ended; /* the kernel ended with it, by its own will (quit()) */
    char kernel_name[KERNELSPEC_NAME_MAX + 1];
    struct run_patches patches;
    /* What the last cell of the run before put out after that was over, from a thread, with
     * the handle, source and count of that cell. NULL: nothing. */
    struct run_cell *late;

    /* The kernels' own. */
    size_t at; /* the cell that runs */
    int64_t queued_ms, deadline_ms, interrupted_ms, reported_ms;
    double reported;     /* as progress */
    bool stopping;       /* interrupted: by time, cancellation or a tool */
    bool interrupt_sent; /* the kernel was */
    enum cell_state stop_state;
    struct run *next;
};

struct kernel_info {
    char notebook[4096];
    char name[KERNELSPEC_NAME_MAX + 1];
    char display_name[256];
    char language[128];
    const char *state; /* static: "starting", "idle", "busy", "restarting", "ending" */
    int64_t pid;
    size_t queued;
    int64_t idle_ms; /* since it was last used */
};

struct kernels_options {
    size_t max_kernels;
    int64_t idle_timeout_ms, start_timeout_ms;
    struct ng_str data_folder; /* this gateway's alone; only for kernels_new() */
};

/* What kernels of a gateway that was killed left behind in this data directory goes. NULL: out
 * of memory. */
struct kernels *kernels_new(const struct kernels_options *options);
/* Ends all runs (RUN_STOPPED) and all kernels, and waits for it. NULL is a no-op. */
void kernels_free(struct kernels *kernels);

void kernels_lock(struct kernels *kernels);
void kernels_unlock(struct kernels *kernels);

/* Queues a run; done() comes once, maybe before this returns. spec: which kernel, where the
 * notebook has none yet (copied). */
void kernels_run(struct kernels *kernels, struct run *run, const struct kernelspec *spec);
/* What turn() asked for: the run may have ended meanwhile. source NULL: as it was; `gone`: it
 * is not to be run. The text is taken over. */
void kernels_set_source(struct kernels *kernels, uint64_t number, size_t cell,
                        struct nb_text *source, bool gone);
void run_free(struct run *run); /* NULL is a no-op */
void run_cell_done(struct run_cell *cell);
void run_patches_done(struct run_patches *patches);

/* With the lock held: the run that is there for this notebook and has this cell pending or
 * running; NULL: none. */
const struct run_cell *kernels_cell(struct kernels *kernels, const char *notebook,
                                    const char *handle);
/* With the lock held: has a run that is there for this notebook this cell, in whatever state?
 * What it puts out is not in the file yet. */
bool kernels_unsaved(struct kernels *kernels, const char *notebook, const char *handle);

/* What is there for this notebook: false: nothing. */
bool kernels_info(struct kernels *kernels, const char *notebook, struct kernel_info *ret);
/* All; returns how many there are, of which `max` are told. */
size_t kernels_list(struct kernels *kernels, struct kernel_info *ret, size_t max);

enum kernels_command {
    /* What runs is interrupted. Done when it has stopped: RUN_TIMED_OUT: it goes on all the
     * same. */
    KERNELS_INTERRUPT = 1,
    /* The kernel is ended and begun anew; what runs ends, what waits runs on the new one. Done
     * when that is ready. */
    KERNELS_RESTART = 2
};

/* `run` has a notebook and no cells; done() comes once, maybe before this returns.
 * RUN_NO_KERNEL: there is no kernel for this notebook, or it did not start again (`why`). */
void kernels_control(struct kernels *kernels, struct run *run, enum kernels_command command);

#endif
