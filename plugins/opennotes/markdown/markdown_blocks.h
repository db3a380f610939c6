/* SPDX-License-Identifier: MIT */
/* markdown_blocks.h - the blocks of a Markdown text, read by cmark-gfm (its only user here).
 * Its block phase alone runs: it gives exact lines. Texts inside blocks are read by
 * markdown_scan.c, in linear time and with positions, which cmark-gfm's inline phase is not. */
#ifndef OPENNOTES_MARKDOWN_BLOCKS_H
#define OPENNOTES_MARKDOWN_BLOCKS_H

#include "text/text.h"

/* Blocks inside blocks that are read; deeper ones cost cmark-gfm quadratic time. */
#define NOTES_BLOCKS_DEPTH_MAX 100
/* Bytes that the blocks of one text may take; at twice as many nothing of it is read. */
#define NOTES_BLOCKS_BYTES_MAX ((size_t)256 * 1024 * 1024)

enum notes_leaf_kind {
    NOTES_LEAF_HEADING = 1,
    NOTES_LEAF_PARAGRAPH,
    NOTES_LEAF_ROW, /* of a table, its header too */
    NOTES_LEAF_CODE
};

/* Lines count from 1 and end in LF. */
struct notes_leaf {
    enum notes_leaf_kind kind;
    unsigned level;     /* of a heading */
    bool nested;        /* in a list item, a quote or a footnote */
    char task;          /* the mark in its "[ ]" where the paragraph begins a task, else 0 */
    uint32_t row;       /* the first line of `text` as cmark-gfm counts: notes_blocks_line() */
    uint32_t last_row;  /* the last of the block, the line under a heading too */
    struct ng_str text; /* without the marks of containers; of a row its whole line */
};

struct notes_blocks {
    struct notes_blocks_memory *memory;
    struct notes_blocks_refs *refs;
    struct ng_str text;
    struct notes_lines {
        uint32_t *starts; /* offsets of rows, which a lone CR ends, too */
        uint32_t *lines;  /* of each row, counted by LF; NULL: the same as rows */
        size_t count, room, lines_room;
    } lines;
    void *parser;
    bool whole; /* all was read: nothing is over a limit */
};

/* NG_OK or NG_EINTERNAL (no memory); notes_blocks_done() in either case. `text` is valid UTF-8
 * of less than 1 GiB, lent until done. Takes time in proportion to it. */
int notes_blocks_read(struct ng_str text, struct notes_blocks *blocks);
void notes_blocks_done(struct notes_blocks *blocks);

/* Every leaf in the order of the text. Not 0 from `leaf` ends it, and is returned. */
int notes_blocks_each(struct notes_blocks *blocks,
                      int (*leaf)(void *user, const struct notes_leaf *leaf), void *user);

/* The line of a row, from 1. */
uint32_t notes_blocks_line(const struct notes_blocks *blocks, uint32_t row);

/* The target that a reference of this label has; false: it is not defined. */
bool notes_blocks_reference(const struct notes_blocks *blocks, struct ng_str label,
                            struct ng_str *ret_target);

#endif
