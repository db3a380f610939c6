/* SPDX-License-Identifier: MIT */
/* notebook_pair.h - which cells of three notebooks are the same cell. */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_PAIR_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_PAIR_H

#include "core/base/buf.h"
#include "core/base/hash_table.h"
#include "notebook_view.h"

enum notebook_side { NOTEBOOK_BASE, NOTEBOOK_PRESENT, NOTEBOOK_BEFORE };
#define NOTEBOOK_SIDES 3
#define NOTEBOOK_NO_CELL SIZE_MAX

/* A notebook that takes part in a merge. */
struct notebook {
    struct nb nb;
    struct notebook_view view;
};

/* A cell, and its index in each notebook or NOTEBOOK_NO_CELL. */
struct notebook_pair {
    struct hash_link link;
    struct ng_str id;
    size_t at[NOTEBOOK_SIDES];
};

struct notebook_pairs {
    struct notebook_pair *items;
    size_t count;
    struct ng_str *ids[NOTEBOOK_SIDES]; /* of the cells of each notebook, in their order */
    struct hash_table table;
    struct buf made; /* bytes of ids that are not in the files */
    bool by_id;
};

/*
 * By the ids, if every cell of the three notebooks has one that is a handle. Else the cells of
 * base are compared with those of each side as lines are, a cell being equal to one of the same
 * type and source; as many cells that differ at one place are pairs in their order. That is
 * ambiguous if a cell that differs has an equal one anywhere, or if cells were both changed and
 * inserted or removed at one place. NG_OK; NG_EINVAL: ambiguous; NG_EINTERNAL: out of memory.
 * notebook_pairs_done() in any case.
 */
int notebook_pairs_find(const struct notebook sides[NOTEBOOK_SIDES],
                        struct notebook_pairs *ret);
/* The pair with this id. */
const struct notebook_pair *notebook_pairs_get(const struct notebook_pairs *pairs,
                                               struct ng_str id);
void notebook_pairs_done(struct notebook_pairs *pairs);

#endif
