/* SPDX-License-Identifier: MIT */
/* cells_answer.c - the answer of a run, finished or not (getNotebookRun). */
#include "cells_lease.h"
#include "cells_run.h"
#include "core/base/minmax.h"
#include "core/base/utf8.h"
#include "notebook/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Minimum share of each cell in the answer. */
#define SHARE_LEAST 2048
/* Limits of an exception's name and value in the first sentence. */
#define HEAD_NAME_MAX 200
#define HEAD_VALUE_MAX 800

static size_t count_state(const struct run *run, enum cell_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < run->cell_count; i++) {
        count += run->cells[i].state == state;
    }
    return count;
}

static size_t count_good(const struct run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->cell_count; i++) {
        const struct run_cell *cell = &run->cells[i];
        count += cell->state == CELL_OK || (cell->state == CELL_ERROR && cell->may_raise);
    }
    return count;
}

/* The cell that stopped the run; NULL: none. */
static const struct run_cell *failed_cell(const struct run *run)
{
    for (size_t i = 0; i < run->cell_count; i++) {
        const struct run_cell *cell = &run->cells[i];
        bool bad = cell->state != CELL_OK && cell->state != CELL_NOT_RUN &&
                   cell->state != CELL_PENDING &&
                   !(cell->state == CELL_ERROR && cell->may_raise);
        if (bad) {
            return cell;
        }
    }
    return NULL;
}

/* ---- snapshots of cells, which may change after the lock is released ---- */

struct cell_snapshot {
    const char *handle;
    enum cell_state state;
    struct nb_text json, page;
    bool has_output;
};

static void snapshot_take(const struct run_cell *cell, struct cell_snapshot *ret)
{
    ret->handle = cell->handle;
    ret->state = cell->state;
    ret->has_output =
        cell->outputs.count > 0 || cell->outputs.dropped > 0 || cell->page.len > 0;
    if (ret->has_output) {
        outputs_json(&cell->outputs, true, &ret->json);
        nb_add_str(&ret->page, nb_text_str(&cell->page));
    }
}

/* NULL: out of memory. */
static struct cell_snapshot *snapshots_take(const struct run *run)
{
    struct cell_snapshot *snapshots = calloc(run->cell_count + 1, sizeof(*snapshots));
    for (size_t i = 0; snapshots != NULL && i < run->cell_count; i++) {
        snapshot_take(&run->cells[i], &snapshots[i]);
    }
    return snapshots;
}

static void snapshots_free(struct cell_snapshot *snapshots, size_t count)
{
    for (size_t i = 0; snapshots != NULL && i < count; i++) {
        nb_text_done(&snapshots[i].json);
        nb_text_done(&snapshots[i].page);
    }
    free(snapshots);
}

static void add_outputs(const struct cell_snapshot *snapshots, size_t share,
                        struct nb_text *out)
{
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    if (rendered == NULL) {
        out->failed = true;
        return;
    }
    struct nb_span whole = {0, snapshots->json.len};
    if (!snapshots->json.failed) {
        render_outputs(rendered, nb_text_str(&snapshots->json), whole, false);
    }
    if (snapshots->page.len > 0) {
        nb_add_if(&rendered->text, rendered->text.len > 0, "\n\n");
        screen_show(&rendered->text, nb_text_str(&snapshots->page));
    }
    render_cut_outputs(out, rendered, share);
    if (rendered->image_count > 0) {
        nb_add_if(out, rendered->text.len > 0, "\n");
        nb_addf(out, "[%zu image(s)]", rendered->image_count);
    }
    out->failed |= snapshots->json.failed || snapshots->page.failed || rendered->failed;
    render_done(rendered);
    free(rendered);
}

static void add_all_outputs(const struct cells_run *cells_run,
                            const struct cell_snapshot *snapshots, struct nb_text *out)
{
    size_t cells = 0;
    size_t count = cells_run->run->cell_count;
    for (size_t i = 0; i < count; i++) {
        cells += snapshots[i].has_output;
    }
    if (cells == 0) {
        return;
    }
    size_t share = size_max((size_t)cells_run->self->max_output_text / cells, SHARE_LEAST);
    const char *before = "\n\nOutputs:\n";
    for (size_t i = 0; i < count; i++) {
        if (snapshots[i].has_output) {
            nb_addf(out, "%sCell %s:\n", before, snapshots[i].handle);
            add_outputs(&snapshots[i], share, out);
            before = "\n\n";
        }
    }
}

/* Output of threads after the end of the previous run. */
static void add_late_output(const struct cells_run *cells_run, struct nb_text *out)
{
    const struct run_cell *cell = cells_run->run->late;
    struct cell_snapshot snapshots = {0};
    if (cell == NULL) {
        return;
    }
    snapshot_take(cell, &snapshots);
    if (snapshots.has_output) {
        nb_addf(out, "\n\nOutput of cell %s after the end of its run:\n", cell->handle);
        add_outputs(&snapshots, (size_t)cells_run->self->max_output_text, out);
    }
    nb_text_done(&snapshots.json);
    nb_text_done(&snapshots.page);
}

/* ---- outcome ---- */

/* The length without a full stop at the end: more text follows. */
static size_t without_stop(const char *text)
{
    size_t len = strlen(text);
    if (len > 0 && text[len - 1] == '.') {
        return len - 1;
    }
    return len;
}

static void add_left(const struct run *run, size_t good, struct nb_text *out)
{
    size_t left = count_state(run, CELL_NOT_RUN);
    nb_addf(out, ". %zu of %zu cell(s) were executed before", good, run->cell_count);
    if (left > 0) {
        nb_addf(out, ", %zu not at all", left);
    }
    nb_add_word(out, ".");
}

/* Appends the beginning of the text without escape sequences. */
static void add_clean(struct nb_text *out, struct ng_str text, size_t max)
{
    struct nb_text clean = {0};
    screen_show(&clean, text);
    struct ng_str said = nb_text_str(&clean);
    nb_add_str(out, utf8_cut(said, max));
    out->failed |= clean.failed;
    nb_text_done(&clean);
}

static const int fault_codes[] = {
    [RUN_FINE] = NG_OK,
    [RUN_NO_KERNEL] = CELLS_EKERNEL,
    [RUN_BUSY] = NG_EBUSY,
    [RUN_KERNEL_DIED] = CELLS_EKERNEL,
    [RUN_TIMED_OUT] = NG_ETIMEOUT,
    [RUN_CANCELLED] = NG_ECANCELLED,
    [RUN_STOPPED] = CELLS_EKERNEL,
    [RUN_ABORTED] = CELLS_EFAILED,
    [RUN_LOST] = CELLS_EELSEWHERE,
};

static void add_head(struct cells_run *cells_run, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    const struct run_cell *cell = failed_cell(run);
    const char *handle = "";
    if (cell != NULL) {
        handle = cell->handle;
    }
    size_t good = count_good(run);
    cells_run->code = NG_OK;
    if (cell != NULL && cell->state == CELL_ERROR) {
        cells_run->code = CELLS_EFAILED;
        nb_addf(out, "Cell %s failed", handle);
        nb_add_if(out, cell->outputs.ename.len > 0, ": ");
        add_clean(out, nb_text_str(&cell->outputs.ename), HEAD_NAME_MAX);
        nb_add_if(out, cell->outputs.evalue.len > 0, ": ");
        add_clean(out, nb_text_str(&cell->outputs.evalue), HEAD_VALUE_MAX);
    } else if (cell != NULL && cell->state == CELL_TIMED_OUT) {
        cells_run->code = NG_ETIMEOUT;
        nb_addf(out, "Cell %s was interrupted: it ran longer than %g s (timeout)", handle,
                (double)run->timeout_ms / 1000);
    } else if (cell != NULL && cell->state == CELL_STUCK) {
        cells_run->code = NG_ETIMEOUT;
        nb_addf(out, "Cell %s ", handle);
        if (run->stop_state == CELL_TIMED_OUT) {
            nb_addf(out, "ran longer than %g s, ", (double)run->timeout_ms / 1000);
        }
        nb_add_word(out, "was interrupted, and is still running: restartKernel ends it");
    } else if (cell != NULL && cell->state == CELL_INTERRUPTED) {
        cells_run->code = CELLS_EFAILED;
        nb_addf(out, "Cell %s was interrupted", handle);
        nb_add_if(out, run->why[0] != '\0', ": ");
        nb_add_word(out, run->why);
    } else if (cell != NULL && cell->state == CELL_DIED) {
        cells_run->code = CELLS_EKERNEL;
        nb_addf(out, "Cell %s did not end: %s", handle, run->why);
    } else if (run->fault != RUN_FINE) {
        cells_run->code = fault_codes[run->fault];
        nb_addf(out, "%.*s", (int)without_stop(run->why), run->why);
    } else {
        nb_addf(out, "Successfully executed %zu cell(s).", good);
        return;
    }
    add_left(run, good, out);
}

/* Notes about the kernel that the caller would not expect. */
static void add_kernel_notes(const struct cells_run *cells_run, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    const char *asked = cells_run->asked;
    if (cells_run->fallback != NULL && run->origin != ORIGIN_USED) {
        nb_addf(out,
                "\nThe kernel `%.100s` that the notebook names is not installed: `%s` "
                "was started instead.",
                cells_run->fallback, run->kernel_name);
    }
    if (run->origin == ORIGIN_AFTER_RESTART) {
        nb_add_word(out,
                    "\nThe kernel of this notebook was restarted: all its variables are lost.");
    } else if (run->origin == ORIGIN_AFTER_LOSS) {
        nb_add_word(out, "\nThe kernel of this notebook had ended: a new one was started, all "
                         "its variables are lost.");
    } else if (run->origin != ORIGIN_USED && cells_run->fallback == NULL) {
        nb_addf(out, "\nA new kernel was started for this notebook: `%s`.", run->kernel_name);
    }
    if (asked != NULL && run->kernel_name[0] != '\0' &&
        strcasecmp(asked, run->kernel_name) != 0) {
        nb_addf(out,
                "\nThe kernel of this notebook is `%s` and runs already: `%.100s` was not "
                "started.",
                run->kernel_name, asked);
    }
    if (run->kernel_ended) {
        nb_add_word(out, "\nThe kernel ended by itself; the next run starts a new one.");
    }
}

/* Notes about cells whose source changed before they were executed. */
static void add_source_notes(const struct run *run, struct nb_text *out)
{
    for (size_t i = 0; i < run->cell_count; i++) {
        const struct run_cell *cell = &run->cells[i];
        if (cell->source_state == SOURCE_GONE) {
            nb_addf(out, "\nCell %s was not run: it is no longer a code cell of the notebook.",
                    cell->handle);
        } else if (cell->source_state == SOURCE_CHANGED && cell->state != CELL_NOT_RUN) {
            nb_addf(out,
                    "\nThe source of cell %s was changed after the run was asked for: the "
                    "new one was run.",
                    cell->handle);
        }
    }
}

void cells_answer(struct cells_run *cells_run, const char *note, struct nb_text *out)
{
    struct cell_snapshot *snapshots = snapshots_take(cells_run->run);
    add_head(cells_run, out);
    if (cells_run->skipped > 0) {
        nb_addf(out, "\n%zu cell(s) were skipped: no code, or tagged skip-execution.",
                cells_run->skipped);
    }
    add_source_notes(cells_run->run, out);
    add_kernel_notes(cells_run, out);
    if (note != NULL) {
        nb_add_word(out, "\nNot all outputs were saved: ");
        nb_add_word(out, note);
    }
    if (snapshots != NULL) {
        add_all_outputs(cells_run, snapshots, out);
    }
    add_late_output(cells_run, out);
    out->failed |= snapshots == NULL;
    snapshots_free(snapshots, cells_run->run->cell_count);
}

static int add_images(struct cells_images *images, const struct run_cell *cell)
{
    struct nb_text json = {0};
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    outputs_json(&cell->outputs, false, &json);
    struct nb_span whole = {0, json.len};
    int rc = NG_OK;
    if (rendered == NULL || json.failed) {
        rc = cells_no_memory(images->call);
    } else {
        render_outputs(rendered, nb_text_str(&json), whole, false);
        rc = cells_images_add(images, rendered, cell->handle);
        render_done(rendered);
    }
    free(rendered);
    nb_text_done(&json);
    return rc;
}

int cells_answer_reply(struct ng_call *call, const struct cells_run *run, struct nb_text *text)
{
    struct cells_images images;
    int rc = NG_OK;
    cells_images_begin(&images, run->self, call, ng_str_of(run->path), text);
    for (size_t i = 0; i < run->run->cell_count && rc == NG_OK; i++) {
        rc = add_images(&images, &run->run->cells[i]);
    }
    cells_images_end(&images);
    if (rc != NG_OK) {
        nb_text_done(text);
        return rc;
    }
    return cells_reply(call, ng_str_of(run->path), text);
}

int cells_fail_run(struct ng_call *call, const struct cells_run *run, int code,
                   struct nb_text *text)
{
    int rc = cells_add_notebook(call, ng_str_of(run->path), text);
    if (rc == NG_OK) {
        rc = cells_check_memory(call, !text->failed);
    }
    if (rc == NG_OK) {
        rc = call->host->fail_text(call, code, nb_text_str(text));
    }
    nb_text_done(text);
    return rc;
}

/* ---- getNotebookRun ---- */

static const char *state_word(enum cell_state state)
{
    static const char *const words[] = {"pending",       "running",     "success",
                                        "failed",        "timed out",   "interrupted",
                                        "still running", "kernel died", "not run"};
    return words[state];
}

/* Describes a run in progress from its snapshots, without the lock. */
static void describe(const struct cells_run *cells_run, size_t done, enum run_state state,
                     const struct cell_snapshot *snapshots, struct nb_text *out)
{
    static const char *const states[] = {"queued", "starting the kernel", "running", "saving"};
    size_t count = cells_run->run->cell_count;
    nb_addf(out, "Run %s is %s: %zu of %zu cell(s) done", cells_run->id, states[state], done,
            count);
    for (size_t i = 0; i < count; i++) {
        nb_addf(out, "\nCell %s: %s", snapshots[i].handle, state_word(snapshots[i].state));
    }
    add_all_outputs(cells_run, snapshots, out);
}

static int reply_going_on(struct cells *self, struct ng_call *call, struct cells_run *run)
{
    struct nb_text out = {0};
    kernels_lock(self->kernels);
    struct cell_snapshot *snapshots = snapshots_take(run->run);
    size_t done = run->run->at;
    enum run_state state = run->run->state;
    kernels_unlock(self->kernels);
    if (snapshots == NULL) {
        return cells_no_memory(call);
    }
    describe(run, done, state, snapshots, &out);
    snapshots_free(snapshots, run->run->cell_count);
    cells_fit_text(call, ng_str_of(run->path), &out);
    return cells_reply(call, ng_str_of(run->path), &out);
}

/* Repeats the answer of runNotebookCells. */
static int reply_over(struct ng_call *call, const struct cells_run *run)
{
    struct nb_text told = {0};
    nb_add_str(&told, nb_text_str(&run->text));
    if (run->code == NG_OK) {
        return cells_answer_reply(call, run, &told);
    }
    return cells_fail_run(call, run, run->code, &told);
}

int cells_get_run_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct ng_str id = ng_arg_text(call, "run");
    struct ng_str owner = cells_owner_key(call);
    (void)args;
    struct cells_run *run = cells_runs_get(self->runs, id, owner);
    if (run == NULL) {
        int rc = cells_lease_find_run(self, call, id);
        if (rc != NG_OK) {
            return rc;
        }
        rc = ng_fail(call, CELLS_ENORUN, "There is no run %.*s", (int)id.len, id.data);
        call->host->hint(call, "Only the gateway that started a run knows it; it forgets runs "
                               "at a restart, and the oldest when there are many");
        return rc;
    }
    cells_runs_lock(self->runs);
    bool over = run->over;
    cells_runs_unlock(self->runs);
    int rc;
    if (over) {
        rc = reply_over(call, run);
    } else {
        rc = reply_going_on(self, call, run);
    }
    cells_runs_unref(self->runs, run);
    return rc;
}
