/* SPDX-License-Identifier: MIT */
/* history_print_undo.h - answers of `history_undo` as text for people. Pure functions; an error
 * sticks in the buffer. */
#ifndef NOTEGATE_API_HISTORY_PRINT_UNDO_H
#define NOTEGATE_API_HISTORY_PRINT_UNDO_H

#include "history_print.h"

/* Of its documents: all, or only those that stay as they are. */
enum history_undo_rows { HISTORY_UNDO_ALL, HISTORY_UNDO_CONFLICTS };

/* A line for each document, under a conflict both sides of each place; then the sum. */
void history_print_undo(struct buf *out, struct history_style style,
                        const struct ng_value *answer, enum history_undo_rows rows);

#endif
