/* SPDX-License-Identifier: MIT */
/* cells_attach.c - attachNotebook, detachNotebook and selectNotebookCells. */
#include "cells_attached.h"

#include <stdlib.h>
#include <string.h>

/* With the lock held. */
static int attach(struct ng_call *call, struct cells_attachments *all,
                  const struct cells_book *book, bool *ret_active)
{
    const struct ng_value *active = ng_arg(call, "active");
    struct cells_owner *owner = cells_owner_of(all, cells_owner_key(call), true);
    if (owner == NULL) {
        return cells_no_memory(call);
    }
    struct cells_attached *attached = cells_attached_find(owner, book->file.real);
    char *path = attached != NULL ? cells_copy(book->path) : NULL;
    if (path != NULL) {
        free(attached->path);
        attached->path = path;
    } else if (attached == NULL && owner->count == CELLS_ATTACHED_MAX) {
        return ng_fail(call, NG_EBUSY,
                       "At most %d notebooks can be attached at once; detach one",
                       CELLS_ATTACHED_MAX);
    } else if (attached == NULL) {
        attached = cells_attached_add(owner, book->file.real, book->path);
    }
    if (attached == NULL) {
        cells_owner_tidy(all, owner);
        return cells_no_memory(call);
    }
    size_t index = (size_t)(attached - owner->items);
    if (active == NULL || call->host->json_type(active) == NG_TYPE_TRUE) {
        owner->active = index;
    }
    *ret_active = owner->active == index;
    return NG_OK;
}

/* Saves, tells that lists are others now, and answers. */
static int attached_changed(struct ng_call *call, struct cells_attachments *all,
                            struct ng_str text)
{
    int rc = cells_attached_save(call, all);
    if (rc < NG_OK) {
        return rc;
    }
    call->host->lists_changed(call->host, NG_LIST_TOOLS);
    int replied = text.data == NULL ? cells_no_memory(call) : ng_reply(call, text);
    return replied != NG_OK ? replied : rc;
}

int cells_attach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct cells_attachments *all = self->attachments;
    struct cells_book book;
    struct ng_str path;
    bool active = false;
    (void)args;
    int rc = cells_path(self, call, &path);
    rc = rc != NG_OK ? rc : cells_open(call, path, &book);
    if (rc != NG_OK) {
        return rc;
    }
    size_t cells = book.nb.cell_count;
    (void)pthread_mutex_lock(&all->lock);
    rc = attach(call, all, &book, &active);
    (void)pthread_mutex_unlock(&all->lock);
    cells_close(&book);
    return rc != NG_OK
               ? rc
               : attached_changed(call, all,
                                  call->host->format(call, "Attached %.*s with %zu cell(s)%s",
                                                     (int)path.len, path.data, cells,
                                                     active ? "; it is active" : ""));
}

/* With the lock held: what the caller calls so, by its name or as the same file. */
static struct cells_attached *attached_named(const struct cells_owner *owner,
                                             struct ng_str path, struct ng_str real)
{
    for (size_t i = 0; owner != NULL && i < owner->count; i++) {
        if (strlen(owner->items[i].path) == path.len &&
            memcmp(owner->items[i].path, path.data, path.len) == 0) {
            return &owner->items[i];
        }
    }
    return cells_attached_find(owner, real);
}

static void detach(struct cells_attachments *all, struct cells_owner *owner,
                   struct cells_attached *attached)
{
    size_t index = (size_t)(attached - owner->items);
    cells_attached_done(attached);
    owner->count--;
    memmove(attached, attached + 1, (owner->count - index) * sizeof(*attached));
    /* None is active then, unless another one was. */
    if (owner->active == index) {
        owner->active = SIZE_MAX;
    } else if (owner->active != SIZE_MAX && owner->active > index) {
        owner->active--;
    }
    cells_owner_tidy(all, owner);
}

int cells_detach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct cells_attachments *all = self->attachments;
    struct ng_file file = {.size = sizeof(file)};
    struct ng_str path;
    (void)args;
    int rc = cells_path(self, call, &path);
    if (rc != NG_OK) {
        return rc;
    }
    /* The file may be gone, or out of reach by now: then only its name tells. */
    rc = call->host->file_stat(call, path, &file);
    struct ng_str real = rc == NG_OK ? file.real : path;
    (void)pthread_mutex_lock(&all->lock);
    struct cells_owner *owner = cells_owner_of(all, cells_owner_key(call), false);
    struct cells_attached *attached = attached_named(owner, path, real);
    if (attached != NULL) {
        detach(all, owner, attached);
    }
    (void)pthread_mutex_unlock(&all->lock);
    if (attached == NULL) {
        return ng_fail(call, CELLS_ENOTEBOOK, "The notebook %.*s is not attached",
                       (int)path.len, path.data);
    }
    return attached_changed(
        call, all, call->host->format(call, "Detached %.*s", (int)path.len, path.data));
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
        list[i] = cells_copy(ng_str_of(handle));
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
            editing = cells_copy(ng_str_of(handle));
            rc = editing == NULL ? cells_no_memory(call) : NG_OK;
        }
    }
    cells_close(&book);
    (void)pthread_mutex_lock(&all->lock);
    struct cells_owner *owner = cells_owner_of(all, cells_owner_key(call), false);
    struct cells_attached *attached = cells_attached_find(owner, book.file.real);
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
    rc = rc != NG_OK ? rc : cells_attached_save(call, all);
    if (rc < NG_OK) {
        return rc;
    }
    int replied =
        ng_reply(call, call->host->format(call, "Selected %zu cell(s)",
                                          call->host->json_count(ng_arg(call, "cellIds"))));
    return replied != NG_OK ? replied : rc;
}
