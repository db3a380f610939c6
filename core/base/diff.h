/* SPDX-License-Identifier: MIT */
/* diff.h - which lines of two texts differ, and that as a unified diff. */
#ifndef NOTEGATE_CORE_DIFF_H
#define NOTEGATE_CORE_DIFF_H

#include "notegate/abi.h"

struct diff {
    struct ng_str old, new;
    size_t *old_at, *new_at;     /* start of each line, and the end behind the last */
    size_t old_count, new_count; /* lines */
    unsigned char *gone, *come;  /* lines of old that go, of new that come */
    uint64_t removed, added;     /* how many */
};

/* Compares; what is not worth finding out exactly (see diff.c) is told as replaced. NG_OK or
 * NG_EINTERNAL (memory). diff_done() in any case. */
int diff_lines(struct ng_str old, struct ng_str new, struct diff *ret);
void diff_done(struct diff *diff);

/* Gives the pieces of the unified diff with three lines of context, in order; none where the
 * texts are equal. Return 0 to go on. */
typedef int diff_piece_fn(void *user, struct ng_str piece);
int diff_unified(const struct diff *diff, struct ng_str old_name, struct ng_str new_name,
                 diff_piece_fn *piece, void *user);

#endif
