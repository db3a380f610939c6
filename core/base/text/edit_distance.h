/* SPDX-License-Identifier: MIT */
/* edit_distance.h - how many edits lie between two names: for "did you mean". */
#ifndef NOTEGATE_CORE_EDIT_DISTANCE_H
#define NOTEGATE_CORE_EDIT_DISTANCE_H

#include "notegate/abi.h"

#define EDIT_DISTANCE_BYTES_MAX ((size_t)64)

/* Edits (insert, delete, replace, swap of two neighbours) from `a` to `b`, by bytes, ASCII case
 * folded; SIZE_MAX when over `most`, or when one is longer than EDIT_DISTANCE_BYTES_MAX. */
size_t edit_distance(struct ng_str a, struct ng_str b, size_t most);

#endif
