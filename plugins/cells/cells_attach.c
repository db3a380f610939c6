/* SPDX-License-Identifier: MIT */
/* cells_attach.c - which notebooks an agent has attached, which one is active, and which cells
 * are selected: kept as documents, and in memory to be asked without waiting. */
#include "cells.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The documents' own space: their ids name agent and space. */
#define ATTACHED_SPACE "shared"
#define ATTACHED_PAGE 1000

struct attached {
    char *path;
    char **selected; /* handles; NULL at the end */
    char *editing;   /* the one that is being edited, or NULL */
};

struct owner {
    struct owner *next;
    char *key; /* "space/agent" */
    struct attached *items;
    size_t count;
    size_t active; /* SIZE_MAX: none */
};

struct cells_attachments {
    pthread_mutex_t lock;
    struct owner *first;
};

static void attached_done(struct attached *attached)
{
    free(attached->path);
    kernelspec_free_list(attached->selected);
    free(attached->editing);
}

static void owner_clear(struct owner *owner)
{
    for (size_t i = 0; i < owner->count; i++) {
        attached_done(&owner->items[i]);
    }
    free(owner->items);
    owner->items = NULL;
    owner->count = 0;
    owner->active = SIZE_MAX;
}

static char *copy_of(struct ng_str text)
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
static struct owner *owner_of(struct cells_attachments *all, struct ng_str key, bool make)
{
    for (struct owner *owner = all->first; owner != NULL; owner = owner->next) {
        if (strlen(owner->key) == key.len && memcmp(owner->key, key.data, key.len) == 0) {
            return owner;
        }
    }
    struct owner *owner = make ? calloc(1, sizeof(*owner)) : NULL;
    if (owner == NULL) {
        return NULL;
    }
    owner->key = copy_of(key);
    owner->active = SIZE_MAX;
    if (owner->key == NULL) {
        free(owner);
        return NULL;
    }
    owner->next = all->first;
    all->first = owner;
    return owner;
}

static struct attached *attached_find(const struct owner *owner, struct ng_str path)
{
    for (size_t i = 0; owner != NULL && i < owner->count; i++) {
        if (strlen(owner->items[i].path) == path.len &&
            memcmp(owner->items[i].path, path.data, path.len) == 0) {
            return &owner->items[i];
        }
    }
    return NULL;
}

/* NULL: out of memory, or too many. */
static struct attached *attached_add(struct owner *owner, struct ng_str path)
{
    struct attached *items = owner->count == CELLS_ATTACHED_MAX
                                 ? NULL
                                 : realloc(owner->items, (owner->count + 1) * sizeof(*items));
    if (items == NULL) {
        return NULL;
    }
    owner->items = items;
    struct attached *attached = &items[owner->count];
    memset(attached, 0, sizeof(*attached));
    attached->path = copy_of(path);
    if (attached->path == NULL) {
        return NULL;
    }
    owner->count++;
    return attached;
}

static struct ng_str key_of(struct ng_call *call)
{
    const struct ng_caller *caller = call->caller;
    return call->host->format(call, "%.*s/%.*s", (int)caller->space.len, caller->space.data,
                              (int)caller->agent.len, caller->agent.data);
}

/* ---- documents ---- */

/* The owner's state as JSON, with the lock held. */
static struct ng_str owner_json(struct ng_call *call, const struct owner *owner)
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
        const struct attached *attached = &owner->items[i];
        host->json_object(writer);
        host->json_name(writer, "notebook");
        host->json_string(writer, ng_str_of(attached->path));
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
        list[kept] = copy_of(host->json_text(id));
        if (list[kept++] == NULL) {
            kernelspec_free_list(list);
            return false;
        }
    }
    *ret = list;
    return list != NULL;
}

static bool owner_load(const struct ng_host *host, struct owner *owner,
                       const struct ng_value *body)
{
    const struct ng_value *list = host->json_get(body, "attached");
    const struct ng_value *item = list == NULL ? NULL : host->json_first(list);
    for (; item != NULL; item = host->json_next(item)) {
        struct attached *attached =
            attached_add(owner, host->json_text(host->json_get(item, "notebook")));
        if (attached == NULL) {
            return false;
        }
        if (host->json_type(host->json_get(item, "active")) == NG_TYPE_TRUE) {
            owner->active = owner->count - 1;
        }
        struct ng_str editing = host->json_text(host->json_get(item, "editing"));
        attached->editing = editing.len > 0 ? copy_of(editing) : NULL;
        if (!take_selected(host, host->json_get(item, "selected"), &attached->selected)) {
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
    struct owner *owner = owner_of(loading->all, row->key.id, true);
    loading->rc = host->json_parse(loading->call, row->json, &body);
    if (loading->rc == NG_OK && (owner == NULL || !owner_load(host, owner, body))) {
        loading->rc = cells_no_memory(loading->call);
    }
    return loading->rc != NG_OK;
}

int cells_attachments_open(struct ng_call *call, struct cells_attachments **ret)
{
    struct cells_attachments *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return cells_no_memory(call);
    }
    (void)pthread_mutex_init(&all->lock, NULL);
    struct loading loading = {call, all, NG_OK};
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
        cells_attachments_close(all);
        return rc;
    }
    *ret = all;
    return NG_OK;
}

void cells_attachments_close(struct cells_attachments *all)
{
    if (all == NULL) {
        return;
    }
    while (all->first != NULL) {
        struct owner *owner = all->first;
        all->first = owner->next;
        owner_clear(owner);
        free(owner->key);
        free(owner);
    }
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
    (void)present;
    (void)pthread_mutex_lock(&saving->all->lock);
    const struct owner *owner = owner_of(saving->all, saving->key, false);
    if (owner != NULL) {
        json = owner_json(call, owner);
    }
    (void)pthread_mutex_unlock(&saving->all->lock);
    return json.data == NULL ? cells_no_memory(call) : call->host->draft_json(next, json);
}

static int save(struct ng_call *call, struct cells_attachments *all)
{
    struct saving *saving = ng_alloc(call, sizeof(*saving));
    if (saving == NULL) {
        return cells_no_memory(call);
    }
    saving->all = all;
    saving->key = key_of(call);
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
    const struct owner *owner = owner_of(all, key_of(call), false);
    if (owner != NULL && owner->active < owner->count) {
        path = call->host->format(call, "%s", owner->items[owner->active].path);
    }
    (void)pthread_mutex_unlock(&all->lock);
    return path;
}

bool cells_is_attached(struct cells *self, struct ng_call *call, struct ng_str path)
{
    struct cells_attachments *all = self->attachments;
    (void)pthread_mutex_lock(&all->lock);
    bool found = attached_find(owner_of(all, key_of(call), false), path) != NULL;
    (void)pthread_mutex_unlock(&all->lock);
    return found;
}

bool cells_listed_attached(void *user, struct ng_call *call)
{
    return cells_active(user, call).len > 0;
}

int cells_selection(struct cells *self, struct ng_call *call, struct ng_str path,
                    const char *handle)
{
    struct cells_attachments *all = self->attachments;
    int selection = 0;
    (void)pthread_mutex_lock(&all->lock);
    const struct attached *attached = attached_find(owner_of(all, key_of(call), false), path);
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

/* ---- tools ---- */

int cells_attach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct cells_attachments *all = self->attachments;
    struct cells_book book;
    struct ng_str path;
    const struct ng_value *active = ng_arg(call, "active");
    (void)args;
    int rc = cells_path(self, call, &path);
    rc = rc != NG_OK ? rc : cells_open(call, path, &book);
    if (rc != NG_OK) {
        return rc;
    }
    size_t cells = book.nb.cell_count;
    cells_close(&book);
    (void)pthread_mutex_lock(&all->lock);
    struct owner *owner = owner_of(all, key_of(call), true);
    struct attached *attached = owner == NULL ? NULL : attached_find(owner, path);
    if (attached == NULL && owner != NULL) {
        attached = attached_add(owner, path);
    }
    if (attached == NULL) {
        rc = ng_fail(
            call, owner != NULL && owner->count == CELLS_ATTACHED_MAX ? NG_EBUSY : NG_EINTERNAL,
            "At most %d notebooks can be attached at once; detach one", CELLS_ATTACHED_MAX);
    } else {
        if (active == NULL || call->host->json_type(active) == NG_TYPE_TRUE) {
            owner->active = (size_t)(attached - owner->items);
        }
    }
    bool is_active = attached != NULL && owner->active == (size_t)(attached - owner->items);
    (void)pthread_mutex_unlock(&all->lock);
    rc = rc != NG_OK ? rc : save(call, all);
    if (rc < NG_OK) {
        return rc;
    }
    call->host->lists_changed(call->host, NG_LIST_TOOLS | NG_LIST_PROMPTS);
    int replied =
        ng_reply(call, call->host->format(call, "Attached %.*s with %zu cells%s", (int)path.len,
                                          path.data, cells, is_active ? "; it is active" : ""));
    return replied != NG_OK ? replied : rc;
}

int cells_detach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct cells_attachments *all = self->attachments;
    struct ng_str path;
    (void)args;
    int rc = cells_path(self, call, &path);
    if (rc != NG_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&all->lock);
    struct owner *owner = owner_of(all, key_of(call), false);
    struct attached *attached = attached_find(owner, path);
    if (attached == NULL) {
        rc = ng_fail(call, CELLS_ENOTEBOOK, "The notebook %.*s is not attached", (int)path.len,
                     path.data);
    } else {
        size_t index = (size_t)(attached - owner->items);
        attached_done(attached);
        owner->count--;
        memmove(attached, attached + 1, (owner->count - index) * sizeof(*attached));
        /* None is active then, unless another one was. */
        owner->active = owner->active == index                               ? SIZE_MAX
                        : owner->active != SIZE_MAX && owner->active > index ? owner->active - 1
                                                                             : owner->active;
    }
    (void)pthread_mutex_unlock(&all->lock);
    rc = rc != NG_OK ? rc : save(call, all);
    if (rc < NG_OK) {
        return rc;
    }
    call->host->lists_changed(call->host, NG_LIST_TOOLS | NG_LIST_PROMPTS);
    int replied =
        ng_reply(call, call->host->format(call, "Detached %.*s", (int)path.len, path.data));
    return replied != NG_OK ? replied : rc;
}

/* The handles as the file has them now, so that index:N of a cell with an id becomes that. */
static int selected_handles(struct ng_call *call, const struct nb *nb, char ***ret)
{
    size_t *chosen = NULL;
    size_t count = 0;
    int rc = cells_chosen(call, nb, &chosen, &count);
    char **list = rc == NG_OK ? calloc(count + 1, sizeof(*list)) : NULL;
    for (size_t i = 0; list != NULL && i < count; i++) {
        char handle[CELLS_HANDLE_MAX];
        cells_handle(nb, chosen[i], handle);
        list[i] = copy_of(ng_str_of(handle));
        if (list[i] == NULL) {
            kernelspec_free_list(list);
            list = NULL;
        }
    }
    *ret = list;
    return rc != NG_OK ? rc : list == NULL ? cells_no_memory(call) : NG_OK;
}

int cells_select_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct cells_attachments *all = self->attachments;
    struct cells_book book;
    struct ng_str path;
    char **selected = NULL;
    char *editing = NULL;
    char handle[CELLS_HANDLE_MAX];
    (void)args;
    int rc = cells_path(self, call, &path);
    rc = rc != NG_OK ? rc : cells_open(call, path, &book);
    if (rc != NG_OK) {
        return rc;
    }
    rc = selected_handles(call, &book.nb, &selected);
    struct ng_str active = ng_arg_text(call, "active");
    if (rc == NG_OK && active.len > 0) {
        size_t index = cells_find(&book.nb, active);
        if (index == SIZE_MAX) {
            rc = cells_fail_unknown(call, &book.nb, active);
        } else {
            cells_handle(&book.nb, index, handle);
            editing = copy_of(ng_str_of(handle));
        }
    }
    cells_close(&book);
    (void)pthread_mutex_lock(&all->lock);
    struct owner *owner = owner_of(all, key_of(call), false);
    struct attached *attached = attached_find(owner, path);
    if (rc == NG_OK && attached == NULL) {
        rc = ng_fail(call, CELLS_ENOTEBOOK,
                     "The notebook %.*s is not attached: attach it before cells of it are "
                     "selected",
                     (int)path.len, path.data);
    }
    if (rc == NG_OK) {
        kernelspec_free_list(attached->selected);
        free(attached->editing);
        attached->selected = selected;
        attached->editing = editing;
        selected = NULL;
        editing = NULL;
    }
    (void)pthread_mutex_unlock(&all->lock);
    kernelspec_free_list(selected);
    free(editing);
    rc = rc != NG_OK ? rc : save(call, all);
    if (rc < NG_OK) {
        return rc;
    }
    int replied =
        ng_reply(call, call->host->format(call, "Selected %zu cell(s)",
                                          call->host->json_count(ng_arg(call, "cellIds"))));
    return replied != NG_OK ? replied : rc;
}
