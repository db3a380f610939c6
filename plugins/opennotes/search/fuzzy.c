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
        struct hit *hit = hit_of(finder, sqlite3_column_int64(finder->terms, 0));
        if (hit == NULL) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (hit->seen != finder->number) {
            hit->seen = finder->number;
            hit->score += score;
            hit->words++;
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

int notes_fuzzy_find(sqlite3 *db, const struct ng_str *words, size_t count, struct buf *json)
{
    struct finder finder = {.db = db};
    arena_init(&finder.arena, 0);
    buf_init(&finder.query, QUERY_MAX);
    int rc = sqlite3_prepare_v2(db, "SELECT rowid FROM terms WHERE terms MATCH ?1", -1,
                                &finder.terms, NULL);
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
    (void)sqlite3_finalize(finder.terms);
    buf_done(&finder.query);
    hash_table_done(&finder.table);
    arena_done(&finder.arena);
    return rc;
}
