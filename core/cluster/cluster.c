/* SPDX-License-Identifier: MIT */
/* cluster.c - the gateway's id, its heartbeat, the leases of others, and the polling thread. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/call/gateway.h"
#include "core/store/store.h"

#define CLUSTER_COLLECTION "gateways"
#define CLUSTER_SPACE "~:gateway"
#define CLUSTER_ID_FILE "gateway.id"
/* Gateways known at a time, and how long the document of a dead one stays. */
#define CLUSTER_PEERS_MAX 256
#define CLUSTER_KEEP_MS ((int64_t)24 * 3600 * 1000)
/* Timeout of one poll. */
#define CLUSTER_TIMEOUT_MS 10000
/* Heartbeats and polls in the length of a lease: every 3 s and every 400 ms by default. */
#define CLUSTER_LEASE_HEARTBEATS 5
#define CLUSTER_LEASE_POLLS 37

struct peer {
    char id[CLUSTER_ID_LEN + 1];
    uint64_t revision;
    int64_t seen_ns; /* when it was seen to change */
};

struct cluster {
    struct gateway *gateway;
    char id[CLUSTER_ID_LEN + 1];
    bool shared;
    pthread_t thread;
    bool running;
    struct lock lock;
    pthread_cond_t wake;
    bool stopping;
    struct call *call;            /* of the poll under way */
    atomic_int_fast64_t lease_ns; /* cluster_set_lease() */
    int64_t heartbeat_ns;         /* when this gateway's last heartbeat was on disk; 0: never */
    int64_t polled_ns;            /* when the others were polled last */
    int64_t since_ns;             /* since when, without a gap */
    struct peer peers[CLUSTER_PEERS_MAX];
    size_t peer_count;
    bool complains;
    cluster_step_fn *step; /* cluster_each_step() */
    void *step_user;
};

static const struct ng_collection cluster_collection = {
    .name = CLUSTER_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

static struct ng_key key_of(struct ng_str id)
{
    struct ng_key key = {ng_str_of(CLUSTER_COLLECTION), ng_str_of(CLUSTER_SPACE), id};
    return key;
}

/* ---- the id ---- */

static bool id_valid(const char *id)
{
    return strspn(id, "0123456789abcdef") == CLUSTER_ID_LEN;
}

/* The one in the data directory, so that a gateway that starts again is the one it was. */
static int id_load(struct cluster *cluster, struct call *call)
{
    const char *dir = cluster->gateway->data_dir;
    struct buf path;
    buf_init(&path, 65536);
    (void)buf_printf(&path, "%s/%s", dir, CLUSTER_ID_FILE);
    int fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t len = fd < 0 ? -1 : pread(fd, cluster->id, CLUSTER_ID_LEN, 0);
    int rc = NG_OK;
    if (len < 0 || !id_valid(cluster->id)) {
        bool made =
            fd >= 0 && random_hex(CLUSTER_ID_LEN / 2, cluster->id) && ftruncate(fd, 0) == 0 &&
            pwrite(fd, cluster->id, CLUSTER_ID_LEN, 0) == CLUSTER_ID_LEN && fsync(fd) == 0;
        if (!made) {
            rc = call_fail(
                call, NG_EUNAVAILABLE,
                "the gateway's id cannot be stored in %s; the data directory must be writable",
                buf_cstr(&path));
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    buf_done(&path);
    return rc;
}

struct ng_str cluster_id(const struct cluster *cluster)
{
    if (cluster == NULL) {
        return str_make("", 0);
    }
    return str_make(cluster->id, CLUSTER_ID_LEN);
}

/* ---- leases ---- */

static struct peer *peer_find(struct cluster *cluster, struct ng_str id)
{
    for (size_t i = 0; i < cluster->peer_count; i++) {
        if (str_is(id, cluster->peers[i].id)) {
            return &cluster->peers[i];
        }
    }
    return NULL;
}

bool cluster_is_alive(struct cluster *cluster, struct ng_str id)
{
    if (cluster == NULL || !cluster->shared) {
        return false;
    }
    if (str_is(id, cluster->id)) {
        return true;
    }
    int64_t now = clock_monotonic_ns();
    const int64_t lease = atomic_load(&cluster->lease_ns);
    lock_take(&cluster->lock);
    const struct peer *peer = peer_find(cluster, id);
    int64_t seen = peer != NULL ? peer->seen_ns : cluster->since_ns;
    seen = i64_max(seen, cluster->since_ns);
    bool polls = cluster->since_ns != 0;
    lock_release(&cluster->lock);
    return !polls || now - seen < lease;
}

bool cluster_has_lease(struct cluster *cluster)
{
    if (cluster == NULL || !cluster->shared) {
        return true;
    }
    lock_take(&cluster->lock);
    int64_t heartbeat = cluster->heartbeat_ns;
    lock_release(&cluster->lock);
    return heartbeat != 0 &&
           clock_monotonic_ns() - heartbeat < atomic_load(&cluster->lease_ns) / 2;
}

struct peer_poll {
    struct cluster *cluster;
    struct call *call;
    int64_t now_ms;
    struct ng_str old[CLUSTER_PEERS_MAX];
    size_t old_count;
};

static int poll_row(void *user, const struct ng_doc *row)
{
    struct peer_poll *poll = user;
    struct cluster *cluster = poll->cluster;
    if (row->key.id.len != CLUSTER_ID_LEN || str_is(row->key.id, cluster->id)) {
        return 0;
    }
    if (row->updated_ms < poll->now_ms - CLUSTER_KEEP_MS) {
        struct ng_str id = arena_copy(&poll->call->arena, row->key.id);
        if (id.data != NULL && poll->old_count < CLUSTER_PEERS_MAX) {
            poll->old[poll->old_count++] = id;
        }
        return 0;
    }
    lock_take(&cluster->lock);
    struct peer *peer = peer_find(cluster, row->key.id);
    if (peer == NULL && cluster->peer_count < CLUSTER_PEERS_MAX) {
        peer = &cluster->peers[cluster->peer_count++];
        memcpy(peer->id, row->key.id.data, CLUSTER_ID_LEN);
        peer->id[CLUSTER_ID_LEN] = '\0';
        peer->revision = 0;
    }
    if (peer != NULL && peer->revision != row->revision) {
        peer->revision = row->revision;
        peer->seen_ns = clock_monotonic_ns();
    }
    lock_release(&cluster->lock);
    return 0;
}

static int forget_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct peer_poll *poll = user;
    (void)pub;
    if (present->revision != 0 && !present->deleted &&
        present->updated_ms < poll->now_ms - CLUSTER_KEEP_MS) {
        store_draft_delete(next);
    }
    return NG_OK;
}

/* Reads the documents of the other gateways. */
static int poll_peers(struct cluster *cluster, struct call *call, struct peer_poll *poll)
{
    *poll = (struct peer_poll){
        .cluster = cluster,
        .call = call,
        .now_ms = clock_unix_ms(),
    };
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CLUSTER_COLLECTION),
        .space = ng_str_of(CLUSTER_SPACE),
        .limit = CLUSTER_PEERS_MAX * 2,
    };
    int rc = store_query(cluster->gateway->store, call, &query, poll_row, poll, NULL);
    int64_t now = clock_monotonic_ns();
    if (rc == NG_OK) {
        lock_take(&cluster->lock);
        /* After a gap in polling the leases of the others start again: their heartbeats were
         * not seen. */
        if (cluster->since_ns == 0 ||
            now - cluster->polled_ns > atomic_load(&cluster->lease_ns) / 2) {
            cluster->since_ns = now;
        }
        cluster->polled_ns = now;
        lock_release(&cluster->lock);
    }
    return rc;
}

static int cluster_poll(struct cluster *cluster, struct call *call)
{
    struct peer_poll *poll = arena_zalloc(&call->arena, sizeof(*poll));
    if (poll == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = poll_peers(cluster, call, poll);
    for (size_t i = 0; i < poll->old_count && rc == NG_OK; i++) {
        struct ng_change change = {
            .size = sizeof(change), .key = key_of(poll->old[i]), .fn = forget_fn, .user = poll};
        rc = store_write_wait(cluster->gateway->store, call, &change, 1);
    }
    return rc;
}

int cluster_peers(struct cluster *cluster, struct call *call, struct ng_str **ret,
                  size_t *ret_count)
{
    *ret_count = 0;
    if (cluster == NULL || !cluster->shared) {
        return NG_OK;
    }
    struct peer_poll *poll = arena_zalloc(&call->arena, sizeof(*poll));
    struct ng_str *ids = arena_alloc(&call->arena, CLUSTER_PEERS_MAX * sizeof(*ids));
    if (poll == NULL || ids == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = poll_peers(cluster, call, poll);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&cluster->lock);
    size_t count = 0;
    for (size_t i = 0; i < cluster->peer_count; i++) {
        ids[count] = arena_copy(&call->arena, ng_str_of(cluster->peers[i].id));
        if (ids[count++].data == NULL) {
            rc = NG_EINTERNAL;
        }
    }
    lock_release(&cluster->lock);
    *ret = ids;
    *ret_count = count;
    if (rc == NG_OK) {
        return NG_OK;
    }
    return call_fail(call, rc, "out of memory");
}

static int heartbeat_fn(struct ng_call *pub, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    (void)present;
    (void)user;
    struct ng_str json =
        arena_printf(&call_of(pub)->arena, "{\"process\":%ld,\"version\":\"%s\",\"time\":%lld}",
                     (long)getpid(), NOTEGATE_VERSION, (long long)clock_unix_ms());
    if (json.data == NULL) {
        return NG_EINTERNAL;
    }
    return store_draft_json(next, json);
}

static int cluster_heartbeat(struct cluster *cluster, struct call *call)
{
    int64_t now = clock_monotonic_ns();
    lock_take(&cluster->lock);
    int64_t last = cluster->heartbeat_ns;
    lock_release(&cluster->lock);
    if (last != 0 && now - last < atomic_load(&cluster->lease_ns) / CLUSTER_LEASE_HEARTBEATS) {
        return NG_OK;
    }
    struct ng_change change = {
        .size = sizeof(change), .key = key_of(cluster_id(cluster)), .fn = heartbeat_fn};
    int rc = store_write_wait(cluster->gateway->store, call, &change, 1);
    if (rc == NG_OK) {
        lock_take(&cluster->lock);
        cluster->heartbeat_ns =
            now; /* from before it was written: the others may count from there */
        lock_release(&cluster->lock);
        rc = cluster_poll(cluster, call);
    }
    return rc;
}

int cluster_announce(struct cluster *cluster, struct call *call)
{
    if (cluster == NULL || !cluster->shared) {
        return NG_OK;
    }
    lock_take(&cluster->lock);
    bool known = cluster->heartbeat_ns != 0;
    lock_release(&cluster->lock);
    if (known) {
        return NG_OK;
    }
    /* Not with the caller's: the document is the gateway's. */
    struct call *own = call_new(cluster->gateway);
    if (own == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    own->may_block = true;
    own->deadline_ns = clock_monotonic_ns() + (int64_t)CLUSTER_TIMEOUT_MS * 1000000;
    int rc = cluster_heartbeat(cluster, own);
    if (rc != NG_OK) {
        struct ng_str text = own->staged.message;
        (void)call_fail(call, rc, "%.*s", (int)text.len, text.data == NULL ? "" : text.data);
    }
    call_unref(own);
    return rc;
}

/* ---- the polling thread ---- */

void cluster_each_step(struct cluster *cluster, cluster_step_fn *step, void *user)
{
    cluster->step = step;
    cluster->step_user = user;
}

static int cluster_round(struct cluster *cluster, struct call *call)
{
    int rc = store_declare_rest(cluster->gateway->store, call);
    if (rc == NG_OK) {
        rc = cluster_heartbeat(cluster, call);
    }
    if (rc == NG_OK && cluster->step != NULL) {
        rc = cluster->step(cluster->step_user, call);
    }
    return rc;
}

static void cluster_step(struct cluster *cluster)
{
    struct call *call = call_new(cluster->gateway);
    if (call == NULL) {
        return; /* the next step tries again */
    }
    call->may_block = true;
    call->deadline_ns = clock_monotonic_ns() + (int64_t)CLUSTER_TIMEOUT_MS * 1000000;
    lock_take(&cluster->lock);
    cluster->call = call;
    lock_release(&cluster->lock);
    int rc = cluster_round(cluster, call);
    lock_take(&cluster->lock);
    cluster->call = NULL;
    bool tell = (rc != NG_OK) != cluster->complains && !cluster->stopping;
    cluster->complains = rc != NG_OK;
    lock_release(&cluster->lock);
    if (tell && rc != NG_OK) {
        struct ng_str text = call->staged.message;
        log_write(NG_LOG_WARNING, "cluster",
                  "changes of other gateways are not seen (%s): %.*s", error_name(NULL, rc),
                  (int)text.len, text.data == NULL ? "" : text.data);
    } else if (tell) {
        log_write(NG_LOG_INFO, "cluster", "changes of other gateways are seen again");
    }
    call_unref(call);
}

static void *cluster_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-cluster");
    struct cluster *cluster = user;
    lock_take(&cluster->lock);
    while (!cluster->stopping) {
        lock_release(&cluster->lock);
        cluster_step(cluster);
        lock_take(&cluster->lock);
        int64_t until =
            clock_monotonic_ns() + atomic_load(&cluster->lease_ns) / CLUSTER_LEASE_POLLS;
        struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        while (!cluster->stopping &&
               lock_wait_until(&cluster->wake, &cluster->lock, &at) != ETIMEDOUT) {
        }
    }
    lock_release(&cluster->lock);
    return NULL;
}

/* ---- beginning and end ---- */

int cluster_open(struct gateway *gateway, struct call *call, struct cluster **ret)
{
    struct cluster *cluster = alloc_zeroed(1, sizeof(*cluster));
    if (cluster == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    cluster->gateway = gateway;
    cluster->shared = store_is_shared(gateway->store);
    lock_init(&cluster->lock, LOCK_CLUSTER);
    lock_cond_init(&cluster->wake);
    cluster_set_lease(cluster, CLUSTER_LEASE_MS);
    int rc = id_load(cluster, call);
    if (rc == NG_OK && cluster->shared) {
        rc = store_declare(gateway->store, call, &cluster_collection);
    }
    if (rc != NG_OK) {
        cluster_free(cluster);
        return rc;
    }
    *ret = cluster;
    return NG_OK;
}

void cluster_set_lease(struct cluster *cluster, int64_t lease_ms)
{
    atomic_store(&cluster->lease_ns, lease_ms * 1000000);
}

int cluster_start(struct cluster *cluster)
{
    if (!cluster->shared) {
        return NG_OK;
    }
    if (pthread_create(&cluster->thread, NULL, cluster_run, cluster) != 0) {
        return NG_EINTERNAL;
    }
    cluster->running = true;
    return NG_OK;
}

void cluster_stop(struct cluster *cluster)
{
    if (cluster == NULL || !cluster->running) {
        return;
    }
    lock_take(&cluster->lock);
    cluster->stopping = true;
    if (cluster->call != NULL) {
        call_cancel(cluster->call);
    }
    pthread_cond_broadcast(&cluster->wake);
    lock_release(&cluster->lock);
    (void)pthread_join(cluster->thread, NULL);
    cluster->running = false;
}

void cluster_free(struct cluster *cluster)
{
    if (cluster != NULL) {
        cluster_stop(cluster);
        pthread_cond_destroy(&cluster->wake);
        lock_done(&cluster->lock);
        free(cluster);
    }
}
