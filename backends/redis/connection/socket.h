/* SPDX-License-Identifier: MIT */
/* socket.h - bytes to and from a Redis, over TCP, TLS or a Unix socket; no wait exceeds its
 * limit. */
#ifndef NOTEGATE_REDIS_SOCKET_H
#define NOTEGATE_REDIS_SOCKET_H

#include <openssl/ssl.h>

#include <notegate/plugin.h>

#include "uri.h"

#define SOCKET_ERROR_SIZE 200

/* The result of an operation. */
enum socket_result {
    SOCKET_OK = 0,
    SOCKET_CLOSED,       /* the server is unreachable or closed the connection */
    SOCKET_TIMED_OUT,    /* the limit was reached */
    SOCKET_CALL_EXPIRED, /* the call's own time ran out before that */
    SOCKET_CANCELLED,    /* the call was cancelled */
    SOCKET_REFUSED       /* the certificate or the configuration is not accepted */
};

/* Limit of a wait: the deadline, or the end of the call if that is earlier. */
struct socket_limit {
    struct ng_call *call;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
};

struct redis_socket {
    int fd; /* -1: closed */
    SSL *tls;
    BIO *tls_in, *tls_out; /* owned by tls: received bytes, bytes to send */
    char error[SOCKET_ERROR_SIZE];
};

int64_t socket_now_ns(void);

/* path: of a Unix socket; NULL: connects to `place`. tls: the context for rediss://, or NULL.
 * On failure the socket is closed. */
enum socket_result socket_open(struct redis_socket *sock, const char *path,
                               const struct redis_place *place, SSL_CTX *tls,
                               const struct socket_limit *limit);
void socket_close(struct redis_socket *sock);
/* Writes all of it. */
enum socket_result socket_write(struct redis_socket *sock, const char *data, size_t len,
                                const struct socket_limit *limit);
/* Reads at least one byte. */
enum socket_result socket_read(struct redis_socket *sock, char *data, size_t size,
                               size_t *ret_len, const struct socket_limit *limit);
/* false if an idle connection was closed or has unexpected bytes to read. */
bool socket_is_idle(const struct redis_socket *sock);

#endif
