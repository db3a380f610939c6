/* SPDX-License-Identifier: MIT */
/* cells_read.c - getNotebookCells and getCellOutputs. */
#include "cells.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Minimum share of each cell in an answer with the outputs of several. */
#define READ_SHARE_LEAST 2048
#define READ_EARLIER "These are of an earlier run. "
#define READ_UNSAVED                                                                           \
    "A run of this cell is in progress; its outputs go into the file when it ends. "           \
    "getNotebookRun shows the outputs of a background run so far."

/* Bytes of a cell beside its source and fences, and of the line about cells left out. */
#define READ_CELL_HEAD_MAX 512
#define READ_LEFT_OUT_MAX (CELLS_HANDLE_MAX + 64)

/* A source of more than `max` bytes is cut. */
static void add_source(struct nb_text *out, struct ng_str source, size_t max)
{
    struct ng_str shown = utf8_cut(source, max);
    nb_add_str(out, shown);
    if (shown.len < source.len) {
        nb_addf(out,
                "\n[... cut after %zu of %zu characters; fileEditor shows the lines of the "
                "file with view_range ...]",
                utf8_count(shown), utf8_count(source));
    }
}

/* max: bytes for the whole cell. */
static void add_cell(struct cells *self, struct ng_call *call,
                     const struct notebook_file *notebook, size_t index, size_t max,
                     struct nb_text *out)
{
    const struct nb_cell *cell = &notebook->nb.cells[index];
    struct nb_text source = {0};
    char handle[CELLS_HANDLE_MAX];
    struct nb_text fence = {0};
    cells_handle(&notebook->nb, index, handle);
    (void)nb_decode_lines(&source, notebook->nb.bytes, cell->source);
    render_fence(&fence, nb_text_str(&source));
    nb_addf(out, "\n\n### Cell %zu (%s)\nID: %s\nStatus: ", index, nb_type_name(cell->type),
            handle);
    cells_status(self, call, notebook, index, out);
    nb_add_word(out, "\n");
    nb_add_str(out, nb_text_str(&fence));
    nb_add_word(out, "\n");
    add_source(out, nb_text_str(&source),
               max - size_min(max, READ_CELL_HEAD_MAX + 2 * fence.len));
    out->failed |= source.failed;
    nb_text_done(&source);
    nb_add_word(out,
                "\n"); /* so that a newline at the end of the source shows as an empty line */
    nb_add_done(out, &fence);
}

static void add_left_out(const struct nb *nb, size_t first, size_t count, struct nb_text *out)
{
    char handle[CELLS_HANDLE_MAX];
    cells_handle(nb, first, handle);
    nb_addf(out, "\n\n[%zu more cell(s) left out, from %s on: name them]", count, handle);
}

/* Those that fit: until `out` has `most` bytes. Without `chosen` all cells. */
static void add_cells(struct cells *self, struct ng_call *call,
                      const struct notebook_file *notebook, const size_t *chosen, size_t count,
                      size_t most, struct nb_text *out)
{
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++) {
        struct nb_text cell = {0};
        size_t index = chosen != NULL ? chosen[i] : i;
        add_cell(self, call, notebook, index, most, &cell);
        fits = i == 0 || out->len + cell.len <= most;
        if (fits) {
            nb_add_done(out, &cell);
        } else {
            add_left_out(&notebook->nb, index, count - i, out);
            nb_text_done(&cell);
        }
    }
}

static void set_revision(struct ng_call *call, const struct notebook_file *notebook)
{
    (void)call->host->revision_text(call, notebook->file.revision);
}

int cells_get_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    struct nb_text out = {0};
    struct nb_text missing = {0};
    size_t *chosen = NULL;
    size_t count = 0;
    (void)args;
    int rc = cells_open(self, call, CELLS_READS, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    cells_refresh_selection(self, call);
    rc = cells_chosen_or_all(call, &notebook.nb, &chosen, &count, &missing);
    if (rc != NG_OK) {
        nb_text_done(&missing);
        cells_close(&notebook);
        return rc;
    }
    size_t most = cells_text_max(call);
    most -= size_min(most, cells_notebook_len(notebook.path) + missing.len + READ_LEFT_OUT_MAX);
    if (notebook.nb.cell_count == 0) {
        nb_add_word(&out, "The notebook has no cells");
    } else if (count == 0 || cells_names_all(call, &notebook.nb)) {
        nb_addf(&out, "Retrieved all %zu cell(s) from notebook:", notebook.nb.cell_count);
    } else {
        nb_addf(&out, "Retrieved %zu cell(s):", count);
    }
    if (count > 0) {
        add_cells(self, call, &notebook, chosen, count, most, &out);
    } else {
        add_cells(self, call, &notebook, NULL, notebook.nb.cell_count, most, &out);
    }
    nb_add_if(&out, missing.len > 0, "\n\n");
    nb_add_done(&out, &missing);
    set_revision(call, &notebook);
    cells_close(&notebook);
    return cells_reply(call, notebook.path, &out);
}

/* ---- outputs ---- */

/* Appends the text from character `offset` on. */
static int add_from(struct ng_call *call, struct nb_text *out, struct ng_str text,
                    int64_t offset, size_t max)
{
    size_t characters = utf8_count(text);
    if ((uint64_t)offset > characters) {
        return ng_fail(call, NG_EINVAL,
                       "`offset` is %lld, the outputs have %zu characters of text",
                       (long long)offset, characters);
    }
    size_t start = utf8_cut_count(text, (size_t)offset).len;
    struct ng_str rest = utf8_cut(str_make(text.data + start, text.len - start), max);
    nb_add_str(out, rest);
    size_t after = (size_t)offset + utf8_count(rest);
    if (after < characters) {
        nb_addf(out, "\n[... characters %lld to %zu of %zu; offset %zu reads on ...]",
                (long long)offset, after, characters, after);
    }
    return NG_OK;
}

/* unsaved: a run is in progress, so these outputs are of an earlier one. */
static int reply_outputs(struct cells *self, struct ng_call *call, struct ng_str path,
                         const struct rendered *rendered, const char *handle, bool unsaved)
{
    struct nb_text out = {0};
    struct ng_str text = nb_text_str(&rendered->text);
    struct cells_images images;
    int64_t offset = ng_arg_int(call, "offset", 0);
    size_t max = size_min((size_t)self->max_output_text, cells_text_max(call));
    int rc = NG_OK;
    nb_addf(&out, "Outputs for cell %s:\n\n", handle);
    if (ng_has_arg(call, "offset")) {
        rc = add_from(call, &out, text, offset, max);
    } else {
        render_cut_outputs(&out, rendered, max);
    }
    if (rc != NG_OK) {
        nb_text_done(&out);
        return rc;
    }
    if (text.len == 0 && rendered->image_count > 0) {
        nb_addf(&out, "[%zu image(s)]", rendered->image_count);
    } else if (text.len == 0) {
        nb_add_word(&out, "[nothing but line ends]");
    }
    nb_add_if(&out, unsaved, "\n\n" READ_EARLIER READ_UNSAVED);
    cells_images_begin(&images, self, call, path, &out);
    if (offset == 0) { /* further pages contain text only */
        rc = cells_images_add(&images, rendered, handle);
    }
    cells_images_end(&images);
    if (rc != NG_OK) {
        nb_text_done(&out);
        return rc;
    }
    return cells_reply(call, path, &out);
}

/* The outputs of one cell. */
static int one_outputs(struct cells *self, struct ng_call *call,
                       const struct notebook_file *notebook, size_t index)
{
    char handle[CELLS_HANDLE_MAX];
    int rc;
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    if (rendered == NULL) {
        return cells_no_memory(call);
    }
    cells_handle(&notebook->nb, index, handle);
    bool unsaved = cells_unsaved(self, notebook, handle);
    render_outputs(rendered, notebook->nb.bytes, notebook->nb.cells[index].outputs,
                   str_is(ng_arg_text(call, "format"), "html"));
    if (rendered->failed) {
        rc = cells_no_memory(call);
    } else if (rendered->outputs == 0) {
        rc = cells_replyf(call, notebook->path, "Cell %s has no outputs%s", handle,
                          text_if(unsaved, "\n\n" READ_UNSAVED));
    } else {
        rc = reply_outputs(self, call, notebook->path, rendered, handle, unsaved);
    }
    render_done(rendered);
    free(rendered);
    return rc;
}

/* ---- outputs of several cells ---- */

struct many_outputs {
    struct cells *self;
    struct ng_call *call;
    const struct notebook_file *notebook;
    const size_t *chosen;
    size_t count;
    struct rendered *rendered; /* of one cell at a time */
    struct nb_text out;
};

static void many_render(struct many_outputs *many, size_t index)
{
    render_done(many->rendered);
    render_outputs(many->rendered, many->notebook->nb.bytes,
                   many->notebook->nb.cells[index].outputs,
                   str_is(ng_arg_text(many->call, "format"), "html"));
    many->out.failed |= many->rendered->failed;
}

static void many_add_cell(struct many_outputs *many, size_t index, size_t share)
{
    struct ng_str text = nb_text_str(&many->rendered->text);
    char handle[CELLS_HANDLE_MAX];
    cells_handle(&many->notebook->nb, index, handle);
    bool unsaved = cells_unsaved(many->self, many->notebook, handle);
    nb_add_if(&many->out, many->out.len > 0, "\n\n");
    if (many->rendered->outputs == 0) {
        nb_addf(&many->out, "Cell %s has no outputs", handle);
        nb_add_if(&many->out, unsaved, ". " READ_UNSAVED);
        return;
    }
    nb_addf(&many->out, "Outputs for cell %s:\n\n", handle);
    render_cut_outputs(&many->out, many->rendered, share);
    if (text.len == 0) {
        nb_addf(&many->out, "[%zu image(s)]", many->rendered->image_count);
    }
    nb_add_if(&many->out, unsaved, "\n\n" READ_EARLIER READ_UNSAVED);
}

/* The texts of the cells. Of ["all"] those with outputs. Cells for which there is no room are
 * named. */
static void many_add_texts(struct many_outputs *many)
{
    const struct nb *nb = &many->notebook->nb;
    bool all = cells_names_all(many->call, nb);
    size_t most = (size_t)many->self->max_output_text;
    size_t with_outputs = 0;
    size_t left_out = 0;
    size_t first = 0;
    for (size_t i = 0; i < many->count; i++) {
        with_outputs += nb->cells[many->chosen[i]].output_count > 0;
    }
    size_t share = size_max(most / size_max(with_outputs, 1), READ_SHARE_LEAST);
    for (size_t i = 0; i < many->count; i++) {
        size_t index = many->chosen[i];
        if (all && nb->cells[index].output_count == 0) {
            continue;
        }
        if (many->out.len >= most) {
            if (left_out++ == 0) {
                first = index;
            }
            continue;
        }
        many_render(many, index);
        many_add_cell(many, index, share);
    }
    nb_add_if(&many->out, many->out.len == 0, "No cell has outputs");
    if (left_out > 0) {
        add_left_out(nb, first, left_out, &many->out);
    }
}

static int many_add_images(struct many_outputs *many)
{
    struct cells_images images;
    int rc = NG_OK;
    cells_images_begin(&images, many->self, many->call, many->notebook->path, &many->out);
    for (size_t i = 0; i < many->count && rc == NG_OK; i++) {
        char handle[CELLS_HANDLE_MAX];
        cells_handle(&many->notebook->nb, many->chosen[i], handle);
        many_render(many, many->chosen[i]);
        rc = cells_images_add(&images, many->rendered, handle);
    }
    cells_images_end(&images);
    return rc;
}

/* missing: a sentence about cells that are not there, or empty. */
static int many_outputs(struct cells *self, struct ng_call *call,
                        const struct notebook_file *notebook, const size_t *chosen,
                        size_t count, struct nb_text *missing)
{
    struct many_outputs many = {.self = self,
                                .call = call,
                                .notebook = notebook,
                                .chosen = chosen,
                                .count = count,
                                .rendered = calloc(1, sizeof(*many.rendered))};
    if (many.rendered == NULL) {
        return cells_no_memory(call);
    }
    many_add_texts(&many);
    nb_add_if(&many.out, missing->len > 0, "\n\n");
    nb_add_done(&many.out, missing);
    int rc = many_add_images(&many);
    render_done(many.rendered);
    free(many.rendered);
    if (rc != NG_OK) {
        nb_text_done(&many.out);
        return rc;
    }
    return cells_reply(call, notebook->path, &many.out);
}

/* ---- getCellOutputs ---- */

static int named_outputs(struct cells *self, struct ng_call *call,
                         const struct notebook_file *notebook)
{
    const struct nb *nb = &notebook->nb;
    struct ng_str asked = ng_arg_text(call, "cellId");
    struct nb_text missing = {0};
    size_t *chosen = NULL;
    size_t count = 0;
    int rc = NG_OK;
    if (ng_has_arg(call, "cellId")) {
        size_t index = cells_find_named(nb, asked);
        return index == SIZE_MAX ? cells_fail_unknown(call, nb, asked)
                                 : one_outputs(self, call, notebook, index);
    }
    rc = cells_chosen_or_all(call, nb, &chosen, &count, &missing);
    if (rc == NG_OK && count == 1 && missing.len == 0 && !cells_names_all(call, nb)) {
        rc = one_outputs(self, call, notebook, chosen[0]);
    } else if (rc == NG_OK && ng_has_arg(call, "offset")) {
        rc = ng_fail(call, NG_EINVAL,
                     "`offset` is for one cell, `cellIds` names %zu: read them "
                     "one by one",
                     count);
    } else if (rc == NG_OK) {
        rc = many_outputs(self, call, notebook, chosen, count, &missing);
    }
    nb_text_done(&missing);
    return rc;
}

int cells_outputs_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    size_t ids = call->host->json_count(ng_arg(call, "cellIds"));
    (void)args;
    if (ng_has_arg(call, "cellId") == (ids > 0)) {
        return ng_fail(call, NG_EINVAL,
                       "Give one of `cellId` and `cellIds`, which names cells");
    }
    int rc = cells_open(self, call, CELLS_READS, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    set_revision(call, &notebook);
    rc = named_outputs(self, call, &notebook);
    cells_close(&notebook);
    return rc;
}
