/* SPDX-License-Identifier: MIT */
/* tool_formats.h - the tools as MCP and each model vendor wants them, schemas lowered where
 * needed.
 */
#ifndef NOTEGATE_API_TOOL_FORMATS_H
#define NOTEGATE_API_TOOL_FORMATS_H

#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"

enum tool_format {
    TOOL_FORMAT_MCP = 0, /* {"tools":[...]} */
    TOOL_FORMAT_OPENAI,
    TOOL_FORMAT_OPENAI_RESPONSES,
    TOOL_FORMAT_ANTHROPIC,
    TOOL_FORMAT_GEMINI,
    TOOL_FORMATS,
    /* MCP 2025-11-25: also which tools may run as tasks. Has no name of its own. */
    TOOL_FORMAT_MCP_TASKS = TOOL_FORMATS
};

/* Room for any list of tools. */
#define TOOL_FORMATS_MAX ((size_t)16 * 1024 * 1024)

/* "openai-responses" -> TOOL_FORMAT_OPENAI_RESPONSES. False: no such format. */
bool tool_format_parse(struct ng_str name, enum tool_format *ret);
/* "mcp, openai, openai-responses, anthropic, gemini", for messages. */
const char *tool_format_names(void);

/* The tools this caller may call, in stable order. call: the caller (NULL: all of them). */
int tool_formats_print(struct gateway *gateway, struct call *call, enum tool_format format,
                       struct buf *out);
/* The schema of the tool's arguments as this caller sees it: with the member `space` only if it
 * may use more than one space and has named none, and as an enum if it may use few. Memory of
 * the call. call NULL: a caller that may use all. */
const struct ng_value *tool_formats_params(const struct tool *tool, struct call *call);
/* One tool: the element of the list (mcp: {name,title,...}; gemini: one functionDeclaration).
 */
int tool_formats_print_tool(const struct tool *tool, struct call *call, enum tool_format format,
                            struct buf *out);
/* The same into a writer that is open (MCP tools/list). */
void tool_formats_write_tool(struct ng_writer *writer, const struct tool *tool,
                             struct call *call, enum tool_format format);

#endif
