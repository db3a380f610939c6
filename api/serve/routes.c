/* SPDX-License-Identifier: MIT */
/* routes.c - the table of paths. */
#include "routes.h"

#include <stdio.h>

#include "core/base/edit_distance.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#define PARAM "{name}"
/* How far a path may be from a known one to be named as a hint. */
#define NEAR_MAX 3
#define STATUS_NO_CONTENT 204

static int options_run(struct http_request *request)
{
    request->reply.status = STATUS_NO_CONTENT;
    request->reply.allow = routes_allow(request->target.path);
    if (request->headers.preflight_method.data != NULL) {
        request->reply.cors_allow = request->reply.allow;
    }
    return NG_OK;
}

static const struct route options_route = {
    .methods = HTTP_OPTIONS,
    .flags = ROUTE_OPEN,
    .path = "*",
    .run = options_run,
};

static const struct route table[] = {
    {HTTP_POST, ROUTE_BODY, "/v1/tools/" PARAM, rest_tools_call, rest_tools_finish},
    {HTTP_GET, 0, "/v1/tools/" PARAM, rest_tools_show, NULL},
    {HTTP_POST | HTTP_GET | HTTP_DELETE, ROUTE_MCP, MCP_PATH, mcp_route, mcp_route_finish},
    {HTTP_GET, 0, "/v1/tools", rest_tools_list, NULL},
    {HTTP_GET, ROUTE_OPEN | ROUTE_PROBE, "/healthz", rest_ops_healthz, NULL},
    {HTTP_GET, ROUTE_OPEN | ROUTE_PROBE, "/readyz", rest_ops_readyz, rest_ops_finish},
    {HTTP_GET, 0, "/metrics", rest_ops_metrics, NULL},
    {HTTP_POST, 0, "/v1/reload", rest_admin_reload, rest_admin_reload_finish},
    {HTTP_POST, 0, "/v1/admin/backup", rest_admin_backup, rest_admin_finish},
    {HTTP_POST, 0, "/v1/admin/verify", rest_admin_verify, rest_admin_finish},
    {HTTP_GET, 0, "/v1/keys", rest_keys_list, rest_keys_finish},
    {HTTP_POST, ROUTE_BODY, "/v1/keys", rest_keys_add, rest_keys_finish},
    {HTTP_GET, 0, "/v1/keys/" PARAM, rest_keys_show, rest_keys_finish},
    {HTTP_DELETE, 0, "/v1/keys/" PARAM, rest_keys_revoke, rest_keys_finish},
    {HTTP_GET, 0, "/v1/events", rest_events, NULL},
    {HTTP_GET, 0, "/openapi.json", openapi_route, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs", docs_page_html, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs/docs.js", docs_page_script, NULL},
    {HTTP_GET, ROUTE_OPEN, "/docs/docs.css", docs_page_style, NULL},
};

const struct route *routes_all(size_t *ret_count)
{
    *ret_count = NG_COUNT(table);
    return table;
}

static bool matches(const struct route *route, struct ng_str path, struct ng_str *ret_param)
{
    struct ng_str pattern = ng_str_of(route->path);
    struct ng_str param = ng_str_of(PARAM);
    if (pattern.data[pattern.len - 1] != '}') {
        return str_equal(pattern, path);
    }
    size_t prefix = pattern.len - param.len;
    if (path.len <= prefix || memcmp(path.data, pattern.data, prefix) != 0 ||
        memchr(path.data + prefix, '/', path.len - prefix) != NULL) {
        return false;
    }
    *ret_param = str_make(path.data + prefix, path.len - prefix);
    return true;
}

static unsigned path_methods(struct ng_str path)
{
    unsigned methods = 0;
    struct ng_str param;
    for (size_t i = 0; i < NG_COUNT(table); i++) {
        if (matches(&table[i], path, &param)) {
            methods |= table[i].methods;
        }
    }
    return methods;
}

const char *routes_allow(struct ng_str path)
{
    switch (path_methods(path)) {
    case HTTP_GET:
        return "GET, HEAD, OPTIONS";
    case HTTP_POST:
        return "POST, OPTIONS";
    case HTTP_GET | HTTP_POST:
        return "GET, HEAD, POST, OPTIONS";
    case HTTP_GET | HTTP_DELETE:
        return "GET, HEAD, DELETE, OPTIONS";
    case HTTP_GET | HTTP_POST | HTTP_DELETE:
        return "GET, POST, DELETE, OPTIONS";
    default:
        return str_is(path, "*") ? "GET, HEAD, POST, DELETE, OPTIONS" : "";
    }
}

/* The known path that was probably meant, or NULL. */
static const char *nearest(struct ng_str path)
{
    const char *best = NULL;
    /* Half of a short path wrong is another path. */
    size_t most = path.len / 3 < NEAR_MAX ? path.len / 3 : NEAR_MAX;
    size_t least = most + 1;
    for (size_t i = 0; i < NG_COUNT(table); i++) {
        size_t distance = edit_distance(path, ng_str_of(table[i].path), most);
        if (distance < least) {
            least = distance;
            best = table[i].path;
        }
    }
    return best;
}

static void not_found(struct http_request *request)
{
    struct http_fault *fault = &request->fault;
    struct ng_str path = utf8_cut(request->target.path, 60);
    const char *near = nearest(request->target.path);
    fault->rc = NG_ENOTFOUND;
    (void)snprintf(fault->text, sizeof(fault->text), "There is nothing at %.*s", (int)path.len,
                   path.data);
    if (near != NULL) {
        (void)snprintf(request->hint, sizeof(request->hint), "Did you mean %s?", near);
        request->fault_hint = request->hint;
    } else {
        request->fault_hint = "/docs shows the tools in a browser, GET /v1/tools lists them, "
                              "GET /openapi.json all addresses";
    }
}

void routes_find(struct http_request *request)
{
    unsigned method = request->method == HTTP_HEAD ? HTTP_GET : request->method;
    struct ng_str path = request->target.path;
    for (size_t i = 0; i < NG_COUNT(table); i++) {
        bool head_of_mcp = request->method == HTTP_HEAD && (table[i].flags & ROUTE_MCP) != 0;
        if ((table[i].methods & method) != 0 && !head_of_mcp &&
            matches(&table[i], path, &request->param)) {
            request->route = &table[i];
            return;
        }
    }
    unsigned known = path_methods(path);
    if (method == HTTP_OPTIONS && (known != 0 || str_is(path, "*"))) {
        request->route = &options_route;
        return;
    }
    if (known == 0) {
        not_found(request);
        return;
    }
    request->fault.rc = NG_EMETHOD;
    (void)snprintf(request->fault.text, sizeof(request->fault.text),
                   "This address does not take %s, but %s", http_method_name(request->method),
                   routes_allow(path));
}
