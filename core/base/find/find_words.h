/* SPDX-License-Identifier: MIT */
/* find_words.h - the words of a query, in any case, as parts of a text. */
#ifndef NOTEGATE_CORE_FIND_WORDS_H
#define NOTEGATE_CORE_FIND_WORDS_H

#include "core/base/buf.h"

/* Words of one query; further ones are ignored. */
#define FIND_WORDS_MAX 32
/* Bytes of a query, and of a text. */
#define FIND_QUERY_MAX ((size_t)64 * 1024)
#define FIND_TEXT_MAX ((size_t)16 * 1024 * 1024)
/* Bytes of an excerpt. */
#define FIND_EXCERPT_MAX ((size_t)200)

/* Zeroed: no words. */
struct find_words {
    struct buf query, text;              /* folded */
    struct ng_str words[FIND_WORDS_MAX]; /* of the query */
    size_t count;
};

/* A place in a text. */
struct find_place {
    uint64_t line;         /* from 1; 0: none of the words is there */
    struct ng_str excerpt; /* of that line, in the text */
};

/* Words are separated by white space; quotes and a final `*` are left out. NG_EINTERNAL: out of
 * memory; NG_ETOOLARGE: over FIND_QUERY_MAX. find_words_done() is due in any case. */
int find_words_open(struct find_words *words, struct ng_str query);
void find_words_done(struct find_words *words);

/* *ret_found: does the text have all the words? Then *ret_place is the first line with the most
 * of them. Text: valid UTF-8. NG_EINTERNAL: out of memory; NG_ETOOLARGE: over FIND_TEXT_MAX.
 * ret_place NULL: not wanted. */
int find_words_all(struct find_words *words, struct ng_str text, bool *ret_found,
                   struct find_place *ret_place);
/* The same place, of a text with some of the words. */
int find_words_place(struct find_words *words, struct ng_str text,
                     struct find_place *ret_place);

#endif
