/* SPDX-License-Identifier: MIT */
/* cells_attached.c - cache of the notebooks that agents have attached, with the active one and
 * the selected cells: can be read without blocking. */
#include "cells_attached.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/str.h"

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

/* ---- cache ---- */

static bool same_active(const struct cells_owner *one, const struct cells_owner *other)
{
    bool first = one != NULL && one->active < one->count;
    bool second = other != NULL && other->active < other->count;
    return first == second;
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

struct ng_str cells_active(struct cells *self, struct ng_call *call)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str key = cells_owner_key(call);
    struct ng_str path = {NULL, 0};
    lock_take(&all->lock);
    const struct cells_owner *owner = *owner_place(all, key);
    if (owner != NULL && owner->active < owner->count) {
        struct ng_str active = owner->items[owner->active].path;
        path = call->host->format(call, "%.*s", (int)active.len, active.data);
    }
    lock_release(&all->lock);
    return path;
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
    if (request_poll(self->attachments, cells_owner_key(call))) {
        (void)call->host->background(call, cells_attachments_poll, self);
    }
    return cells_active(self, call).len > 0;
}
