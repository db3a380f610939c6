/* SPDX-License-Identifier: MIT */
/* markdown_blocks.h - the blocks of a Markdown text; the only user of cmark-gfm. Only its block
 * phase runs, which reports exact lines. markdown_scan.c reads the text of each block in linear
 * time and with positions; cmark-gfm's inline phase does neither. */
#ifndef OPENNOTES_MARKDOWN_BLOCKS_H
#define OPENNOTES_MARKDOWN_BLOCKS_H

#include "text/text.h"

/* Maximum block depth; cmark-gfm takes quadratic time for deeper blocks. */
#define NOTES_BLOCKS_DEPTH_MAX 100
/* Memory limit for the blocks of one text; with twice as many bytes nothing is reported. */
#define NOTES_BLOCKS_BYTES_MAX ((size_t)256 * 1024 * 1024)

enum notes_leaf_kind {
    NOTES_LEAF_HEADING = 1,
    NOTES_LEAF_PARAGRAPH,
    NOTES_LEAF_ROW, /* of a table, its header too */
    NOTES_LEAF_CODE,
    NOTES_LEAF_HTML
};

/* Lines count from 1 and end in LF. */
struct notes_leaf {
    enum notes_leaf_kind kind;
    unsigned level;     /* of a heading */
    bool nested;        /* in a list item, a quote or a footnote */
    char task;          /* the mark in its "[ ]" where the paragraph begins a task, else 0 */
    uint32_t row;       /* the first line of `text` as cmark-gfm counts: notes_blocks_line() */
    uint32_t last_row;  /* last row of the block, with the underline of a heading */
    struct ng_str text; /* without the marks of containers; of a row its whole line */
};

struct notes_blocks {
    struct notes_blocks_memory *memory;
    struct notes_keys *refs;
    struct ng_str text;
    struct notes_lines {
        uint32_t *starts; /* offsets of rows, which a lone CR ends, too */
        uint32_t *lines;  /* of each row, counted by LF; NULL: the same as rows */
        size_t count, room, lines_room;
    } lines;
    void *parser;
    bool whole; /* false: a limit was exceeded */
};

/* NG_OK or NG_EINTERNAL (no memory); notes_blocks_done() in either case. `text` is valid UTF-8
 * of less than 1 GiB, lent until done. Takes time in proportion to it. */
int notes_blocks_read(struct ng_str text, struct notes_blocks *blocks);
void notes_blocks_done(struct notes_blocks *blocks);

/* Reports every leaf in the order of the text. A result other than 0 from `leaf` ends the
 * iteration, and is returned. */
int notes_blocks_each(struct notes_blocks *blocks,
                      int (*leaf)(void *user, const struct notes_leaf *leaf), void *user);

/* Bytes of the marks of containers at the beginning of a row: quotes, items, footnotes. */
size_t notes_blocks_marks(struct ng_str row);

/* The line of a row, from 1. */
uint32_t notes_blocks_line(const struct notes_blocks *blocks, uint32_t row);

#endif
