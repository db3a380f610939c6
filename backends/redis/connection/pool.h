/* SPDX-License-Identifier: MIT */
/* pool.h - connections to one Redis: opened, authenticated, shared by threads, reopened. */
#ifndef NOTEGATE_REDIS_POOL_H
#define NOTEGATE_REDIS_POOL_H

#include <pthread.h>

#include "core/base/buf.h"
#include "core/base/lock.h"
#include "reader.h"
#include "socket.h"

/* Bytes of an error message. */
#define POOL_TEXT_SIZE 512

struct pool_options {
    struct ng_str uri;
    struct ng_str ca; /* file of trusted certificates; "": those of the system */
    int64_t timeout_ms;
    size_t connections;
};

/* One connection; used by one thread at a time. */
struct pool_conn {
    struct redis_socket sock;
    struct reader reader;
    struct pool_conn *next; /* while idle */
    bool reused;            /* taken from the idle list: the server may have closed it */
};

struct redis_pool {
    struct redis_uri uri;
    SSL_CTX *tls;
    int64_t timeout_ms;
    char address[160]; /* "host:port", for messages */
    /* A command sent first on each new connection, if there is one; its reply is ignored. */
    struct buf greeting;
    struct lock lock;
    pthread_cond_t returned;
    struct pool_conn *idle;
    size_t open, max;
    /* After a failed connection: no attempt before this time; the wait doubles each time. */
    int64_t retry_at_ns, retry_wait_ms;
    char retry_error[POOL_TEXT_SIZE];
};

/* Fails on a bad URI or certificate file, but not if the server is unreachable. */
int pool_open(struct ng_call *call, const struct pool_options *options,
              struct redis_pool **ret);
/* No connection may be in use. NULL is a no-op. */
void pool_close(struct redis_pool *pool);

/* The time limit of an operation that starts now. */
struct socket_limit pool_limit(const struct redis_pool *pool, struct ng_call *call);
/* Takes an authenticated connection, or fails the call. fresh: a new one, not an idle one. */
int pool_acquire(struct redis_pool *pool, struct ng_call *call, bool fresh,
                 const struct socket_limit *limit, struct pool_conn **ret);
/* keep: the connection is in a known state and may be reused. */
void pool_return(struct redis_pool *pool, struct pool_conn *conn, bool keep);
/* Adds one command as it is sent; absent words as in pipeline_add(). */
void redis_command(struct buf *out, const struct ng_str *words, size_t count);
/* Reads one reply. */
enum socket_result pool_read(struct pool_conn *conn, const struct socket_limit *limit,
                             redisReply **ret);
/* Fails the call for the connection's error, or for the server's error reply. */
int pool_fail(const struct redis_pool *pool, struct ng_call *call, enum socket_result end,
              const char *error);
int pool_fail_reply(const struct redis_pool *pool, struct ng_call *call,
                    const redisReply *reply);

#endif
