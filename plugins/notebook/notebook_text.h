/* SPDX-License-Identifier: MIT */
/* notebook_text.h - lines of a notebook: the pieces between '\n', so that an empty text has one
 * line, and a final '\n' adds an empty one. No state, no memory. */
#ifndef NOTEGATE_PLUGIN_NOTEBOOK_TEXT_H
#define NOTEGATE_PLUGIN_NOTEBOOK_TEXT_H

#include <notegate/plugin.h>

/* Longest line number with the ": " after it. */
#define NOTEBOOK_LABEL_MAX 24

int64_t notebook_lines(struct ng_str text);
/* Offset of the end of line `line` (from 1): of its '\n', or the end of the text. */
uint64_t notebook_line_end(struct ng_str text, int64_t line);
/* Offset of the first `needle`; false: none. "" is found at 0. */
bool notebook_find(struct ng_str text, struct ng_str needle, uint64_t *ret_at);
/* The first line that contains `needle`, from 1; 0: none. */
int64_t notebook_find_line(struct ng_str text, struct ng_str needle);
/* Reads an optional '-' and digits, nothing else. A number beyond 64 bits becomes one that is
 * outside every range. */
bool notebook_integer(struct ng_str text, int64_t *ret_number);

/*
 * The lines `a` to `b` of a text of `lines` lines: from 1, inclusive; negative numbers count
 * from the end (-1 is the last line). Clipped to the text. False: no line is left.
 */
bool notebook_range(int64_t lines, int64_t a, int64_t b, int64_t *ret_first, int64_t *ret_last);
/* Offset of the beginning of a line. */
size_t notebook_line_start(struct ng_str text, int64_t line);
/* How many of the lines notebook_number() writes in at most `room` bytes, and their bytes. */
int64_t notebook_fitting(struct ng_str text, int64_t first, int64_t last, size_t room,
                         size_t *ret_bytes);
/* Writes "N: line" for each of the lines, with '\n' between them. Returns the bytes. */
size_t notebook_number(struct ng_str text, int64_t first, int64_t last, char *out);
/* The number of lines before an insertion at `number`: 0 and up count from the start, -1 is
 * after the last line, -2 before it. False: out of range. */
bool notebook_place(int64_t lines, int64_t number, int64_t *ret_after);

#endif
