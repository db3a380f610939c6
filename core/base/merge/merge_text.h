/* SPDX-License-Identifier: MIT */
/* merge_text.h - three-way merge of the content of a text document. */
#ifndef NOTEGATE_CORE_MERGE_TEXT_H
#define NOTEGATE_CORE_MERGE_TEXT_H

#include "merge_conflict.h"

/*
 * Merges by lines (merge3.h). What is not UTF-8 or has a NUL is not merged, nor a text over
 * MERGE3_TEXT_MAX: it only has the results of merge_result_is_simple(). `ret` is zeroed by the
 * caller. NG_OK: a result or a conflict; NG_EINTERNAL: out of memory. merge_result_done() in
 * any case.
 */
int merge_text(struct ng_str base, struct ng_str present, struct ng_str before,
               struct merge_result *ret);

#endif
