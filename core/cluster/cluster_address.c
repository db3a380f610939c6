/* SPDX-License-Identifier: MIT */
/* cluster_address.c - how gateways reach each other, and the secret that they share. */
#include <openssl/crypto.h>

#include "cluster_state.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/json/json.h"

/* A minute, with leases of 15 s; tests have shorter ones. */
#define CLUSTER_MINUTE_LEASES 4
#define CLUSTER_ERROR_MAX 8192

/* ---- addresses ---- */

/* The bytes of "http://HOST[:PORT]", which a "/" may follow; 0: it is something else. Requests
 * are sent to a path of their own, so a path here would be lost, as user and query would. */
static size_t origin_len(struct ng_str text)
{
    static const char *const schemes[] = {"http://", "https://"};
    size_t host = 0;
    for (size_t i = 0; i < NG_COUNT(schemes); i++) {
        if (strncmp(text.data, schemes[i], strlen(schemes[i])) == 0) {
            host = strlen(schemes[i]);
        }
    }
    size_t end = host + strcspn(text.data + host, "/");
    bool ends = end == text.len || end + 1 == text.len;
    bool plain = host + strcspn(text.data + host, " \"\\\t\r\n?#@") == text.len;
    if (host == 0 || !ends || !plain || end == host || text.data[host] == ':') {
        return 0;
    }
    return end;
}

int cluster_check_advertise(const struct config *config, struct buf *error)
{
    struct ng_str text = config_text(config, "cluster.advertise");
    if (text.len == 0 || (text.len <= CLUSTER_URL_MAX && origin_len(text) > 0)) {
        return NG_OK;
    }
    (void)buf_printf(error,
                     "cluster.advertise is \"%s\"; it must be http:// or https:// with a host "
                     "and a port alone, like http://10.0.0.5:8420, of at most %d characters",
                     text.data, CLUSTER_URL_MAX);
    return NG_EINVAL;
}

int cluster_address_open(struct cluster *cluster, struct call *call)
{
    struct cluster_address *address = &cluster->address;
    const struct config *config = cluster->gateway->config;
    struct ng_str text = config_text(config, "cluster.advertise");
    struct buf error;
    if (text.len == 0) {
        return NG_OK;
    }
    buf_init(&error, CLUSTER_ERROR_MAX);
    int rc = cluster_check_advertise(config, &error);
    if (rc != NG_OK) {
        (void)call_fail(call, rc, "%s", buf_cstr(&error));
    }
    buf_done(&error);
    if (rc != NG_OK) {
        return rc;
    }
    if (!random_hex(CLUSTER_SECRET_LEN / 2, address->token)) {
        return call_fail(call, NG_EINTERNAL, "no random numbers");
    }
    size_t len = origin_len(text);
    memcpy(address->url, text.data, len);
    address->url[len] = '\0';
    return NG_OK;
}

bool cluster_advertises(const struct cluster *cluster)
{
    return cluster_is_shared(cluster) && cluster->address.url[0] != '\0';
}

bool cluster_is_token(const struct cluster *cluster, struct ng_str token)
{
    return cluster_advertises(cluster) && token.len == CLUSTER_SECRET_LEN &&
           CRYPTO_memcmp(token.data, cluster->address.token, CLUSTER_SECRET_LEN) == 0;
}

bool cluster_address(struct cluster *cluster, struct ng_str id, struct cluster_address *ret)
{
    if (str_is(id, cluster->id)) {
        *ret = cluster->address;
        return true;
    }
    lock_take(&cluster->lock);
    const struct peer *peer = cluster_peer(cluster, id);
    if (peer != NULL) {
        *ret = peer->address;
    }
    lock_release(&cluster->lock);
    return peer != NULL;
}

void cluster_address_take(struct cluster_address *address, const struct ng_value *body)
{
    struct ng_str url = json_get_text(body, "address");
    struct ng_str token = json_get_text(body, "token");
    *address = (struct cluster_address){0};
    if (url.len > 0 && url.len <= CLUSTER_URL_MAX && token.len == CLUSTER_SECRET_LEN) {
        memcpy(address->url, url.data, url.len);
        memcpy(address->token, token.data, token.len);
    }
}

/* ---- what a gateway holds ---- */

const char *cluster_token(const struct cluster *cluster)
{
    return cluster->address.token;
}

bool cluster_holds(struct cluster *cluster, struct ng_str id, struct ng_str token)
{
    struct cluster_address address = cluster->address;
    if (token.len == 0) {
        return false;
    }
    if (str_is(id, cluster->id)) {
        return !atomic_load(&cluster->hold.left) && str_is(token, address.token);
    }
    return cluster_address(cluster, id, &address) && str_is(token, address.token) &&
           cluster_is_alive(cluster, id);
}

void cluster_leave(struct cluster *cluster)
{
    if (cluster != NULL) {
        atomic_store(&cluster->hold.left, true);
    }
}

uint64_t cluster_lapses(struct cluster *cluster)
{
    int64_t lease = atomic_load(&cluster->lease_ns);
    int64_t now = clock_boot_ns();
    lock_take(&cluster->lock);
    int64_t heartbeat = cluster->heartbeat_ns;
    if (heartbeat != 0 && !cluster->hold.lapsed && now - heartbeat >= lease) {
        cluster->hold.lapsed = true;
        cluster->hold.lapses++;
    }
    uint64_t lapses = cluster->hold.lapses;
    lock_release(&cluster->lock);
    return lapses;
}

/* ---- the shared secret ---- */

/* Read, or to be written. */
struct secret {
    char text[CLUSTER_SECRET_LEN + 1];
    uint64_t minutes;
    uint64_t passed; /* minutes of the number that has stood for one; or UINT64_MAX */
};

static void read_secret(const struct ng_value *body, struct secret *ret)
{
    struct ng_str text = json_get_text(body, "secret");
    int64_t minutes = 0;
    (void)json_integer(json_get(body, "minutes"), &minutes);
    ret->minutes = (uint64_t)minutes;
    ret->text[0] = '\0';
    if (text.len == CLUSTER_SECRET_LEN) {
        memcpy(ret->text, text.data, text.len);
        ret->text[text.len] = '\0';
    }
}

/* The first gateway of a database makes it. */
static int secret_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    struct secret *secret = user;
    *secret = (struct secret){.passed = secret->passed};
    if (present->revision != 0 && !present->deleted) {
        read_secret(present->body, secret);
    }
    bool is_there = secret->text[0] != '\0';
    if (is_there && secret->minutes != secret->passed) {
        return NG_OK;
    }
    if (is_there) {
        secret->minutes++;
    } else if (!random_hex(CLUSTER_SECRET_LEN / 2, secret->text)) {
        return NG_EINTERNAL;
    }
    struct ng_str json =
        arena_printf(&call_of(pub)->arena, "{\"secret\":\"%s\",\"minutes\":%llu}", secret->text,
                     (unsigned long long)secret->minutes);
    if (json.data == NULL) {
        return NG_EINTERNAL;
    }
    return store_draft_json(next, json);
}

static void take_secret(struct cluster *cluster, const struct secret *secret)
{
    lock_take(&cluster->lock);
    if (!cluster->has_secret || secret->minutes > cluster->minutes) {
        cluster->minutes = secret->minutes;
        cluster->minute_ns = clock_monotonic_ns();
    }
    memcpy(cluster->secret, secret->text, sizeof(secret->text));
    cluster->has_secret = true;
    lock_release(&cluster->lock);
}

void cluster_secret_row(struct cluster *cluster, const struct ng_doc *row, struct call *call)
{
    const struct ng_value *body = NULL;
    struct secret secret;
    if (!str_is(row->key.id, CLUSTER_SECRET_ID) ||
        json_parse(&call->arena, row->json, CLUSTER_DEPTH, &body, NULL) != NG_OK) {
        return;
    }
    read_secret(body, &secret);
    if (secret.text[0] != '\0') {
        take_secret(cluster, &secret);
    }
}

int cluster_secret_step(struct cluster *cluster, struct call *call)
{
    struct secret secret = {.passed = UINT64_MAX};
    int64_t minute_ns = atomic_load(&cluster->lease_ns) * CLUSTER_MINUTE_LEASES;
    lock_take(&cluster->lock);
    bool known = cluster->has_secret;
    if (known && clock_monotonic_ns() - cluster->minute_ns >= minute_ns) {
        secret.passed = cluster->minutes;
    }
    lock_release(&cluster->lock);
    if (known && secret.passed == UINT64_MAX) {
        return NG_OK;
    }
    struct ng_change change = {.size = sizeof(change),
                               .key = cluster_key(ng_str_of(CLUSTER_SECRET_ID)),
                               .fn = secret_fn,
                               .user = &secret};
    int rc = store_write_wait(cluster->gateway->store, call, &change, 1);
    if (rc == NG_OK) {
        take_secret(cluster, &secret);
    }
    return rc;
}

bool cluster_secret(struct cluster *cluster, char secret[CLUSTER_SECRET_LEN + 1])
{
    lock_take(&cluster->lock);
    bool known = cluster->has_secret;
    memcpy(secret, cluster->secret, CLUSTER_SECRET_LEN + 1);
    lock_release(&cluster->lock);
    return known;
}

uint64_t cluster_minutes(struct cluster *cluster)
{
    lock_take(&cluster->lock);
    uint64_t minutes = cluster->minutes;
    lock_release(&cluster->lock);
    return minutes;
}

bool cluster_is_shared(const struct cluster *cluster)
{
    return cluster != NULL && cluster->shared;
}
