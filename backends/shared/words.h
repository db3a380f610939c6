/* SPDX-License-Identifier: MIT */
/* words.h - the words of a text as searches know them: folded, with their stems; scripts that
 * put no space between words by pairs of characters. Compiled into each backend. */
#ifndef NOTEGATE_BACKENDS_WORDS_H
#define NOTEGATE_BACKENDS_WORDS_H

#include "bytes.h"

/* Words longer than this are compared by their beginning. */
#define WORD_BYTES_MAX 512

/* How the characters of a run are written. */
enum script {
    SCRIPT_SPACED,   /* words stand between spaces */
    SCRIPT_PAIRS,    /* Han, Hangul: any two characters may be a word */
    SCRIPT_KATAKANA, /* a run is a word */
    SCRIPT_HIRAGANA, /* a short run is grammar */
    SCRIPT_JOINED,   /* Thai and its neighbours: a run is words without a border */
};

/* The next run of word characters at or after *at, which moves behind it: of one script, or
 * with `joined` of all scripts that are kept by pairs. false: none. */
bool word_run(struct ng_str text, bool joined, size_t *at, struct ng_str *ret,
              enum script *ret_script);
/* Case and accents gone; of scripts by pairs only widths. */
int word_fold(struct ng_str word, enum script script, struct bytes *ret);
/* Bytes of the character at the place; at least 1. */
size_t word_step(struct ng_str text, size_t at);

/* A place of the text that searches look at. Lent for the callback. */
struct token {
    struct ng_str text; /* folded */
    struct ng_str stem; /* the stem where it differs from the text, else {NULL, 0} */
    size_t from, to;    /* in the text */
};

/* Not 0: stop. */
typedef int token_fn(void *user, const struct token *token);

/* Each token in turn. Of a run by pairs: two characters from each place on, at its last place
 * one. Returns what stopped it, NG_EINTERNAL without memory, else 0. */
int tokens_each(struct ng_str text, token_fn *fn, void *user);

/* Porter's stem of a folded word, in place. Returns its new length; words that are not English
 * letters throughout stay. */
size_t word_stem(char *word, size_t len);

/* ---- what a search asks for ---- */

/* Words of one phrase, and phrases of one search. */
#define PHRASE_WORDS_MAX 64
#define PHRASES_MAX 256
#define SEARCH_BYTES_MAX 65536

/* One thing to look for. It is there as it is, or by the stem of its only word. */
struct phrase {
    struct bytes words[PHRASE_WORDS_MAX]; /* folded */
    size_t count;
    struct bytes stem; /* empty: only as it is */
    bool star;         /* the last one is a prefix */
    bool weak;         /* of the words that stand in every text */
};

struct wanted {
    struct phrase *phrases;
    size_t count;
};

/* Asks for any of the words and "phrases" of a text. Words that stand in every text are left
 * out beside others. A count of 0: nothing that could be found. */
int wanted_parse(struct ng_call *call, struct ng_str text, struct wanted *ret);
void wanted_done(struct wanted *wanted);

/* Is it, but for ASCII's case, one of the words that nearly every English text has? */
bool word_is_common(struct ng_str word);

/* What a text has of each phrase. */
struct found {
    uint32_t exact, stems;
};

/* Adds to found[], one for each phrase. Returns the number of words; *ret_first: where the best
 * first hit begins, SIZE_MAX if there is none. */
size_t wanted_count(const struct wanted *wanted, struct ng_str text, struct found *found,
                    size_t *ret_first);

/* A rank between 0 and 1: first by how many phrases are there, then by how many as they are,
 * then by `weight` of at least 0. 0: none is there. */
double wanted_rank(size_t phrases, size_t found, size_t exact, double weight);

#endif
