/* SPDX-License-Identifier: MIT */
/* notebook_cell.c - three-way merge of a cell: its source by lines, the rest as wholes. */
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "notebook_object.h"

static const struct nb_cell *cell_of(const struct notebook_merge *merge,
                                     const struct notebook_pair *pair, enum notebook_side side)
{
    size_t at = pair->at[side];
    return at == NOTEBOOK_NO_CELL ? NULL : &merge->sides[side].nb.cells[at];
}

/* The bytes of the cell; {NULL, 0}: it is not there. */
static struct ng_str cell_bytes(const struct notebook_merge *merge,
                                const struct notebook_pair *pair, enum notebook_side side)
{
    const struct nb_cell *cell = cell_of(merge, pair, side);
    return cell == NULL ? STR_NONE : nb_bytes(merge->sides[side].nb.bytes, cell->whole);
}

static struct ng_str cell_source(const struct notebook_merge *merge,
                                 const struct notebook_pair *pair, enum notebook_side side)
{
    if (pair->at[side] == NOTEBOOK_NO_CELL) {
        return ng_str_of("");
    }
    return notebook_view_source(&merge->sides[side].view, pair->at[side]);
}

/* The line of the cell in present's view; of a removed one that of the cell before it. */
static size_t cell_line(const struct notebook_merge *merge, const struct notebook_pair *pair)
{
    const struct notebook *present = &merge->sides[NOTEBOOK_PRESENT];
    size_t base = pair->at[NOTEBOOK_BASE];
    if (merge->conflict->place_count == MERGE_PLACES_MAX) {
        return 0;
    }
    while (pair->at[NOTEBOOK_PRESENT] == NOTEBOOK_NO_CELL && base-- > 0) {
        pair = notebook_pairs_get(&merge->pairs, merge->pairs.ids[NOTEBOOK_BASE][base]);
    }
    size_t at = pair->at[NOTEBOOK_PRESENT];
    return at == NOTEBOOK_NO_CELL ? 1 : present->view.cells[at].line;
}

static bool cell_is(struct ng_str name, const char *word)
{
    return nb_is_word(name, (struct nb_span){0, name.len}, word);
}

static bool cell_is_run(struct ng_str name)
{
    return cell_is(name, "outputs") || cell_is(name, "execution_count");
}

/* ---- source ---- */

/* Can it be merged by lines? A lone surrogate has no UTF-8, so it would not survive. */
static bool cell_source_has_lines(const struct notebook_merge *merge,
                                  const struct notebook_pair *pair)
{
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        const struct nb_cell *cell = cell_of(merge, pair, (enum notebook_side)side);
        struct ng_str source = cell_source(merge, pair, (enum notebook_side)side);
        if (cell != NULL && (cell->source.len == 0 || cell->type == NB_UNKNOWN ||
                             str_find(source, ng_str_of(UTF8_REPLACEMENT), 0) != SIZE_MAX)) {
            return false;
        }
    }
    return true;
}

/* Present has the source of base. */
static void cell_source_back(struct notebook_merge *merge, const struct notebook_pair *pair)
{
    const struct nb *nb = &merge->sides[NOTEBOOK_PRESENT].nb;
    const struct nb_cell *base = cell_of(merge, pair, NOTEBOOK_BASE);
    const struct nb_cell *present = cell_of(merge, pair, NOTEBOOK_PRESENT);
    const struct nb_cell *before = cell_of(merge, pair, NOTEBOOK_BEFORE);
    if (base != NULL && str_equal(nb_bytes(merge->sides[NOTEBOOK_BASE].nb.bytes, base->source),
                                  nb_bytes(nb->bytes, present->source))) {
        struct ng_str bytes = merge->sides[NOTEBOOK_BEFORE].nb.bytes;
        nb_replace_value(&merge->edit, nb, present->source, nb_bytes(bytes, before->source),
                         NB_DEPTH_OF_MEMBER);
    } else {
        nb_set_source(&merge->edit, nb, pair->at[NOTEBOOK_PRESENT],
                      cell_source(merge, pair, NOTEBOOK_BEFORE));
    }
}

static void cell_merge_source(struct notebook_merge *merge, const struct notebook_pair *pair)
{
    struct ng_str base = cell_source(merge, pair, NOTEBOOK_BASE);
    struct ng_str present = cell_source(merge, pair, NOTEBOOK_PRESENT);
    struct ng_str before = cell_source(merge, pair, NOTEBOOK_BEFORE);
    struct merge3 merged;
    if (str_equal(before, base) || str_equal(present, before)) {
        return;
    }
    if (str_equal(present, base)) {
        cell_source_back(merge, pair);
        return;
    }
    int rc = merge3_texts_within(base, present, before, &merge->steps, &merged);
    merge->failed |= rc == NG_EINTERNAL;
    if (rc == NG_ETOOLARGE) {
        merge_conflict_set(merge->conflict, MERGE_TOO_LARGE);
    } else if (rc == NG_OK && merged.conflict_count == 0) {
        nb_set_source(&merge->edit, &merge->sides[NOTEBOOK_PRESENT].nb,
                      pair->at[NOTEBOOK_PRESENT], buf_str(&merged.text));
    }
    for (size_t i = 0; i < merged.conflict_count && i < MERGE3_CONFLICTS_MAX; i++) {
        const struct merge3_conflict *at = &merged.conflicts[i];
        merge_conflict_add(merge->conflict, MERGE_OVERLAP, cell_line(merge, pair) + at->line,
                           at->present, at->before);
    }
    if (merged.conflict_count > MERGE3_CONFLICTS_MAX) {
        merge->conflict->count += merged.conflict_count - MERGE3_CONFLICTS_MAX;
    }
    merge3_done(&merged);
}

/* ---- members ---- */

static bool cell_chosen(const struct notebook_object *object, struct ng_str name,
                        enum merge3_value *ret)
{
    if (cell_is_run(name)) {
        *ret = object->run;
        return true;
    }
    *ret = MERGE3_PRESENT;
    return (object->keeps_source && cell_is(name, "source")) ||
           (object->keeps_id && cell_is(name, "id"));
}

static bool cell_run_same(const struct notebook_object *object, enum notebook_side a,
                          enum notebook_side b)
{
    struct ng_str outputs[NOTEBOOK_SIDES];
    struct ng_str counts[NOTEBOOK_SIDES];
    bool *failed = &object->merge->failed;
    notebook_object_values(object, ng_str_of("\"outputs\""), outputs);
    notebook_object_values(object, ng_str_of("\"execution_count\""), counts);
    return notebook_value_same(counts[a], counts[b], failed) &&
           notebook_value_same(outputs[a], outputs[b], failed);
}

/* Outputs and count belong together: another run has others. They go with the type, and stay as
 * present if both sides changed them. */
static enum merge3_value cell_choose_run(const struct notebook_object *object)
{
    struct ng_str types[NOTEBOOK_SIDES];
    notebook_object_values(object, ng_str_of("\"cell_type\""), types);
    if (notebook_value_choose(types, &object->merge->failed) == MERGE3_BEFORE) {
        return MERGE3_BEFORE;
    }
    bool undone = !cell_run_same(object, NOTEBOOK_BEFORE, NOTEBOOK_BASE) &&
                  cell_run_same(object, NOTEBOOK_PRESENT, NOTEBOOK_BASE);
    return undone ? MERGE3_BEFORE : MERGE3_PRESENT;
}

static bool cell_read_members(struct notebook_merge *merge, const struct notebook_pair *pair,
                              struct notebook_members members[NOTEBOOK_SIDES])
{
    bool good = true;
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        const struct nb_cell *cell = cell_of(merge, pair, (enum notebook_side)side);
        members[side].count = 0;
        if (cell != NULL) {
            good = good && notebook_members_read(merge->sides[side].nb.bytes, cell->whole,
                                                 &members[side]);
        }
    }
    return good;
}

static void cell_conflict(struct notebook_merge *merge, const struct notebook_pair *pair)
{
    merge_conflict_add(merge->conflict, MERGE_CELL, cell_line(merge, pair),
                       cell_source(merge, pair, NOTEBOOK_PRESENT),
                       cell_source(merge, pair, NOTEBOOK_BEFORE));
}

void notebook_cell_merge(struct notebook_merge *merge, const struct notebook_pair *pair)
{
    const struct nb *nb = &merge->sides[NOTEBOOK_PRESENT].nb;
    const struct nb_cell *present = cell_of(merge, pair, NOTEBOOK_PRESENT);
    struct ng_str bytes[NOTEBOOK_SIDES];
    struct notebook_object object = {
        .merge = merge,
        .present = present->whole,
        .depth = NB_DEPTH_OF_MEMBER,
        .reason = MERGE_CELL,
        .chosen = cell_chosen,
        .keeps_id = merge->pairs.by_id,
    };
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        bytes[side] = cell_bytes(merge, pair, (enum notebook_side)side);
    }
    switch (
        merge3_values(bytes[NOTEBOOK_BASE], bytes[NOTEBOOK_PRESENT], bytes[NOTEBOOK_BEFORE])) {
    case MERGE3_PRESENT:
        return;
    case MERGE3_BEFORE:
        nb_replace_value(&merge->edit, nb, present->whole, bytes[NOTEBOOK_BEFORE],
                         NB_DEPTH_OF_CELL);
        return;
    case MERGE3_CONFLICT:
        break;
    }
    if (!cell_read_members(merge, pair, object.members)) {
        cell_conflict(merge, pair);
        return;
    }
    object.line = cell_line(merge, pair);
    object.keeps_source = cell_source_has_lines(merge, pair);
    object.run = cell_choose_run(&object);
    if (object.keeps_source) {
        cell_merge_source(merge, pair);
    }
    notebook_object_merge(&object);
}

/* ---- removed cells ---- */

/* Are the members of one cell those of the other, apart from its outputs, and from a source
 * that is compared by lines? */
static bool cell_members_same(struct notebook_merge *merge,
                              const struct notebook_members members[NOTEBOOK_SIDES],
                              enum notebook_side one, enum notebook_side other, bool by_lines)
{
    bool same = true;
    for (size_t i = 0; same && i < members[one].count; i++) {
        struct ng_str name = members[one].names[i];
        if (!cell_is_run(name) && !(by_lines && cell_is(name, "source"))) {
            same = notebook_value_same(
                nb_bytes(merge->sides[one].nb.bytes, members[one].values[i]),
                notebook_members_get(merge->sides[other].nb.bytes, &members[other], name),
                &merge->failed);
        }
    }
    return same;
}

void notebook_cell_removed(struct notebook_merge *merge, const struct notebook_pair *pair)
{
    bool removed_before = pair->at[NOTEBOOK_BEFORE] == NOTEBOOK_NO_CELL;
    enum notebook_side side = removed_before ? NOTEBOOK_PRESENT : NOTEBOOK_BEFORE;
    struct notebook_members members[NOTEBOOK_SIDES];
    if (str_equal(cell_bytes(merge, pair, side), cell_bytes(merge, pair, NOTEBOOK_BASE))) {
        return;
    }
    bool by_lines = cell_source_has_lines(merge, pair);
    if (!str_equal(cell_source(merge, pair, side), cell_source(merge, pair, NOTEBOOK_BASE)) ||
        !cell_read_members(merge, pair, members) ||
        !cell_members_same(merge, members, side, NOTEBOOK_BASE, by_lines) ||
        !cell_members_same(merge, members, NOTEBOOK_BASE, side, by_lines)) {
        cell_conflict(merge, pair);
    }
}
