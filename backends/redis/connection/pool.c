/* SPDX-License-Identifier: MIT */
/* pool.c - the pool of connections to the server that has the keys. */
#include "pool.h"
#include "core/base/minmax.h"
#include "core/base/text_choice.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "find.h"

/* Wait before the next attempt after a failure, doubled up to the maximum. */
#define POOL_RETRY_FIRST_MS 20
#define POOL_RETRY_LAST_MS 1000
#define POOL_NS_PER_MS 1000000
/* How often a waiting thread checks whether its call is cancelled. */
#define POOL_STEP_NS 50000000
/* Longest wait before a command is repeated while the server changes. */
#define POOL_REPEAT_LAST_MS 250
/* The key by which the nodes of a cluster tell which of them has the keys. */
#define POOL_PROBE "journal:days"

/* ---- errors ---- */

int pool_fail(const struct redis_pool *pool, struct ng_call *call, const struct conn *conn,
              enum socket_result end)
{
    struct conn_error error;
    char name[CONN_NAME_SIZE];
    conn_name(&pool->settings, CONN_SERVER, &conn->place, name);
    int rc = conn_describe(&pool->settings, name, end, conn->sock.error, &error);
    if (rc == NG_OK) {
        return rc;
    }
    return ng_fail(call, rc, "%s", error.text);
}

int pool_fail_reply(const struct redis_pool *pool, struct ng_call *call,
                    const redisReply *reply)
{
    struct conn_error error;
    int rc = conn_describe_reply(&pool->settings, pool->name, reply, &error);
    return ng_fail(call, rc, "%s", error.text);
}

/* ---- the server in use ---- */

struct redis_place pool_server(struct redis_pool *pool)
{
    lock_take(&pool->lock);
    struct redis_place place = pool->server;
    lock_release(&pool->lock);
    return place;
}

uint64_t pool_turn(struct redis_pool *pool)
{
    lock_take(&pool->lock);
    uint64_t turn = pool->turn;
    lock_release(&pool->lock);
    return turn;
}

/* Called with the lock held. */
static void pool_change_server(struct redis_pool *pool, const struct redis_place *place)
{
    pool->server = *place;
    pool->turn++;
    pool->retry_wait_ms = 0;
    pool->retry_at_ns = 0;
}

uint64_t pool_set_server(struct redis_pool *pool, const struct redis_place *place)
{
    lock_take(&pool->lock);
    if (!redis_place_is(&pool->server, place)) {
        pool_change_server(pool, place);
    }
    uint64_t turn = pool->turn;
    lock_release(&pool->lock);
    return turn;
}

void pool_forget(struct redis_pool *pool, const struct redis_place *place)
{
    static const struct redis_place none = {0};
    lock_take(&pool->lock);
    if (place->host[0] != '\0' && redis_place_is(&pool->server, place)) {
        pool_change_server(pool, &none);
    }
    lock_release(&pool->lock);
}

struct pool_retry pool_retry_begin(const struct redis_pool *pool)
{
    int64_t now = socket_now_ns();
    struct pool_retry retry = {now, POOL_RETRY_FIRST_MS};
    if (pool->topology != REDIS_SINGLE) {
        retry.until_ns = now + pool->failover_ms * POOL_NS_PER_MS;
    }
    return retry;
}

bool pool_retry_wait(struct pool_retry *retry, struct ng_call *call)
{
    int64_t left_ns = retry->wait_ms * POOL_NS_PER_MS;
    if (socket_now_ns() + left_ns > retry->until_ns) {
        return false;
    }
    while (left_ns > 0 && !call->host->cancelled(call)) {
        struct timespec step = {0, (long)i64_min(left_ns, POOL_STEP_NS)};
        (void)nanosleep(&step, NULL);
        left_ns -= step.tv_nsec;
    }
    retry->wait_ms = i64_min(retry->wait_ms * 2, POOL_REPEAT_LAST_MS);
    return !call->host->cancelled(call);
}

/* ---- the pool ---- */

struct socket_limit pool_limit(const struct redis_pool *pool, struct ng_call *call)
{
    struct socket_limit limit = {call,
                                 socket_now_ns() + pool->settings.timeout_ms * POOL_NS_PER_MS};
    return limit;
}

/* Called with the lock held. Takes an idle connection, or permission to open one (*ret
 * NULL). */
static int pool_wait(struct redis_pool *pool, struct ng_call *call, bool fresh,
                     const struct socket_limit *limit, struct conn **ret)
{
    *ret = NULL;
    for (;;) {
        while (pool->idle != NULL) {
            struct conn *conn = pool->idle;
            pool->idle = conn->next;
            if (!fresh && conn->turn == pool->turn && socket_is_idle(&conn->sock)) {
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
                return ng_fail(call, NG_EUNAVAILABLE, "%s", pool->retry_error.text);
            }
            pool->open++;
            return NG_OK;
        }
        if (now >= limit->deadline_ns) {
            return ng_fail(call, NG_EBUSY,
                           "all %zu connections to %s are in use; raise "
                           "redis.connections",
                           pool->max, pool->name);
        }
        if (call->host->cancelled(call)) {
            return ng_fail(call, NG_ECANCELLED, "the call was cancelled");
        }
        int64_t until = now + POOL_STEP_NS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        (void)lock_wait_until(&pool->returned, &pool->lock, &at);
    }
}

static void pool_note_failure(struct redis_pool *pool, int rc, const struct conn_error *error)
{
    if (rc != NG_EUNAVAILABLE) {
        return; /* the call's own end says nothing about the server */
    }
    pool->retry_wait_ms = i64_max(pool->retry_wait_ms * 2, POOL_RETRY_FIRST_MS);
    pool->retry_wait_ms = i64_min(pool->retry_wait_ms, POOL_RETRY_LAST_MS);
    pool->retry_at_ns = socket_now_ns() + pool->retry_wait_ms * POOL_NS_PER_MS;
    pool->retry_error = *error;
}

void pool_failure(struct redis_pool *pool, char ret_text[CONN_TEXT_SIZE])
{
    lock_take(&pool->lock);
    memcpy(ret_text, pool->retry_error.text, CONN_TEXT_SIZE);
    lock_release(&pool->lock);
}

int pool_acquire(struct redis_pool *pool, struct ng_call *call, bool fresh,
                 const struct socket_limit *limit, struct conn **ret, bool *ret_again)
{
    struct conn *conn = NULL;
    struct conn_error error;
    lock_take(&pool->lock);
    int rc = pool_wait(pool, call, fresh, limit, &conn);
    bool permanent = pool->retry_error.permanent;
    lock_release(&pool->lock);
    *ret_again = rc == NG_EUNAVAILABLE && !permanent;
    if (rc != NG_OK || conn != NULL) {
        *ret = conn;
        return rc;
    }
    rc = find_open(pool, call, limit, ret, &error);
    lock_take(&pool->lock);
    if (rc == NG_OK) {
        pool->retry_wait_ms = 0;
        pool->retry_at_ns = 0;
    } else {
        pool->open--;
        pool_note_failure(pool, rc, &error);
        pthread_cond_signal(&pool->returned);
    }
    lock_release(&pool->lock);
    if (rc == NG_OK) {
        return rc;
    }
    *ret_again = rc == NG_EUNAVAILABLE && !error.permanent;
    return ng_fail(call, rc, "%s", error.text);
}

void pool_return(struct redis_pool *pool, struct conn *conn, bool keep)
{
    lock_take(&pool->lock);
    keep = keep && conn->turn == pool->turn;
    if (keep) {
        conn->next = pool->idle;
        pool->idle = conn;
    } else {
        pool->open--;
    }
    pthread_cond_signal(&pool->returned);
    lock_release(&pool->lock);
    if (!keep) {
        conn_free(conn);
    }
}

/* ---- opening and closing ---- */

static int pool_bad_file(struct ng_call *call, const char *option, struct ng_str file,
                         const char *what)
{
    ERR_clear_error();
    return ng_fail(call, NG_EINVAL, "redis.%s is '%.*s', which is not %s", option,
                   (int)file.len, file.data, what);
}

/* OpenSSL would ask on the terminal. */
static int pool_no_passphrase(char *text, int size, int writes, void *user)
{
    bool *asked = user;
    (void)text;
    (void)size;
    (void)writes;
    *asked = true;
    return 0;
}

static int pool_open_key(struct redis_pool *pool, struct ng_call *call, struct ng_str key)
{
    bool asked = false;
    SSL_CTX_set_default_passwd_cb(pool->settings.tls, pool_no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(pool->settings.tls, &asked);
    int good = SSL_CTX_use_PrivateKey_file(pool->settings.tls, key.data, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(pool->settings.tls, NULL);
    if (good == 1) {
        return NG_OK;
    }
    return pool_bad_file(call, "tls_key", key,
                         asked ? "a key without a passphrase"
                               : "a readable key (PEM) of the certificate in redis.tls_cert");
}

/* The certificate that the gateway shows to servers, and its key. */
static int pool_open_cert(struct redis_pool *pool, struct ng_call *call,
                          const struct pool_options *options)
{
    SSL_CTX *tls = pool->settings.tls;
    struct ng_str cert =
        call->host->format(call, "%.*s", (int)options->cert.len, options->cert.data);
    struct ng_str key =
        call->host->format(call, "%.*s", (int)options->key.len, options->key.data);
    if (cert.data == NULL || key.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for TLS");
    }
    if ((cert.len == 0) != (key.len == 0)) {
        return ng_fail(call, NG_EINVAL,
                       "redis.tls_cert and redis.tls_key must be given together");
    }
    if (cert.len == 0) {
        return NG_OK;
    }
    if (SSL_CTX_use_certificate_chain_file(tls, cert.data) != 1) {
        return pool_bad_file(call, "tls_cert", cert, "a readable certificate (PEM)");
    }
    return pool_open_key(pool, call, key);
}

static int pool_open_tls(struct redis_pool *pool, struct ng_call *call,
                         const struct pool_options *options)
{
    struct ng_str ca = options->ca;
    if (!pool->settings.uri.tls) {
        if (options->cert.len == 0 && options->key.len == 0) {
            return NG_OK;
        }
        return ng_fail(call, NG_EINVAL,
                       "redis.tls_cert and redis.tls_key need a redis.uri with TLS "
                       "(rediss://, rediss+sentinel://)");
    }
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    pool->settings.tls = tls;
    if (tls == NULL || SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) != 1) {
        return ng_fail(call, NG_EINTERNAL, "out of memory for TLS");
    }
    struct ng_str file = call->host->format(call, "%.*s", (int)ca.len, ca.data);
    int loaded;
    if (ca.len == 0) {
        loaded = SSL_CTX_set_default_verify_paths(tls);
    } else {
        loaded = SSL_CTX_load_verify_locations(tls, file.data, NULL);
    }
    ERR_clear_error();
    if (loaded != 1) {
        return pool_bad_file(call, "tls_ca", ca, "a readable file of certificates (PEM)");
    }
    return pool_open_cert(pool, call, options);
}

/* The topology, and whether the URI fits it. */
static int pool_open_topology(struct redis_pool *pool, struct ng_call *call,
                              const struct pool_options *options)
{
    const struct redis_uri *uri = &pool->settings.uri;
    if (uri->master != NULL) {
        pool->topology = REDIS_SENTINEL;
    } else if (options->cluster) {
        pool->topology = REDIS_CLUSTER;
    }
    if (options->cluster && (uri->master != NULL || uri->path != NULL || uri->database != 0)) {
        return ng_fail(call, NG_EINVAL,
                       "redis.cluster needs a redis.uri of hosts, without Sentinels and "
                       "without a database: redis://host1,host2,host3");
    }
    if (pool->topology == REDIS_SINGLE && uri->node_count > 1) {
        return ng_fail(call, NG_EINVAL,
                       "redis.uri names several hosts: that needs redis.cluster, or "
                       "redis+sentinel://");
    }
    size_t len = options->prefix.len + sizeof(POOL_PROBE);
    pool->settings.probe = malloc(len);
    if (pool->settings.probe == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    (void)snprintf(pool->settings.probe, len, "%.*s%s", (int)options->prefix.len,
                   options->prefix.data, POOL_PROBE);
    conn_name(&pool->settings, CONN_SERVER, &uri->nodes[0], pool->name);
    if (pool->topology == REDIS_SENTINEL) {
        (void)snprintf(pool->name, sizeof(pool->name), "Redis, the master %.64s of Sentinel,",
                       uri->master);
    } else if (pool->topology == REDIS_CLUSTER) {
        (void)snprintf(pool->name, sizeof(pool->name), "Redis, the cluster of %s:%s,",
                       uri->nodes[0].host, uri->nodes[0].port);
    }
    return NG_OK;
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
    pool->settings.timeout_ms = options->timeout_ms;
    pool->settings.prefix = options->prefix;
    pool->failover_ms = options->failover_ms;
    pool->max = options->connections;
    int rc = redis_uri_parse(options->uri, &pool->settings.uri, error);
    if (rc != NG_OK) {
        rc = ng_fail(call, rc, "redis.uri cannot be used: %s", error);
    }
    if (rc == NG_OK) {
        rc = pool_open_topology(pool, call, options);
    }
    if (rc == NG_OK) {
        rc = pool_open_tls(pool, call, options);
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
        struct conn *conn = pool->idle;
        pool->idle = conn->next;
        conn_free(conn);
    }
    SSL_CTX_free(pool->settings.tls);
    buf_done(&pool->settings.greeting);
    redis_uri_free(&pool->settings.uri);
    free(pool->settings.probe);
    pthread_cond_destroy(&pool->returned);
    lock_done(&pool->lock);
    free(pool);
}
