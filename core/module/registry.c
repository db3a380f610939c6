/* SPDX-License-Identifier: MIT */
/* registry.c - plugins and tools by name: immutable tables, of which the newest is published by
 * one atomic pointer. */
#include "registry.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/fault/module_run.h"
#include "tool_compile.h"
#include "watchdog.h"

#define REGISTRY_TOOLS_MAX 1024
#define REGISTRY_PLUGINS_MAX 128
#define REGISTRY_NAMES_MAX 2048 /* of tools and their aliases */
#define TOOL_NAME_MAX 63
#define PLUGIN_NAME_MAX 32
#define NEAREST_MOST 3

struct slot {
    struct ng_str name;
    const struct tool *tool;
};

/* The published table. A look-up may read an older table while the next one is published: all
 * stay until the end, one for each plugin that was added. */
struct table {
    struct table *older;
    size_t plugin_count, tool_count, name_count;
    size_t slot_mask; /* slots less one; a power of two, more than twice the names */
    struct plugin **plugins;
    const struct tool **tools;
    struct slot *slots; /* names and aliases, open addressing */
};

struct registry {
    _Atomic(struct table *) table; /* never NULL */
    struct plugin *made;           /* all plugins, published or not, the last first */
};

static const struct table *table_now(const struct registry *registry)
{
    struct registry *mine = (struct registry *)(uintptr_t)registry; /* C11's load wants it */
    return atomic_load_explicit(&mine->table, memory_order_acquire);
}

/* One with room for these, empty. */
static struct table *table_new(size_t plugins, size_t tools, size_t names)
{
    size_t slots = 16;
    while (slots < names * 2 + 1) {
        slots *= 2;
    }
    size_t bytes = sizeof(struct table) + plugins * sizeof(struct plugin *) +
                   tools * sizeof(struct tool *) + slots * sizeof(struct slot);
    struct table *table = alloc_zeroed(1, bytes);
    if (table != NULL) {
        table->slot_mask = slots - 1;
        table->slots = (struct slot *)(void *)(table + 1);
        table->plugins = (struct plugin **)(void *)(table->slots + slots);
        table->tools = (const struct tool **)(void *)(table->plugins + plugins);
    }
    return table;
}

struct registry *registry_new(void)
{
    struct registry *registry = alloc_zeroed(1, sizeof(*registry));
    struct table *table = table_new(0, 0, 0);
    if (registry == NULL || table == NULL) {
        free(registry);
        free(table);
        return NULL;
    }
    atomic_init(&registry->table, table);
    return registry;
}

static void plugin_free(struct plugin *plugin)
{
    for (size_t i = 0; i < plugin->tool_count; i++) {
        schema_free(plugin->tools[i]->params);
        schema_free(plugin->tools[i]->result);
    }
    async_mutex_done(&plugin->mutex);
    deferrals_done(&plugin->deferrals);
    arena_done(&plugin->arena);
    free(plugin);
}

void registry_free(struct registry *registry)
{
    if (registry == NULL) {
        return;
    }
    while (registry->made != NULL) {
        struct plugin *plugin = registry->made;
        registry->made = plugin->made_before;
        plugin_free(plugin);
    }
    struct table *table = atomic_load(&registry->table);
    while (table != NULL) {
        struct table *older = table->older;
        free(table);
        table = older;
    }
    free(registry);
}

static struct slot *table_slot(const struct table *table, struct ng_str name)
{
    size_t at = (size_t)str_hash(name) & table->slot_mask;
    while (table->slots[at].tool != NULL && !str_equal(table->slots[at].name, name)) {
        at = (at + 1) & table->slot_mask;
    }
    return &table->slots[at];
}

const struct tool *registry_find(const struct registry *registry, struct ng_str name)
{
    return table_slot(table_now(registry), name)->tool;
}

struct ng_str registry_nearest(const struct registry *registry, struct ng_str name)
{
    const struct table *table = table_now(registry);
    struct ng_str nearest = {NULL, 0};
    size_t best = NEAREST_MOST + 1;
    for (size_t i = 0; i < table->tool_count; i++) {
        struct ng_str known = ng_str_of(table->tools[i]->desc.name);
        size_t distance = edit_distance(name, known, NEAREST_MOST);
        if (distance < best && distance < known.len) {
            best = distance;
            nearest = known;
        }
    }
    return nearest;
}

size_t registry_tools(const struct registry *registry, const struct tool *const **ret)
{
    const struct table *table = table_now(registry);
    *ret = table->tools;
    return table->tool_count;
}

size_t registry_plugins(const struct registry *registry, struct plugin *const **ret)
{
    const struct table *table = table_now(registry);
    *ret = table->plugins;
    return table->plugin_count;
}

bool registry_resource(const struct registry *registry, size_t index,
                       struct plugin **ret_plugin, const struct ng_resources **ret)
{
    const struct table *table = table_now(registry);
    for (size_t i = 0; i < table->plugin_count; i++) {
        const struct ng_plugin *desc = &table->plugins[i]->desc;
        if (index < desc->resource_count) {
            *ret_plugin = table->plugins[i];
            *ret = &desc->resources[index];
            return true;
        }
        index -= desc->resource_count;
    }
    return false;
}

bool registry_knows(const struct registry *registry, struct ng_str asked)
{
    for (const struct plugin *plugin = registry->made; plugin != NULL;
         plugin = plugin->made_before) {
        if (str_equal(plugin->asked, asked)) {
            return true;
        }
    }
    return false;
}

const struct plugin *registry_of_module(const struct registry *registry,
                                        const struct module *module)
{
    const struct plugin *plugin = registry->made;
    while (plugin != NULL && plugin->module != module) {
        plugin = plugin->made_before;
    }
    return plugin;
}

/* ---- making a plugin ---- */

/* At most `most` letters, digits and underscores, the first a letter. upper: of both cases. */
static bool name_valid(const char *name, bool upper, size_t most)
{
    size_t len = 0;
    for (; name[len] != '\0'; len++) {
        char c = upper ? str_lower(name[len]) : name[len];
        bool is_letter = c >= 'a' && c <= 'z';
        if (!is_letter && (len == 0 || !((c >= '0' && c <= '9') || c == '_'))) {
            return false;
        }
    }
    return len > 0 && len <= most;
}

static bool tool_name_valid(const char *name)
{
    return name_valid(name, true, TOOL_NAME_MAX);
}

static int make_tool(struct plugin *plugin, const struct ng_tool *desc, struct buf *error)
{
    if (!tool_name_valid(desc->name)) {
        buf_printf(error,
                   "plugin %s: the tool name \"%s\" is not of the form "
                   "[a-zA-Z][a-zA-Z0-9_]{0,62}",
                   plugin->desc.name, desc->name);
        return NG_EINVAL;
    }
    struct tool *tool = arena_zalloc(&plugin->arena, sizeof(*tool));
    if (tool == NULL) {
        buf_printf(error, "plugin %s: no room for tool %s", plugin->desc.name, desc->name);
        return NG_EINTERNAL;
    }
    tool->desc = *desc;
    tool->plugin = plugin;
    plugin->tools[plugin->tool_count++] = tool; /* its schemas are freed with it */
    return tool_compile(tool, error);
}

int registry_make(struct registry *registry, const struct ng_plugin *desc,
                  struct module *module, struct plugin **ret, struct buf *error)
{
    if (!name_valid(desc->name, false, PLUGIN_NAME_MAX)) {
        buf_printf(error, "the plugin name \"%s\" is not of the form [a-z][a-z0-9_]{0,31}",
                   desc->name);
        return NG_EINVAL;
    }
    struct plugin *plugin = alloc_zeroed(1, sizeof(*plugin));
    if (plugin != NULL) {
        arena_init(&plugin->arena, 0);
        plugin->tools = arena_alloc(&plugin->arena, desc->tool_count * sizeof(*plugin->tools));
    }
    if (plugin == NULL || plugin->tools == NULL) {
        buf_printf(error, "no room for plugin %s", desc->name);
        free(plugin);
        return NG_EINTERNAL;
    }
    plugin->desc = *desc;
    plugin->module = module;
    async_mutex_init(&plugin->mutex);
    deferrals_init(&plugin->deferrals);
    for (size_t i = 0; i < desc->tool_count; i++) {
        int rc = make_tool(plugin, &desc->tools[i], error);
        if (rc != NG_OK) {
            plugin_free(plugin);
            return rc;
        }
    }
    plugin->made_before = registry->made;
    registry->made = plugin;
    *ret = plugin;
    return NG_OK;
}

int registry_rename(struct plugin *plugin, struct ng_str prefix, struct buf *error)
{
    size_t skip = strlen(plugin->desc.name_prefix);
    for (size_t i = 0; i < plugin->tool_count; i++) {
        struct ng_tool *desc = &plugin->tools[i]->desc;
        if (strncmp(desc->name, plugin->desc.name_prefix, skip) != 0) {
            continue;
        }
        struct ng_str name = arena_printf(&plugin->arena, "%.*s%s", (int)prefix.len,
                                          prefix.data, desc->name + skip);
        if (name.data == NULL || !tool_name_valid(name.data)) {
            buf_printf(
                error,
                "plugin %s: with %s.prefix \"%.*s\" the tool name \"%s%s\" is not of the "
                "form [a-zA-Z][a-zA-Z0-9_]{0,62}",
                plugin->desc.name, plugin->desc.name, (int)prefix.len, prefix.data,
                name.data != NULL ? "" : prefix.data,
                name.data != NULL ? name.data : desc->name + skip);
            return NG_EINVAL;
        }
        desc->name = name.data;
    }
    return NG_OK;
}

void registry_drop(struct registry *registry, struct plugin *plugin)
{
    struct plugin **at = &registry->made;
    while (*at != plugin) {
        at = &(*at)->made_before;
    }
    *at = plugin->made_before;
    plugin_free(plugin);
}

/* ---- publishing it ---- */

static int table_name(struct table *table, struct ng_str name, const struct tool *tool,
                      struct buf *error)
{
    struct slot *slot = table_slot(table, name);
    if (slot->tool != NULL) {
        buf_printf(error, "plugin %s: the tool name %.*s is taken by plugin %s",
                   tool->plugin->desc.name, (int)name.len, name.data,
                   slot->tool->plugin->desc.name);
        return NG_EINVAL;
    }
    slot->name = name;
    slot->tool = tool;
    table->name_count++;
    return NG_OK;
}

static int table_name_all(struct table *table, const struct tool *tool, struct buf *error)
{
    int rc = table_name(table, ng_str_of(tool->desc.name), tool, error);
    const char *at = tool->desc.aliases == NULL ? "" : tool->desc.aliases;
    while (rc == NG_OK && *at != '\0') {
        size_t len = strcspn(at, " ");
        if (len > 0) {
            rc = table_name(table, str_make(at, len), tool, error);
        }
        at += len;
        at += strspn(at, " ");
    }
    return rc;
}

/* At least as many as there are. */
static size_t count_names(const struct plugin *plugin)
{
    size_t count = plugin->tool_count;
    for (size_t i = 0; i < plugin->tool_count; i++) {
        const char *aliases = plugin->tools[i]->desc.aliases;
        count += aliases == NULL ? 0 : strlen(aliases) / 2 + 1;
    }
    return count;
}

/* A copy of the present table with room for the plugin. */
static struct table *table_grown(const struct table *now, const struct plugin *plugin)
{
    struct table *table = table_new(now->plugin_count + 1, now->tool_count + plugin->tool_count,
                                    now->name_count + count_names(plugin));
    if (table == NULL) {
        return NULL;
    }
    for (size_t i = 0; i <= now->slot_mask; i++) {
        if (now->slots[i].tool != NULL) {
            *table_slot(table, now->slots[i].name) = now->slots[i];
        }
    }
    for (size_t i = 0; i < now->plugin_count; i++) {
        table->plugins[i] = now->plugins[i];
    }
    for (size_t i = 0; i < now->tool_count; i++) {
        table->tools[i] = now->tools[i];
    }
    table->plugin_count = now->plugin_count;
    table->tool_count = now->tool_count;
    table->name_count = now->name_count;
    return table;
}

/* URIs name a resource by its kind alone. */
static int table_check_kinds(const struct plugin *there, const struct plugin *plugin,
                             struct buf *error)
{
    const struct ng_plugin *old = &there->desc;
    const struct ng_plugin *new = &plugin->desc;
    for (size_t i = 0; i < old->resource_count * new->resource_count; i++) {
        const char *taken = old->resources[i / new->resource_count].kind;
        const char *kind = new->resources[i % new->resource_count].kind;
        if (taken != NULL && kind != NULL && strcmp(taken, kind) == 0) {
            buf_printf(error, "plugin %s: the kind of resource %s is taken by plugin %s",
                       new->name, kind, old->name);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

static int table_add(struct table *table, struct plugin *plugin, struct buf *error)
{
    for (size_t i = 0; i < table->plugin_count; i++) {
        if (table_check_kinds(table->plugins[i], plugin, error) != NG_OK) {
            return NG_EINVAL;
        }
        if (strcmp(table->plugins[i]->desc.name, plugin->desc.name) == 0) {
            buf_printf(error, "two plugins are called %s", plugin->desc.name);
            return NG_EINVAL;
        }
    }
    table->plugins[table->plugin_count++] = plugin;
    for (size_t i = 0; i < plugin->tool_count; i++) {
        struct tool *tool = plugin->tools[i];
        tool->index = table->tool_count;
        table->tools[table->tool_count++] = tool;
        int rc = table_name_all(table, tool, error);
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (table->plugin_count > REGISTRY_PLUGINS_MAX || table->tool_count > REGISTRY_TOOLS_MAX ||
        table->name_count > REGISTRY_NAMES_MAX) {
        buf_printf(error, "plugin %s: more than %d plugins, %d tools or %d names of tools",
                   plugin->desc.name, REGISTRY_PLUGINS_MAX, REGISTRY_TOOLS_MAX,
                   REGISTRY_NAMES_MAX);
        return NG_ETOOLARGE;
    }
    return NG_OK;
}

/* The table that would be, checked. */
static int table_with(const struct registry *registry, struct plugin *plugin,
                      struct table **ret, struct buf *error)
{
    struct table *table = table_grown(table_now(registry), plugin);
    if (table == NULL) {
        buf_printf(error, "no room for plugin %s", plugin->desc.name);
        return NG_EINTERNAL;
    }
    int rc = table_add(table, plugin, error);
    if (rc != NG_OK) {
        free(table);
        return rc;
    }
    *ret = table;
    return NG_OK;
}

int registry_check(const struct registry *registry, struct plugin *plugin, struct buf *error)
{
    struct table *table = NULL;
    int rc = table_with(registry, plugin, &table, error);
    if (rc == NG_OK) {
        free(table);
    }
    return rc;
}

int registry_publish(struct registry *registry, struct plugin *plugin, struct buf *error)
{
    struct table *table = NULL;
    int rc = table_with(registry, plugin, &table, error);
    if (rc == NG_OK) {
        table->older = atomic_load(&registry->table);
        atomic_store_explicit(&registry->table, table, memory_order_release);
    }
    return rc;
}

int registry_add(struct registry *registry, const struct ng_plugin *desc, struct module *module,
                 struct plugin **ret, struct buf *error)
{
    struct plugin *plugin = NULL;
    int rc = registry_make(registry, desc, module, &plugin, error);
    if (rc != NG_OK) {
        return rc;
    }
    rc = registry_publish(registry, plugin, error);
    if (rc != NG_OK) {
        registry_drop(registry, plugin);
        return rc;
    }
    *ret = plugin;
    return NG_OK;
}

static void stop_plugin(struct plugin *plugin, struct watchdog *watchdog)
{
    struct module_run run;
    struct watched watched;
    module_run_begin(&run, plugin_module_name(plugin), "stop()", str_make(NULL, 0));
    watchdog_begin(watchdog, &watched, plugin->desc.name, "stop()");
    plugin->desc.stop(plugin->self);
    watchdog_end(watchdog, &watched);
    module_run_end(&run);
}

void registry_stop(struct registry *registry, struct watchdog *watchdog)
{
    for (struct plugin *plugin = registry->made; plugin != NULL; plugin = plugin->made_before) {
        if (plugin->started) {
            plugin->started = false;
            if (plugin->desc.stop != NULL) {
                stop_plugin(plugin, watchdog);
            }
        }
    }
}
