/* SPDX-License-Identifier: MIT */
/* cells_save.c - the outputs of a run go into the file, as it is by then, and the call ends. */
#include "cells_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whose outputs are to be kept: it was begun. */
static bool has_run(const struct run_cell *cell)
{
    return cell->started_ms != 0 && cell->state != CELL_NOT_RUN;
}

static void add_note(struct nb_text *note, const char *text, const char *more)
{
    nb_add_word(note, note->len > 0 ? "; " : "");
    nb_add_word(note, text);
    nb_add_word(note, more);
}

static void put_cell(struct nb_edit *edit, const struct nb *nb, const struct run_cell *cell,
                     struct nb_text *note)
{
    struct nb_text json = {0};
    size_t index = cells_find(nb, ng_str_of(cell->handle));
    if (index == SIZE_MAX || nb->cells[index].type != NB_CODE) {
        add_note(note, "meanwhile there is no longer a code cell ", cell->handle);
        return;
    }
    outputs_json(&cell->outputs, nb->style.one_string, &json);
    nb_set_outputs(edit, nb, index, nb_text_str(&json), cell->count);
    edit->failed = edit->failed || json.failed;
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
    edit->failed = edit->failed || bundle.failed;
    nb_text_done(&bundle);
}

/* What there is to write into this file. Without one, `note` says why. */
static int put_outputs(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, const struct run *run, struct nb_text *note)
{
    struct nb nb;
    struct nb_error error;
    struct nb_edit edit = {0};
    if (present->type != NG_FILE_REGULAR) {
        add_note(note, "the file is gone", "");
        return NG_OK;
    }
    if (nb_index(present->data, &nb, &error) != NB_FINE) {
        add_note(note, "the file cannot be used any more: ", error.text);
        return NG_OK;
    }
    for (size_t i = 0; i < run->cell_count; i++) {
        if (has_run(&run->cells[i])) {
            put_cell(&edit, &nb, &run->cells[i], note);
        }
    }
    for (size_t i = 0; i < run->patch_count; i++) {
        put_patch(&edit, &nb, &run->patches[i]);
    }
    int rc = cells_draft(call, next, &nb, &edit);
    nb_edit_done(&edit);
    nb_done(&nb);
    return rc;
}

/* The answer, in the call and for who asks later. */
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
    int rc = text.failed ? cells_no_memory(call) : NG_OK;
    if (rc == NG_OK && code == NG_OK) {
        rc = ng_reply(call, nb_text_str(&text));
        rc = rc == NG_OK ? cells_answer_images(call, run->run) : rc;
    } else if (rc == NG_OK) {
        /* The outputs are saved all the same: only the call fails. */
        rc = call->host->fail_after(call, code, nb_text_str(&text));
    }
    nb_text_done(&text);
    return rc;
}

static int save_file(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    struct cells_run *run = user;
    struct nb_text note = {0};
    int rc = put_outputs(call, present, next, run->run, &note);
    rc = rc != NG_OK ? rc : answer(call, run, &note);
    nb_text_done(&note);
    cells_runs_lock(run->self->runs);
    run->over = true;
    cells_runs_unlock(run->self->runs);
    return rc;
}

static bool anything_ran(const struct run *run)
{
    for (size_t i = 0; i < run->cell_count; i++) {
        if (has_run(&run->cells[i])) {
            return true;
        }
    }
    return run->patch_count > 0;
}

int cells_run_save(struct ng_call *call, void *user)
{
    struct cells_run *run = user;
    struct cells_runs *runs = run->self->runs;
    struct nb_text none = {0};
    int rc;
    cells_runs_remember(runs, run->run);
    if (!anything_ran(run->run)) {
        rc = answer(call, run, &none);
        rc = rc == NG_OK && run->code != NG_OK
                 ? call->host->fail_text(call, run->code, nb_text_str(&run->text))
                 : rc;
        cells_runs_lock(runs);
        run->over = true;
        cells_runs_unlock(runs);
    } else {
        struct ng_file_edit edit = {
            .size = sizeof(edit),
            .path = call->host->format(call, "%s", run->path),
            .fn = save_file,
            .user = run,
            .max_bytes = CELLS_FILE_MAX,
            .collection = CELLS_COLLECTION,
            .action = "run",
        };
        rc =
            edit.path.data == NULL ? cells_no_memory(call) : call->host->file_edit(call, &edit);
        if (rc < NG_OK) {
            cells_runs_lock(runs);
            run->over = true;
            run->code = rc;
            nb_add_word(&run->text, "The cells ran, and their outputs could not be saved.");
            cells_runs_unlock(runs);
        }
    }
    return rc;
}
