/* SPDX-License-Identifier: MIT */
/* search_text.c - text search: a substring of title or body, whatever its case; ranked title,
 * heading, body, then newest. */
#include <string.h>

#include "fuzzy_word.h"
#include "search.h"

#define SQL_MAX ((size_t)2 * 1024 * 1024)
#define WORDS_MAX 100 /* of a notebook that hold the text, to look their notes up by them */

/* ?1 is the folded text, ?2 its trigrams, ?3 the words that hold it; the filter's parameters
 * follow. */
#define FOUND                                                                                  \
    "SELECT n.id, CASE WHEN on_has(n.title_fold,?1) THEN 0 WHEN EXISTS(SELECT 1 FROM "         \
    "headings "                                                                                \
    "h WHERE h.note=n.id AND on_has(h.fold,?1)) THEN 1 ELSE 2 END rank FROM "
#define BODY "(SELECT b.folded FROM bodies b WHERE b.note=n.id)"
#define CONTAINED "(on_has(n.title_fold,?1) OR on_has(" BODY ",?1)) AND "
#define ORDER " ORDER BY rank, n.modified DESC, n.path"

/* Words that are too long are in no list of words: their notes are looked at. */
static const char by_words[] =
    "WITH found(id, sure) AS (SELECT rowid, 1 FROM terms WHERE terms MATCH ?3 UNION ALL "
    "SELECT note, 0 FROM long_words WHERE note IN (SELECT rowid FROM grams WHERE grams MATCH "
    "?2) AND note NOT IN (SELECT rowid FROM terms WHERE terms MATCH ?3)) " FOUND
    "found f JOIN notes n ON n.id=f.id WHERE (f.sure OR on_has(" BODY ",?1)) AND ";
static const char by_grams[] =
    FOUND "grams g JOIN notes n ON n.id=g.rowid WHERE grams MATCH ?2 AND ?3 IS NULL "
          "AND " CONTAINED;
static const char by_scan[] = FOUND "notes n WHERE ?2 IS NULL AND ?3 IS NULL AND " CONTAINED;
static const char all_notes[] =
    "SELECT n.id, 0 rank FROM notes n WHERE ?1='' AND ?2 IS NULL AND ?3 IS NULL AND ";

/* ---- the words that hold the text ---- */

/* One word, of ASCII: the full-text index cuts it as we do, whatever Unicode it knows. */
static bool is_word(struct ng_str text)
{
    struct ng_str word;
    size_t letters = 0;
    size_t at = 0;
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] >= 0x80) {
            return false;
        }
    }
    return on_word_next(text, &at, &word, &letters) && word.len == text.len &&
           letters <= ON_FUZZY_LETTERS_MAX;
}

/* The MATCH expression for them; {NULL, 0}: there are too many. An SQLite code. */
static int find_words(struct on_search *search, struct ng_str grams, struct ng_str *ret_match)
{
    sqlite3_stmt *statement = NULL;
    struct ng_str text = search->folded;
    struct on_buf match;
    size_t count = 0;
    *ret_match = on_str(NULL, 0);
    int rc = sqlite3_prepare_v2(search->db,
                                "SELECT v.word FROM vocab_grams g JOIN vocab v ON v.id=g.rowid "
                                "WHERE vocab_grams MATCH ?1 AND on_has(v.word,?2)",
                                -1, &statement, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    on_buf_init(&match, SQL_MAX);
    (void)sqlite3_bind_text64(statement, 1, grams.data, grams.len, SQLITE_STATIC, SQLITE_UTF8);
    (void)sqlite3_bind_text64(statement, 2, text.data, text.len, SQLITE_STATIC, SQLITE_UTF8);
    while (count <= WORDS_MAX && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        on_buf_add_c(&match, count++ > 0 ? " OR " : "");
        on_fuzzy_quote(&match, on_column(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    if (count == 0) {
        on_buf_add_c(&match, "\"\""); /* matches nothing */
    }
    if (count <= WORDS_MAX && rc == SQLITE_DONE && match.rc == NG_OK) {
        *ret_match = on_arena_copy(search->arena, on_buf_str(&match));
    }
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    rc = rc == SQLITE_OK && match.rc != NG_OK ? SQLITE_NOMEM : rc;
    on_buf_done(&match);
    return rc;
}

/* ---- */

static int bind(sqlite3_stmt *statement, int number, struct ng_str text)
{
    return sqlite3_bind_text64(statement, number, text.data, text.len, SQLITE_STATIC,
                               SQLITE_UTF8);
}

static int take_rows(struct on_search *search, sqlite3_stmt *statement, struct ng_str grams,
                     struct ng_str words)
{
    int next = 0;
    int rc = bind(statement, 1, search->folded);
    if (rc == SQLITE_OK && grams.len > 0) {
        rc = bind(statement, 2, grams);
    }
    if (rc == SQLITE_OK && words.len > 0) {
        rc = bind(statement, 3, words);
    }
    rc = rc == SQLITE_OK ? on_filter_bind(search->filter, statement, 4, &next) : rc;
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
    struct ng_str words = on_str(NULL, 0);
    struct on_buf sql;
    sqlite3_stmt *statement = NULL;
    int rc = grams.len > 0 && is_word(text) ? find_words(search, grams, &words) : SQLITE_OK;
    if (rc != SQLITE_OK) {
        return rc;
    }
    on_buf_init(&sql, SQL_MAX);
    on_buf_add_c(&sql, text.len == 0   ? all_notes
                       : words.len > 0 ? by_words
                       : grams.len > 0 ? by_grams
                                       : by_scan);
    on_buf_add(&sql, search->filter->sql);
    on_buf_add_c(&sql, ORDER);
    on_buf_add_char(&sql, '\0');
    rc = sql.rc != NG_OK ? SQLITE_NOMEM
                         : sqlite3_prepare_v2(search->db, sql.data, -1, &statement, NULL);
    rc = rc == SQLITE_OK ? take_rows(search, statement, grams, words) : rc;
    (void)sqlite3_finalize(statement);
    on_buf_done(&sql);
    return rc;
}
