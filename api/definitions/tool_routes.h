/* SPDX-License-Identifier: MIT */
/* tool_routes.h - addresses of tools besides /v1/tools: their answer is the tool's object. GET:
 * parameters are the arguments. POST: the body is. */
#ifndef NOTEGATE_API_TOOL_ROUTES_H
#define NOTEGATE_API_TOOL_ROUTES_H

#include "notegate/abi.h"

enum tool_route_method { TOOL_ROUTE_GET, TOOL_ROUTE_POST };

struct tool_route {
    const char *path;
    const char *tool;
    const char *plain; /* of GET: the member that Accept: text/plain asks for, or NULL */
    enum tool_route_method method;
};

#define TOOL_ROUTES 6
extern const struct tool_route tool_routes[TOOL_ROUTES];

/* NULL: it is no such address. */
const struct tool_route *tool_route_find(struct ng_str path);

#endif
