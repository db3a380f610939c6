/* SPDX-License-Identifier: MIT */
/* merge_hunks.h - the difference of two texts as a list of replaced stretches of lines. */
#ifndef NOTEGATE_CORE_MERGE_HUNKS_H
#define NOTEGATE_CORE_MERGE_HUNKS_H

#include "notegate/abi.h"

/* Hunks of one difference; the last one takes in all that differs behind it. */
#define MERGE_HUNKS_MAX ((size_t)1 << 13)

/* The lines base[base, base_end) became side[side, side_end): offsets of bytes, at beginnings
 * of lines. One of the two may be empty. */
struct merge_hunk {
    size_t base, base_end, side, side_end;
};

/* In order; at least one equal line is between two of them. */
struct merge_hunks {
    struct ng_str base, side; /* each is empty or ends in LF; borrowed */
    struct merge_hunk *items;
    size_t count, cap;
    bool coarse; /* the comparison was cut short, or they are too many */
};

/*
 * Finds them, with the steps that are left in *inout_steps (see diff_lines_within()). Lines
 * that are only added or only removed, and that could as well be so some lines earlier, are so
 * as early as possible: an equal change has an equal hunk on both sides of a merge. NG_OK or
 * NG_EINTERNAL (out of memory). merge_hunks_done() in any case.
 */
int merge_hunks_find(struct ng_str base, struct ng_str side, int64_t *inout_steps,
                     struct merge_hunks *ret);
void merge_hunks_done(struct merge_hunks *hunks);

/* Moves the hunk down by a line, which describes the same change. False: that is not possible,
 * since it replaces lines, other lines follow, or the next hunk is there. */
bool merge_hunks_slide(struct merge_hunks *hunks, size_t index, int64_t *inout_steps);

#endif
