/* SPDX-License-Identifier: MIT */
/* module_run.c - the runs of a thread, innermost first. */
#include "module_run.h"

#include "core/module/registry.h"

/* By thread: a signal handler has nothing else to find it by. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static _Thread_local struct module_run *module_run_innermost;

static void module_run_push(struct module_run *run)
{
    run->outer = module_run_innermost;
    run->in_change = false;
    module_run_innermost = run;
}

void module_run_begin(struct module_run *run, const struct plugin *plugin, const char *what,
                      struct ng_str agent)
{
    run->module = plugin == NULL               ? NULL
                  : plugin->asked.data != NULL ? plugin->asked.data /* ends in NUL */
                                               : plugin->desc.name;
    run->what = what;
    run->agent = agent;
    module_run_push(run);
}

void module_run_load(struct module_run *run, const char *module)
{
    run->module = module;
    run->what = "load";
    run->agent = (struct ng_str){NULL, 0};
    module_run_push(run);
}

void module_run_end(struct module_run *run)
{
    module_run_innermost = run->outer;
}

const struct module_run *module_run_now(void)
{
    const struct module_run *run = module_run_innermost;
    return run != NULL && run->module != NULL ? run : NULL;
}

bool module_run_in_change(void)
{
    return module_run_innermost != NULL && module_run_innermost->in_change;
}
