/* SPDX-License-Identifier: MIT */
/* wire.h - bytes to a Redis and back, over TCP, TLS or a Unix socket; nothing waits longer than
 * its limit. */
#ifndef NOTEGATE_REDIS_WIRE_H
#define NOTEGATE_REDIS_WIRE_H

#include <openssl/ssl.h>

#include <notegate/plugin.h>

#include "uri.h"

#define WIRE_ERROR_SIZE 200

/* How an operation ended. */
enum wire_end {
    WIRE_OK = 0,
    WIRE_CLOSED,    /* the server is away, or went */
    WIRE_SLOW,      /* the limit was reached */
    WIRE_TIME_UP,   /* the call's own time was up before that */
    WIRE_CANCELLED, /* nobody waits for the answer any more */
    WIRE_REFUSED    /* the certificate or the configuration does not do */
};

/* How long may be waited: until the deadline, and no longer than the call lives. */
struct wire_limit {
    struct ng_call *call;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
};

struct wire {
    int fd; /* -1: closed */
    SSL *tls;
    BIO *tls_in, *tls_out; /* belong to tls: what came, what is to go */
    char error[WIRE_ERROR_SIZE];
};

int64_t wire_now_ns(void);

/* tls: the context for rediss://, or NULL. A wire that could not be opened is closed. */
enum wire_end wire_open(struct wire *wire, const struct redis_uri *uri, SSL_CTX *tls,
                        const struct wire_limit *limit);
void wire_close(struct wire *wire);
/* All of it. */
enum wire_end wire_write(struct wire *wire, const char *data, size_t len,
                         const struct wire_limit *limit);
/* At least one byte. */
enum wire_end wire_read(struct wire *wire, char *data, size_t size, size_t *ret_len,
                        const struct wire_limit *limit);
/* An idle connection from which something came, or that ended, is of no use. */
bool wire_is_quiet(const struct wire *wire);

#endif
