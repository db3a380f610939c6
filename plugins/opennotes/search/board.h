/* SPDX-License-Identifier: MIT */
/*
 * board.h - the state of a connection between searches: the notes in the order of answers, and
 * for recent texts a mark per note that has them. A search reads only the notes that changed
 * since the last one, and the notes of its page.
 */
#ifndef OPENNOTES_BOARD_H
#define OPENNOTES_BOARD_H

#include "answer/summary.h"
#include "fuzzy.h"
#include "index/index.h"

/* Notes have a mark by their ids. With a greater id in the index nothing is kept. */
#define NOTES_BOARD_IDS_MAX ((size_t)200000)
/* Bytes of the marks of one connection. Enough for the texts of one query in any case. */
#define NOTES_BOARD_MARKS_MAX ((size_t)4 * 1024 * 1024)
#define NOTES_BOARD_NEEDLES_MAX ((size_t)128)
_Static_assert(NOTES_BOARD_MARKS_MAX / NOTES_BOARD_IDS_MAX > NOTES_FUZZY_WORDS_MAX,
               "the words of a query, and the whole of it");
/* Changed notes that are read one by one; after more of them, everything is read again. */
#define NOTES_BOARD_CHANGES_MAX ((size_t)128)
/* Bytes of changed notes that are split into words; of more the full-text index is asked. */
#define NOTES_BOARD_SPLIT_MAX ((int64_t)256 * 1024)

/* If more notes have a word, their classes are read from the index instead of the notes. */
#define NOTES_BOARD_READ_MAX ((size_t)256)

struct notes_search;

enum notes_board_statement {
    NOTES_BOARD_NEWS = 0,
    NOTES_BOARD_PLACE,
    NOTES_BOARD_TEXT,
    NOTES_BOARD_WHOLE,
    NOTES_BOARD_GRAMS,
    NOTES_BOARD_SIZE,
    NOTES_BOARD_WORDS,
    NOTES_BOARD_BODY,
    NOTES_BOARD_FORMS,
    NOTES_BOARD_STEM,
    NOTES_BOARD_STATEMENTS
};

enum notes_needle_kind {
    NOTES_NEEDLE_TEXT = 0, /* a text as it is */
    NOTES_NEEDLE_WHOLE,    /* a query of several words */
    NOTES_NEEDLE_WORD,     /* a word or a similar one */
    NOTES_NEEDLE_STEM,     /* any word with this stem */
};

/* The class of a note for a text, best first; 0: it does not have it. Of NOTES_NEEDLE_WORD it
 * is the score + 1. */
enum notes_mark { NOTES_MARK_NONE = 0, NOTES_MARK_TITLE, NOTES_MARK_HEADING, NOTES_MARK_BODY };

struct notes_needle {
    struct notes_needle *next; /* used less recently */
    enum notes_needle_kind kind;
    int64_t seq;    /* of the last change that is in it */
    uint8_t *marks; /* by id */
    size_t size;
    struct ng_str text;
};

struct notes_board_change {
    int64_t seq;
    size_t note;
};

struct notes_board {
    struct notes_kept kept; /* the first member */
    sqlite3 *db;
    struct notes_summary summary;
    sqlite3_stmt *statements[NOTES_BOARD_STATEMENTS];
    bool known;        /* the members below are those of seq */
    int64_t seq;       /* of the last change that is in them */
    uint32_t *order;   /* ids: newest first, then by path */
    size_t count, cap; /* of order */
    int64_t *modified; /* by id; INT64_MIN: there is no such note */
    size_t size;       /* ids are below it */
    /* The changes up to seq that are remembered: all of those after `since`, a note once. */
    struct notes_board_change changes[NOTES_BOARD_CHANGES_MAX];
    size_t change_count;
    int64_t since;
    struct notes_needle *needles; /* used most recently first */
    size_t needle_count;
};

/* All functions return an SQLite code. */

/* The board of the search's connection, as of the search's transaction. With too many notes
 * only its statements can be used: then `known` is false. */
int notes_board_open(struct notes_search *search);

/* The marks of a text; for NOTES_NEEDLE_WHOLE, search->needles are those of its words. They
 * stay until the next call. */
int notes_needle_get(struct notes_search *search, enum notes_needle_kind kind,
                     struct ng_str text, struct notes_needle **ret);
void notes_needles_drop(struct notes_board *board);

#endif
