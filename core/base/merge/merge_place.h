/* SPDX-License-Identifier: MIT */
/* merge_place.h - lines of a text found again in another version of it. */
#ifndef NOTEGATE_CORE_MERGE_PLACE_H
#define NOTEGATE_CORE_MERGE_PLACE_H

#include "notegate/abi.h"

/*
 * Numbers of lines of `from`, from 1 and at most MERGE3_CONFLICTS_MAX of them, become those of
 * the same lines of `to`; of a line that is not there, that of the nearest one in its place.
 * Lines are the pieces between line feeds. NG_OK or NG_EINTERNAL (out of memory).
 */
int merge_place_lines(struct ng_str from, struct ng_str to, uint64_t *inout_lines,
                      size_t count);

#endif
