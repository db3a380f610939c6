/* SPDX-License-Identifier: MIT */
/* cells_read.c - getNotebookCells and getCellOutputs. */
#include "cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_EARLIER "These are of an earlier run. "
#define READ_UNSAVED                                                                           \
    "A run of this cell is at work; its outputs go into the file when it is over. "            \
    "getNotebookRun tells what a background run has put out so far."

static void add_cell(struct cells *self, struct ng_call *call,
                     const struct notebook_file *notebook, size_t index, struct nb_text *out)
{
    const struct nb_cell *cell = &notebook->nb.cells[index];
    struct nb_text source = {0};
    char handle[CELLS_HANDLE_MAX];
    char head[160];
    struct nb_text fence = {0};
    cells_handle(&notebook->nb, index, handle);
    (void)nb_decode_lines(&source, notebook->nb.bytes, cell->source);
    render_fence(&fence, nb_text_str(&source));
    (void)snprintf(head, sizeof(head), "### Cell %zu (%s)\nID: %s\nStatus: ", index,
                   cells_type(cell->type), handle);
    nb_add_word(out, head);
    struct nb_text status = {0};
    cells_status(self, call, notebook, index, &status);
    nb_add_str(out, nb_text_str(&status));
    nb_add_word(out, "\n");
    nb_add_str(out, nb_text_str(&fence));
    nb_add_word(out, "\n");
    nb_add_str(out, nb_text_str(&source));
    nb_add_word(out, "\n"); /* its own: one at the end of the source shows as an empty line */
    nb_add_str(out, nb_text_str(&fence));
    out->failed = out->failed || source.failed || status.failed || fence.failed;
    nb_text_done(&fence);
    nb_text_done(&source);
    nb_text_done(&status);
}

static void set_revision(struct ng_call *call, const struct notebook_file *notebook)
{
    (void)call->host->revision_text(call, notebook->file.revision);
}

int cells_get_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    struct ng_str path;
    struct nb_text out = {0};
    struct nb_text missing = {0};
    size_t *chosen = NULL;
    size_t count = 0;
    char head[96];
    (void)args;
    int rc = cells_path(self, call, &path);
    cells_refresh_selection(self, call);
    rc = rc != NG_OK ? rc : cells_open(call, path, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    rc = cells_chosen_or(call, &notebook.nb, &chosen, &count, &missing);
    if (rc != NG_OK) {
        nb_text_done(&missing);
        cells_close(&notebook);
        return rc;
    }
    bool all = count == 0;
    size_t shown = all ? notebook.nb.cell_count : count;
    if (notebook.nb.cell_count == 0) {
        nb_add_word(&out, "The notebook has no cells");
    } else {
        (void)snprintf(head, sizeof(head),
                       all ? "Retrieved all %zu cell(s) from notebook:\n\n"
                           : "Retrieved %zu cell(s):\n\n",
                       shown);
        nb_add_word(&out, head);
    }
    for (size_t i = 0; i < shown; i++) {
        nb_add_word(&out, i > 0 ? "\n\n" : "");
        add_cell(self, call, &notebook, all ? i : chosen[i], &out);
    }
    nb_add_word(&out, missing.len > 0 ? "\n\n" : "");
    nb_add_str(&out, nb_text_str(&missing));
    out.failed = out.failed || missing.failed;
    nb_text_done(&missing);
    set_revision(call, &notebook);
    cells_close(&notebook);
    return cells_reply(call, &out);
}

/* ---- outputs ---- */

/* The text from character `offset` on; the whole one is not much larger than what is shown. */
static int add_from(struct ng_call *call, struct nb_text *out, struct ng_str text,
                    int64_t offset, size_t max)
{
    size_t characters = render_characters(text);
    char note[160];
    if ((uint64_t)offset > characters) {
        return ng_fail(call, NG_EINVAL,
                       "`offset` is %lld, the outputs have %zu characters of text",
                       (long long)offset, characters);
    }
    size_t start = render_prefix(text, (size_t)offset);
    struct ng_str rest = {text.data + start, text.len - start};
    if (rest.len > max) {
        size_t len = max;
        while (len > 0 && ((unsigned char)rest.data[len] & 0xc0) == 0x80) {
            len--;
        }
        rest.len = len;
    }
    nb_add_str(out, rest);
    size_t after = (size_t)offset + render_characters(rest);
    if (after < characters) {
        (void)snprintf(note, sizeof(note),
                       "\n[... characters %lld to %zu of %zu; offset %zu reads on ...]",
                       (long long)offset, after, characters, after);
        nb_add_word(out, note);
    }
    return NG_OK;
}

/* unsaved: a run is at work, so that these are the outputs of an earlier one. */
static int reply_outputs(struct cells *self, struct ng_call *call,
                         const struct rendered *rendered, const char *handle, bool unsaved)
{
    struct nb_text out = {0};
    struct ng_str text = nb_text_str(&rendered->text);
    struct cells_images images;
    int64_t offset = ng_arg_int(call, "offset", 0);
    int rc = NG_OK;
    nb_add_word(&out, "Outputs for cell ");
    nb_add_word(&out, handle);
    nb_add_word(&out, ":\n\n");
    if (ng_has_arg(call, "offset")) {
        rc = add_from(call, &out, text, offset, self->max_output_text);
    } else {
        render_cut(&out, text, self->max_output_text);
    }
    if (rc != NG_OK) {
        nb_text_done(&out);
        return rc;
    }
    if (text.len == 0 && rendered->image_count > 0) {
        char note[64];
        (void)snprintf(note, sizeof(note), "[%zu image(s)]", rendered->image_count);
        nb_add_word(&out, note);
    } else if (text.len == 0) {
        nb_add_word(&out, "[nothing but line ends]");
    }
    nb_add_word(&out, unsaved ? "\n\n" READ_EARLIER READ_UNSAVED : "");
    cells_images_begin(&images, self, call, &out);
    if (offset == 0) { /* reading on is about the text */
        rc = cells_images_add(&images, rendered, handle);
    }
    cells_images_end(&images);
    if (rc != NG_OK) {
        nb_text_done(&out);
        return rc;
    }
    return cells_reply(call, &out);
}

int cells_outputs_run(void *user, struct ng_call *call, struct ng_str args)
{
    struct cells *self = user;
    struct notebook_file notebook;
    struct ng_str path;
    struct ng_str asked = ng_arg_text(call, "cellId");
    struct ng_str format = ng_arg_text(call, "format");
    char handle[CELLS_HANDLE_MAX];
    (void)args;
    int rc = cells_path(self, call, &path);
    rc = rc != NG_OK ? rc : cells_open(call, path, &notebook);
    if (rc != NG_OK) {
        return rc;
    }
    size_t index = cells_find(&notebook.nb, asked);
    if (index == SIZE_MAX) {
        rc = cells_fail_unknown(call, &notebook.nb, asked);
        cells_close(&notebook);
        return rc;
    }
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    if (rendered == NULL) {
        cells_close(&notebook);
        return cells_no_memory(call);
    }
    cells_handle(&notebook.nb, index, handle);
    bool unsaved = cells_unsaved(self, &notebook, handle);
    set_revision(call, &notebook);
    render_outputs(rendered, notebook.nb.bytes, notebook.nb.cells[index].outputs,
                   format.len == 4 && memcmp(format.data, "html", 4) == 0);
    if (rendered->failed) {
        rc = cells_no_memory(call);
    } else if (rendered->outputs == 0) {
        rc = ng_reply(call, call->host->format(call, "Cell %s has no outputs%s", handle,
                                               unsaved ? "\n\n" READ_UNSAVED : ""));
    } else {
        rc = reply_outputs(self, call, rendered, handle, unsaved);
    }
    render_done(rendered);
    free(rendered);
    cells_close(&notebook);
    return rc;
}
