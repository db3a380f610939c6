/* SPDX-License-Identifier: MIT */
/* search_fuzzy.c - typo-tolerant search: notes with every word of the query or a similar one;
 * title above body, exact before prefix before similar, then newest. */
#include <stdlib.h>

#include "fuzzy.h"
#include "search.h"

struct ranked {
    int64_t note, modified;
    uint32_t score;
    struct ng_str path;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *one = a;
    const struct ranked *other = b;
    if (one->score != other->score) {
        return (one->score > other->score) - (one->score < other->score);
    }
    if (one->modified != other->modified) {
        return (one->modified < other->modified) - (one->modified > other->modified);
    }
    return str_compare(one->path, other->path);
}

/* Drops notes that the filter excludes; reads time and path of the others. */
static int look_up(struct notes_search *search, const struct notes_fuzzy *fuzzy,
                   struct ranked *ranked, size_t *ret_count)
{
    struct buf sql;
    sqlite3_stmt *statement = NULL;
    int next = 0;
    buf_init(&sql, (size_t)2 * 1024 * 1024);
    buf_add_c(&sql, "SELECT n.modified, n.path FROM notes n WHERE n.id=?1 AND ");
    buf_add_str(&sql, search->filter->sql);
    int rc = notes_prepare_buf(search->db, &sql, &statement);
    if (rc == SQLITE_OK) {
        rc = notes_filter_bind(search->filter, statement, 2, &next);
    }
    for (size_t i = 0; i < fuzzy->count && rc == SQLITE_OK; i++) {
        (void)sqlite3_bind_int64(statement, 1, fuzzy->hits[i]->note);
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW) {
            struct ng_str path = arena_copy(search->arena, notes_column_text(statement, 1));
            ranked[(*ret_count)++] =
                (struct ranked){fuzzy->hits[i]->note, sqlite3_column_int64(statement, 0),
                                fuzzy->hits[i]->score, path};
            if (path.data == NULL) {
                rc = SQLITE_NOMEM;
            }
        }
        (void)sqlite3_reset(statement);
        rc = notes_done(rc);
    }
    (void)sqlite3_finalize(statement);
    buf_done(&sql);
    return rc;
}

int notes_search_fuzzy(struct notes_search *search, bool *ret_done)
{
    struct ng_str words[NOTES_FUZZY_WORDS_MAX];
    struct notes_fuzzy fuzzy;
    size_t count = 0;
    size_t word_count = notes_fuzzy_split(search->folded, words, NOTES_FUZZY_WORDS_MAX);
    *ret_done = word_count > 0;
    if (word_count == 0) {
        return SQLITE_OK;
    }
    int rc = notes_fuzzy_find(&fuzzy, search->db, words, word_count);
    struct ranked *ranked = calloc(fuzzy.count + 1, sizeof(*ranked));
    if (ranked == NULL) {
        rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK) {
        rc = look_up(search, &fuzzy, ranked, &count);
    }
    if (rc == SQLITE_OK) {
        qsort(ranked, count, sizeof(*ranked), compare);
    }
    search->words = words;
    search->word_count = word_count;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        rc = notes_search_take(search, ranked[i].note);
    }
    search->words = NULL;
    search->word_count = 0;
    free(ranked);
    notes_fuzzy_done(&fuzzy);
    return rc;
}
