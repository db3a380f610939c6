/* SPDX-License-Identifier: MIT */
/* fuzzy_word.h - the words of a notebook that are near one word. */
#ifndef OPENNOTES_FUZZY_WORD_H
#define OPENNOTES_FUZZY_WORD_H

#include "fuzzy.h"

struct notes_fuzzy_words {
    struct arena arena;
    struct ng_str *words; /* malloc'd; texts in the arena */
    size_t count, room;
};

/* All words of the vocabulary within the edits of this one, or with its stem, but not itself.
 * An SQLite code; done in any case. */
int notes_fuzzy_similar(sqlite3 *db, struct ng_str word, struct notes_fuzzy_words *ret);
void notes_fuzzy_words_done(struct notes_fuzzy_words *words);

#endif
