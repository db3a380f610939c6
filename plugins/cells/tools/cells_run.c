/* SPDX-License-Identifier: MIT */
/* cells_run.c - runNotebookCells: creates a run from the requested cells, starts it, and
 * completes the call at its end. */
#include "cells_run.h"
#include "cells_lease.h"
#include "core/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_S 120
/* Kernels listed in an error message. */
#define KERNELS_LISTED 20

static char *keep(struct ng_str text)
{
    if (text.data == NULL) {
        return NULL;
    }
    return strndup(text.data, text.len);
}

/* ---- cells ---- */

/* Does the cell carry this tag? */
static bool has_tag(const struct nb *nb, const struct nb_cell *cell, const char *tag)
{
    struct nb_span tags = nb_member(nb->bytes, cell->metadata, "tags");
    struct nb_walk walk = nb_walk_into(nb->bytes, tags);
    struct nb_span value;
    while (tags.len > 0 && nb->bytes.data[tags.at] == '[' && nb_walk_element(&walk, &value)) {
        if (nb_is_word(nb->bytes, value, tag)) {
            return true;
        }
    }
    return false;
}

/* Takes the requested code cells in the order of the notebook, each once. */
static bool take_cells(const struct nb *nb, const size_t *chosen, size_t count,
                       struct cells_run *cells_run)
{
    struct run *run = cells_run->run;
    bool *wanted = calloc(nb->cell_count + 1, sizeof(*wanted));
    run->cells = calloc(count + 1, sizeof(*run->cells));
    bool good = wanted != NULL && run->cells != NULL;
    for (size_t i = 0; good && i < count; i++) {
        wanted[chosen[i]] = true;
    }
    for (size_t i = 0; good && i < nb->cell_count; i++) {
        const struct nb_cell *cell = &nb->cells[i];
        if (!wanted[i]) {
            continue;
        }
        if (cell->type != NB_CODE || has_tag(nb, cell, "skip-execution")) {
            cells_run->skipped++;
            continue;
        }
        struct run_cell *to_run = &run->cells[run->cell_count++];
        cells_handle(nb, i, to_run->handle);
        to_run->index = i;
        to_run->count = -1;
        to_run->may_raise = has_tag(nb, cell, "raises-exception");
        (void)nb_decode_lines(&to_run->source, nb->bytes, cell->source);
        good = !to_run->source.failed;
    }
    free(wanted);
    return good;
}

/* ---- kernel ---- */

static void decode_word(struct ng_str bytes, struct nb_span value, struct nb_text *out)
{
    if (value.len > 0 && bytes.data[value.at] == '"') {
        nb_decode(out, bytes, value);
    }
}

static const struct kernelspec *choose(struct ng_call *call, const struct nb *nb,
                                       const struct kernelspecs *specs, struct cells_run *run)
{
    struct ng_str asked = ng_arg_text(call, "kernel");
    struct nb_span spec = nb_member(nb->bytes, nb->metadata, "kernelspec");
    struct nb_span info = nb_member(nb->bytes, nb->metadata, "language_info");
    struct nb_text name = {0};
    struct nb_text language = {0};
    const struct kernelspec *found = NULL;
    decode_word(nb->bytes, nb_member(nb->bytes, spec, "name"), &name);
    decode_word(nb->bytes, nb_member(nb->bytes, spec, "language"), &language);
    if (language.len == 0) {
        decode_word(nb->bytes, nb_member(nb->bytes, info, "name"), &language);
    }
    if (asked.len > 0) {
        found = kernelspecs_named(specs, asked);
        run->asked = keep(asked);
    } else {
        found = kernelspecs_named(specs, nb_text_str(&name));
        if (found == NULL && name.len > 0) {
            nb_add(&name, "", 1);
            if (!name.failed) {
                run->fallback = strdup(name.data);
            }
        }
        if (found == NULL) {
            found = kernelspecs_of(specs, nb_text_str(&language));
        }
        bool other = language.len > 0 && found == NULL; /* no kernel for its language */
        if (found == NULL && !other) {
            found = kernelspecs_named(specs, ng_str_of("python3"));
        }
        if (found == NULL && !other && specs->count > 0) {
            found = &specs->items[0];
        }
    }
    nb_text_done(&name);
    nb_text_done(&language);
    return found;
}

/* Appends the names of the installed kernels. */
static void add_names(struct nb_text *out, const struct kernelspecs *specs)
{
    nb_add_if(out, specs->count == 0, "none is installed");
    nb_add_if(out, specs->count > 0, "installed: ");
    for (size_t i = 0; i < specs->count && i < KERNELS_LISTED; i++) {
        nb_add_if(out, i > 0, ", ");
        nb_add_word(out, specs->items[i].name);
    }
    nb_add_if(out, specs->count > KERNELS_LISTED, ", ...");
}

static int fail_unfit(struct ng_call *call, const struct kernelspecs *specs,
                      const struct cells_run *run)
{
    struct nb_text names = {0};
    const char *named = "";
    const char *name = "";
    if (run->fallback != NULL) {
        named = ", it names ";
        name = run->fallback;
    }
    add_names(&names, specs);
    struct ng_str list = nb_text_str(&names);
    int rc = ng_fail(call, CELLS_EKERNEL,
                     "No installed kernel fits this notebook%s%s (%.*s): install one, or name "
                     "one as `kernel`",
                     named, name, (int)list.len, list.data);
    nb_text_done(&names);
    return rc;
}

static int pick_kernel(struct ng_call *call, const struct nb *nb, struct cells_run *run)
{
    struct kernelspecs specs;
    struct ng_str asked = ng_arg_text(call, "kernel");
    if (!kernelspecs_load(&specs)) {
        return cells_no_memory(call);
    }
    const struct kernelspec *spec = choose(call, nb, &specs, run);
    int rc = NG_OK;
    if (spec != NULL) {
        size_t index = (size_t)(spec - specs.items);
        run->spec = specs.items[index];
        specs.items[index] = specs.items[--specs.count];
    } else if (asked.len > 0) {
        rc = ng_fail(call, NG_EINVAL, "There is no kernel `%.*s`", (int)asked.len, asked.data);
        call->host->hint(call, "listKernels lists the installed kernels");
    } else {
        rc = fail_unfit(call, &specs, run);
    }
    kernelspecs_done(&specs);
    return rc;
}

/* ---- creation ---- */

/* The folder of a path: the working directory of the kernel. */
static struct ng_str folder_of(struct ng_str path)
{
    while (path.len > 1 && path.data[path.len - 1] != '/') {
        path.len--;
    }
    path.len -= path.len > 1;
    return path;
}

static struct cells_run *run_new(struct cells *self, struct ng_call *call,
                                 const struct notebook_file *notebook)
{
    struct cells_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->self = self;
    run->owner = keep(cells_owner_key(call));
    run->path = keep(notebook->path);
    run->notebook_cells = notebook->nb.cell_count;
    run->bytes = notebook->file.bytes;
    run->modified_ms = notebook->file.modified_ms;
    run->run = calloc(1, sizeof(*run->run));
    if (run->run != NULL) {
        run->run->notebook = keep(notebook->file.real);
        run->run->folder = keep(folder_of(notebook->file.real));
        run->run->max_saved_output = (size_t)self->max_saved_output;
    }
    if (run->run == NULL || run->owner == NULL || run->path == NULL ||
        run->run->notebook == NULL || run->run->folder == NULL || !wire_id(run->id)) {
        cells_run_free(run);
        return NULL;
    }
    cells_lease_name_run(self, run->id);
    return run;
}

static int take_timeout(struct cells *self, struct ng_call *call, struct run *run)
{
    double seconds = TIMEOUT_DEFAULT_S;
    const struct ng_value *value = ng_arg(call, "timeout");
    if (value != NULL) {
        seconds = call->host->json_double(value);
        if (seconds <= 0) {
            /* Not in the schema: model vendors refuse exclusiveMinimum. */
            return ng_fail(call, NG_EINVAL, "`timeout` is %g s, it must be more than 0",
                           seconds);
        }
    } else if (seconds * 1000 > (double)self->max_timeout_ms) {
        seconds = (double)self->max_timeout_ms / 1000;
    }
    if (seconds * 1000 > (double)self->max_timeout_ms) {
        return ng_fail(call, NG_EINVAL,
                       "`timeout` is %g s, the most is %lld s (cells.max_timeout)", seconds,
                       (long long)(self->max_timeout_ms / 1000));
    }
    run->timeout_ms = (int64_t)(seconds * 1000);
    return NG_OK;
}

static int check_revision(struct ng_call *call, const struct notebook_file *notebook)
{
    struct ng_str expected = ng_arg_text(call, "expectedRevision");
    struct ng_str now = notebook->file.revision;
    if (expected.len == 0 || str_equal(expected, now)) {
        return NG_OK;
    }
    int rc =
        ng_fail(call, NG_ECONFLICT,
                "The notebook has changed: it is at revision %.*s, expected was %.*s. Read "
                "it again before you run it",
                (int)now.len, now.data, (int)expected.len, expected.data);
    struct ng_writer *details = call->host->details(call);
    if (details != NULL) {
        call->host->json_object(details);
        call->host->json_name(details, "currentRevision");
        call->host->json_string(details, now);
        call->host->json_end(details);
    }
    return rc;
}

/* The cells to run: those that the arguments name, else these. */
struct run_cells {
    const struct ng_str *handles;
    size_t count;
};

/* The positions in call memory. */
static int choose_cells(struct ng_call *call, const struct nb *nb,
                        const struct run_cells *cells, size_t **ret, size_t *ret_count)
{
    if (cells == NULL) {
        int rc = cells_chosen_or_all(call, nb, ret, ret_count, NULL);
        if (rc == NG_OK && *ret_count == 0 && !cells_names_all(call, nb)) {
            rc = ng_fail(call, NG_EINVAL, "Cell indices array cannot be empty");
        }
        return rc;
    }
    *ret = ng_alloc(call, (cells->count + 1) * sizeof(**ret));
    for (size_t i = 0; *ret != NULL && i < cells->count; i++) {
        size_t index = cells_find(nb, cells->handles[i]);
        if (index != SIZE_MAX) {
            (*ret)[(*ret_count)++] = index;
        }
    }
    return cells_check_memory(call, *ret != NULL);
}

static int make_run(struct cells *self, struct ng_call *call, const struct run_cells *cells,
                    struct cells_run **ret)
{
    struct notebook_file notebook;
    size_t *chosen = NULL;
    size_t count = 0;
    int rc = cells_open(self, call, CELLS_CHANGES, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    struct cells_run *run = run_new(self, call, &notebook);
    if (run == NULL) {
        rc = cells_no_memory(call);
        goto out;
    }
    rc = check_revision(call, &notebook);
    if (rc != NG_OK) {
        goto out;
    }
    rc = choose_cells(call, &notebook.nb, cells, &chosen, &count);
    if (rc != NG_OK) {
        goto out;
    }
    if (!take_cells(&notebook.nb, chosen, count, run)) {
        rc = cells_no_memory(call);
        goto out;
    }
    rc = take_timeout(self, call, run->run);
    if (rc == NG_OK && run->run->cell_count > 0) {
        rc = pick_kernel(call, &notebook.nb, run);
    }
out:
    cells_close(&notebook);
    if (rc != NG_OK) {
        cells_run_free(run);
        return rc;
    }
    *ret = run;
    return NG_OK;
}

/* ---- execution ---- */

/* For background runs only the shutdown of the gateway cancels: they have no client. */
static bool run_cancelled(void *user)
{
    const struct cells_run *run = user;
    return run->call->host->cancelled(run->call);
}

static void run_progress(void *user, double done, size_t total, const char *text)
{
    const struct cells_run *run = user;
    struct ng_str message = {NULL, 0};
    if (text != NULL) {
        message = ng_str_of(text);
    }
    run->call->host->progress(run->call, done, (double)total, message);
}

/* Called by the kernel thread: continues on a worker. */
static void run_done(struct run *inner, void *user)
{
    struct cells_run *run = user;
    struct ng_call *call = run->call;
    struct ng_deferred *deferred = run->deferred;
    (void)inner;
    if (!cells_run_is_refreshing(run)) {
        (void)call->host->continue_on_worker(call, cells_run_save, run);
        call->host->finish(deferred, NG_PENDING);
    }
}

int cells_run_over(struct ng_call *call, struct cells_run *run)
{
    call->host->finish(run->deferred, NG_PENDING);
    return cells_run_save(call, run);
}

/* Completion of the call: its memory is released. */
static void run_ended(void *user, int rc, struct ng_str message)
{
    struct cells_run *run = user;
    cells_runs_over(run->self->runs, run, rc, message);
}

/* The call waits without occupying a thread. */
static int run_begin(struct ng_call *call, void *user)
{
    struct cells_run *run = user;
    int rc = call->host->on_complete(call, run_ended, run);
    if (rc != NG_OK) {
        cells_runs_over(run->self->runs, run, rc, ng_str_of("out of memory"));
        return rc;
    }
    run->call = call;
    run->deferred = call->host->defer(call);
    run->run->cancelled = run_cancelled;
    run->run->progress = run_progress;
    run->run->request_source = cells_run_refresh;
    run->run->done = run_done;
    run->run->user = run;
    kernels_run(run->self->kernels, run->run, &run->spec);
    return NG_PENDING;
}

static int run_in_background(struct cells *self, struct ng_call *call, struct cells_run *run)
{
    char id[CELLS_RUN_ID_SIZE];
    size_t cells = run->run->cell_count;
    struct ng_str path = call->host->format(call, "%s", run->path);
    memcpy(id, run->id, sizeof(id));
    cells_runs_add(self->runs, run);
    int rc = call->host->background(call, run_begin, run);
    if (rc != NG_OK) {
        cells_runs_over(self->runs, run, rc, ng_str_of("the run could not be started"));
        return rc;
    }
    return cells_replyf(
        call, path,
        "Running %zu cell(s) in the background. Run: %s\ngetNotebookRun shows its state.",
        cells, id);
}

static int run_chosen(struct cells *self, struct ng_call *call, const struct run_cells *cells)
{
    struct cells_run *run = NULL;
    int rc = make_run(self, call, cells, &run);
    if (rc != NG_OK) {
        return rc;
    }
    if (run->run->cell_count == 0) {
        struct nb_text text = {0};
        cells_answer(run, NULL, &text);
        rc = cells_reply(call, ng_str_of(run->path), &text);
        cells_run_free(run);
        return rc;
    }
    rc = cells_lease_take(self, call, ng_str_of(run->run->notebook), &run->losses);
    if (rc != NG_OK) {
        cells_run_free(run);
        return rc;
    }
    run->leased = true;
    if (call->host->json_type(ng_arg(call, "background")) == NG_TYPE_TRUE) {
        return run_in_background(self, call, run);
    }
    return run_begin(call, run);
}

int cells_run_run(void *user, struct ng_call *call, struct ng_str args)
{
    (void)args;
    return run_chosen(user, call, NULL);
}

int cells_run_cells(struct cells *self, struct ng_call *call, const struct ng_str *handles,
                    size_t count)
{
    const struct run_cells cells = {handles, count};
    return run_chosen(self, call, &cells);
}
