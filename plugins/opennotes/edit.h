/* SPDX-License-Identifier: MIT */
/* edit.h - edits of a note's text. Each gives the whole new file, in the arena; NG_EINTERNAL:
 * no memory, NG_ETOOLARGE: too large. */
#ifndef OPENNOTES_EDIT_H
#define OPENNOTES_EDIT_H

#include "create.h"

int on_text_append(struct on_arena *arena, struct ng_str bytes, struct ng_str content,
                   struct ng_str *ret_bytes);
/* Behind the front matter. */
int on_text_prepend(struct on_arena *arena, struct ng_str bytes, struct ng_str content,
                    struct ng_str *ret_bytes);
/* What follows the heading up to the next of its level or a higher one. The heading by its text
 * or its anchor. Fails with a sentence: SECTION_NOT_FOUND, or INVALID_PARAMS where several are
 * meant. */
int on_text_section(struct ng_call *call, struct on_arena *arena, struct ng_str bytes,
                    struct ng_str section, struct ng_str content, struct ng_str *ret_bytes);

/* Puts what was made into the draft as one splice: what changed between the two. In call
 * memory. */
int on_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                  struct ng_str made);

#endif
