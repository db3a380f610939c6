/* SPDX-License-Identifier: MIT */
/* summary.h - a note as lists show it: path, title, tags, created, modified. */
#ifndef NOTEGATE_OPENNOTES_SUMMARY_H
#define NOTEGATE_OPENNOTES_SUMMARY_H

#include <sqlite3.h>

#include "text/text.h"

struct on_summary {
    sqlite3_stmt *note, *tags;
};

/* An SQLite code. on_summary_done() in either case. */
int on_summary_open(struct on_summary *summary, sqlite3 *db);
void on_summary_done(struct on_summary *summary);
/* Writes the members (no braces) of the note with this id. An SQLite code; SQLITE_DONE: there
 * is no such note. */
int on_summary_write(struct on_summary *summary, int64_t id, struct on_buf *json);

#endif
