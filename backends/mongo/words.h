/* SPDX-License-Identifier: MIT */
/* words.h - words of a text, folded, and what a search asks of them. */
#ifndef NOTEGATE_MONGO_WORDS_H
#define NOTEGATE_MONGO_WORDS_H

#include "db.h"

/* Words of one phrase, and phrases of one search. */
#define PHRASE_WORDS_MAX 64
#define PHRASES_MAX 256
#define SEARCH_BYTES_MAX 65536

struct phrase {
    struct bytes words[PHRASE_WORDS_MAX]; /* folded */
    size_t count;
    bool star; /* the last one is a prefix */
};

struct wanted {
    struct phrase *phrases;
    size_t count;
};

/* The next word at or after *at, which moves behind it. false: none. */
bool word_next(struct ng_str text, size_t *at, struct ng_str *ret);
/* Case and accents gone. */
int word_fold(struct ng_str word, struct bytes *ret);
/* What the text of a search asks for. A count of 0: nothing that could be found. */
int wanted_parse(struct ng_call *call, struct ng_str text, struct wanted *ret);
void wanted_done(struct wanted *wanted);

/* How often each phrase occurs in a text: adds to hits[], one for each phrase. Returns the
 * number of words; *ret_first: where the first hit begins, SIZE_MAX if there is none. */
size_t wanted_count(const struct wanted *wanted, struct ng_str text, uint32_t *hits,
                    size_t *ret_first);

#endif
