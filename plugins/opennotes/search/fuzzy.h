/* SPDX-License-Identifier: MIT */
/* fuzzy.h - notes with words that are similar to those of a query. */
#ifndef OPENNOTES_FUZZY_H
#define OPENNOTES_FUZZY_H

#include <sqlite3.h>

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
/* Are they forms of one English word? They match as if they were within the edits. */
bool notes_fuzzy_same_stem(struct ng_str a, struct ng_str b);

/* The words of a text as the index splits them: runs of letters, marks and digits, at most
 * `max`. Returns their number. */
size_t notes_fuzzy_split(struct ng_str text, struct ng_str *words, size_t max);

/* Looks up the words, folded: adds the notes that have all of them to `json`, an object of
 * their scores by their ids. Lower is better: 0 is every word exactly in the title. An SQLite
 * code. */
int notes_fuzzy_find(sqlite3 *db, const struct ng_str *words, size_t count, struct buf *json);

/* Looks up one word: marks[id] becomes the note's score + 1; 0 stays where it has no such word.
 * Ids from `size` on are left out. An SQLite code. */
int notes_fuzzy_marks(sqlite3 *db, struct ng_str word, uint8_t *marks, size_t size);
/* The same for one note: its mark. */
uint8_t notes_fuzzy_mark(struct ng_str word, struct ng_str title, struct ng_str body);

#endif
