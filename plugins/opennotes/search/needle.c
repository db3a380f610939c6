/* SPDX-License-Identifier: MIT */
/* needle.c - which notes have a text: read once with the full-text index, then kept. For a note
 * that changed later the text is looked for in this note alone. */
#include <stdlib.h>
#include <string.h>

#include "fuzzy_word.h"
#include "search.h"

#define SQL_MAX ((size_t)2 * 1024 * 1024)

static void free_needle(struct notes_needle *needle)
{
    if (needle != NULL) {
        free(needle->marks);
        free((void *)(uintptr_t)needle->text.data);
        free(needle);
    }
}

void notes_needles_drop(struct notes_board *board)
{
    while (board->needles != NULL) {
        struct notes_needle *needle = board->needles;
        board->needles = needle->next;
        free_needle(needle);
    }
    board->needle_count = 0;
}

/* ---- one note ---- */

/* The class of a note by one of the two statements that tell it. */
static int classify(struct notes_board *board, enum notes_board_statement number, size_t id,
                    struct ng_str text, uint8_t *ret_mark)
{
    sqlite3_stmt *statement = board->statements[number];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    (void)notes_bind_text(statement, 2, text);
    int rc = sqlite3_step(statement);
    *ret_mark = rc == SQLITE_ROW ? (uint8_t)sqlite3_column_int(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    return notes_done(rc);
}

static size_t count_words(const struct notes_search *search, size_t id)
{
    size_t count = 0;
    for (size_t i = 0; i < search->word_count; i++) {
        count += search->needles[i]->marks[id] != NOTES_MARK_NONE;
    }
    return count;
}

/* A heading may have the whole query and the text none of the words, because of Markdown signs
 * in a word. Such a note is found if it has the trigrams of a word. */
static int check_heading(struct notes_search *search, size_t id, uint8_t *inout_mark)
{
    sqlite3_stmt *statement = search->board->statements[NOTES_BOARD_GRAMS];
    if (count_words(search, id) > 0 || search->grams.len == 0) {
        return SQLITE_OK;
    }
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    (void)notes_bind_text(statement, 2, search->grams);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) {
        *inout_mark = NOTES_MARK_NONE;
    }
    (void)sqlite3_reset(statement);
    return notes_done(rc);
}

static int mark_whole(struct notes_search *search, struct notes_needle *needle, size_t id)
{
    uint8_t mark = NOTES_MARK_NONE;
    int rc = classify(search->board, NOTES_BOARD_WHOLE, id, needle->text, &mark);
    if (rc == SQLITE_OK && mark == NOTES_MARK_HEADING) {
        rc = check_heading(search, id, &mark);
    }
    needle->marks[id] = mark;
    return rc;
}

static int mark_word(struct notes_board *board, struct notes_needle *needle, size_t id)
{
    sqlite3_stmt *statement = board->statements[NOTES_BOARD_WORDS];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    int rc = sqlite3_step(statement);
    needle->marks[id] = 0;
    if (rc == SQLITE_ROW) {
        needle->marks[id] = notes_fuzzy_mark(needle->text, notes_column_text(statement, 0),
                                             notes_column_text(statement, 1));
    }
    (void)sqlite3_reset(statement);
    return notes_done(rc);
}

static bool has_stem(struct ng_str text, struct ng_str stem)
{
    char other[NOTES_STEM_BYTES_MAX];
    struct ng_str word;
    size_t letters = 0;
    for (size_t at = 0; notes_word_next(text, &at, &word, &letters);) {
        if (str_equal(notes_stem(word, other), stem)) {
            return true;
        }
    }
    return false;
}

static int mark_stem(struct notes_board *board, struct notes_needle *needle, size_t id)
{
    sqlite3_stmt *statement = board->statements[NOTES_BOARD_WORDS];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    int rc = sqlite3_step(statement);
    needle->marks[id] = NOTES_MARK_NONE;
    if (rc == SQLITE_ROW && (has_stem(notes_column_text(statement, 0), needle->text) ||
                             has_stem(notes_column_text(statement, 1), needle->text))) {
        needle->marks[id] = NOTES_MARK_BODY;
    }
    (void)sqlite3_reset(statement);
    return notes_done(rc);
}

static int mark_note(struct notes_search *search, struct notes_needle *needle, size_t id)
{
    if (id >= needle->size) {
        return SQLITE_OK; /* it was added and removed again */
    }
    switch (needle->kind) {
    case NOTES_NEEDLE_WHOLE:
        return mark_whole(search, needle, id);
    case NOTES_NEEDLE_WORD:
        return mark_word(search->board, needle, id);
    case NOTES_NEEDLE_STEM:
        return mark_stem(search->board, needle, id);
    default:
        return classify(search->board, NOTES_BOARD_TEXT, id, needle->text, &needle->marks[id]);
    }
}

/* ---- all notes ---- */

typedef int take_id(struct notes_search *search, struct notes_needle *needle, size_t id);

/* Passes the ids that a statement with one parameter finds. */
static int each_id(struct notes_search *search, struct notes_needle *needle, const char *sql,
                   struct ng_str param, take_id *take)
{
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(search->db, sql, -1, &rows, NULL);
    if (rc == SQLITE_OK) {
        rc = notes_bind_text(rows, 1, param);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(rows, 0);
        rc = SQLITE_OK;
        if (id >= 0 && (size_t)id < needle->size) {
            rc = take(search, needle, (size_t)id);
        }
    }
    (void)sqlite3_finalize(rows);
    return notes_done(rc);
}

static int take_body(struct notes_search *search, struct notes_needle *needle, size_t id)
{
    (void)search;
    needle->marks[id] = NOTES_MARK_BODY;
    return SQLITE_OK;
}

static int take_heading(struct notes_search *search, struct notes_needle *needle, size_t id)
{
    (void)search;
    if (needle->marks[id] == NOTES_MARK_BODY) {
        needle->marks[id] = NOTES_MARK_HEADING;
    }
    return SQLITE_OK;
}

static int take_title(struct notes_search *search, struct notes_needle *needle, size_t id)
{
    (void)search;
    needle->marks[id] = NOTES_MARK_TITLE;
    return SQLITE_OK;
}

#define BY_WORDS "SELECT rowid FROM terms WHERE terms MATCH ?1"
#define BY_HEADINGS "SELECT DISTINCT note FROM headings WHERE notes_has(fold,?1)"
#define BY_LONG_WORDS                                                                          \
    "SELECT note FROM long_words WHERE note IN (SELECT rowid FROM grams WHERE grams MATCH ?1)"

static int read_titles(struct notes_search *search, struct notes_needle *needle,
                       struct ng_str words)
{
    struct buf match;
    buf_init(&match, SQL_MAX);
    buf_add_c(&match, "title : (");
    buf_add_str(&match, words);
    buf_add_char(&match, ')');
    int rc = match.rc == NG_OK ? SQLITE_OK : SQLITE_NOMEM;
    if (rc == SQLITE_OK) {
        rc = each_id(search, needle, BY_WORDS, notes_buf_str(&match), take_title);
    }
    buf_done(&match);
    return rc;
}

/* Few notes are read; of many the full-text index and the headings tell the classes. */
static int read_classes(struct notes_search *search, struct notes_needle *needle,
                        struct ng_str words)
{
    size_t count = 0;
    int rc = SQLITE_OK;
    for (size_t id = 0; id < needle->size; id++) {
        count += needle->marks[id] != NOTES_MARK_NONE;
    }
    if (count > NOTES_BOARD_READ_MAX) {
        rc = each_id(search, needle, BY_HEADINGS, needle->text, take_heading);
        if (rc == SQLITE_OK) {
            rc = read_titles(search, needle, words);
        }
        return rc;
    }
    for (size_t id = 0; id < needle->size && rc == SQLITE_OK; id++) {
        if (needle->marks[id] != NOTES_MARK_NONE) {
            rc = mark_note(search, needle, id);
        }
    }
    return rc;
}

/* The notes that have any of the words, which are all words with the text in them, except for
 * the longest. */
static int read_words(struct notes_search *search, struct notes_needle *needle,
                      struct ng_str grams, struct ng_str words)
{
    int rc = each_id(search, needle, BY_WORDS, words, take_body);
    if (rc == SQLITE_OK) {
        rc = read_classes(search, needle, words);
    }
    if (rc == SQLITE_OK) {
        rc = each_id(search, needle, BY_LONG_WORDS, grams, mark_note);
    }
    return rc;
}

static int read_rows(struct notes_search *search, struct notes_needle *needle,
                     const struct buf *sql, const struct ng_str params[3])
{
    sqlite3_stmt *rows = NULL;
    int rc = notes_prepare_buf(search->db, sql, &rows);
    for (int i = 0; i < 3 && rc == SQLITE_OK; i++) {
        rc = notes_bind_text(rows, i + 1, params[i]);
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        int64_t id = sqlite3_column_int64(rows, 0);
        if (id >= 0 && (size_t)id < needle->size) {
            needle->marks[id] = (uint8_t)(sqlite3_column_int(rows, 1) + NOTES_MARK_TITLE);
        }
    }
    (void)sqlite3_finalize(rows);
    return notes_done(rc);
}

static int read_text(struct notes_search *search, struct notes_needle *needle)
{
    struct buf sql;
    struct ng_str params[3];
    buf_init(&sql, SQL_MAX);
    int rc = notes_search_select(search, needle->text, &sql, params);
    if (rc == SQLITE_OK && params[2].len > 0) {
        rc = read_words(search, needle, params[1], params[2]);
    } else if (rc == SQLITE_OK) {
        buf_add_c(&sql, "1");
        rc = read_rows(search, needle, &sql, params);
    }
    buf_done(&sql);
    return rc;
}

/* Notes without all of the words can have the whole query in a heading only. */
static int take_whole_heading(struct notes_search *search, struct notes_needle *needle,
                              size_t id)
{
    if (needle->marks[id] != NOTES_MARK_NONE) {
        return SQLITE_OK;
    }
    return mark_whole(search, needle, id);
}

static int read_whole(struct notes_search *search, struct notes_needle *needle)
{
    int rc = SQLITE_OK;
    for (size_t id = 0; id < needle->size && rc == SQLITE_OK; id++) {
        if (count_words(search, id) == search->word_count) {
            rc = mark_whole(search, needle, id);
        }
        if (id % 1024 == 1023 && search->call->host->cancelled(search->call)) {
            rc = SQLITE_INTERRUPT;
        }
    }
    if (rc == SQLITE_OK) {
        rc = each_id(search, needle, BY_HEADINGS, needle->text, take_whole_heading);
    }
    return rc;
}

/* The notes that have any word of the vocabulary with the stem. */
static int read_stem(struct notes_search *search, struct notes_needle *needle)
{
    sqlite3_stmt *rows = search->board->statements[NOTES_BOARD_STEM];
    struct buf match;
    buf_init(&match, SQL_MAX);
    int rc = notes_bind_text(rows, 1, needle->text);
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        notes_add_if(&match, match.len > 0, " OR ");
        notes_add_quoted(&match, notes_column_text(rows, 0), '"');
        rc = match.rc == NG_OK ? SQLITE_OK : SQLITE_NOMEM;
    }
    (void)sqlite3_reset(rows);
    rc = notes_done(rc);
    if (rc == SQLITE_OK && match.len > 0) {
        rc = each_id(search, needle, BY_WORDS, notes_buf_str(&match), take_body);
    }
    buf_done(&match);
    return rc;
}

static int read_notes(struct notes_search *search, struct notes_needle *needle)
{
    memset(needle->marks, 0, needle->size);
    switch (needle->kind) {
    case NOTES_NEEDLE_WHOLE:
        return read_whole(search, needle);
    case NOTES_NEEDLE_STEM:
        return read_stem(search, needle);
    case NOTES_NEEDLE_WORD:
        return notes_fuzzy_marks(search->db, needle->text, needle->marks, needle->size);
    default:
        return read_text(search, needle);
    }
}

/* ---- kept needles ---- */

static int fit(struct notes_needle *needle, size_t size)
{
    if (needle->size >= size) {
        return SQLITE_OK;
    }
    uint8_t *marks = realloc(needle->marks, size);
    if (marks == NULL) {
        return SQLITE_NOMEM;
    }
    memset(marks + needle->size, 0, size - needle->size);
    needle->marks = marks;
    needle->size = size;
    return SQLITE_OK;
}

/* Are the changed notes so long that the full-text index finds a word faster? */
static int check_long(struct notes_board *board, const struct notes_needle *needle,
                      bool *ret_long)
{
    sqlite3_stmt *statement = board->statements[NOTES_BOARD_SIZE];
    int64_t left = NOTES_BOARD_SPLIT_MAX;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < board->change_count && left >= 0 && rc == SQLITE_OK; i++) {
        if (board->changes[i].seq <= needle->seq) {
            continue;
        }
        (void)sqlite3_bind_int64(statement, 1, (int64_t)board->changes[i].note);
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW && sqlite3_column_int64(statement, 0) > 0) {
            left -= sqlite3_column_int64(statement, 0);
        }
        (void)sqlite3_reset(statement);
        rc = notes_done(rc);
    }
    *ret_long = left < 0;
    return rc;
}

static int read_changed(struct notes_search *search, struct notes_needle *needle)
{
    const struct notes_board *board = search->board;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < board->change_count && rc == SQLITE_OK; i++) {
        if (board->changes[i].seq <= needle->seq) {
            continue;
        }
        rc = mark_note(search, needle, board->changes[i].note);
        if (rc == SQLITE_OK && search->call->host->cancelled(search->call)) {
            rc = SQLITE_INTERRUPT;
        }
    }
    return rc;
}

static int bring_up_to_date(struct notes_search *search, struct notes_needle *needle)
{
    struct notes_board *board = search->board;
    bool anew = needle->seq < board->since;
    int rc = fit(needle, board->size);
    bool split = needle->kind == NOTES_NEEDLE_WORD || needle->kind == NOTES_NEEDLE_STEM;
    if (rc == SQLITE_OK && !anew && split) {
        rc = check_long(board, needle, &anew);
    }
    if (rc == SQLITE_OK && anew) {
        rc = read_notes(search, needle);
    } else if (rc == SQLITE_OK) {
        rc = read_changed(search, needle);
    }
    needle->seq = board->seq;
    return rc;
}

/* Takes the needle out of the list. NULL: there is none. */
static struct notes_needle *take(struct notes_board *board, enum notes_needle_kind kind,
                                 struct ng_str text)
{
    for (struct notes_needle **at = &board->needles; *at != NULL; at = &(*at)->next) {
        struct notes_needle *needle = *at;
        if (needle->kind == kind && str_equal(needle->text, text)) {
            *at = needle->next;
            board->needle_count--;
            return needle;
        }
    }
    return NULL;
}

/* Frees the needles that were not used for the longest time. */
static void cut(struct notes_board *board)
{
    size_t most =
        size_min(NOTES_BOARD_NEEDLES_MAX, NOTES_BOARD_MARKS_MAX / size_max(board->size, 1));
    struct notes_needle **at = &board->needles;
    for (size_t i = 0; i < most && *at != NULL; i++) {
        at = &(*at)->next;
    }
    while (*at != NULL) {
        struct notes_needle *needle = *at;
        *at = needle->next;
        board->needle_count--;
        free_needle(needle);
    }
}

static struct notes_needle *make(const struct notes_board *board, enum notes_needle_kind kind,
                                 struct ng_str text)
{
    struct notes_needle *needle = calloc(1, sizeof(*needle));
    if (needle == NULL) {
        return NULL;
    }
    needle->kind = kind;
    needle->seq = -1; /* nothing was read */
    needle->size = board->size;
    needle->marks = calloc(1, board->size + 1);
    char *copy = str_dup(text);
    needle->text = str_make(copy, text.len);
    if (needle->marks == NULL || copy == NULL) {
        free_needle(needle);
        return NULL;
    }
    return needle;
}

int notes_needle_get(struct notes_search *search, enum notes_needle_kind kind,
                     struct ng_str text, struct notes_needle **ret)
{
    struct notes_board *board = search->board;
    struct notes_needle *needle = take(board, kind, text);
    if (needle == NULL) {
        needle = make(board, kind, text);
    }
    if (needle == NULL) {
        return SQLITE_NOMEM;
    }
    int rc = bring_up_to_date(search, needle);
    if (rc != SQLITE_OK) {
        free_needle(needle);
        return rc;
    }
    needle->next = board->needles;
    board->needles = needle;
    board->needle_count++;
    cut(board);
    *ret = needle;
    return SQLITE_OK;
}
