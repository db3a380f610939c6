/* SPDX-License-Identifier: MIT */
/* module_run.h - which module's code each thread runs just now: what the watchdog and the crash
 * handler name. */
#ifndef NOTEGATE_CORE_MODULE_RUN_H
#define NOTEGATE_CORE_MODULE_RUN_H

#include <stdbool.h>

#include "notegate/abi.h"

/* One run of a module's code; memory of the thread's stack. Everything in it is lent. */
struct module_run {
    const char *module; /* as the configuration names it */
    const char *what;   /* a tool's name, "start()", ... */
    struct ng_str agent;
    struct module_run *outer; /* the run that this one interrupts, or NULL */
    bool in_change;           /* a change function, under the lock of its document */
};

/* The calling thread enters and leaves. module NULL: the core's own code, no module is named.
 */
void module_run_begin(struct module_run *run, const char *module, const char *what,
                      struct ng_str agent);
void module_run_end(struct module_run *run);
/* Of the calling thread; also in a signal handler. NULL: it runs no module's code. */
const struct module_run *module_run_now(void);
/* The calling thread runs a change function. */
bool module_run_in_change(void);

#endif
