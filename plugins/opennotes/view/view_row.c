/* SPDX-License-Identifier: MIT */
/* view_row.c - the results of views: a note each, with additional members. */
#include "view.h"

sqlite3_stmt *notes_view_prepare(struct notes_view *view, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(view->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        (void)notes_index_fail(view->notebook->index, view->call, view->db);
        return NULL;
    }
    return statement;
}

static int write_tags(struct notes_view *view, struct buf *item, int64_t note)
{
    sqlite3_stmt *tags =
        notes_view_prepare(view, "SELECT tag FROM tags WHERE note=?1 ORDER BY rowid");
    if (tags == NULL) {
        return NG_EINTERNAL;
    }
    bool any = false;
    (void)sqlite3_bind_int64(tags, 1, note);
    while (sqlite3_step(tags) == SQLITE_ROW) {
        if (!any) {
            notes_json_member_begin(item, "tags", '[');
        }
        any = true;
        notes_json_text(item, notes_column_text(tags, 0));
    }
    if (any) {
        notes_json_end(item, ']');
    }
    (void)sqlite3_finalize(tags);
    return NG_OK;
}

static int write_row(struct notes_view *view, sqlite3_stmt *row, int64_t note,
                     const struct notes_view_extra *extras, size_t count)
{
    struct buf *item = notes_answer_item(view->answer);
    notes_json_begin(item, '{');
    for (size_t i = 0; i < count; i++) {
        if (extras[i].text.data == NULL) {
            continue;
        }
        notes_json_name_c(item, extras[i].name);
        if (extras[i].json) {
            notes_json_raw(item, extras[i].text);
        } else {
            notes_json_text(item, extras[i].text);
        }
    }
    notes_json_member(item, "path", notes_column_text(row, 0));
    if (sqlite3_column_type(row, 1) != SQLITE_NULL) {
        notes_json_member(item, "title", notes_column_text(row, 1));
    }
    int rc = write_tags(view, item, note);
    notes_json_member_time(item, "created", sqlite3_column_int64(row, 2));
    notes_json_member_time(item, "modified", sqlite3_column_int64(row, 3));
    notes_json_end(item, '}');
    (void)notes_answer_add(view->answer);
    return rc;
}

int notes_view_add(struct notes_view *view, int64_t note, const struct notes_view_extra *extras,
                   size_t count)
{
    int64_t number = view->total++;
    if (number < view->answer->offset || !notes_answer_more(view->answer)) {
        return NG_OK;
    }
    sqlite3_stmt *row = notes_view_prepare(
        view, "SELECT path, title, created, modified FROM notes WHERE id=?1");
    if (row == NULL) {
        return NG_EINTERNAL;
    }
    (void)sqlite3_bind_int64(row, 1, note);
    int rc = sqlite3_step(row) == SQLITE_ROW
                 ? write_row(view, row, note, extras, count)
                 : notes_index_fail(view->notebook->index, view->call, view->db);
    (void)sqlite3_finalize(row);
    return rc;
}

int notes_view_add_all(struct notes_view *view, sqlite3_stmt *statement)
{
    int rc = NG_OK;
    int step = SQLITE_DONE;
    while (rc == NG_OK && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct notes_view_extra group = {.name = "group", .json = true};
        if (sqlite3_column_count(statement) > 1) {
            if (sqlite3_column_type(statement, 1) != SQLITE_NULL) {
                group.text = notes_column_text(statement, 1);
            } else {
                group.text = ng_str_of("null");
            }
        }
        rc = notes_view_add(view, sqlite3_column_int64(statement, 0), &group, 1);
    }
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = notes_index_fail(view->notebook->index, view->call, view->db);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}
