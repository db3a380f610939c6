/* SPDX-License-Identifier: MIT */
/* cells_attached.c - which notebooks an agent has attached, which one is active, and which
 * cells are selected: kept as documents, and in memory to be asked without waiting. */
#include "cells_attached.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The documents' own space: their ids name agent and space. */
#define ATTACHED_SPACE "shared"
#define ATTACHED_PAGE 1000

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

/* With the lock held. `make`: where there is none. */
struct cells_owner *cells_owner_of(struct cells_attachments *all, struct ng_str key, bool make)
{
    for (struct cells_owner *owner = all->first; owner != NULL; owner = owner->next) {
        if (strlen(owner->key) == key.len && memcmp(owner->key, key.data, key.len) == 0) {
            return owner;
        }
    }
    struct cells_owner *owner = make ? calloc(1, sizeof(*owner)) : NULL;
    if (owner == NULL) {
        return NULL;
    }
    owner->key = cells_copy(key);
    owner->active = SIZE_MAX;
    if (owner->key == NULL) {
        free(owner);
        return NULL;
    }
    owner->next = all->first;
    all->first = owner;
    return owner;
}

static bool same(const char *text, struct ng_str other)
{
    return strlen(text) == other.len &&
           (other.len == 0 || memcmp(text, other.data, other.len) == 0);
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

/* ---- documents ---- */

/* The owner's state as JSON, with the lock held. */
static struct ng_str owner_json(struct ng_call *call, const struct cells_owner *owner)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    host->json_name(writer, "attached");
    host->json_array(writer);
    for (size_t i = 0; i < owner->count; i++) {
        const struct cells_attached *attached = &owner->items[i];
        host->json_object(writer);
        host->json_name(writer, "notebook");
        host->json_string(writer, ng_str_of(attached->path));
        host->json_name(writer, "real");
        host->json_string(writer, ng_str_of(attached->real));
        host->json_name(writer, "active");
        host->json_bool(writer, owner->active == i);
        host->json_name(writer, "selected");
        host->json_array(writer);
        for (char **at = attached->selected; at != NULL && *at != NULL; at++) {
            host->json_string(writer, ng_str_of(*at));
        }
        host->json_end(writer);
        if (attached->editing != NULL) {
            host->json_name(writer, "editing");
            host->json_string(writer, ng_str_of(attached->editing));
        }
        host->json_end(writer);
    }
    host->json_end(writer);
    host->json_end(writer);
    return host->json_result(writer);
}

static bool take_selected(const struct ng_host *host, const struct ng_value *ids, char ***ret)
{
    size_t count = host->json_count(ids);
    char **list = calloc(count + 1, sizeof(*list));
    size_t kept = 0;
    const struct ng_value *id = ids == NULL ? NULL : host->json_first(ids);
    for (; list != NULL && id != NULL; id = host->json_next(id)) {
        list[kept] = cells_copy(host->json_text(id));
        if (list[kept++] == NULL) {
            kernelspec_free_list(list);
            return false;
        }
    }
    *ret = list;
    return list != NULL;
}

static bool owner_load(const struct ng_host *host, struct cells_owner *owner,
                       const struct ng_value *body)
{
    const struct ng_value *list = host->json_get(body, "attached");
    const struct ng_value *item = list == NULL ? NULL : host->json_first(list);
    for (; item != NULL; item = host->json_next(item)) {
        struct cells_attached *attached =
            cells_attached_add(owner, host->json_text(host->json_get(item, "real")),
                               host->json_text(host->json_get(item, "notebook")));
        if (attached == NULL) {
            return false;
        }
        if (host->json_type(host->json_get(item, "active")) == NG_TYPE_TRUE) {
            owner->active = owner->count - 1;
        }
        struct ng_str editing = host->json_text(host->json_get(item, "editing"));
        attached->editing = editing.len > 0 ? cells_copy(editing) : NULL;
        if ((editing.len > 0 && attached->editing == NULL) ||
            !take_selected(host, host->json_get(item, "selected"), &attached->selected)) {
            return false;
        }
    }
    return true;
}

struct loading {
    struct ng_call *call;
    struct cells_attachments *all;
    int rc;
};

static int load_row(void *user, const struct ng_doc *row)
{
    struct loading *loading = user;
    const struct ng_host *host = loading->call->host;
    const struct ng_value *body = NULL;
    struct cells_owner *owner = cells_owner_of(loading->all, row->key.id, true);
    loading->rc = host->json_parse(loading->call, row->json, &body);
    if (loading->rc == NG_OK && (owner == NULL || !owner_load(host, owner, body))) {
        loading->rc = cells_no_memory(loading->call);
    }
    return loading->rc != NG_OK;
}

static void owner_free(struct cells_owner *owner)
{
    owner_clear(owner);
    free(owner->key);
    free(owner);
}

static void owners_free(struct cells_owner *first)
{
    while (first != NULL) {
        struct cells_owner *owner = first;
        first = owner->next;
        owner_free(owner);
    }
}

/* Reads all of it; what was read in part is forgotten. */
static int load_all(struct ng_call *call, struct cells_owner **ret)
{
    struct cells_attachments fresh = {.first = NULL};
    struct loading loading = {call, &fresh, NG_OK};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(CELLS_ATTACHED),
        .space = ng_str_of(ATTACHED_SPACE),
        .limit = ATTACHED_PAGE,
        .want_total = true,
    };
    uint64_t total = 0;
    int rc = NG_OK;
    do {
        rc = call->host->query(call, &query, load_row, &loading, &total);
        rc = rc != NG_OK ? rc : loading.rc;
        query.offset += ATTACHED_PAGE;
    } while (rc == NG_OK && query.offset < total);
    if (rc != NG_OK) {
        owners_free(fresh.first);
        return rc;
    }
    *ret = fresh.first;
    return NG_OK;
}

int cells_attachments_open(struct ng_call *call, struct cells_attachments **ret)
{
    struct cells_attachments *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return cells_no_memory(call);
    }
    (void)pthread_mutex_init(&all->lock, NULL);
    int rc = load_all(call, &all->first);
    all->unread = rc == NG_EUNAVAILABLE;
    if (rc != NG_OK && !all->unread) {
        cells_attachments_close(all);
        return rc;
    }
    *ret = all;
    return NG_OK;
}

int cells_attachments_read(struct ng_call *call, struct cells_attachments *all)
{
    struct cells_owner *first = NULL;
    (void)pthread_mutex_lock(&all->lock);
    bool unread = all->unread;
    (void)pthread_mutex_unlock(&all->lock);
    int rc = unread ? load_all(call, &first) : NG_OK;
    if (unread && rc == NG_OK) {
        (void)pthread_mutex_lock(&all->lock);
        if (all->unread) {
            all->unread = false;
            all->first = first;
            first = NULL;
        }
        (void)pthread_mutex_unlock(&all->lock);
        owners_free(first); /* another call was faster */
    }
    return rc;
}

void cells_owner_tidy(struct cells_attachments *all, struct cells_owner *owner)
{
    struct cells_owner **at = &all->first;
    while (owner->count == 0 && *at != NULL) {
        if (*at == owner) {
            *at = owner->next;
            owner_free(owner);
            return;
        }
        at = &(*at)->next;
    }
}

void cells_attachments_close(struct cells_attachments *all)
{
    if (all == NULL) {
        return;
    }
    owners_free(all->first);
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}

struct saving {
    struct cells_attachments *all;
    struct ng_str key;
};

/* What is in memory by now, so that of two changes at once the later one has both. */
static int write_state(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct saving *saving = user;
    struct ng_str json = {NULL, 0};
    (void)pthread_mutex_lock(&saving->all->lock);
    const struct cells_owner *owner = cells_owner_of(saving->all, saving->key, false);
    if (owner != NULL) {
        json = owner_json(call, owner);
    }
    (void)pthread_mutex_unlock(&saving->all->lock);
    if (owner == NULL) {
        if (present->revision > 0 && !present->deleted) {
            call->host->draft_delete(next);
        }
        return NG_OK;
    }
    return json.data == NULL ? cells_no_memory(call) : call->host->draft_json(next, json);
}

int cells_attached_save(struct ng_call *call, struct cells_attachments *all)
{
    struct saving *saving = ng_alloc(call, sizeof(*saving));
    if (saving == NULL) {
        return cells_no_memory(call);
    }
    saving->all = all;
    saving->key = cells_owner_key(call);
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(CELLS_ATTACHED), ng_str_of(ATTACHED_SPACE), saving->key},
        .fn = write_state,
        .user = saving,
    };
    return saving->key.data == NULL ? cells_no_memory(call) : ng_change_one(call, &change);
}

/* ---- asking ---- */

struct ng_str cells_active(struct cells *self, struct ng_call *call)
{
    struct cells_attachments *all = self->attachments;
    struct ng_str path = {NULL, 0};
    (void)pthread_mutex_lock(&all->lock);
    const struct cells_owner *owner = cells_owner_of(all, cells_owner_key(call), false);
    if (owner != NULL && owner->active < owner->count) {
        path = call->host->format(call, "%s", owner->items[owner->active].path);
    }
    (void)pthread_mutex_unlock(&all->lock);
    return path;
}

bool cells_listed_attached(void *user, struct ng_call *call)
{
    return cells_active(user, call).len > 0;
}

int cells_selection(struct cells *self, struct ng_call *call, struct ng_str real,
                    const char *handle)
{
    struct cells_attachments *all = self->attachments;
    int selection = 0;
    (void)pthread_mutex_lock(&all->lock);
    const struct cells_attached *attached =
        cells_attached_find(cells_owner_of(all, cells_owner_key(call), false), real);
    for (char **at = attached == NULL ? NULL : attached->selected; at != NULL && *at != NULL;
         at++) {
        selection = strcmp(*at, handle) == 0 ? 1 : selection;
    }
    if (attached != NULL && attached->editing != NULL &&
        strcmp(attached->editing, handle) == 0) {
        selection = 2;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return selection;
}
