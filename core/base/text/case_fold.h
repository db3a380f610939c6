/* SPDX-License-Identifier: MIT */
/* case_fold.h - a text without differences of case, to compare names that people type. */
#ifndef NOTEGATE_CORE_CASE_FOLD_H
#define NOTEGATE_CORE_CASE_FOLD_H

#include "core/base/buf.h"

/* Appends the text with Unicode's full case folding, in normal form C: texts that differ only
 * in case or normal form give the same bytes. Text that is not valid UTF-8 stays as it is.
 * Returns out->rc. */
int case_fold(struct buf *out, struct ng_str text);

#endif
