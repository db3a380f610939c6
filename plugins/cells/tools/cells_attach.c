/* SPDX-License-Identifier: MIT */
/* cells_attach.c - attachNotebook, detachNotebook and selectNotebookCells. */
#include "cells_attached.h"
#include "core/base/str.h"

#include <stdlib.h>
#include <string.h>

struct attach_request {
    struct ng_str real, path;
    bool makes_active;
    bool active; /* result: is it active? */
};

static int attach(struct ng_call *call, struct cells_owner *owner, void *user)
{
    struct attach_request *request = user;
    struct cells_attached *attached = cells_attached_find(owner, request->real);
    if (attached == NULL && owner->count == CELLS_ATTACHED_MAX) {
        return ng_fail(call, NG_EBUSY,
                       "At most %d notebooks can be attached at once; detach one",
                       CELLS_ATTACHED_MAX);
    }
    if (attached == NULL) {
        attached = cells_attached_add(owner, request->real, request->path);
    } else {
        free(attached->path);
        attached->path = str_dup(request->path);
    }
    if (attached == NULL || attached->path == NULL) {
        return cells_no_memory(call);
    }
    size_t index = (size_t)(attached - owner->items);
    if (request->makes_active) {
        owner->active = index;
    }
    request->active = owner->active == index;
    return NG_OK;
}

int cells_attach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    const struct ng_value *active = ng_arg(call, "active");
    const char *note = "";
    (void)args;
    int rc = cells_open(self, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    size_t cells = notebook.nb.cell_count;
    struct attach_request request = {
        .real = notebook.file.real,
        .path = notebook.path,
        .makes_active = active == NULL || call->host->json_type(active) == NG_TYPE_TRUE,
    };
    cells_close(&notebook);
    rc = cells_attached_change(self, call, attach, &request);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->host->revision_text(call, notebook.file.revision);
    if (rc != NG_OK) {
        return rc;
    }
    if (request.active) {
        note = "; it is active";
    }
    return ng_reply(call, call->host->format(call, "Attached %.*s with %zu cell(s)%s",
                                             (int)notebook.path.len, notebook.path.data, cells,
                                             note));
}

struct detach_request {
    struct ng_str real, path;
};

/* Finds an attachment by the caller's path, else by the file's identity. */
static struct cells_attached *attached_named(const struct cells_owner *owner,
                                             const struct detach_request *request)
{
    for (size_t i = 0; i < owner->count; i++) {
        if (str_is(request->path, owner->items[i].path)) {
            return &owner->items[i];
        }
    }
    return cells_attached_find(owner, request->real);
}

static int detach(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct detach_request *request = user;
    struct cells_attached *attached = attached_named(owner, request);
    if (attached == NULL) {
        return ng_fail(call, CELLS_ENOTEBOOK, "The notebook %.*s is not attached",
                       (int)request->path.len, request->path.data);
    }
    size_t index = (size_t)(attached - owner->items);
    cells_attached_done(attached);
    owner->count--;
    memmove(attached, attached + 1, (owner->count - index) * sizeof(*attached));
    /* No other notebook becomes active. */
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
    struct detach_request request;
    (void)args;
    int rc = cells_path(user, call, &request.path);
    if (rc != NG_OK) {
        return rc;
    }
    /* The file may be gone or no longer accessible: then only its path identifies it. */
    rc = call->host->file_stat(call, request.path, &file);
    if (rc == NG_OK) {
        request.real = file.real;
    } else {
        request.real = request.path;
    }
    rc = cells_attached_change(user, call, detach, &request);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, call->host->format(call, "Detached %.*s", (int)request.path.len,
                                             request.path.data));
}

/* ---- selection ---- */

struct select_request {
    struct ng_str real, path;
    char **selected; /* handles; NULL-terminated */
    char *editing;   /* or NULL */
};

static int select_cells(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct select_request *request = user;
    struct cells_attached *attached = cells_attached_find(owner, request->real);
    if (attached == NULL) {
        return ng_fail(call, CELLS_ENOTEBOOK,
                       "The notebook %.*s is not attached: attach it before cells of it are "
                       "selected",
                       (int)request->path.len, request->path.data);
    }
    kernelspec_free_list(attached->selected);
    free(attached->editing);
    attached->selected = NULL;
    attached->editing = NULL;
    size_t count = 0;
    while (request->selected[count] != NULL) {
        count++;
    }
    attached->selected = calloc(count + 1, sizeof(*attached->selected));
    bool good = attached->selected != NULL;
    for (size_t i = 0; i < count && good; i++) {
        attached->selected[i] = str_dup(ng_str_of(request->selected[i]));
        good = attached->selected[i] != NULL;
    }
    if (good && request->editing != NULL) {
        attached->editing = str_dup(ng_str_of(request->editing));
        good = attached->editing != NULL;
    }
    return cells_check_memory(call, good);
}

/* The handles of the chosen cells: index:N of a cell with an id becomes the id. */
static int selected_handles(struct ng_call *call, const struct nb *nb, char ***ret)
{
    size_t *chosen = NULL;
    size_t count = 0;
    int rc = cells_chosen(call, nb, &chosen, &count);
    if (rc != NG_OK) {
        return rc;
    }
    char **list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        char handle[CELLS_HANDLE_MAX];
        cells_handle(nb, chosen[i], handle);
        list[i] = str_dup(ng_str_of(handle));
        if (list[i] == NULL) {
            kernelspec_free_list(list);
            list = NULL;
        }
    }
    *ret = list;
    return cells_check_memory(call, list != NULL);
}

/* The arguments of the call as handles. */
static int read_selection(struct ng_call *call, const struct nb *nb, struct select_request *ret)
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
    ret->editing = str_dup(ng_str_of(handle));
    return cells_check_memory(call, ret->editing != NULL);
}

int cells_select_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct notebook_file notebook;
    struct select_request request = {.selected = NULL};
    (void)args;
    int rc = cells_open(user, call, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    request.path = notebook.path;
    request.real = notebook.file.real;
    rc = read_selection(call, &notebook.nb, &request);
    cells_close(&notebook);
    if (rc == NG_OK) {
        rc = cells_attached_change(user, call, select_cells, &request);
    }
    kernelspec_free_list(request.selected);
    free(request.editing);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->host->revision_text(call, notebook.file.revision);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, call->host->format(call, "Selected %zu cell(s)",
                                             call->host->json_count(ng_arg(call, "cellIds"))));
}
