/* SPDX-License-Identifier: MIT */
/* summary.c - a note as lists show it. */
#include "summary.h"

#include "index/index.h"

int notes_summary_open(struct notes_summary *summary, sqlite3 *db, bool errors)
{
    const char *sql = "SELECT path, title, created, modified FROM notes WHERE id = ?1";
    if (errors) {
        sql = "SELECT path, title, created, modified, front_error FROM notes WHERE id = ?1";
    }
    *summary = (struct notes_summary){.note = NULL};
    int rc = sqlite3_prepare_v2(db, sql, -1, &summary->note, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    return sqlite3_prepare_v2(db, "SELECT tag FROM tags WHERE note = ?1 ORDER BY rowid", -1,
                              &summary->tags, NULL);
}

void notes_summary_done(struct notes_summary *summary)
{
    (void)sqlite3_finalize(summary->note);
    (void)sqlite3_finalize(summary->tags);
    *summary = (struct notes_summary){.note = NULL};
}

static int write_tags(sqlite3_stmt *tags, int64_t id, struct buf *json)
{
    bool any = false;
    int rc = SQLITE_ROW;
    (void)sqlite3_bind_int64(tags, 1, id);
    while ((rc = sqlite3_step(tags)) == SQLITE_ROW) {
        if (!any) {
            notes_json_member_begin(json, "tags", '[');
            any = true;
        }
        notes_json_text(json, notes_column_text(tags, 0));
    }
    if (any) {
        notes_json_end(json, ']');
    }
    (void)sqlite3_reset(tags);
    return notes_done(rc);
}

int notes_summary_write(struct notes_summary *summary, int64_t id, struct buf *json)
{
    sqlite3_stmt *note = summary->note;
    (void)sqlite3_bind_int64(note, 1, id);
    int rc = sqlite3_step(note);
    if (rc == SQLITE_ROW) {
        notes_json_member(json, "path", notes_column_text(note, 0));
        if (sqlite3_column_type(note, 1) != SQLITE_NULL) {
            notes_json_member(json, "title", notes_column_text(note, 1));
        }
        rc = write_tags(summary->tags, id, json);
        notes_json_member_time(json, "created", sqlite3_column_int64(note, 2));
        notes_json_member_time(json, "modified", sqlite3_column_int64(note, 3));
        if (sqlite3_column_count(note) > 4 && sqlite3_column_type(note, 4) != SQLITE_NULL) {
            notes_json_member(json, "frontmatterError", notes_column_text(note, 4));
        }
    }
    (void)sqlite3_reset(note);
    return rc;
}

int notes_summary_rows(struct notes_summary *summary, sqlite3_stmt *rows,
                       struct notes_answer *answer)
{
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (!notes_answer_row(answer)) {
            continue;
        }
        struct buf *item = notes_answer_item(answer);
        notes_json_begin(item, '{');
        for (int i = 1; i < sqlite3_column_count(rows); i++) {
            if (sqlite3_column_type(rows, i) != SQLITE_NULL) {
                notes_json_name_c(item, sqlite3_column_name(rows, i));
                notes_json_raw(item, notes_column_text(rows, i));
            }
        }
        rc = notes_summary_write(summary, sqlite3_column_int64(rows, 0), item);
        notes_json_end(item, '}');
        (void)notes_answer_add(answer);
    }
    return notes_done(rc);
}

void notes_answer_columns(struct notes_answer *answer, sqlite3_stmt *row, int count)
{
    struct buf *item = notes_answer_item(answer);
    notes_json_begin(item, '{');
    for (int i = 0; i < count; i++) {
        const char *name = sqlite3_column_name(row, i);
        int type = sqlite3_column_type(row, i);
        if (type == SQLITE_INTEGER) {
            notes_json_member_int(item, name, sqlite3_column_int64(row, i));
        } else if (type != SQLITE_NULL) {
            notes_json_member(item, name, notes_column_text(row, i));
        }
    }
    notes_json_end(item, '}');
    (void)notes_answer_add(answer);
}
