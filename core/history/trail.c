/* SPDX-License-Identifier: MIT */
/*
 * trail.c - the changes of all documents, newest first. A backend without trail() gives them
 * oldest first: they are read in windows of numbers, from the newest window on. Of a window the
 * newest of the wanted changes are kept; if there are more, the next window ends at the oldest
 * of these.
 */
#include "trail.h"

#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatch_space.h"
#include "core/store/event_copy.h"
#include "core/store/store.h"

/* Numbers of the first window; the next ones are twice as large, up to the last. */
#define TRAIL_WINDOW ((uint64_t)256)
#define TRAIL_WINDOW_MAX ((uint64_t)8192)
/* Wanted changes of a window that are kept. */
#define TRAIL_KEPT ((size_t)256)

/* A change that is wanted. */
struct trail_event {
    struct ng_event event; /* into texts */
    char texts[];
};

struct trail {
    struct call *call;
    const struct ng_trail *wanted;
    uint64_t until; /* of the window */
    int rc;
    size_t count;                         /* wanted changes of the window */
    struct trail_event *kept[TRAIL_KEPT]; /* a ring of the newest of them */
};

bool trail_names_have(const struct ng_names *names, struct ng_str text)
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

bool trail_wants(const struct ng_trail *wanted, const struct ng_event *event)
{
    return trail_names_have(&wanted->runs, event->origin.run_id) &&
           trail_names_have(&wanted->agents, event->agent) &&
           trail_names_have(&wanted->tools, event->tool) &&
           trail_names_have(&wanted->actions, event->action) &&
           trail_names_have(&wanted->collections, event->key.collection) &&
           trail_names_have(&wanted->spaces, event->key.space) &&
           id_fits(wanted, event->key.id);
}

int trail_check_spaces(struct call *call, const struct ng_trail *wanted)
{
    int rc = NG_OK;
    for (size_t i = 0; i < wanted->spaces.count && rc == NG_OK; i++) {
        if (!dispatch_may_use_space(call, wanted->spaces.items[i])) {
            rc = dispatch_refuse_space(call, wanted->spaces.items[i]);
        }
    }
    return rc;
}

bool trail_sees(struct call *call, const struct ng_trail *wanted, const struct ng_key *key)
{
    const struct ng_caller *caller = &call->caller;
    bool sees = caller->all_spaces || call_has_space(caller, key->space) ||
                (wanted->spaces.count > 0 && dispatch_may_use_space(call, key->space));
    return sees && dispatch_sees_collection(call, key->collection);
}

static int trail_keep(void *user, const struct ng_event *event)
{
    struct trail *trail = user;
    if (event->seq > trail->until) {
        return 1;
    }
    if (!trail_wants(trail->wanted, event) ||
        !trail_sees(trail->call, trail->wanted, &event->key)) {
        return 0;
    }
    struct trail_event *kept = alloc_bytes(sizeof(*kept) + event_texts(event));
    if (kept == NULL) {
        trail->rc = call_fail(trail->call, NG_EINTERNAL, "out of memory");
        return 1;
    }
    event_copy(event, kept->texts, &kept->event);
    struct trail_event **place = &trail->kept[trail->count++ % TRAIL_KEPT];
    free(*place);
    *place = kept;
    return 0;
}

/* Reads the numbers above `since`. */
static int trail_read(struct trail *trail, uint64_t since)
{
    trail->count = 0;
    int rc = store_changes(trail->call->gateway->store, trail->call, since,
                           (uint32_t)(trail->until - since), trail_keep, trail);
    return rc == NG_OK ? trail->rc : rc;
}

/* Passes those that are kept, newest first. True: the callback wants no more. trail->until
 * moves to where the walk goes on. */
static bool trail_pass(struct trail *trail, uint64_t since, ng_event_fn *event, void *user)
{
    size_t kept = size_min(trail->count, TRAIL_KEPT);
    bool stop = false;
    for (size_t i = 0; i < kept && !stop; i++) {
        const struct trail_event *at = trail->kept[(trail->count - 1 - i) % TRAIL_KEPT];
        stop = event(user, &at->event) != 0;
        trail->until = at->event.seq - 1;
    }
    if (!stop && kept == trail->count) {
        trail->until = since;
    }
    return stop;
}

int trail_settle(struct call *call)
{
    struct store *store = call->gateway->store;
    if (!store_is_shared(store)) {
        return NG_OK;
    }
    int rc = store_settle(store, call, 0, TRAIL_SETTLE_MS);
    return rc == NG_ETIMEOUT ? NG_OK : rc;
}

/* Without trail() of the backend. */
static int trail_read_all(struct call *call, const struct ng_trail *wanted, ng_event_fn *event,
                          void *user, uint64_t *ret_next)
{
    struct trail trail = {.call = call, .wanted = wanted, .until = wanted->until};
    bool stop = false;
    int rc = NG_OK;
    uint64_t least = trail.until - u64_min(trail.until, TRAIL_LOOKS_MAX);
    uint64_t end = u64_max(least, wanted->since);
    uint64_t window = TRAIL_WINDOW;
    while (rc == NG_OK && trail.until > end && !stop) {
        uint64_t since = u64_max(trail.until - u64_min(trail.until, window), end);
        rc = trail_read(&trail, since);
        stop = rc != NG_OK || trail_pass(&trail, since, event, user);
        window = u64_min(window * 2, TRAIL_WINDOW_MAX);
    }
    for (size_t i = 0; i < TRAIL_KEPT; i++) {
        free(trail.kept[i]);
    }
    *ret_next = trail.until > wanted->since ? trail.until : 0;
    return rc;
}

int trail_walk(struct call *call, const struct ng_trail *wanted, ng_event_fn *event, void *user,
               uint64_t *ret_next)
{
    struct store *store = call->gateway->store;
    struct ng_trail trail = *wanted;
    void *db = NULL;
    int rc = trail_check_spaces(call, wanted);
    *ret_next = 0;
    if (rc == NG_OK && wanted->until == UINT64_MAX) {
        rc = trail_settle(call);
    }
    trail.until = u64_min(wanted->until, u64_max(store_last_seq(store), store_look_seq(store)));
    if (rc != NG_OK || trail.until <= trail.since) {
        return rc;
    }
    if (store_backend(store, &db)->trail != NULL) {
        return trail_ask(call, &trail, event, user, ret_next);
    }
    return trail_read_all(call, &trail, event, user, ret_next);
}
