/* SPDX-License-Identifier: MIT */
/* tool_routes.h - addresses of tools that only read, besides /v1/tools: their parameters are
 * the arguments of the tool, their answer is the tool's object. */
#ifndef NOTEGATE_API_TOOL_ROUTES_H
#define NOTEGATE_API_TOOL_ROUTES_H

#include "notegate/abi.h"

struct tool_route {
    const char *path;
    const char *tool;
    const char *plain; /* the member that Accept: text/plain asks for, or NULL */
};

#define TOOL_ROUTES 4
extern const struct tool_route tool_routes[TOOL_ROUTES];

/* NULL: it is no such address. */
const struct tool_route *tool_route_find(struct ng_str path);

#endif
