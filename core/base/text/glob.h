/* SPDX-License-Identifier: MIT */
/* glob.h - names by a pattern of `*` (any bytes, or none) and `?` (one byte). */
#ifndef NOTEGATE_CORE_GLOB_H
#define NOTEGATE_CORE_GLOB_H

#include "notegate/abi.h"

/* Does the pattern match the whole text? Takes at most pattern.len * text.len steps. */
bool glob_match(struct ng_str pattern, struct ng_str text);
/* Has the text a `*` or `?`? */
bool glob_is(struct ng_str text);

#endif
