/* SPDX-License-Identifier: MIT */
/* http_route.c - the route of a request, and the answers where none fits. */
#include "http_route.h"

#include <stdio.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/utf8.h"
#include "http_server.h"

#define PARAM "{name}"
#define PARAM_PATH "{path}" /* as long; of several parts */
/* How far a path may be from a known one to be named as a hint. */
#define NEAR_MAX 3
#define STATUS_NO_CONTENT 204

static int options_run(struct http_request *request)
{
    request->reply.status = STATUS_NO_CONTENT;
    request->reply.allow = http_route_allow(request->server->routes, &request->target);
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

static bool matches(const struct route *route, const struct http_target *target,
                    struct ng_str *ret_param)
{
    struct ng_str path = target->path;
    struct ng_str pattern = ng_str_of(route->path);
    struct ng_str param = ng_str_of(PARAM);
    if (pattern.data[pattern.len - 1] != '}') {
        return str_equal(pattern, path);
    }
    size_t prefix = pattern.len - param.len;
    bool is_one = !str_ends(pattern, PARAM_PATH);
    if (path.len <= prefix || (is_one && target->last != prefix) ||
        memcmp(path.data, pattern.data, prefix) != 0) {
        return false;
    }
    *ret_param = str_make(path.data + prefix, path.len - prefix);
    return true;
}

static unsigned path_methods(const struct http_routes *routes, const struct http_target *target)
{
    unsigned methods = 0;
    struct ng_str param;
    for (size_t i = 0; i < routes->count; i++) {
        if (matches(&routes->items[i], target, &param)) {
            methods |= routes->items[i].methods;
        }
    }
    return methods;
}

const char *http_route_allow(const struct http_routes *routes, const struct http_target *target)
{
    switch (path_methods(routes, target)) {
    case HTTP_GET:
        return "GET, HEAD, OPTIONS";
    case HTTP_POST:
        return "POST, OPTIONS";
    case HTTP_GET | HTTP_POST:
        return "GET, HEAD, POST, OPTIONS";
    case HTTP_GET | HTTP_DELETE:
        return "GET, HEAD, DELETE, OPTIONS";
    case HTTP_GET | HTTP_PATCH | HTTP_DELETE:
        return "GET, HEAD, PATCH, DELETE, OPTIONS";
    case HTTP_GET | HTTP_POST | HTTP_DELETE:
        return "GET, POST, DELETE, OPTIONS";
    default:
        if (str_is(target->path, "*")) {
            return "GET, HEAD, POST, PATCH, DELETE, OPTIONS";
        }
        return "";
    }
}

bool http_route_is_service(const struct http_routes *routes, const struct http_target *target)
{
    struct ng_str param;
    for (size_t i = 0; i < routes->count; i++) {
        if ((routes->items[i].flags & ROUTE_SERVICE) != 0 &&
            matches(&routes->items[i], target, &param)) {
            return true;
        }
    }
    return false;
}

/* The known path that was probably meant, or NULL. */
static const char *nearest(const struct http_routes *routes, struct ng_str path)
{
    const char *best = NULL;
    /* Half of a short path wrong is another path. */
    size_t most = size_min(path.len / 3, NEAR_MAX);
    size_t least = most + 1;
    for (size_t i = 0; i < routes->count; i++) {
        size_t distance = edit_distance(path, ng_str_of(routes->items[i].path), most);
        if (distance < least) {
            least = distance;
            best = routes->items[i].path;
        }
    }
    return best;
}

static void not_found(struct http_request *request)
{
    struct http_fault *fault = &request->fault;
    struct ng_str path = utf8_cut(request->target.path, 60);
    const char *near = nearest(request->server->routes, request->target.path);
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

void http_route_find(struct http_request *request)
{
    const struct http_routes *routes = request->server->routes;
    unsigned method = request->method == HTTP_HEAD ? HTTP_GET : request->method;
    const struct http_target *target = &request->target;
    for (size_t i = 0; i < routes->count; i++) {
        bool head_of_service =
            request->method == HTTP_HEAD && (routes->items[i].flags & ROUTE_SERVICE) != 0;
        if ((routes->items[i].methods & method) != 0 && !head_of_service &&
            matches(&routes->items[i], target, &request->param)) {
            request->route = &routes->items[i];
            return;
        }
    }
    unsigned known = path_methods(routes, target);
    if (method == HTTP_OPTIONS && (known != 0 || str_is(target->path, "*"))) {
        request->route = &options_route;
        return;
    }
    if (known == 0) {
        not_found(request);
        return;
    }
    request->fault.rc = NG_EMETHOD;
    (void)snprintf(request->fault.text, sizeof(request->fault.text),
                   "This address does not accept %s, but %s", http_method_name(request->method),
                   http_route_allow(routes, target));
}
