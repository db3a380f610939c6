/* SPDX-License-Identifier: MIT */
/* fuzzy.c - finds notes by words with typing errors. Candidates come from the trigrams of all
 * words; near ones are looked up in the full-text index. */
#include "fuzzy.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "fuzzy_word.h"
#include "index/index.h"

#define QUERY_MAX ((size_t)1024 * 1024)
#define WORDS_PER_QUERY 100 /* alternatives in one full-text query */

/* A note that has some of the words. */
struct hit {
    struct hash_link link;
    int64_t note;
    uint32_t score;
    uint32_t words; /* how many it has so far */
    uint32_t seen;  /* the word that was counted last, from 1 */
};

struct finder {
    struct arena arena;
    struct hash_table table; /* of hits */
    sqlite3 *db;
    sqlite3_stmt *terms; /* rowids of the notes that match ?1 */
    struct ng_str word;
    uint32_t number; /* of the word, from 1 */
    struct buf query;
    uint8_t *marks; /* of one word, by id; NULL: the notes are hits */
    size_t size;
};

/* ---- notes ---- */

static bool is_note(const struct hash_link *link, const void *note)
{
    return HASH_ITEM(link, struct hit, link)->note == *(const int64_t *)note;
}

static struct hit *hit_of(struct finder *finder, int64_t note)
{
    uint64_t hash = hash_fnv_u64(HASH_FNV_BASIS, (uint64_t)note);
    struct hash_link *link = hash_table_find(&finder->table, hash, is_note, &note);
    if (link != NULL) {
        return HASH_ITEM(link, struct hit, link);
    }
    struct hit *hit = arena_zalloc(&finder->arena, sizeof(*hit));
    if (hit == NULL || hash_table_add(&finder->table, &hit->link, hash) != NG_OK) {
        return NULL;
    }
    hit->note = note;
    return hit;
}

static int take_note(struct finder *finder, int64_t note, uint32_t score)
{
    if (finder->marks != NULL) {
        if (note >= 0 && (size_t)note < finder->size && finder->marks[note] == 0) {
            finder->marks[note] = (uint8_t)(score + 1);
        }
        return SQLITE_OK;
    }
    struct hit *hit = hit_of(finder, note);
    if (hit == NULL) {
        return SQLITE_NOMEM;
    }
    if (hit->seen != finder->number) {
        hit->seen = finder->number;
        hit->score += score;
        hit->words++;
    }
    return SQLITE_OK;
}

/* The first query that matches a note gives the best score of this word. */
static int take_notes(struct finder *finder, uint32_t score)
{
    struct ng_str query = notes_buf_str(&finder->query);
    if (finder->query.rc != NG_OK) {
        return SQLITE_NOMEM;
    }
    (void)notes_bind_text(finder->terms, 1, query);
    int rc = SQLITE_ROW;
    while ((rc = sqlite3_step(finder->terms)) == SQLITE_ROW) {
        rc = take_note(finder, sqlite3_column_int64(finder->terms, 0), score);
        if (rc != SQLITE_OK) {
            break;
        }
    }
    (void)sqlite3_reset(finder->terms);
    return notes_done(rc);
}

static uint32_t score_of(bool in_title, enum notes_fuzzy_class match)
{
    return (uint32_t)match + (uint32_t)NOTES_FUZZY_NONE * !in_title;
}

static int take_word(struct finder *finder, bool in_title, bool prefix)
{
    buf_clear(&finder->query);
    buf_add_c(&finder->query, in_title ? "title : " : "body : ");
    notes_add_quoted(&finder->query, finder->word, '"');
    notes_add_if(&finder->query, prefix, " *");
    return take_notes(finder,
                      score_of(in_title, prefix ? NOTES_FUZZY_PREFIX : NOTES_FUZZY_EXACT));
}

static int take_similar(struct finder *finder, const struct notes_fuzzy_words *similar,
                        bool in_title)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < similar->count && rc == SQLITE_OK;) {
        buf_clear(&finder->query);
        buf_add_c(&finder->query, in_title ? "title : " : "body : ");
        buf_add_char(&finder->query, '(');
        for (size_t k = 0; k < WORDS_PER_QUERY && i < similar->count; k++, i++) {
            notes_add_if(&finder->query, k > 0, " OR ");
            notes_add_quoted(&finder->query, similar->words[i], '"');
        }
        buf_add_c(&finder->query, ")");
        rc = take_notes(finder, score_of(in_title, NOTES_FUZZY_EDITS));
    }
    return rc;
}

/* From the best kind of match to the worst, so that each note counts its best. */
static int find_word(struct finder *finder)
{
    struct notes_fuzzy_words similar;
    int rc = notes_fuzzy_similar(finder->db, finder->word, &similar);
    for (int body = 0; body < 2 && rc == SQLITE_OK; body++) {
        rc = take_word(finder, body == 0, false);
        if (rc == SQLITE_OK) {
            rc = take_word(finder, body == 0, true);
        }
        if (rc == SQLITE_OK) {
            rc = take_similar(finder, &similar, body == 0);
        }
    }
    notes_fuzzy_words_done(&similar);
    return rc;
}

static int begin(struct finder *finder)
{
    arena_init(&finder->arena, 0);
    buf_init(&finder->query, QUERY_MAX);
    return sqlite3_prepare_v2(finder->db, "SELECT rowid FROM terms WHERE terms MATCH ?1", -1,
                              &finder->terms, NULL);
}

static void end(struct finder *finder)
{
    (void)sqlite3_finalize(finder->terms);
    buf_done(&finder->query);
    hash_table_done(&finder->table);
    arena_done(&finder->arena);
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
int notes_fuzzy_marks(sqlite3 *db, struct ng_str word, uint8_t *marks, size_t size)
{
    struct finder finder = {.db = db, .word = word, .number = 1, .marks = marks, .size = size};
    int rc = begin(&finder);
    if (rc == SQLITE_OK) {
        rc = find_word(&finder);
    }
    end(&finder);
    return rc;
}

/* The best match of the words of a text. The index has no similar ones of the longest words. */
static enum notes_fuzzy_class best_match(struct ng_str word, struct ng_str text)
{
    enum notes_fuzzy_class best = NOTES_FUZZY_NONE;
    struct ng_str other;
    size_t letters = 0;
    for (size_t at = 0;
         best != NOTES_FUZZY_EXACT && notes_word_next(text, &at, &other, &letters);) {
        enum notes_fuzzy_class match = notes_fuzzy_match(word, other);
        if (match < best &&
            (match != NOTES_FUZZY_EDITS || letters <= NOTES_FUZZY_LETTERS_MAX)) {
            best = match;
        }
    }
    return best;
}

uint8_t notes_fuzzy_mark(struct ng_str word, struct ng_str title, struct ng_str body)
{
    enum notes_fuzzy_class match = best_match(word, title);
    bool in_title = match != NOTES_FUZZY_NONE;
    if (!in_title) {
        match = best_match(word, body);
    }
    if (match == NOTES_FUZZY_NONE) {
        return 0;
    }
    return (uint8_t)(score_of(in_title, match) + 1);
}

int notes_fuzzy_find(sqlite3 *db, const struct ng_str *words, size_t count, struct buf *json)
{
    struct finder finder = {.db = db};
    int rc = begin(&finder);
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        finder.word = words[i];
        finder.number = (uint32_t)i + 1;
        rc = find_word(&finder);
    }
    notes_json_begin(json, '{');
    for (struct hash_link *link = hash_table_first(&finder.table); link != NULL;
         link = hash_table_next(&finder.table, link)) {
        const struct hit *hit = HASH_ITEM(link, struct hit, link);
        if (hit->words == count) {
            notes_add_if(json, json->len > 1, ",");
            buf_printf(json, "\"%lld\":%u", (long long)hit->note, (unsigned)hit->score);
        }
    }
    notes_json_end(json, '}');
    end(&finder);
    return rc;
}
