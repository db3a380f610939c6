/* SPDX-License-Identifier: MIT */
/* words.h - the words of a text for searches: folded, with their stems; scripts without spaces
 * between words are cut into pairs of characters. Compiled into each backend. */
#ifndef NOTEGATE_BACKENDS_WORDS_H
#define NOTEGATE_BACKENDS_WORDS_H

#include "bytes.h"
#include "core/base/arena.h"

/* Longer words are compared by their first bytes. */
#define WORD_BYTES_MAX 512

/* The kind of script of a run. */
enum script {
    SCRIPT_SPACED,   /* words are separated by spaces */
    SCRIPT_PAIRS,    /* Han, Hangul: any two characters may be a word */
    SCRIPT_KATAKANA, /* a run is a word */
    SCRIPT_HIRAGANA, /* a short run is grammar */
    SCRIPT_JOINED,   /* Thai and similar scripts: a run is several words without a separator */
};

/* The next run of word characters at or after *at, which moves behind it: of one script, or
 * with `joined` of all scripts without spaces together. false: none. */
bool word_run(struct ng_str text, bool joined, size_t *at, struct ng_str *ret,
              enum script *ret_script);
/* Folds case and accents; of scripts by pairs only widths. */
int word_fold(struct ng_str word, enum script script, struct bytes *ret);
/* Bytes of the character at the position; at least 1. */
size_t word_step(struct ng_str text, size_t at);

/* A token of the text. Borrowed for the callback. */
struct token {
    struct ng_str text; /* folded */
    size_t from, to;    /* in the text */
};

/* Not 0: stop. */
typedef int token_fn(void *user, const struct token *token);

/* Calls `fn` for each token. A run by pairs has a token of two characters at each position, and
 * of one at the last. Returns the result of a callback that stopped it, NG_EINTERNAL without
 * memory, else 0. */
int tokens_each(struct ng_str text, token_fn *fn, void *user);

/* The start of token number `count` of the text; SIZE_MAX: it has fewer tokens. NG_EINTERNAL:
 * no memory. */
int tokens_skip(struct ng_str text, size_t count, size_t *ret);

/* The stem of a token in `buf`, of WORD_BYTES_MAX; {NULL, 0} if it is the token itself. */
struct ng_str token_stem(struct ng_str token, char *buf);

/* ---- what a search asks for ---- */

/* Limits: words of one phrase, phrases of one search, bytes of its text. */
#define PHRASE_WORDS_MAX 64
#define PHRASES_MAX 256
#define SEARCH_BYTES_MAX 65536

/* A phrase of a search. It matches by its words, or by the stem of a single word. */
struct phrase {
    struct ng_str words[PHRASE_WORDS_MAX]; /* folded */
    size_t count;
    struct ng_str stem; /* empty: matches by its words only */
    bool star;          /* the last word is a prefix */
    bool weak;          /* a stop word */
};

struct wanted {
    struct phrase *phrases;
    size_t count, cap;
    struct arena memory; /* of their texts */
};

/* Parses a search: any of the words and "phrases" of a text. Stop words are left out beside
 * others. A count of 0: nothing can be found. */
int wanted_parse(struct ng_call *call, struct ng_str text, struct wanted *ret);
void wanted_done(struct wanted *wanted);

/* Is it an English stop word, without regard to ASCII case? */
bool word_is_common(struct ng_str word);

/* The occurrences of a phrase in a text. */
struct found {
    uint32_t exact, stems;
};

/* Adds to found[], one for each phrase. Returns the number of words. */
size_t wanted_count(const struct wanted *wanted, struct ng_str text, struct found *found);

/* The position of the first exact hit, else of the first hit by a stem; SIZE_MAX: none.
 * NG_EINTERNAL: no memory. */
int wanted_first(const struct wanted *wanted, struct ng_str text, size_t *ret);

/* Bytes at the beginning of a text in which a hit is looked for. */
#define EXCERPT_BYTES_MAX ((size_t)256 * 1024)
/* A part of the text around a place, of at most so many characters, with an ellipsis at each
 * cut. NG_EINTERNAL: no memory. */
int excerpt_cut(struct ng_str text, size_t place, uint32_t chars, struct bytes *ret);
/* The part around the first hit; empty: there is none. */
int excerpt_make(const struct wanted *wanted, struct ng_str text, uint32_t chars,
                 struct bytes *ret);

/* A rank between 0 and 1: first by the number of matching phrases, then by the number of exact
 * matches, then by `weight` of at least 0. 0: no match. */
double wanted_rank(size_t phrases, size_t found, size_t exact, double weight);

#endif
