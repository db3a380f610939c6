/* SPDX-License-Identifier: MIT */
/* tool_formats.c - the list of tools in five forms. */
#include "tool_formats.h"

#include <stdio.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "tool_schema.h"

/* Characters of a function's description. */
#define OPENAI_DESCRIPTION_MAX ((size_t)1024)
#define CUT_MARK "..."
/* Maximum length of the enum of spaces. A caller with more spaces gets a plain string. */
#define SPACES_LISTED_MAX 20

static const char *const names[TOOL_FORMATS] = {
    [TOOL_FORMAT_MCP] = "mcp",
    [TOOL_FORMAT_OPENAI] = "openai",
    [TOOL_FORMAT_OPENAI_RESPONSES] = "openai-responses",
    [TOOL_FORMAT_ANTHROPIC] = "anthropic",
    [TOOL_FORMAT_GEMINI] = "gemini",
};

bool tool_format_parse(struct ng_str name, enum tool_format *ret)
{
    for (size_t i = 0; i < TOOL_FORMATS; i++) {
        if (str_is(name, names[i])) {
            *ret = (enum tool_format)i;
            return true;
        }
    }
    return false;
}

const char *tool_format_names(void)
{
    return "mcp, openai, openai-responses, anthropic, gemini";
}

/* ---- the member `space` ---- */

static struct ng_value *find_in(struct ng_value *object, const char *name)
{
    return (struct ng_value *)(uintptr_t)json_get(object, name);
}

static void take_last(struct ng_value *object)
{
    struct ng_value **at = &object->first;
    while (*at != NULL && (*at)->next != NULL) {
        at = &(*at)->next;
    }
    *at = NULL;
    object->count--;
}

/* Adds an enum of the caller's spaces. False: out of memory. */
static bool add_spaces(struct arena *arena, struct ng_value *schema,
                       const struct ng_caller *caller)
{
    struct ng_value *nodes = arena_zalloc(arena, (caller->space_count + 1) * sizeof(*nodes));
    if (nodes == NULL) {
        return false;
    }
    for (size_t i = 0; i < caller->space_count; i++) {
        nodes[i + 1].type = NG_TYPE_STRING;
        nodes[i + 1].text = caller->spaces[i];
        nodes[i].next = i > 0 ? &nodes[i + 1] : NULL;
    }
    nodes[0].type = NG_TYPE_ARRAY;
    nodes[0].key = ng_str_of("enum");
    nodes[0].count = (uint32_t)caller->space_count;
    nodes[0].first = &nodes[1];
    struct ng_value **at = &schema->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = nodes;
    schema->count++;
    return true;
}

const struct ng_value *tool_formats_params(const struct tool *tool, struct call *call)
{
    bool open = call == NULL ||
                (!call->caller.space_named && (call->key == NULL || call->caller.all_spaces ||
                                               call->caller.space_count > SPACES_LISTED_MAX));
    if ((tool->desc.flags & NG_TOOL_BY_SPACE) == 0 || open) {
        return tool->params_tree;
    }
    struct ng_value *tree = json_clone(&call->arena, tool->params_tree);
    struct ng_value *properties = find_in(tree, "properties");
    if (properties == NULL) {
        return tool->params_tree; /* no memory */
    }
    if (call->caller.space_count < 2 || call->caller.space_named) {
        take_last(properties);
    } else {
        (void)add_spaces(&call->arena, find_in(properties, TOOL_SPACE_MEMBER), &call->caller);
    }
    return tree;
}

/* ---- forms ---- */

static void write_mcp(struct ng_writer *writer, const struct tool *tool, struct call *call)
{
    const struct ng_tool *desc = &tool->desc;
    bool reads = desc->effect == NG_EFFECT_READS;
    json_member_cstring(writer, "name", desc->name);
    json_member_cstring(writer, "title", desc->title != NULL ? desc->title : desc->name);
    json_member_cstring(writer, "description", desc->summary);
    json_name(writer, "inputSchema");
    json_copy(writer, tool_formats_params(tool, call));
    if (tool->result_tree != NULL) {
        json_name(writer, "outputSchema");
        json_copy(writer, tool->result_tree);
    }
    json_name(writer, "annotations");
    json_object(writer);
    json_member_bool(writer, "readOnlyHint", reads);
    json_member_bool(writer, "destructiveHint",
                     !reads && (desc->flags & NG_TOOL_DESTRUCTIVE) != 0);
    json_member_bool(writer, "idempotentHint",
                     reads || (desc->flags & NG_TOOL_IDEMPOTENT) != 0);
    json_member_bool(writer, "openWorldHint", (desc->flags & NG_TOOL_OPEN_WORLD) != 0);
    json_end(writer);
}

static void write_task_support(struct ng_writer *writer, const struct tool *tool)
{
    uint32_t flags = tool->desc.flags;
    if ((flags & (NG_TOOL_TASK_ALLOWED | NG_TOOL_TASK_REQUIRED)) != 0) {
        json_name(writer, "execution");
        json_object(writer);
        json_member_cstring(writer, "taskSupport",
                            (flags & NG_TOOL_TASK_REQUIRED) != 0 ? "required" : "optional");
        json_end(writer);
    }
}

/* OpenAI refuses the whole request if one tool is described at more length. */
static void write_description(struct ng_writer *writer, const char *summary,
                              enum tool_schema_vendor vendor)
{
    char text[OPENAI_DESCRIPTION_MAX * UTF8_BYTES_MAX + 1];
    struct ng_str whole = ng_str_of(summary);
    if (vendor == TOOL_SCHEMA_OPENAI && utf8_count(whole) > OPENAI_DESCRIPTION_MAX) {
        struct ng_str cut = utf8_cut_count(whole, OPENAI_DESCRIPTION_MAX - strlen(CUT_MARK));
        (void)snprintf(text, sizeof(text), "%.*s" CUT_MARK, (int)cut.len, cut.data);
        summary = text;
    }
    json_member_cstring(writer, "description", summary);
}

static void write_named(struct ng_writer *writer, const struct tool *tool, struct call *call,
                        const char *schema, enum tool_schema_vendor vendor)
{
    json_member_cstring(writer, "name", tool->desc.name);
    write_description(writer, tool->desc.summary, vendor);
    json_name(writer, schema);
    tool_schema_write(writer, tool_formats_params(tool, call), vendor);
}

void tool_formats_write_tool(struct ng_writer *writer, const struct tool *tool,
                             struct call *call, enum tool_format format)
{
    json_object(writer);
    switch (format) {
    case TOOL_FORMAT_OPENAI:
        json_member_cstring(writer, "type", "function");
        json_name(writer, "function");
        json_object(writer);
        write_named(writer, tool, call, "parameters", TOOL_SCHEMA_OPENAI);
        json_end(writer);
        break;
    case TOOL_FORMAT_OPENAI_RESPONSES:
        json_member_cstring(writer, "type", "function");
        write_named(writer, tool, call, "parameters", TOOL_SCHEMA_OPENAI);
        /* Left out it means true there, and true refuses optional arguments. */
        json_member_bool(writer, "strict", false);
        break;
    case TOOL_FORMAT_ANTHROPIC:
        write_named(writer, tool, call, "input_schema", TOOL_SCHEMA_ANTHROPIC);
        break;
    case TOOL_FORMAT_GEMINI:
        write_named(writer, tool, call, "parametersJsonSchema", TOOL_SCHEMA_GEMINI);
        break;
    case TOOL_FORMAT_MCP:
        write_mcp(writer, tool, call);
        break;
    case TOOL_FORMAT_MCP_TASKS:
        write_mcp(writer, tool, call);
        write_task_support(writer, tool);
        break;
    }
    json_end(writer);
}

int tool_formats_print_tool(const struct tool *tool, struct call *call, enum tool_format format,
                            struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    tool_formats_write_tool(&writer, tool, call, format);
    return out->rc;
}

static void write_tools(struct ng_writer *writer, struct gateway *gateway, struct call *call,
                        enum tool_format format)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(gateway->registry, &tools);
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        if (call == NULL || dispatch_allows(call, tools[i])) {
            tool_formats_write_tool(writer, tools[i], call, format);
        }
    }
    json_end(writer);
    if (call != NULL && call->arena.oom) {
        writer->buf->rc = NG_EINTERNAL; /* whether one is listed could not be found out */
    }
}

int tool_formats_print(struct gateway *gateway, struct call *call, enum tool_format format,
                       struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    if (format == TOOL_FORMAT_MCP) {
        json_object(&writer);
        json_name(&writer, "tools");
        write_tools(&writer, gateway, call, format);
        json_end(&writer);
    } else if (format == TOOL_FORMAT_GEMINI) {
        json_array(&writer);
        json_object(&writer);
        json_name(&writer, "functionDeclarations");
        write_tools(&writer, gateway, call, format);
        json_end(&writer);
        json_end(&writer);
    } else {
        write_tools(&writer, gateway, call, format);
    }
    return out->rc;
}
