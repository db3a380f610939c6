/* SPDX-License-Identifier: MIT */
/* summary.c - a note as lists show it. */
#include "summary.h"

#include "index/index.h"

int on_summary_open(struct on_summary *summary, sqlite3 *db)
{
    summary->note = NULL;
    summary->tags = NULL;
    int rc = sqlite3_prepare_v2(
        db, "SELECT path, title, created, modified, front_error FROM notes WHERE id = ?1", -1,
        &summary->note, NULL);
    return rc != SQLITE_OK
               ? rc
               : sqlite3_prepare_v2(db, "SELECT tag FROM tags WHERE note = ?1 ORDER BY rowid",
                                    -1, &summary->tags, NULL);
}

void on_summary_done(struct on_summary *summary)
{
    (void)sqlite3_finalize(summary->note);
    (void)sqlite3_finalize(summary->tags);
    summary->note = NULL;
    summary->tags = NULL;
}

static int write_tags(sqlite3_stmt *tags, int64_t id, struct on_buf *json)
{
    bool any = false;
    int rc = SQLITE_ROW;
    (void)sqlite3_bind_int64(tags, 1, id);
    while ((rc = sqlite3_step(tags)) == SQLITE_ROW) {
        if (!any) {
            on_json_name_c(json, "tags");
            on_json_begin(json, '[');
            any = true;
        }
        on_json_text(json, on_column(tags, 0));
    }
    if (any) {
        on_json_end(json, ']');
    }
    (void)sqlite3_reset(tags);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void write_time(struct on_buf *json, const char *name, int64_t time_ms)
{
    char text[ON_TIME_SIZE];
    on_time_write(time_ms, text);
    on_json_name_c(json, name);
    on_json_text(json, ng_str_of(text));
}

int on_summary_write(struct on_summary *summary, int64_t id, struct on_buf *json)
{
    sqlite3_stmt *note = summary->note;
    (void)sqlite3_bind_int64(note, 1, id);
    int rc = sqlite3_step(note);
    if (rc == SQLITE_ROW) {
        on_json_name_c(json, "path");
        on_json_text(json, on_column(note, 0));
        if (sqlite3_column_type(note, 1) != SQLITE_NULL) {
            on_json_name_c(json, "title");
            on_json_text(json, on_column(note, 1));
        }
        rc = write_tags(summary->tags, id, json);
        write_time(json, "created", sqlite3_column_int64(note, 2));
        write_time(json, "modified", sqlite3_column_int64(note, 3));
        if (sqlite3_column_type(note, 4) != SQLITE_NULL) {
            on_json_name_c(json, "frontmatterError");
            on_json_text(json, on_column(note, 4));
        }
    }
    (void)sqlite3_reset(note);
    return rc;
}
