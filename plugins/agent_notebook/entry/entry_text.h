/* SPDX-License-Identifier: MIT */
/* entry_text.h - words, lines and headings of a text. Nothing here knows of calls or documents.
 */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_TEXT_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_TEXT_H

#include <notegate/plugin.h>

/* Characters of a summary that is made. */
#define ENTRY_SUMMARY_CHARS 200

/* Bytes of the white space at `at` (Unicode's), 0: there is none. */
size_t entry_space(struct ng_str text, size_t at);
/* Words, as white space parts them. */
uint64_t entry_words(struct ng_str text);
/* Without white space at both ends. */
struct ng_str entry_trim(struct ng_str text);
/* Lines of the text, parted by \n: at least 1. */
uint64_t entry_lines(struct ng_str text);
/* Where line `number` (from 1) begins; text.len where there are fewer. */
size_t entry_line_at(struct ng_str text, uint64_t number);
/* The number of the line that the byte lies in. */
uint64_t entry_line_of(struct ng_str text, size_t at);
/* A heading of a Markdown text. */
struct entry_heading {
    struct ng_str text; /* plain; of several lines where it is underlined */
    unsigned level;     /* 1 to 6 */
    size_t at;          /* where its first line begins */
    size_t body;        /* where the line after it begins */
};

/* Goes over the lines of a text; zero it and set `text`. */
struct entry_scan {
    struct ng_str text;
    size_t at;
    size_t paragraph; /* where the paragraph begins that the next line may go on with */
    bool in_paragraph;
    bool begun;
    char fence; /* '`' or '~' inside a fenced block */
    size_t fence_len;
};

/* The next heading, ATX or setext, none of those inside fences and front matter. */
bool entry_next_heading(struct entry_scan *scan, struct entry_heading *ret);

/* Its text as it is told: its lines as one, parted by a space. Memory of the call. */
struct ng_str entry_heading_text(struct ng_call *call, const struct entry_heading *heading);

/* A section: from its heading to the next one of its level or above. */
struct entry_section {
    struct entry_heading heading;
    size_t end;
    size_t again; /* where the next heading of the same text begins; SIZE_MAX: there is none */
};

/* The first section whose heading has this text. A name with leading #s finds it too; a line
 * end in a heading is as good as a space. */
bool entry_find_section(struct ng_str text, struct ng_str name, struct entry_section *ret);
/* Could these lines, put behind a text that ends with a line, change its headings? */
bool entry_may_head(struct ng_str lines);

#endif
