/* SPDX-License-Identifier: MIT */
/* pipeline.c - sends commands together and collects their replies. */
#include "pipeline.h"

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "redirect.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes of one round. */
#define PIPELINE_OUT_MAX ((size_t)256 * 1024 * 1024)
/* A round is sent in pieces of this size, each with the full time limit, so a long round that
 * makes progress does not time out. */
#define PIPELINE_PIECE ((size_t)1024 * 1024)

void pipeline_init(struct pipeline *pipeline, struct redis_pool *pool, struct ng_call *call)
{
    memset(pipeline, 0, sizeof(*pipeline));
    pipeline->pool = pool;
    pipeline->call = call;
    buf_init(&pipeline->out, PIPELINE_OUT_MAX);
}

static void pipeline_free_replies(struct pipeline *pipeline)
{
    for (size_t i = 0; pipeline->replies != NULL && i < pipeline->count; i++) {
        freeReplyObject(pipeline->replies[i]);
    }
    free(pipeline->replies);
    pipeline->replies = NULL;
}

/* Resets the pipeline for the next round. */
static void pipeline_begin(struct pipeline *pipeline)
{
    if (pipeline->replies != NULL) {
        pipeline_free_replies(pipeline);
        pipeline->count = 0;
        buf_clear(&pipeline->out);
    }
}

void pipeline_add(struct pipeline *pipeline, const struct ng_str *words, size_t count)
{
    pipeline_begin(pipeline);
    redis_command(&pipeline->out, words, count);
    pipeline->count++;
}

/* ---- running ---- */

/* One attempt on the current connection. *ret_got: replies received. */
static enum socket_result pipeline_exchange(struct pipeline *pipeline, size_t *ret_got)
{
    struct socket_limit limit;
    enum socket_result end = SOCKET_OK;
    size_t at = 0;
    *ret_got = 0;
    do {
        size_t piece = size_min(pipeline->out.len - at, PIPELINE_PIECE);
        limit = pool_limit(pipeline->pool, pipeline->call);
        end = socket_write(&pipeline->conn->sock, pipeline->out.data + at, piece, &limit);
        at += piece;
    } while (end == SOCKET_OK && at < pipeline->out.len);
    if (at > PIPELINE_PIECE) {
        limit = pool_limit(pipeline->pool, pipeline->call);
    }
    for (; end == SOCKET_OK && *ret_got < pipeline->count; (*ret_got)++) {
        end = conn_read(pipeline->conn, &limit, &pipeline->replies[*ret_got]);
        if (end != SOCKET_OK) {
            break;
        }
    }
    return end;
}

static void pipeline_drop(struct pipeline *pipeline)
{
    if (pipeline->conn != NULL) {
        pool_return(pipeline->pool, pipeline->conn, false);
        pipeline->conn = NULL;
    }
}

/* Drops the replies of an attempt. */
static void pipeline_clear(struct pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->count; i++) {
        freeReplyObject(pipeline->replies[i]);
        pipeline->replies[i] = NULL;
    }
}

static int pipeline_run_connected(struct pipeline *pipeline)
{
    struct redis_pool *pool = pipeline->pool;
    bool held = pipeline->conn != NULL;
    for (int attempt = 0;; attempt++) {
        size_t got = 0;
        if (pipeline->conn == NULL) {
            struct socket_limit limit = pool_limit(pool, pipeline->call);
            int rc = pool_acquire(pool, pipeline->call, attempt > 0, &limit, &pipeline->conn,
                                  &pipeline->again);
            if (rc != NG_OK) {
                return rc;
            }
        }
        enum socket_result end = pipeline_exchange(pipeline, &got);
        if (end == SOCKET_OK) {
            return NG_OK;
        }
        pipeline_clear(pipeline);
        bool resend = end == SOCKET_CLOSED && pipeline->conn->reused && !held && attempt == 0;
        int rc = NG_OK;
        if (!resend) {
            rc = pool_fail(pool, pipeline->call, pipeline->conn, end);
            pipeline->again = end == SOCKET_CLOSED || end == SOCKET_TIMED_OUT;
        }
        if (pipeline->again) {
            pool_forget(pool, &pipeline->conn->place);
        }
        pipeline_drop(pipeline);
        if (!resend) {
            return rc;
        }
    }
}

/* One attempt, with the redirections that its replies ask for. */
static int pipeline_round(struct pipeline *pipeline)
{
    pipeline->again = false;
    pipeline_clear(pipeline);
    if (pipeline->count == 0) {
        return NG_OK;
    }
    int rc = pipeline_run_connected(pipeline);
    if (rc == NG_OK) {
        rc = redirect_replies(pipeline);
    }
    if (pipeline->conn != NULL && !pipeline->keeps_connection) {
        bool replica = false;
        for (size_t i = 0; i < pipeline->count; i++) {
            replica = replica || redis_error_is(pipeline->replies[i], "READONLY");
        }
        /* After a failover the name leads to another server. */
        pool_return(pipeline->pool, pipeline->conn, !replica);
        pipeline->conn = NULL;
    }
    return rc;
}

int pipeline_run(struct pipeline *pipeline)
{
    if (pipeline->out.rc == NG_EINVAL) {
        return NG_EINVAL; /* the call has failed with the reason */
    }
    if (pipeline->out.rc != NG_OK) {
        return ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for what is sent to Redis");
    }
    pipeline->replies = calloc(pipeline->count + 1, sizeof(*pipeline->replies));
    if (pipeline->replies == NULL) {
        return ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for the answers of Redis");
    }
    struct pool_retry retry = pool_retry_begin(pipeline->pool);
    bool once = pipeline->keeps_connection || pipeline->at_once;
    int rc;
    do {
        rc = pipeline_round(pipeline);
    } while (pipeline->again && !once && pool_retry_wait(&retry, pipeline->call));
    return rc;
}

int pipeline_run_all(struct pipeline *pipeline)
{
    int rc = pipeline_run(pipeline);
    for (size_t i = 0; rc == NG_OK && i < pipeline->count; i++) {
        if (pipeline->replies[i]->type == REDIS_REPLY_ERROR) {
            rc = pool_fail_reply(pipeline->pool, pipeline->call, pipeline->replies[i]);
        }
    }
    return rc;
}

const redisReply *pipeline_reply(const struct pipeline *pipeline, size_t at)
{
    if (pipeline->replies == NULL || at >= pipeline->count) {
        return NULL;
    }
    return pipeline->replies[at];
}

void pipeline_done(struct pipeline *pipeline)
{
    pipeline_free_replies(pipeline);
    /* A connection kept over rounds may be inside a transaction. */
    pipeline_drop(pipeline);
    buf_done(&pipeline->out);
}
