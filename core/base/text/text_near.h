/* SPDX-License-Identifier: MIT */
/* text_near.h - the nearest place of a text that does not occur, for hints. Never for a
 * replacement. */
#ifndef NOTEGATE_CORE_TEXT_NEAR_H
#define NOTEGATE_CORE_TEXT_NEAR_H

#include "notegate/abi.h"

/* Longest text that is looked for, in code points once it is folded; a longer one gets no note.
 */
#define TEXT_NEAR_WANTED_MAX ((size_t)65536)
/* Longest line that a note shows, in bytes. */
#define TEXT_NEAR_LINE_MAX ((size_t)120)
/* Lines that a note lists if several places fit. */
#define TEXT_NEAR_PLACES_MAX 3
#define TEXT_NEAR_NOTE_SIZE 512

/* `wanted` does not occur in `text`. Looks for places that differ from it only in blanks, tabs,
 * line ends, quotes, dashes, invisible characters, case, or normal form, and writes a sentence
 * about the first: its line, the first character that differs, and the line if it is short.
 * name: of the argument. False, and "": there is no such place, or no memory. */
bool text_near(struct ng_str text, struct ng_str wanted, const char *name,
               char note[TEXT_NEAR_NOTE_SIZE]);

#endif
