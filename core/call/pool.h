/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the worker threads: everything that may block runs here.
 *
 * Tasks wait in one lane per agent; lanes take turns, and one lane has at most half of the
 * workers (at least one) and half of the queue, so that one busy agent does not make another
 * wait or be refused. A task may also name a group, of which at most half of the workers (at
 * least two) run at once: the plugin that it runs, so that a plugin that blocks leaves
 * workers to others. The last of a group's workers is not for a lane that has all the others:
 * the plugin of a busy agent answers other agents, too.
 */
#ifndef NOTEGATE_CORE_POOL_H
#define NOTEGATE_CORE_POOL_H

#include "notegate/abi.h"

struct pool;
struct metrics;

/* Tasks that share half of the workers. Zeroed: empty. Outlives its tasks. */
struct pool_group {
    unsigned running; /* the pool's, behind its lock */
};

struct task {
    void (*run)(struct task *task);
    struct task *next;
    struct pool_group *group; /* read when it is submitted or resumed; NULL: none */
};

/* workers: threads at most (started when needed). queue: waiting tasks at most. */
int pool_new(unsigned workers, unsigned queue, struct metrics *metrics, struct pool **ret);
/* Another bound of the queue; what waits already stays. */
void pool_set_queue(struct pool *pool, unsigned queue);
/* Runs the queue, then joins the workers: later submissions are refused, later resumed tasks
 * never run. */
void pool_stop(struct pool *pool);
/* After the last submit and resume. NULL is a no-op. */
void pool_free(struct pool *pool);
/* NG_OK: task->run is called later on a worker; the task is the caller's memory. NG_EBUSY: the
 * queue is full; NG_ERATE: this lane has its half of it; NG_EINTERNAL: out of memory. */
int pool_submit(struct pool *pool, struct ng_str lane, struct task *task);
/* A continuation of a call that was admitted before: goes ahead of new tasks and is not
 * refused. */
void pool_resume(struct pool *pool, struct task *task);

#endif
