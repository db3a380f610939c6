/* SPDX-License-Identifier: MIT */
/* mcp_relay.h - MCP on stdin and stdout, passed on to the running gateway's /mcp. */
#ifndef NOTEGATE_API_MCP_RELAY_H
#define NOTEGATE_API_MCP_RELAY_H

#include "attach.h"

/* Answers go to out_fd. Until the end of input, or until stop_fd (-1: none) is readable. enum
 * command_exit. */
int mcp_relay_run(struct command_line *line, struct attach *attach, int out_fd, int stop_fd);

#endif
