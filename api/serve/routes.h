/* SPDX-License-Identifier: MIT */
/* routes.h - which function answers which method and path. */
#ifndef NOTEGATE_API_ROUTES_H
#define NOTEGATE_API_ROUTES_H

#include "api/http/http_request.h"

#define MCP_PATH "/mcp"

enum route_flags {
    ROUTE_OPEN = 1, /* answers without a key, on connections that may ask at all */
    ROUTE_BODY = 2, /* a body must be JSON */
    ROUTE_MCP = 4,  /* MCP: looks at methods itself, refusals are JSON-RPC errors */
    ROUTE_PROBE = 8 /* whatever the Host: a prober calls the address that it was given */
};

struct route {
    unsigned methods; /* enum http_method, or-ed; HEAD comes with GET */
    unsigned flags;
    const char *path; /* "/v1/tools", "/v1/tools/{name}" */
    /* NG_OK: request->reply is filled; NG_PENDING: http_request_done() will be called. */
    int (*run)(struct http_request *request);
    /* After NG_PENDING, on the event loop. */
    void (*finish)(struct http_request *request);
};

/* Sets request->route and param. Not found, or not with this method: request->route stays NULL
 * and the fault is set (404 with the nearest path, 405). */
void routes_find(struct http_request *request);
/* "GET, HEAD, OPTIONS": what the path takes; "" where there is no such path. */
const char *routes_allow(struct ng_str path);
/* The table of all paths. */
const struct route *routes_all(size_t *ret_count);

/* The handlers, each in the file its name begins with. */
int rest_tools_list(struct http_request *request);
int rest_tools_show(struct http_request *request);
int rest_tools_call(struct http_request *request);
void rest_tools_finish(struct http_request *request);
int rest_ops_healthz(struct http_request *request);
int rest_ops_readyz(struct http_request *request);
int rest_ops_metrics(struct http_request *request);
void rest_ops_finish(struct http_request *request);
int rest_admin_reload(struct http_request *request);
void rest_admin_reload_finish(struct http_request *request);
int rest_admin_backup(struct http_request *request);
int rest_admin_verify(struct http_request *request);
void rest_admin_finish(struct http_request *request);
int rest_keys_list(struct http_request *request);
int rest_keys_add(struct http_request *request);
int rest_keys_show(struct http_request *request);
int rest_keys_revoke(struct http_request *request);
void rest_keys_finish(struct http_request *request);
int rest_events(struct http_request *request);
int openapi_route(struct http_request *request);
int docs_page_html(struct http_request *request);
int docs_page_script(struct http_request *request);
int docs_page_style(struct http_request *request);
int mcp_route(struct http_request *request);
void mcp_route_finish(struct http_request *request);

#endif
