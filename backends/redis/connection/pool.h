/* SPDX-License-Identifier: MIT */
/* pool.h - connections to the server that has the keys: shared by threads, reopened, and
 * replaced when the server changes. */
#ifndef NOTEGATE_REDIS_POOL_H
#define NOTEGATE_REDIS_POOL_H

#include <pthread.h>

#include "conn.h"
#include "core/base/buf.h"
#include "core/base/lock.h"

enum redis_topology { REDIS_SINGLE, REDIS_SENTINEL, REDIS_CLUSTER };

struct pool_options {
    struct ng_str uri;
    struct ng_str ca;        /* file of trusted certificates; "": those of the system */
    struct ng_str cert, key; /* files of the client's certificate; "": none */
    struct ng_str prefix;    /* of all keys; borrowed until pool_close() */
    int64_t timeout_ms;
    int64_t failover_ms; /* how long a command is repeated while the server changes */
    size_t connections;
    bool cluster;
};

struct redis_pool {
    struct conn_settings settings;
    enum redis_topology topology;
    int64_t failover_ms;
    char name[CONN_NAME_SIZE]; /* for messages */
    struct lock lock;
    pthread_cond_t returned;
    struct conn *idle;
    size_t open, max;
    /* With Sentinels or a cluster: the server in use (host "": not known), a number that each
     * change of it raises, and the named host that a search asks first. */
    struct redis_place server;
    uint64_t turn;
    size_t first_node;
    int64_t look_at_ns; /* no check with the Sentinels before this time */
    /* After a failed connection: no attempt before this time; the wait doubles each time. */
    int64_t retry_at_ns, retry_wait_ms;
    struct conn_error retry_error;
};

/* Fails on a bad URI or certificate file, but not if the server is unreachable. */
int pool_open(struct ng_call *call, const struct pool_options *options,
              struct redis_pool **ret);
/* No connection may be in use. NULL is a no-op. */
void pool_close(struct redis_pool *pool);

/* The time limit of an operation that starts now. */
struct socket_limit pool_limit(const struct redis_pool *pool, struct ng_call *call);
/* Takes a signed-in connection, or fails the call. fresh: a new one, not an idle one.
 * *ret_again: the server may be changing; the caller may try again. */
int pool_acquire(struct redis_pool *pool, struct ng_call *call, bool fresh,
                 const struct socket_limit *limit, struct conn **ret, bool *ret_again);
/* keep: the connection is in a known state and may be reused. */
void pool_return(struct redis_pool *pool, struct conn *conn, bool keep);
/* Fails the call for the connection's error, or for the server's error reply. */
int pool_fail(const struct redis_pool *pool, struct ng_call *call, const struct conn *conn,
              enum socket_result end);
int pool_fail_reply(const struct redis_pool *pool, struct ng_call *call,
                    const redisReply *reply);

/* The text of the latest attempt to connect that failed. */
void pool_failure(struct redis_pool *pool, char ret_text[CONN_TEXT_SIZE]);

/* ---- the server in use ---- */

struct redis_place pool_server(struct redis_pool *pool);
/* Returns the number of its connections (struct conn, turn). Those to another are closed. */
uint64_t pool_set_server(struct redis_pool *pool, const struct redis_place *place);
/* Grows with each change of the server. */
uint64_t pool_turn(struct redis_pool *pool);
/* Searches anew if `place` is in use. */
void pool_forget(struct redis_pool *pool, const struct redis_place *place);

/* The repetition of something that failed because the server changes. */
struct pool_retry {
    int64_t until_ns, wait_ms;
};

struct pool_retry pool_retry_begin(const struct redis_pool *pool);
/* Waits a moment. false: the time for it, or the call's, is up. */
bool pool_retry_wait(struct pool_retry *retry, struct ng_call *call);

#endif
