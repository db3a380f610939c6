/* SPDX-License-Identifier: MIT */
/*
 * watchdog.h - one thread that names module code which takes too long where it must not.
 *
 * A tool that blocks an event loop for WATCHDOG_LOOP_MS is logged, counted, and runs on workers
 * from then on. A start() or stop() that has not returned after WATCHDOG_LIFE_MS is logged.
 */
#ifndef NOTEGATE_CORE_WATCHDOG_H
#define NOTEGATE_CORE_WATCHDOG_H

#include "notegate/abi.h"

#define WATCHDOG_LOOP_MS 1000
#define WATCHDOG_LIFE_MS 10000

struct metrics;
struct tool;
struct watchdog;

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

/* The calling event loop runs the tool from now_ns (CLOCK_MONOTONIC) until the end. No lock. */
void watchdog_loop_begin(struct watchdog *watchdog, const struct tool *tool, int64_t now_ns);
void watchdog_loop_end(struct watchdog *watchdog);
/* Was the tool caught blocking an event loop? Then it runs on workers alone. */
bool watchdog_distrusts(const struct tool *tool);

void watchdog_begin(struct watchdog *watchdog, struct watched *watched, const char *module,
                    const char *what);
void watchdog_end(struct watchdog *watchdog, struct watched *watched);

#endif
