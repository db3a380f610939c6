/* SPDX-License-Identifier: MIT */
/* search_hit.c - the line and the excerpt of a hit. */
#include <string.h>

#include "fuzzy.h"
#include "search.h"

#define EXCERPT_BYTES 200 /* at most */
#define BEFORE_BYTES 70   /* of them before the hit */
#define WORD_BYTES 40     /* largest shift of a border to a word boundary */
/* Words that are compared, which is slow: of one note, and of all notes of an answer. */
#define WORDS_OF_NOTE 100000
#define WORDS_OF_ANSWER 1000000

/* A note's text and its folded form. Both have the same lines. */
struct body {
    struct ng_str content, folded;
    int64_t line; /* lines before it in the file */
};

/* ---- position in the folded text ---- */

/* A word of the query. */
struct wanted {
    struct ng_str word;
    size_t letters;
    unsigned edits;
};

/* Most words are excluded by their number of letters. */
static bool is_similar(const struct wanted *wanted, struct ng_str word, size_t letters)
{
    bool is_short = letters + wanted->edits < wanted->letters;
    bool is_long = letters > wanted->letters + wanted->edits;
    if (is_short || (is_long && !str_starts(word, wanted->word))) {
        return notes_fuzzy_same_stem(wanted->word, word);
    }
    return notes_fuzzy_match(wanted->word, word) != NOTES_FUZZY_NONE;
}

/* The first word that is similar to one of the query. */
static size_t find_similar(struct notes_search *search, struct ng_str folded)
{
    size_t most = size_min(WORDS_OF_NOTE, WORDS_OF_ANSWER - search->compared);
    struct wanted wanted[NOTES_FUZZY_WORDS_MAX];
    struct ng_str word;
    size_t letters = 0;
    size_t at = 0;
    for (size_t k = 0; k < search->word_count; k++) {
        wanted[k].word = search->words[k];
        wanted[k].letters = notes_fuzzy_letters(search->words[k]);
        wanted[k].edits = notes_fuzzy_edits(wanted[k].letters);
    }
    for (size_t i = 0; i < most && notes_word_next(folded, &at, &word, &letters); i++) {
        search->compared++;
        for (size_t k = 0; k < search->word_count; k++) {
            if (is_similar(&wanted[k], word, letters)) {
                return (size_t)(word.data - folded.data);
            }
        }
    }
    return SIZE_MAX;
}

/* The first place of `form` as a whole word, before `end`. */
static size_t find_word(struct ng_str folded, struct ng_str form, size_t end)
{
    struct ng_str text = str_make(folded.data, end);
    size_t at = str_find(text, form, 0);
    while (at != SIZE_MAX) {
        struct ng_str word = {NULL, 0};
        size_t letters = 0;
        size_t from = at;
        while (from > 0 && (at - from < WORD_BYTES || !utf8_is_start(folded.data[from])) &&
               !notes_is_space(folded.data[from - 1])) {
            from--;
        }
        while (from <= at && notes_word_next(folded, &from, &word, &letters)) {
            if (word.data == folded.data + at && word.len == form.len) {
                return at;
            }
        }
        at = str_find(text, form, at + 1);
    }
    return SIZE_MAX;
}

/* The first word that is another form of one of the query. */
static size_t find_form(const struct notes_search *search, struct ng_str folded)
{
    size_t first = SIZE_MAX;
    for (size_t k = 0; k < search->word_count; k++) {
        for (size_t i = 0; i < search->forms[k].count; i++) {
            struct ng_str form = search->forms[k].words[i];
            size_t end = folded.len;
            if (first != SIZE_MAX) {
                end = size_min(first + form.len, folded.len);
            }
            first = size_min(find_word(folded, form, end), first);
        }
    }
    return first;
}

static size_t find_hit(struct notes_search *search, struct ng_str folded)
{
    size_t first = str_find(folded, search->folded, 0);
    if (search->word_count == 0 || first != SIZE_MAX) {
        return first;
    }
    for (size_t k = 0; k < search->word_count; k++) {
        size_t at = str_find(folded, search->words[k], 0);
        first = size_min(at, first);
    }
    if (first == SIZE_MAX) {
        first = find_form(search, folded);
    }
    return first != SIZE_MAX ? first : find_similar(search, folded);
}

/* ---- the same position in the original text ---- */

static struct ng_str line_at(struct ng_str text, size_t at)
{
    size_t stop = notes_find_char(text, at, '\n');
    return str_make(text.data + at, stop - at);
}

/* The end of a unit of case folding: one ASCII character, or a run of others. */
static size_t unit_end(struct ng_str line, size_t at)
{
    size_t end = at + 1;
    while (end < line.len && (unsigned char)line.data[end] >= 0x80) {
        end++;
    }
    return end;
}

/* The offset in a line of the character that folds to the one at `wanted` of the folded line.
 */
static size_t unfold(struct ng_str line, size_t wanted)
{
    struct arena arena;
    size_t folded = 0;
    size_t at = 0;
    arena_init(&arena, 0);
    while (at < line.len && folded < wanted) {
        size_t end = unit_end(line, at);
        struct ng_str unit = str_make(line.data + at, end - at);
        size_t len = notes_fold(&arena, unit).len;
        if (folded + len > wanted) {
            /* Most characters other than ASCII keep their length. */
            size_t rest = wanted - folded;
            if (rest < unit.len) {
                at += rest;
            }
            break;
        }
        folded += len;
        at = end;
        arena_reset(&arena);
    }
    arena_done(&arena);
    return at;
}

struct place {
    int64_t line; /* from 1; 0: there is no text */
    size_t at;    /* in the content */
};

static struct place place_of(const struct body *body, size_t hit)
{
    struct place place = {.line = 1};
    size_t start = 0;
    for (;;) {
        struct ng_str line = line_at(body->folded, start);
        struct ng_str shown = line_at(body->content, place.at);
        if (hit <= start + line.len || start + line.len >= body->folded.len) {
            size_t within = hit - start;
            if (line.len != shown.len) {
                within = unfold(shown, within);
            }
            place.at += within;
            return place;
        }
        start += line.len + 1;
        place.at += shown.len + (place.at + shown.len < body->content.len);
        place.line++;
    }
}

/* The first line with text: shown for a note that matches by its title alone. */
static struct place first_line(const struct body *body)
{
    struct place place = {.line = 1};
    while (place.at < body->content.len) {
        struct ng_str line = line_at(body->content, place.at);
        if (notes_trim(line).len > 0) {
            return place;
        }
        place.at += line.len + 1;
        place.line++;
    }
    return (struct place){.line = 0};
}

/* ---- excerpt ---- */

static struct ng_str around(struct ng_str text, size_t hit, size_t len)
{
    size_t begin = utf8_cut(text, hit - size_min(hit, BEFORE_BYTES)).len;
    for (size_t i = begin; begin > 0 && i < hit && i - begin < WORD_BYTES; i++) {
        if (notes_is_space(text.data[i])) {
            begin = i + 1;
            break;
        }
    }
    size_t end = text.len;
    if (text.len - begin > EXCERPT_BYTES) {
        end = utf8_cut(text, begin + EXCERPT_BYTES).len;
        for (size_t i = end; i > hit + len && end - i < WORD_BYTES; i--) {
            if (notes_is_space(text.data[i])) {
                end = i;
                break;
            }
        }
    }
    return notes_trim(str_make(text.data + begin, end - begin));
}

/* False: the note has no text. */
static bool show_hit(struct notes_search *search, const struct body *body, int64_t *ret_line,
                     struct ng_str *ret_excerpt)
{
    size_t hit = find_hit(search, body->folded);
    struct place place = hit != SIZE_MAX ? place_of(body, hit) : first_line(body);
    if (place.line == 0) {
        return false;
    }
    size_t at = utf8_cut(body->content, place.at).len;
    *ret_line = body->line + place.line;
    *ret_excerpt = around(body->content, at, search->query.len);
    return true;
}

/* Reads the body of the note; its texts live until the row is reset. An SQLite code. */
static int read_body(sqlite3_stmt *row, int64_t note, struct body *ret)
{
    (void)sqlite3_bind_int64(row, 1, note);
    int rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        *ret = (struct body){notes_column_text(row, 0), notes_column_text(row, 1),
                             sqlite3_column_int64(row, 2)};
    }
    return rc;
}

int notes_search_hit(struct notes_search *search, int64_t note, struct buf *item)
{
    sqlite3_stmt *row = search->board->statements[NOTES_BOARD_BODY];
    struct ng_str excerpt = {NULL, 0};
    struct body body;
    int64_t line = 0;
    if (search->folded.len == 0) {
        return SQLITE_OK;
    }
    int rc = read_body(row, note, &body);
    if (rc == SQLITE_ROW && show_hit(search, &body, &line, &excerpt)) {
        notes_json_member_int(item, "line", line);
        notes_json_member(item, "excerpt", excerpt);
    }
    (void)sqlite3_reset(row);
    return notes_done(rc);
}

int notes_search_place(struct notes_search *search, int64_t note, int64_t *ret_line,
                       struct ng_str *ret_excerpt)
{
    sqlite3_stmt *row = search->board->statements[NOTES_BOARD_BODY];
    struct body body;
    int rc = read_body(row, note, &body);
    *ret_line = 0;
    if (rc == SQLITE_ROW && show_hit(search, &body, ret_line, ret_excerpt)) {
        *ret_excerpt = arena_copy(search->arena, *ret_excerpt);
        rc = ret_excerpt->data != NULL ? SQLITE_ROW : SQLITE_NOMEM;
    }
    (void)sqlite3_reset(row);
    return notes_done(rc);
}
