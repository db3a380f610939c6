/* SPDX-License-Identifier: MIT */
/* pipeline.c - sends commands together and collects their answers. */
#include "pipeline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINE_OUT_FIRST ((size_t)1024)
/* Most that one round may send. */
#define PIPELINE_OUT_MAX ((size_t)256 * 1024 * 1024)
/* A long round may take long as a whole, as long as it moves: its limit begins anew with each
 * piece. */
#define PIPELINE_PIECE ((size_t)1024 * 1024)

void pipeline_init(struct pipeline *pipeline, struct redis_pool *pool, struct ng_call *call)
{
    memset(pipeline, 0, sizeof(*pipeline));
    pipeline->pool = pool;
    pipeline->call = call;
}

static void pipeline_free_replies(struct pipeline *pipeline)
{
    for (size_t i = 0; pipeline->replies != NULL && i < pipeline->count; i++) {
        freeReplyObject(pipeline->replies[i]);
    }
    free(pipeline->replies);
    pipeline->replies = NULL;
}

/* After a round, the next one begins. */
static void pipeline_begin(struct pipeline *pipeline)
{
    if (pipeline->replies != NULL) {
        pipeline_free_replies(pipeline);
        pipeline->count = 0;
        pipeline->out_len = 0;
    }
}

static bool pipeline_append(struct pipeline *pipeline, const char *data, size_t len)
{
    if (len > PIPELINE_OUT_MAX - pipeline->out_len) {
        return false;
    }
    size_t size = pipeline->out_size == 0 ? PIPELINE_OUT_FIRST : pipeline->out_size;
    while (size < pipeline->out_len + len) {
        size *= 2;
    }
    if (size != pipeline->out_size) {
        char *out = realloc(pipeline->out, size);
        if (out == NULL) {
            return false;
        }
        pipeline->out = out;
        pipeline->out_size = size;
    }
    memcpy(pipeline->out + pipeline->out_len, data, len);
    pipeline->out_len += len;
    return true;
}

void pipeline_add(struct pipeline *pipeline, const struct ng_str *words, size_t count)
{
    pipeline_begin(pipeline);
    if (count == 0 || count > PIPELINE_WORDS_MAX) {
        pipeline->failed = true;
        return;
    }
    const char **data = calloc(count, sizeof(*data));
    size_t *lens = calloc(count, sizeof(*lens));
    char *command = NULL;
    int len = -1;
    if (data != NULL && lens != NULL) {
        size_t total = 0;
        for (size_t i = 0; i < count; i++) {
            data[i] = words[i].data == NULL ? "" : words[i].data;
            lens[i] = words[i].len;
            total = words[i].len > PIPELINE_OUT_MAX - total ? PIPELINE_OUT_MAX
                                                            : total + words[i].len;
        }
        /* Its lengths are ints. */
        len = total < PIPELINE_OUT_MAX
                  ? redisFormatCommandArgv(&command, (int)count, data, lens)
                  : -1;
    }
    if (len < 0 || !pipeline_append(pipeline, command, (size_t)len)) {
        pipeline->failed = true;
    }
    if (len >= 0) {
        redisFreeCommand(command);
    }
    free(data);
    free(lens);
    pipeline->count++;
}

/* ---- running ---- */

static enum socket_result pipeline_send(struct pipeline *pipeline)
{
    for (size_t at = 0; at < pipeline->out_len; at += PIPELINE_PIECE) {
        size_t left = pipeline->out_len - at;
        struct socket_limit limit = pool_limit(pipeline->pool, pipeline->call);
        enum socket_result end =
            socket_write(&pipeline->conn->sock, pipeline->out + at,
                         left < PIPELINE_PIECE ? left : PIPELINE_PIECE, &limit);
        if (end != SOCKET_OK) {
            return end;
        }
    }
    return SOCKET_OK;
}

/* One attempt on the connection there is. *ret_got: replies that came. */
static enum socket_result pipeline_exchange(struct pipeline *pipeline, size_t *ret_got)
{
    struct socket_limit limit = pool_limit(pipeline->pool, pipeline->call);
    enum socket_result end =
        pipeline->out_len <= PIPELINE_PIECE
            ? socket_write(&pipeline->conn->sock, pipeline->out, pipeline->out_len, &limit)
            : pipeline_send(pipeline);
    if (pipeline->out_len > PIPELINE_PIECE) {
        limit = pool_limit(pipeline->pool, pipeline->call);
    }
    for (*ret_got = 0; end == SOCKET_OK && *ret_got < pipeline->count; (*ret_got)++) {
        end = pool_read(pipeline->conn, &limit, &pipeline->replies[*ret_got]);
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

static int pipeline_run_connected(struct pipeline *pipeline)
{
    bool held = pipeline->conn != NULL;
    for (int attempt = 0;; attempt++) {
        size_t got = 0;
        if (pipeline->conn == NULL) {
            struct socket_limit limit = pool_limit(pipeline->pool, pipeline->call);
            int rc = pool_acquire(pipeline->pool, pipeline->call, attempt > 0, &limit,
                                  &pipeline->conn);
            if (rc != NG_OK) {
                return rc;
            }
        }
        enum socket_result end = pipeline_exchange(pipeline, &got);
        if (end == SOCKET_OK) {
            return NG_OK;
        }
        for (size_t i = 0; i < got; i++) {
            freeReplyObject(pipeline->replies[i]);
            pipeline->replies[i] = NULL;
        }
        bool again = end == SOCKET_CLOSED && pipeline->conn->reused && !held && attempt == 0;
        int rc =
            again ? NG_OK
                  : pool_fail(pipeline->pool, pipeline->call, end, pipeline->conn->sock.error);
        pipeline_drop(pipeline);
        if (!again) {
            return rc;
        }
    }
}

int pipeline_run(struct pipeline *pipeline)
{
    if (pipeline->failed) {
        return ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for what is sent to Redis");
    }
    pipeline->replies =
        calloc(pipeline->count == 0 ? 1 : pipeline->count, sizeof(*pipeline->replies));
    if (pipeline->replies == NULL) {
        return ng_fail(pipeline->call, NG_EINTERNAL, "out of memory for the answers of Redis");
    }
    int rc = pipeline->count == 0 ? NG_OK : pipeline_run_connected(pipeline);
    if (rc == NG_OK && !pipeline->keeps_connection && pipeline->conn != NULL) {
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
    return pipeline->replies == NULL || at >= pipeline->count ? NULL : pipeline->replies[at];
}

void pipeline_done(struct pipeline *pipeline)
{
    pipeline_free_replies(pipeline);
    /* A held connection may be in the middle of a transaction. */
    pipeline_drop(pipeline);
    free(pipeline->out);
    pipeline->out = NULL;
}

/* ---- replies ---- */

bool redis_error_is(const redisReply *reply, const char *code)
{
    size_t len = strlen(code);
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           strncmp(reply->str, code, len) == 0 &&
           (reply->str[len] == ' ' || reply->str[len] == '\0');
}

struct ng_str redis_text(const redisReply *reply)
{
    struct ng_str text = {NULL, 0};
    if (reply != NULL &&
        (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS)) {
        text.data = reply->str;
        text.len = (size_t)reply->len;
    }
    return text;
}
