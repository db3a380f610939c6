/* SPDX-License-Identifier: MIT */
/* cells_attach.c - attachNotebook, detachNotebook and selectNotebookCells. */
#include "cells_attached.h"
#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#include <string.h>

/* ---- the active notebook ---- */

struct active_request {
    struct ng_str session, real, process;
    int64_t now_ms;
};

static struct active_request active_request(struct cells *self, struct ng_call *call,
                                            char session[CELLS_SESSION_SIZE])
{
    cells_session(call, session);
    struct active_request request = {
        .session = ng_str_of(session),
        .process = self->process,
        .now_ms = clock_unix_ms(),
    };
    return request;
}

/* The place for the session's active notebook. */
static struct cells_active *active_place(struct cells_owner *owner, struct ng_str session)
{
    struct cells_active *found = cells_active_find(owner, session);
    if (found != NULL || owner->active_count < CELLS_ACTIVE_MAX) {
        return found != NULL ? found : &owner->actives[owner->active_count++];
    }
    found = &owner->actives[0];
    for (size_t i = 1; i < owner->active_count; i++) {
        if (owner->actives[i].used_ms < found->used_ms) {
            found = &owner->actives[i];
        }
    }
    return found;
}

static void make_active(struct cells_owner *owner, const struct active_request *request)
{
    *active_place(owner, request->session) = (struct cells_active){
        .session = request->session,
        .real = request->real,
        .process = request->process,
        .used_ms = request->now_ms,
    };
}

/* The session's active notebook is used. */
static int touch(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct active_request *request = user;
    struct cells_active *active = cells_active_find(owner, request->session);
    (void)call;
    if (active != NULL) {
        struct cells_attached *attached = cells_attached_find(owner, active->real);
        active->used_ms = request->now_ms;
        if (attached != NULL) {
            attached->used_ms = request->now_ms;
        }
    }
    return NG_OK;
}

/* The agent has several clients, perhaps, each with a notebook of its own. */
static int check_ambiguous(struct cells *self, struct ng_call *call)
{
    struct ng_str paths;
    size_t count = cells_recent(self, call, &paths);
    if (count <= 1) {
        return NG_OK;
    }
    int rc = ng_fail(call, CELLS_EAMBIGUOUS,
                     "%zu notebooks are attached, and the call does not name one: %.*s", count,
                     (int)paths.len, paths.data);
    call->host->hint(call, "Name the one that is meant: `notebook`; or detach the others");
    return rc;
}

int cells_use_active(struct cells *self, struct ng_call *call, enum cells_use use,
                     struct ng_str *ret_path)
{
    char session[CELLS_SESSION_SIZE];
    int64_t used_ms = 0;
    int rc = cells_attachments_refresh(self, call);
    if (rc != NG_OK) {
        return rc;
    }
    struct active_request request = active_request(self, call, session);
    *ret_path = cells_active_path(self, call, &used_ms);
    if (ret_path->len == 0) {
        rc = ng_fail(call, CELLS_ENOTEBOOK, "No active notebook found");
        call->host->hint(call, "Attach one with attachNotebook, or name it: `notebook`");
        return rc;
    }
    if (use == CELLS_CHANGES && request.session.len == 0) {
        rc = check_ambiguous(self, call);
    }
    if (rc == NG_OK && request.now_ms - used_ms >= CELLS_USED_MS) {
        rc = cells_attached_change(self, call, touch, &request);
    }
    return rc;
}

/* ---- attaching ---- */

struct attach_request {
    struct ng_str path;
    bool makes_active;
    struct active_request active;
};

static int attach(struct ng_call *call, struct cells_owner *owner, void *user)
{
    const struct attach_request *request = user;
    struct cells_attached *attached = cells_attached_find(owner, request->active.real);
    if (attached == NULL && owner->count == CELLS_ATTACHED_MAX) {
        return ng_fail(call, NG_EBUSY,
                       "At most %d notebooks can be attached at once; detach one",
                       CELLS_ATTACHED_MAX);
    }
    if (attached == NULL) {
        attached = &owner->items[owner->count++];
        attached->real = request->active.real;
    }
    attached->path = request->path;
    attached->used_ms = request->active.now_ms;
    if (request->makes_active) {
        make_active(owner, &request->active);
    }
    return NG_OK;
}

int cells_attach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    const struct ng_value *active = ng_arg(call, "active");
    char session[CELLS_SESSION_SIZE];
    int64_t used_ms = 0;
    (void)args;
    int rc = cells_open(self, call, CELLS_READS, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    size_t cells = notebook.nb.cell_count;
    struct attach_request request = {
        .path = notebook.path,
        .makes_active = active == NULL || call->host->json_type(active) == NG_TYPE_TRUE,
        .active = active_request(self, call, session),
    };
    request.active.real = notebook.file.real;
    cells_close(&notebook);
    rc = cells_attached_change(self, call, attach, &request);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->host->revision_text(call, notebook.file.revision);
    if (rc != NG_OK) {
        return rc;
    }
    bool is_active = str_equal(cells_active_path(self, call, &used_ms), notebook.path);
    return cells_replyf(call, notebook.path, "Attached %.*s with %zu cell(s)%s",
                        (int)notebook.path.len, notebook.path.data, cells,
                        text_if(is_active, "; it is active"));
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
    /* It is active in no session any more, and no other one becomes active. */
    size_t index = (size_t)(attached - owner->items);
    owner->count--;
    memmove(attached, attached + 1, (owner->count - index) * sizeof(*attached));
    return NG_OK;
}

int cells_detach_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct ng_file file = {.size = sizeof(file)};
    struct detach_request request;
    (void)args;
    int rc = cells_path(user, call, CELLS_READS, &request.path);
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
    return cells_replyf(call, request.path, "Detached %.*s", (int)request.path.len,
                        request.path.data);
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
    size_t index = cells_find_named(nb, active);
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
    int rc = cells_open(user, call, CELLS_READS, &notebook);
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
    return cells_replyf(call, notebook.path, "Selected %zu cell(s)",
                        call->host->json_count(ng_arg(call, "cellIds")));
}
