/* SPDX-License-Identifier: MIT */
/*
 * registry.h - the loaded plugins and their tools, by name.
 *
 * Any thread may look things up at any time; what a look-up gives stays good until the end.
 * Plugins are added by one thread at a time: at the start, or in a reload while calls run.
 */
#ifndef NOTEGATE_CORE_REGISTRY_H
#define NOTEGATE_CORE_REGISTRY_H

#include "core/base/buf.h"
#include "core/call/plugin.h"

/* In a property of a tool's schema: the argument comes in a header of this name as well. */
#define TOOL_HEADER_MARK "x-mcp-header"

struct registry;
struct module;
struct watchdog;

struct registry *registry_new(void);
/* Stops nothing: call registry_stop first. */
void registry_free(struct registry *registry);
/* Makes and publishes: a plugin's tools are added all or none. `error`: one sentence that names
 * plugin and tool. */
int registry_add(struct registry *registry, const struct ng_plugin *desc, struct module *module,
                 struct plugin **ret, struct buf *error);
/* The steps of registry_add() one by one: makes the plugin and its tools (not visible yet);
 * checks its names; publishes it. */
int registry_make(struct registry *registry, const struct ng_plugin *desc,
                  struct module *module, struct plugin **ret, struct buf *error);
/* Before it is published: its tools' names begin with `prefix` in the place of its name_prefix.
 */
int registry_rename(struct plugin *plugin, struct ng_str prefix, struct buf *error);
int registry_check(const struct registry *registry, struct plugin *plugin, struct buf *error);
int registry_publish(struct registry *registry, struct plugin *plugin, struct buf *error);
/* Forgets one that was made and not published. */
void registry_drop(struct registry *registry, struct plugin *plugin);
/* Was a plugin made that the configuration names so (published, or it did not start)? */
bool registry_knows(const struct registry *registry, struct ng_str asked);
/* ... or by another name: of this module? NULL: none was. */
const struct plugin *registry_of_module(const struct registry *registry,
                                        const struct module *module);
/* By name or alias. */
const struct tool *registry_find(const struct registry *registry, struct ng_str name);
/* The nearest known name, or {NULL, 0} where none is near. */
struct ng_str registry_nearest(const struct registry *registry, struct ng_str name);
/* Tools in stable order: plugins as configured, tools as declared. */
size_t registry_tools(const struct registry *registry, const struct tool *const **ret);
size_t registry_plugins(const struct registry *registry, struct plugin *const **ret);
/* All kinds of resources in stable order, with their plugins. False: there are no more. */
bool registry_resource(const struct registry *registry, size_t index,
                       struct plugin **ret_plugin, const struct ng_resources **ret);
/* stop() of every started plugin, the last made first. watchdog: names one that hangs; or NULL.
 */
void registry_stop(struct registry *registry, struct watchdog *watchdog);

#endif
