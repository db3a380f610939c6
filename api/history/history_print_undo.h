/* SPDX-License-Identifier: MIT */
/* history_print_undo.h - answers of `history_undo` as text for people. Pure functions; an error
 * sticks in the buffer. */
#ifndef NOTEGATE_API_HISTORY_PRINT_UNDO_H
#define NOTEGATE_API_HISTORY_PRINT_UNDO_H

#include "history_print.h"

/* Of its documents: all, or only those that stay as they are. */
enum history_undo_rows { HISTORY_UNDO_ALL, HISTORY_UNDO_CONFLICTS };

/* Adds to the line of a document where it is, or comes to. */
typedef void history_place_fn(void *user, const struct ng_value *item, struct buf *out);

/* Asks more than the answer says. place NULL: nothing. */
struct history_places {
    history_place_fn *place;
    void *user;
};

/* A line for each document, under a conflict both sides of each place; then the sum. */
void history_print_undo(struct buf *out, struct history_style style,
                        const struct ng_value *answer, enum history_undo_rows rows,
                        const struct history_places *places);
/* Behind the name of one that was cut off: what its preview says is left. */
void history_print_undo_left(struct buf *out, const struct ng_value *answer);

#endif
