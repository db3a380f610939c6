/* SPDX-License-Identifier: MIT */
/* conn.c - one connection: opening, signing in, reading replies. */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"

#define CONN_READ_SIZE 16384
/* The time limit starts again with each part of this size, so a long reply that makes progress
 * does not time out. */
#define CONN_PIECE ((size_t)256 * 1024)
/* Bytes of one command of a sign-in. */
#define CONN_SIGN_IN_MAX ((size_t)16 * 1024)

#define WORD(text) ((struct ng_str){(text), sizeof(text) - 1})

void redis_command(struct buf *out, const struct ng_str *words, size_t count)
{
    buf_printf(out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        if (words[i].data == NULL) {
            out->rc = words[i].len > 0 ? NG_EINVAL : NG_EINTERNAL;
            return;
        }
        buf_printf(out, "$%zu\r\n", words[i].len);
        buf_add_str(out, words[i]);
        buf_add_c(out, "\r\n");
    }
}

enum socket_result conn_read(struct conn *conn, const struct socket_limit *limit,
                             redisReply **ret)
{
    char data[CONN_READ_SIZE];
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
        if (moved >= CONN_PIECE && span > 0) {
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

void conn_free(struct conn *conn)
{
    socket_close(&conn->sock);
    reader_close(&conn->reader);
    free(conn);
}

enum socket_result conn_command(struct conn *conn, const struct socket_limit *limit,
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
    return conn_read(conn, limit, ret);
}

/* ---- signing in ---- */

#define CONN_STEP_WORDS 3

/* One command of the sign-in. */
struct conn_step {
    size_t count; /* of its words; 0: not needed */
    struct ng_str words[CONN_STEP_WORDS];
};

/* The steps, in order. */
enum sign_in_at { SIGN_IN_AUTH, SIGN_IN_SELECT, SIGN_IN_MODE, SIGN_IN_PROBE, SIGN_IN_STEPS };

struct sign_in {
    const struct conn_settings *settings;
    enum conn_kind kind;
    struct conn *conn;
    const struct socket_limit *limit;
    char name[CONN_NAME_SIZE];
    struct conn_error *error;
};

static struct conn_step step_auth(const struct conn_settings *settings, enum conn_kind kind)
{
    bool sentinel = kind == CONN_SENTINEL;
    const char *user = sentinel ? settings->uri.sentinel_user : settings->uri.user;
    const char *password = sentinel ? settings->uri.sentinel_password : settings->uri.password;
    struct ng_str secret = ng_str_of(text_or(password, ""));
    struct conn_step step = {0, {WORD("AUTH"), secret, secret}};
    if (user != NULL) {
        step.words[1] = ng_str_of(user);
        step.count = 3;
    } else if (password != NULL) {
        step.count = 2;
    }
    return step;
}

/* HELLO tells a server that is no node of a cluster: it would take the probe. */
static struct conn_step step_mode(enum conn_kind kind)
{
    struct conn_step step = {kind == CONN_CLUSTER, {WORD("HELLO")}};
    return step;
}

/* A command that the right server takes, and that tells a wrong one. */
static struct conn_step step_probe(const struct conn_settings *settings, enum conn_kind kind)
{
    struct conn_step step = {1, {WORD("PING")}};
    if (kind == CONN_PRIMARY) {
        step.words[0] = WORD("HELLO");
    } else if (kind == CONN_CLUSTER) {
        step.words[0] = WORD("EXISTS");
        step.words[1] = ng_str_of(text_or(settings->probe, ""));
        step.count = 2;
    }
    return step;
}

/* HELLO answers names and values in turn. A server that does not know it, or may not tell, is
 * found out by its refusal of writes, or by what it says to the probe. */
static bool hello_says(const redisReply *reply, const char *name, const char *value)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return !redis_error_is(reply, "NOAUTH");
    }
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        if (str_is(redis_text(reply->element[i]), name)) {
            return str_is(redis_text(reply->element[i + 1]), value);
        }
    }
    return true;
}

static int sign_in_judge_mode(struct sign_in *sign_in, const redisReply *reply)
{
    if (hello_says(reply, "mode", "cluster")) {
        return NG_OK;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        return conn_describe_reply(sign_in->settings, sign_in->name, reply, sign_in->error);
    }
    (void)snprintf(sign_in->error->text, sizeof(sign_in->error->text),
                   "%s is not a node of a Redis Cluster: set redis.cluster to false, or name "
                   "nodes of a cluster in redis.uri",
                   sign_in->name);
    sign_in->error->permanent = true;
    return NG_EUNAVAILABLE;
}

static int sign_in_judge_primary(struct sign_in *sign_in, const redisReply *reply)
{
    if (hello_says(reply, "role", "master")) {
        return NG_OK;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        return conn_describe_reply(sign_in->settings, sign_in->name, reply, sign_in->error);
    }
    (void)snprintf(sign_in->error->text, sizeof(sign_in->error->text),
                   "%s: it is a replica; the gateway asks the Sentinels again", sign_in->name);
    return NG_EUNAVAILABLE;
}

static int sign_in_judge(struct sign_in *sign_in, const redisReply *reply, enum sign_in_at at)
{
    if (at == SIGN_IN_PROBE && sign_in->kind == CONN_PRIMARY) {
        return sign_in_judge_primary(sign_in, reply);
    }
    if (at == SIGN_IN_MODE) {
        return sign_in_judge_mode(sign_in, reply);
    }
    /* ASK: the key is not there, and this node has the slot until it has been moved. */
    if (reply->type != REDIS_REPLY_ERROR || redis_error_is(reply, "ASK")) {
        return NG_OK;
    }
    struct redis_place *moved = &sign_in->error->moved;
    if (sign_in->kind == CONN_CLUSTER && redis_error_is(reply, "MOVED") &&
        !redis_error_place(reply, &sign_in->conn->place, moved)) {
        moved->host[0] = '\0';
    }
    return conn_describe_reply(sign_in->settings, sign_in->name, reply, sign_in->error);
}

static int sign_in_step(struct sign_in *sign_in, const struct conn_step *step,
                        enum sign_in_at at)
{
    struct buf command;
    redisReply *reply = NULL;
    if (step->count == 0) {
        return NG_OK;
    }
    buf_init(&command, CONN_SIGN_IN_MAX);
    redis_command(&command, step->words, step->count);
    enum socket_result end = conn_command(sign_in->conn, sign_in->limit, &command, &reply);
    buf_done(&command);
    int rc = conn_describe(sign_in->settings, sign_in->name, end, sign_in->conn->sock.error,
                           sign_in->error);
    if (end == SOCKET_OK) {
        rc = sign_in_judge(sign_in, reply, at);
        freeReplyObject(reply);
    }
    return rc;
}

static int sign_in_greet(struct sign_in *sign_in)
{
    redisReply *reply = NULL;
    if (sign_in->settings->greeting.len == 0) {
        return NG_OK;
    }
    enum socket_result end =
        conn_command(sign_in->conn, sign_in->limit, &sign_in->settings->greeting, &reply);
    if (end == SOCKET_OK) {
        freeReplyObject(reply);
    }
    return conn_describe(sign_in->settings, sign_in->name, end, sign_in->conn->sock.error,
                         sign_in->error);
}

/* The steps, then the greeting. */
static int conn_sign_in(struct sign_in *sign_in)
{
    const struct conn_settings *settings = sign_in->settings;
    bool sentinel = sign_in->kind == CONN_SENTINEL;
    char database[16];
    (void)snprintf(database, sizeof(database), "%d", settings->uri.database);
    struct conn_step steps[SIGN_IN_STEPS] = {
        [SIGN_IN_AUTH] = step_auth(settings, sign_in->kind),
        [SIGN_IN_SELECT] = {0, {WORD("SELECT"), ng_str_of(database)}},
        [SIGN_IN_MODE] = step_mode(sign_in->kind),
        [SIGN_IN_PROBE] = step_probe(settings, sign_in->kind),
    };
    if (settings->uri.database != 0 && !sentinel) {
        steps[SIGN_IN_SELECT].count = 2;
    }
    int rc = NG_OK;
    for (int at = SIGN_IN_AUTH; rc == NG_OK && at < SIGN_IN_STEPS; at++) {
        rc = sign_in_step(sign_in, &steps[at], (enum sign_in_at)at);
    }
    if (rc == NG_OK && !sentinel && sign_in->kind != CONN_IMPORTING) {
        rc = sign_in_greet(sign_in);
    }
    return rc;
}

int conn_open(const struct conn_settings *settings, enum conn_kind kind,
              const struct redis_place *place, const struct socket_limit *limit,
              struct conn **ret, struct conn_error *ret_error)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    memset(ret_error, 0, sizeof(*ret_error));
    (void)snprintf(ret_error->text, sizeof(ret_error->text),
                   "out of memory for a connection to Redis");
    if (conn == NULL) {
        return NG_EINTERNAL;
    }
    conn->place = *place;
    struct sign_in sign_in = {
        .settings = settings, .kind = kind, .conn = conn, .limit = limit, .error = ret_error};
    conn_name(settings, kind, place, sign_in.name);
    enum socket_result end =
        socket_open(&conn->sock, settings->uri.path, place, settings->tls, limit);
    int rc = NG_EINTERNAL;
    if (end != SOCKET_OK) {
        rc = conn_describe(settings, sign_in.name, end, conn->sock.error, ret_error);
    } else if (reader_open(&conn->reader)) {
        rc = conn_sign_in(&sign_in);
    }
    if (rc != NG_OK) {
        conn_free(conn);
        return rc;
    }
    *ret = conn;
    return NG_OK;
}
