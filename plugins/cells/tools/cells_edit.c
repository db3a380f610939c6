/* SPDX-License-Identifier: MIT */
/* cells_edit.c - tools that change cells. Each finds its cells in the file as it is when it is
 * saved, so that concurrent saves of other programs are kept. */
#include "cells.h"
#include "core/base/buf.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/base/text/text_near.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a source while it is edited; cells.max_source is the limit of what is saved. */
#define UPDATE_BYTES_MAX ((size_t)256 * 1024 * 1024)

struct edit_call;
typedef int edit_fn(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                    struct nb_edit *edit);

/* State of one call, in its memory. */
struct edit_call {
    struct cells *self;
    struct ng_str path;
    edit_fn *fn;
    unsigned reads; /* reads of a file that looks half written */
};

int cells_draft(struct ng_call *call, struct ng_draft *next, struct ng_str bytes,
                const struct nb_edit *edit)
{
    struct ng_str *pieces = ng_alloc(call, (2 * edit->count + 1) * sizeof(*pieces));
    size_t count = 0;
    size_t at = 0;
    bool failed = edit->failed || pieces == NULL;
    for (size_t i = 0; i < edit->count && !failed; i++) {
        const struct nb_splice *splice = &edit->splices[i];
        pieces[count++] = (struct ng_str){bytes.data + at, splice->at - at};
        pieces[count++] = nb_text_str(&splice->inserted);
        at = splice->at + splice->removed;
        failed = splice->inserted.failed;
    }
    if (failed) {
        return cells_no_memory(call);
    }
    if (edit->count == 0) {
        return NG_OK; /* no change: nothing is written */
    }
    pieces[count++] = (struct ng_str){bytes.data + at, bytes.len - at};
    return call->host->draft_text(next, pieces, count);
}

static int edit_file(struct ng_call *call, const struct ng_file *present, struct ng_draft *next,
                     void *user)
{
    struct edit_call *edit_call = user;
    struct nb nb;
    struct nb_edit edit = {0};
    int rc = cells_index(edit_call->self, call, present, &edit_call->reads, &nb);
    if (rc != NG_OK) {
        return rc;
    }
    rc = edit_call->fn(edit_call, call, &nb, &edit);
    nb_done(
        &nb); /* the index of many small cells is large: free it before the new file is made */
    if (rc == NG_OK) {
        rc = cells_draft(call, next, present->data, &edit);
    }
    nb_edit_done(&edit);
    return rc;
}

int cells_check_source(const struct cells *self, struct ng_call *call, struct ng_str source)
{
    if (source.len <= self->max_source) {
        return NG_OK;
    }
    return ng_fail(call, NG_ETOOLARGE,
                   "Content too large: %zu bytes exceeds maximum of %llu bytes "
                   "(cells.max_source)",
                   source.len, (unsigned long long)self->max_source);
}

static bool word_is(struct ng_str word, const char *lower)
{
    return word.len == strlen(lower) && strncasecmp(word.data, lower, word.len) == 0;
}

/* ---- adding ---- */

bool cells_type_named(struct ng_str word, enum nb_type *ret)
{
    for (enum nb_type type = NB_CODE; type < NB_UNKNOWN; type++) {
        if (word_is(word, nb_type_name(type))) {
            *ret = type;
            return true;
        }
    }
    return false;
}

int cells_new_id(struct ng_call *call, const struct nb *nb, char id[CELLS_NEW_ID_SIZE])
{
    do {
        if (!random_hex(CELLS_NEW_ID_BYTES, id)) {
            return ng_fail(call, NG_EINTERNAL, "the system gives no random bytes");
        }
    } while (nb != NULL && cells_find(nb, ng_str_of(id)) != SIZE_MAX);
    return NG_OK;
}

static int add_edit(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                    struct nb_edit *edit)
{
    char id[CELLS_NEW_ID_SIZE] = "";
    char handle[CELLS_HANDLE_MAX];
    struct ng_str word = ng_arg_text(call, "type");
    struct ng_str source = ng_arg_text(call, "content");
    int64_t index = -1;
    enum nb_type type = NB_UNKNOWN;
    if (!cells_type_named(word, &type)) {
        return ng_fail(call, NG_EINVAL,
                       "Failed to add cell: Unknown cellType: '%.*s'. Must be 'code', "
                       "'markdown' or 'raw'.",
                       (int)word.len, word.data);
    }
    if (call->host->json_integer(ng_arg(call, "index"), &index) != NG_OK) {
        struct ng_str number = call->host->json_text(ng_arg(call, "index"));
        return ng_fail(call, NG_EINVAL,
                       "Failed to add cell: Cell index must be an integer: %.*s",
                       (int)number.len, number.data);
    }
    if (index < -1 || index > (int64_t)nb->cell_count) {
        return ng_fail(call, NG_EINVAL,
                       "Failed to add cell: Invalid insert index: %lld. Must be between 0 and "
                       "%zu (inclusive), or "
                       "-1 for the end",
                       (long long)index, nb->cell_count);
    }
    int rc = cells_check_source(edit_call->self, call, source);
    if (rc == NG_OK && nb->has_ids) {
        rc = cells_new_id(call, nb, id);
    }
    if (rc != NG_OK) {
        return rc;
    }
    size_t at = nb->cell_count;
    if (index >= 0) {
        at = (size_t)index;
    }
    nb_insert_cell(edit, nb, at, type, ng_str_of(id), source);
    (void)snprintf(handle, sizeof(handle), "index:%zu", at);
    if (nb->has_ids) {
        memcpy(handle, id, sizeof(id));
    }
    return cells_replyf(call, edit_call->path,
                        "Successfully added %s cell at index %zu. Cell ID: %s",
                        nb_type_name(type), at, handle);
}

/* ---- replacing texts in a source ---- */

/* Of a text in an error. */
#define REPLACE_SHOWN_MAX 200

static unsigned long long line_of(struct ng_str text, size_t at)
{
    return 1 + str_count(str_make(text.data, at), '\n');
}

/* An edit that fails. Nothing is changed then: its lines are those of the present source, where
 * that has the fault, too. */
struct replace_fault {
    struct ng_str present; /* the source of the cell */
    struct ng_str text;    /* with the edits before this one */
    struct ng_str old;     /* the text to replace */
    size_t number;         /* from 1 */
};

static int fail_no_match(struct ng_call *call, const struct replace_fault *fault)
{
    struct ng_str old = fault->old;
    struct ng_str shown = utf8_cut(old, REPLACE_SHOWN_MAX);
    size_t at = str_find(fault->present, old, 0);
    char note[TEXT_NEAR_NOTE_SIZE];
    (void)ng_fail(call, CELLS_ENOMATCH,
                  "Failed to update cell: edit %zu: the text to replace is not in the cell: "
                  "'%.*s%s'; nothing was changed",
                  fault->number, (int)shown.len, shown.data,
                  text_if(shown.len < old.len, "..."));
    if (at != SIZE_MAX) {
        call->host->hint(call,
                         "Line %llu has it, but an edit before this one changes that: edits "
                         "apply one after the other.",
                         line_of(fault->present, at));
    } else if (text_near(fault->present, old, "old_str", note)) {
        call->host->hint(call, "%s", note);
    } else if (text_near(fault->text, old, "old_str", note)) {
        call->host->hint(call, "After edit %zu: %s", fault->number - 1, note);
    } else {
        call->host->hint(call, "Read the cell again: it may have been changed.");
    }
    return CELLS_ENOMATCH;
}

/* The next place of the text to replace, which may overlap the one before. */
static size_t replace_next(struct ng_str text, struct ng_str old, size_t at)
{
    return at == SIZE_MAX ? SIZE_MAX : str_find(text, old, at + 1);
}

static int fail_several(struct ng_call *call, const struct replace_fault *fault)
{
    struct ng_str old = fault->old;
    struct ng_str shown = utf8_cut(old, REPLACE_SHOWN_MAX);
    struct ng_str seen = fault->present;
    size_t first = str_find(seen, old, 0);
    size_t second = replace_next(seen, old, first);
    char after[40] = "";
    if (second == SIZE_MAX) {
        seen = fault->text;
        first = str_find(seen, old, 0);
        second = replace_next(seen, old, first);
        (void)snprintf(after, sizeof(after), " after edit %zu", fault->number - 1);
    }
    (void)ng_fail(
        call, CELLS_ESEVERAL,
        "Failed to update cell: edit %zu: the text to replace is there more than once%s "
        "(lines %llu, %llu%s): '%.*s%s'; nothing was changed",
        fault->number, after, line_of(seen, first), line_of(seen, second),
        text_if(replace_next(seen, old, second) != SIZE_MAX, ", ..."), (int)shown.len,
        shown.data, text_if(shown.len < old.len, "..."));
    call->host->hint(call, "Add text around it to old_str until it is there only once.");
    return CELLS_ESEVERAL;
}

/* One after the other; all or none. `text` begins as the present source. */
static int replace_texts(struct ng_call *call, struct ng_str present, struct buf *text)
{
    const struct ng_host *host = call->host;
    const struct ng_value *edit = host->json_first(ng_arg(call, "edits"));
    struct replace_fault fault = {.present = present, .number = 1};
    for (; edit != NULL; edit = host->json_next(edit), fault.number++) {
        struct ng_str new = host->json_text(host->json_get(edit, "new_str"));
        fault.old = host->json_text(host->json_get(edit, "old_str"));
        fault.text = str_or(buf_str(text), ng_str_of(""));
        size_t at = str_find(fault.text, fault.old, 0);
        if (at == SIZE_MAX) {
            return fail_no_match(call, &fault);
        }
        if (replace_next(fault.text, fault.old, at) != SIZE_MAX) {
            return fail_several(call, &fault);
        }
        if (buf_splice(text, at, fault.old.len, new) != NG_OK) {
            return cells_no_memory(call);
        }
    }
    return NG_OK;
}

/* ---- updating ---- */

/* The new source: `content`, or the present one with `edits`. */
static int new_source(struct ng_call *call, const struct nb *nb, size_t index, struct buf *ret)
{
    struct nb_text present = {0};
    if (ng_has_arg(call, "content")) {
        return cells_check_memory(call,
                                  buf_add_str(ret, ng_arg_text(call, "content")) == NG_OK);
    }
    (void)nb_decode_lines(&present, nb->bytes, nb->cells[index].source);
    struct ng_str source = str_or(nb_text_str(&present), ng_str_of(""));
    int rc = cells_check_memory(call, !present.failed && buf_add_str(ret, source) == NG_OK);
    if (rc == NG_OK) {
        rc = replace_texts(call, source, ret);
    }
    nb_text_done(&present);
    return rc;
}

static int update_edit(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                       struct nb_edit *edit)
{
    struct ng_str asked = ng_arg_text(call, "cellId");
    char handle[CELLS_HANDLE_MAX];
    struct buf source;
    size_t index = cells_find_named(nb, asked);
    if (index == SIZE_MAX) {
        return cells_fail_unknown(call, nb, asked);
    }
    if (ng_has_arg(call, "content") == ng_has_arg(call, "edits")) {
        return ng_fail(
            call, NG_EINVAL,
            "Failed to update cell: give one of `content`, the new source, and `edits`");
    }
    cells_handle(nb, index, handle);
    if (nb->cells[index].source.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "Failed to update cell: the cell %s is of an unknown type, and has no "
                       "source",
                       handle);
    }
    buf_init(&source, UPDATE_BYTES_MAX);
    int rc = new_source(call, nb, index, &source);
    if (rc == NG_OK) {
        rc = cells_check_source(edit_call->self, call, buf_str(&source));
    }
    if (rc == NG_OK) {
        nb_set_source(edit, nb, index, str_or(buf_str(&source), ng_str_of("")));
        rc = cells_replyf(call, edit_call->path, "Successfully updated cell %s (index %zu)",
                          handle, index);
    }
    buf_done(&source);
    return rc;
}

/* ---- deleting, moving, clearing ---- */

/* Appends "a (index 0), b (index 2)" for the marked cells. */
static void add_handles(struct nb_text *out, const struct nb *nb, const bool *marked)
{
    bool first = true;
    for (size_t i = 0; i < nb->cell_count; i++) {
        char handle[CELLS_HANDLE_MAX];
        if (marked[i]) {
            cells_handle(nb, i, handle);
            nb_add_if(out, !first, ", ");
            nb_addf(out, "%s (index %zu)", handle, i);
            first = false;
        }
    }
}

/* The cells in `cellIds` as marks in call memory; duplicates count once. */
static int marked_cells(struct ng_call *call, const struct nb *nb, bool **ret,
                        size_t *ret_count)
{
    size_t *chosen = NULL;
    size_t count = 0;
    int rc = cells_chosen(call, nb, &chosen, &count, NULL);
    if (rc != NG_OK) {
        return rc;
    }
    bool *marked = ng_alloc(call, nb->cell_count + 1);
    if (marked == NULL) {
        return cells_no_memory(call);
    }
    memset(marked, 0, nb->cell_count + 1);
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        *ret_count += !marked[chosen[i]];
        marked[chosen[i]] = true;
    }
    *ret = marked;
    return NG_OK;
}

static int delete_edit(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                       struct nb_edit *edit)
{
    bool *gone = NULL;
    size_t count = 0;
    struct nb_text out = {0};
    int rc = marked_cells(call, nb, &gone, &count);
    if (rc != NG_OK) {
        return rc;
    }
    nb_delete_cells(edit, nb, gone);
    if (count == 1) {
        nb_add_word(&out, "Successfully deleted cell ");
    } else {
        nb_addf(&out, "Successfully deleted %zu cells: ", count);
    }
    add_handles(&out, nb, gone);
    return cells_reply(call, edit_call->path, &out);
}

static int move_edit(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                     struct nb_edit *edit)
{
    struct ng_str asked = ng_arg_text(call, "cellId");
    int64_t to = ng_arg_int(call, "index", 0);
    char handle[CELLS_HANDLE_MAX];
    size_t from = cells_find_named(nb, asked);
    if (from == SIZE_MAX) {
        return cells_fail_unknown(call, nb, asked);
    }
    if (to < 0 || (uint64_t)to >= nb->cell_count) {
        return ng_fail(call, NG_EINVAL,
                       "Cell index %lld is out of bounds (notebook has %zu cells, valid "
                       "indices: 0-%zu)",
                       (long long)to, nb->cell_count, nb->cell_count - 1);
    }
    if ((size_t)to == from) {
        return cells_replyf(call, edit_call->path,
                            "No move needed - cell is already at the specified position");
    }
    cells_handle(nb, from, handle);
    nb_move_cell(edit, nb, from, (size_t)to);
    return cells_replyf(call, edit_call->path,
                        "Successfully moved cell %s from index %zu to index %lld", handle, from,
                        (long long)to);
}

static int clear_edit(struct edit_call *edit_call, struct ng_call *call, const struct nb *nb,
                      struct nb_edit *edit)
{
    bool *cleared = NULL;
    size_t count = 0;
    struct nb_text out = {0};
    bool all = !ng_has_arg(call, "cellIds");
    int rc = marked_cells(call, nb, &cleared, &count);
    if (rc != NG_OK || cleared == NULL) {
        return rc;
    }
    for (size_t i = 0; i < nb->cell_count; i++) {
        if (all || cleared[i]) {
            size_t before = edit->count;
            nb_clear_outputs(edit, nb, i);
            cleared[i] = !all || edit->count > before;
            count += all && cleared[i];
        }
    }
    if (all) {
        nb_add_word(&out, "Successfully cleared all cell outputs.");
        nb_add_if(&out, count > 0, " Cells: ");
    } else {
        nb_add_word(&out, "Successfully cleared the outputs of ");
    }
    add_handles(&out, nb, cleared);
    return cells_reply(call, edit_call->path, &out);
}

/* ---- all of them ---- */

int cells_edit_run(void *self, struct ng_call *call, struct ng_str args)
{
    static const struct {
        const char *tool;
        edit_fn *fn;
    } edits[] = {
        {"addNotebookCell", add_edit},        {"updateNotebookCell", update_edit},
        {"deleteNotebookCells", delete_edit}, {"moveNotebookCell", move_edit},
        {"clearCellOutputs", clear_edit},
    };
    struct edit_call *edit_call = ng_alloc(call, sizeof(*edit_call));
    (void)args;
    if (edit_call == NULL) {
        return cells_no_memory(call);
    }
    *edit_call = (struct edit_call){.self = self};
    for (size_t i = 0; i < NG_COUNT(edits); i++) {
        if (str_is(call->tool, edits[i].tool)) {
            edit_call->fn = edits[i].fn;
        }
    }
    int rc = cells_path(self, call, CELLS_CHANGES, &edit_call->path);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = edit_call->path,
        .fn = edit_file,
        .user = edit_call,
        .expected_revision = ng_arg_text(call, "expectedRevision"),
        .max_bytes = CELLS_FILE_MAX,
        .collection = CELLS_COLLECTION,
    };
    return cells_fail_folder(call, edit_call->path, call->host->file_edit(call, &edit));
}
