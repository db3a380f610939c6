/* SPDX-License-Identifier: MIT */
/* http_mcp.h - the route /mcp and its hooks. */
#ifndef NOTEGATE_API_HTTP_MCP_H
#define NOTEGATE_API_HTTP_MCP_H

#include "api/http/http_route.h"
#include "mcp_http.h"

int mcp_route(struct http_request *request);
void mcp_route_finish(struct http_request *request);
/* For struct http_service. */
void mcp_route_wait(struct http_request *request, struct http_wait *ret);
void mcp_route_release(void *service_state);

#endif
