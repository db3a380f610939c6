/* SPDX-License-Identifier: MIT */
/* cells_attached.c - cache of the notebooks that agents have attached, with the active one and
 * the selected cells: can be read without blocking. */
#include "cells_attached.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"

void cells_owner_free(struct cells_owner *owner)
{
    if (owner != NULL) {
        arena_done(&owner->memory);
        free(owner);
    }
}

/* With the lock held: the link to the owner, or the end of its list. */
static struct cells_owner **owner_place(struct cells_attachments *all, struct ng_str key)
{
    struct cells_owner **at = &all->owners[hash_fnv(HASH_FNV_BASIS, key) % CELLS_OWNER_LISTS];
    while (*at != NULL && !str_equal(key, (*at)->key)) {
        at = &(*at)->next;
    }
    return at;
}

struct cells_attached *cells_attached_find(const struct cells_owner *owner, struct ng_str real)
{
    for (size_t i = 0; owner != NULL && i < owner->count; i++) {
        if (str_equal(real, owner->items[i].real)) {
            return &owner->items[i];
        }
    }
    return NULL;
}

struct ng_str cells_owner_key(struct ng_call *call)
{
    const struct ng_caller *caller = call->caller;
    return call->host->format(call, "%.*s/%.*s", (int)caller->space.len, caller->space.data,
                              (int)caller->agent.len, caller->agent.data);
}

struct cells_active *cells_active_find(const struct cells_owner *owner, struct ng_str session)
{
    for (size_t i = 0; owner != NULL && i < owner->active_count; i++) {
        if (str_equal(session, owner->actives[i].session)) {
            return &owner->actives[i];
        }
    }
    return NULL;
}

bool cells_active_holds(const struct cells_active *active, int64_t now_ms)
{
    return active->lives && now_ms - active->used_ms < CELLS_ACTIVE_MS;
}

void cells_session(const struct ng_call *call, char session[CELLS_SESSION_SIZE])
{
    const struct ng_caller *caller = call->caller;
    session[0] = '\0';
    if (NG_HAS(caller, session) && caller->session.len > 0) {
        (void)snprintf(session, CELLS_SESSION_SIZE, "%016llx",
                       (unsigned long long)hash_fnv(HASH_FNV_BASIS, caller->session));
    }
}

/* ---- cache ---- */

/* Has each session that has an active notebook in `one` one in `other`? */
static bool actives_within(const struct cells_owner *one, const struct cells_owner *other,
                           int64_t now_ms)
{
    for (size_t i = 0; one != NULL && i < one->active_count; i++) {
        const struct cells_active *active = &one->actives[i];
        const struct cells_active *same = cells_active_find(other, active->session);
        if (cells_active_holds(active, now_ms) &&
            (same == NULL || !cells_active_holds(same, now_ms))) {
            return false;
        }
    }
    return true;
}

static bool same_active(const struct cells_owner *one, const struct cells_owner *other)
{
    int64_t now_ms = clock_unix_ms();
    return actives_within(one, other, now_ms) && actives_within(other, one, now_ms);
}

bool cells_attachments_put(struct cells_attachments *all, struct cells_owner *fresh)
{
    struct cells_owner *old = fresh; /* to be freed */
    bool listed_otherwise = false;
    lock_take(&all->lock);
    struct cells_owner **at = owner_place(all, fresh->key);
    if (*at == NULL || (*at)->ticket <= fresh->ticket) {
        old = *at;
        listed_otherwise = !same_active(old, fresh);
        if (old != NULL) {
            *at = old->next;
        }
        if (fresh->count > 0) {
            fresh->next = *at;
            *at = fresh;
        } else {
            cells_owner_free(fresh);
        }
    }
    lock_release(&all->lock);
    cells_owner_free(old);
    return listed_otherwise;
}

uint64_t cells_attachments_ticket(struct cells_attachments *all)
{
    lock_take(&all->lock);
    uint64_t ticket = ++all->tickets;
    lock_release(&all->lock);
    return ticket;
}

void cells_attachments_close(struct cells_attachments *all)
{
    if (all == NULL) {
        return;
    }
    for (size_t i = 0; i < CELLS_OWNER_LISTS; i++) {
        while (all->owners[i] != NULL) {
            struct cells_owner *owner = all->owners[i];
            all->owners[i] = owner->next;
            cells_owner_free(owner);
        }
    }
    for (size_t i = 0; i < CELLS_ASKED_MAX; i++) {
        free(all->asked[i].key);
    }
    lock_done(&all->lock);
    free(all);
}

/* ---- queries ---- */

struct ng_str cells_active_path(struct cells *self, struct ng_call *call, int64_t *ret_used)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str key = cells_owner_key(call);
    struct ng_str path = {NULL, 0};
    char session[CELLS_SESSION_SIZE];
    cells_session(call, session);
    lock_take(&all->lock);
    const struct cells_owner *owner = *owner_place(all, key);
    const struct cells_active *active = cells_active_find(owner, ng_str_of(session));
    if (active != NULL && cells_active_holds(active, clock_unix_ms())) {
        const struct cells_attached *attached = cells_attached_find(owner, active->real);
        if (attached != NULL) {
            path =
                call->host->format(call, "%.*s", (int)attached->path.len, attached->path.data);
            *ret_used = active->used_ms;
        }
    }
    lock_release(&all->lock);
    return path;
}

size_t cells_recent(struct cells *self, struct ng_call *call, struct ng_str *ret_paths)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str key = cells_owner_key(call);
    struct ng_str paths = ng_str_of("");
    size_t count = 0;
    int64_t since_ms = clock_unix_ms() - CELLS_ACTIVE_MS;
    lock_take(&all->lock);
    const struct cells_owner *owner = *owner_place(all, key);
    for (size_t i = 0; owner != NULL && i < owner->count; i++) {
        const struct cells_attached *attached = &owner->items[i];
        if (attached->used_ms > since_ms) {
            paths = call->host->format(call, "%.*s%s%.*s", (int)paths.len, paths.data,
                                       text_if(count > 0, ", "), (int)attached->path.len,
                                       attached->path.data);
            count++;
        }
    }
    lock_release(&all->lock);
    *ret_paths = paths;
    return count;
}

int cells_selection(struct cells *self, struct ng_call *call, struct ng_str real,
                    const char *handle)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str key = cells_owner_key(call);
    int selection = 0;
    lock_take(&all->lock);
    const struct cells_attached *attached = cells_attached_find(*owner_place(all, key), real);
    for (size_t i = 0; attached != NULL && i < attached->selected_count; i++) {
        selection |= str_is(attached->selected[i], handle);
    }
    if (attached != NULL && str_is(attached->editing, handle)) {
        selection = 2;
    }
    lock_release(&all->lock);
    return selection;
}

/* ---- tool lists ---- */

/* Schedules a poll of the owner's document, unless there was one recently. */
static bool request_poll(struct cells_attachments *all, struct ng_str key)
{
    int64_t now = clock_uptime_ms();
    bool asks = false;
    lock_take(&all->lock);
    struct cells_poll *asked = &all->asked[hash_fnv(HASH_FNV_BASIS, key) % CELLS_ASKED_MAX];
    if (asked->at_ms == 0 || now - asked->at_ms >= CELLS_LISTED_MS) {
        char *copy = str_dup(key);
        if (copy != NULL) {
            free(asked->key);
            asked->key = copy;
            asked->at_ms = now;
            asks = true;
        }
    }
    lock_release(&all->lock);
    return asks;
}

char *cells_attachments_next_poll(struct cells_attachments *all)
{
    char *key = NULL;
    lock_take(&all->lock);
    for (size_t i = 0; i < CELLS_ASKED_MAX && key == NULL; i++) {
        key = all->asked[i].key;
        all->asked[i].key = NULL;
    }
    lock_release(&all->lock);
    return key;
}

/* Tool lists must not block, so they use the cache. If other gateways share the documents it
 * may be stale: poll in the background, and notify clients if the list has changed. */
bool cells_listed_attached(void *user, struct ng_call *call)
{
    struct cells *self = user;
    if (self->lists_always) {
        return true;
    }
    if (request_poll(self->attachments, cells_owner_key(call))) {
        (void)call->host->background(call, cells_attachments_poll, self);
    }
    int64_t used_ms = 0;
    return cells_active_path(self, call, &used_ms).len > 0;
}
