/* SPDX-License-Identifier: MIT */
/* places.c - the bytes of the tokens of the full-text index, for excerpts.
 *
 * FTS5 knows the number of a token, not its byte. So while a document is indexed, one token for
 * each MARK_BYTES is noted with its byte, and an excerpt reads its text from the mark before
 * the hit on, whatever the size of the text. */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "places.h"

#define MARK_BYTES 2048
/* Of one document. */
#define MARKS_MAX ((size_t)1 << 24)
#define CHAR_BYTES_MAX 4

/* ---- writing ---- */

void marks_column(struct marks *marks)
{
    if (marks != NULL) {
        marks->column++;
        marks->token = 0;
        marks->next = MARK_BYTES;
    }
}

int marks_token(struct marks *marks, size_t from)
{
    if (marks == NULL) {
        return SQLITE_OK;
    }
    if (from >= marks->next) {
        if (array_reserve((void **)&marks->list, &marks->cap, marks->count + 1,
                          sizeof(*marks->list), MARKS_MAX) != NG_OK) {
            return SQLITE_NOMEM;
        }
        marks->list[marks->count++] = (struct mark){marks->column, marks->token, from};
        marks->next = from + MARK_BYTES;
    }
    marks->token++;
    return SQLITE_OK;
}

int marks_remove(struct conn *conn, int64_t collection, int64_t doc)
{
    struct sql sql = {0};
    sql_printf(&sql, "DELETE FROM places_%" PRId64 " WHERE doc=", collection);
    sql_bind_int(&sql, doc);
    return sql_run(conn, &sql);
}

int marks_store(struct conn *conn, int64_t collection, int64_t doc, const struct marks *marks)
{
    int rc = NG_OK;
    for (size_t i = 0; i < marks->count && rc == NG_OK; i++) {
        const struct mark *mark = &marks->list[i];
        struct sql sql = {0};
        sql_printf(&sql, "INSERT INTO places_%" PRId64 " VALUES(", collection);
        sql_bind_int(&sql, doc);
        sql_add(&sql, ",");
        sql_bind_int(&sql, mark->column);
        sql_add(&sql, ",");
        sql_bind_int(&sql, mark->token);
        sql_add(&sql, ",");
        sql_bind_int(&sql, (int64_t)mark->at);
        sql_add(&sql, ")");
        rc = sql_run(conn, &sql);
    }
    return rc;
}

/* ---- reading ---- */

/* The last mark up to the place; without one, *ret stays. */
static int find_mark(const struct excerpts *excerpts, int64_t doc, const struct place *place,
                     struct mark *ret)
{
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    sql_printf(&sql,
               "SELECT token,at FROM places_%" PRId64 " WHERE doc=", excerpts->collection);
    sql_bind_int(&sql, doc);
    sql_add(&sql, " AND col=");
    sql_bind_int(&sql, place->column);
    sql_add(&sql, " AND token<=");
    sql_bind_int(&sql, place->token);
    sql_add(&sql, " ORDER BY token DESC LIMIT 1");
    int step = sql_prepare(excerpts->conn, &sql, &stmt);
    if (step == SQLITE_OK) {
        step = sqlite3_step(stmt);
    }
    if (step == SQLITE_ROW) {
        ret->token = sqlite3_column_int(stmt, 0);
        ret->at = (size_t)sqlite3_column_int64(stmt, 1);
    }
    (void)sql_release(excerpts->conn, stmt);
    sql_done(&sql);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SQLITE_OK : step;
}

/* Opens the text of the column as it was indexed: a change meanwhile moves no place. */
static int open_text(struct excerpts *excerpts, int64_t doc, int column)
{
    char table[64];
    char name[16];
    if (excerpts->blob != NULL && excerpts->column == column) {
        return sqlite3_blob_reopen(excerpts->blob, doc);
    }
    (void)snprintf(table, sizeof(table), "search_%" PRId64 "_content", excerpts->collection);
    (void)snprintf(name, sizeof(name), "c%d", column);
    (void)sqlite3_blob_close(excerpts->blob);
    excerpts->blob = NULL;
    excerpts->column = column;
    return sqlite3_blob_open(excerpts->conn->sql, "main", table, name, doc, 0, &excerpts->blob);
}

/* Reads the text around the mark, enough for an excerpt of each token up to the next mark.
 * *ret_from: where it begins. */
static int read_window(struct excerpts *excerpts, const struct mark *mark, size_t *ret_from)
{
    size_t size = (size_t)sqlite3_blob_bytes(excerpts->blob);
    size_t around = ((size_t)excerpts->chars + 1) * CHAR_BYTES_MAX;
    size_t at = size_min(mark->at, size);
    *ret_from = at - size_min(at, around);
    size_t len = size_min(size - *ret_from, 2 * around + MARK_BYTES);
    struct bytes *window = &excerpts->window;
    if (bytes_set(window, str_of(NULL, 0)) != NG_OK || bytes_reserve(window, len) != NG_OK) {
        return SQLITE_NOMEM;
    }
    window->len = len;
    return sqlite3_blob_read(excerpts->blob, window->data, (int)len, (int)*ret_from);
}

int excerpt_at(struct excerpts *excerpts, int64_t doc, const struct place *place)
{
    struct mark mark = {.at = 0};
    size_t from = 0;
    size_t hit = 0;
    excerpts->excerpt.len = 0;
    if (place->column < 0) {
        return SQLITE_OK;
    }
    int rc = open_text(excerpts, doc, place->column);
    if (rc == SQLITE_OK && sqlite3_blob_bytes(excerpts->blob) > MARK_BYTES) {
        rc = find_mark(excerpts, doc, place, &mark);
    }
    if (rc == SQLITE_OK) {
        rc = read_window(excerpts, &mark, &from);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    struct ng_str window = bytes_str(&excerpts->window);
    size_t start = size_min(mark.at - from, window.len);
    if (tokens_skip(str_of(window.data + start, window.len - start),
                    (size_t)(place->token - mark.token), &hit) != NG_OK) {
        return SQLITE_NOMEM;
    }
    if (hit != SIZE_MAX &&
        excerpt_cut(window, start + hit, excerpts->chars, &excerpts->excerpt) != NG_OK) {
        return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

void excerpts_done(struct excerpts *excerpts)
{
    (void)sqlite3_blob_close(excerpts->blob);
    bytes_done(&excerpts->window);
    bytes_done(&excerpts->excerpt);
}
