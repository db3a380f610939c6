/* SPDX-License-Identifier: MIT */
/* index_rows.h - the rows of one parsed note. Each function sets the call's error on failure.
 */
#ifndef NOTEGATE_OPENNOTES_INDEX_ROWS_H
#define NOTEGATE_OPENNOTES_INDEX_ROWS_H

#include "index_state.h"
#include "markdown/markdown.h"
#include "note/note.h"

/* A statement of the writer, and its run: an insert, an update or a delete. */
sqlite3_stmt *notes_statement(const struct notes_index *index, enum notes_statement number);
int notes_statement_run(struct notes_index *index, struct ng_call *call,
                        enum notes_statement number);

struct notes_row_source {
    struct notes_index *index;
    struct ng_call *call;
    struct arena *arena;
    int64_t id;
    struct ng_str path;              /* NFC */
    struct ng_str title, title_fold; /* front matter's, else the file's name */
    struct ng_str heads;             /* title and aliases, folded, each on a line */
    struct notes_tag_set tags;       /* tags with a row */
    struct ng_str body;              /* valid UTF-8, without NUL */
    size_t body_line;                /* lines before it in the file */
    size_t link_rows, image_rows;
};

int notes_rows_names(struct notes_row_source *source, const struct notes_note *note);
/* Tags of the front matter; notes_rows_marks() adds those of the text. */
int notes_rows_tags(struct notes_row_source *source, const struct notes_note *note);
int notes_rows_fields(const struct notes_row_source *source, const struct notes_note *note);
int notes_rows_marks(struct notes_row_source *source);
/* A link at a line of the file, from 1; over NOTES_INDEX_ROWS_MAX there is no row. */
int notes_rows_link(struct notes_row_source *source, const struct notes_link *link, size_t line,
                    struct ng_str context);
/* An image that is not an address. */
int notes_rows_image(struct notes_row_source *source, const struct notes_link *image);
/* Links in front matter. */
int notes_rows_properties(struct notes_row_source *source, const struct notes_note *note);
/* *ret_long becomes true if a word is too long for vocab. */
int notes_rows_words(const struct notes_row_source *source, struct ng_str folded,
                     bool *ret_long);

#endif
