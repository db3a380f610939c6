/* SPDX-License-Identifier: MIT */
/* notebook_value.h - JSON values of notebooks compared, and chosen from three. */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_VALUE_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_VALUE_H

#include "core/base/merge/merge3.h"
#include "notebook/nb.h"

/*
 * Are two well-formed values the same? White space, the order of members and escapes do not
 * count; the spelling of numbers does. len 0: absent, a value of its own. *inout_failed is set
 * if memory was missing.
 */
bool notebook_value_same(struct ng_str a, struct ng_str b, bool *inout_failed);

/* The values of base, present and before (in this order) merged as wholes. */
enum merge3_value notebook_value_choose(const struct ng_str values[3], bool *inout_failed);

#endif
