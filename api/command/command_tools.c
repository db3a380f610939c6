/* SPDX-License-Identifier: MIT */
/* command_tools.c - notegate tools: the list of tools for a person, the definitions in one of
 * the vendors' formats, one tool with its arguments. */
#include <unistd.h>

#include "api/client/attach.h"
#include "api/client/trial.h"
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
    struct gateway *gateway; /* this process' own; NULL: one runs */
    const char *name;        /* of one tool, or NULL */
    enum tool_format format;
    bool text; /* for a person */
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
    struct call *call = call_new(tools->gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = attach_set_caller(tools->line, call);
    }
    if (rc == NG_OK && tools->name == NULL) {
        rc = tool_formats_print(tools->gateway, call, tools->format, &tools->out);
    } else if (rc == NG_OK) {
        struct ng_str name = ng_str_of(tools->name);
        const struct tool *tool = registry_find(tools->gateway->registry, name);
        if (tool != NULL) {
            rc = tool_formats_print_tool(tool, call, tools->format, &tools->out);
        } else {
            struct ng_str near = registry_nearest(tools->gateway->registry, name);
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
        if (tools->gateway == NULL) {
            rc = attach_describe(&tools->attach, &tools->gateway);
        }
        if (rc == NG_OK) {
            print_tool_list(value, tools->gateway->registry);
        }
    }
    arena_done(&arena);
    return rc;
}

/* The list with a line for each tool: for `less` and `grep`. It is JSON still. */
static int tools_put_lines(enum tool_format format, struct ng_str json)
{
    struct buf out;
    buf_init(&out, TOOL_FORMATS_MAX * 2);
    int list = format == TOOL_FORMAT_GEMINI ? 3 : 1; /* depth: [{"functionDeclarations":[ */
    int depth = 0;                                   /* from the first bracket on */
    bool in_text = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.data[i];
        bool escaped = in_text && c == '\\';
        in_text = in_text != (c == '"');
        bool opens = !in_text && (c == '[' || (c == '{' && depth > 0));
        bool closes = !in_text && depth > 0 && (c == ']' || c == '}');
        depth += (int)opens - (int)closes;
        if (closes && depth == list - 1) {
            buf_add_char(&out, '\n');
        }
        buf_add_char(&out, c);
        if (escaped && i + 1 < json.len) {
            buf_add_char(&out, json.data[++i]);
        }
        if (!in_text && depth == list && (opens || c == ',')) {
            buf_add_char(&out, '\n');
        }
    }
    buf_add_char(&out, '\n');
    int rc = out.rc == NG_OK ? command_put(stdout, buf_str(&out)) : out.rc;
    buf_done(&out);
    return rc;
}

static int tools_put(struct tools *tools)
{
    if (tools->text) {
        return tools_print_text(tools);
    }
    if (tools->name == NULL) {
        return tools_put_lines(tools->format, buf_str(&tools->out));
    }
    buf_add_char(&tools->out, '\n');
    return command_put(stdout, buf_str(&tools->out));
}

/* Of one tool the descriptors of the modules tell all. */
static int tools_of_modules(struct tools *tools)
{
    int rc = attach_describe(&tools->attach, &tools->gateway);
    if (rc == NG_OK) {
        rc = tools_print_own(tools);
    }
    return rc == NG_OK ? tools_put(tools) : rc;
}

static int tools_of_own(struct tools *tools)
{
    int rc = attach_open_own(tools->line, &tools->attach, &tools->gateway);
    if (rc == NG_OK) {
        rc = tools_print_own(tools);
    }
    return rc == NG_OK ? tools_put(tools) : rc;
}

/* This user has no store yet, and looking makes none. */
static int tools_of_trial(void *user, const char *dir)
{
    struct tools *tools = user;
    config_free(tools->attach.config);
    tools->attach.config = NULL;
    int rc = trial_config(tools->line, dir, true, &tools->attach.config);
    if (rc == COMMAND_OK) {
        rc = command_exit_code(tools_of_own(tools));
    }
    gateway_close(tools->gateway);
    return rc;
}

static int tools_find(struct tools *tools)
{
    bool running = false;
    if (attach_find(tools->line, &tools->attach, &running) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    if (running) {
        int refused = attach_refuse_unused(tools->line, &tools->attach);
        if (refused != COMMAND_OK) {
            return refused;
        }
    }
    int rc;
    buf_init(&tools->out, TOOL_FORMATS_MAX);
    if (running) {
        int got = tools_from_gateway(tools);
        rc = command_exit_code(got == NG_OK ? tools_put(tools) : got);
    } else if (tools->name != NULL) {
        rc = command_exit_code(tools_of_modules(tools));
    } else if (attach_is_own(&tools->attach)) {
        rc = command_exit_code(tools_of_own(tools));
    } else {
        rc = trial_run("notegate-tools", tools_of_trial, tools);
    }
    gateway_close(tools->gateway);
    buf_done(&tools->out);
    attach_done(&tools->attach);
    return rc;
}

int command_tools(struct command_line *line)
{
    struct tools tools = {.line = line, .format = TOOL_FORMAT_MCP};
    if (line->format != NULL && !tool_format_parse(ng_str_of(line->format), &tools.format)) {
        return command_usage(line, "unknown format \"%s\"; there are %s", line->format,
                             tool_format_names());
    }
    tools.name = line->words[0]; /* NULL: none */
    tools.text = line->format == NULL && !line_has(line, LINE_JSON) &&
                 (tools.name != NULL || isatty(STDOUT_FILENO) == 1);
    return tools_find(&tools);
}

int command_call_help(struct command_line *line)
{
    struct tools tools = {
        .line = line, .format = TOOL_FORMAT_MCP, .name = line->words[0], .text = true};
    return tools_find(&tools);
}
