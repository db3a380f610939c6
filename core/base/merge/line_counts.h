/* SPDX-License-Identifier: MIT */
/* line_counts.h - how many lines a change adds and removes. */
#ifndef NOTEGATE_CORE_LINE_COUNTS_H
#define NOTEGATE_CORE_LINE_COUNTS_H

#include "notegate/abi.h"
#include "notegate/backend.h"

/*
 * The lines of `old` that the splice changes, and those that it puts in their place, without an
 * equal first or last one: at least as many as a comparison of the texts finds, in the time
 * that it takes to read the stretch and the lines that it begins and ends in. Lines are the
 * pieces between line feeds, as in merge3.h. NG_OK; NG_EINVAL: the splice does not fit.
 */
int line_counts(struct ng_str old, const struct ng_splice *splice, uint64_t *ret_added,
                uint64_t *ret_removed);

#endif
