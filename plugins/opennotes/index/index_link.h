/* SPDX-License-Identifier: MIT */
/* index_link.h - keys of link targets, and the names of a note. */
#ifndef NOTEGATE_OPENNOTES_INDEX_LINK_H
#define NOTEGATE_OPENNOTES_INDEX_LINK_H

#include "text/text.h"

/* The key of a link in names; {NULL, 0}: the target is outside of the notebook. */
struct ng_str notes_link_key(struct arena *arena, struct ng_str note_path, bool wiki,
                             struct ng_str target);
/* The target of a wiki link, or a name it may match, without the block of "note^block". */
struct ng_str notes_link_note(struct ng_str target);
/* Is it an address outside of every notebook? */
bool notes_link_is_address(struct ng_str target);
/* Percent-decoded bytes. {NULL, 0}: out of memory. */
struct ng_str notes_link_decoded(struct arena *arena, struct ng_str target);
/* The line that holds the link, shortened. `line` counts from 1. */
struct ng_str notes_link_context(struct ng_str body, size_t *line_start, size_t *line_number,
                                 size_t line, struct ng_str needle);

/* The names that a note has by its path, with their kinds in `names`; a key may be {NULL, 0}:
 * out of memory. A result other than 0 ends it, and is returned. */
typedef int notes_name_fn(void *user, struct ng_str key, const char *kind);
int notes_link_names(struct arena *arena, struct ng_str path, notes_name_fn *put, void *user);

#endif
