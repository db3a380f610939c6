/* SPDX-License-Identifier: MIT */
/*
 * relay.c - decides when the contents of outboxes are moved to the events and versions
 * collections; relay_move.c moves them. One gateway at a time does it, the holder of the lease.
 * The others tell it by a counter of kicks that there is something to move.
 *
 * The lease is a document with a heartbeat that its owner increases. No clocks are compared: a
 * gateway that saw the same heartbeat for LEASE_MS of its own time takes the lease. An owner
 * that was only slow does no harm: each event is inserted under its sequence number and its
 * revision, both unique, so the second insert is refused.
 */
#include "relay.h"

#include <stdio.h>
#include <time.h>

#include "core/base/lock.h"

#define LEASE_MS 5000
#define RENEW_MS 1500
/* Poll interval of the lease, while there is work and otherwise. */
#define POLL_BUSY_MS 25
#define POLL_IDLE_MS 150
#define IDLE_AFTER_MS 1000
/* Interval of scans without a kick, in case one was lost. */
#define SCAN_ANYWAY_MS 3000
#define SWEEP_MS 5000

static void lease_filter(bson_t *filter)
{
    bson_init(filter);
    BSON_APPEND_UTF8(filter, "_id", "relay");
}

/* Takes or renews the lease, if its heartbeat is still the one that was seen. */
static bool lease_write(struct mongo *db, bool first, const char *owner)
{
    struct relay *relay = &db->relay;
    struct fault fault;
    bson_t filter, update, set;
    int64_t matched = 0;
    bool good;
    lease_filter(&filter);
    bson_init(&update);
    if (first) {
        bson_t doc = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&doc, "_id", "relay");
        BSON_APPEND_UTF8(&doc, "owner", owner);
        BSON_APPEND_INT64(&doc, "beat", 1);
        BSON_APPEND_INT64(&doc, "kicks", 0);
        good = op_insert(db, OWN_META, &doc, &fault);
        if (good) {
            relay->heartbeat = 1;
        }
        bson_destroy(&doc);
    } else {
        BSON_APPEND_INT64(&filter, "beat", relay->heartbeat);
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
        BSON_APPEND_UTF8(&set, "owner", owner);
        BSON_APPEND_INT64(&set, "beat", relay->heartbeat + 1);
        (void)bson_append_document_end(&update, &set);
        good = op_update(db, OWN_META, &filter, &update, &matched, &fault) && matched > 0;
        relay->heartbeat += good;
    }
    bson_destroy(&filter);
    bson_destroy(&update);
    return good;
}

static void lease_lost(struct relay *relay)
{
    relay->owner = false;
    relay->next_seq = 0;
}

static void lease_won(struct relay *relay, int64_t now)
{
    relay->owner = true;
    relay->recheck = true;
    relay->next_seq = 0;
    relay->renewed_ms = now;
    relay->scanned_ms = 0;
}

static void send_kick(struct mongo *db)
{
    struct fault fault;
    bson_t filter, update;
    int64_t matched = 0;
    lease_filter(&filter);
    bson_init(&update);
    nest_i64(&update, "$inc", "kicks", 1);
    if (!op_update(db, OWN_META, &filter, &update, &matched, &fault)) {
        relay_kick(db, NULL); /* try again next time */
    }
    bson_destroy(&filter);
    bson_destroy(&update);
}

/* Reads the lease, and takes or renews it if due. false: the server does not answer. */
static bool poll_lease(struct mongo *db, bool *ret_kicked)
{
    struct relay *relay = &db->relay;
    struct fault fault;
    bson_t filter;
    int64_t now = monotonic_ms();
    lease_filter(&filter);
    bson_t *lease = op_find_one(db, OWN_META, &filter, NULL, &fault);
    bson_destroy(&filter);
    if (fault.rc != NG_OK) {
        return false;
    }
    if (lease == NULL) {
        if (lease_write(db, true, db->gateway)) {
            lease_won(relay, now);
        }
        return true;
    }
    struct ng_str owner = member_str(lease, "owner");
    bool mine = str_equal(owner, ng_str_of(db->gateway));
    int64_t heartbeat = member_i64(lease, "beat");
    int64_t kicks = member_i64(lease, "kicks");
    *ret_kicked = kicks != relay->kick_seen;
    relay->kick_seen = kicks;
    if (heartbeat != relay->heartbeat || relay->heartbeat_since_ms == 0) {
        if (relay->owner) {
            lease_lost(relay); /* another gateway took it */
        }
        relay->heartbeat = heartbeat;
        relay->heartbeat_since_ms = now;
    }
    bool free_now = owner.len == 0 || mine || now - relay->heartbeat_since_ms >= LEASE_MS;
    if (relay->owner) {
        if (now - relay->renewed_ms >= RENEW_MS) {
            if (lease_write(db, false, db->gateway)) {
                relay->renewed_ms = now;
            } else {
                lease_lost(relay);
            }
        }
    } else if (free_now && lease_write(db, false, db->gateway)) {
        lease_won(relay, now);
    }
    bson_destroy(lease);
    return true;
}

/* One round. true: something was moved. */
static bool relay_step(struct mongo *db, bool kicked_here)
{
    struct relay *relay = &db->relay;
    bool kicked = false;
    int64_t now = monotonic_ms();
    bool poll = !relay->owner || !kicked_here || now - relay->polled_ms >= POLL_IDLE_MS;
    if (poll && !poll_lease(db, &kicked)) {
        if (kicked_here) {
            relay_kick(db, NULL);
        }
        return false;
    }
    if (poll) {
        relay->polled_ms = now;
    }
    collections_prepare(db);
    if (!relay->owner) {
        if (kicked_here) {
            send_kick(db);
        }
        relay_begin(db); /* counts what the owner has moved */
        return kicked_here;
    }
    bool anyway = now - relay->scanned_ms >= SCAN_ANYWAY_MS;
    if (!kicked_here && !kicked && !anyway) {
        return false;
    }
    uint64_t dirty = atomic_exchange(&relay->dirty, 0);
    bool good = relay_move(db, kicked || anyway ? UINT64_MAX : dirty);
    if (!good) {
        relay->scanned_ms = 0;
    } else if (kicked || anyway) {
        relay->scanned_ms = now;
    }
    if (now - relay->swept_ms >= SWEEP_MS) {
        relay->swept_ms = now;
        intent_sweep(db);
        tombstone_gc(db);
    }
    return kicked_here || kicked || !good;
}

static void wait_ms(struct relay *relay, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanos = until.tv_nsec + ms * 1000000;
    until.tv_sec += (time_t)(nanos / 1000000000);
    until.tv_nsec = (long)(nanos % 1000000000);
    (void)lock_wait_until(&relay->moved, &relay->lock, &until);
}

static void *relay_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-relay");
    struct mongo *db = user;
    struct relay *relay = &db->relay;
    int64_t busy_ms = 0;
    lock_take(&relay->lock);
    while (relay->state != RELAY_CLOSING) {
        bool kicked = relay->kicked;
        relay->kicked = false;
        lock_release(&relay->lock);
        if (relay_step(db, kicked)) {
            busy_ms = monotonic_ms();
        }
        lock_take(&relay->lock);
        relay->rounds++;
        if (relay->state != RELAY_CLOSING) {
            bool busy = monotonic_ms() - busy_ms < IDLE_AFTER_MS;
            relay->state = busy || relay->kicked ? RELAY_BUSY : RELAY_IDLE;
            wait_ms(relay, busy ? POLL_BUSY_MS : POLL_IDLE_MS);
            if (relay->state == RELAY_IDLE) {
                relay->state = RELAY_BUSY;
            }
        }
    }
    lock_release(&relay->lock);
    if (relay->owner) {
        (void)relay_move(db, UINT64_MAX);
        (void)lease_write(db, false, ""); /* the next gateway need not wait */
    }
    return NULL;
}

int relay_open(struct mongo *db)
{
    struct relay *relay = &db->relay;
    lock_init(&relay->lock, LOCK_MONGO_RELAY);
    lock_cond_init(&relay->moved);
    relay->state = RELAY_BUSY;
    if (pthread_create(&relay->thread, NULL, relay_main, db) != 0) {
        relay->state = RELAY_STOPPED;
        return NG_EINTERNAL;
    }
    return NG_OK;
}

void relay_close(struct mongo *db)
{
    struct relay *relay = &db->relay;
    lock_take(&relay->lock);
    bool is_started = relay->state != RELAY_STOPPED;
    if (is_started) {
        relay->state = RELAY_CLOSING;
        pthread_cond_broadcast(&relay->moved);
    }
    lock_release(&relay->lock);
    if (is_started) {
        pthread_join(relay->thread, NULL);
    }
    lock_done(&relay->lock);
    pthread_cond_destroy(&relay->moved);
}

void relay_kick(struct mongo *db, const struct db_collection *collection)
{
    struct relay *relay = &db->relay;
    (void)atomic_fetch_or(&relay->dirty,
                          collection != NULL ? relay_mark(collection) : UINT64_MAX);
    lock_take(&relay->lock);
    relay->kicked = true;
    if (relay->state == RELAY_IDLE) {
        pthread_cond_signal(&relay->moved);
    }
    lock_release(&relay->lock);
}
