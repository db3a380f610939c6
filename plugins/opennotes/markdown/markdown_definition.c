/* SPDX-License-Identifier: MIT */
/* markdown_definition.c - places of the definitions of references. cmark-gfm takes them out of
 * their paragraphs without a position, so they are in the rows that no block has. */
#include <stdlib.h>
#include <string.h>

#include "markdown_parts.h"

struct definitions {
    struct ng_str text;
    struct notes_blocks blocks;
    unsigned char *taken; /* rows of blocks */
    struct buf rows;      /* free rows from one on, without the marks of containers */
    int (*found)(void *user, const struct notes_definition *found);
    void *user;
};

static size_t row_start(const struct definitions *definitions, size_t row)
{
    const struct notes_lines *lines = &definitions->blocks.lines;
    return row < lines->count ? lines->starts[row] : definitions->text.len;
}

static struct ng_str row_at(const struct definitions *definitions, size_t row)
{
    size_t from = row_start(definitions, row);
    return str_make(definitions->text.data + from, row_start(definitions, row + 1) - from);
}

static int take_rows(void *user, const struct notes_leaf *leaf)
{
    struct definitions *definitions = user;
    size_t last = size_min(leaf->last_row, definitions->blocks.lines.count);
    for (size_t row = leaf->row; row >= 1 && row <= last; row++) {
        definitions->taken[row - 1] = 1;
    }
    return NG_OK;
}

static size_t skip_blanks(struct ng_str text, size_t at)
{
    while (at < text.len && notes_is_space(text.data[at])) {
        at++;
    }
    return at;
}

/* A definition spans few rows: its label, then its target. */
#define ROWS_MAX 8

struct joined {
    size_t starts[ROWS_MAX]; /* of each row in the joined text, */
    size_t places[ROWS_MAX]; /* and in the whole text */
    size_t count;
};

static void join_rows(struct definitions *definitions, size_t row, struct joined *joined)
{
    joined->count = 0;
    buf_clear(&definitions->rows);
    for (; row < definitions->blocks.lines.count && joined->count < ROWS_MAX &&
           definitions->taken[row] == 0;
         row++) {
        struct ng_str text = row_at(definitions, row);
        size_t marks = notes_blocks_marks(text);
        joined->starts[joined->count] = definitions->rows.len;
        joined->places[joined->count++] = row_start(definitions, row) + marks;
        buf_add_str(&definitions->rows, str_make(text.data + marks, text.len - marks));
    }
}

static int read_row(struct definitions *definitions, size_t row)
{
    struct joined joined;
    struct notes_definition found;
    size_t at = 0;
    struct ng_str first = row_at(definitions, row);
    size_t marks = notes_blocks_marks(first);
    if (marks == first.len || first.data[marks] != '[') {
        return NG_OK;
    }
    join_rows(definitions, row, &joined);
    struct ng_str text = notes_buf_str(&definitions->rows);
    if (definitions->rows.rc != NG_OK) {
        return NG_EINTERNAL;
    }
    if (!notes_label_at(text, 0, &found.label, &at) || at >= text.len || text.data[at] != ':') {
        return NG_OK;
    }
    at = skip_blanks(text, at + 1);
    if (at >= text.len || !notes_destination_at(text, at, &found.target, &at)) {
        return NG_OK;
    }
    size_t begin = (size_t)(found.target.data - text.data);
    size_t last = joined.count - 1;
    while (last > 0 && joined.starts[last] > begin) {
        last--;
    }
    found.at = joined.places[last] + (begin - joined.starts[last]);
    return definitions->found(definitions->user, &found);
}

int notes_markdown_definitions(struct ng_str text,
                               int (*found)(void *user, const struct notes_definition *found),
                               void *user)
{
    struct definitions definitions = {.text = text, .found = found, .user = user};
    buf_init(&definitions.rows, text.len + 1);
    int rc = notes_blocks_read(text, &definitions.blocks);
    if (rc == NG_OK) {
        definitions.taken = alloc_zeroed(definitions.blocks.lines.count + 1, 1);
        rc = definitions.taken != NULL ? NG_OK : NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        rc = notes_blocks_each(&definitions.blocks, take_rows, &definitions);
    }
    for (size_t row = 0; rc == NG_OK && row < definitions.blocks.lines.count; row++) {
        if (definitions.taken[row] == 0) {
            rc = read_row(&definitions, row);
        }
    }
    free(definitions.taken);
    buf_done(&definitions.rows);
    notes_blocks_done(&definitions.blocks);
    return rc;
}
