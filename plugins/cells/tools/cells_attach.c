/* SPDX-License-Identifier: MIT */
/* cells_attach.c - attachNotebook, detachNotebook and selectNotebookCells. */
#include "cells_attached.h"

#include <stdlib.h>
#include <string.h>

struct attaching {
    struct ng_str real, path;
    bool makes_active;
    bool active; /* as it turned out */
};

static int attach(struct ng_call *call, struct cells_owner *owner, void *user)
{
    struct attaching *attaching = user;
    struct cells_attached *attached = cells_attached_find(owner, attaching->real);
    char *path = attached != NULL ? cells_copy(attaching->path) : NULL;
    if (path != NULL) {
        free(attached->path);
        attached->path = path;
    } else if (attached == NULL && owner->count == CELLS_ATTACHED_MAX) {
        return ng_fail(call, NG_EBUSY,
                       "At most %d notebooks can be attached at once; detach one",
                       CELLS_ATTACHED_MAX);
    } else if (attached == NULL) {
        attached = cells_attached_add(owner, attaching->real, attaching->path);
    } else {
        attached = NULL;
    }
    if (attached == NULL) {
        return cells_no_memory(call);
    }
    size_t index = (size_t)(attached - owner->items);
    if (attaching->makes_active) {
        owner->active = index;
    }
    attaching->active = owner->active == index;
    return NG_OK;
}

int cells_attach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
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
    struct attaching attaching = {
        .real = book.file.real,
        .path = path,
        .makes_active = active == NULL || call->host->json_type(active) == NG_TYPE_TRUE,
    };
    cells_close(&book);
    rc = cells_attached_change(self, call, attach, &attaching);
    rc = rc != NG_OK ? rc : call->host->revision_text(call, book.file.revision);
    return rc != NG_OK
               ? rc
               : ng_reply(call, call->host->format(call, "Attached %.*s with %zu cell(s)%s",
                                                   (int)path.len, path.data, cells,
                                                   attaching.active ? "; it is active" : ""));
}

struct detaching {
    struct ng_str real, path;
};

/* What the caller calls so, by its name or as the same file. */
static struct cells_attached *attached_named(const struct cells_owner *owner,
                                             const struct detaching *named)
{
    for (size_t i = 0; i < owner->count; i++) {
        if (strlen(owner->items[i].path) == named->path.len &&
            memcmp(owner->items[i].path, named->path.data, named->path.len) == 0) {
            return &owner->items[i];
        }
    }
    return cells_attached_find(owner, named->real);
}

static int detach(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct detaching *named = user;
    struct cells_attached *attached = attached_named(owner, named);
    if (attached == NULL) {
        return ng_fail(call, CELLS_ENOTEBOOK, "The notebook %.*s is not attached",
                       (int)named->path.len, named->path.data);
    }
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
    return NG_OK;
}

int cells_detach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct ng_file file = {.size = sizeof(file)};
    struct detaching named;
    (void)args;
    int rc = cells_path(user, call, &named.path);
    if (rc != NG_OK) {
        return rc;
    }
    /* The file may be gone, or out of reach by now: then only its name tells. */
    rc = call->host->file_stat(call, named.path, &file);
    named.real = rc == NG_OK ? file.real : named.path;
    rc = cells_attached_change(user, call, detach, &named);
    return rc != NG_OK
               ? rc
               : ng_reply(call, call->host->format(call, "Detached %.*s", (int)named.path.len,
                                                   named.path.data));
}

/* ---- selecting ---- */

struct selecting {
    struct ng_str real, path;
    char **selected; /* handles; NULL at the end */
    char *editing;   /* or NULL */
};

static int select_cells(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct selecting *selecting = user;
    struct cells_attached *attached = cells_attached_find(owner, selecting->real);
    if (attached == NULL) {
        return ng_fail(call, CELLS_ENOTEBOOK,
                       "The notebook %.*s is not attached: attach it before cells of it are "
                       "selected",
                       (int)selecting->path.len, selecting->path.data);
    }
    kernelspec_free_list(attached->selected);
    free(attached->editing);
    attached->selected = NULL;
    attached->editing = NULL;
    size_t count = 0;
    while (selecting->selected[count] != NULL) {
        count++;
    }
    attached->selected = calloc(count + 1, sizeof(*attached->selected));
    bool good = attached->selected != NULL;
    for (size_t i = 0; i < count && good; i++) {
        attached->selected[i] = cells_copy(ng_str_of(selecting->selected[i]));
        good = attached->selected[i] != NULL;
    }
    if (good && selecting->editing != NULL) {
        attached->editing = cells_copy(ng_str_of(selecting->editing));
        good = attached->editing != NULL;
    }
    return good ? NG_OK : cells_no_memory(call);
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

/* What the call asks for, in the handles of the file. */
static int read_selecting(struct ng_call *call, const struct nb *nb, struct selecting *ret)
{
    char handle[CELLS_HANDLE_MAX];
    struct ng_str active = ng_arg_text(call, "active");
    int rc = selected_handles(call, nb, &ret->selected);
    if (rc != NG_OK || active.len == 0) {
        return rc;
    }
    size_t index = cells_find(nb, active);
    if (index == SIZE_MAX) {
        return cells_fail_unknown(call, nb, active);
    }
    cells_handle(nb, index, handle);
    ret->editing = cells_copy(ng_str_of(handle));
    return ret->editing == NULL ? cells_no_memory(call) : NG_OK;
}

int cells_select_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells_book book;
    struct selecting selecting = {.selected = NULL};
    (void)args;
    int rc = cells_path(user, call, &selecting.path);
    rc = rc != NG_OK ? rc : cells_open(call, selecting.path, &book);
    if (rc != NG_OK) {
        return rc;
    }
    selecting.real = book.file.real;
    rc = read_selecting(call, &book.nb, &selecting);
    cells_close(&book);
    rc = rc != NG_OK ? rc : cells_attached_change(user, call, select_cells, &selecting);
    kernelspec_free_list(selecting.selected);
    free(selecting.editing);
    rc = rc != NG_OK ? rc : call->host->revision_text(call, book.file.revision);
    return rc != NG_OK
               ? rc
               : ng_reply(call,
                          call->host->format(call, "Selected %zu cell(s)",
                                             call->host->json_count(ng_arg(call, "cellIds"))));
}
