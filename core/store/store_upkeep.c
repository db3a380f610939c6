/* SPDX-License-Identifier: MIT */
/* store_upkeep.c - removes old data: history beyond history.keep, stored answers, purged
 * documents; and keeps a clock for it, because the system's clock may be wrong for a while. */
#include <assert.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/call/gateway.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "store.h"
#include "store_types.h"

/* Interval between two thinnings of history: each reads every document. */
#define STORE_THIN_MS (INT64_C(60) * 60 * 1000)
/* Events that are read for the newest time; if all of them are quiet, so many times more before
 * them. */
#define CLOCK_EVENTS 1000
#define CLOCK_EVENTS_MORE 100
/* A clock that is ahead is believed when it was for so long, by an amount that moved less. */
#define CLOCK_BELIEVED_MS (INT64_C(24) * 60 * 60 * 1000)
#define CLOCK_MOVES_MS (INT64_C(60) * 60 * 1000)
/* So far behind the newest change the clock is reported. */
#define CLOCK_BEHIND_MS (INT64_C(60) * 60 * 1000)

/* ---- the time ---- */

static int take_time(void *user, const struct ng_event *event)
{
    int64_t *newest = user;
    *newest = event->time_ms;
    return NG_OK;
}

void store_clock_open(struct store *store, struct call *call)
{
    uint64_t last = atomic_load(&store->last_seq);
    uint64_t since = last;
    int64_t newest = INT64_MIN;
    int rc = NG_OK;
    for (uint64_t back = CLOCK_EVENTS; since > 0 && newest == INT64_MIN && rc == NG_OK;
         back *= CLOCK_EVENTS_MORE) {
        if (last > back) {
            since = last - back;
        } else {
            since = 0;
        }
        rc = store->backend->changes(store->db, &call->pub, since, CLOCK_EVENTS, take_time,
                                     &newest);
    }
    if (rc != NG_OK) {
        call_reset_result(call); /* a database that is away is no reason not to open */
    }
    atomic_init(&store->change_ms, newest);
    if (newest > clock_unix_ms() + CLOCK_BEHIND_MS) {
        char time[RFC3339_SIZE];
        rfc3339_write(newest, RFC3339_SECONDS, time);
        log_write(NG_LOG_WARNING, "store",
                  "the newest change is of %s, after the present time of this machine: changes "
                  "get that time until the clock has passed it; check the clock",
                  time);
    }
    if (newest == INT64_MIN) {
        store->clock.base_ms = clock_unix_ms();
    } else {
        store->clock.base_ms = newest;
    }
    store->clock.base_up_ms = clock_uptime_ms();
}

int64_t store_change_ms(struct store *store)
{
    int64_t now = clock_unix_ms();
    int64_t newest = atomic_load(&store->change_ms);
    while (now > newest && !atomic_compare_exchange_weak(&store->change_ms, &newest, now)) {
    }
    return i64_max(now, newest);
}

int64_t store_now(struct store *store)
{
    int64_t now = clock_unix_ms();
    if (store == NULL) {
        return now;
    }
    struct store_clock *clock = &store->clock;
    int64_t up = clock_uptime_ms();
    lock_take(&clock->lock);
    int64_t most = clock->base_ms + (up - clock->base_up_ms);
    int64_t ahead = now - most;
    if (ahead <= CLOCK_MOVES_MS) {
        clock->ahead_ms = 0;
    } else if (ahead < clock->ahead_ms - CLOCK_MOVES_MS ||
               ahead > clock->ahead_ms + CLOCK_MOVES_MS) {
        clock->ahead_ms = ahead;
        clock->ahead_up_ms = up;
    } else if (up - clock->ahead_up_ms >= CLOCK_BELIEVED_MS) {
        clock->base_ms = now;
        clock->base_up_ms = up;
        clock->ahead_ms = 0;
        most = now;
    }
    lock_release(&clock->lock);
    return i64_min(now, most);
}

/* ---- upkeep ---- */

void store_pin_revisions(struct store *store, const struct store_pinner *pinner)
{
    assert(store->pinner_count < STORE_PINNERS_MAX);
    store->pinners[store->pinner_count++] = *pinner;
}

static bool store_pinned(void *user, const struct ng_key *key, uint64_t revision)
{
    const struct store *store = user;
    bool pinned = false;
    for (size_t i = 0; i < store->pinner_count && !pinned; i++) {
        pinned = store->pinners[i].pinned(store->pinners[i].user, key, revision);
    }
    return pinned;
}

static int store_load_pins(struct store *store, struct call *call)
{
    int rc = NG_OK;
    for (size_t i = 0; i < store->pinner_count && rc == NG_OK; i++) {
        const struct store_pinner *pinner = &store->pinners[i];
        rc = pinner->load != NULL ? pinner->load(pinner->user, call) : NG_OK;
    }
    return rc;
}

void store_set_keep(struct store *store, int64_t keep_ms)
{
    atomic_store(&store->keep_ms, keep_ms);
    atomic_store(&store->thinned_ms, 0);
}

int store_maintain(struct store *store, struct call *call)
{
    if (store->backend->maintain == NULL) {
        return NG_OK;
    }
    int64_t now = store_now(store);
    int64_t before = atomic_load(&store->thinned_ms);
    bool thin = now < before || now - before >= STORE_THIN_MS;
    int64_t keep_ms = thin ? atomic_load(&store->keep_ms) : 0;
    int rc = keep_ms > 0 ? store_load_pins(store, call) : NG_OK;
    if (rc == NG_OK) {
        rc = store->backend->maintain(store->db, &call->pub, now, keep_ms, store_pinned, store);
    }
    if (thin && rc == NG_OK) {
        /* Not where history.keep has changed meanwhile. */
        (void)atomic_compare_exchange_strong(&store->thinned_ms, &before, now);
    }
    return rc;
}

/* ---- purge ---- */

int store_can_purge(struct store *store, struct call *call)
{
    const struct ng_documents *backend = store->backend;
    if (backend->purge != NULL && backend->purge_events != NULL &&
        backend->purge_data != NULL && backend->purge_sweep != NULL) {
        return NG_OK;
    }
    return call_fail(call, NG_EUNAVAILABLE,
                     "the backend %s cannot remove documents for good; nothing was changed",
                     store->backend->name);
}

/* The member `about` of an event of another document that is about this one, as the JSON writer
 * puts it. */
static int purge_about(struct call *call, const struct ng_key *key, struct ng_str *ret)
{
    struct ng_writer *writer = call->pub.host->json_writer(&call->pub);
    if (writer == NULL) {
        return call_no_memory(call);
    }
    json_object(writer);
    json_name(writer, "about");
    json_object(writer);
    json_name(writer, "collection");
    json_string(writer, key->collection);
    json_name(writer, "id");
    json_string(writer, key->id);
    json_end(writer);
    json_end(writer);
    struct ng_str json = call->pub.host->json_result(writer);
    if (json.data == NULL) {
        return call_no_memory(call);
    }
    *ret = str_make(json.data + 1, json.len - 2); /* without the braces */
    return NG_OK;
}

int store_purge_events(struct store *store, struct call *call, const struct ng_key *key,
                       uint64_t revision, uint64_t since, uint64_t until, ng_event_fn *event,
                       void *user)
{
    struct abi_given given = {.backend = store->backend->name, .to.event = event, .user = user};
    struct ng_str about = {NULL, 0};
    int rc = purge_about(call, key, &about);
    if (rc == NG_OK) {
        rc = store->backend->purge_events(store->db, &call->pub, key, revision, about, since,
                                          until, abi_give_event, &given);
    }
    return abi_given_end(call, &given, rc);
}

int store_purge(struct store *store, struct call *call, const struct ng_key *key,
                uint64_t revision)
{
    return store->backend->purge(store->db, &call->pub, key, revision);
}

int store_purge_data(struct store *store, struct call *call, const uint64_t *seqs, size_t count)
{
    return store->backend->purge_data(store->db, &call->pub, seqs, count);
}

int store_purge_sweep(struct store *store, struct call *call)
{
    return store->backend->purge_sweep(store->db, &call->pub);
}
