/* SPDX-License-Identifier: MIT */
/* module_run.h - which module's code each thread runs just now: what the watchdog and the crash
 * handler name. */
#ifndef NOTEGATE_CORE_MODULE_RUN_H
#define NOTEGATE_CORE_MODULE_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "notegate/abi.h"

/* One run of a module's code; memory of the thread's stack. Everything in it is lent. */
struct module_run {
    const char *module; /* as the configuration names it */
    const char *what;   /* a tool's name, "start()", ... */
    struct ng_str agent;
    struct module_run *outer; /* the run that this one interrupts, or NULL */
    bool in_change;           /* a change function, under the lock of its document */
};

/* Of the calling thread; for the functions below only. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
extern _Thread_local struct module_run *module_run_innermost;

/* The calling thread enters and leaves. module NULL: the core's own code, no module is named.
 */
static inline void module_run_begin(struct module_run *run, const char *module,
                                    const char *what, struct ng_str agent)
{
    *run = (struct module_run){
        .module = module, .what = what, .agent = agent, .outer = module_run_innermost};
    module_run_innermost = run;
}

static inline void module_run_end(struct module_run *run)
{
    module_run_innermost = run->outer;
}

/* Of the calling thread; also in a signal handler. NULL: it runs no module's code. */
static inline const struct module_run *module_run_now(void)
{
    const struct module_run *run = module_run_innermost;
    if (run != NULL && run->module != NULL) {
        return run;
    }
    return NULL;
}

/* The calling thread runs a change function. */
static inline bool module_run_in_change(void)
{
    return module_run_innermost != NULL && module_run_innermost->in_change;
}

#endif
