/* SPDX-License-Identifier: MIT */
/* outline.h - the headings of a text and the sections below them. */
#ifndef OPENNOTES_OUTLINE_H
#define OPENNOTES_OUTLINE_H

#include "text/text.h"

struct notes_outline_heading {
    uint32_t line, last_line; /* from 1 */
    size_t at, end;           /* offsets of its first line, and behind its last */
    unsigned level;
    bool nested; /* in a list item, a quote or a footnote */
    struct ng_str text, fold, slug;
};

struct notes_outline {
    struct arena *arena;
    struct notes_outline_heading *items;
    size_t count, room;
    bool whole; /* false: the text is over the limits of Markdown, and the rest is unknown */
};

/* Of valid UTF-8. NG_OK, or NG_EINTERNAL: no memory. Everything lies in the arena. */
int notes_outline_read(struct arena *arena, struct ng_str text, struct notes_outline *outline);

/* The level that a section is asked for with: 2 of "## Tasks", 0 of "Tasks" (any level).
 * *section becomes the text behind the marks. */
unsigned notes_outline_level(struct ng_str *section);

/* The first heading that `section` matches: its text ("Tasks", "## Tasks", also with its
 * marks), else its anchor ("tasks", "#tasks"). *ret_matches: number of headings with that text;
 * 0: there is none. false: out of memory. */
bool notes_outline_find(const struct notes_outline *outline, struct ng_str section,
                        size_t *ret_found, size_t *ret_matches);

/* The heading that ends the section below `found`; NULL: the section extends to the end. */
const struct notes_outline_heading *notes_outline_next(const struct notes_outline *outline,
                                                       size_t found);

/* Fails with SECTION_NOT_FOUND and the headings as a hint. */
int notes_outline_fail(struct ng_call *call, const struct notes_outline *outline,
                       struct ng_str section);

#endif
