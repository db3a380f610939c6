/* SPDX-License-Identifier: MIT */
/* cells_attach.c - attachNotebook, detachNotebook and selectNotebookCells. */
#include "cells_attached.h"
#include "core/base/str.h"

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
        attached = &owner->items[owner->count++];
        attached->real = request->real;
    }
    attached->path = request->path;
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
        if (str_equal(request->path, owner->items[i].path)) {
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
    struct ng_str *selected; /* handles */
    size_t count;
    struct ng_str editing; /* absent: none */
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
    attached->selected = request->selected;
    attached->selected_count = request->count;
    attached->editing = request->editing;
    return NG_OK;
}

static struct ng_str handle_of(struct ng_call *call, const struct nb *nb, size_t index)
{
    char handle[CELLS_HANDLE_MAX];
    cells_handle(nb, index, handle);
    return call->host->format(call, "%s", handle);
}

/* The arguments of the call as handles. */
static int read_selection(struct ng_call *call, const struct nb *nb, struct select_request *ret)
{
    struct ng_str active = ng_arg_text(call, "active");
    size_t *chosen = NULL;
    int rc = cells_chosen(call, nb, &chosen, &ret->count, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    ret->selected = ng_alloc(call, ret->count * sizeof(*ret->selected));
    if (ret->selected == NULL) {
        return cells_no_memory(call);
    }
    for (size_t i = 0; i < ret->count; i++) {
        ret->selected[i] =
            handle_of(call, nb, chosen[i]); /* index:N of a cell with an id: that */
    }
    if (active.len == 0) {
        return NG_OK;
    }
    size_t index = cells_find(nb, active);
    if (index == SIZE_MAX) {
        return cells_fail_unknown(call, nb, active);
    }
    ret->editing = handle_of(call, nb, index);
    return NG_OK;
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
