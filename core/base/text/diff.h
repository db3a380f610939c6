/* SPDX-License-Identifier: MIT */
/* diff.h - comparison of two texts by lines, and its result as a unified diff. */
#ifndef NOTEGATE_CORE_DIFF_H
#define NOTEGATE_CORE_DIFF_H

#include "notegate/abi.h"

struct diff {
    struct ng_str old, new;
    size_t *old_at, *new_at;     /* start of each line, and the end of the text */
    size_t old_count, new_count; /* lines */
    unsigned char *gone, *come;  /* 1: a line of old that is removed, of new that is added */
    uint64_t removed, added;     /* their numbers */
    bool coarse;                 /* equal lines may be among them, see diff_lines_within() */
};

/* Steps of one comparison: about a second on a slow machine. */
#define DIFF_STEPS_MAX ((int64_t)100 * 1000 * 1000)
/* Lines to compare, of both texts together, without their common beginning and end. */
#define DIFF_LINES_MAX ((size_t)1 << 20)

/* Compares. Differences that are too expensive to find exactly (see diff.c) become
 * replacements. NG_OK or NG_EINTERNAL (out of memory). diff_done() in any case. */
int diff_lines(struct ng_str old, struct ng_str new, struct diff *ret);
/* The same with the steps that are left to the caller, for several comparisons together. At 0
 * the lines between the common beginning and end that are not yet compared become one
 * replacement: a correct difference, only longer. */
int diff_lines_within(struct ng_str old, struct ng_str new, int64_t *inout_steps,
                      struct diff *ret);
void diff_done(struct diff *diff);

/* Equal lines around a change in a unified diff: the usual number, and the most. */
#define DIFF_CONTEXT ((size_t)3)
#define DIFF_CONTEXT_MAX ((size_t)1000)

/* Passes the pieces of the unified diff, with so many lines of context, to `piece` in order;
 * none if the texts are equal. The callback returns 0 to continue. */
typedef int diff_piece_fn(void *user, struct ng_str piece);
int diff_unified(const struct diff *diff, size_t context, struct ng_str old_name,
                 struct ng_str new_name, diff_piece_fn *piece, void *user);

#endif
