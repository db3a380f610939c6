/* SPDX-License-Identifier: MIT */
/* print_tools.h - tools as text for a person at the command line. */
#ifndef NOTEGATE_API_PRINT_TOOLS_H
#define NOTEGATE_API_PRINT_TOOLS_H

#include "api/client/command_line.h"
#include "core/module/registry.h"

/* Names and first sentences by plugin. list: {"tools": [...]} as of MCP. registry: of the same
 * modules; it knows which plugin has a tool. */
void print_tool_list(const struct ng_value *list, const struct registry *registry);
/* The arguments of one tool with types, and an example. tool: a definition as of MCP. */
void print_tool(const struct ng_value *tool);

#endif
