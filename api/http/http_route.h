/* SPDX-License-Identifier: MIT */
/*
 * http_route.h - routes as the HTTP server sees them: a table given at its start, and the hooks
 * of a service that lives as long as the server (MCP is one).
 */
#ifndef NOTEGATE_API_HTTP_ROUTE_H
#define NOTEGATE_API_HTTP_ROUTE_H

#include "http_request.h"

struct config;

enum route_flags {
    ROUTE_OPEN = 1,    /* answers without a key, on connections that may ask at all */
    ROUTE_BODY = 2,    /* a body must be JSON */
    ROUTE_SERVICE = 4, /* the service looks at methods itself and prints refusals */
    ROUTE_PROBE = 8    /* whatever the Host: a prober calls the address that it was given */
};

struct route {
    unsigned methods; /* enum http_method, or-ed; HEAD comes with GET */
    unsigned flags;
    /* "/v1/tools"; "/v1/tools/{name}"; or all below: "/v1/audit/tile/{path}" */
    const char *path;
    /* NG_OK: request->reply is filled; NG_PENDING: http_request_done() will be called. */
    int (*run)(struct http_request *request);
    /* After NG_PENDING, on the event loop. */
    void (*finish)(struct http_request *request);
};

/* The steps of a stop, in this order. */
enum http_stop_step {
    HTTP_STOP_WAITING, /* requests that only wait are answered */
    HTTP_STOP_RUNNING, /* the time of running calls is over: background calls are cancelled */
    HTTP_STOP_ALL      /* connections are cancelled; sessions end */
};

/* All members are there. */
struct http_service {
    /* Before the server listens. Not NG_OK: nothing is left behind, `error` has a sentence. */
    int (*open)(struct gateway *gateway, void **ret, struct buf *error);
    void (*stop)(struct gateway *gateway, void *service, enum http_stop_step step);
    void (*close)(void *service); /* no request is under way; NULL is a no-op */
    void (*reload)(void *service, const struct config *config);
    /* The error object for a request that is refused before its route runs. hint may be absent.
     */
    int (*refuse)(int rc, struct ng_str message, struct ng_str hint, struct buf *out);
    /* The event that a pending request waits for. */
    void (*wait)(struct http_request *request, struct http_wait *ret);
    /* Frees request->service_state. */
    void (*release)(void *service_state);
};

struct http_routes {
    const struct route *items;
    size_t count;
    const struct http_service *service; /* of the routes with ROUTE_SERVICE */
};

/* Sets request->route and param. Not found, or not with this method: request->route stays NULL
 * and the fault is set (404 with the nearest path, 405). */
void http_route_find(struct http_request *request);
/* "GET, HEAD, OPTIONS": the methods of a path; "" where there is no such path. */
const char *http_route_allow(const struct http_routes *routes,
                             const struct http_target *target);
/* Is the path one of the service's? Also where the request has no route, because it was refused
 * for its headers. */
bool http_route_is_service(const struct http_routes *routes, const struct http_target *target);

#endif
