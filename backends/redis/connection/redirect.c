/* SPDX-License-Identifier: MIT */
/*
 * redirect.c - follows the replies of a cluster that lead to another node.
 *
 * MOVED, and READONLY after a failover, replace the server of the pool: the whole round is
 * repeated there. ASK sends one command to the node to which the slot is being moved; it is
 * followed for commands of one key only. A script might there read keys that have not arrived
 * yet and take them for absent, so it waits until the slot has moved; a search reports the
 * index as unusable, and recall scans.
 */
#include "redirect.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

#define REDIRECT_OUT_MAX ((size_t)256 * 1024 * 1024)

/* Fails the round, which may be repeated. */
static int redirect_again(struct pipeline *pipeline, const redisReply *reply)
{
    struct redis_pool *pool = pipeline->pool;
    struct redis_place place = {0};
    pipeline->again = true;
    if (redis_error_is(reply, "MOVED")) {
        if (redis_error_place(reply, &pipeline->conn->place, &place)) {
            (void)pool_set_server(pool, &place);
        }
    } else if (strstr(reply->str, "READONLY") != NULL || redis_error_is(reply, "MASTERDOWN")) {
        pool_forget(pool, &pipeline->conn->place);
    }
    return pool_fail_reply(pool, pipeline->call, reply);
}

/* The number behind the sign at `at`, and where its line ends. */
static size_t redirect_number(const struct buf *out, size_t *at)
{
    size_t number = strtoul(out->data + *at + 1, NULL, 10);
    const char *end = memchr(out->data + *at, '\n', out->len - *at);
    *at = (size_t)(end - out->data) + 1;
    return number;
}

/* The command that begins at *at, and its first word; moves *at behind it. */
static struct ng_str redirect_next(const struct buf *out, size_t *at, struct ng_str *ret_verb)
{
    size_t from = *at;
    size_t words = redirect_number(out, at);
    for (size_t i = 0; i < words; i++) {
        size_t len = redirect_number(out, at);
        if (i == 0) {
            *ret_verb = str_make(out->data + *at, len);
        }
        *at += len + 2;
    }
    return str_make(out->data + from, *at - from);
}

/* ---- ASK ---- */

struct asked {
    struct pipeline *pipeline;
    struct redis_place place; /* of the importing node */
    struct buf out;
    size_t *replies; /* their numbers in the pipeline */
    size_t count;
};

/* Collects the commands to ask the other node for. *ret_wait: the first reply that none may be
 * asked for. */
static int asked_collect(struct asked *asked, const redisReply **ret_wait)
{
    struct pipeline *pipeline = asked->pipeline;
    const struct ng_str asking = WORD("ASKING");
    size_t at = 0;
    for (size_t i = 0; i < pipeline->count; i++) {
        struct ng_str verb = {NULL, 0};
        struct ng_str command = redirect_next(&pipeline->out, &at, &verb);
        const redisReply *reply = pipeline->replies[i];
        if (!redis_error_is(reply, "ASK") || str_begins(verb, "FT.")) {
            continue;
        }
        if (str_begins(verb, "EVAL") || pipeline->keeps_connection ||
            !redis_error_place(reply, &pipeline->conn->place, &asked->place)) {
            *ret_wait = reply;
            return NG_OK;
        }
        redis_command(&asked->out, &asking, 1);
        buf_add_str(&asked->out, command);
        asked->replies[asked->count++] = i;
    }
    if (asked->out.rc != NG_OK) {
        return ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for what is sent to Redis");
    }
    return NG_OK;
}

/* Reads two replies to each command: to ASKING, and its own, which replaces the ASK. */
static enum socket_result asked_read(const struct asked *asked, struct conn *conn,
                                     const struct socket_limit *limit)
{
    enum socket_result end = SOCKET_OK;
    for (size_t i = 0; end == SOCKET_OK && i < 2 * asked->count; i++) {
        redisReply *reply = NULL;
        end = conn_read(conn, limit, &reply);
        if (end == SOCKET_OK && i % 2 == 1) {
            redisReply **old = &asked->pipeline->replies[asked->replies[i / 2]];
            freeReplyObject(*old);
            *old = reply;
        } else if (end == SOCKET_OK) {
            freeReplyObject(reply);
        }
    }
    return end;
}

static int asked_send(struct asked *asked)
{
    struct pipeline *pipeline = asked->pipeline;
    struct redis_pool *pool = pipeline->pool;
    struct socket_limit limit = pool_limit(pool, pipeline->call);
    struct conn *conn = NULL;
    struct conn_error error;
    int rc = conn_open(&pool->settings, CONN_IMPORTING, &asked->place, &limit, &conn, &error);
    if (rc != NG_OK) {
        pipeline->again = rc == NG_EUNAVAILABLE && !error.permanent;
        return ng_fail(pipeline->call, rc, "%s", error.text);
    }
    enum socket_result end = socket_write(&conn->sock, asked->out.data, asked->out.len, &limit);
    if (end == SOCKET_OK) {
        end = asked_read(asked, conn, &limit);
    }
    rc = pool_fail(pool, pipeline->call, conn, end);
    pipeline->again = end == SOCKET_CLOSED || end == SOCKET_TIMED_OUT;
    conn_free(conn);
    for (size_t i = 0; rc == NG_OK && i < asked->count; i++) {
        const redisReply *reply = pipeline->replies[asked->replies[i]];
        if (redis_error_moves(reply)) {
            pipeline->again = true;
            rc = pool_fail_reply(pool, pipeline->call, reply);
        }
    }
    return rc;
}

static int redirect_ask(struct pipeline *pipeline)
{
    const redisReply *wait = NULL;
    struct asked asked = {.pipeline = pipeline};
    buf_init(&asked.out, REDIRECT_OUT_MAX);
    asked.replies = calloc(pipeline->count, sizeof(*asked.replies));
    int rc;
    if (asked.replies == NULL) {
        rc = ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for the answers of Redis");
    } else {
        rc = asked_collect(&asked, &wait);
    }
    if (rc == NG_OK && wait != NULL) {
        rc = redirect_again(pipeline, wait);
    } else if (rc == NG_OK && asked.count > 0) {
        rc = asked_send(&asked);
    }
    free(asked.replies);
    buf_done(&asked.out);
    return rc;
}

int redirect_replies(struct pipeline *pipeline)
{
    bool ask = false;
    if (pipeline->pool->topology == REDIS_SINGLE) {
        return NG_OK;
    }
    for (size_t i = 0; i < pipeline->count; i++) {
        const redisReply *reply = pipeline->replies[i];
        if (redis_error_is(reply, "ASK")) {
            ask = true;
        } else if (redis_error_moves(reply)) {
            return redirect_again(pipeline, reply);
        }
    }
    if (!ask) {
        return NG_OK;
    }
    return redirect_ask(pipeline);
}
