/* SPDX-License-Identifier: MIT */
/* markdown_parts.h - what markdown.c stands on: where lines are, links that md4c does not know,
 * anchors, entities, and a text that md4c reads in linear time. */
#ifndef OPENNOTES_MARKDOWN_PARTS_H
#define OPENNOTES_MARKDOWN_PARTS_H

#include "markdown.h"

/* ---- markdown_lines.c: line numbers of offsets */

struct on_lines {
    uint32_t *starts; /* offsets of the first bytes of lines */
    size_t count;
};

int on_lines_init(struct on_lines *lines, struct ng_str text);
void on_lines_done(struct on_lines *lines);
/* From 1. */
uint32_t on_lines_of(const struct on_lines *lines, size_t offset);
/* The end of the first line, from that of `from` on, that is an ATX heading of this level
 * without text; SIZE_MAX: there is none. */
size_t on_lines_empty_heading(struct ng_str text, size_t from, unsigned level);
/* A copy of the text of the same length that md4c reads in linear time: in paragraphs of
 * thousands of lines, where it would look for brackets over and over, brackets become blanks.
 * *ret_copy NULL: the text itself will do. */
int on_markdown_tame(struct ng_str text, char **ret_copy);

/* ---- markdown_slug.c: anchors of headings, each once in a text */

struct on_slugs {
    struct on_arena arena;
    struct on_slug_entry **table;
    size_t size, count;
};

void on_slugs_init(struct on_slugs *slugs);
void on_slugs_done(struct on_slugs *slugs);
/* {NULL, 0}: no memory. Lent until done. */
struct ng_str on_slugs_make(struct on_slugs *slugs, struct ng_str heading);

/* ---- markdown_inline.c: what stands in a line of source */

/* A wiki link at text[at], "[[": its target, its text and the end behind "]]". */
bool on_wiki_at(struct ng_str text, size_t at, struct ng_str *ret_target,
                struct ng_str *ret_text, size_t *ret_end);
/* Is the character at text[at] behind an odd number of backslashes? */
bool on_is_escaped(struct ng_str text, size_t at);
/* Does an embedded target name a picture, sound, film or PDF? */
bool on_wiki_is_media(struct ng_str target);
/* The end of a bare web address that begins at text[at]; `at`: there is none. */
size_t on_address_end(struct ng_str text, size_t at);
/* Appends what an HTML entity ("&amp;", "&#65;") stands for, or itself where it is unknown. */
void on_entity_add(struct on_buf *buf, struct ng_str entity);

#endif
