/* SPDX-License-Identifier: MIT */
/* command_tool_text.h - tools as text for a person at the command line. */
#ifndef NOTEGATE_API_COMMAND_TOOL_TEXT_H
#define NOTEGATE_API_COMMAND_TOOL_TEXT_H

#include "command.h"
#include "core/module/registry.h"

/* Names and first sentences by plugin. list: {"tools": [...]} as of MCP. registry: of the same
 * modules; it knows which plugin has a tool. */
void command_tool_list(const struct ng_value *list, const struct registry *registry);
/* The arguments of one tool with types, and an example. tool: a definition as of MCP. */
void command_tool_one(const struct ng_value *tool);

#endif
