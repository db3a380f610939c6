/* SPDX-License-Identifier: MIT */
/* search.h - one call of the search tool. */
#ifndef OPENNOTES_SEARCH_H
#define OPENNOTES_SEARCH_H

#include "answer/answer.h"
#include "answer/left_out.h"
#include "board.h"
#include "filter/filter.h"
#include "fuzzy.h"
#include "index/index.h"

#define NOTES_QUERY_MAX 10000 /* bytes of `query` */

/* Other forms of a word: words of the notebook with its stem and without it as a part. */
#define NOTES_FORMS_MAX ((size_t)16)
struct notes_forms {
    struct ng_str words[NOTES_FORMS_MAX];
    size_t count;
};

struct notes_finding;

struct notes_search {
    struct ng_call *call;
    struct notes_notebook *notebook;
    sqlite3 *db;         /* of the notebook */
    struct ng_str query; /* as given; {NULL, 0}: none */
    struct ng_str folded;
    const struct notes_filter *filter;
    struct arena *arena;
    struct notes_answer answer;
    struct notes_board *board;       /* of the connection */
    struct notes_left_out *left_out; /* counts the notes instead; NULL: they are answered */
    struct notes_finding *finding;   /* gets the notes instead; NULL: they are answered */
    /* Of the query, folded; none: it is searched as a whole. */
    struct ng_str words[NOTES_FUZZY_WORDS_MAX];
    struct ng_str written[NOTES_FUZZY_WORDS_MAX]; /* of a text, before their endings are cut */
    struct notes_needle *needles[NOTES_FUZZY_WORDS_MAX]; /* of the words, on the board */
    size_t word_count;
    struct notes_forms forms[NOTES_FUZZY_WORDS_MAX]; /* of the words */
    size_t compared;                                 /* words of hits, one by one */
    struct ng_str
        grams; /* trigrams of any of the words and forms; {NULL, 0}: all notes may have one */
};

/* Counts a note, and writes it if it is on the page. An SQLite code. */
int notes_search_take(struct notes_search *search, int64_t note);

/* Writes `line` and `excerpt` of a note that was found by a text. An SQLite code. */
int notes_search_hit(struct notes_search *search, int64_t note, struct buf *item);

/* The same place; *ret_line 0: none. The excerpt is in search->arena. An SQLite code. */
int notes_search_place(struct notes_search *search, int64_t note, int64_t *ret_line,
                       struct ng_str *ret_excerpt);
/* NG_OK, or the failure of the call with this SQLite code. */
int notes_search_fail(const struct notes_search *search, int rc);

/* Takes the notes of a statement: their ids, by the parameters ?1 to ?3 (absent: NULL) and
 * those of the filter. An SQLite code. */
int notes_search_rows(struct notes_search *search, const struct buf *sql,
                      const struct ng_str params[3]);

/* Are the notes found with the board? Not with filters, nor with too many notes. */
bool notes_search_has_board(const struct notes_search *search);

/* ---- search_rank.c: searches with the board. An SQLite code each */

int notes_rank_all(struct notes_search *search);
int notes_rank_text(struct notes_search *search);
/* Notes with any of search->words. */
int notes_rank_words(struct notes_search *search);
/* Notes with all of search->words, or similar ones. */
int notes_rank_similar(struct notes_search *search);

/* ---- search_text.c, search_fuzzy.c: an SQLite code each */

/* search_forms.c: search->forms of all words. */
int notes_search_forms(struct notes_search *search);

/* A statement for the notes with a text: their ids and ranks. More conditions follow. */
int notes_search_select(struct notes_search *search, struct ng_str text, struct buf *sql,
                        struct ng_str ret_params[3]);

/* Notes whose title or body contains the folded query, or all where that is empty. */
int notes_search_text(struct notes_search *search);
/* *ret_done false: the query has no words; nothing was done. */
int notes_search_fuzzy(struct notes_search *search, bool *ret_done);

/* ---- search_find.c: for a search over all kinds of resources */

/* Notes with an equal title that come before the others. */
#define NOTES_FIND_TITLED_MAX 8

/* Borrowed for the function that gets it. */
struct notes_found {
    struct ng_str path, title, file; /* as in the index; title, file: or none */
    struct ng_str excerpt;
    int64_t modified_ms, line; /* line: of the file, from 1; 0: none */
    bool exact;                /* an equal title */
};

/* NG_OK, or NG_EINTERNAL: out of memory. */
typedef int notes_found_fn(void *user, const struct notes_found *found);

struct notes_find {
    struct ng_str text;
    uint32_t limit;
    notes_found_fn *fn;
    void *user;
};

/* Passes notes of an open notebook, best first, a few more than the limit at most. */
int notes_search_find(struct notes_notebook *notebook, struct ng_call *call,
                      struct arena *arena, const struct notes_find *find, uint64_t *ret_total);
/* Passes a note to search->finding. An SQLite code. */
int notes_search_found(struct notes_search *search, int64_t note);

NOTES_TOOL(search);
NOTES_CHECK(search);

#endif
