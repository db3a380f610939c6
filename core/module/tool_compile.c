/* SPDX-License-Identifier: MIT */
/* tool_compile.c - the schemas of a tool: with the property `space` where its data are kept by
 * space, compiled for checks and parsed for lists. */
#include "tool_compile.h"

#include "core/base/str.h"
#include "registry.h"

#define SCHEMA_ERROR_SIZE 512
#define SCHEMA_TEXT_MAX ((size_t)1024 * 1024) /* with the property that is added */
/* Schemas of TOOL_SPACE_MEMBER. They are short, because a list has one for each tool. */
#define SPACE_ARGUMENT "{\"type\":\"string\",\"description\":\"Another space.\"}"
#define SPACE_ANSWERED "{\"type\":\"string\"}"

/* Compiles one of a tool's schemas and keeps its tree for the listings. */
static int tool_schema(struct plugin *plugin, const char *tool, const char *text,
                       struct schema **ret, struct ng_value **ret_tree, struct buf *error)
{
    char reason[SCHEMA_ERROR_SIZE];
    int rc = schema_compile(ng_str_of(text), ret, reason, sizeof(reason));
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s, tool %s: its schema is not usable: %s", plugin->desc.name,
                   tool, reason);
        return rc;
    }
    const struct ng_value *tree = NULL;
    struct json_error json;
    rc = json_parse(&plugin->arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &tree, &json);
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s, tool %s: its schema is not JSON: %s", plugin->desc.name,
                   tool, json.message);
        return rc;
    }
    *ret_tree = (struct ng_value *)(uintptr_t)tree;
    return NG_OK;
}

static struct ng_value *child_of(struct ng_value *object, const char *name)
{
    return (struct ng_value *)(uintptr_t)json_get(object, name);
}

/* Appends a copy of `value`. NULL: out of memory. */
static struct ng_value *add_member(struct arena *arena, struct ng_value *object,
                                   const char *name, const struct ng_value *value)
{
    struct ng_value *copy = json_clone(arena, value);
    struct ng_value **at = &object->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = copy;
    if (copy != NULL) {
        copy->key = ng_str_of(name);
        object->count++;
    }
    object->text = str_make(NULL, 0);
    return copy;
}

/* Returns the schema with the property TOOL_SPACE_MEMBER. NULL: it has that property already,
 * or memory is exhausted. */
static const char *schema_by_space(struct arena *arena, const char *schema, const char *added)
{
    const struct ng_value *tree = NULL;
    const struct ng_value *member = NULL;
    static const struct ng_value none = {.type = NG_TYPE_OBJECT};
    struct json_error error;
    struct buf text;
    struct ng_str copy = {NULL, 0};
    if (json_parse(arena, ng_str_of(schema), JSON_DEPTH_DEFAULT, &tree, &error) != NG_OK ||
        json_parse(arena, ng_str_of(added), JSON_DEPTH_DEFAULT, &member, &error) != NG_OK) {
        return schema; /* tool_schema() says why it is no schema */
    }
    if (tree->type != NG_TYPE_OBJECT) {
        return schema;
    }
    struct ng_value *root = (struct ng_value *)(uintptr_t)tree;
    struct ng_value *properties = child_of(root, "properties");
    if (properties == NULL) {
        properties = add_member(arena, root, "properties", &none);
    }
    if (properties == NULL || json_get(properties, TOOL_SPACE_MEMBER) != NULL ||
        add_member(arena, properties, TOOL_SPACE_MEMBER, member) == NULL) {
        return NULL;
    }
    root->text = str_make(NULL, 0);
    buf_init(&text, SCHEMA_TEXT_MAX);
    if (json_print(&text, root) == NG_OK) {
        copy = arena_copy(arena, buf_str(&text));
    }
    buf_done(&text);
    return copy.data;
}

/* Adds the property to both schemas of the tool. */
static int add_space(struct plugin *plugin, struct ng_tool *desc, struct buf *error)
{
    const char *params = schema_by_space(&plugin->arena, desc->params, SPACE_ARGUMENT);
    const char *result = desc->result;
    bool good = params != NULL;
    if (result != NULL) {
        result = schema_by_space(&plugin->arena, result, SPACE_ANSWERED);
        good = good && result != NULL;
    }
    if (!good) {
        buf_printf(error,
                   "plugin %s, tool %s: a schema has the property " TOOL_SPACE_MEMBER
                   ", which NG_TOOL_BY_SPACE adds, or there is no memory for it",
                   plugin->desc.name, desc->name);
        return NG_EINVAL;
    }
    desc->params = params;
    desc->result = result;
    return NG_OK;
}

int tool_compile(struct tool *tool, struct buf *error)
{
    struct plugin *plugin = tool->plugin;
    struct ng_tool *desc = &tool->desc;
    int rc = NG_OK;
    tool->marks_headers = strstr(desc->params, TOOL_HEADER_MARK) != NULL;
    if ((desc->flags & NG_TOOL_BY_SPACE) != 0) {
        rc = add_space(plugin, desc, error);
    }
    if (rc == NG_OK) {
        rc = tool_schema(plugin, desc->name, desc->params, &tool->params, &tool->params_tree,
                         error);
    }
    if (rc == NG_OK && desc->result != NULL) {
        rc = tool_schema(plugin, desc->name, desc->result, &tool->result, &tool->result_tree,
                         error);
    }
    return rc;
}
