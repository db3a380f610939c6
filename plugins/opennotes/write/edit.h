/* SPDX-License-Identifier: MIT */
/* edit.h - edits of a note's text. Each gives the whole new file, in the arena; NG_EINTERNAL:
 * no memory, NG_ETOOLARGE: too large. */
#ifndef OPENNOTES_EDIT_H
#define OPENNOTES_EDIT_H

#include "create.h"

/* One replaced place of a file: old[at, to) becomes the bytes of `made` from `at` on; all other
 * bytes of `made` are old. */
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
/* Replaces the text between the heading and the next one of its level or a higher one. Finds
 * the heading by its text or its anchor. Fails with a sentence: SECTION_NOT_FOUND,
 * INVALID_PARAMS if several match, TOOL_FAILED if its end is not certain. */
int notes_text_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       struct ng_str section, struct ng_str content,
                       struct notes_change *change);

/* Replaces the YAML of the front matter, or only its line `line` of the file (0: all of it);
 * makes front matter where there is none. TOOL_FAILED, with a sentence, if the result does not
 * parse. */
int notes_text_frontmatter(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                           int64_t line, struct ng_str content, struct notes_change *change);

/* ---- edit_check.c: checks of the result of an edit. Each fails with a sentence. */

/* NOT_TEXT, if the file is not UTF-8 text. */
int notes_edit_text(struct ng_call *call, struct ng_str path, struct ng_str bytes);
/* Checks that all bytes outside of the place and the headings outside of it are unchanged, and
 * that a replaced section has no line that looks like the heading that would end it. made_rc:
 * the result of the edit; a failure is told and returned. */
int notes_edit_check(struct ng_call *call, struct arena *arena, struct ng_str path, int made_rc,
                     const struct notes_change *change);

/* Writes the result into the draft as one splice: the differing part. In call memory. */
int notes_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                     struct ng_str made);

#endif
