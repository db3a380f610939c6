/* SPDX-License-Identifier: MIT */
/* trail_ask.c - the changes of all documents, newest first, of a backend that has trail(). It
 * is asked for what the call may see only, and each change that it passes is checked. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/dispatch/dispatch.h"
#include "core/store/store.h"
#include "trail.h"

struct asked {
    struct call *call;
    const struct ng_trail *wanted;
    ng_event_fn *event;
    void *user;
    uint64_t until; /* changes above it were passed */
    bool stopped;   /* by the callback */
};

static int asked_take(void *user, const struct ng_event *event)
{
    struct asked *asked = user;
    if (event->seq > asked->until || event->seq <= asked->wanted->since) {
        return 0;
    }
    asked->until = event->seq - 1;
    if (trail_wants(asked->wanted, event) &&
        trail_sees(asked->call, asked->wanted, &event->key)) {
        asked->stopped = asked->event(asked->user, event) != 0;
    }
    return asked->stopped;
}

/* Those of the collections that the call may see, in its memory; `names`: none are all. */
static int seen_collections(struct call *call, struct ng_names *names)
{
    struct store *store = call->gateway->store;
    const struct ng_names given = *names;
    size_t count = given.count;
    while (given.count == 0 && store_collection_at(store, count) != NULL) {
        count++;
    }
    struct ng_str *items = arena_alloc(&call->arena, (count + 1) * sizeof(*items));
    if (items == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    *names = (struct ng_names){items, 0};
    for (size_t i = 0; i < count; i++) {
        struct ng_str name =
            given.count > 0 ? given.items[i] : ng_str_of(store_collection_at(store, i)->name);
        if (dispatch_sees_collection(call, name)) {
            items[names->count++] = name;
        }
    }
    return NG_OK;
}

/* Narrows the filter to what the call may see. *ret_any: there may be such a change. */
static int trail_narrow(struct call *call, struct ng_trail *trail, bool *ret_any)
{
    const struct ng_caller *caller = &call->caller;
    int rc = NG_OK;
    *ret_any = true;
    if (trail->spaces.count == 0 && !caller->all_spaces) {
        trail->spaces = (struct ng_names){caller->spaces, caller->space_count};
        *ret_any = caller->space_count > 0;
    }
    if (key_limits_tools(call->key)) {
        rc = seen_collections(call, &trail->collections);
        *ret_any = *ret_any && trail->collections.count > 0;
    }
    return rc;
}

int trail_ask(struct call *call, const struct ng_trail *wanted, ng_event_fn *event, void *user,
              uint64_t *ret_next)
{
    struct asked asked = {call, wanted, event, user, wanted->until, false};
    struct ng_trail trail = *wanted;
    uint64_t next = 0;
    bool any = false;
    int rc = trail_narrow(call, &trail, &any);
    if (rc == NG_OK && any) {
        rc = store_trail(call->gateway->store, call, &trail, TRAIL_LOOKS_MAX, asked_take,
                         &asked, &next);
    }
    next = asked.stopped ? asked.until : u64_min(next, wanted->until - 1);
    *ret_next = next > wanted->since ? next : 0;
    return rc;
}
