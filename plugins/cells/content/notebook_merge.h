/* SPDX-License-Identifier: MIT */
/*
 * notebook_merge.h - three-way merge of notebook files (.ipynb) by cells.
 *
 * Base, present and before are as in merge3.h. The result is present with edits: all bytes that
 * the merge does not change stay. Lines of a source between two changes may be spelled anew.
 *
 * - Cells: see notebook_pair.h. A cell that one side changed and the other removed is a
 *   conflict, unless only its outputs changed. Their order is merged by merge_order.h.
 * - A source is merged by lines; as a whole if it has a lone surrogate or U+FFFD.
 * - Type, metadata, attachments and other members of a cell, and the members of the notebook
 *   apart from `cells`: each as a whole, compared as JSON.
 * - Outputs and execution count are one value, and go with the type. If both sides changed
 *   them, present's stay.
 * - The result must be a notebook, and have no fault against nbformat 4 that neither present
 *   nor before has (`invalid_merge`): ids, outputs and metadata that are missing or must not
 *   be.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_NOTEBOOK_MERGE_H
#define NOTEGATE_PLUGIN_CELLS_NOTEBOOK_MERGE_H

#include "core/base/merge/merge_conflict.h"
#include "notebook_view.h"

/*
 * A file that is no notebook, is over NOTEBOOK_BYTES_MAX, or has cells without ids that cannot
 * be paired only has the results of merge_result_is_simple(); else it is a conflict `not_text`,
 * `too_large` or `cell`. Lines of conflicts are those of present's view (notebook_view.h).
 * `ret` is zeroed by the caller. NG_OK: a result or a conflict; NG_EINTERNAL: out of memory.
 * merge_result_done() in any case.
 */
int notebook_merge(struct ng_str base, struct ng_str present, struct ng_str before,
                   struct merge_result *ret);

#endif
