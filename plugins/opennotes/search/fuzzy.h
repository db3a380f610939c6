/* SPDX-License-Identifier: MIT */
/* fuzzy.h - notes with words that are similar to those of a query. */
#ifndef OPENNOTES_FUZZY_H
#define OPENNOTES_FUZZY_H

#include <sqlite3.h>

#include "core/base/hash_table.h"
#include "text/text.h"

#define NOTES_FUZZY_WORDS_MAX 16 /* words of a query; more are ignored */
/* Longer words match exactly and as a prefix. */
#define NOTES_FUZZY_LETTERS_MAX 64

/* Kinds of matches between a word of a note and one of the query, best first. */
enum notes_fuzzy_class {
    NOTES_FUZZY_EXACT = 0,
    NOTES_FUZZY_PREFIX = 1, /* the note's word begins with the query's */
    NOTES_FUZZY_EDITS = 2,
    NOTES_FUZZY_NONE = 3
};

/* Allowed edits for a word of so many letters: none, 1 from 3, 2 from 6. */
unsigned notes_fuzzy_edits(size_t letters);
/* Insertions, deletions, substitutions and swaps of neighbours between two words, each letter
 * edited once; most + 1 if there are more than `most`. By characters, of valid UTF-8. */
unsigned notes_fuzzy_distance(struct ng_str a, struct ng_str b, unsigned most);
enum notes_fuzzy_class notes_fuzzy_match(struct ng_str query, struct ng_str word);
size_t notes_fuzzy_letters(struct ng_str word);

/* The words of a text as the index splits them: runs of letters, marks and digits, at most
 * `max`. Returns their number. */
size_t notes_fuzzy_split(struct ng_str text, struct ng_str *words, size_t max);

/* A note that has all words. */
struct notes_fuzzy_hit {
    struct hash_link link;
    int64_t note;
    uint32_t score; /* lower is better: 0 is every word exactly in the title */
    uint32_t words; /* how many it has so far */
    uint32_t seen;  /* the word that was counted last, from 1 */
};

struct notes_fuzzy {
    struct arena arena;
    struct hash_table table;
    struct notes_fuzzy_hit **hits; /* those with all words, in no order */
    size_t count;
};

/* Looks up the words, folded. An SQLite code. notes_fuzzy_done() in any case. */
int notes_fuzzy_find(struct notes_fuzzy *fuzzy, sqlite3 *db, const struct ng_str *words,
                     size_t count);
void notes_fuzzy_done(struct notes_fuzzy *fuzzy);

#endif
