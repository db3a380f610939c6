/* SPDX-License-Identifier: MIT */
/* http_server.h - the HTTP transport as its own files see it; others include http_transport.h.
 */
#ifndef NOTEGATE_API_HTTP_SERVER_H
#define NOTEGATE_API_HTTP_SERVER_H

#include "api/auth/auth.h"
#include "api/auth/auth_started.h"
#include "api/listen/http_check.h"
#include "http_monitor.h"
#include "http_transport.h"

struct MHD_Daemon;
struct http_request;
struct http_tls;
struct http_names_kept;
struct http_routes;
struct reload;

/* Longest "ADDR:PORT". */
#define HTTP_ADDRESS_MAX 300

struct http_server {
    struct gateway *gateway;
    struct auth *auth;
    struct auth_started_past started;
    struct auth_started_recent recent_peers; /* of the thread that serves TCP */
    const struct http_routes *routes;
    void *service;                            /* of the routes */
    struct http_tls *tls;                     /* of the TCP listener; NULL: plain */
    _Atomic(const struct http_names *) names; /* whom it answers to; a reload changes it */
    struct http_names_kept *names_kept;
    _Atomic(struct reload *) reload; /* reloads on request; NULL: no reload is possible */
    char address[HTTP_ADDRESS_MAX];
    struct MHD_Daemon *tcp, *local;
    int tcp_fd, local_fd; /* until a daemon owns them; -1 */
    struct http_monitor monitor;
    bool watching;
    atomic_int connections;
    atomic_int held;      /* connections' memory that calls or libmicrohttpd still use */
    atomic_bool draining; /* calls are taken, but a load balancer is to send them elsewhere */
    atomic_bool stopping; /* nothing is waited for any more */
    bool is_local;        /* no TCP: http_server_start_local() */
    uint32_t id_prefix;   /* of request ids */
    atomic_uint_fast64_t id_next;
};

/* http_reload.c: the audit log of a gateway with keys is on where log.audit is not set. */
void http_server_set_audit(const struct config *config);
/* http_reload.c: the names by this configuration hold from now on. One thread at a time. */
int http_server_set_names(struct http_server *server, const struct config *config,
                          struct ng_str listen_host, unsigned listen_port);
void http_server_free_names(struct http_server *server);

#endif
