/* SPDX-License-Identifier: MIT */
/* history_undo_place.h - the places of files that an undo moves, or cannot move. */
#ifndef NOTEGATE_API_HISTORY_UNDO_PLACE_H
#define NOTEGATE_API_HISTORY_UNDO_PLACE_H

#include "history_ask.h"

/* A history_place_fn: user is a struct history_ask, whose answers end. Of a move that is taken
 * back the old place, of a file that was moved on the present one, as far as the log tells. */
void history_undo_place(void *user, const struct ng_value *item, struct buf *out);

#endif
