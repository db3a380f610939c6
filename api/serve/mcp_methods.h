/* SPDX-License-Identifier: MIT */
/* mcp_methods.h - the table of MCP methods. */
#ifndef NOTEGATE_API_MCP_METHODS_H
#define NOTEGATE_API_MCP_METHODS_H

#include "api/server/mcp_server.h"

const struct mcp_methods *mcp_methods_all(void);

#endif
