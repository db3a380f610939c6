/* SPDX-License-Identifier: MIT */
/*
 * trail.c - the changes of all documents, newest first. Backends give them oldest first: they
 * are read in windows of numbers, from the newest window on. The changes of a window that are
 * wanted are read once more, one by one.
 */
#include "trail.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatch_space.h"
#include "core/store/store.h"

/* Numbers of a window. */
#define TRAIL_WINDOW ((uint64_t)1000)

struct trail {
    struct call *call;
    const struct ng_trail *wanted;
    uint64_t until;   /* of the window */
    uint64_t *numbers; /* of the wanted changes in the window, oldest first */
    size_t count;
};

static bool names_have(const struct ng_names *names, struct ng_str text)
{
    bool has = names->count == 0;
    for (size_t i = 0; i < names->count && !has; i++) {
        has = str_equal(names->items[i], text);
    }
    return has;
}

static bool id_fits(const struct ng_trail *wanted, struct ng_str id)
{
    if (wanted->id.data == NULL) {
        return true;
    }
    return wanted->id_prefix ? str_starts(id, wanted->id) : str_equal(id, wanted->id);
}

static bool trail_wants(const struct ng_trail *wanted, const struct ng_event *event)
{
    return names_have(&wanted->runs, event->origin.run_id) &&
           names_have(&wanted->agents, event->agent) &&
           names_have(&wanted->tools, event->tool) &&
           names_have(&wanted->actions, event->action) &&
           names_have(&wanted->collections, event->key.collection) &&
           names_have(&wanted->spaces, event->key.space) && id_fits(wanted, event->key.id);
}

/* Without keys a caller may use the spaces that it names. */
static bool trail_sees(struct call *call, const struct ng_trail *wanted,
                       const struct ng_key *key)
{
    const struct ng_caller *caller = &call->caller;
    bool sees = caller->all_spaces || call_has_space(caller, key->space) ||
                (wanted->spaces.count > 0 && dispatch_may_use_space(call, key->space));
    return sees && dispatch_sees_collection(call, key->collection);
}

static int trail_note(void *user, const struct ng_event *event)
{
    struct trail *trail = user;
    if (event->seq > trail->until) {
        return 1;
    }
    if (trail_wants(trail->wanted, event) && trail_sees(trail->call, trail->wanted, &event->key)) {
        trail->numbers[trail->count++] = event->seq;
    }
    return 0;
}

/* Passes one change. */
struct trail_pass {
    uint64_t seq;
    ng_event_fn *event;
    void *user;
    bool stop;
};

static int trail_pass(void *user, const struct ng_event *event)
{
    struct trail_pass *pass = user;
    if (event->seq == pass->seq) { /* a purge may have removed it */
        pass->stop = pass->event(pass->user, event) != 0;
    }
    return 1;
}

/* One window: numbers above `since`. *ret_stop: the callback wants no more, and *ret_next is
 * where it would go on. */
static int trail_window(struct trail *trail, uint64_t since, struct trail_pass *pass,
                        uint64_t *ret_next)
{
    struct store *store = trail->call->gateway->store;
    trail->count = 0;
    int rc = store_changes(store, trail->call, since, (uint32_t)(trail->until - since),
                           trail_note, trail);
    while (rc == NG_OK && trail->count > 0 && !pass->stop) {
        pass->seq = trail->numbers[--trail->count];
        rc = store_changes(store, trail->call, pass->seq - 1, 1, trail_pass, pass);
        *ret_next = pass->seq - 1;
    }
    if (rc == NG_OK && !pass->stop) {
        *ret_next = since;
    }
    return rc;
}

int trail_walk(struct call *call, const struct ng_trail *wanted, ng_event_fn *event, void *user,
               uint64_t *ret_next)
{
    struct store *store = call->gateway->store;
    struct trail trail = {.call = call, .wanted = wanted};
    struct trail_pass pass = {.event = event, .user = user};
    uint64_t last = u64_max(store_last_seq(store), store_look_seq(store));
    trail.until = u64_min(wanted->until, last);
    uint64_t least = trail.until - u64_min(trail.until, TRAIL_LOOKS_MAX);
    trail.numbers = calloc(TRAIL_WINDOW, sizeof(*trail.numbers));
    if (trail.numbers == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = NG_OK;
    while (rc == NG_OK && trail.until > u64_max(least, wanted->since) && !pass.stop) {
        uint64_t since = u64_max(trail.until - u64_min(trail.until, TRAIL_WINDOW),
                                 u64_max(least, wanted->since));
        rc = trail_window(&trail, since, &pass, &trail.until);
    }
    free(trail.numbers);
    *ret_next = trail.until > wanted->since ? trail.until : 0;
    return rc;
}
