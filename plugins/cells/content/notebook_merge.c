/* SPDX-License-Identifier: MIT */
/* notebook_merge.c - three-way merge of notebook files by cells: edits of the cells of present,
 * then cells inserted, removed and moved. */
#include "notebook_merge.h"

#include "core/base/merge/merge_order.h"
#include "core/base/str.h"
#include "notebook_object.h"

/* ---- faults against nbformat ---- */

enum {
    FAULT_ID_MISSING = 1, /* or not unique */
    FAULT_ID = 2,         /* before nbformat 4.5 */
    FAULT_OUTPUTS_MISSING = 4,
    FAULT_OUTPUTS = 8, /* of a cell that is not code */
    FAULT_ATTACHMENTS = 16,
    FAULT_METADATA_MISSING = 32
};

static unsigned merge_cell_faults(const struct nb *nb, const struct nb_cell *cell)
{
    unsigned faults = 0;
    if (nb->has_ids && !cell->id_unique) {
        faults |= FAULT_ID_MISSING;
    }
    if (!nb->has_ids && cell->id.len > 0) {
        faults |= FAULT_ID;
    }
    if (cell->type == NB_CODE && (cell->outputs.len == 0 || cell->count.len == 0)) {
        faults |= FAULT_OUTPUTS_MISSING;
    }
    if (cell->type != NB_CODE && cell->type != NB_UNKNOWN &&
        cell->outputs.len + cell->count.len > 0) {
        faults |= FAULT_OUTPUTS;
    }
    if (cell->type == NB_CODE && cell->attachments.len > 0) {
        faults |= FAULT_ATTACHMENTS;
    }
    if (cell->metadata.len == 0) {
        faults |= FAULT_METADATA_MISSING;
    }
    return faults;
}

static unsigned merge_faults(const struct nb *nb)
{
    unsigned faults = 0;
    for (size_t i = 0; i < nb->cell_count; i++) {
        faults |= merge_cell_faults(nb, &nb->cells[i]);
    }
    return faults;
}

/* NG_OK: the text is a notebook; NG_EINVAL: it is none. */
static int merge_index(struct ng_str text, struct nb *ret)
{
    struct nb_error error;
    enum nb_fault fault = nb_index(text, ret, &error);
    if (fault == NB_FINE) {
        return NG_OK;
    }
    return fault == NB_NO_MEMORY ? NG_EINTERNAL : NG_EINVAL;
}

/* ---- members of the notebook, and cells in their places ---- */

static bool merge_chosen(const struct notebook_object *object, struct ng_str name,
                         enum merge3_value *ret)
{
    (void)object;
    *ret = MERGE3_PRESENT;
    return nb_is_word(name, (struct nb_span){0, name.len}, "cells");
}

static void merge_notebook_members(struct notebook_merge *merge)
{
    struct notebook_object object = {
        .merge = merge,
        .present = merge->sides[NOTEBOOK_PRESENT].nb.top,
        .depth = NB_DEPTH_OF_CELLS,
        .reason = MERGE_MEMBER,
        .chosen = merge_chosen,
    };
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        const struct nb *nb = &merge->sides[side].nb;
        if (!notebook_members_read(nb->bytes, nb->top, &object.members[side])) {
            merge_conflict_set(merge->conflict, MERGE_MEMBER);
            return;
        }
    }
    notebook_object_merge(&object);
}

static void merge_cells(struct notebook_merge *merge)
{
    const struct notebook_pairs *pairs = &merge->pairs;
    for (size_t i = 0; i < merge->sides[NOTEBOOK_PRESENT].nb.cell_count; i++) {
        const struct notebook_pair *pair =
            notebook_pairs_get(pairs, pairs->ids[NOTEBOOK_PRESENT][i]);
        if (pair->at[NOTEBOOK_BEFORE] != NOTEBOOK_NO_CELL) {
            notebook_cell_merge(merge, pair);
        } else if (pair->at[NOTEBOOK_BASE] != NOTEBOOK_NO_CELL) {
            notebook_cell_removed(merge, pair);
        }
    }
    for (size_t i = 0; i < merge->sides[NOTEBOOK_BEFORE].nb.cell_count; i++) {
        const struct notebook_pair *pair =
            notebook_pairs_get(pairs, pairs->ids[NOTEBOOK_BEFORE][i]);
        if (pair->at[NOTEBOOK_PRESENT] == NOTEBOOK_NO_CELL &&
            pair->at[NOTEBOOK_BASE] != NOTEBOOK_NO_CELL) {
            notebook_cell_removed(merge, pair);
        }
    }
}

/* ---- order ---- */

static int merge_cell_order(struct notebook_merge *merge, struct merge_order *ret)
{
    struct merge_list lists[NOTEBOOK_SIDES];
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        lists[side] = (struct merge_list){.ids = merge->pairs.ids[side],
                                          .count = merge->sides[side].nb.cell_count};
    }
    int rc = merge_order(&lists[NOTEBOOK_BASE], &lists[NOTEBOOK_PRESENT],
                         &lists[NOTEBOOK_BEFORE], ret);
    if (rc == NG_ETOOLARGE) {
        merge_conflict_set(merge->conflict, MERGE_TOO_LARGE);
        rc = NG_OK;
    } else if (rc == NG_OK && ret->conflict) {
        merge_conflict_set(merge->conflict, MERGE_CELL);
    }
    return rc;
}

static bool merge_is_in_order(const struct notebook_merge *merge,
                              const struct merge_order *order)
{
    const struct ng_str *ids = merge->pairs.ids[NOTEBOOK_PRESENT];
    bool same = order->count == merge->sides[NOTEBOOK_PRESENT].nb.cell_count;
    for (size_t i = 0; same && i < order->count; i++) {
        same = str_equal(order->ids[i], ids[i]);
    }
    return same;
}

static void merge_add_between(struct nb_text *out, const struct nb *nb, size_t last, size_t at)
{
    if (last != NOTEBOOK_NO_CELL && at == last + 1) {
        size_t from = nb->cells[last].whole.at + nb->cells[last].whole.len;
        nb_add(out, nb->bytes.data + from, nb->cells[at].whole.at - from);
    } else {
        nb_add_cell_separator(out, nb);
    }
}

/* Appends `nb`, which has present's cells with their edits, with the cells of the result.
 * Neighbours that stay neighbours keep the bytes between them. */
static void merge_write_order(const struct notebook_merge *merge,
                              const struct merge_order *order, const struct nb *nb,
                              struct nb_text *out)
{
    const struct nb *before = &merge->sides[NOTEBOOK_BEFORE].nb;
    struct nb_span list = nb->cells_array;
    size_t list_end = list.at + list.len;
    size_t last = NOTEBOOK_NO_CELL;
    bool has_edges = nb->cell_count > 0 && order->count > 0;
    nb_add(out, nb->bytes.data, list.at);
    if (has_edges) {
        nb_add(out, nb->bytes.data + list.at, nb->cells[0].whole.at - list.at);
    } else {
        nb_add_word(out, "[");
    }
    for (size_t i = 0; i < order->count; i++) {
        const struct notebook_pair *pair = notebook_pairs_get(&merge->pairs, order->ids[i]);
        size_t at = pair->at[NOTEBOOK_PRESENT];
        if (i > 0) {
            merge_add_between(out, nb, last, at);
        } else if (!has_edges) {
            nb_add_break(out, &nb->style, NB_DEPTH_OF_CELL);
        }
        if (at != NOTEBOOK_NO_CELL) {
            nb_add_str(out, nb_bytes(nb->bytes, nb->cells[at].whole));
        } else {
            struct nb_span whole = before->cells[pair->at[NOTEBOOK_BEFORE]].whole;
            nb_format(out, &nb->style, nb_bytes(before->bytes, whole), NB_DEPTH_OF_CELL);
        }
        last = at;
    }
    if (has_edges) {
        struct nb_span end = nb->cells[nb->cell_count - 1].whole;
        nb_add(out, nb->bytes.data + end.at + end.len, list_end - end.at - end.len);
    } else {
        if (order->count > 0) {
            nb_add_break(out, &nb->style, NB_DEPTH_OF_CELLS);
        }
        nb_add_word(out, "]");
    }
    nb_add(out, nb->bytes.data + list_end, nb->bytes.len - list_end);
}

/* ---- the result ---- */

/* The text becomes the result, if it is a notebook without new faults. */
static int merge_finish(struct notebook_merge *merge, struct ng_str text, const struct nb *nb,
                        struct merge_result *ret)
{
    unsigned known = merge_faults(&merge->sides[NOTEBOOK_PRESENT].nb) |
                     merge_faults(&merge->sides[NOTEBOOK_BEFORE].nb);
    if ((merge_faults(nb) & ~known) != 0) {
        merge_conflict_set(merge->conflict, MERGE_INVALID_MERGE);
        return NG_OK;
    }
    return merge_result_set(ret, text);
}

static int merge_ordered(struct notebook_merge *merge, const struct merge_order *order,
                         const struct nb *nb, struct merge_result *ret)
{
    struct nb_text text = {0};
    struct nb after = {.cell_count = 0};
    if (merge_is_in_order(merge, order)) {
        return merge_finish(merge, nb->bytes, nb, ret);
    }
    merge_write_order(merge, order, nb, &text);
    int rc = text.failed ? NG_EINTERNAL : merge_index(nb_text_str(&text), &after);
    if (rc == NG_OK) {
        rc = merge_finish(merge, nb_text_str(&text), &after, ret);
    }
    nb_done(&after);
    nb_text_done(&text);
    return rc;
}

/* Applies the edits of cells, and the order. */
static int merge_apply(struct notebook_merge *merge, const struct merge_order *order,
                       struct merge_result *ret)
{
    const struct nb *present = &merge->sides[NOTEBOOK_PRESENT].nb;
    struct nb_text text = {0};
    struct nb edited = {.cell_count = 0};
    nb_apply(&text, present->bytes, &merge->edit);
    int rc = text.failed ? NG_EINTERNAL : merge_index(nb_text_str(&text), &edited);
    if (rc == NG_OK && edited.cell_count != present->cell_count) {
        rc = NG_EINVAL;
    }
    if (rc == NG_OK) {
        rc = merge_ordered(merge, order, &edited, ret);
    }
    if (rc == NG_EINVAL) {
        merge_conflict_set(merge->conflict, MERGE_INVALID_MERGE);
        rc = NG_OK;
    }
    nb_done(&edited);
    nb_text_done(&text);
    return rc;
}

static int merge_paired(struct notebook_merge *merge, struct merge_result *ret)
{
    struct merge_order order = {.count = 0};
    merge_notebook_members(merge);
    merge_cells(merge);
    int rc = merge->failed || merge->edit.failed ? NG_EINTERNAL : merge->conflict->sides.rc;
    if (rc == NG_OK) {
        rc = merge_cell_order(merge, &order);
    }
    if (rc == NG_OK && merge->conflict->reason == MERGE_CLEAN) {
        rc = merge_apply(merge, &order, ret);
    }
    merge_order_done(&order);
    return rc;
}

static int merge_read(struct notebook_merge *merge, const struct ng_str texts[NOTEBOOK_SIDES])
{
    int rc = NG_OK;
    for (int side = 0; rc == NG_OK && side < NOTEBOOK_SIDES; side++) {
        struct notebook *notebook = &merge->sides[side];
        rc = merge_index(texts[side], &notebook->nb);
        if (rc == NG_OK) {
            rc = notebook_view_make(&notebook->nb, &notebook->view);
        }
    }
    return rc;
}

int notebook_merge(struct ng_str base, struct ng_str present, struct ng_str before,
                   struct merge_result *ret)
{
    const struct ng_str texts[NOTEBOOK_SIDES] = {base, present, before};
    struct notebook_merge merge = {.conflict = &ret->conflict, .steps = MERGE3_STEPS_MAX};
    if (merge_result_is_simple(ret, base, present, before)) {
        return ret->text.rc;
    }
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        if (texts[side].len > NOTEBOOK_BYTES_MAX) {
            merge_conflict_set(&ret->conflict, MERGE_TOO_LARGE);
            return NG_OK;
        }
    }
    enum merge_reason reason = MERGE_NOT_TEXT;
    int rc = merge_read(&merge, texts);
    if (rc == NG_OK) {
        reason = MERGE_CELL;
        rc = notebook_pairs_find(merge.sides, &merge.pairs);
    }
    if (rc == NG_OK) {
        rc = merge_paired(&merge, ret);
    } else if (rc == NG_EINVAL) {
        merge_conflict_set(&ret->conflict, reason);
        rc = NG_OK;
    }
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        nb_done(&merge.sides[side].nb);
        notebook_view_done(&merge.sides[side].view);
    }
    notebook_pairs_done(&merge.pairs);
    nb_edit_done(&merge.edit);
    return rc;
}
