/* SPDX-License-Identifier: MIT */
/* merge_place.h - lines of a text, and places of a conflict, found again in another version of
 * the text. */
#ifndef NOTEGATE_CORE_MERGE_PLACE_H
#define NOTEGATE_CORE_MERGE_PLACE_H

#include "merge_conflict.h"

/* The first line of each place, and the one behind it. */
#define MERGE_PLACE_LINES_MAX (2 * MERGE_PLACES_MAX)

/*
 * Numbers of lines of `from`, from 1 and at most MERGE_PLACE_LINES_MAX of them, become those of
 * the same lines of `to`; of a line that is not there, that of the nearest one in its place.
 * Lines are the pieces between line feeds. NG_OK or NG_EINTERNAL (out of memory).
 */
int merge_place_lines(struct ng_str from, struct ng_str to, uint64_t *inout_lines,
                      size_t count);

/* Places of a conflict with the text `from` become those of `to`: their lines, and what is
 * there as their present side. NG_OK or NG_EINTERNAL (out of memory). */
int merge_place_conflict(struct ng_str from, struct ng_str to,
                         struct merge_conflict *inout_conflict);

#endif
