/* SPDX-License-Identifier: MIT */
/* cells_create.c - createNotebook: writes the file with all its cells in one save, then runs
 * them. */
#include "core/base/str.h"
#include "whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cells of a new notebook (maxItems in its schema). */
#define CREATE_CELLS_MAX 100
/* The reason why the file was not made. */
#define CREATE_WHY_MAX 1024

/* In memory of the call. */
struct create_call {
    struct cells *self;
    struct ng_call *call;
    struct ng_deferred *deferred; /* while another call makes the file */
    struct ng_str json;
    struct ng_str path;
    struct nb_new_cell *cells;
    size_t cell_count;
    bool runs;
    int rc; /* of making the file */
    char why[CREATE_WHY_MAX];
};

/* ---- the file ---- */

static void add_kernelspec(struct nb_text *out, const struct kernelspec *spec)
{
    nb_add_word(out, "{\"display_name\":");
    nb_encode(out, ng_str_of(spec->display_name), false);
    nb_add_word(out, ",\"language\":");
    nb_encode(out, ng_str_of(spec->language), false);
    nb_add_word(out, ",\"name\":");
    nb_encode(out, ng_str_of(spec->name), false);
    nb_add_word(out, "}");
}

/* The requested kernel, else python3 if installed, else none. */
static int pick_kernel(struct ng_call *call, struct nb_text *out)
{
    struct kernelspecs specs;
    struct ng_str name = ng_arg_text(call, "kernel");
    int rc = NG_OK;
    if (!kernelspecs_load(&specs)) {
        return cells_no_memory(call);
    }
    const struct kernelspec *spec = kernelspecs_named(&specs, name);
    if (name.len == 0) {
        spec = kernelspecs_named(&specs, ng_str_of("python3"));
    }
    if (spec != NULL) {
        add_kernelspec(out, spec);
    } else if (name.len > 0) {
        rc = ng_fail(call, NG_EINVAL, "There is no kernel `%.*s`", (int)name.len, name.data);
        call->host->hint(call, "listKernels lists the installed kernels");
    }
    kernelspecs_done(&specs);
    return rc;
}

static bool has_id(const struct create_call *create, struct ng_str id)
{
    for (size_t i = 0; i < create->cell_count; i++) {
        if (str_equal(id, create->cells[i].id)) {
            return true;
        }
    }
    return false;
}

/* Adds a cell with an id of its own. */
static int add_cell(struct create_call *create, enum nb_type type, struct ng_str source)
{
    struct ng_call *call = create->call;
    char id[CELLS_NEW_ID_SIZE];
    int rc = cells_check_source(create->self, call, source);
    do {
        rc = rc != NG_OK ? rc : cells_new_id(call, NULL, id);
    } while (rc == NG_OK && has_id(create, ng_str_of(id)));
    if (rc != NG_OK) {
        return rc;
    }
    struct nb_new_cell *cell = &create->cells[create->cell_count++];
    *cell = (struct nb_new_cell){type, call->host->format(call, "%s", id), source};
    return cells_check_memory(call, cell->id.data != NULL);
}

/* The cells of the arguments, else one empty code cell. */
static int take_cells(struct create_call *create)
{
    struct ng_call *call = create->call;
    const struct ng_host *host = call->host;
    const struct ng_value *list = ng_arg(call, "cells");
    const struct ng_value *item = host->json_first(list);
    size_t count = host->json_count(list);
    int rc = NG_OK;
    if (count > CREATE_CELLS_MAX) {
        return ng_fail(call, NG_EINVAL, "`cells` has %zu cells; at most %d at once", count,
                       CREATE_CELLS_MAX);
    }
    create->cells = ng_alloc(call, (count + 1) * sizeof(*create->cells));
    if (create->cells == NULL) {
        return cells_no_memory(call);
    }
    if (list == NULL) {
        return add_cell(create, NB_CODE, ng_str_of(""));
    }
    for (; item != NULL && rc == NG_OK; item = host->json_next(item)) {
        struct ng_str word = host->json_text(host->json_get(item, "type"));
        enum nb_type type = NB_UNKNOWN;
        if (!cells_type_named(word, &type)) {
            return ng_fail(call, NG_EINVAL,
                           "cells[%zu] is of the unknown type '%.*s'. Must be 'code', "
                           "'markdown' or 'raw'.",
                           create->cell_count, (int)word.len, word.data);
        }
        rc = add_cell(create, type, host->json_text(host->json_get(item, "content")));
    }
    return rc;
}

static int print_file(struct create_call *create)
{
    struct ng_call *call = create->call;
    struct nb_text spec = {0};
    struct nb_text json = {0};
    int rc = pick_kernel(call, &spec);
    if (rc == NG_OK) {
        nb_new_file(&json, nb_text_str(&spec), create->cells, create->cell_count);
        struct ng_str text = nb_text_str(&json);
        create->json = call->host->format(call, "%.*s", (int)text.len, text.data);
        rc =
            cells_check_memory(call, !json.failed && !spec.failed && create->json.data != NULL);
    }
    nb_text_done(&json);
    nb_text_done(&spec);
    return rc;
}

/* ---- making it ---- */

static int reply_made(const struct create_call *create, struct ng_call *call)
{
    struct nb_text out = {0};
    nb_addf(&out, "Created the notebook %.*s%s", (int)create->path.len, create->path.data,
            create->cell_count == 0 ? " without cells" : ". ");
    nb_add_if(&out, create->cell_count == 1, "Cell ID: ");
    nb_add_if(&out, create->cell_count > 1, "Cell IDs: ");
    for (size_t i = 0; i < create->cell_count; i++) {
        nb_add_if(&out, i > 0, ", ");
        nb_add_str(&out, create->cells[i].id);
        nb_addf(&out, " (index %zu)", i);
    }
    return cells_reply(call, create->path, &out);
}

static int create_file(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, void *user)
{
    const struct create_call *create = user;
    (void)present;
    int rc = call->host->draft_text(next, &create->json, 1);
    if (rc != NG_OK) {
        return rc;
    }
    return reply_made(create, call);
}

static int make_file(struct ng_call *call, struct create_call *create)
{
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = create->path,
        .fn = create_file,
        .user = create,
        .create = true,
        .parents = true,
        .collection = CELLS_COLLECTION,
    };
    return call->host->file_edit(call, &edit);
}

/* ---- running it: a call of its own makes the file, as a call ends with its save ---- */

static int run_made(struct ng_call *call, void *user)
{
    struct create_call *create = user;
    call->host->finish(create->deferred, NG_PENDING);
    if (create->rc != NG_OK) {
        return call->host->fail_text(call, create->rc, ng_str_of(create->why));
    }
    struct ng_str *handles = ng_alloc(call, (create->cell_count + 1) * sizeof(*handles));
    if (handles == NULL) {
        return cells_no_memory(call);
    }
    for (size_t i = 0; i < create->cell_count; i++) {
        handles[i] = create->cells[i].id;
    }
    int rc = cells_run_cells(create->self, call, handles, create->cell_count);
    if (rc < NG_OK) {
        call->host->hint(call,
                         "The notebook is made, with its cells; runNotebookCells runs them");
    }
    return rc;
}

/* The call that makes the file has ended; the one that waits for it continues. */
static void file_made(void *user, int rc, struct ng_str message)
{
    struct create_call *create = user;
    create->rc = rc;
    (void)snprintf(create->why, sizeof(create->why), "%.*s", (int)message.len, message.data);
    (void)create->call->host->continue_on_worker(create->call, run_made, create);
}

static int make_apart(struct ng_call *call, void *user)
{
    struct create_call *create = user;
    int rc = call->host->on_complete(call, file_made, create);
    if (rc != NG_OK) {
        file_made(create, rc, ng_str_of("out of memory"));
        return rc;
    }
    return make_file(call, create);
}

static int make_and_run(struct create_call *create)
{
    struct ng_call *call = create->call;
    struct ng_file file = {.size = sizeof(file)};
    if (!call->caller->run) {
        int rc = ng_fail(call, NG_ERUN,
                         "`createNotebook` with `run` runs code, and the caller's key has no "
                         "right to run code");
        call->host->hint(call, "Leave `run` out, or use a key with that right (--run)");
        return rc;
    }
    int rc = call->host->file_stat(call, create->path, &file);
    if (rc != NG_OK) {
        return rc;
    }
    if (file.type != NG_FILE_NONE) {
        return make_file(call, create); /* which is refused */
    }
    create->deferred = call->host->defer(call);
    rc = call->host->background(call, make_apart, create);
    if (rc != NG_OK) {
        call->host->finish(create->deferred, NG_PENDING);
        return rc;
    }
    return NG_PENDING;
}

int cells_create_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct create_call *create = ng_alloc(call, sizeof(*create));
    (void)args;
    if (create == NULL) {
        return cells_no_memory(call);
    }
    *create = (struct create_call){.self = user, .call = call};
    create->runs = call->host->json_type(ng_arg(call, "run")) == NG_TYPE_TRUE;
    int rc = cells_path(user, call, CELLS_CHANGES, &create->path);
    if (rc == NG_OK && !str_ends(create->path, ".ipynb")) {
        rc = ng_fail(call, NG_EINVAL, "The path %.*s does not end in .ipynb",
                     (int)create->path.len, create->path.data);
    }
    if (rc == NG_OK) {
        rc = take_cells(create);
    }
    if (rc == NG_OK) {
        rc = print_file(create);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return create->runs ? make_and_run(create) : make_file(call, create);
}
