/* SPDX-License-Identifier: MIT */
/* cells_answer.c - what is said of a run, also of one that is under way (getNotebookRun). */
#include "cells_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each cell's share of the answer is at least this. */
#define SHARE_LEAST 2048

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

/* The cell at which the run stopped; NULL: it did not. */
static const struct run_cell *culprit(const struct run *run)
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

static void add_format(struct nb_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_format(struct nb_text *out, const char *format, ...)
{
    char text[KERNEL_WHY_MAX + 512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    nb_add_word(out, text);
}

static void add_outputs(const struct cells_run *cells_run, const struct run_cell *cell,
                        size_t share, struct nb_text *out)
{
    struct nb_text json = {0};
    struct show *show = calloc(1, sizeof(*show));
    if (show == NULL) {
        out->failed = true;
        return;
    }
    outputs_json(&cell->outputs, false, &json);
    struct nb_span whole = {0, json.len};
    (void)cells_run;
    if (!json.failed) {
        show_outputs(show, nb_text_str(&json), whole, false);
    }
    if (cell->page.len > 0) {
        nb_add_word(&show->text, show->text.len > 0 ? "\n\n" : "");
        show_clean(&show->text, nb_text_str(&cell->page));
    }
    show_cut(out, nb_text_str(&show->text), share);
    if (show->image_count > 0) {
        add_format(out, "%s[%zu image(s)]", show->text.len > 0 ? "\n" : "", show->image_count);
    }
    out->failed = out->failed || json.failed || show->failed;
    show_done(show);
    free(show);
    nb_text_done(&json);
}

static bool puts_out(const struct run_cell *cell)
{
    return cell->outputs.count > 0 || cell->outputs.dropped > 0 || cell->page.len > 0;
}

static void add_all_outputs(const struct cells_run *cells_run, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    size_t cells = 0;
    for (size_t i = 0; i < run->cell_count; i++) {
        cells += puts_out(&run->cells[i]);
    }
    size_t share = cells == 0 ? 0 : (size_t)cells_run->self->max_output_text / cells;
    share = share < SHARE_LEAST ? SHARE_LEAST : share;
    nb_add_word(out, cells > 0 ? "\n\nOutputs:\n" : "");
    bool first = true;
    for (size_t i = 0; i < run->cell_count; i++) {
        if (puts_out(&run->cells[i])) {
            add_format(out, "%sCell %s:\n", first ? "" : "\n\n", run->cells[i].handle);
            add_outputs(cells_run, &run->cells[i], share, out);
            first = false;
        }
    }
}

static void add_head(struct cells_run *cells_run, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    const struct run_cell *cell = culprit(run);
    const char *handle = cell == NULL ? "" : cell->handle;
    size_t good = count_good(run);
    cells_run->code = NG_OK;
    if (cell != NULL && cell->state == CELL_ERROR) {
        struct ng_str name = nb_text_str(&cell->outputs.ename);
        struct ng_str value = nb_text_str(&cell->outputs.evalue);
        cells_run->code = CELLS_EFAILED;
        add_format(out, "Cell %s failed: %.*s: %.*s", handle,
                   (int)(name.len > 200 ? 200 : name.len), name.data,
                   (int)(value.len > 800 ? 800 : value.len), value.data);
    } else if (cell != NULL && cell->state == CELL_TIMED_OUT) {
        cells_run->code = NG_ETIMEOUT;
        add_format(out, "Cell %s was interrupted: it ran longer than %lld s (timeout)", handle,
                   (long long)(run->timeout_ms / 1000));
    } else if (cell != NULL && cell->state == CELL_STUCK) {
        cells_run->code = NG_ETIMEOUT;
        add_format(out,
                   "Cell %s ran longer than %lld s, was interrupted, and is still running: "
                   "restartKernel ends it",
                   handle, (long long)(run->timeout_ms / 1000));
    } else if (cell != NULL && cell->state == CELL_INTERRUPTED) {
        cells_run->code = CELLS_EFAILED;
        add_format(out, "Cell %s was interrupted", handle);
    } else if (cell != NULL && cell->state == CELL_DIED) {
        cells_run->code = CELLS_EKERNEL;
        add_format(out, "Cell %s did not end: %s", handle, run->why);
    } else if (run->fault != RUN_FINE) {
        cells_run->code = run->fault == RUN_BUSY        ? NG_EBUSY
                          : run->fault == RUN_CANCELLED ? NG_ECANCELLED
                          : run->fault == RUN_TIMED_OUT ? NG_ETIMEOUT
                                                        : CELLS_EKERNEL;
        add_format(out, "%s", run->why);
    } else {
        add_format(out, "Successfully executed %zu cell(s).", good);
        return;
    }
    size_t left = count_state(run, CELL_NOT_RUN);
    add_format(out, ". %zu of %zu cell(s) were executed before%s", good, run->cell_count,
               left > 0 ? "" : ".");
    if (left > 0) {
        add_format(out, ", %zu not at all.", left);
    }
}

void cells_answer(struct cells_run *cells_run, const char *note, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    add_head(cells_run, out);
    if (cells_run->fallback != NULL && run->new_kernel) {
        add_format(out,
                   "\nThe kernel `%.100s` that the notebook names is not installed: `%s` "
                   "was started instead.",
                   cells_run->fallback, run->kernel_name);
    }
    if (run->state_lost) {
        nb_add_word(out, "\nThe kernel of this notebook had ended: a new one was started, all "
                         "its variables are gone.");
    }
    if (run->kernel_ended) {
        nb_add_word(out, "\nThe kernel ended by itself; the next run starts a new one.");
    }
    if (note != NULL) {
        nb_add_word(out, "\nNot all outputs were saved: ");
        nb_add_word(out, note);
    }
    add_all_outputs(cells_run, out);
}

int cells_answer_images(struct ng_call *call, const struct run *run)
{
    int rc = NG_OK;
    for (size_t i = 0; i < run->cell_count && rc == NG_OK; i++) {
        struct nb_text json = {0};
        struct show *show = calloc(1, sizeof(*show));
        outputs_json(&run->cells[i].outputs, false, &json);
        struct nb_span whole = {0, json.len};
        if (show == NULL || json.failed) {
            rc = cells_no_memory(call);
        } else {
            show_outputs(show, nb_text_str(&json), whole, false);
            for (size_t k = 0; k < show->image_count && rc == NG_OK; k++) {
                rc = call->host->reply_media(call, "image", show->images[k].mime,
                                             nb_text_str(&show->images[k].bytes));
            }
            show_done(show);
        }
        free(show);
        nb_text_done(&json);
    }
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

static void describe(struct cells_run *cells_run, struct nb_text *out)
{
    const struct run *run = cells_run->run;
    static const char *const states[] = {"queued", "starting the kernel", "running", "saving"};
    add_format(out, "Run %s is %s: %zu of %zu cell(s) done", cells_run->id, states[run->state],
               run->at, run->cell_count);
    for (size_t i = 0; i < run->cell_count; i++) {
        add_format(out, "\nCell %s: %s", run->cells[i].handle, state_word(run->cells[i].state));
    }
    add_all_outputs(cells_run, out);
}

int cells_get_run_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct ng_str id = ng_arg_text(call, "run");
    const struct ng_caller *caller = call->caller;
    struct ng_str owner =
        call->host->format(call, "%.*s/%.*s", (int)caller->space.len, caller->space.data,
                           (int)caller->agent.len, caller->agent.data);
    struct nb_text out = {0};
    (void)args;
    struct cells_run *run = cells_runs_get(self->runs, id, owner);
    if (run == NULL) {
        int rc = ng_fail(call, CELLS_ENORUN, "There is no run %.*s", (int)id.len, id.data);
        call->host->hint(call, "Runs are forgotten when the gateway restarts, and the oldest "
                               "when there are many");
        return rc;
    }
    kernels_lock(self->kernels);
    cells_runs_lock(self->runs);
    bool over = run->over;
    int code = run->code;
    if (over) {
        nb_add_str(&out, nb_text_str(&run->text));
    } else {
        describe(run, &out);
    }
    cells_runs_unlock(self->runs);
    kernels_unlock(self->kernels);
    cells_runs_unref(self->runs, run);
    if (over && code != NG_OK && !out.failed) {
        int rc = call->host->fail_text(call, code, nb_text_str(&out));
        nb_text_done(&out);
        return rc;
    }
    return cells_reply(call, &out);
}
