/* SPDX-License-Identifier: MIT */
/* ask.c - sends commands together and collects their answers. */
#include "ask.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ASK_OUT_FIRST ((size_t)1024)
/* Most that one round may send. */
#define ASK_OUT_MAX ((size_t)256 * 1024 * 1024)
/* A long round may take long as a whole, as long as it moves: its limit begins anew with each
 * piece. */
#define ASK_PIECE ((size_t)1024 * 1024)

void ask_init(struct ask *ask, struct link *link, struct ng_call *call)
{
    memset(ask, 0, sizeof(*ask));
    ask->link = link;
    ask->call = call;
}

static void ask_free_replies(struct ask *ask)
{
    for (size_t i = 0; ask->replies != NULL && i < ask->count; i++) {
        freeReplyObject(ask->replies[i]);
    }
    free(ask->replies);
    ask->replies = NULL;
}

/* After a round, the next one begins. */
static void ask_begin(struct ask *ask)
{
    if (ask->replies != NULL) {
        ask_free_replies(ask);
        ask->count = 0;
        ask->out_len = 0;
    }
}

static bool ask_append(struct ask *ask, const char *data, size_t len)
{
    if (len > ASK_OUT_MAX - ask->out_len) {
        return false;
    }
    size_t size = ask->out_size == 0 ? ASK_OUT_FIRST : ask->out_size;
    while (size < ask->out_len + len) {
        size *= 2;
    }
    if (size != ask->out_size) {
        char *out = realloc(ask->out, size);
        if (out == NULL) {
            return false;
        }
        ask->out = out;
        ask->out_size = size;
    }
    memcpy(ask->out + ask->out_len, data, len);
    ask->out_len += len;
    return true;
}

void ask_add(struct ask *ask, const struct ng_str *words, size_t count)
{
    ask_begin(ask);
    if (count == 0 || count > ASK_WORDS_MAX) {
        ask->failed = true;
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
            total = words[i].len > ASK_OUT_MAX - total ? ASK_OUT_MAX : total + words[i].len;
        }
        /* Its lengths are ints. */
        len =
            total < ASK_OUT_MAX ? redisFormatCommandArgv(&command, (int)count, data, lens) : -1;
    }
    if (len < 0 || !ask_append(ask, command, (size_t)len)) {
        ask->failed = true;
    }
    if (len >= 0) {
        redisFreeCommand(command);
    }
    free(data);
    free(lens);
    ask->count++;
}

/* ---- running ---- */

static enum wire_end ask_send(struct ask *ask)
{
    for (size_t at = 0; at < ask->out_len; at += ASK_PIECE) {
        size_t left = ask->out_len - at;
        struct wire_limit limit = link_limit(ask->link, ask->call);
        enum wire_end end = wire_write(&ask->conn->wire, ask->out + at,
                                       left < ASK_PIECE ? left : ASK_PIECE, &limit);
        if (end != WIRE_OK) {
            return end;
        }
    }
    return WIRE_OK;
}

/* One attempt on the connection there is. *ret_got: replies that came. */
static enum wire_end ask_exchange(struct ask *ask, size_t *ret_got)
{
    struct wire_limit limit = link_limit(ask->link, ask->call);
    enum wire_end end = ask->out_len <= ASK_PIECE
                            ? wire_write(&ask->conn->wire, ask->out, ask->out_len, &limit)
                            : ask_send(ask);
    if (ask->out_len > ASK_PIECE) {
        limit = link_limit(ask->link, ask->call);
    }
    for (*ret_got = 0; end == WIRE_OK && *ret_got < ask->count; (*ret_got)++) {
        end = link_read(ask->conn, &limit, &ask->replies[*ret_got]);
        if (end != WIRE_OK) {
            break;
        }
    }
    return end;
}

static void ask_drop(struct ask *ask)
{
    if (ask->conn != NULL) {
        link_give(ask->link, ask->conn, false);
        ask->conn = NULL;
    }
}

static int ask_connected(struct ask *ask)
{
    bool held = ask->conn != NULL;
    for (int attempt = 0;; attempt++) {
        size_t got = 0;
        if (ask->conn == NULL) {
            struct wire_limit limit = link_limit(ask->link, ask->call);
            int rc = link_take(ask->link, ask->call, attempt > 0, &limit, &ask->conn);
            if (rc != NG_OK) {
                return rc;
            }
        }
        enum wire_end end = ask_exchange(ask, &got);
        if (end == WIRE_OK) {
            return NG_OK;
        }
        for (size_t i = 0; i < got; i++) {
            freeReplyObject(ask->replies[i]);
            ask->replies[i] = NULL;
        }
        bool again = end == WIRE_CLOSED && ask->conn->reused && !held && attempt == 0;
        int rc = again ? NG_OK : link_fail(ask->link, ask->call, end, ask->conn->wire.error);
        ask_drop(ask);
        if (!again) {
            return rc;
        }
    }
}

int ask_run(struct ask *ask)
{
    if (ask->failed) {
        return ng_fail(ask->call, NG_EINTERNAL, "out of memory for what is sent to Redis");
    }
    ask->replies = calloc(ask->count == 0 ? 1 : ask->count, sizeof(*ask->replies));
    if (ask->replies == NULL) {
        return ng_fail(ask->call, NG_EINTERNAL, "out of memory for the answers of Redis");
    }
    int rc = ask->count == 0 ? NG_OK : ask_connected(ask);
    if (rc == NG_OK && !ask->hold && ask->conn != NULL) {
        bool replica = false;
        for (size_t i = 0; i < ask->count; i++) {
            replica = replica || redis_error_is(ask->replies[i], "READONLY");
        }
        /* After a failover the name leads to another server. */
        link_give(ask->link, ask->conn, !replica);
        ask->conn = NULL;
    }
    return rc;
}

int ask_run_all(struct ask *ask)
{
    int rc = ask_run(ask);
    for (size_t i = 0; rc == NG_OK && i < ask->count; i++) {
        if (ask->replies[i]->type == REDIS_REPLY_ERROR) {
            rc = link_fail_reply(ask->link, ask->call, ask->replies[i]);
        }
    }
    return rc;
}

const redisReply *ask_reply(const struct ask *ask, size_t at)
{
    return ask->replies == NULL || at >= ask->count ? NULL : ask->replies[at];
}

void ask_done(struct ask *ask)
{
    ask_free_replies(ask);
    /* A held connection may be in the middle of a transaction. */
    ask_drop(ask);
    free(ask->out);
    ask->out = NULL;
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
