/* SPDX-License-Identifier: MIT */
/*
 * find.c - finds the server that has the keys, also after a failover.
 *
 * All keys of a gateway are on one server: the primary of a Sentinel's replicas, or, as they
 * share a hash tag, one node of a cluster. So a pool has one server at a time, and a failover
 * or a move of the slot replaces it.
 */
#include "find.h"

#include <stdio.h>
#include <string.h>

#include "core/base/minmax.h"

/* Redirections followed by one search, besides one attempt at each named host. */
#define FIND_HOPS 8
/* Time limit of one attempt to find the server: a frozen host must not use up the call. */
#define FIND_STEP_MS 1000
#define FIND_LOOK_MS 1000
#define FIND_NS_PER_MS 1000000

static struct socket_limit find_limit(const struct redis_pool *pool, struct ng_call *call)
{
    int64_t timeout_ms = pool->settings.timeout_ms;
    int64_t step_ms = i64_max(i64_min(timeout_ms, FIND_STEP_MS), timeout_ms / 4);
    struct socket_limit limit = {call, socket_now_ns() + step_ms * FIND_NS_PER_MS};
    return limit;
}

/* The named host that is asked first: the one that answered last. */
static size_t find_first(struct redis_pool *pool)
{
    lock_take(&pool->lock);
    size_t at = pool->first_node;
    lock_release(&pool->lock);
    return at;
}

static void find_set_first(struct redis_pool *pool, size_t at)
{
    lock_take(&pool->lock);
    pool->first_node = at;
    lock_release(&pool->lock);
}

/* ---- Sentinel ---- */

/* Reads the reply of a Sentinel: the address of the primary, or nothing. */
static int sentinel_answer(const struct redis_pool *pool, const struct redis_place *sentinel,
                           const redisReply *reply, struct redis_place *ret,
                           struct conn_error *ret_error)
{
    const struct conn_settings *settings = &pool->settings;
    char name[CONN_NAME_SIZE];
    conn_name(settings, CONN_SENTINEL, sentinel, name);
    if (reply->type == REDIS_REPLY_NIL) {
        (void)snprintf(ret_error->text, sizeof(ret_error->text),
                       "%s knows no master '%.64s'; redis.uri names it", name,
                       settings->uri.master);
        return NG_EUNAVAILABLE;
    }
    struct ng_str host = {NULL, 0};
    struct ng_str port = {NULL, 0};
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        host = redis_text(reply->element[0]);
        port = redis_text(reply->element[1]);
    }
    if (host.len == 0 || host.len >= sizeof(ret->host) || port.len == 0 ||
        port.len >= sizeof(ret->port)) {
        return conn_describe_reply(settings, name, reply, ret_error);
    }
    (void)snprintf(ret->host, sizeof(ret->host), "%.*s", (int)host.len, host.data);
    (void)snprintf(ret->port, sizeof(ret->port), "%.*s", (int)port.len, port.data);
    return NG_OK;
}

static int sentinel_ask(struct redis_pool *pool, struct ng_call *call,
                        const struct redis_place *sentinel, struct redis_place *ret,
                        struct conn_error *ret_error)
{
    const struct conn_settings *settings = &pool->settings;
    struct socket_limit limit = find_limit(pool, call);
    struct conn *conn = NULL;
    int rc = conn_open(settings, CONN_SENTINEL, sentinel, &limit, &conn, ret_error);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_str words[] = {ng_str_of("SENTINEL"), ng_str_of("get-master-addr-by-name"),
                                   ng_str_of(settings->uri.master)};
    struct buf command;
    redisReply *reply = NULL;
    char name[CONN_NAME_SIZE];
    conn_name(settings, CONN_SENTINEL, sentinel, name);
    buf_init(&command, REDIS_URI_MAX + CONN_NAME_SIZE);
    redis_command(&command, words, NG_COUNT(words));
    enum socket_result end = conn_command(conn, &limit, &command, &reply);
    buf_done(&command);
    rc = conn_describe(settings, name, end, conn->sock.error, ret_error);
    if (end == SOCKET_OK) {
        rc = sentinel_answer(pool, sentinel, reply, ret, ret_error);
        freeReplyObject(reply);
    }
    conn_free(conn);
    return rc;
}

/* The address of the primary, from the first Sentinel that knows it. */
static int sentinel_ask_all(struct redis_pool *pool, struct ng_call *call,
                            struct redis_place *ret, struct conn_error *ret_error)
{
    const struct redis_uri *uri = &pool->settings.uri;
    size_t first = find_first(pool);
    int rc = NG_EUNAVAILABLE;
    for (size_t i = 0; rc == NG_EUNAVAILABLE && i < uri->node_count; i++) {
        size_t at = (first + i) % uri->node_count;
        rc = sentinel_ask(pool, call, &uri->nodes[at], ret, ret_error);
        if (rc == NG_OK) {
            find_set_first(pool, at);
        }
    }
    return rc;
}

static int primary_open(struct redis_pool *pool, struct ng_call *call,
                        const struct redis_place *place, struct conn **ret,
                        struct conn_error *ret_error)
{
    struct socket_limit limit = find_limit(pool, call);
    int rc = conn_open(&pool->settings, CONN_PRIMARY, place, &limit, ret, ret_error);
    if (rc == NG_OK) {
        (*ret)->turn = pool_set_server(pool, place);
    }
    return rc;
}

/* From the first Sentinel that names one that is the primary: a Sentinel that was cut off from
 * the others still names the former one. */
static int primary_search(struct redis_pool *pool, struct ng_call *call, struct conn **ret,
                          struct conn_error *ret_error)
{
    const struct redis_uri *uri = &pool->settings.uri;
    size_t first = find_first(pool);
    struct redis_place former = {0};
    int rc = NG_EUNAVAILABLE;
    for (size_t i = 0; rc == NG_EUNAVAILABLE && i < uri->node_count; i++) {
        size_t at = (first + i) % uri->node_count;
        struct redis_place place = {0};
        struct conn_error error;
        rc = sentinel_ask(pool, call, &uri->nodes[at], &place, &error);
        bool named = rc == NG_OK;
        if (named && redis_place_is(&former, &place)) {
            rc = NG_EUNAVAILABLE;
            continue;
        }
        if (named) {
            rc = primary_open(pool, call, &place, ret, &error);
            former = place;
        }
        if (rc == NG_OK) {
            find_set_first(pool, at);
        } else if (named || former.host[0] == '\0') {
            *ret_error =
                error; /* the words of the named server count more than those of a Sentinel */
        }
    }
    return rc;
}

static int find_primary(struct redis_pool *pool, struct ng_call *call, struct conn **ret,
                        struct conn_error *ret_error)
{
    struct redis_place place = pool_server(pool);
    if (place.host[0] == '\0') {
        return primary_search(pool, call, ret, ret_error);
    }
    int rc = primary_open(pool, call, &place, ret, ret_error);
    if (rc == NG_EUNAVAILABLE) {
        pool_forget(pool, &place);
    }
    return rc;
}

void find_look(struct redis_pool *pool, struct ng_call *call)
{
    struct redis_place place = {0};
    struct conn_error error;
    if (pool->topology != REDIS_SENTINEL) {
        return;
    }
    int64_t now = socket_now_ns();
    lock_take(&pool->lock);
    bool due = now >= pool->look_at_ns && pool->server.host[0] != '\0';
    if (due) {
        pool->look_at_ns = now + FIND_LOOK_MS * (int64_t)FIND_NS_PER_MS;
    }
    lock_release(&pool->lock);
    if (due && sentinel_ask_all(pool, call, &place, &error) == NG_OK) {
        (void)pool_set_server(pool, &place);
    }
}

/* ---- Cluster ---- */

static int find_cluster(struct redis_pool *pool, struct ng_call *call, struct conn **ret,
                        struct conn_error *ret_error)
{
    const struct redis_uri *uri = &pool->settings.uri;
    struct redis_place place = pool_server(pool);
    size_t first = find_first(pool);
    size_t tried = 0;
    int rc = NG_EUNAVAILABLE;
    for (size_t hop = 0; rc == NG_EUNAVAILABLE && hop < uri->node_count + FIND_HOPS; hop++) {
        size_t at = uri->node_count;
        if (place.host[0] == '\0') {
            if (tried == uri->node_count) {
                break;
            }
            at = (first + tried++) % uri->node_count;
            place = uri->nodes[at];
        }
        struct socket_limit limit = find_limit(pool, call);
        rc = conn_open(&pool->settings, CONN_CLUSTER, &place, &limit, ret, ret_error);
        if (at < uri->node_count && (rc == NG_OK || ret_error->moved.host[0] != '\0')) {
            find_set_first(pool, at);
        }
        if (rc == NG_OK) {
            (*ret)->turn = pool_set_server(pool, &place);
        } else {
            pool_forget(pool, &place);
            place = ret_error->moved;
        }
    }
    return rc;
}

/* ---- all topologies ---- */

int find_open(struct redis_pool *pool, struct ng_call *call, const struct socket_limit *limit,
              struct conn **ret, struct conn_error *ret_error)
{
    switch (pool->topology) {
    case REDIS_SENTINEL:
        return find_primary(pool, call, ret, ret_error);
    case REDIS_CLUSTER:
        return find_cluster(pool, call, ret, ret_error);
    case REDIS_SINGLE:
        break;
    }
    return conn_open(&pool->settings, CONN_SERVER, &pool->settings.uri.nodes[0], limit, ret,
                     ret_error);
}
