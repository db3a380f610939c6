/* SPDX-License-Identifier: MIT */
/* module_run.c - the runs of a thread, innermost first. */
#include "module_run.h"

#include <stddef.h>

/* By thread: a signal handler has nothing else to find it by. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static _Thread_local struct module_run *module_run_innermost;

void module_run_begin(struct module_run *run, const char *module, const char *what,
                      struct ng_str agent)
{
    *run = (struct module_run){
        .module = module, .what = what, .agent = agent, .outer = module_run_innermost};
    module_run_innermost = run;
}

void module_run_end(struct module_run *run)
{
    module_run_innermost = run->outer;
}

const struct module_run *module_run_now(void)
{
    const struct module_run *run = module_run_innermost;
    if (run != NULL && run->module != NULL) {
        return run;
    }
    return NULL;
}

bool module_run_in_change(void)
{
    return module_run_innermost != NULL && module_run_innermost->in_change;
}
