/* SPDX-License-Identifier: MIT */
/* left_out.c - notes that filters leave out because their front matter does not parse. */
#include "left_out.h"

#include "index/index.h"

#define NOTES_BYTES_MAX ((size_t)65536)
#define REASON                                                                                 \
    "Their frontmatter does not parse or cannot be read, so that filters do not see its "      \
    "fields."

int notes_left_out_add(struct notes_left_out *left, sqlite3 *db, int64_t note)
{
    sqlite3_stmt *row = NULL;
    if (!left->begun) {
        buf_init(&left->notes, NOTES_BYTES_MAX);
        left->begun = true;
    }
    if (left->count++ >= NOTES_LEFT_OUT_SHOWN) {
        return SQLITE_OK;
    }
    int rc = sqlite3_prepare_v2(db, "SELECT path, front_error FROM notes WHERE id=?1", -1, &row,
                                NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_bind_int64(row, 1, note);
        rc = sqlite3_step(row);
    }
    if (rc == SQLITE_ROW) {
        size_t len = left->notes.len;
        notes_json_begin(&left->notes, '{');
        notes_json_member(&left->notes, "path", notes_column_text(row, 0));
        notes_json_member(&left->notes, "frontmatterError", notes_column_text(row, 1));
        notes_json_end(&left->notes, '}');
        if (left->notes.len - len > NOTES_LEFT_OUT_ITEM_MAX) {
            buf_cut(&left->notes, len);
        }
    }
    (void)sqlite3_finalize(row);
    return notes_done(rc);
}

int notes_left_out_rows(struct notes_left_out *left, sqlite3 *db, sqlite3_stmt *rows)
{
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = notes_left_out_add(left, db, sqlite3_column_int64(rows, 0));
    }
    return notes_done(rc);
}

void notes_left_out_reserve(const struct notes_left_out *left, struct notes_answer *answer)
{
    if (left->count > 0) {
        notes_answer_reserve(answer, left->notes.len + sizeof(REASON) + 100);
    }
}

void notes_left_out_end(struct notes_left_out *left, struct notes_answer *answer)
{
    struct buf *json = &answer->json;
    if (left->count > 0) {
        notes_json_member_begin(json, "leftOut", '{');
        notes_json_member_int(json, "count", left->count);
        notes_json_member(json, "reason", ng_str_of(REASON));
        notes_json_name_c(json, "notes");
        buf_add_char(json, '[');
        buf_add_str(json, notes_buf_str(&left->notes));
        buf_add_char(json, ']');
        notes_json_end(json, '}');
        if (left->notes.rc != NG_OK) {
            json->rc = left->notes.rc;
        }
    }
    if (left->begun) {
        buf_done(&left->notes);
    }
}
