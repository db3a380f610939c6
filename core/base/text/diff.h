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
};

/* Compares. Differences that are too expensive to find exactly (see diff.c) become
 * replacements. NG_OK or NG_EINTERNAL (out of memory). diff_done() in any case. */
int diff_lines(struct ng_str old, struct ng_str new, struct diff *ret);
void diff_done(struct diff *diff);

/* Passes the pieces of the unified diff, with three lines of context, to `piece` in order; none
 * if the texts are equal. The callback returns 0 to continue. */
typedef int diff_piece_fn(void *user, struct ng_str piece);
int diff_unified(const struct diff *diff, struct ng_str old_name, struct ng_str new_name,
                 diff_piece_fn *piece, void *user);

#endif
