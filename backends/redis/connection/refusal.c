/* SPDX-License-Identifier: MIT */
/* refusal.c - errors of connections and of servers as messages with a remedy. */
#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Bytes of a Redis error that are passed on. */
#define REFUSAL_REPLY_MAX 200
#define REFUSAL_ADVICE_SIZE 320

void conn_name(const struct conn_settings *settings, enum conn_kind kind,
               const struct redis_place *place, char name[CONN_NAME_SIZE])
{
    const struct redis_uri *uri = &settings->uri;
    if (uri->path != NULL) {
        (void)snprintf(name, CONN_NAME_SIZE, "Redis at %.*s", CONN_NAME_SIZE - 16, uri->path);
        return;
    }
    (void)snprintf(name, CONN_NAME_SIZE, "%s at %s:%s%s%.64s",
                   kind == CONN_SENTINEL ? "Sentinel" : "Redis", place->host, place->port,
                   text_if(kind == CONN_PRIMARY, ", the master "),
                   text_if(kind == CONN_PRIMARY, text_or(uri->master, "")));
}

int conn_describe(const struct conn_settings *settings, const char *name,
                  enum socket_result end, const char *error, struct conn_error *ret)
{
    ret->permanent = end == SOCKET_REFUSED;
    switch (end) {
    case SOCKET_OK:
        return NG_OK;
    case SOCKET_CALL_EXPIRED:
        (void)snprintf(ret->text, sizeof(ret->text),
                       "the call's time was up before %s answered", name);
        return NG_ETIMEOUT;
    case SOCKET_CANCELLED:
        (void)snprintf(ret->text, sizeof(ret->text), "the call was cancelled");
        return NG_ECANCELLED;
    case SOCKET_TIMED_OUT:
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%s did not answer within redis.timeout (%lld ms)", name,
                       (long long)settings->timeout_ms);
        return NG_EUNAVAILABLE;
    case SOCKET_CLOSED:
    case SOCKET_REFUSED:
        break;
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%s: %s", name, error);
    return NG_EUNAVAILABLE;
}

struct error_reply {
    const char *code;
    int rc;
    bool permanent;
    const char *advice;
};

static const struct error_reply error_replies[] = {
    {"NOAUTH", NG_EUNAVAILABLE, true, "give user and password in redis.uri"},
    {"WRONGPASS", NG_EUNAVAILABLE, true, "check user and password in redis.uri"},
    {"NOPERM", NG_EUNAVAILABLE, true, NULL},
    {"LOADING", NG_EUNAVAILABLE, false, "it is still loading its data; the gateway retries"},
    {"READONLY", NG_EUNAVAILABLE, false, "redis.uri must name the primary and not a replica"},
    {"MASTERDOWN", NG_EUNAVAILABLE, false, "redis.uri must name the primary and not a replica"},
    {"NOREPLICAS", NG_EUNAVAILABLE, false, "it has too few replicas; the gateway retries"},
    {"MISCONF", NG_EUNAVAILABLE, false, "it cannot save its data; look at its log and disk"},
    {"BUSY", NG_EUNAVAILABLE, false, "a script runs there too long; the gateway retries"},
    {"OOM", NG_EFULL, false, "its maxmemory is reached; raise it"},
    {"WRONGTYPE", NG_EUNAVAILABLE, false,
     "another program uses a key of the journal; rename it, or set redis.prefix"},
    {"MOVED", NG_EUNAVAILABLE, false,
     "it belongs to a Redis Cluster; set redis.cluster to true"},
    {"ASK", NG_EUNAVAILABLE, false, "the keys are being moved to it; the gateway retries"},
    {"TRYAGAIN", NG_EUNAVAILABLE, false, "the keys are being moved; the gateway retries"},
    {"CLUSTERDOWN", NG_EUNAVAILABLE, false, "look at CLUSTER INFO; the gateway retries"},
    {"CROSSSLOT", NG_EUNAVAILABLE, true,
     "it belongs to a Redis Cluster; set redis.cluster to true"},
    {"TOOLARGE", NG_ETOOLARGE, false, "take checkpoints of smaller spaces"},
};

/* The right that a refusal by an access control list is about, as ACL SETUSER grants it. Redis
 * quotes a refused command and names no key. */
static void refusal_right(const struct conn_settings *settings, const char *text,
                          char advice[REFUSAL_ADVICE_SIZE])
{
    const char *user = text_or(settings->uri.user, "default");
    const char *word = strchr(text, '\'');
    const char *end = NULL;
    if (word != NULL && strstr(text, "command") != NULL) {
        end = strchr(word + 1, '\'');
    }
    if (end != NULL) {
        (void)snprintf(advice, REFUSAL_ADVICE_SIZE,
                       "the user lacks the right to a command: ACL SETUSER %.64s +%.*s", user,
                       (int)(end - word - 1), word + 1);
    } else if (strstr(text, "key") != NULL) {
        (void)snprintf(advice, REFUSAL_ADVICE_SIZE,
                       "the user lacks the right to the keys: ACL SETUSER %.64s ~%.*s*", user,
                       (int)settings->prefix.len, text_or(settings->prefix.data, ""));
    } else {
        (void)snprintf(advice, REFUSAL_ADVICE_SIZE,
                       "the user '%.64s' lacks a right; ACL SETUSER grants it", user);
    }
}

int conn_describe_reply(const struct conn_settings *settings, const char *name,
                        const redisReply *reply, struct conn_error *ret)
{
    char advice[REFUSAL_ADVICE_SIZE] = "";
    int rc = NG_EUNAVAILABLE;
    ret->permanent = false;
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s sent an answer of an unexpected type",
                       name);
        return rc;
    }
    for (size_t i = 0; i < NG_COUNT(error_replies); i++) {
        const struct error_reply *known = &error_replies[i];
        if (redis_error_is(reply, known->code)) {
            (void)snprintf(advice, sizeof(advice), "%s", text_or(known->advice, ""));
            rc = known->rc;
            ret->permanent = known->permanent;
        }
    }
    /* A script says it in the middle of its error. */
    if (redis_error_is(reply, "NOPERM") || strstr(reply->str, "ACL failure") != NULL ||
        strstr(reply->str, "user executing the script can't") != NULL) {
        refusal_right(settings, reply->str, advice);
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%s refuses: %.*s%s%s", name,
                   REFUSAL_REPLY_MAX, reply->str, text_if(advice[0] != '\0', " - "), advice);
    return rc;
}

bool redis_error_is(const redisReply *reply, const char *code)
{
    size_t len = strlen(code);
    return reply != NULL && reply->type == REDIS_REPLY_ERROR &&
           strncmp(reply->str, code, len) == 0 &&
           (reply->str[len] == ' ' || reply->str[len] == '\0');
}

bool redis_error_moves(const redisReply *reply)
{
    static const char *const codes[] = {"MOVED",       "ASK",        "TRYAGAIN",
                                        "CLUSTERDOWN", "READONLY",   "MASTERDOWN",
                                        "LOADING",     "NOREPLICAS", "UNBLOCKED"};
    /* The same inside a script: the key has gone, or the server is no primary any more. */
    static const char *const parts[] = {"non local key", "-READONLY "};
    bool found = false;
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return false;
    }
    for (size_t i = 0; i < NG_COUNT(codes); i++) {
        found = found || redis_error_is(reply, codes[i]);
    }
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        found = found || strstr(reply->str, parts[i]) != NULL;
    }
    return found;
}

bool redis_error_place(const redisReply *reply, const struct redis_place *from,
                       struct redis_place *ret)
{
    const char *slot = strchr(reply->str, ' ');
    const char *place = NULL;
    if (slot != NULL) {
        place = strchr(slot + 1, ' ');
    }
    if (place == NULL || !redis_place_parse(ng_str_of(place + 1), ret)) {
        return false;
    }
    /* A node that does not know its own name means the host that was asked. */
    if (ret->host[0] == '\0' || strcmp(ret->host, "?") == 0) {
        memcpy(ret->host, from->host, sizeof(ret->host));
    }
    return ret->host[0] != '\0';
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
