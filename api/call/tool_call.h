/* SPDX-License-Identifier: MIT */
/* tool_call.h - a command's call of a tool: one form of the answer, wherever the call ran. */
#ifndef NOTEGATE_API_TOOL_CALL_H
#define NOTEGATE_API_TOOL_CALL_H

#include "api/client/attach.h"

struct tool_call {
    const char *tool;
    struct ng_str args; /* JSON; "" is {} */
    bool is_raw;        /* tools.max_answer does not apply */
};

/* The path of the tool's REST address. Memory of the line; absent: out of memory. */
struct ng_str tool_call_path(struct command_line *line, const char *tool);
/* Calls it as the caller that the line names. COMMAND_OK: *ret has status and body as of REST,
 * also where the tool failed. COMMAND_FAILED or COMMAND_USAGE after a message.
 * attach_answer_done() in either case. */
int tool_call(struct command_line *line, struct attach *attach, const struct tool_call *wanted,
              struct attach_answer *ret);

#endif
