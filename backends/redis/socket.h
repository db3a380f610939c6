/* SPDX-License-Identifier: MIT */
/* socket.h - bytes to a Redis and back, over TCP, TLS or a Unix socket; nothing waits longer
 * than its limit. */
#ifndef NOTEGATE_REDIS_SOCKET_H
#define NOTEGATE_REDIS_SOCKET_H

#include <openssl/ssl.h>

#include <notegate/plugin.h>

#include "uri.h"

#define SOCKET_ERROR_SIZE 200

/* How an operation ended. */
enum socket_result {
    SOCKET_OK = 0,
    SOCKET_CLOSED,       /* the server is away, or went */
    SOCKET_TIMED_OUT,    /* the limit was reached */
    SOCKET_CALL_EXPIRED, /* the call's own time was up before that */
    SOCKET_CANCELLED,    /* nobody waits for the answer any more */
    SOCKET_REFUSED       /* the certificate or the configuration does not do */
};

/* How long may be waited: until the deadline, and no longer than the call lives. */
struct socket_limit {
    struct ng_call *call;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
};

struct redis_socket {
    int fd; /* -1: closed */
    SSL *tls;
    BIO *tls_in, *tls_out; /* belong to tls: what came, what is to go */
    char error[SOCKET_ERROR_SIZE];
};

int64_t socket_now_ns(void);

/* tls: the context for rediss://, or NULL. A wire that could not be opened is closed. */
enum socket_result socket_open(struct redis_socket *sock, const struct redis_uri *uri,
                               SSL_CTX *tls, const struct socket_limit *limit);
void socket_close(struct redis_socket *sock);
/* All of it. */
enum socket_result socket_write(struct redis_socket *sock, const char *data, size_t len,
                                const struct socket_limit *limit);
/* At least one byte. */
enum socket_result socket_read(struct redis_socket *sock, char *data, size_t size,
                               size_t *ret_len, const struct socket_limit *limit);
/* An idle connection from which something came, or that ended, is of no use. */
bool socket_is_idle(const struct redis_socket *sock);

#endif
