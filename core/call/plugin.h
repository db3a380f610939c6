/* SPDX-License-Identifier: MIT */
/* plugin.h - a loaded plugin and its tools: the data that a call needs of them. The registry
 * (core/module) makes them; they stay until the gateway closes. */
#ifndef NOTEGATE_CORE_PLUGIN_H
#define NOTEGATE_CORE_PLUGIN_H

#include <stdatomic.h>

#include "async_mutex.h"
#include "call.h"
#include "core/base/arena.h"
#include "core/fault/module_run.h"
#include "core/schema/schema.h"
#include "deferrals.h"
#include "notegate/plugin.h"
#include "pool.h"

/* The events of files, which a plugin may name like a collection. */
#define FILES_EVENTS "files"

struct module;
struct tool;

struct plugin {
    struct ng_plugin
        desc; /* a whole copy: arrays are whole copies too, with today's item sizes */
    struct module *module; /* NULL: linked in (tests) */
    void *self;
    bool started;
    struct async_mutex mutex;  /* NG_THREADS_SERIAL */
    struct pool_group workers; /* its calls share half of the workers */
    struct deferrals deferrals;
    struct ng_conf *conf;
    struct ng_str asked; /* as the configuration names it: a name or a path; or absent */
    struct tool **tools;
    size_t tool_count;
    struct arena arena;         /* the tools and their schemas */
    struct plugin *made_before; /* the registry's list */
};

/* The member that NG_TOOL_BY_SPACE adds, at the end of a schema's properties. */
#define TOOL_SPACE_MEMBER "space"

struct tool {
    struct ng_tool desc;
    struct plugin *plugin;
    struct schema *params;
    struct schema *result;        /* or NULL */
    struct ng_value *params_tree; /* the schema, parsed, for the tool formats */
    struct ng_value *result_tree; /* or NULL */
    bool marks_headers; /* somewhere in `params` an argument is marked for a header too */
    size_t metrics_slot;
    size_t index;             /* in registration order */
    atomic_bool blocked_loop; /* watchdog.h: it does not run on event loops any more */
    atomic_uint stuck;        /* calls that do not end after their deadline (timers.h) */
};

/* Its name as the configuration has it, for module_run_begin(). plugin NULL: NULL. */
static inline const char *plugin_module_name(const struct plugin *plugin)
{
    if (plugin == NULL) {
        return NULL;
    }
    /* `asked` ends in NUL. */
    if (plugin->asked.data != NULL) {
        return plugin->asked.data;
    }
    return plugin->desc.name;
}

/* The plugin that runs in this call; NULL: none. */
static inline struct plugin *call_plugin(const struct call *call)
{
    if (call->plugin == NULL && call->tool != NULL) {
        return call->tool->plugin;
    }
    return call->plugin;
}

/* The mutex of the call's plugin where that takes one call at a time, else NULL. */
static inline struct async_mutex *call_mutex(const struct call *call)
{
    struct plugin *plugin = call_plugin(call);
    if (plugin == NULL || plugin->desc.threads != NG_THREADS_SERIAL) {
        return NULL;
    }
    return &plugin->mutex;
}

/* This thread runs the plugin's code until module_run_end(). */
static inline void call_enter_module(const struct call *call, struct module_run *run)
{
    const char *what = "a step";
    if (call->step == NULL && call->tool != NULL) {
        what = call->tool->desc.name;
    }
    module_run_begin(run, plugin_module_name(call_plugin(call)), what, call->caller.agent);
}

#endif
