/* SPDX-License-Identifier: MIT */
/* search_text.c - text search: a substring of title or body, whatever its case; ranked title,
 * heading, body, then newest. Notes without the whole text follow by how many of its words they
 * have, in any form. */
#include <string.h>

#include "search.h"

#define SQL_MAX ((size_t)2 * 1024 * 1024)
#define WORDS_MAX                                                                              \
    100 /* words of a notebook that contain the text, for the lookup of their notes */

/* ?1 is the folded text, ?2 its trigrams, ?3 the words that contain it; the filter's parameters
 * follow. */
#define FOUND                                                                                  \
    "SELECT n.id, CASE WHEN notes_has(n.heads,?1) THEN 0 WHEN EXISTS(SELECT 1 FROM "           \
    "headings "                                                                                \
    "h WHERE h.note=n.id AND notes_has(h.fold,?1)) THEN 1 ELSE 2 END rank FROM "
#define BODY "(SELECT b.folded FROM bodies b WHERE b.note=n.id)"
#define CONTAINED "(notes_has(n.heads,?1) OR notes_has(" BODY ",?1)) AND "
#define ORDER " ORDER BY rank, n.modified DESC, n.path"

/* Words that are too long are not in vocab: their notes are searched directly. */
static const char by_words[] =
    "WITH found(id, sure) AS (SELECT rowid, 1 FROM terms WHERE terms MATCH ?3 UNION ALL "
    "SELECT note, 0 FROM long_words WHERE note IN (SELECT rowid FROM grams WHERE grams MATCH "
    "?2) AND note NOT IN (SELECT rowid FROM terms WHERE terms MATCH ?3)) " FOUND
    "found f JOIN notes n ON n.id=f.id WHERE (f.sure OR notes_has(" BODY ",?1)) AND ";
static const char by_grams[] =
    FOUND "grams g JOIN notes n ON n.id=g.rowid WHERE grams MATCH ?2 AND ?3 IS NULL "
          "AND " CONTAINED;
static const char by_scan[] = FOUND "notes n WHERE ?2 IS NULL AND ?3 IS NULL AND " CONTAINED;
static const char all_notes[] =
    "SELECT n.id, 0 rank FROM notes n WHERE ?1='' AND ?2 IS NULL AND ?3 IS NULL AND ";

/* ---- words that contain the text ---- */

/* One word, of ASCII: then the full-text index splits it as we do, in any version of Unicode.
 */
static bool is_word(struct ng_str text)
{
    struct ng_str word;
    size_t letters = 0;
    size_t at = 0;
    return notes_is_ascii(text) && notes_word_next(text, &at, &word, &letters) &&
           word.len == text.len && letters <= NOTES_FUZZY_LETTERS_MAX;
}

/* The MATCH expression for them; {NULL, 0}: there are too many. An SQLite code. */
static int find_words(struct notes_search *search, struct ng_str text, struct ng_str grams,
                      struct ng_str *ret_match)
{
    sqlite3_stmt *statement = NULL;
    struct buf match;
    size_t count = 0;
    *ret_match = str_make(NULL, 0);
    int rc = sqlite3_prepare_v2(search->db,
                                "SELECT v.word FROM vocab_grams g JOIN vocab v ON v.id=g.rowid "
                                "WHERE vocab_grams MATCH ?1 AND notes_has(v.word,?2)",
                                -1, &statement, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    buf_init(&match, SQL_MAX);
    (void)notes_bind_text(statement, 1, grams);
    (void)notes_bind_text(statement, 2, text);
    while (count <= WORDS_MAX && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        notes_add_if(&match, count++ > 0, " OR ");
        notes_add_quoted(&match, notes_column_text(statement, 0), '"');
    }
    (void)sqlite3_finalize(statement);
    if (count == 0) {
        buf_add_c(&match, "\"\""); /* matches nothing */
    }
    if (count <= WORDS_MAX && rc == SQLITE_DONE && match.rc == NG_OK) {
        *ret_match = arena_copy(search->arena, notes_buf_str(&match));
    }
    rc = match.rc == NG_OK ? notes_done(rc) : SQLITE_NOMEM;
    buf_done(&match);
    return rc;
}

/* ---- */

/* ---- any of several words ---- */

/* Stop words: they do not narrow a search. */
static bool is_common(struct ng_str word)
{
    static const char *const common[] = {
        "a",   "about", "an",   "and",  "are",   "as",    "at",  "be",    "by",   "can",
        "do",  "does",  "for",  "from", "how",   "i",     "in",  "is",    "it",   "its",
        "my",  "of",    "on",   "or",   "our",   "that",  "the", "there", "this", "to",
        "was", "we",    "what", "when", "where", "which", "who", "why",   "with", "you",
    };
    for (size_t i = 0; i < NG_COUNT(common); i++) {
        if (str_is(word, common[i])) {
            return true;
        }
    }
    return false;
}

static bool ends_with(struct ng_str word, const char *suffix, size_t least)
{
    size_t len = strlen(suffix);
    return word.len >= len + least && memcmp(word.data + word.len - len, suffix, len) == 0;
}

/* A word of a query without the ending that other words with it rarely have: it is searched as
 * a part of words, beside the forms with its stem. */
static struct ng_str word_begin(struct ng_str word)
{
    struct ng_str begin = word;
    if (ends_with(word, "ing", 3) || (ends_with(word, "ed", 3) && !ends_with(word, "eed", 0))) {
        begin.len -= (size_t)2 + (word.data[word.len - 1] == 'g');
        bool vowel = false;
        for (size_t i = 0; i < begin.len; i++) {
            vowel = vowel || memchr("aeiouy", begin.data[i], 6) != NULL;
        }
        if (!vowel) {
            return word;
        }
        if (begin.len > 3 && begin.data[begin.len - 1] == begin.data[begin.len - 2]) {
            begin.len--;
        }
    } else if (ends_with(word, "s", 3) && !ends_with(word, "ss", 0)) {
        begin.len--;
    }
    return begin;
}

/* A word without the punctuation around it. */
static struct ng_str bare(struct ng_str piece)
{
    static const char signs[] = ".,;:!?()[]\"'";
    while (piece.len > 0 && memchr(signs, piece.data[0], sizeof(signs) - 1) != NULL) {
        piece.data++;
        piece.len--;
    }
    while (piece.len > 0 &&
           memchr(signs, piece.data[piece.len - 1], sizeof(signs) - 1) != NULL) {
        piece.len--;
    }
    return piece;
}

/* The search words of a query; 0: it has only stop words. *ret_pieces: words with them. */
static size_t split(struct notes_search *search, size_t *ret_pieces)
{
    struct ng_str text = search->folded;
    size_t kept = 0;
    *ret_pieces = 0;
    for (size_t at = 0; at < text.len && kept < NOTES_FUZZY_WORDS_MAX;) {
        size_t from = at;
        while (at < text.len && (unsigned char)text.data[at] > ' ') {
            at++;
        }
        *ret_pieces += at > from;
        struct ng_str word = bare(str_make(text.data + from, at - from));
        if (word.len > 0 && !is_common(word)) {
            search->written[kept] = word;
            search->words[kept++] = word_begin(word);
        }
        at++;
    }
    return kept;
}

/* A query of one word is searched as a whole, if the notebook has no other form of it. */
static int find_search_words(struct notes_search *search)
{
    size_t pieces = 0;
    search->word_count = split(search, &pieces);
    if (pieces <= 1) {
        search->words[0] = search->written[0];
    }
    int rc = notes_search_forms(search);
    if (pieces <= 1 && (search->word_count == 0 || search->forms[0].count == 0)) {
        search->word_count = 0;
    }
    return rc;
}

/* true: it has none. */
static bool add_grams(struct notes_search *search, struct buf *match, struct ng_str word)
{
    struct ng_str grams = notes_index_grams(search->arena, word);
    notes_add_if(match, match->len > 0, " OR ");
    buf_add_char(match, '(');
    buf_add_str(match, grams);
    buf_add_char(match, ')');
    return grams.len == 0;
}

/* The MATCH expression for notes that may have any of the words. {NULL, 0}: a word is too short
 * for the index, so all notes are checked. */
static int find_grams(struct notes_search *search)
{
    struct buf match;
    bool all = false;
    buf_init(&match, SQL_MAX);
    for (size_t i = 0; i < search->word_count; i++) {
        all = add_grams(search, &match, search->words[i]) || all;
        for (size_t k = 0; k < search->forms[i].count; k++) {
            all = add_grams(search, &match, search->forms[i].words[k]) || all;
        }
    }
    search->grams = str_make(NULL, 0);
    if (!all && match.rc == NG_OK) {
        search->grams = arena_copy(search->arena, notes_buf_str(&match));
    }
    int rc = match.rc == NG_OK && !search->arena->failed ? SQLITE_OK : SQLITE_NOMEM;
    buf_done(&match);
    return rc;
}

/* Does the note have the word, or another form of it as a word? */
static void add_word(const struct notes_search *search, size_t i, struct buf *sql)
{
    const struct notes_forms *forms = &search->forms[i];
    struct buf match;
    buf_init(&match, SQL_MAX);
    buf_add_c(sql, "(notes_has(n.heads,");
    notes_add_quoted(sql, search->words[i], '\'');
    buf_add_c(sql, ") OR notes_has(" BODY ",");
    notes_add_quoted(sql, search->words[i], '\'');
    buf_add_c(sql, ")");
    for (size_t k = 0; k < forms->count; k++) {
        notes_add_if(&match, k > 0, " OR ");
        notes_add_quoted(&match, forms->words[k], '"');
    }
    if (forms->count > 0) {
        buf_add_c(sql, " OR n.id IN (SELECT rowid FROM terms WHERE terms MATCH ");
        notes_add_quoted(sql, notes_buf_str(&match), '\'');
        buf_add_c(sql, ")");
    }
    buf_add_c(sql, ")");
    if (match.rc != NG_OK) {
        sql->rc = match.rc;
    }
    buf_done(&match);
}

/* One statement for any of the words. */
static void write_any(struct notes_search *search, struct buf *sql)
{
    struct buf has;
    buf_init(&has, SQL_MAX);
    for (size_t i = 0; i < search->word_count; i++) {
        notes_add_if(&has, i > 0, "+");
        add_word(search, i, &has);
    }
    buf_add_c(sql, "SELECT id, CASE WHEN whole<3 THEN whole-1000 ELSE -words END rank FROM ("
                   "SELECT n.id id, n.modified modified, n.path path, CASE WHEN "
                   "notes_has(n.heads,?1) THEN 0 WHEN EXISTS(SELECT 1 FROM headings h "
                   "WHERE h.note=n.id AND notes_has(h.fold,?1)) THEN 1 WHEN notes_has(" BODY
                   ",?1) THEN 2 ELSE 3 END whole, ");
    buf_add_str(sql, notes_buf_str(&has));
    if (search->grams.len == 0) {
        buf_add_c(sql, " words FROM notes n WHERE ?2 IS NULL AND ?3 IS NULL AND ");
    } else {
        buf_add_c(sql, " words FROM grams g JOIN notes n ON n.id=g.rowid WHERE grams "
                       "MATCH ?2 AND ?3 IS NULL AND ");
    }
    buf_add_str(sql, search->filter->sql);
    buf_add_c(sql, ") WHERE whole<3 OR words>0 ORDER BY rank, modified DESC, path");
    if (has.rc != NG_OK) {
        sql->rc = NG_EINTERNAL;
    }
    buf_done(&has);
}

static bool is_searchable(struct ng_str text)
{
    return memchr(text.data, '\0', text.len) == NULL;
}

int notes_search_select(struct notes_search *search, struct ng_str text, struct buf *sql,
                        struct ng_str ret_params[3])
{
    const char *select = by_scan;
    struct ng_str grams = str_make(NULL, 0);
    struct ng_str words = str_make(NULL, 0);
    int rc = SQLITE_OK;
    if (is_searchable(text)) {
        grams = notes_index_grams(search->arena, text);
    }
    if (grams.len > 0) {
        select = by_grams;
    }
    if (grams.len > 0 && is_word(text)) {
        rc = find_words(search, text, grams, &words);
    }
    if (words.len > 0) {
        select = by_words;
    }
    if (text.len == 0) {
        select = all_notes;
    }
    buf_add_c(sql, select);
    ret_params[0] = text;
    ret_params[1] = grams;
    ret_params[2] = words;
    return rc;
}

static int search_statement(struct notes_search *search)
{
    struct ng_str params[3] = {search->folded, search->grams, {NULL, 0}};
    struct buf sql;
    int rc = SQLITE_OK;
    buf_init(&sql, SQL_MAX);
    if (search->word_count > 0) {
        write_any(search, &sql);
    } else {
        rc = notes_search_select(search, search->folded, &sql, params);
        buf_add_str(&sql, search->filter->sql);
        buf_add_c(&sql, ORDER);
    }
    if (rc == SQLITE_OK) {
        rc = notes_search_rows(search, &sql, params);
    }
    buf_done(&sql);
    return rc;
}

int notes_search_text(struct notes_search *search)
{
    bool searchable = is_searchable(search->folded);
    int rc = SQLITE_OK;
    search->word_count = 0;
    if (searchable) {
        rc = find_search_words(search);
    }
    if (rc == SQLITE_OK && search->word_count > 0) {
        rc = find_grams(search);
    }
    if (rc != SQLITE_OK || !searchable || !notes_search_has_board(search)) {
        return rc == SQLITE_OK ? search_statement(search) : rc;
    }
    if (search->folded.len == 0) {
        return notes_rank_all(search);
    }
    if (search->word_count > 0) {
        return notes_rank_words(search);
    }
    return notes_rank_text(search);
}
