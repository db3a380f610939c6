/* SPDX-License-Identifier: MIT */
/* search.h - one call of the search tool. */
#ifndef OPENNOTES_SEARCH_H
#define OPENNOTES_SEARCH_H

#include "answer/answer.h"
#include "answer/summary.h"
#include "filter/filter.h"
#include "index/index.h"

#define NOTES_QUERY_MAX 10000 /* bytes of `query` */

struct notes_search {
    struct ng_call *call;
    struct notes_notebook *notebook;
    sqlite3 *db;         /* of the notebook */
    struct ng_str query; /* as given; {NULL, 0}: none */
    struct ng_str folded;
    const struct notes_filter *filter;
    struct arena *arena;
    struct notes_answer answer;
    struct notes_summary summary;
    const struct ng_str
        *words; /* of a fuzzy query, folded; none: the query is searched as a whole */
    size_t word_count;
    sqlite3_stmt *body; /* of notes_search_hit(): prepared at its first use */
};

/* Counts a note, and writes it if it is on the page. An SQLite code. */
int notes_search_take(struct notes_search *search, int64_t note);

/* Writes `line` and `excerpt` of a note that was found by a text. An SQLite code. */
int notes_search_hit(struct notes_search *search, int64_t note, struct buf *item);

/* ---- search_text.c, search_fuzzy.c: an SQLite code each */

/* Notes whose title or body contains the folded query, or all where that is empty. */
int notes_search_text(struct notes_search *search);
/* *ret_done false: the query has no words; nothing was done. */
int notes_search_fuzzy(struct notes_search *search, bool *ret_done);

NOTES_TOOL(search);

#endif
