/* SPDX-License-Identifier: MIT */
/* registry.c - plugins and tools by name. */
#include "registry.h"

#include <stdlib.h>

#include "arena.h"
#include "str.h"

#define REGISTRY_TOOLS_MAX 1024
#define REGISTRY_PLUGINS_MAX 128
#define REGISTRY_SLOTS 4096 /* a power of two, more than twice the names */
#define TOOL_NAME_MAX 63
#define PLUGIN_NAME_MAX 32
#define NEAREST_MOST 3
#define SCHEMA_ERROR_SIZE 512

struct slot {
    struct ng_str name;
    const struct tool *tool;
};

struct registry {
    struct plugin *plugins[REGISTRY_PLUGINS_MAX];
    size_t plugin_count;
    const struct tool *tools[REGISTRY_TOOLS_MAX];
    size_t tool_count;
    struct slot slots[REGISTRY_SLOTS]; /* names and aliases, open addressing */
    size_t slot_count;
    struct arena arena;
};

struct registry *registry_new(void)
{
    struct registry *registry = alloc_zeroed(1, sizeof(*registry));
    if (registry != NULL) {
        arena_init(&registry->arena, 0);
    }
    return registry;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL) {
        return;
    }
    for (size_t i = 0; i < registry->tool_count; i++) {
        schema_free(registry->tools[i]->params);
        schema_free(registry->tools[i]->result);
    }
    for (size_t i = 0; i < registry->plugin_count; i++) {
        gate_done(&registry->plugins[i]->gate);
    }
    arena_done(&registry->arena);
    free(registry);
}

static struct slot *registry_slot(struct registry *registry, struct ng_str name)
{
    size_t at = (size_t)str_hash(name) % REGISTRY_SLOTS;
    while (registry->slots[at].tool != NULL && !str_equal(registry->slots[at].name, name)) {
        at = (at + 1) % REGISTRY_SLOTS;
    }
    return &registry->slots[at];
}

const struct tool *registry_find(const struct registry *registry, struct ng_str name)
{
    size_t at = (size_t)str_hash(name) % REGISTRY_SLOTS;
    while (registry->slots[at].tool != NULL) {
        if (str_equal(registry->slots[at].name, name)) {
            return registry->slots[at].tool;
        }
        at = (at + 1) % REGISTRY_SLOTS;
    }
    return NULL;
}

struct ng_str registry_nearest(const struct registry *registry, struct ng_str name)
{
    struct ng_str nearest = {NULL, 0};
    size_t best = NEAREST_MOST + 1;
    for (size_t i = 0; i < registry->tool_count; i++) {
        struct ng_str known = ng_str_of(registry->tools[i]->desc.name);
        size_t distance = str_distance(name, known, NEAREST_MOST);
        if (distance < best && distance < known.len) {
            best = distance;
            nearest = known;
        }
    }
    return nearest;
}

size_t registry_tools(const struct registry *registry, const struct tool *const **ret)
{
    *ret = registry->tools;
    return registry->tool_count;
}

size_t registry_plugins(const struct registry *registry, struct plugin *const **ret)
{
    *ret = registry->plugins;
    return registry->plugin_count;
}

static bool name_letter(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (!first && ((c >= '0' && c <= '9') || c == '_'));
}

static bool tool_name_valid(struct ng_str name)
{
    if (name.len == 0 || name.len > TOOL_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!name_letter(name.data[i], i == 0)) {
            return false;
        }
    }
    return true;
}

static bool plugin_name_valid(struct ng_str name)
{
    if (name.len == 0 || name.len > PLUGIN_NAME_MAX || name.data[0] < 'a' ||
        name.data[0] > 'z') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return true;
}

/* Compiles one of a tool's schemas and keeps its tree for the listings. */
static int tool_schema(struct registry *registry, const struct ng_plugin *desc,
                       const char *tool, const char *text, struct schema **ret,
                       struct ng_value **ret_tree, struct buf *error)
{
    char reason[SCHEMA_ERROR_SIZE];
    int rc = schema_compile(ng_str_of(text), ret, reason, sizeof(reason));
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s, tool %s: its schema is not usable: %s", desc->name, tool,
                   reason);
        return rc;
    }
    const struct ng_value *tree = NULL;
    struct json_error json;
    rc = json_parse(&registry->arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &tree, &json);
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s, tool %s: its schema is not JSON: %s", desc->name, tool,
                   json.message);
        return rc;
    }
    *ret_tree = (struct ng_value *)(uintptr_t)tree;
    return NG_OK;
}

static int registry_name(struct registry *registry, struct ng_str name, const struct tool *tool,
                         struct buf *error)
{
    struct slot *slot = registry_slot(registry, name);
    if (slot->tool != NULL) {
        buf_printf(error, "plugin %s: the tool name %.*s is taken by plugin %s",
                   tool->plugin->desc.name, (int)name.len, name.data,
                   slot->tool->plugin->desc.name);
        return NG_EINVAL;
    }
    if (registry->slot_count >= REGISTRY_SLOTS / 2) {
        buf_printf(error, "plugin %s: more than %d tool names", tool->plugin->desc.name,
                   REGISTRY_SLOTS / 2);
        return NG_ETOOLARGE;
    }
    slot->name = name;
    slot->tool = tool;
    registry->slot_count++;
    return NG_OK;
}

static int registry_name_all(struct registry *registry, const struct tool *tool,
                             struct buf *error)
{
    int rc = registry_name(registry, ng_str_of(tool->desc.name), tool, error);
    const char *at = tool->desc.aliases == NULL ? "" : tool->desc.aliases;
    while (rc == NG_OK && *at != '\0') {
        size_t len = strcspn(at, " ");
        if (len > 0) {
            rc = registry_name(registry, str_make(at, len), tool, error);
        }
        at += len;
        at += strspn(at, " ");
    }
    return rc;
}

static int registry_add_tool(struct registry *registry, struct plugin *plugin,
                             const struct ng_tool *desc, struct buf *error)
{
    if (!tool_name_valid(ng_str_of(desc->name))) {
        buf_printf(error,
                   "plugin %s: the tool name \"%s\" is not of the form "
                   "[a-zA-Z][a-zA-Z0-9_]{0,62}",
                   plugin->desc.name, desc->name);
        return NG_EINVAL;
    }
    struct tool *tool = arena_zalloc(&registry->arena, sizeof(*tool));
    if (tool == NULL || registry->tool_count == REGISTRY_TOOLS_MAX) {
        buf_printf(error, "plugin %s: no room for tool %s", plugin->desc.name, desc->name);
        return NG_EINTERNAL;
    }
    tool->desc = *desc;
    tool->plugin = plugin;
    tool->index = registry->tool_count;
    int rc = tool_schema(registry, &plugin->desc, desc->name, desc->params, &tool->params,
                         &tool->params_tree, error);
    if (rc == NG_OK && desc->result != NULL) {
        rc = tool_schema(registry, &plugin->desc, desc->name, desc->result, &tool->result,
                         &tool->result_tree, error);
    }
    if (rc == NG_OK) {
        rc = registry_name_all(registry, tool, error);
    }
    if (rc != NG_OK) {
        schema_free(tool->params);
        schema_free(tool->result);
        return rc;
    }
    registry->tools[registry->tool_count++] = tool;
    return NG_OK;
}

/* A plugin is added whole or not at all: forget the tools from `first` on. */
static void registry_forget_tools(struct registry *registry, const struct plugin *plugin,
                                  size_t first)
{
    for (size_t i = first; i < registry->tool_count; i++) {
        schema_free(registry->tools[i]->params);
        schema_free(registry->tools[i]->result);
    }
    registry->tool_count = first;
    struct slot *kept = alloc_zeroed(REGISTRY_SLOTS, sizeof(*kept));
    if (kept == NULL) {
        return; /* the start fails anyway; nobody looks the names up */
    }
    memcpy(kept, registry->slots, sizeof(registry->slots));
    memset(registry->slots, 0, sizeof(registry->slots));
    registry->slot_count = 0;
    for (size_t i = 0; i < REGISTRY_SLOTS; i++) {
        if (kept[i].tool != NULL && kept[i].tool->plugin != plugin) {
            *registry_slot(registry, kept[i].name) = kept[i];
            registry->slot_count++;
        }
    }
    free(kept);
}

int registry_add(struct registry *registry, const struct ng_plugin *desc, struct module *module,
                 struct plugin **ret, struct buf *error)
{
    if (!plugin_name_valid(ng_str_of(desc->name))) {
        buf_printf(error, "the plugin name \"%s\" is not of the form [a-z][a-z0-9_]{0,31}",
                   desc->name);
        return NG_EINVAL;
    }
    for (size_t i = 0; i < registry->plugin_count; i++) {
        if (strcmp(registry->plugins[i]->desc.name, desc->name) == 0) {
            buf_printf(error, "two plugins are called %s", desc->name);
            return NG_EINVAL;
        }
    }
    struct plugin *plugin = arena_zalloc(&registry->arena, sizeof(*plugin));
    if (plugin == NULL || registry->plugin_count == REGISTRY_PLUGINS_MAX) {
        buf_printf(error, "no room for plugin %s", desc->name);
        return NG_EINTERNAL;
    }
    plugin->desc = *desc;
    plugin->module = module;
    size_t first = registry->tool_count;
    for (size_t i = 0; i < desc->tool_count; i++) {
        int rc = registry_add_tool(registry, plugin, &desc->tools[i], error);
        if (rc != NG_OK) {
            registry_forget_tools(registry, plugin, first);
            return rc;
        }
    }
    gate_init(&plugin->gate);
    registry->plugins[registry->plugin_count++] = plugin;
    *ret = plugin;
    return NG_OK;
}

void registry_stop(struct registry *registry)
{
    for (size_t i = registry->plugin_count; i > 0; i--) {
        struct plugin *plugin = registry->plugins[i - 1];
        if (plugin->started) {
            plugin->started = false;
            if (plugin->desc.stop != NULL) {
                plugin->desc.stop(plugin->self);
            }
        }
    }
}
