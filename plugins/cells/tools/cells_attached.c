/* SPDX-License-Identifier: MIT */
/* cells_attached.c - which notebooks an agent has attached, which one is active, and which
 * cells are selected: what is known of it in memory, to be asked without waiting. */
#include "cells_attached.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/lock.h"

void cells_attached_done(struct cells_attached *attached)
{
    free(attached->real);
    free(attached->path);
    kernelspec_free_list(attached->selected);
    free(attached->editing);
}

static void owner_clear(struct cells_owner *owner)
{
    for (size_t i = 0; i < owner->count; i++) {
        cells_attached_done(&owner->items[i]);
    }
    free(owner->items);
    owner->items = NULL;
    owner->count = 0;
    owner->active = SIZE_MAX;
}

char *cells_copy(struct ng_str text)
{
    char *copy = malloc(text.len + 1);
    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\0';
    }
    return copy;
}

static bool same(const char *text, struct ng_str other)
{
    return strlen(text) == other.len &&
           (other.len == 0 || memcmp(text, other.data, other.len) == 0);
}

void cells_owner_free(struct cells_owner *owner)
{
    if (owner != NULL) {
        owner_clear(owner);
        free(owner->key);
        free(owner);
    }
}

struct cells_owner *cells_owner_new(struct ng_str key)
{
    struct cells_owner *owner = calloc(1, sizeof(*owner));
    if (owner == NULL) {
        return NULL;
    }
    owner->active = SIZE_MAX;
    owner->key = cells_copy(key);
    if (owner->key == NULL) {
        free(owner);
        return NULL;
    }
    return owner;
}

static uint64_t hash_of(struct ng_str key)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < key.len; i++) {
        hash = (hash ^ (unsigned char)key.data[i]) * 1099511628211u;
    }
    return hash;
}

/* With the lock held: where the owner is, or the end of its list. */
static struct cells_owner **owner_place(struct cells_attachments *all, struct ng_str key)
{
    struct cells_owner **at = &all->owners[hash_of(key) % CELLS_OWNER_LISTS];
    while (*at != NULL && !same((*at)->key, key)) {
        at = &(*at)->next;
    }
    return at;
}

struct cells_attached *cells_attached_find(const struct cells_owner *owner, struct ng_str real)
{
    for (size_t i = 0; owner != NULL && i < owner->count; i++) {
        if (same(owner->items[i].real, real)) {
            return &owner->items[i];
        }
    }
    return NULL;
}

struct cells_attached *cells_attached_add(struct cells_owner *owner, struct ng_str real,
                                          struct ng_str path)
{
    struct cells_attached *items =
        owner->count == CELLS_ATTACHED_MAX
            ? NULL
            : realloc(owner->items, (owner->count + 1) * sizeof(*items));
    if (items == NULL) {
        return NULL;
    }
    owner->items = items;
    struct cells_attached *attached = &items[owner->count];
    memset(attached, 0, sizeof(*attached));
    attached->real = cells_copy(real);
    attached->path = cells_copy(path);
    if (attached->real == NULL || attached->path == NULL) {
        cells_attached_done(attached);
        return NULL;
    }
    owner->count++;
    return attached;
}

struct ng_str cells_owner_key(struct ng_call *call)
{
    const struct ng_caller *caller = call->caller;
    return call->host->format(call, "%.*s/%.*s", (int)caller->space.len, caller->space.data,
                              (int)caller->agent.len, caller->agent.data);
}

/* ---- what is known ---- */

static bool same_active(const struct cells_owner *one, const struct cells_owner *other)
{
    bool first = one != NULL && one->active < one->count;
    bool second = other != NULL && other->active < other->count;
    return first == second;
}

bool cells_attachments_put(struct cells_attachments *all, struct cells_owner *fresh)
{
    struct cells_owner *old = fresh; /* what is to be freed */
    bool listed_otherwise = false;
    lock_take(&all->lock);
    struct cells_owner **at = owner_place(all, ng_str_of(fresh->key));
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

/* ---- asking ---- */

struct ng_str cells_active(struct cells *self, struct ng_call *call)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str key = cells_owner_key(call);
    struct ng_str path = {NULL, 0};
    lock_take(&all->lock);
    const struct cells_owner *owner = *owner_place(all, key);
    if (owner != NULL && owner->active < owner->count) {
        path = call->host->format(call, "%s", owner->items[owner->active].path);
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
    for (char **at = attached == NULL ? NULL : attached->selected; at != NULL && *at != NULL;
         at++) {
        selection = strcmp(*at, handle) == 0 ? 1 : selection;
    }
    if (attached != NULL && attached->editing != NULL &&
        strcmp(attached->editing, handle) == 0) {
        selection = 2;
    }
    lock_release(&all->lock);
    return selection;
}

/* ---- lists ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Notes that the owner's document is to be looked at, if that was not done just now. */
static bool request_poll(struct cells_attachments *all, struct ng_str key)
{
    int64_t now = now_ms();
    bool asks = false;
    lock_take(&all->lock);
    struct cells_poll *asked = &all->asked[hash_of(key) % CELLS_ASKED_MAX];
    if (asked->at_ms == 0 || now - asked->at_ms >= CELLS_LISTED_MS) {
        char *copy = cells_copy(key);
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

/* Lists are made where nothing may wait: of what is known. Where other gateways work on the
 * same documents that may be old, so it is looked at behind the list's back, and told if it
 * was. */
bool cells_listed_attached(void *user, struct ng_call *call)
{
    struct cells *self = user;
    if (request_poll(self->attachments, cells_owner_key(call))) {
        (void)call->host->background(call, cells_attachments_poll, self);
    }
    return cells_active(self, call).len > 0;
}
