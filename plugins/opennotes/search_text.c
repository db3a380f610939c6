/* SPDX-License-Identifier: MIT */
/* search_text.c - text search: a substring of title or body, whatever its case; ranked title,
 * heading, body, then newest. */
#include <string.h>

#include "search.h"

#define SQL_MAX ((size_t)2 * 1024 * 1024)

/* ?1 is the folded text, ?2 its trigrams; the filter's parameters follow. */
#define FOUND                                                                                  \
    "SELECT n.id, CASE WHEN on_has(n.title_fold,?1) THEN 0 WHEN EXISTS(SELECT 1 FROM "         \
    "headings "                                                                                \
    "h WHERE h.note=n.id AND on_has(h.fold,?1)) THEN 1 ELSE 2 END rank FROM "
#define CONTAINED "(on_has(n.title_fold,?1) OR on_has(b.folded,?1)) AND "
#define ORDER " ORDER BY rank, n.modified DESC, n.path"

static const char by_grams[] = FOUND "grams g JOIN notes n ON n.id=g.rowid JOIN bodies b ON "
                                     "b.note=n.id WHERE grams MATCH ?2 AND " CONTAINED;
static const char by_scan[] =
    FOUND "notes n JOIN bodies b ON b.note=n.id WHERE ?2 IS NULL AND " CONTAINED;
static const char all_notes[] =
    "SELECT n.id, 0 rank FROM notes n WHERE ?1='' AND ?2 IS NULL AND ";

static int take_rows(struct on_search *search, sqlite3_stmt *statement, struct ng_str grams)
{
    struct ng_str text = search->folded;
    int next = 0;
    int rc = sqlite3_bind_text64(statement, 1, text.data, text.len, SQLITE_STATIC, SQLITE_UTF8);
    if (rc == SQLITE_OK && grams.len > 0) {
        rc = sqlite3_bind_text64(statement, 2, grams.data, grams.len, SQLITE_STATIC,
                                 SQLITE_UTF8);
    }
    rc = rc == SQLITE_OK ? on_filter_bind(search->filter, statement, 3, &next) : rc;
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = on_search_take(search, sqlite3_column_int64(statement, 0));
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int on_search_text(struct on_search *search)
{
    struct ng_str text = search->folded;
    bool nul = text.len > 0 && memchr(text.data, '\0', text.len) != NULL;
    struct ng_str grams = nul ? on_str(NULL, 0) : on_index_grams(search->arena, text);
    struct on_buf sql;
    sqlite3_stmt *statement = NULL;
    on_buf_init(&sql, SQL_MAX);
    on_buf_add_c(&sql, text.len == 0 ? all_notes : grams.len > 0 ? by_grams : by_scan);
    on_buf_add(&sql, search->filter->sql);
    on_buf_add_c(&sql, ORDER);
    on_buf_add_char(&sql, '\0');
    int rc = sql.rc != NG_OK ? SQLITE_NOMEM
                             : sqlite3_prepare_v2(search->db, sql.data, -1, &statement, NULL);
    rc = rc == SQLITE_OK ? take_rows(search, statement, grams) : rc;
    (void)sqlite3_finalize(statement);
    on_buf_done(&sql);
    return rc;
}
