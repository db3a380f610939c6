/* SPDX-License-Identifier: MIT */
/* routes.h - the table of routes, and MCP as the server's service. */
#ifndef NOTEGATE_API_ROUTES_H
#define NOTEGATE_API_ROUTES_H

#include "api/http/http_route.h"

const struct http_routes *routes_all(void);

#endif
