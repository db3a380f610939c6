/* SPDX-License-Identifier: MIT */
/* cluster.c - the gateway's id, its heartbeat, the leases of others, and the polling thread. */
#include "cluster_state.h"

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
#include "core/base/text_choice.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/store/store.h"

#define CLUSTER_ID_FILE "gateway.id"
/* How long the document of a dead gateway stays, as this one has seen it; if there are many,
 * shorter. */
#define CLUSTER_KEEP_NS ((int64_t)24 * 3600 * 1000000000)
#define CLUSTER_KEEP_LEASES 10
/* Timeout of one poll. */
#define CLUSTER_TIMEOUT_MS 10000
/* Heartbeats and polls in the length of a lease: every 3 s and every 400 ms by default. */
#define CLUSTER_LEASE_HEARTBEATS 5
#define CLUSTER_LEASE_POLLS 37

static const struct ng_collection cluster_collection = {
    .name = CLUSTER_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

struct ng_key cluster_key(struct ng_str id)
{
    struct ng_key key = {ng_str_of(CLUSTER_COLLECTION), ng_str_of(CLUSTER_SPACE), id};
    return key;
}

/* ---- the id ---- */

bool cluster_id_is_valid(const char *id)
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
    if (len < 0 || !cluster_id_is_valid(cluster->id)) {
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

struct peer *cluster_peer(struct cluster *cluster, struct ng_str id)
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
    int64_t now = clock_boot_ns();
    const int64_t lease = atomic_load(&cluster->lease_ns);
    lock_take(&cluster->lock);
    const struct peer *peer = cluster_peer(cluster, id);
    int64_t seen = peer != NULL ? peer->seen_ns : cluster->since_ns;
    seen = i64_max(seen, cluster->since_ns);
    int64_t polled = cluster->polled_ns;
    bool polls = cluster->since_ns != 0 && now - polled < lease / 2;
    lock_release(&cluster->lock);
    /* By the time of the last poll: what came after it was not seen. */
    return !polls || polled - seen < lease;
}

uint64_t cluster_deaths(const struct cluster *cluster)
{
    return cluster == NULL ? 0 : atomic_load(&cluster->deaths);
}

bool cluster_has_lease(const struct cluster *cluster)
{
    if (cluster == NULL || !cluster->shared) {
        return true;
    }
    int64_t heartbeat = atomic_load(&cluster->heartbeat_ns);
    return heartbeat != 0 && clock_boot_ns() - heartbeat < atomic_load(&cluster->lease_ns) / 2;
}

uint64_t cluster_term(const struct cluster *cluster)
{
    if (cluster == NULL || !cluster->shared) {
        return 1;
    }
    /* In this order: a new heartbeat is seen with its new term. */
    if (!cluster_has_lease(cluster)) {
        return 0;
    }
    return atomic_load(&cluster->term);
}

/* A gateway that died long ago. */
struct old_peer {
    char id[CLUSTER_ID_LEN + 1];
    uint64_t revision;
};

struct peer_poll {
    struct cluster *cluster;
    struct call *call;
    uint64_t number; /* several threads may poll at the same time */
    struct old_peer old[CLUSTER_PEERS_MAX];
    size_t old_count;
};

static int poll_row(void *user, const struct ng_doc *row)
{
    struct peer_poll *poll = user;
    struct cluster *cluster = poll->cluster;
    cluster_secret_row(cluster, row, poll->call);
    if (row->key.id.len != CLUSTER_ID_LEN || str_is(row->key.id, cluster->id)) {
        return 0;
    }
    const struct ng_value *body = NULL;
    (void)json_parse(&poll->call->arena, row->json, CLUSTER_DEPTH, &body, NULL);
    lock_take(&cluster->lock);
    struct peer *peer = cluster_peer(cluster, row->key.id);
    if (peer == NULL && cluster->peer_count < CLUSTER_PEERS_MAX) {
        peer = &cluster->peers[cluster->peer_count++];
        *peer = (struct peer){0};
        memcpy(peer->id, row->key.id.data, CLUSTER_ID_LEN);
    }
    if (peer != NULL && peer->revision != row->revision) {
        cluster_address_take(&peer->address, body);
        peer->revision = row->revision;
        peer->seen_ns = clock_boot_ns();
    }
    if (peer != NULL && peer->poll < poll->number) {
        peer->poll = poll->number;
    }
    lock_release(&cluster->lock);
    return 0;
}

/* With the lock held. Every peer whose document is gone leaves; so does, later, one that is
 * dead for long: *poll has those. */
static void judge_peers(struct cluster *cluster, struct peer_poll *poll, int64_t now)
{
    const int64_t lease = atomic_load(&cluster->lease_ns);
    int64_t keep = CLUSTER_KEEP_NS;
    size_t kept = 0;
    if (cluster->peer_count > CLUSTER_PEERS_MAX / 2) {
        keep = lease * CLUSTER_KEEP_LEASES;
    }
    for (size_t i = 0; i < cluster->peer_count; i++) {
        struct peer *peer = &cluster->peers[i];
        int64_t silent = now - i64_max(peer->seen_ns, cluster->since_ns);
        bool is_there = peer->poll >= poll->number;
        bool is_dead = silent >= lease || !is_there;
        if (is_dead && !peer->is_dead) {
            (void)atomic_fetch_add(&cluster->deaths, 1);
        }
        peer->is_dead = is_dead;
        if (!is_there) {
            continue;
        }
        if (silent >= keep) {
            struct old_peer *old = &poll->old[poll->old_count++];
            memcpy(old->id, peer->id, sizeof(old->id));
            old->revision = peer->revision;
        }
        cluster->peers[kept++] = *peer;
    }
    cluster->peer_count = kept;
}

static int forget_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                     void *user)
{
    const struct old_peer *old = user;
    (void)pub;
    if (!present->deleted && present->revision == old->revision) {
        store_draft_delete(next);
    }
    return NG_OK;
}

/* Reads the documents of the other gateways. */
static int poll_peers(struct cluster *cluster, struct call *call, struct peer_poll *poll)
{
    *poll = (struct peer_poll){.cluster = cluster, .call = call};
    lock_take(&cluster->lock);
    poll->number = ++cluster->polls;
    lock_release(&cluster->lock);
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CLUSTER_COLLECTION),
        .space = ng_str_of(CLUSTER_SPACE),
        .limit = CLUSTER_PEERS_MAX * 2,
    };
    int rc = store_query(cluster->gateway->store, call, &query, poll_row, poll, NULL);
    int64_t now = clock_boot_ns();
    if (rc == NG_OK) {
        lock_take(&cluster->lock);
        /* After a gap in polling the leases of the others start again: their heartbeats were
         * not seen. */
        if (cluster->since_ns == 0 ||
            now - cluster->polled_ns > atomic_load(&cluster->lease_ns) / 2) {
            cluster->since_ns = now;
        }
        cluster->polled_ns = now;
        judge_peers(cluster, poll, now);
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
        struct old_peer *old = &poll->old[i];
        struct ng_change change = {.size = sizeof(change),
                                   .key = cluster_key(ng_str_of(old->id)),
                                   .fn = forget_fn,
                                   .user = old};
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
    const struct cluster *cluster = user;
    const struct cluster_address *address = &cluster->address;
    const char *token = text_if(!atomic_load(&cluster->hold.left), address->token);
    struct ng_str json =
        arena_printf(&call_of(pub)->arena,
                     "{\"process\":%ld,\"version\":\"%s\",\"beat\":%llu,\"name\":\"%s\","
                     "\"host\":\"%s\",\"address\":\"%s\",\"token\":\"%s\"}",
                     (long)getpid(), NOTEGATE_VERSION, (unsigned long long)present->revision,
                     cluster->name, cluster->host, address->url, token);
    if (json.data == NULL) {
        return NG_EINTERNAL;
    }
    return store_draft_json(next, json);
}

static int cluster_heartbeat(struct cluster *cluster, struct call *call)
{
    int64_t now = clock_boot_ns();
    int64_t last = atomic_load(&cluster->heartbeat_ns);
    bool leaves = atomic_load(&cluster->hold.left);
    if (last != 0 && leaves == cluster->hold.told_left &&
        now - last < atomic_load(&cluster->lease_ns) / CLUSTER_LEASE_HEARTBEATS) {
        return NG_OK;
    }
    struct ng_change change = {.size = sizeof(change),
                               .key = cluster_key(cluster_id(cluster)),
                               .fn = heartbeat_fn,
                               .user = cluster};
    int rc = store_write_wait(cluster->gateway->store, call, &change, 1);
    if (rc == NG_OK) {
        rc = cluster_poll(cluster, call);
    }
    if (rc == NG_OK) {
        (void)cluster_lapses(cluster); /* while it was written, too */
        if (!cluster_has_lease(cluster)) {
            (void)atomic_fetch_add(&cluster->term, 1);
        }
        lock_take(&cluster->lock);
        if (cluster->hold.lapsed) { /* others may have what was taken since it began */
            cluster->hold.lapsed = false;
            cluster->hold.lapses++;
        }
        cluster->hold.told_left = leaves;
        /* From before it was written: the others may count from there. */
        atomic_store(&cluster->heartbeat_ns, now);
        lock_release(&cluster->lock);
    }
    return rc;
}

int cluster_announce(struct cluster *cluster, struct call *call)
{
    if (cluster == NULL || !cluster->shared) {
        return NG_OK;
    }
    if (atomic_load(&cluster->heartbeat_ns) != 0) {
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

void cluster_each_look(struct cluster *cluster, cluster_step_fn *look, void *user)
{
    cluster->look = look;
    cluster->look_user = user;
}

static int cluster_look(struct cluster *cluster, struct call *call)
{
    int64_t begun = clock_boot_ns();
    int rc = NG_OK;
    if (cluster->look != NULL) {
        rc = cluster->look(cluster->look_user, call);
    }
    if (rc == NG_OK) {
        atomic_store(&cluster->looked_ns, begun);
    }
    return rc;
}

void cluster_look_again(struct cluster *cluster, struct call *call)
{
    if (cluster == NULL || clock_boot_ns() - atomic_load(&cluster->looked_ns) <
                               (int64_t)CLUSTER_LOOK_MS * 1000000) {
        return;
    }
    struct result before = call->staged;
    if (cluster_look(cluster, call) != NG_OK) {
        call->staged = before;
    }
}

/* The writes of a round, which wait for a majority of the database's servers. */
static int cluster_write(struct cluster *cluster, struct call *call)
{
    int rc = store_declare_rest(cluster->gateway->store, call);
    if (rc == NG_OK) {
        rc = cluster_heartbeat(cluster, call);
    }
    if (rc == NG_OK) {
        rc = cluster_secret_step(cluster, call);
    }
    return rc;
}

static int cluster_round(struct cluster *cluster, struct call *call)
{
    int64_t begun = clock_boot_ns();
    int64_t deadline = call->deadline_ns;
    /* The first look takes no longer than a heartbeat may wait. */
    call->deadline_ns =
        i64_min(deadline, clock_monotonic_ns() +
                              atomic_load(&cluster->lease_ns) / CLUSTER_LEASE_HEARTBEATS);
    int looked = cluster_look(cluster, call);
    struct result told = call->staged;
    call->deadline_ns = deadline;
    call_reset_result(call);
    int rc = cluster_write(cluster, call);
    cluster_look_again(cluster, call);
    if (rc == NG_OK && cluster->step != NULL) {
        rc = cluster->step(cluster->step_user, call);
    }
    if (rc == NG_OK && atomic_load(&cluster->looked_ns) < begun) {
        call->staged = told;
        rc = looked;
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
    if (cluster->stopping) {
        call_cancel(call); /* cluster_stop() came before there was a call */
    }
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
    if (rc == NG_OK) {
        rc = cluster_process_open(cluster, call);
    }
    if (rc == NG_OK) {
        rc = cluster_address_open(cluster, call);
    }
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
