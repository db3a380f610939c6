/* SPDX-License-Identifier: MIT */
/* fuzzy_word.c - the distance of words, and the words of the vocabulary near one. */
#include "fuzzy_word.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "index/index.h"

#define QUERY_MAX ((size_t)64 * 1024)
#define LETTER_BYTES 4
#define WORDS_MAX ((size_t)16 * 1024 * 1024)
/* Each edit destroys at most 4 of a word's trigrams (a swap; others 3), and "^^word$$" has two
 * more than it has letters: only two swaps in a word of six may leave none of them. */
#define TWO_SWAPS_LETTERS 6
#define STEM_LETTERS_MIN ((size_t)3)

/* ---- distance ---- */

unsigned notes_fuzzy_edits(size_t letters)
{
    if (letters > NOTES_FUZZY_LETTERS_MAX || letters < 3) {
        return 0;
    }
    return 1 + (letters >= TWO_SWAPS_LETTERS);
}

static size_t letters_of(struct ng_str word, int32_t *letters)
{
    size_t count = 0;
    for (size_t at = 0; at < word.len && count < NOTES_FUZZY_LETTERS_MAX + 3;) {
        int32_t c = notes_next(word, &at);
        if (letters != NULL) {
            letters[count] = c;
        }
        count++;
    }
    return count;
}

size_t notes_fuzzy_letters(struct ng_str word)
{
    return letters_of(word, NULL);
}

/* Three rows of the matrix are enough: a swap looks two rows back. */
static unsigned measure(const int32_t *a, size_t a_len, const int32_t *b, size_t b_len)
{
    unsigned rows[3][NOTES_FUZZY_LETTERS_MAX + 4];
    for (size_t k = 0; k <= b_len; k++) {
        rows[0][k] = (unsigned)k;
    }
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *before = rows[(i - 1) % 3];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= b_len; k++) {
            unsigned best = before[k - 1] + (a[i - 1] != b[k - 1]);
            best = uint_min(best, uint_min(before[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                best = uint_min(best, rows[(i - 2) % 3][k - 2] + 1);
            }
            row[k] = best;
        }
    }
    return rows[a_len % 3][b_len];
}

/* A bit per letter; several letters share a bit. */
static uint64_t bits_of(const int32_t *letters, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        bits |= UINT64_C(1) << ((unsigned)letters[i] % 64);
    }
    return bits;
}

/* An edit changes at most two of the bits: most words are excluded by them. */
static bool may_be_near(const int32_t *a, size_t a_len, const int32_t *b, size_t b_len,
                        unsigned most)
{
    uint64_t differ = bits_of(a, a_len) ^ bits_of(b, b_len);
    unsigned count = 0;
    for (; differ != 0 && count <= 2 * most; differ &= differ - 1) {
        count++;
    }
    return count <= 2 * most;
}

unsigned notes_fuzzy_distance(struct ng_str a, struct ng_str b, unsigned most)
{
    int32_t a_letters[NOTES_FUZZY_LETTERS_MAX + 3];
    int32_t b_letters[NOTES_FUZZY_LETTERS_MAX + 3];
    if (str_equal(a, b)) {
        return 0;
    }
    size_t a_len = letters_of(a, a_letters);
    size_t b_len = letters_of(b, b_letters);
    size_t apart = size_max(a_len, b_len) - size_min(a_len, b_len);
    if (apart > most || a_len > NOTES_FUZZY_LETTERS_MAX + 2 ||
        b_len > NOTES_FUZZY_LETTERS_MAX + 2 ||
        !may_be_near(a_letters, a_len, b_letters, b_len, most)) {
        return most + 1;
    }
    return uint_min(measure(a_letters, a_len, b_letters, b_len), most + 1);
}

bool notes_fuzzy_same_stem(struct ng_str a, struct ng_str b)
{
    char stems[2][NOTES_STEM_BYTES_MAX];
    /* No rule of the stemmer changes the first letters. */
    if (a.len < STEM_LETTERS_MIN || b.len < STEM_LETTERS_MIN || a.data[0] != b.data[0] ||
        a.data[1] != b.data[1]) {
        return false;
    }
    return str_equal(notes_stem(a, stems[0]), notes_stem(b, stems[1]));
}

enum notes_fuzzy_class notes_fuzzy_match(struct ng_str query, struct ng_str word)
{
    if (str_equal(query, word)) {
        return NOTES_FUZZY_EXACT;
    }
    if (word.len > query.len && memcmp(word.data, query.data, query.len) == 0) {
        return NOTES_FUZZY_PREFIX;
    }
    unsigned edits = notes_fuzzy_edits(notes_fuzzy_letters(query));
    bool similar = edits > 0 && notes_fuzzy_distance(query, word, edits) <= edits;
    if (similar || notes_fuzzy_same_stem(query, word)) {
        return NOTES_FUZZY_EDITS;
    }
    return NOTES_FUZZY_NONE;
}

/* ---- words ---- */

size_t notes_fuzzy_split(struct ng_str text, struct ng_str *words, size_t max)
{
    size_t count = 0;
    size_t letters = 0;
    for (size_t at = 0; count < max && notes_word_next(text, &at, &words[count], &letters);) {
        count++;
    }
    return count;
}

/* ---- candidates ---- */

static int add_word(struct notes_fuzzy_words *words, struct ng_str word)
{
    struct ng_str copy = arena_copy(&words->arena, word);
    if (copy.data == NULL ||
        array_reserve((void **)&words->words, &words->room, words->count + 1,
                      sizeof(*words->words), WORDS_MAX) != NG_OK) {
        return SQLITE_NOMEM;
    }
    words->words[words->count++] = copy;
    return SQLITE_OK;
}

/* Starts of the characters of "^^word$$", and its end; returns their number. */
static size_t pad(struct ng_str word, char *padded, size_t *starts)
{
    size_t count = 0;
    memcpy(padded, "^^", 2);
    memcpy(padded + 2, word.data, word.len);
    memcpy(padded + 2 + word.len, "$$", 2);
    struct ng_str all = str_make(padded, word.len + 4);
    for (size_t at = 0; at < all.len;) {
        starts[count++] = at;
        (void)notes_next(all, &at);
    }
    starts[count] = all.len;
    return count;
}

static void write_trigrams(struct buf *query, struct ng_str word)
{
    char padded[NOTES_FUZZY_LETTERS_MAX * LETTER_BYTES + 4];
    size_t starts[NOTES_FUZZY_LETTERS_MAX + 5];
    size_t count = pad(word, padded, starts);
    for (size_t i = 0; i + 3 <= count; i++) {
        notes_add_if(query, i > 0, " OR ");
        notes_add_quoted(query, str_make(padded + starts[i], starts[i + 3] - starts[i]), '"');
    }
}

static int take_candidates(sqlite3 *db, struct ng_str word, unsigned edits,
                           struct notes_fuzzy_words *ret)
{
    sqlite3_stmt *statement = NULL;
    struct buf query;
    int64_t letters = (int64_t)notes_fuzzy_letters(word);
    buf_init(&query, QUERY_MAX);
    write_trigrams(&query, word);
    int rc = SQLITE_NOMEM;
    if (query.rc == NG_OK) {
        rc = sqlite3_prepare_v2(db,
                                "SELECT v.word FROM vocab_grams g JOIN vocab v ON v.id=g.rowid "
                                "WHERE vocab_grams MATCH ?1 AND v.letters BETWEEN ?2 AND ?3",
                                -1, &statement, NULL);
    }
    if (rc == SQLITE_OK) {
        (void)notes_bind_text(statement, 1, notes_buf_str(&query));
        (void)sqlite3_bind_int64(statement, 2, letters - (int64_t)edits);
        (void)sqlite3_bind_int64(statement, 3, letters + (int64_t)edits);
        while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
            struct ng_str found = notes_column_text(statement, 0);
            bool near =
                !str_equal(found, word) && notes_fuzzy_distance(word, found, edits) <= edits;
            if (near && add_word(ret, found) != SQLITE_OK) {
                rc = SQLITE_NOMEM;
                break;
            }
        }
        rc = notes_done(rc);
    }
    (void)sqlite3_finalize(statement);
    buf_done(&query);
    return rc;
}

/* Words with the stem that are not within the edits. */
static int take_forms(sqlite3 *db, struct ng_str word, unsigned edits,
                      struct notes_fuzzy_words *ret)
{
    sqlite3_stmt *statement = NULL;
    char stem[NOTES_STEM_BYTES_MAX];
    int rc =
        sqlite3_prepare_v2(db, "SELECT word FROM vocab WHERE stem=?1", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = notes_bind_text(statement, 1, notes_stem(word, stem));
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct ng_str found = notes_column_text(statement, 0);
        rc =
            notes_fuzzy_distance(word, found, edits) > edits ? add_word(ret, found) : SQLITE_OK;
    }
    (void)sqlite3_finalize(statement);
    return notes_done(rc);
}

/* The word with its letters at first, first + 1 and second, second + 1 swapped. */
static struct ng_str swapped(struct arena *arena, struct ng_str word, size_t first,
                             size_t second)
{
    int32_t letters[NOTES_FUZZY_LETTERS_MAX + 3];
    size_t count = letters_of(word, letters);
    const size_t places[] = {first, second};
    for (size_t i = 0; i < NG_COUNT(places); i++) {
        int32_t letter = letters[places[i]];
        letters[places[i]] = letters[places[i] + 1];
        letters[places[i] + 1] = letter;
    }
    char *data = arena_zalloc(arena, count * LETTER_BYTES + 1);
    size_t len = 0;
    for (size_t i = 0; data != NULL && i < count; i++) {
        len += utf8_encode((uint32_t)letters[i], data + len);
    }
    return str_make(data, len);
}

static int take_two_swaps(struct ng_str word, struct notes_fuzzy_words *ret)
{
    for (size_t first = 0; first + 1 < TWO_SWAPS_LETTERS; first++) {
        for (size_t second = first + 2; second + 1 < TWO_SWAPS_LETTERS; second++) {
            struct ng_str other = swapped(&ret->arena, word, first, second);
            if (other.data == NULL ||
                (!str_equal(other, word) && add_word(ret, other) != SQLITE_OK)) {
                return SQLITE_NOMEM;
            }
        }
    }
    return SQLITE_OK;
}

int notes_fuzzy_similar(sqlite3 *db, struct ng_str word, struct notes_fuzzy_words *ret)
{
    size_t letters = notes_fuzzy_letters(word);
    unsigned edits = notes_fuzzy_edits(letters);
    *ret = (struct notes_fuzzy_words){.words = NULL};
    arena_init(&ret->arena, 0);
    if (edits == 0) {
        return SQLITE_OK;
    }
    int rc = take_candidates(db, word, edits, ret);
    if (rc == SQLITE_OK) {
        rc = take_forms(db, word, edits, ret);
    }
    if (rc == SQLITE_OK && letters == TWO_SWAPS_LETTERS) {
        rc = take_two_swaps(word, ret);
    }
    return rc;
}

void notes_fuzzy_words_done(struct notes_fuzzy_words *words)
{
    free(words->words);
    arena_done(&words->arena);
    *words = (struct notes_fuzzy_words){.words = NULL};
}
