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
    bool exact;     /* the caller gave the bytes of the place: headings may change */
};

/* ---- edit_text.c */

/* Writes `content` as its own lines at `at`, replacing the bytes up to `to`. */
int notes_text_put(struct arena *arena, struct ng_str bytes, size_t at, size_t to,
                   struct ng_str content, struct notes_change *change);
int notes_text_append(struct arena *arena, struct ng_str bytes, struct ng_str content,
                      struct notes_change *change);
/* Behind the front matter. */
int notes_text_prepend(struct arena *arena, struct ng_str bytes, struct ng_str content,
                       struct notes_change *change);

/* Replaces the YAML of the front matter, or only its line `line` of the file (0: all of it);
 * makes front matter where there is none. TOOL_FAILED, with a sentence, if the result does not
 * parse. */
int notes_text_frontmatter(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                           int64_t line, struct ng_str content, struct notes_change *change);
/* TOOL_FAILED, with a sentence, if the change makes front matter that does not parse of one
 * that does. */
int notes_text_keeps_frontmatter(struct ng_call *call, struct arena *arena,
                                 const struct notes_change *change);

/* ---- edit_section.c: the text between a heading and the next one of its level or a higher
 * one. Finds the heading by its text or its anchor. Fails with a sentence: SECTION_NOT_FOUND,
 * INVALID_PARAMS if several match, TOOL_FAILED if its end is not certain. */

enum notes_section_edit {
    NOTES_SECTION_REPLACE,
    NOTES_SECTION_APPEND, /* behind its last line that is not blank */
    NOTES_SECTION_PREPEND
};

int notes_text_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       struct ng_str section, enum notes_section_edit edit,
                       struct ng_str content, struct notes_change *change);
/* Appends to the section. If it is missing, it is made at the end of the note: of the level
 * that it is asked for with ("### Log"), else of level 2. */
int notes_text_section_or_new(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                              struct ng_str section, struct ng_str content,
                              struct notes_change *change);

/* ---- edit_replace.c */

/* Replaces `wanted`, which must occur once. LF in it matches CRLF, and in `put` becomes the
 * line end of the place, unless `wanted` has CR. TOOL_FAILED, with a sentence. */
int notes_text_replace(struct ng_call *call, struct arena *arena, struct ng_str path,
                       struct ng_str bytes, struct ng_str wanted, struct ng_str put,
                       struct notes_change *change);

/* ---- edit_check.c: checks of the result of an edit. Each fails with a sentence. */

/* NOT_TEXT, if the file is not UTF-8 text. */
int notes_edit_text(struct ng_call *call, struct ng_str path, struct ng_str bytes);
/* Checks that all bytes outside of the place and the headings outside of it are unchanged, and
 * that a replaced section has no line that looks like the heading that would end it. made_rc:
 * the result of the edit; a failure is told and returned. */
int notes_edit_check(struct ng_call *call, struct arena *arena, struct ng_str path, int made_rc,
                     const struct notes_change *change);

/* ---- edit_lines.c */

/* The equal bytes at the beginning and at the end of both; they do not overlap. */
void notes_edit_place(struct ng_str old, struct ng_str made, size_t *ret_head,
                      size_t *ret_tail);
/* The lines that are in one of the texts alone. A missing end of the last line does not count.
 * NG_OK or NG_EINTERNAL: no memory. */
int notes_edit_count(struct ng_str old, struct ng_str made, uint64_t *ret_added,
                     uint64_t *ret_removed);

/* ---- edit.c */

/* Writes the result into the draft as one splice: the differing part. In call memory. */
int notes_edit_draft(struct ng_call *call, struct ng_draft *next, struct ng_str old,
                     struct ng_str made);

/* An edit, for its answer. */
struct notes_edited {
    struct ng_str path;
    struct ng_str old, made; /* the bytes before and after */
    const char *undone;      /* the kind of an undone change; NULL: it is no undo */
    bool deleted;
    bool folder;            /* it is none of a note */
    struct ng_str revision; /* {NULL, 0}: that of `made` */
};

int notes_edit_reply(struct ng_call *call, const struct notes_edited *edited);

/* ---- edit_undo.c */

/* Takes back the caller's last change of the note `given`, of a folder that was moved, or of
 * what is in the trash. NO_HISTORY, CONFLICT. */
int notes_edit_undo(struct notes_notebook *notebook, struct ng_call *call, struct ng_str given);

#endif
