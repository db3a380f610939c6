/* SPDX-License-Identifier: MIT */
/* nb_edit.h - parts of edits. Private to nb_edit.c and nb_member.c. */
#ifndef NOTEGATE_PLUGIN_CELLS_NB_EDIT_H
#define NOTEGATE_PLUGIN_CELLS_NB_EDIT_H

#include "nb.h"

static inline size_t nb_end(struct nb_span span)
{
    return span.at + span.len;
}

/* Inserts a splice in order; the caller fills its text at once. Out of memory: a text that
 * takes nothing. */
struct nb_text *nb_edit_add(struct nb_edit *edit, size_t at, size_t removed);
/* Copies the separator between two neighbours; without neighbours it follows the style. */
void nb_add_separator(struct nb_text *out, const struct nb *nb, struct nb_span first,
                      struct nb_span second, unsigned depth);

#endif
