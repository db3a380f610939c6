/* SPDX-License-Identifier: MIT */
/*
 * screen.h - the text that a terminal shows after a program has written to it.
 *
 * A screen has rows and a cursor. Text overwrites what stands at the cursor, \n moves to the
 * beginning of the next row. It understands \r, \b, and of the escape sequences these (n is 1
 * if absent):
 *
 *     ESC[K  ESC[1K  ESC[2K    erase the row from the cursor on, up to the cursor, all of it
 *     ESC[J  ESC[2J            erase everything from the cursor on, remove all rows
 *     ESC[nA ESC[nB            n rows up, down
 *     ESC[nC ESC[nD ESC[nG     n columns right, left; to column n
 *
 * Colours, titles, all other sequences and control characters vanish; a tab is a character.
 *
 * Source: ECMA-48, as xterm implements it. No I/O, no state: each call is a screen of its own.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_SCREEN_H
#define NOTEGATE_PLUGIN_CELLS_SCREEN_H

#include "nb.h"

/* Rows that the cursor can reach. What scrolls off the top is final. */
#define SCREEN_ROWS 64
/* The cursor moves to the right up to this column, or up to the end of a longer row. */
#define SCREEN_COLUMNS 256
/* Characters on the screen. With more, everything on it becomes final, and the row goes on. */
#define SCREEN_CHARACTERS ((size_t)1 << 20)
/* Blanks that movements to the right make, in one text; then characters follow each other. */
#define SCREEN_BLANKS ((size_t)1 << 20)

/* Appends what the screen shows of the text, which is UTF-8: all rows, also those that scrolled
 * off, separated by \n. Blanks that erasing left at the end of a row are not part of it.
 * out->failed: out of memory. */
void screen_show(struct nb_text *out, struct ng_str text);

/*
 * For text that goes on later: appends a shorter text that leaves the same screen and cursor.
 * Its beginning, of the length that is returned, is final; what `more` changes is behind it:
 *
 *     screen_show(text + more) = beginning + screen_show(rest + more)
 *
 * except for blanks at the end of a row. A sequence that is incomplete at the end of the text
 * is kept. Text in which nothing is overwritten is appended unchanged, with its colours. Text
 * beyond SCREEN_CHARACTERS or SCREEN_BLANKS may show something else.
 */
size_t screen_settle(struct nb_text *out, struct ng_str text);

#endif
