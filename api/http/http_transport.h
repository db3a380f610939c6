/* SPDX-License-Identifier: MIT */
/* http_transport.h - the HTTP transport for the commands: starting it, its address, stopping
 * it. */
#ifndef NOTEGATE_API_HTTP_TRANSPORT_H
#define NOTEGATE_API_HTTP_TRANSPORT_H

#include "core/call/gateway.h"

struct http_routes;
struct http_server;
struct reload;
struct reload_report;

/*
 * routes: lent until http_server_stop(). Listens on `listen` of the configuration (TCP) and on
 * NOTEGATE_SOCKET_NAME in the data directory. NG_OK: both answer by the time it returns;
 * http_server_stop() runs once, later. Else nothing is left behind and `error` has a sentence:
 * a public address while no key exists, an address in use, one that is not of the form
 * ADDR:PORT, a certificate or key that cannot be used.
 */
int http_server_start(struct gateway *gateway, const struct http_routes *routes,
                      struct http_server **ret, struct buf *error);
/*
 * The same on the Unix socket alone, without an address, for a gateway that `notegate mcp` has
 * opened: its answers say so (CLIENT_GATEWAY_HEADER). NG_EINTERNAL: the gateway is stopped.
 * Other failures leave it as it was.
 */
int http_server_start_local(struct gateway *gateway, const struct http_routes *routes,
                            struct http_server **ret, struct buf *error);
/*
 * Could it start with this configuration? Says what it would listen on, or (not NG_OK) what is
 * wrong. An address in use by another process is no error: it is reported.
 */
int http_server_check(struct gateway *gateway, struct buf *ret);
/* "http", or "https" where it serves TLS. */
const char *http_server_scheme(const struct http_server *server);
/* Its descriptors, which must stay open until it stops. */
struct own_files;
void http_server_note_files(const struct http_server *server, struct own_files *files);
/* To be called now and then: it notes until when programs that this process started ran. */
void http_server_look(struct http_server *server);
/* "127.0.0.1:8420", "[::1]:41234": the address really listened on, with the real port. Lent
 * until http_server_stop(). */
const char *http_server_address(const struct http_server *server);
/* Does the TCP listener speak TLS? */
bool http_server_has_tls(const struct http_server *server);
/* Sets the reload that POST /v1/reload asks (reload.h); NULL: none any more. */
void http_server_attach(struct http_server *server, struct reload *reload);
/* Takes over allowed_hosts, allowed_origins, mcp.session_timeout, certificate and key; tells
 * `report` of the latter. One thread at a time. */
void http_server_reload(struct http_server *server, const struct config *config,
                        struct reload_report *report);
/* It is not ready from now on, and each answer ends its connection; calls are taken as before.
 */
void http_server_drain(struct http_server *server);
bool http_server_drains(const struct http_server *server);
/*
 * No new connections; calls under way get at most wait_ms (gateway_drain), then the remaining
 * calls are cancelled and their connections closed. Returns when the last of these calls has
 * come back, also when that takes longer: afterwards nothing of the transport uses the gateway
 * any more. NULL is a no-op.
 */
void http_server_stop(struct http_server *server, int64_t wait_ms);

#endif
