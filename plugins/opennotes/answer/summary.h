/* SPDX-License-Identifier: MIT */
/* summary.h - a note as lists show it: path, title, tags, created, modified. */
#ifndef NOTEGATE_OPENNOTES_SUMMARY_H
#define NOTEGATE_OPENNOTES_SUMMARY_H

#include <sqlite3.h>

#include "answer.h"

struct notes_summary {
    sqlite3_stmt *note, *tags;
};

/* `errors`: with the member frontmatterError. An SQLite code. notes_summary_done() in either
 * case. */
int notes_summary_open(struct notes_summary *summary, sqlite3 *db, bool errors);
void notes_summary_done(struct notes_summary *summary);
/* Writes the members (no braces) of the note with this id. An SQLite code; SQLITE_DONE: there
 * is no such note. */
int notes_summary_write(struct notes_summary *summary, int64_t id, struct buf *json);

/* Counts the notes whose ids are in the first column of a statement, and adds those of the page
 * to the answer's list. Further columns are members, as JSON, under their names; NULL: none. An
 * SQLite code. */
int notes_summary_rows(struct notes_summary *summary, sqlite3_stmt *rows,
                       struct notes_answer *answer);

/* Adds an item to the answer's list: the first columns of a row under their names, numbers and
 * texts. NULL: no member. */
void notes_answer_columns(struct notes_answer *answer, sqlite3_stmt *row, int count);

#endif
