/* SPDX-License-Identifier: MIT */
/*
 * watchdog.h - one thread that names module code which takes too long where it must not.
 *
 * A tool that blocks an event loop for WATCHDOG_LOOP_MS is logged, counted, and runs on workers
 * from then on. A start() or stop() that has not returned after WATCHDOG_LIFE_MS is logged.
 */
#ifndef NOTEGATE_CORE_WATCHDOG_H
#define NOTEGATE_CORE_WATCHDOG_H

#include "core/call/plugin.h"

#define WATCHDOG_LOOP_MS 1000
#define WATCHDOG_LIFE_MS 10000

struct metrics;
struct watchdog;

/* An event loop as it is watched. */
struct watchdog_loop {
    _Atomic(const struct tool *) tool;
    _Atomic int64_t since_ns; /* 0: the loop runs no tool */
};

/* A start() or stop() under way; memory of the caller between begin and end. */
struct watched {
    const char *module; /* lent */
    const char *what;   /* "start()" */
    int64_t since_ns;
    bool told;
    struct watched *next;
};

int watchdog_new(struct metrics *metrics, struct watchdog **ret);
/* Joins the thread. NULL is a no-op. */
void watchdog_free(struct watchdog *watchdog);

/* The calling event loop runs the tool from now_ns (CLOCK_MONOTONIC) until the end. No lock.
 * NULL: it is not watched. */
struct watchdog_loop *watchdog_loop_begin(struct watchdog *watchdog, const struct tool *tool,
                                          int64_t now_ns);
static inline void watchdog_loop_end(struct watchdog_loop *loop)
{
    if (loop != NULL) {
        atomic_store_explicit(&loop->since_ns, 0, memory_order_release);
    }
}

/* Was the tool caught blocking an event loop? Then it runs on workers alone. */
static inline bool watchdog_distrusts(const struct tool *tool)
{
    return atomic_load_explicit(&tool->blocked_loop, memory_order_relaxed);
}

void watchdog_begin(struct watchdog *watchdog, struct watched *watched, const char *module,
                    const char *what);
void watchdog_end(struct watchdog *watchdog, struct watched *watched);

#endif
