/* SPDX-License-Identifier: MIT */
/* http_connection.c - a connection's memory and the properties of its peer. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/auth/auth_peer.h"
#include "api/auth/auth_started.h"
#include "core/base/files/trust.h"
#include "core/call/metrics.h"
#include "http_request.h"
#include "http_server.h"

/* Without the port; IPv4 as such also where it came mapped into IPv6. */
static void address_text(const struct sockaddr_storage *from, char ret_text[INET6_ADDRSTRLEN])
{
    const void *address = NULL;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    int family = from->ss_family;
    if (family == AF_INET) {
        memcpy(&in, from, sizeof(in));
        address = &in.sin_addr;
    } else if (family == AF_INET6) {
        memcpy(&in6, from, sizeof(in6));
        address = &in6.sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
            family = AF_INET;
            address = in6.sin6_addr.s6_addr + 12;
        }
    }
    if (address == NULL || inet_ntop(family, address, ret_text, INET6_ADDRSTRLEN) == NULL) {
        ret_text[0] = '\0';
    }
}

struct http_connection *http_connection_new(struct http_server *server,
                                            struct MHD_Connection *mhd, int fd, bool is_socket)
{
    struct http_connection *connection = alloc_zeroed(1, sizeof(*connection));
    if (connection == NULL) {
        return NULL;
    }
    connection->server = server;
    (void)atomic_fetch_add(&server->held, 1);
    connection->mhd = mhd;
    connection->fd = fd;
    if (is_socket) {
        connection->auth.way = AUTH_SOCKET;
    }
    connection->since_ticks = auth_started_ticks();
    atomic_init(&connection->refs, 1);
    atomic_init(&connection->since_ms, http_now_ms());
    struct http_request *request = &connection->request;
    request->server = server;
    request->gateway = server->gateway;
    request->connection = connection;
    /* An answer is at most a result, escaped. */
    size_t most = server->gateway->limits.result;
    buf_init(&request->reply.body, most > SIZE_MAX / 8 ? SIZE_MAX / 2 : most * 8 + 65536);
    buf_init(&request->built, request->reply.body.max);
    return connection;
}

void http_connection_free(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    http_monitor_forget(&server->monitor, connection);
    http_request_enter(&connection->request, HTTP_STATE_LINE);
    http_request_end(&connection->request);
    buf_done(&connection->request.reply.body);
    free(connection);
    (void)atomic_fetch_sub(&server->held, 1); /* the server may be gone now */
}

/* Which user is at the other end. */
static void identify_user(struct http_connection *connection)
{
    connection->identity = HTTP_IDENTITY_USER;
    if (connection->auth.way == AUTH_SOCKET) {
        return;
    }
    socklen_t size = sizeof(connection->peer);
    if (getpeername(connection->fd, (struct sockaddr *)&connection->peer, &size) != 0) {
        return;
    }
    address_text(&connection->peer, connection->peer_text);
    size = sizeof(connection->local);
    if (getsockname(connection->fd, (struct sockaddr *)&connection->local, &size) != 0) {
        return;
    }
    address_text(&connection->local, connection->local_text);
    if (auth_peer_is_loopback(&connection->peer) && auth_peer_is_loopback(&connection->local)) {
        connection->auth.way = AUTH_LOOPBACK;
    }
    if (connection->auth.way != AUTH_LOOPBACK) {
        return;
    }
    int rc = auth_peer_find(&connection->peer, &connection->local, &connection->at_peer);
    uid_t uid = connection->at_peer.uid;
    bool own = uid == geteuid() || (uid == 0 && connection->server->gateway->serves_root);
    connection->auth.knows_user = rc == NG_OK;
    connection->auth.user = uid;
    connection->auth.is_own_user = rc == NG_OK && own && trust_knows_user(uid);
    connection->auth.is_mute = rc == NG_EFORBIDDEN;
    /* Then the next request asks again. */
    connection->auth.is_unknown = rc == NG_EUNAVAILABLE;
    if (connection->auth.is_unknown) {
        connection->identity = HTTP_IDENTITY_NONE;
    }
}

static enum auth_started started_of_socket(struct http_connection *connection)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    bool known = getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    connection->auth.knows_user = known;
    if (known) {
        connection->auth.user = peer.uid;
    } else {
        connection->auth.user = 0;
    }
    if (!known) {
        return AUTH_STARTED_UNKNOWN;
    }
    return auth_started_process(&connection->server->started, peer.pid,
                                connection->since_ticks);
}

/* Whether it is a program that the gateway started: only where it would get in without a key,
 * as this looks through processes. */
static void identify_started(struct http_connection *connection)
{
    enum auth_started started = AUTH_STARTED_NO;
    if (connection->auth.way == AUTH_SOCKET) {
        started = started_of_socket(connection);
    } else if (connection->auth.way != AUTH_LOOPBACK) {
        return;
    } else if (auth_needs_key(connection->server->auth)) {
        /* The last key may go before this very request is judged. */
        connection->auth.is_unknown = true;
        return;
    } else {
        /* Also another user's: there are programs that change it (su, user namespaces). And one
         * that is closed already, as its holder may have been a program of ours. */
        const struct auth_started_end end = {connection->at_peer.inode, connection->at_peer.uid,
                                             connection->since_ticks};
        started = auth_started_socket(&connection->server->started, &end,
                                      &connection->server->recent_peers);
    }
    connection->auth.is_unknown = started == AUTH_STARTED_UNKNOWN;
    if (started != AUTH_STARTED_UNKNOWN) {
        connection->auth.started = started;
    }
    if (started != AUTH_STARTED_UNKNOWN) {
        connection->identity = HTTP_IDENTITY_PROGRAM;
    }
}

void http_connection_identify(struct http_connection *connection)
{
    if (connection->identity == HTTP_IDENTITY_NONE) {
        identify_user(connection);
    }
    if (connection->identity == HTTP_IDENTITY_USER) {
        identify_started(connection);
    }
}
