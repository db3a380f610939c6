/* SPDX-License-Identifier: MIT */
/* left_out.h - notes that filters leave out because their front matter does not parse: the
 * member `leftOut` of an answer. */
#ifndef OPENNOTES_LEFT_OUT_H
#define OPENNOTES_LEFT_OUT_H

#include <sqlite3.h>

#include "answer.h"

#define NOTES_LEFT_OUT_SHOWN 3
/* Bytes of a shown note; one with a longer path is only counted. */
#define NOTES_LEFT_OUT_ITEM_MAX ((size_t)1024)
/* Bytes of the whole member. */
#define NOTES_LEFT_OUT_BYTES_MAX (NOTES_LEFT_OUT_SHOWN * NOTES_LEFT_OUT_ITEM_MAX + 300)

#define NOTES_SCHEMA_LEFT_OUT                                                                  \
    "{\"type\":\"object\",\"required\":[\"count\",\"reason\",\"notes\"],\"description\":"      \
    "\"Notes that may match, but whose frontmatter does not parse\",\"properties\":{"          \
    "\"count\":{\"type\":\"integer\"},\"reason\":{\"type\":\"string\"},"                       \
    "\"notes\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"

/* Begins zeroed. */
struct notes_left_out {
    int64_t count;
    bool begun;
    struct buf notes; /* the first ones, as JSON */
};

/* Counts a note. An SQLite code. */
int notes_left_out_add(struct notes_left_out *left, sqlite3 *db, int64_t note);
/* Counts the notes whose ids are in the first column of a statement. An SQLite code. */
int notes_left_out_rows(struct notes_left_out *left, sqlite3 *db, sqlite3_stmt *rows);
/* Reserves room in the answer; before its list has items. */
void notes_left_out_reserve(const struct notes_left_out *left, struct notes_answer *answer);
/* Writes the member if there is such a note, behind the list of the answer; frees. */
void notes_left_out_end(struct notes_left_out *left, struct notes_answer *answer);

#endif
