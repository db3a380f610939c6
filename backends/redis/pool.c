/* SPDX-License-Identifier: MIT */
/* link.c - the pool of connections to one Redis. */
#include "link.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"

/* After a failure the next attempt waits, doubled up to the last. */
#define LINK_RETRY_FIRST_MS 20
#define LINK_RETRY_LAST_MS 1000
#define LINK_NS_PER_MS 1000000
/* Somebody who waits for a free connection looks this often whether the call is cancelled. */
#define LINK_STEP_NS 50000000
#define LINK_READ_SIZE 16384
/* A long reply may take long as a whole, as long as it moves: its limit begins anew with each
 * piece. */
#define LINK_PIECE ((size_t)256 * 1024)
/* So much of an error that Redis tells is passed on. */
#define LINK_REPLY_MAX 200

/* ---- errors ---- */

static int link_describe(const struct link *link, enum wire_end end, const char *error,
                         char text[LINK_TEXT_SIZE])
{
    switch (end) {
    case WIRE_OK:
        return NG_OK;
    case WIRE_TIME_UP:
        (void)snprintf(text, LINK_TEXT_SIZE,
                       "the call's time was up before Redis at %s answered", link->place);
        return NG_ETIMEOUT;
    case WIRE_CANCELLED:
        (void)snprintf(text, LINK_TEXT_SIZE, "the call was cancelled");
        return NG_ECANCELLED;
    case WIRE_SLOW:
        (void)snprintf(text, LINK_TEXT_SIZE,
                       "Redis at %s did not answer within redis.timeout (%lld ms)", link->place,
                       (long long)link->timeout_ms);
        return NG_EUNAVAILABLE;
    case WIRE_CLOSED:
    case WIRE_REFUSED:
        break;
    }
    (void)snprintf(text, LINK_TEXT_SIZE, "Redis at %s: %s", link->place, error);
    return NG_EUNAVAILABLE;
}

int link_fail(const struct link *link, struct ng_call *call, enum wire_end end,
              const char *error)
{
    char text[LINK_TEXT_SIZE];
    int rc = link_describe(link, end, error, text);
    return rc == NG_OK ? rc : ng_fail(call, rc, "%s", text);
}

struct link_answer {
    const char *code;
    int rc;
    const char *advice;
};

static const struct link_answer link_answers[] = {
    {"NOAUTH", NG_EUNAVAILABLE, "give user and password in redis.uri"},
    {"WRONGPASS", NG_EUNAVAILABLE, "check user and password in redis.uri"},
    {"NOPERM", NG_EUNAVAILABLE, "the user in redis.uri lacks a right; ACL SETUSER grants it"},
    {"LOADING", NG_EUNAVAILABLE, "it is still reading its data; it is tried again"},
    {"READONLY", NG_EUNAVAILABLE, "redis.uri must name the primary and not a replica"},
    {"MASTERDOWN", NG_EUNAVAILABLE, "redis.uri must name the primary and not a replica"},
    {"MISCONF", NG_EUNAVAILABLE, "it cannot save its data; look at its log and disk"},
    {"BUSY", NG_EUNAVAILABLE, "a script runs there too long; it is tried again"},
    {"OOM", NG_EFULL, "its maxmemory is reached; give it more"},
    {"WRONGTYPE", NG_EUNAVAILABLE,
     "another program uses a key of the journal; rename it, or set redis.prefix"},
    {"MOVED", NG_EUNAVAILABLE, "a Redis Cluster is not supported; name a single server"},
    {"CROSSSLOT", NG_EUNAVAILABLE, "a Redis Cluster is not supported; name a single server"},
    {"TOOLARGE", NG_ETOOLARGE, "take checkpoints of smaller spaces"},
};

static int link_describe_reply(const struct link *link, const redisReply *reply,
                               char text[LINK_TEXT_SIZE])
{
    const char *advice = NULL;
    int rc = NG_EUNAVAILABLE;
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        (void)snprintf(text, LINK_TEXT_SIZE, "Redis at %s gave an answer of another kind",
                       link->place);
        return rc;
    }
    for (size_t i = 0; advice == NULL && i < NG_COUNT(link_answers); i++) {
        if (redis_error_is(reply, link_answers[i].code)) {
            advice = link_answers[i].advice;
            rc = link_answers[i].rc;
        }
    }
    (void)snprintf(text, LINK_TEXT_SIZE, "Redis at %s refuses: %.*s%s%s", link->place,
                   LINK_REPLY_MAX, reply->str, advice == NULL ? "" : " - ",
                   advice == NULL ? "" : advice);
    return rc;
}

int link_fail_reply(const struct link *link, struct ng_call *call, const redisReply *reply)
{
    char text[LINK_TEXT_SIZE];
    int rc = link_describe_reply(link, reply, text);
    return ng_fail(call, rc, "%s", text);
}

/* ---- one connection ---- */

enum wire_end link_read(struct link_conn *conn, const struct wire_limit *limit,
                        redisReply **ret)
{
    char data[LINK_READ_SIZE];
    void *reply = NULL;
    struct wire_limit own = *limit;
    int64_t span = limit->deadline_ns - wire_now_ns();
    size_t moved = 0;
    for (;;) {
        if (redisReaderGetReply(conn->reader.redis, &reply) != REDIS_OK) {
            (void)snprintf(conn->wire.error, sizeof(conn->wire.error),
                           "what it sends is not Redis's protocol (%s)",
                           conn->reader.redis->errstr);
            return WIRE_CLOSED;
        }
        if (reply != NULL) {
            *ret = reply;
            return WIRE_OK;
        }
        size_t len = 0;
        enum wire_end end = wire_read(&conn->wire, data, sizeof(data), &len, &own);
        if (end != WIRE_OK) {
            return end;
        }
        moved += len;
        if (moved >= LINK_PIECE && span > 0) {
            own.deadline_ns = wire_now_ns() + span;
            moved = 0;
        }
        if (redisReaderFeed(conn->reader.redis, data, len) != REDIS_OK) {
            (void)snprintf(conn->wire.error, sizeof(conn->wire.error), "%s",
                           conn->reader.redis->errstr);
            return WIRE_CLOSED;
        }
    }
}

static void conn_free(struct link_conn *conn)
{
    wire_close(&conn->wire);
    reader_close(&conn->reader);
    free(conn);
}

/* Sends one command and reads its answer. */
static enum wire_end conn_command(struct link_conn *conn, const struct wire_limit *limit,
                                  int argc, const char **argv, redisReply **ret)
{
    char *command = NULL;
    int len = redisFormatCommandArgv(&command, argc, argv, NULL);
    if (len < 0) {
        (void)snprintf(conn->wire.error, sizeof(conn->wire.error), "out of memory");
        return WIRE_CLOSED;
    }
    enum wire_end end = wire_write(&conn->wire, command, (size_t)len, limit);
    redisFreeCommand(command);
    return end == WIRE_OK ? link_read(conn, limit, ret) : end;
}

static int conn_greet(struct link *link, struct link_conn *conn, const struct wire_limit *limit,
                      char why[LINK_TEXT_SIZE])
{
    redisReply *reply = NULL;
    if (link->greeting == NULL) {
        return NG_OK;
    }
    enum wire_end end = wire_write(&conn->wire, link->greeting, link->greeting_len, limit);
    if (end == WIRE_OK) {
        end = link_read(conn, limit, &reply);
    }
    if (end == WIRE_OK) {
        freeReplyObject(reply);
    }
    return link_describe(link, end, conn->wire.error, why);
}

/* AUTH, SELECT, and a PING so that a server which takes none of them is found here. */
static int conn_sign_in(struct link *link, struct link_conn *conn,
                        const struct wire_limit *limit, char why[LINK_TEXT_SIZE])
{
    const struct redis_uri *uri = &link->uri;
    char database[16];
    (void)snprintf(database, sizeof(database), "%d", uri->database);
    const char *auth[] = {"AUTH", uri->user == NULL ? uri->password : uri->user, uri->password};
    const char *select[] = {"SELECT", database};
    const char *ping[] = {"PING"};
    struct {
        bool wanted;
        int argc;
        const char **argv;
    } steps[] = {
        {uri->password != NULL, uri->user == NULL ? 2 : 3, auth},
        {uri->database != 0, 2, select},
        {true, 1, ping},
    };
    for (size_t i = 0; i < NG_COUNT(steps); i++) {
        redisReply *reply = NULL;
        if (!steps[i].wanted) {
            continue;
        }
        enum wire_end end = conn_command(conn, limit, steps[i].argc, steps[i].argv, &reply);
        int rc = NG_OK;
        if (end != WIRE_OK) {
            rc = link_describe(link, end, conn->wire.error, why);
        } else if (reply->type == REDIS_REPLY_ERROR) {
            rc = link_describe_reply(link, reply, why);
        }
        if (end == WIRE_OK) {
            freeReplyObject(reply);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return conn_greet(link, conn, limit, why);
}

static int conn_open(struct link *link, const struct wire_limit *limit, struct link_conn **ret,
                     char why[LINK_TEXT_SIZE])
{
    struct link_conn *conn = calloc(1, sizeof(*conn));
    (void)snprintf(why, LINK_TEXT_SIZE, "out of memory for a connection to Redis");
    if (conn == NULL) {
        return NG_EINTERNAL;
    }
    enum wire_end end = wire_open(&conn->wire, &link->uri, link->tls, limit);
    int rc = NG_OK;
    if (end != WIRE_OK) {
        rc = link_describe(link, end, conn->wire.error, why);
    } else if (!reader_open(&conn->reader)) {
        rc = NG_EINTERNAL;
    } else {
        rc = conn_sign_in(link, conn, limit, why);
    }
    if (rc != NG_OK) {
        conn_free(conn);
        return rc;
    }
    *ret = conn;
    return NG_OK;
}

/* ---- the pool ---- */

struct wire_limit link_limit(const struct link *link, struct ng_call *call)
{
    struct wire_limit limit = {call, wire_now_ns() + link->timeout_ms * LINK_NS_PER_MS};
    return limit;
}

/* With the lock held: one that is idle, or leave to open one (*ret NULL). */
static int link_wait(struct link *link, struct ng_call *call, bool fresh,
                     const struct wire_limit *limit, struct link_conn **ret)
{
    *ret = NULL;
    for (;;) {
        while (link->idle != NULL) {
            struct link_conn *conn = link->idle;
            link->idle = conn->next;
            if (!fresh && wire_is_quiet(&conn->wire)) {
                conn->reused = true;
                *ret = conn;
                return NG_OK;
            }
            conn_free(conn);
            link->open--;
        }
        int64_t now = wire_now_ns();
        if (link->open < link->max) {
            if (now < link->retry_at_ns) {
                return ng_fail(call, NG_EUNAVAILABLE, "%s", link->retry_error);
            }
            link->open++;
            return NG_OK;
        }
        if (now >= limit->deadline_ns) {
            return ng_fail(call, NG_EBUSY,
                           "all %zu connections to Redis at %s are in use; raise "
                           "redis.connections",
                           link->max, link->place);
        }
        if (call->host->cancelled(call)) {
            return ng_fail(call, NG_ECANCELLED, "the call was cancelled");
        }
        int64_t until = now + LINK_STEP_NS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        (void)pthread_cond_timedwait(&link->given_back, &link->lock, &at);
    }
}

static void link_note_failure(struct link *link, int rc, const char *why)
{
    if (rc != NG_EUNAVAILABLE) {
        return; /* the call's own end says nothing about the server */
    }
    link->retry_wait_ms =
        link->retry_wait_ms == 0 ? LINK_RETRY_FIRST_MS : link->retry_wait_ms * 2;
    if (link->retry_wait_ms > LINK_RETRY_LAST_MS) {
        link->retry_wait_ms = LINK_RETRY_LAST_MS;
    }
    link->retry_at_ns = wire_now_ns() + link->retry_wait_ms * LINK_NS_PER_MS;
    (void)snprintf(link->retry_error, sizeof(link->retry_error), "%s", why);
}

int link_take(struct link *link, struct ng_call *call, bool fresh,
              const struct wire_limit *limit, struct link_conn **ret)
{
    struct link_conn *conn = NULL;
    char why[LINK_TEXT_SIZE] = "";
    pthread_mutex_lock(&link->lock);
    int rc = link_wait(link, call, fresh, limit, &conn);
    pthread_mutex_unlock(&link->lock);
    if (rc != NG_OK || conn != NULL) {
        *ret = conn;
        return rc;
    }
    rc = conn_open(link, limit, ret, why);
    pthread_mutex_lock(&link->lock);
    if (rc == NG_OK) {
        link->retry_wait_ms = 0;
        link->retry_at_ns = 0;
    } else {
        link->open--;
        link_note_failure(link, rc, why);
        pthread_cond_signal(&link->given_back);
    }
    pthread_mutex_unlock(&link->lock);
    return rc == NG_OK ? rc : ng_fail(call, rc, "%s", why);
}

void link_give(struct link *link, struct link_conn *conn, bool keep)
{
    if (!keep) {
        conn_free(conn);
        conn = NULL;
    }
    pthread_mutex_lock(&link->lock);
    if (conn != NULL) {
        conn->next = link->idle;
        link->idle = conn;
    } else {
        link->open--;
    }
    pthread_cond_signal(&link->given_back);
    pthread_mutex_unlock(&link->lock);
}

/* ---- opening and closing ---- */

static int link_open_tls(struct link *link, struct ng_call *call, struct ng_str ca)
{
    if (!link->uri.tls) {
        return NG_OK;
    }
    link->tls = SSL_CTX_new(TLS_client_method());
    if (link->tls == NULL || SSL_CTX_set_min_proto_version(link->tls, TLS1_2_VERSION) != 1) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for TLS");
    }
    struct ng_str file = call->host->format(call, "%.*s", (int)ca.len, ca.data);
    int loaded = ca.len == 0 ? SSL_CTX_set_default_verify_paths(link->tls)
                             : SSL_CTX_load_verify_locations(link->tls, file.data, NULL);
    ERR_clear_error();
    return loaded == 1 ? NG_OK
                       : ng_fail(call, NG_EINVAL,
                                 "redis.tls_ca is '%.*s', which is no file of certificates "
                                 "(PEM) that can be read",
                                 (int)ca.len, ca.data);
}

static int link_init(struct link *link)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) {
        return NG_EINTERNAL;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&link->lock, NULL);
    pthread_cond_init(&link->given_back, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return NG_OK;
}

int link_open(struct ng_call *call, const struct link_options *options, struct link **ret)
{
    char error[REDIS_URI_ERROR_SIZE];
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL || link_init(link) != NG_OK) {
        free(link);
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    link->timeout_ms = options->timeout_ms;
    link->max = options->connections;
    int rc = redis_uri_parse(options->uri, &link->uri, error);
    if (rc != NG_OK) {
        rc = ng_fail(call, rc, "redis.uri cannot be used: %s", error);
    } else {
        bool local = link->uri.path != NULL;
        (void)snprintf(link->place, sizeof(link->place), "%s%s%s",
                       local ? link->uri.path : link->uri.host, local ? "" : ":",
                       local ? "" : link->uri.port);
        rc = link_open_tls(link, call, options->ca);
    }
    if (rc != NG_OK) {
        link_close(link);
        return rc;
    }
    *ret = link;
    return NG_OK;
}

int link_set_greeting(struct link *link, struct ng_call *call, const char *command, size_t len)
{
    link->greeting = malloc(len);
    if (link->greeting == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    memcpy(link->greeting, command, len);
    link->greeting_len = len;
    return NG_OK;
}

void link_close(struct link *link)
{
    if (link == NULL) {
        return;
    }
    while (link->idle != NULL) {
        struct link_conn *conn = link->idle;
        link->idle = conn->next;
        conn_free(conn);
    }
    SSL_CTX_free(link->tls);
    free(link->greeting);
    redis_uri_free(&link->uri);
    pthread_cond_destroy(&link->given_back);
    pthread_mutex_destroy(&link->lock);
    free(link);
}
