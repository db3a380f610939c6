/* SPDX-License-Identifier: MIT */
/* index_rows.h - the rows of one parsed note. Each function fails the call where it fails. */
#ifndef NOTEGATE_OPENNOTES_INDEX_ROWS_H
#define NOTEGATE_OPENNOTES_INDEX_ROWS_H

#include "index_state.h"
#include "markdown/markdown.h"
#include "note/note.h"

struct on_row_source {
    struct on_index *index;
    struct ng_call *call;
    struct on_arena *arena;
    int64_t id;
    struct ng_str path;              /* NFC */
    struct ng_str title, title_fold; /* front matter's, else the file's name */
    struct on_tag_set tags;          /* those that were put in */
    struct ng_str body;              /* valid UTF-8, without NUL */
};

int on_rows_names(const struct on_row_source *source, const struct on_note *note);
/* Those of front matter; on_rows_marks() adds those of the text. */
int on_rows_tags(struct on_row_source *source, const struct on_note *note);
int on_rows_fields(const struct on_row_source *source, const struct on_note *note);
int on_rows_marks(struct on_row_source *source);
/* *ret_long: becomes true where there is a word that is too long for vocab. */
int on_rows_words(const struct on_row_source *source, struct ng_str folded, bool *ret_long);

#endif
