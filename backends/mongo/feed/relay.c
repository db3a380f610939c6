/* SPDX-License-Identifier: MIT */
/*
 * relay.c - decides when the contents of outboxes are moved to the events and versions
 * collections; relay_move.c moves them. One gateway at a time does it, the holder of the lease.
 * The others tell it by a counter of kicks that there is something to move.
 *
 * The lease is a document that names its owner. It is free when the owner left it, and when the
 * owner's heartbeat (presence.c) stands still for LEASE_HEARTBEATS. An owner that was only slow
 * does no harm: each event is inserted under its sequence number and its revision, both unique,
 * so the second insert is refused. Reads do not tell, as those of a new primary may be older.
 * So nothing is moved without the unique index.
 */
#include "relay.h"

#include <stdio.h>
#include <time.h>

#include "core/base/lock.h"

#define LEASE_HEARTBEATS 2
/* Poll interval of the lease, while there is work and otherwise. */
#define POLL_BUSY_MS 25
#define POLL_IDLE_MS 150
#define IDLE_AFTER_MS 1000
/* The same while the change stream tells of kicks: for the lease. */
#define POLL_WATCHED_MS 750
/* Interval of scans without a kick, in case one was lost. */
#define SCAN_ANYWAY_MS 3000
#define SWEEP_MS 5000

static bool lease_give(struct mongo *db, struct ng_str from, const char *owner)
{
    struct fault fault;
    bool done = false;
    (void)op_update(db, NULL, OWN_META, bson_of("_id:t, owner:s", "relay", from),
                    bson_of("$set:{owner:t}", owner), &done, &fault);
    return done;
}

/* A free one, as taken by the next poll. */
static void lease_make(struct mongo *db)
{
    struct fault fault;
    bson_t *doc = bson_of("_id:t, owner:E, kicks:l", "relay", (int64_t)0);
    (void)op_insert(db, NULL, OWN_META, doc, &fault);
    bson_destroy(doc);
}

static void send_kick(struct mongo *db)
{
    struct fault fault;
    if (!op_update(db, NULL, OWN_META, bson_of("_id:t", "relay"),
                   bson_of("$inc:{kicks:l}", (int64_t)1), NULL, &fault)) {
        relay_kick(db, NULL); /* try again next time */
    }
}

/* Reads the lease, and takes it if it is free. false: the server does not answer. */
static bool poll_lease(struct mongo *db, bool *ret_kicked)
{
    struct relay *relay = db->relay;
    struct fault fault;
    bson_t *lease = op_find_one(db, NULL, OWN_META, bson_of("_id:t", "relay"), NULL, &fault);
    if (fault.rc != NG_OK) {
        return false;
    }
    if (lease == NULL) {
        lease_make(db);
        return true;
    }
    struct ng_str owner = member_str(lease, "owner");
    int64_t kicks = member_i64(lease, "kicks");
    *ret_kicked = kicks != relay->kick_seen;
    relay->kick_seen = kicks;
    bool mine = str_equal(owner, ng_str_of(db->gateway));
    /* The others could not see an owner that has no heartbeat yet. */
    if (!mine && atomic_load(&db->presence.listed) &&
        (owner.len == 0 || presence_still(db, owner) >= LEASE_HEARTBEATS)) {
        mine = lease_give(db, owner, db->gateway);
    }
    if (mine && !relay->owner) {
        relay->next_seq = 0;
        relay->scanned_ms = 0;
    }
    relay->owner = mine;
    if (!mine) {
        relay->left = 0;
    }
    bson_destroy(lease);
    return true;
}

/* Looks how far the owner has moved events of the feed. While the change stream tells it, only
 * in case it lost an event, and once when it begins. */
static void count_moved(struct mongo *db, int64_t now)
{
    struct relay *relay = db->relay;
    struct fault fault;
    bool live = atomic_load(&db->watch->live);
    if (live && now - relay->counted_ms < SCAN_ANYWAY_MS) {
        return;
    }
    (void)last_seq_follow(db, &fault);
    relay->counted_ms = 0;
    if (live) {
        relay->counted_ms = now;
    }
}

/* Moves what one scan finds. Without the unique index it all waits. */
static bool move_some(struct mongo *db, uint64_t dirty)
{
    struct relay *relay = db->relay;
    bool good = true;
    bool more = false;
    if (atomic_load(&db->ref_index) == REF_READY) {
        good = relay_move(db, dirty, &more);
    }
    relay->left = more ? dirty : 0;
    return good;
}

/* Whether this round reads the lease. The change stream tells the others of a free one. */
static bool polls(const struct mongo *db, bool kicked_here, int64_t now)
{
    const struct relay *relay = db->relay;
    int64_t most = POLL_IDLE_MS;
    if (!relay->owner) {
        most = atomic_load(&db->watch->live) ? POLL_WATCHED_MS : 0;
    }
    return (!kicked_here && relay->left == 0) || now - relay->polled_ms >= most;
}

/* One round. told: of a change of the lease. true: something was moved. */
static bool relay_step(struct mongo *db, bool kicked_here, bool told)
{
    struct relay *relay = db->relay;
    bool kicked = false;
    int64_t now = monotonic_ms();
    bool poll = told || polls(db, kicked_here, now);
    if (poll && !poll_lease(db, &kicked)) {
        if (kicked_here || relay->left != 0) {
            relay_kick(db, NULL);
        }
        relay->left = 0;
        return false;
    }
    if (poll) {
        relay->polled_ms = now;
    }
    if (!relay->owner) {
        if (kicked_here) {
            send_kick(db);
        }
        count_moved(db, now);
        return kicked_here;
    }
    bool anyway = now - relay->scanned_ms >= SCAN_ANYWAY_MS;
    if (!kicked_here && !kicked && !anyway && relay->left == 0) {
        return false;
    }
    uint64_t dirty = atomic_exchange(&relay->dirty, 0) | relay->left;
    if (kicked || anyway) {
        dirty = UINT64_MAX;
    }
    bool good = move_some(db, dirty);
    if (!good) {
        relay->scanned_ms = 0;
    } else if (kicked || anyway) {
        relay->scanned_ms = now;
    }
    if (now - relay->swept_ms >= SWEEP_MS) {
        relay->swept_ms = now;
        tombstone_gc(db);
    }
    return kicked_here || kicked || relay->left != 0 || !good;
}

/* Waits until a kick, or so long. */
static void wait_ms(struct relay *relay, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanos = until.tv_nsec + ms * 1000000;
    until.tv_sec += (time_t)(nanos / 1000000000);
    until.tv_nsec = (long)(nanos % 1000000000);
    if (!relay->kicked && !relay->poll && !relay->closing) {
        (void)lock_wait_until(&relay->moved, &relay->lock, &until);
    }
}

static void *relay_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-relay");
    struct mongo *db = user;
    struct relay *relay = db->relay;
    int64_t busy_ms = 0;
    lock_take(&relay->lock);
    while (!relay->closing) {
        bool kicked = relay->kicked;
        bool told = relay->poll;
        relay->kicked = false;
        relay->poll = false;
        lock_release(&relay->lock);
        bool busy = relay_step(db, kicked, told);
        if (relay->left == 0) {
            sleep_ms(POLL_BUSY_MS); /* changes of this time are moved together */
        }
        lock_take(&relay->lock);
        if (busy) {
            busy_ms = monotonic_ms();
        } else if (atomic_load(&db->watch->live)) {
            wait_ms(relay, POLL_WATCHED_MS);
        } else if (monotonic_ms() - busy_ms >= IDLE_AFTER_MS) {
            wait_ms(relay, POLL_IDLE_MS);
        }
    }
    lock_release(&relay->lock);
    if (relay->owner) {
        /* The next need not wait for the lease. What one scan leaves it moves. */
        (void)move_some(db, UINT64_MAX);
        (void)lease_give(db, ng_str_of(db->gateway), "");
    }
    return NULL;
}

bool relay_is_owner(const struct mongo *db)
{
    return atomic_load(&db->relay->owner);
}

/* Each thread uses the other's state. */
int feed_open(struct mongo *db)
{
    db->relay = calloc(1, sizeof(*db->relay));
    db->watch = calloc(1, sizeof(*db->watch));
    if (db->relay == NULL || db->watch == NULL) {
        free(db->relay);
        free(db->watch);
        db->relay = NULL;
        return NG_EINTERNAL;
    }
    lock_init(&db->relay->lock, LOCK_MONGO_RELAY);
    lock_cond_init(&db->relay->moved);
    lock_init(&db->watch->lock, LOCK_MONGO_WATCH);
    if (thread_open(&db->relay->thread, relay_main, db, &db->relay->started) != NG_OK) {
        return NG_EINTERNAL;
    }
    return thread_open(&db->watch->thread, watch_main, db, &db->watch->started);
}

void feed_close(struct mongo *db)
{
    struct relay *relay = db->relay;
    if (relay == NULL) {
        return;
    }
    if (db->watch->started) {
        (void)pthread_join(db->watch->thread, NULL);
    }
    lock_take(&relay->lock);
    relay->closing = true;
    pthread_cond_signal(&relay->moved);
    lock_release(&relay->lock);
    if (relay->started) {
        (void)pthread_join(relay->thread, NULL);
    }
    lock_done(&relay->lock);
    pthread_cond_destroy(&relay->moved);
    lock_done(&db->watch->lock);
    bson_destroy(db->watch->token);
    bytes_done(&db->watch->notices);
    free(relay);
    free(db->watch);
}

static void wake(struct relay *relay, bool *what)
{
    lock_take(&relay->lock);
    *what = true;
    pthread_cond_signal(&relay->moved);
    lock_release(&relay->lock);
}

void relay_kick(struct mongo *db, const struct db_collection *collection)
{
    uint64_t mark = UINT64_MAX;
    if (collection != NULL) {
        mark = relay_mark(collection);
    }
    (void)atomic_fetch_or(&db->relay->dirty, mark);
    wake(db->relay, &db->relay->kicked);
}

void relay_poll(struct mongo *db)
{
    wake(db->relay, &db->relay->poll);
}
