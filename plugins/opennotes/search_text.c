/* SPDX-License-Identifier: MIT */
/* search_text.c - text search: a substring of title or body, whatever its case; ranked title,
 * heading, body, then newest. */
#include <string.h>

#include "fuzzy.h"
#include "search.h"

#define GRAM 3         /* characters that the index looks up at least */
#define PHRASE_MAX 100 /* characters that it looks up at most; the rest is compared */

#define ORDER " ORDER BY rank, n.modified DESC, n.path"

/* Found by trigrams: the phrases for all, titles and headings are ?1, ?2, ?3. */
static const char by_grams[] =
    "SELECT n.id, CASE WHEN n.id IN(SELECT rowid FROM grams WHERE grams MATCH ?2) THEN 0 "
    "WHEN n.id IN(SELECT rowid FROM grams WHERE grams MATCH ?3) THEN 1 ELSE 2 END rank "
    "FROM grams g JOIN notes n ON n.id=g.rowid WHERE grams MATCH ?1 AND %.*s" ORDER;
/* Too short or too long for that: compared with every note, or with those that have its
 * beginning. ?1 is the text. */
#define RANK                                                                                   \
    "CASE WHEN instr(n.title_fold,?1)>0 THEN 0 WHEN instr(b.headings,?1)>0 THEN 1 ELSE 2 END " \
    "rank "
#define CONTAINED "(instr(b.folded,?1)>0 OR ifnull(instr(n.title_fold,?1)>0,0))"
static const char by_scan[] =
    "SELECT n.id, " RANK "FROM notes n JOIN bodies b ON b.note=n.id WHERE " CONTAINED
    " AND %.*s" ORDER;
static const char by_both[] =
    "SELECT n.id, " RANK "FROM grams g JOIN notes n ON n.id=g.rowid JOIN bodies b ON "
    "b.note=n.id WHERE grams MATCH ?2 AND " CONTAINED " AND %.*s" ORDER;
static const char all[] = "SELECT n.id, 0 rank FROM notes n WHERE %.*s" ORDER;

static size_t count_characters(struct ng_str text, size_t max, size_t *ret_bytes)
{
    size_t count = 0;
    size_t at = 0;
    while (at < text.len && count < max) {
        (void)on_utf8_next(text, &at);
        count++;
    }
    *ret_bytes = at;
    return count;
}

static int bind_phrase(sqlite3_stmt *statement, int parameter, const char *columns,
                       struct ng_str text)
{
    struct on_buf phrase;
    on_buf_init(&phrase, (size_t)ON_QUERY_MAX * 8);
    on_buf_add_c(&phrase, columns);
    on_fuzzy_quote(&phrase, text);
    int rc = phrase.rc != NG_OK
                 ? SQLITE_NOMEM
                 : sqlite3_bind_text64(statement, parameter, phrase.data, phrase.len,
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
    on_buf_done(&phrase);
    return rc;
}

static int take_rows(struct on_search *search, sqlite3_stmt *statement, int first)
{
    int next = 0;
    int rc = on_filter_bind(search->filter, statement, first, &next);
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = on_search_take(search, sqlite3_column_int64(statement, 0));
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int on_search_text(struct on_search *search)
{
    struct ng_str text = search->folded;
    size_t phrase_len = 0;
    size_t characters = count_characters(text, PHRASE_MAX, &phrase_len);
    bool nul = text.len > 0 && memchr(text.data, '\0', text.len) != NULL;
    bool grams = characters >= GRAM && !nul;
    bool whole = phrase_len == text.len;
    const char *format = text.len == 0 ? all : !grams ? by_scan : whole ? by_grams : by_both;
    struct on_buf sql;
    sqlite3_stmt *statement = NULL;
    on_buf_init(&sql, (size_t)2 * 1024 * 1024);
    /* The condition's parameters are numbered behind these. */
    const char *at = strstr(format, "%.*s");
    on_buf_add(&sql, on_str(format, (size_t)(at - format)));
    on_buf_add(&sql, search->filter->sql);
    on_buf_add_c(&sql, at + 4);
    on_buf_add_char(&sql, '\0');
    int rc = sql.rc != NG_OK ? SQLITE_NOMEM
                             : sqlite3_prepare_v2(search->db, sql.data, -1, &statement, NULL);
    int next = 1;
    struct ng_str phrase = on_str(text.data, phrase_len);
    if (rc == SQLITE_OK && format == by_grams) {
        rc = bind_phrase(statement, next++, "{title body} : ", phrase);
        rc = rc == SQLITE_OK ? bind_phrase(statement, next++, "title : ", phrase) : rc;
        rc = rc == SQLITE_OK ? bind_phrase(statement, next++, "headings : ", phrase) : rc;
    } else if (rc == SQLITE_OK && text.len > 0) {
        rc = sqlite3_bind_text64(statement, next++, text.data, text.len, SQLITE_STATIC,
                                 SQLITE_UTF8);
        if (rc == SQLITE_OK && format == by_both) {
            rc = bind_phrase(statement, next++, "{title body} : ", phrase);
        }
    }
    rc = rc == SQLITE_OK ? take_rows(search, statement, next) : rc;
    (void)sqlite3_finalize(statement);
    on_buf_done(&sql);
    return rc;
}
