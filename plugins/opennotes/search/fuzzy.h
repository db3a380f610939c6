/* SPDX-License-Identifier: MIT */
/* fuzzy.h - notes with words that are written almost like those of a query. */
#ifndef OPENNOTES_FUZZY_H
#define OPENNOTES_FUZZY_H

#include <sqlite3.h>

#include "core/base/hash_table.h"
#include "text/text.h"

#define NOTES_FUZZY_WORDS_MAX 16 /* words of a query; the rest is left out */
#define NOTES_FUZZY_LETTERS_MAX                                                                \
    64 /* longer words are looked for exactly and as a beginning                               \
        */

/* How a word of a note matches one of the query, best first. */
enum notes_fuzzy_class {
    NOTES_FUZZY_EXACT = 0,
    NOTES_FUZZY_PREFIX = 1, /* it begins with it */
    NOTES_FUZZY_EDITS = 2,
    NOTES_FUZZY_NONE = 3
};

/* Edits that a word of so many letters may be off: none, 1 from 3, 2 from 6. */
unsigned notes_fuzzy_edits(size_t letters);
/* Insertions, deletions, substitutions and swaps of neighbours between two words, each letter
 * edited once; most + 1 where there are more than `most`. Of characters, in valid UTF-8. */
unsigned notes_fuzzy_distance(struct ng_str a, struct ng_str b, unsigned most);
enum notes_fuzzy_class notes_fuzzy_match(struct ng_str query, struct ng_str word);
size_t notes_fuzzy_letters(struct ng_str word);

/* The words of a text as the index takes them: runs of letters, marks and digits, at most
 * `max`. How many. */
size_t notes_fuzzy_split(struct ng_str text, struct ng_str *words, size_t max);

/* A note that has all words. */
struct notes_fuzzy_hit {
    struct hash_link link;
    int64_t note;
    uint32_t score; /* the less the better: 0 is every word exactly in the title */
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
