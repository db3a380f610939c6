/* SPDX-License-Identifier: MIT */
/* pool.h - connections to one Redis: opened, signed in, shared by threads, opened again. */
#ifndef NOTEGATE_REDIS_POOL_H
#define NOTEGATE_REDIS_POOL_H

#include <pthread.h>

#include "core/base/lock.h"
#include "reader.h"
#include "socket.h"

/* A sentence for the caller. */
#define POOL_TEXT_SIZE 512

struct pool_options {
    struct ng_str uri;
    struct ng_str ca; /* file of certificates to trust, or "": the system's */
    int64_t timeout_ms;
    size_t connections;
};

/* One connection; used by one thread at a time. */
struct pool_conn {
    struct redis_socket sock;
    struct reader reader;
    struct pool_conn *next; /* while idle */
    bool reused;            /* it was idle before: its server may have gone meanwhile */
};

struct redis_pool {
    struct redis_uri uri;
    SSL_CTX *tls;
    int64_t timeout_ms;
    char address[160]; /* "host:port", for messages */
    /* A command that each new connection begins with; what it answers is of no interest. */
    char *greeting;
    size_t greeting_len;
    struct lock lock;
    pthread_cond_t returned;
    struct pool_conn *idle;
    size_t open, max;
    /* After a connection that failed: no other attempt before this, doubled each time. */
    int64_t retry_at_ns, retry_wait_ms;
    char retry_error[POOL_TEXT_SIZE];
};

/* A bad URI or certificate file fails; a server that is away does not. */
int pool_open(struct ng_call *call, const struct pool_options *options,
              struct redis_pool **ret);
/* Before the first connection; copies. */
int pool_set_greeting(struct redis_pool *pool, struct ng_call *call, const char *command,
                      size_t len);
/* No connection may be in use. NULL is a no-op. */
void pool_close(struct redis_pool *pool);

/* The limit of one operation that begins now. */
struct socket_limit pool_limit(const struct redis_pool *pool, struct ng_call *call);
/* A connection that is signed in. Fails the call. fresh: not one that was idle. */
int pool_acquire(struct redis_pool *pool, struct ng_call *call, bool fresh,
                 const struct socket_limit *limit, struct pool_conn **ret);
/* keep: it is in a known state and may be used again. */
void pool_return(struct redis_pool *pool, struct pool_conn *conn, bool keep);
/* Reads one reply. */
enum socket_result pool_read(struct pool_conn *conn, const struct socket_limit *limit,
                             redisReply **ret);
/* Fails the call for what the connection did, or for what the server answered. */
int pool_fail(const struct redis_pool *pool, struct ng_call *call, enum socket_result end,
              const char *error);
int pool_fail_reply(const struct redis_pool *pool, struct ng_call *call,
                    const redisReply *reply);

#endif
