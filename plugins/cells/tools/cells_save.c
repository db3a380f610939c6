/* SPDX-License-Identifier: MIT */
/* cells_save.c - saves the outputs of a run in the present file, then completes the call. */
#include "cells_lease.h"
#include "cells_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Was the cell executed, so that its outputs are to be saved? */
static bool has_run(const struct run_cell *cell)
{
    return cell->started_ms != 0 && cell->state != CELL_NOT_RUN;
}

static void add_note(struct nb_text *note, const char *text, const char *more)
{
    nb_add_if(note, note->len > 0, "; ");
    nb_add_word(note, text);
    nb_add_word(note, more);
}

static void put_cell(struct nb_edit *edit, const struct nb *nb, const struct run_cell *cell,
                     struct nb_text *note)
{
    struct nb_text json = {0};
    struct ng_str source = nb_text_str(&cell->source);
    size_t index = cells_run_find(nb, cell->handle, source);
    if (index == SIZE_MAX || nb->cells[index].type != NB_CODE) {
        add_note(note, "there is no longer a code cell ", cell->handle);
        return;
    }
    /* These outputs do not belong to the new source. */
    if (!cells_has_source(nb, index, source)) {
        add_note(note, "the source is no longer the one that was run in cell ", cell->handle);
        return;
    }
    outputs_json(&cell->outputs, nb->style.one_string, &json);
    nb_set_outputs(edit, nb, index, nb_text_str(&json), cell->count);
    edit->failed |= json.failed;
    nb_text_done(&json);
}

static void put_patch(struct nb_edit *edit, const struct nb *nb, const struct run_patch *patch)
{
    struct ng_str data = nb_text_str(&patch->data);
    struct nb_span whole = {0, data.len};
    struct nb_text bundle = {0};
    size_t index = cells_find(nb, ng_str_of(patch->handle));
    if (index == SIZE_MAX) {
        return;
    }
    output_bundle(&bundle, data, whole, nb->style.one_string);
    (void)nb_patch_output(edit, nb, index, patch->ordinal, nb_text_str(&bundle),
                          nb_text_str(&patch->metadata));
    edit->failed |= bundle.failed;
    nb_text_done(&bundle);
}

/* Did this run replace all outputs of the cell? */
static bool is_of_run(const struct run *run, const char *handle)
{
    for (size_t i = 0; i < run->cell_count; i++) {
        if (has_run(&run->cells[i]) && strcmp(run->cells[i].handle, handle) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes late output of the previous run's last cell if the file still has the outputs of that
 * run. True: all its outputs were replaced. */
static bool put_late(struct nb_edit *edit, const struct nb *nb, const struct run_cell *cell)
{
    struct nb_text json = {0};
    int64_t count = 0;
    struct ng_str source = nb_text_str(&cell->source);
    size_t index = cells_run_find(nb, cell->handle, source);
    if (index == SIZE_MAX || nb->cells[index].type != NB_CODE ||
        !cells_has_source(nb, index, source)) {
        return false;
    }
    if (!nb_integer(nb->bytes, nb->cells[index].count, &count)) {
        count = -1;
    }
    if (count != cell->count) {
        return false;
    }
    outputs_json(&cell->outputs, nb->style.one_string, &json);
    if (cell->outputs.cleared) {
        nb_set_outputs(edit, nb, index, nb_text_str(&json), cell->count);
    } else { /* also in place of what came late and was saved before */
        nb_replace_outputs(edit, nb, index, cell->before, nb_text_str(&json));
    }
    edit->failed |= json.failed;
    nb_text_done(&json);
    return cell->outputs.cleared;
}

/* Writes all outputs to the draft; `note` gets the reason for those that could not be
 * written. */
static int put_outputs(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, struct cells_run *cells_run, struct nb_text *note)
{
    const struct run *run = cells_run->run;
    struct nb nb;
    struct nb_error error;
    struct nb_edit edit = {0};
    if (present->type != NG_FILE_REGULAR) {
        add_note(note, "the file is gone", "");
        return NG_OK;
    }
    if (cells_run->is_late && !kernels_is_late(cells_run->self->kernels, run)) {
        return NG_OK;
    }
    enum nb_fault fault = nb_index(present->data, &nb, &error);
    if (cells_should_reread(fault, &cells_run->reads)) {
        return NG_EWOULDBLOCK;
    }
    if (fault != NB_FINE) {
        add_note(note, "the file cannot be used any more: ", error.text);
        return NG_OK;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        if (has_run(&run->cells[i])) {
            put_cell(&edit, &nb, &run->cells[i], note);
        }
    }
    bool anew = run->late != NULL && put_late(&edit, &nb, run->late);
    for (size_t i = 0; i < run->patches.count; i++) {
        const struct run_patch *patch = &run->patches.items[i];
        if (!is_of_run(run, patch->handle) &&
            !(anew && strcmp(run->late->handle, patch->handle) == 0)) {
            put_patch(&edit, &nb, patch);
        }
    }
    nb_done(&nb);
    int rc = cells_draft(call, next, present->data, &edit);
    nb_edit_done(&edit);
    return rc;
}

/* Completes the call, and keeps the answer for getNotebookRun. */
static int answer(struct ng_call *call, struct cells_run *run, const struct nb_text *note)
{
    struct nb_text text = {0};
    struct nb_text said = {0};
    nb_add_str(&said, nb_text_str(note));
    nb_add(&said, "", 1);
    if (said.failed) {
        nb_text_done(&said);
        return cells_no_memory(call);
    }
    cells_runs_lock(run->self->runs);
    cells_answer(run, said.len > 1 ? said.data : NULL, &text);
    int code = run->code;
    nb_text_done(&run->text);
    nb_add_str(&run->text, nb_text_str(&text));
    cells_runs_unlock(run->self->runs);
    nb_text_done(&said);
    int rc = cells_check_memory(call, !text.failed);
    if (rc == NG_OK && run->background) {
        /* getNotebookRun returns the answer: the call has no reader. */
    } else if (rc == NG_OK && code == NG_OK) {
        rc = cells_answer_reply(call, run, &text);
    } else if (rc == NG_OK) {
        /* Only the call fails: the outputs are saved. */
        rc = cells_add_notebook(call, ng_str_of(run->path), &text);
        if (rc == NG_OK) {
            rc = call->host->fail_on_completion(call, code, nb_text_str(&text));
        }
    }
    nb_text_done(&text);
    return rc;
}

static int save_file(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    struct cells_run *run = user;
    struct nb_text note = {0};
    int rc = put_outputs(call, present, next, run, &note);
    if (rc == NG_OK && !run->is_late) {
        rc = answer(call, run, &note);
    }
    nb_text_done(&note);
    return rc;
}

static bool anything_ran(const struct run *run)
{
    for (size_t i = 0; i < run->cell_count; i++) {
        if (has_run(&run->cells[i])) {
            return true;
        }
    }
    return run->patches.count > 0 || run->late != NULL;
}

static const char *why_unsaved(int code)
{
    static const struct {
        int code;
        const char *why;
    } reasons[] = {
        {NG_EOUTSIDE, "the file is no longer in any root"},
        {NG_ENOTFOUND, "the file is gone"},
        {NG_ECONFLICT, "other programs keep changing the file"},
        {NG_EFORBIDDEN, "the file may not be written"},
        {NG_EFULL, "no room is left on the disk"},
        {NG_ETOOLARGE, "the file is too large"},
        {NG_EUNAVAILABLE, "the storage does not answer"},
        {CELLS_EELSEWHERE, "another gateway runs the kernel of this notebook now"},
    };
    for (size_t i = 0; i < NG_COUNT(reasons); i++) {
        if (reasons[i].code == code) {
            return reasons[i].why;
        }
    }
    return "the file could not be changed";
}

/* Nothing was saved: the answer contains the outputs. */
static int fail_with_outputs(struct ng_call *call, struct cells_run *run, int code)
{
    struct nb_text text = {0};
    cells_runs_lock(run->self->runs);
    cells_answer(run, why_unsaved(code), &text);
    run->code = code;
    run->text.len = 0;
    nb_add_str(&run->text, nb_text_str(&text));
    cells_runs_unlock(run->self->runs);
    return cells_fail_run(call, run, code, &text);
}

int cells_run_save(struct ng_call *call, void *user)
{
    struct cells_run *run = user;
    struct nb_text none = {0};
    call->host->mask_cancel(call); /* outputs are saved even if the client has left */
    cells_runs_remember(run->self->runs, run->run);
    if (!anything_ran(run->run)) {
        int rc = answer(call, run, &none);
        if (rc == NG_OK && run->code != NG_OK && !run->background) {
            struct nb_text text = {0};
            nb_add_str(&text, nb_text_str(&run->text));
            return cells_fail_run(call, run, run->code, &text);
        }
        return rc;
    }
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = call->host->format(call, "%s", run->path),
        .fn = save_file,
        .user = run,
        .max_bytes = CELLS_FILE_MAX,
        .collection = CELLS_COLLECTION,
        .action = "run",
    };
    if (edit.path.data == NULL) {
        return cells_no_memory(call);
    }
    int rc = cells_lease_check(run->self, call, ng_str_of(run->run->notebook), run->losses);
    if (rc == NG_OK) {
        rc = call->host->file_edit(call, &edit);
    }
    if (rc < NG_OK && rc != NG_EINTERNAL && !run->is_late) {
        return fail_with_outputs(call, run, rc);
    }
    if (rc >= NG_OK) {
        cells_late_watch(call, run);
    }
    return rc;
}
