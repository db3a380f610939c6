/* SPDX-License-Identifier: MIT */
/* cells_lease.c - leases of calls: taken before a run, checked before its outputs are saved,
 * and the answer if another gateway has one. */
#include "cells_lease.h"
#include "cells_lease_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Attempts to take a lease that others take and release at the same time. */
#define LEASE_ATTEMPTS 16
/* Time in which this gateway's heartbeat must come back: at its start, and after a stop. */
#define LEASE_TERM_MS 5000
#define LEASE_TERM_PAUSE_NS 20000000L
/* Digits of a run's handle in front of the name of its gateway. */
#define LEASE_RUN_DIGITS 16

/* ---- the document ---- */

/* The document of a lease, and its gateway. */
struct lease_view {
    uint64_t revision;
    struct ng_str gateway; /* absent: none */
    struct ng_str where;
    bool mine;
    bool alive; /* of another gateway */
};

static int lease_view(struct cells *self, struct ng_call *call, const char *id,
                      struct lease_view *ret)
{
    const struct ng_host *host = call->host;
    const struct ng_doc *doc = NULL;
    struct ng_key key = lease_key(id);
    memset(ret, 0, sizeof(*ret));
    int rc = host->get(call, &key, 0, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    ret->revision = doc->revision;
    if (doc->revision == 0 || doc->deleted) {
        return NG_OK;
    }
    ret->gateway = host->json_text(host->json_get(doc->body, "gateway"));
    ret->mine = str_equal(ret->gateway, self->leases->name);
    if (ret->mine || ret->gateway.len == 0) {
        return NG_OK;
    }
    return host->gateway_find(call, ret->gateway, &ret->alive, &ret->where);
}

static int take_now(struct cells *self, struct ng_call *call, struct lease *lease,
                    uint64_t revision, bool *ret_taken)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct lease_write *write = ng_alloc(call, sizeof(*write));
    if (writer == NULL || write == NULL) {
        return cells_no_memory(call);
    }
    host->json_object(writer);
    host->json_name(writer, "gateway");
    host->json_string(writer, self->leases->name);
    if (utf8_valid(ng_str_of(lease->notebook))) {
        host->json_name(writer, "notebook");
        host->json_string(writer, ng_str_of(lease->notebook));
    }
    host->json_end(writer);
    *write = (struct lease_write){.deed = LEASE_TAKE,
                                  .revision = revision,
                                  .json = host->json_result(writer),
                                  .leases = self->leases};
    struct ng_change change = {
        .size = sizeof(change), .key = lease_key(lease->id), .fn = lease_change, .user = write};
    if (write->json.data == NULL) {
        return cells_no_memory(call);
    }
    int rc = host->change_wait(call, &change, 1);
    if (rc == NG_OK && write->beaten) {
        return rc;
    }
    lock_take(&self->leases->lock);
    if (rc != NG_OK) { /* it may have been made: its release deletes it */
        lease->undeleted = u64_max(lease->undeleted, revision + 1);
        lock_release(&self->leases->lock);
        return rc;
    }
    if (lease->revision <= revision) { /* two runs may take it one after the other */
        lease->revision = revision + 1;
        lease->undeleted = 0;
    }
    lock_release(&self->leases->lock);
    *ret_taken = true;
    return NG_OK;
}

/* ---- the kernel is on another gateway ---- */

/* All calls for a kernel or a run of another gateway end here: the one place to forward them
 * from. */
static int fail_elsewhere(struct ng_call *call, const char *what, struct ng_str gateway,
                          struct ng_str where)
{
    const struct ng_host *host = call->host;
    const char *at = "";
    if (where.len > 0) {
        at = " at ";
    }
    int rc = ng_fail(call, CELLS_EELSEWHERE, "%s runs on another gateway: %.*s%s%.*s", what,
                     (int)gateway.len, gateway.data, at, (int)where.len, where.data);
    host->hint(call,
               "Send the call to that gateway. The kernel moves to another one only after "
               "it has ended: when it was idle for cells.idle_timeout, when that gateway "
               "stops, or some seconds after its death");
    struct ng_writer *details = host->details(call);
    host->json_object(details);
    host->json_name(details, "gateway");
    host->json_string(details, gateway);
    if (where.len > 0) {
        host->json_name(details, "address");
        host->json_string(details, where);
    }
    host->json_end(details);
    return rc;
}

static int fail_kernel_elsewhere(struct ng_call *call, const struct lease_view *view)
{
    return fail_elsewhere(call, "The kernel of this notebook", view->gateway, view->where);
}

int cells_lease_find(struct cells *self, struct ng_call *call, struct ng_str notebook)
{
    char id[SHA256_HEX_SIZE];
    struct lease_view view;
    if (self->leases == NULL) {
        return NG_OK;
    }
    if (!lease_id(notebook, id)) {
        return cells_no_memory(call);
    }
    int rc = lease_view(self, call, id, &view);
    if (rc == NG_OK && view.alive) {
        rc = fail_kernel_elsewhere(call, &view);
    }
    return rc;
}

void cells_lease_name_run(struct cells *self, char id[CELLS_RUN_ID_SIZE])
{
    if (self->leases != NULL) {
        (void)snprintf(id + LEASE_RUN_DIGITS, CELLS_RUN_ID_SIZE - LEASE_RUN_DIGITS, "-%.*s",
                       (int)self->leases->name.len, self->leases->name.data);
    }
}

int cells_lease_find_run(struct cells *self, struct ng_call *call, struct ng_str id)
{
    const struct cells_leases *leases = self->leases;
    bool alive = false;
    struct ng_str where;
    if (leases == NULL || id.len != LEASE_RUN_DIGITS + 1 + leases->name.len) {
        return NG_OK;
    }
    struct ng_str gateway = str_make(id.data + LEASE_RUN_DIGITS + 1, leases->name.len);
    if (str_equal(gateway, leases->name)) {
        return NG_OK;
    }
    int rc = call->host->gateway_find(call, gateway, &alive, &where);
    if (rc == NG_OK && alive) {
        rc = fail_elsewhere(call, "This run", gateway, where);
    }
    return rc;
}

/* ---- taking and checking ---- */

/* Until others cannot take over what this gateway takes. */
static int wait_for_term(struct ng_call *call)
{
    const struct timespec pause = {0, LEASE_TERM_PAUSE_NS};
    int64_t until = lease_now_ms() + LEASE_TERM_MS;
    while (call->host->gateway_term(call->host) == 0) {
        if (lease_now_ms() >= until || call->host->cancelled(call)) {
            return ng_fail(call, NG_EUNAVAILABLE,
                           "This gateway cannot reach the database, and others may take over "
                           "its kernels; try again");
        }
        (void)nanosleep(&pause, NULL);
    }
    return NG_OK;
}

/* The revision that the lease stands on; 0: none. Not while it is released. */
static uint64_t lease_held(struct cells_leases *leases, const struct lease *lease)
{
    lock_take(&leases->lock);
    while (lease->releasing) {
        lock_wait(&leases->changed, &leases->lock);
    }
    uint64_t held = lease->revision;
    lock_release(&leases->lock);
    return held;
}

static bool has_lease(struct cells_leases *leases, const struct lease *lease,
                      const struct lease_view *view)
{
    lock_take(&leases->lock);
    bool has = view->mine && lease->revision == view->revision;
    lock_release(&leases->lock);
    return has;
}

static int take(struct cells *self, struct ng_call *call, struct lease *lease)
{
    struct lease_view view;
    bool taken = false;
    int rc = wait_for_term(call);
    for (int i = 0; i < LEASE_ATTEMPTS && rc == NG_OK && !taken; i++) {
        uint64_t held = lease_held(self->leases, lease);
        rc = lease_view(self, call, lease->id, &view);
        if (rc != NG_OK || has_lease(self->leases, lease, &view)) {
            return rc;
        }
        if (!view.mine) { /* also where the other gateway has released it since */
            lease_lose(self->leases, lease, held);
        }
        if (view.alive) {
            return fail_kernel_elsewhere(call, &view);
        }
        if (view.gateway.len > 0 && !view.mine) {
            kernels_lose(self->kernels, lease->notebook); /* with its gateway */
        }
        rc = take_now(self, call, lease, view.revision, &taken);
    }
    if (rc == NG_OK && !taken) {
        rc = ng_fail(call, NG_EBUSY,
                     "Other gateways start the kernel of this notebook; try "
                     "again in a moment");
    }
    return rc;
}

int cells_lease_take(struct cells *self, struct ng_call *call, struct ng_str notebook,
                     unsigned *ret_losses)
{
    struct cells_leases *leases = self->leases;
    if (leases == NULL) {
        return NG_OK;
    }
    struct lease *lease = lease_use(leases, notebook);
    if (lease == NULL) {
        return cells_no_memory(call);
    }
    int rc = take(self, call, lease);
    lock_take(&leases->lock);
    *ret_losses = lease->losses;
    lock_release(&leases->lock);
    if (rc != NG_OK) {
        lease_leave(leases, notebook);
    }
    return rc;
}

int cells_lease_check(struct cells *self, struct ng_call *call, struct ng_str notebook,
                      unsigned losses)
{
    struct cells_leases *leases = self->leases;
    struct lease_view view;
    if (leases == NULL) {
        return NG_OK;
    }
    lock_take(&leases->lock);
    struct lease *lease = lease_of(leases, notebook); /* the run uses it */
    bool lost = lease->losses != losses;
    uint64_t held = lease->revision;
    lock_release(&leases->lock);
    int rc = wait_for_term(call);
    if (rc == NG_OK) {
        rc = lease_view(self, call, lease->id, &view);
    }
    if (rc != NG_OK) {
        return rc;
    }
    bool has = has_lease(leases, lease, &view);
    if (has && !lost) {
        return NG_OK;
    }
    if (!has) {
        lease_lose(leases, lease, held);
    }
    if (view.alive) {
        return fail_kernel_elsewhere(call, &view);
    }
    return ng_fail(call, CELLS_EELSEWHERE,
                   "Another gateway has taken over the kernel of this notebook");
}

/* ---- the list ---- */

struct others_state {
    struct cells *self;
    struct ng_call *call;
    struct cells_other *items;
    size_t count;
    int rc;
};

static int add_other(void *user, const struct ng_doc *row)
{
    struct others_state *state = user;
    const struct ng_host *host = state->call->host;
    const struct ng_value *body = NULL;
    state->rc = host->json_parse(state->call, row->json, &body);
    if (state->rc != NG_OK) {
        return 1;
    }
    struct cells_other *other = &state->items[state->count];
    other->gateway = host->json_text(host->json_get(body, "gateway"));
    other->notebook = host->json_text(host->json_get(body, "notebook"));
    if (other->notebook.len > 0 && !str_equal(other->gateway, state->self->leases->name)) {
        state->count++;
    }
    return state->count == CELLS_OTHERS_MAX;
}

int cells_lease_others(struct cells *self, struct ng_call *call, struct cells_other **ret,
                       size_t *ret_count)
{
    *ret_count = 0;
    if (self->leases == NULL) {
        return NG_OK;
    }
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CELLS_LEASES),
        .space = ng_str_of(CELLS_LEASES_SPACE),
        .limit = CELLS_OTHERS_MAX,
    };
    struct others_state state = {.self = self, .call = call};
    state.items = ng_alloc(call, CELLS_OTHERS_MAX * sizeof(*state.items));
    if (state.items == NULL) {
        return cells_no_memory(call);
    }
    int rc = call->host->query(call, &query, add_other, &state, NULL);
    if (rc == NG_OK) {
        rc = state.rc;
    }
    for (size_t i = 0; i < state.count && rc == NG_OK; i++) {
        struct cells_other *other = &state.items[i];
        bool alive = false;
        rc = call->host->gateway_find(call, other->gateway, &alive, &other->where);
        state.items[*ret_count] = *other;
        *ret_count += alive;
    }
    *ret = state.items;
    return rc;
}
