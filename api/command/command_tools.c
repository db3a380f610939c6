/* SPDX-License-Identifier: MIT */
/* command_tools.c - notegate tools: the list of tools for a person, the definitions in one of
 * the vendors' formats, one tool with its arguments. */
#include <unistd.h>

#include "api/client/attach.h"
#include "api/definitions/tool_formats.h"
#include "api/print/print_tools.h"
#include "commands.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/gateway/gateway_open.h"

struct tools {
    struct command_line *line;
    struct attach attach;
    struct gateway *modules; /* their descriptors, where another process serves; or NULL */
    const char *name;        /* of one tool, or NULL */
    enum tool_format format;
    struct buf out;
};

static int tools_from_gateway(struct tools *tools)
{
    struct ng_str path =
        arena_printf(&tools->line->arena, "/v1/tools%s%s?format=%s", text_if(tools->name, "/"),
                     text_or(tools->name, ""), text_or(tools->line->format, "mcp"));
    struct client_request request = {.method = "GET", .path = text_or(path.data, "/v1/tools")};
    return attach_fetch(&tools->attach, &request, &tools->out);
}

/* ---- a gateway of this process' own ---- */

static int tools_print_own(struct tools *tools)
{
    struct gateway *gateway = tools->attach.gateway;
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = attach_set_caller(tools->line, call);
    }
    if (rc == NG_OK && tools->name == NULL) {
        rc = tool_formats_print(gateway, call, tools->format, &tools->out);
    } else if (rc == NG_OK) {
        struct ng_str name = ng_str_of(tools->name);
        const struct tool *tool = registry_find(gateway->registry, name);
        if (tool != NULL) {
            rc = tool_formats_print_tool(tool, tools->format, &tools->out);
        } else {
            struct ng_str near = registry_nearest(gateway->registry, name);
            command_error("no tool is called \"%s\"%s%.*s%s", tools->name,
                          text_if(near.len > 0, "; did you mean `"), (int)near.len,
                          near.len > 0 ? near.data : "", text_if(near.len > 0, "`?"));
            call_unref(call);
            return NG_EFAILED;
        }
    }
    call_unref(call);
    if (rc != NG_OK) {
        command_error("the tool definitions do not fit in memory");
    }
    return rc;
}

/* ---- for a person ---- */

static int tools_print_text(struct tools *tools)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, ATTACH_ANSWER_MAX);
    int rc = json_parse(&arena, buf_str(&tools->out), JSON_DEPTH_DEFAULT, &value, NULL);
    if (rc != NG_OK) {
        command_error("the definitions of the tools are not JSON");
    } else if (tools->name != NULL) {
        print_tool(value);
    } else {
        /* The plugin of a tool is told by the modules, also where another process serves. */
        const struct gateway *gateway = tools->attach.gateway;
        if (gateway == NULL) {
            rc = attach_describe(&tools->attach, &tools->modules);
            gateway = tools->modules;
        }
        if (rc == NG_OK) {
            print_tool_list(value, gateway->registry);
        }
    }
    arena_done(&arena);
    return rc;
}

/* The list with a line for each tool: for `less` and `grep`. It is JSON still. */
static int tools_put_lines(struct ng_str json)
{
    struct buf out;
    buf_init(&out, TOOL_FORMATS_MAX * 2);
    int depth = 0; /* in the list, from its bracket on */
    bool in_text = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.data[i];
        bool escaped = in_text && c == '\\';
        in_text = in_text != (c == '"');
        bool opens = !in_text && (c == '[' || (c == '{' && depth > 0));
        bool closes = !in_text && depth > 0 && (c == ']' || c == '}');
        depth += (int)opens - (int)closes;
        if (closes && depth == 0) {
            buf_add_char(&out, '\n');
        }
        buf_add_char(&out, c);
        if (escaped && i + 1 < json.len) {
            buf_add_char(&out, json.data[++i]);
        }
        if (!in_text && depth == 1 && (opens || c == ',')) {
            buf_add_char(&out, '\n');
        }
    }
    buf_add_char(&out, '\n');
    int rc = out.rc == NG_OK ? command_put(stdout, buf_str(&out)) : out.rc;
    buf_done(&out);
    return rc;
}

static int tools_print(struct tools *tools, bool text)
{
    int rc = attach_look(tools->line, &tools->attach);
    if (rc != COMMAND_OK) {
        return rc;
    }
    buf_init(&tools->out, TOOL_FORMATS_MAX);
    if (tools->attach.gateway == NULL) {
        rc = tools_from_gateway(tools);
    } else {
        rc = tools_print_own(tools);
    }
    if (rc == NG_OK && text) {
        rc = tools_print_text(tools);
    } else if (rc == NG_OK && tools->name == NULL) {
        rc = tools_put_lines(buf_str(&tools->out));
    } else if (rc == NG_OK) {
        buf_add_char(&tools->out, '\n');
        rc = command_put(stdout, buf_str(&tools->out));
    }
    gateway_close(tools->modules);
    buf_done(&tools->out);
    attach_done(&tools->attach);
    return command_exit_code(rc);
}

int command_tools(struct command_line *line)
{
    struct tools tools = {.line = line, .format = TOOL_FORMAT_MCP};
    if (line->format != NULL && !tool_format_parse(ng_str_of(line->format), &tools.format)) {
        return command_usage(line, "unknown format \"%s\"; there are %s", line->format,
                             tool_format_names());
    }
    tools.name = line->words[0]; /* NULL: none */
    bool text = line->format == NULL && !line_has(line, LINE_JSON) &&
                (tools.name != NULL || isatty(STDOUT_FILENO) == 1);
    return tools_print(&tools, text);
}

int command_call_help(struct command_line *line)
{
    struct tools tools = {.line = line, .format = TOOL_FORMAT_MCP, .name = line->words[0]};
    return tools_print(&tools, true);
}
