/* SPDX-License-Identifier: MIT */
/* edit.h - edits of a note's text. Each gives the whole new file, in the arena; NG_EINTERNAL:
 * no memory, NG_ETOOLARGE: too large. */
#ifndef OPENNOTES_EDIT_H
#define OPENNOTES_EDIT_H

#include "create.h"

/* One place of a file that is made anew: old[at, to) becomes what is in `made` from `at` on;
 * all else of `made` is old. */
struct notes_change {
    struct ng_str old, made;
    size_t at, to;
    unsigned level; /* of the heading whose section it is; 0: it is none */
};

int notes_text_append(struct arena *arena, struct ng_str bytes, struct ng_str content,
                      struct notes_change *change);
/* Behind the front matter. */
int notes_text_prepend(struct arena *arena, struct ng_str bytes, struct ng_str content,
                       struct notes_change *change);
/* What follows the heading up to the next of its level or a higher one. The heading by its text
 * or its anchor. Fails with a sentence: SECTION_NOT_FOUND, INVALID_PARAMS where several are
 * meant, TOOL_FAILED where its end is not certain. */
int notes_text_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       struct ng_str section, struct ng_str content,
                       struct notes_change *change);

/* ---- edit_check.c: what an edit must not do, looked for in its outcome. Each fails with a
 * sentence. */

/* NOT_TEXT, where the file holds anything but UTF-8 text. */
int notes_edit_text(struct ng_call *call, struct ng_str path, struct ng_str bytes);
/* Is all but the place the old, byte for byte, and are the headings outside of it the same
 * ones? Does a replaced section hold no line that looks like a heading which would end it? */
int notes_edit_check(struct ng_call *call, struct arena *arena, struct ng_str path,
                     const struct notes_change *change);

/* Puts what was made into the draft as one splice: what changed between the two. In call
 * memory. */
int notes_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                     struct ng_str made);

#endif
