/* SPDX-License-Identifier: MIT */
/* trail_runs.c - the runs with changes: as the backend has counted them, else by a walk over
 * all changes. */
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "trail.h"

struct runs {
    struct call *call;
    const struct ng_trail *wanted;
    ng_run_fn *run;
    void *user;
};

static bool runs_want(const struct runs *runs, const struct ng_run *row)
{
    const struct ng_trail *wanted = runs->wanted;
    const struct ng_key key = {row->collection, row->space, {NULL, 0}};
    const struct ng_collection *collection =
        store_collection(runs->call->gateway->store, row->collection);
    bool quiet = collection != NULL && (collection->flags & NG_COLLECTION_QUIET) != 0;
    return !quiet && row->run.len > 0 && trail_names_have(&wanted->runs, row->run) &&
           trail_names_have(&wanted->agents, row->agent) &&
           trail_names_have(&wanted->collections, row->collection) &&
           trail_names_have(&wanted->spaces, row->space) &&
           trail_sees(runs->call, wanted, &key);
}

static int runs_pass(void *user, const struct ng_run *row)
{
    struct runs *runs = user;
    return runs_want(runs, row) ? runs->run(runs->user, row) : 0;
}

/* A change is a row of its own. */
static int runs_pass_event(void *user, const struct ng_event *event)
{
    const struct ng_run row = {
        .size = sizeof(row),
        .run = event->origin.run_id,
        .agent = event->agent,
        .collection = event->key.collection,
        .space = event->key.space,
        .first_seq = event->seq,
        .last_seq = event->seq,
        .changes = 1,
    };
    return runs_pass(user, &row);
}

static int runs_walk(struct runs *runs)
{
    struct ng_trail trail = *runs->wanted;
    uint64_t next = trail.until;
    int rc = NG_OK;
    while (rc == NG_OK && next != 0) {
        trail.until = next;
        rc = trail_walk(runs->call, &trail, runs_pass_event, runs, &next);
        if (rc == NG_OK && runs->call->pub.host->cancelled(&runs->call->pub)) {
            rc = call_fail(runs->call, NG_ECANCELLED, "cancelled while runs were counted");
        }
    }
    return rc;
}

int trail_runs(struct call *call, const struct ng_trail *wanted, ng_run_fn *run, void *user)
{
    struct runs runs = {call, wanted, run, user};
    void *db = NULL;
    const struct ng_documents *backend = store_backend(call->gateway->store, &db);
    int rc = trail_check_spaces(call, wanted);
    if (rc != NG_OK) {
        return rc;
    }
    if (backend->runs == NULL) {
        return runs_walk(&runs);
    }
    return backend->runs(db, &call->pub, wanted->since, wanted->until, runs_pass, &runs);
}
