/* SPDX-License-Identifier: MIT */
/* test_dispatch_rig.h - a gateway with plugins that are linked in (they wait, defer, ask,
 * write and fail as a case wants it), and calls of their tools that are under way. */
#ifndef NOTEGATE_TEST_DISPATCH_RIG_H
#define NOTEGATE_TEST_DISPATCH_RIG_H

#include "core/dispatch/dispatch.h"
#include "harness.h"

#include <pthread.h>

#undef fail /* of cmocka: ng_fail() needs the name */

struct probe {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;          /* blocked calls go on */
    unsigned blocked;   /* calls that wait in d_block */
    unsigned runs;      /* of d_count and its like */
    unsigned in_serial; /* calls inside the serial plugin */
    unsigned most_serial;
    unsigned steps;
    unsigned ended;               /* background calls that were over, and well */
    char space[NG_SPACE_MAX + 1]; /* of the background call */
    char run[CALL_RUN_MAX + 1];   /* the same */
    struct ng_deferred *deferred;
};

extern struct probe probe;
/* Changes a number and wakes waiting threads. */
void probe_add(unsigned *number, unsigned more);
unsigned probe_read(const unsigned *number);
void probe_open(void);
/* Until the number is at least that. */
void probe_wait(const unsigned *number, unsigned least);
int background_step(struct ng_call *call, void *user);
extern const struct ng_collection docs;
extern const char *const plain[]; /* the usual configuration */
void open_probe(struct harness *harness, const char *const *sets);
/* A call with a waiting thread. */
struct job {
    struct call *call;
    bool done;
    int rc;
};

struct call *job_new(struct harness *harness, struct job *job, const char *agent,
                     const char *tool, const char *args);
void job_start(struct job *job);
const struct result *job_wait(struct job *job);
/* Waits, compares the code ("ok": none) and frees the call. */
void job_expect(struct job *job, const char *code);

#endif
