/* SPDX-License-Identifier: MIT */
/* registry.h - the loaded plugins and their tools, by name. Filled at start, read-only
 * afterwards. */
#ifndef NOTEGATE_CORE_REGISTRY_H
#define NOTEGATE_CORE_REGISTRY_H

#include "buf.h"
#include "gate.h"
#include "notegate/plugin.h"
#include "schema.h"

struct registry;
struct module;

struct plugin {
    struct ng_plugin
        desc; /* a whole copy: arrays are whole copies too, with today's item sizes */
    struct module *module; /* NULL: linked in (tests) */
    void *self;
    bool started;
    struct gate gate; /* NG_THREADS_SERIAL */
    struct ng_conf *conf;
};

struct tool {
    struct ng_tool desc;
    struct plugin *plugin;
    struct schema *params;
    struct schema *result;        /* or NULL */
    struct ng_value *params_tree; /* the schema, parsed, for the tool formats */
    struct ng_value *result_tree; /* or NULL */
    size_t metrics_slot;
    size_t index; /* in registration order */
};

struct registry *registry_new(void);
/* Stops nothing: call registry_stop first. */
void registry_free(struct registry *registry);
/* Checks and adds a plugin's tools (all or none). `error`: one sentence that names plugin and
 * tool. */
int registry_add(struct registry *registry, const struct ng_plugin *desc, struct module *module,
                 struct plugin **ret, struct buf *error);
/* By name or alias. */
const struct tool *registry_find(const struct registry *registry, struct ng_str name);
/* The nearest known name, or {NULL, 0} where none is near. */
struct ng_str registry_nearest(const struct registry *registry, struct ng_str name);
/* Tools in stable order: plugins as configured, tools as declared. */
size_t registry_tools(const struct registry *registry, const struct tool *const **ret);
size_t registry_plugins(const struct registry *registry, struct plugin *const **ret);
/* stop() of every started plugin, last first. */
void registry_stop(struct registry *registry);

#endif
