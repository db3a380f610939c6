/* SPDX-License-Identifier: MIT */
/* entry_text.h - words, lines and headings of a text. Knows neither calls nor documents. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_TEXT_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_TEXT_H

#include <notegate/plugin.h>

/* Length of a derived summary. */
#define ENTRY_SUMMARY_CHARS 200

/* Bytes of the Unicode white space at `at`; 0: there is none. */
size_t entry_space(struct ng_str text, size_t at);
/* Words, separated by white space. */
uint64_t entry_words(struct ng_str text);
/* Without white space at both ends. */
struct ng_str entry_trim(struct ng_str text);
/* Lines of the text, separated by \n: at least 1. */
uint64_t entry_lines(struct ng_str text);
/* The start of line `number` (from 1); text.len if there are fewer. */
size_t entry_line_at(struct ng_str text, uint64_t number);
/* The number of the line with this byte. */
uint64_t entry_line_of(struct ng_str text, size_t at);
/* A heading of a Markdown text. */
struct entry_heading {
    struct ng_str text; /* plain text; several lines if underlined */
    unsigned level;     /* 1 to 6 */
    bool underlined;
    size_t at;   /* start of its first line */
    size_t body; /* start of the line below it */
};

/* A scan over the lines of a text; zero it and set `text`. */
struct entry_scan {
    struct ng_str text;
    size_t at;
    size_t paragraph; /* start of the paragraph that the next line may continue */
    bool in_paragraph;
    bool begun;
    char fence; /* '`' or '~' inside a fenced block */
    size_t fence_len;
};

/* The next heading, ATX or setext, outside of fences and front matter. */
bool entry_next_heading(struct entry_scan *scan, struct entry_heading *ret);

/* The text of a heading on one line, its lines joined by spaces. Call memory. */
struct ng_str entry_heading_text(struct ng_call *call, const struct entry_heading *heading);

/* A section: from its heading to the next one of its level or above it. */
struct entry_section {
    struct entry_heading heading;
    size_t end;
    bool next_underlined; /* the heading at `end` */
    size_t again;         /* start of the next heading with the same text; SIZE_MAX: none */
};

/* Finds the first section whose heading has this text. Leading # marks of the name are ignored,
 * and a line end in a heading equals a space. */
bool entry_find_section(struct ng_str text, struct ng_str name, struct entry_section *ret);
/* Could appending these lines to a text that ends with a line end change its headings? */
bool entry_may_head(struct ng_str lines);

#endif
