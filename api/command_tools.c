/* SPDX-License-Identifier: MIT */
/* command_tools.c - notegate tools: the tool definitions in one of the vendors' formats. */
#include "commands.h"
#include "str.h"
#include "target.h"
#include "tool_formats.h"

#define TOOLS_ERROR_MAX ((size_t)64 * 1024)

static int tools_from_gateway(struct command_line *line, struct target *target)
{
    struct target_answer answer;
    struct ng_str path = arena_printf(&line->arena, "/v1/tools?format=%s",
                                      line->format == NULL ? "mcp" : line->format);
    struct client_request request = {.method = "GET",
                                     .path = path.data == NULL ? "/v1/tools" : path.data};
    int rc = target_request(target, &request, &answer);
    if (rc == NG_OK && answer.status != 200) {
        target_print_error(&answer);
        rc = NG_EFAILED;
    } else if (rc == NG_OK) {
        rc = command_put(stdout, buf_str(&answer.body));
    }
    target_answer_done(&answer);
    return rc;
}

/* No data directory is needed: only the modules' descriptors. */
static int tools_from_modules(struct target *target, enum tool_format format)
{
    struct gateway *gateway = NULL;
    struct buf error;
    struct buf out;
    buf_init(&error, TOOLS_ERROR_MAX);
    buf_init(&out, TOOL_FORMATS_MAX);
    int rc = gateway_open(target->config, GATEWAY_DESCRIBE, 0, &gateway, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    } else {
        target->config = NULL;
        rc = tool_formats_print(gateway, NULL, format, &out);
        if (rc == NG_OK) {
            rc = command_put(stdout, buf_str(&out));
        } else {
            command_error("the tool definitions do not fit in memory");
        }
    }
    gateway_close(gateway);
    buf_done(&error);
    buf_done(&out);
    return rc;
}

int command_tools(struct command_line *line)
{
    struct target target;
    enum tool_format format = TOOL_FORMAT_MCP;
    bool running = false;
    if (line->format != NULL && !tool_format_parse(ng_str_of(line->format), &format)) {
        return command_usage(line, "unknown format \"%s\"; there are %s", line->format,
                             tool_format_names());
    }
    if (target_find(line, &target, &running) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    int rc = running ? tools_from_gateway(line, &target) : tools_from_modules(&target, format);
    if (rc == NG_OK) {
        (void)command_put(stdout, ng_str_of("\n"));
    }
    target_done(&target);
    return rc == NG_OK ? COMMAND_OK : COMMAND_FAILED;
}
