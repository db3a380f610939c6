/* SPDX-License-Identifier: MIT */
/* pool.c - the pool of connections to one Redis. */
#include "pool.h"
#include "core/base/minmax.h"
#include "core/base/text_choice.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "pipeline.h"

/* Wait before the next attempt after a failure, doubled up to the maximum. */
#define POOL_RETRY_FIRST_MS 20
#define POOL_RETRY_LAST_MS 1000
#define POOL_NS_PER_MS 1000000
/* How often a thread waiting for a free connection checks whether its call is cancelled. */
#define POOL_STEP_NS 50000000
#define POOL_READ_SIZE 16384
/* The time limit starts again with each part of this size, so a long reply that makes progress
 * does not time out. */
#define POOL_PIECE ((size_t)256 * 1024)
/* Bytes of a Redis error that are passed on. */
#define POOL_REPLY_MAX 200
/* Bytes of one command of a sign-in. */
#define POOL_SIGN_IN_MAX ((size_t)16 * 1024)

/* ---- errors ---- */

static int pool_describe(const struct redis_pool *pool, enum socket_result end,
                         const char *error, char text[POOL_TEXT_SIZE])
{
    switch (end) {
    case SOCKET_OK:
        return NG_OK;
    case SOCKET_CALL_EXPIRED:
        (void)snprintf(text, POOL_TEXT_SIZE,
                       "the call's time was up before Redis at %s answered", pool->address);
        return NG_ETIMEOUT;
    case SOCKET_CANCELLED:
        (void)snprintf(text, POOL_TEXT_SIZE, "the call was cancelled");
        return NG_ECANCELLED;
    case SOCKET_TIMED_OUT:
        (void)snprintf(text, POOL_TEXT_SIZE,
                       "Redis at %s did not answer within redis.timeout (%lld ms)",
                       pool->address, (long long)pool->timeout_ms);
        return NG_EUNAVAILABLE;
    case SOCKET_CLOSED:
    case SOCKET_REFUSED:
        break;
    }
    (void)snprintf(text, POOL_TEXT_SIZE, "Redis at %s: %s", pool->address, error);
    return NG_EUNAVAILABLE;
}

int pool_fail(const struct redis_pool *pool, struct ng_call *call, enum socket_result end,
              const char *error)
{
    char text[POOL_TEXT_SIZE];
    int rc = pool_describe(pool, end, error, text);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(call, rc, "%s", text);
}

struct error_reply {
    const char *code;
    int rc;
    const char *advice;
};

static const struct error_reply error_replies[] = {
    {"NOAUTH", NG_EUNAVAILABLE, "give user and password in redis.uri"},
    {"WRONGPASS", NG_EUNAVAILABLE, "check user and password in redis.uri"},
    {"NOPERM", NG_EUNAVAILABLE, "the user in redis.uri lacks a right; ACL SETUSER grants it"},
    {"LOADING", NG_EUNAVAILABLE, "it is still loading its data; the gateway retries"},
    {"READONLY", NG_EUNAVAILABLE, "redis.uri must name the primary and not a replica"},
    {"MASTERDOWN", NG_EUNAVAILABLE, "redis.uri must name the primary and not a replica"},
    {"MISCONF", NG_EUNAVAILABLE, "it cannot save its data; look at its log and disk"},
    {"BUSY", NG_EUNAVAILABLE, "a script runs there too long; the gateway retries"},
    {"OOM", NG_EFULL, "its maxmemory is reached; raise it"},
    {"WRONGTYPE", NG_EUNAVAILABLE,
     "another program uses a key of the journal; rename it, or set redis.prefix"},
    {"MOVED", NG_EUNAVAILABLE, "a Redis Cluster is not supported; name a single server"},
    {"CROSSSLOT", NG_EUNAVAILABLE, "a Redis Cluster is not supported; name a single server"},
    {"TOOLARGE", NG_ETOOLARGE, "take checkpoints of smaller spaces"},
};

static int pool_describe_reply(const struct redis_pool *pool, const redisReply *reply,
                               char text[POOL_TEXT_SIZE])
{
    const char *advice = NULL;
    int rc = NG_EUNAVAILABLE;
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        (void)snprintf(text, POOL_TEXT_SIZE, "Redis at %s sent an answer of an unexpected type",
                       pool->address);
        return rc;
    }
    for (size_t i = 0; advice == NULL && i < NG_COUNT(error_replies); i++) {
        if (redis_error_is(reply, error_replies[i].code)) {
            advice = error_replies[i].advice;
            rc = error_replies[i].rc;
        }
    }
    (void)snprintf(text, POOL_TEXT_SIZE, "Redis at %s refuses: %.*s%s%s", pool->address,
                   POOL_REPLY_MAX, reply->str, advice == NULL ? "" : " - ",
                   advice == NULL ? "" : advice);
    return rc;
}

int pool_fail_reply(const struct redis_pool *pool, struct ng_call *call,
                    const redisReply *reply)
{
    char text[POOL_TEXT_SIZE];
    int rc = pool_describe_reply(pool, reply, text);
    return ng_fail(call, rc, "%s", text);
}

/* ---- one connection ---- */

enum socket_result pool_read(struct pool_conn *conn, const struct socket_limit *limit,
                             redisReply **ret)
{
    char data[POOL_READ_SIZE];
    void *reply = NULL;
    struct socket_limit own = *limit;
    int64_t span = limit->deadline_ns - socket_now_ns();
    size_t moved = 0;
    for (;;) {
        if (redisReaderGetReply(conn->reader.redis, &reply) != REDIS_OK) {
            (void)snprintf(conn->sock.error, sizeof(conn->sock.error),
                           "its answer is not in the protocol of Redis (%s)",
                           conn->reader.redis->errstr);
            return SOCKET_CLOSED;
        }
        if (reply != NULL) {
            *ret = reply;
            return SOCKET_OK;
        }
        size_t len = 0;
        enum socket_result end = socket_read(&conn->sock, data, sizeof(data), &len, &own);
        if (end != SOCKET_OK) {
            return end;
        }
        moved += len;
        if (moved >= POOL_PIECE && span > 0) {
            own.deadline_ns = socket_now_ns() + span;
            moved = 0;
        }
        if (redisReaderFeed(conn->reader.redis, data, len) != REDIS_OK) {
            (void)snprintf(conn->sock.error, sizeof(conn->sock.error), "%s",
                           conn->reader.redis->errstr);
            return SOCKET_CLOSED;
        }
    }
}

static void conn_free(struct pool_conn *conn)
{
    socket_close(&conn->sock);
    reader_close(&conn->reader);
    free(conn);
}

/* Sends one command and reads its reply. */
static enum socket_result conn_command(struct pool_conn *conn, const struct socket_limit *limit,
                                       const struct buf *command, redisReply **ret)
{
    if (command->rc != NG_OK) {
        (void)snprintf(conn->sock.error, sizeof(conn->sock.error), "out of memory");
        return SOCKET_CLOSED;
    }
    enum socket_result end = socket_write(&conn->sock, command->data, command->len, limit);
    if (end != SOCKET_OK) {
        return end;
    }
    return pool_read(conn, limit, ret);
}

static int conn_greet(struct redis_pool *pool, struct pool_conn *conn,
                      const struct socket_limit *limit, char why[POOL_TEXT_SIZE])
{
    redisReply *reply = NULL;
    if (pool->greeting.len == 0) {
        return NG_OK;
    }
    enum socket_result end = conn_command(conn, limit, &pool->greeting, &reply);
    if (end == SOCKET_OK) {
        freeReplyObject(reply);
    }
    return pool_describe(pool, end, conn->sock.error, why);
}

/* AUTH, SELECT, and a PING that finds a server accepting none of them. */
static int conn_sign_in(struct redis_pool *pool, struct pool_conn *conn,
                        const struct socket_limit *limit, char why[POOL_TEXT_SIZE])
{
    const struct redis_uri *uri = &pool->uri;
    char database[16];
    (void)snprintf(database, sizeof(database), "%d", uri->database);
    struct ng_str password = ng_str_of(text_or(uri->password, ""));
    struct {
        size_t count; /* 0: not needed */
        struct ng_str words[3];
    } steps[] = {
        {0, {WORD("AUTH"), password, password}},
        {0, {WORD("SELECT"), ng_str_of(database)}},
        {1, {WORD("PING")}},
    };
    if (uri->user != NULL) {
        steps[0].count = 3;
        steps[0].words[1] = ng_str_of(uri->user);
    } else if (uri->password != NULL) {
        steps[0].count = 2;
    }
    if (uri->database != 0) {
        steps[1].count = 2;
    }
    for (size_t i = 0; i < NG_COUNT(steps); i++) {
        struct buf command;
        redisReply *reply = NULL;
        if (steps[i].count == 0) {
            continue;
        }
        buf_init(&command, POOL_SIGN_IN_MAX);
        redis_command(&command, steps[i].words, steps[i].count);
        enum socket_result end = conn_command(conn, limit, &command, &reply);
        buf_done(&command);
        int rc = pool_describe(pool, end, conn->sock.error, why);
        if (end == SOCKET_OK && reply->type == REDIS_REPLY_ERROR) {
            rc = pool_describe_reply(pool, reply, why);
        }
        if (end == SOCKET_OK) {
            freeReplyObject(reply);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return conn_greet(pool, conn, limit, why);
}

static int conn_open(struct redis_pool *pool, const struct socket_limit *limit,
                     struct pool_conn **ret, char why[POOL_TEXT_SIZE])
{
    struct pool_conn *conn = calloc(1, sizeof(*conn));
    (void)snprintf(why, POOL_TEXT_SIZE, "out of memory for a connection to Redis");
    if (conn == NULL) {
        return NG_EINTERNAL;
    }
    enum socket_result end = socket_open(&conn->sock, &pool->uri, pool->tls, limit);
    int rc = NG_OK;
    if (end != SOCKET_OK) {
        rc = pool_describe(pool, end, conn->sock.error, why);
    } else if (!reader_open(&conn->reader)) {
        rc = NG_EINTERNAL;
    } else {
        rc = conn_sign_in(pool, conn, limit, why);
    }
    if (rc != NG_OK) {
        conn_free(conn);
        return rc;
    }
    *ret = conn;
    return NG_OK;
}

/* ---- the pool ---- */

struct socket_limit pool_limit(const struct redis_pool *pool, struct ng_call *call)
{
    struct socket_limit limit = {call, socket_now_ns() + pool->timeout_ms * POOL_NS_PER_MS};
    return limit;
}

/* Called with the lock held. Takes an idle connection, or permission to open one (*ret
 * NULL). */
static int pool_wait(struct redis_pool *pool, struct ng_call *call, bool fresh,
                     const struct socket_limit *limit, struct pool_conn **ret)
{
    *ret = NULL;
    for (;;) {
        while (pool->idle != NULL) {
            struct pool_conn *conn = pool->idle;
            pool->idle = conn->next;
            if (!fresh && socket_is_idle(&conn->sock)) {
                conn->reused = true;
                *ret = conn;
                return NG_OK;
            }
            conn_free(conn);
            pool->open--;
        }
        int64_t now = socket_now_ns();
        if (pool->open < pool->max) {
            if (now < pool->retry_at_ns) {
                return ng_fail(call, NG_EUNAVAILABLE, "%s", pool->retry_error);
            }
            pool->open++;
            return NG_OK;
        }
        if (now >= limit->deadline_ns) {
            return ng_fail(call, NG_EBUSY,
                           "all %zu connections to Redis at %s are in use; raise "
                           "redis.connections",
                           pool->max, pool->address);
        }
        if (call->host->cancelled(call)) {
            return ng_fail(call, NG_ECANCELLED, "the call was cancelled");
        }
        int64_t until = now + POOL_STEP_NS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        (void)lock_wait_until(&pool->returned, &pool->lock, &at);
    }
}

static void pool_note_failure(struct redis_pool *pool, int rc, const char *why)
{
    if (rc != NG_EUNAVAILABLE) {
        return; /* the call's own end says nothing about the server */
    }
    pool->retry_wait_ms = i64_max(pool->retry_wait_ms * 2, POOL_RETRY_FIRST_MS);
    pool->retry_wait_ms = i64_min(pool->retry_wait_ms, POOL_RETRY_LAST_MS);
    pool->retry_at_ns = socket_now_ns() + pool->retry_wait_ms * POOL_NS_PER_MS;
    (void)snprintf(pool->retry_error, sizeof(pool->retry_error), "%s", why);
}

int pool_acquire(struct redis_pool *pool, struct ng_call *call, bool fresh,
                 const struct socket_limit *limit, struct pool_conn **ret)
{
    struct pool_conn *conn = NULL;
    char why[POOL_TEXT_SIZE] = "";
    lock_take(&pool->lock);
    int rc = pool_wait(pool, call, fresh, limit, &conn);
    lock_release(&pool->lock);
    if (rc != NG_OK || conn != NULL) {
        *ret = conn;
        return rc;
    }
    rc = conn_open(pool, limit, ret, why);
    lock_take(&pool->lock);
    if (rc == NG_OK) {
        pool->retry_wait_ms = 0;
        pool->retry_at_ns = 0;
    } else {
        pool->open--;
        pool_note_failure(pool, rc, why);
        pthread_cond_signal(&pool->returned);
    }
    lock_release(&pool->lock);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(call, rc, "%s", why);
}

void pool_return(struct redis_pool *pool, struct pool_conn *conn, bool keep)
{
    if (!keep) {
        conn_free(conn);
        conn = NULL;
    }
    lock_take(&pool->lock);
    if (conn != NULL) {
        conn->next = pool->idle;
        pool->idle = conn;
    } else {
        pool->open--;
    }
    pthread_cond_signal(&pool->returned);
    lock_release(&pool->lock);
}

/* ---- opening and closing ---- */

static int pool_open_tls(struct redis_pool *pool, struct ng_call *call, struct ng_str ca)
{
    if (!pool->uri.tls) {
        return NG_OK;
    }
    pool->tls = SSL_CTX_new(TLS_client_method());
    if (pool->tls == NULL || SSL_CTX_set_min_proto_version(pool->tls, TLS1_2_VERSION) != 1) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for TLS");
    }
    struct ng_str file = call->host->format(call, "%.*s", (int)ca.len, ca.data);
    int loaded;
    if (ca.len == 0) {
        loaded = SSL_CTX_set_default_verify_paths(pool->tls);
    } else {
        loaded = SSL_CTX_load_verify_locations(pool->tls, file.data, NULL);
    }
    ERR_clear_error();
    if (loaded == 1) {
        return NG_OK;
    }
    return ng_fail(call, NG_EINVAL,
                   "redis.tls_ca is '%.*s', which is not a readable file of certificates (PEM)",
                   (int)ca.len, ca.data);
}

int pool_open(struct ng_call *call, const struct pool_options *options, struct redis_pool **ret)
{
    char error[REDIS_URI_ERROR_SIZE];
    struct redis_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    lock_init(&pool->lock, LOCK_REDIS_POOL);
    lock_cond_init(&pool->returned);
    pool->timeout_ms = options->timeout_ms;
    pool->max = options->connections;
    int rc = redis_uri_parse(options->uri, &pool->uri, error);
    if (rc != NG_OK) {
        rc = ng_fail(call, rc, "redis.uri cannot be used: %s", error);
    } else {
        bool local = pool->uri.path != NULL;
        (void)snprintf(pool->address, sizeof(pool->address), "%s%s%s",
                       local ? pool->uri.path : pool->uri.host, local ? "" : ":",
                       local ? "" : pool->uri.port);
        rc = pool_open_tls(pool, call, options->ca);
    }
    if (rc != NG_OK) {
        pool_close(pool);
        return rc;
    }
    *ret = pool;
    return NG_OK;
}

void pool_close(struct redis_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->idle != NULL) {
        struct pool_conn *conn = pool->idle;
        pool->idle = conn->next;
        conn_free(conn);
    }
    SSL_CTX_free(pool->tls);
    buf_done(&pool->greeting);
    redis_uri_free(&pool->uri);
    pthread_cond_destroy(&pool->returned);
    lock_done(&pool->lock);
    free(pool);
}
