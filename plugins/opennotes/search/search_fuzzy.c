/* SPDX-License-Identifier: MIT */
/* search_fuzzy.c - typo-tolerant search: notes with every word of the query or a similar one;
 * title above body, exact before prefix before similar, then newest. */
#include "search.h"

#define HITS_MAX ((size_t)256 * 1024 * 1024)
#define SQL_MAX ((size_t)2 * 1024 * 1024)

int notes_search_fuzzy(struct notes_search *search, bool *ret_done)
{
    struct buf hits;
    struct buf sql;
    search->word_count =
        notes_fuzzy_split(search->folded, search->words, NOTES_FUZZY_WORDS_MAX);
    *ret_done = search->word_count > 0;
    if (search->word_count == 0) {
        return SQLITE_OK;
    }
    if (notes_search_has_board(search)) {
        return notes_rank_similar(search);
    }
    buf_init(&hits, HITS_MAX);
    buf_init(&sql, SQL_MAX);
    int rc = notes_fuzzy_find(search->db, search->words, search->word_count, &hits);
    buf_add_c(&sql, "SELECT n.id FROM json_each(?1) h JOIN notes n ON n.id=CAST(h.key AS "
                    "INTEGER) WHERE ?2 IS NULL AND ?3 IS NULL AND ");
    buf_add_str(&sql, search->filter->sql);
    buf_add_c(&sql, " ORDER BY h.value, n.modified DESC, n.path");
    if (rc == SQLITE_OK && hits.rc != NG_OK) {
        rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK) {
        rc = notes_search_rows(search, &sql, (const struct ng_str[3]){notes_buf_str(&hits)});
    }
    buf_done(&hits);
    buf_done(&sql);
    return rc;
}
