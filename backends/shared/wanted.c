/* SPDX-License-Identifier: MIT */
/* wanted.c - parses the text of a search into phrases, and counts them in a text. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/array.h"
#include "core/base/str.h"
#include "words.h"

/* A Hiragana run of up to this many characters counts as grammar. */
#define GRAMMAR_CHARS_MAX 2

static bool is_space(char c)
{
    return (unsigned char)c <= ' ';
}

bool word_is_common(struct ng_str word)
{
    static const char *const common[] = {
        "a",     "about", "an",   "and",   "are",  "as",   "at",    "be",    "but",   "by",
        "can",   "could", "did",  "do",    "does", "for",  "from",  "had",   "has",   "have",
        "he",    "her",   "his",  "how",   "i",    "if",   "in",    "into",  "is",    "it",
        "its",   "me",    "my",   "not",   "of",   "on",   "or",    "our",   "she",   "so",
        "than",  "that",  "the",  "their", "them", "then", "there", "these", "they",  "this",
        "those", "to",    "was",  "we",    "were", "what", "when",  "where", "which", "who",
        "why",   "will",  "with", "would", "you",  "your",
    };
    for (size_t i = 0; i < NG_COUNT(common); i++) {
        if (strlen(common[i]) == word.len && strncasecmp(common[i], word.data, word.len) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- reading ---- */

struct parse {
    struct ng_call *call;
    struct wanted *wanted;
    struct phrase *phrase; /* the one that is filled */
};

static int no_memory(const struct parse *parse)
{
    return ng_fail(parse->call, NG_EINTERNAL, "no memory for the search");
}

static int add_phrase(struct parse *parse)
{
    struct wanted *wanted = parse->wanted;
    int rc = array_reserve((void **)&wanted->phrases, &wanted->cap, wanted->count + 1,
                           sizeof(*wanted->phrases), PHRASES_MAX);
    if (rc == NG_ETOOLARGE) {
        return ng_fail(parse->call, NG_ETOOLARGE, "the search text has more than %d words",
                       PHRASES_MAX);
    }
    if (rc != NG_OK) {
        return no_memory(parse);
    }
    parse->phrase = &wanted->phrases[wanted->count++];
    memset(parse->phrase, 0, sizeof(*parse->phrase));
    return NG_OK;
}

static int fill_token(void *user, const struct token *token)
{
    const struct parse *parse = user;
    struct phrase *phrase = parse->phrase;
    struct arena *memory = &parse->wanted->memory;
    char stem[WORD_BYTES_MAX];
    if (phrase->count == PHRASE_WORDS_MAX) {
        return NG_OK;
    }
    phrase->words[phrase->count++] = arena_copy(memory, token->text);
    /* A phrase is matched by its words only; a single word also by its stem. */
    phrase->stem = str_make(NULL, 0);
    if (phrase->count == 1) {
        phrase->stem = arena_copy(memory, token_stem(token->text, stem));
    }
    return NG_OK;
}

/* Is it one character of a script by pairs? */
static bool is_half(struct ng_str word)
{
    size_t at = 0;
    struct ng_str run;
    enum script script = SCRIPT_SPACED;
    return word_run(word, true, &at, &run, &script) && script != SCRIPT_SPACED &&
           word_step(word, 0) == word.len;
}

/* Visits the words of one text. The second half of a pair is the first half of another pair. */
static int phrase_fill(struct parse *parse, struct ng_str text)
{
    struct phrase *phrase = parse->phrase;
    if (tokens_each(text, fill_token, parse) != NG_OK || parse->wanted->memory.failed) {
        return no_memory(parse);
    }
    if (phrase->count > 0 && is_half(phrase->words[phrase->count - 1])) {
        if (phrase->count > 1) {
            phrase->count--;
        } else {
            phrase->star = true;
        }
    }
    return NG_OK;
}

/* Adds one phrase with the words of a text. A text of signs alone adds none. */
static int want(struct parse *parse, struct ng_str text, bool star, bool quoted, bool grammar)
{
    int rc = add_phrase(parse);
    struct phrase *phrase = parse->phrase;
    if (rc != NG_OK || phrase == NULL) {
        return rc;
    }
    phrase->star = star;
    rc = phrase_fill(parse, text);
    if (rc != NG_OK || phrase->count == 0) {
        parse->wanted->count--;
        return rc;
    }
    if (quoted || phrase->star) {
        phrase->stem.len = 0;
    } else if (phrase->count == 1 && phrase->stem.len == 0) {
        phrase->stem = phrase->words[0]; /* a word that is its own stem is the stem of others */
    }
    phrase->weak = grammar || (!quoted && !phrase->star && phrase->count == 1 &&
                               word_is_common(phrase->words[0]));
    return NG_OK;
}

static size_t count_chars(struct ng_str text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; at += word_step(text, at)) {
        count++;
    }
    return count;
}

/* Adds a run of a script without spaces. A run of a script by pairs also adds each of its
 * pairs. */
static int want_run(struct parse *parse, struct ng_str run, enum script script, bool star)
{
    size_t chars = count_chars(run);
    int rc =
        want(parse, run, star, true, script == SCRIPT_HIRAGANA && chars <= GRAMMAR_CHARS_MAX);
    for (size_t at = 0; rc == NG_OK && script == SCRIPT_PAIRS && chars > 2;) {
        size_t step = word_step(run, at);
        if (at + step >= run.len) {
            break;
        }
        size_t len = step + word_step(run, at + step);
        rc = want(parse, str_of(run.data + at, len), false, true, false);
        at += step;
    }
    return rc;
}

/* Adds a piece between spaces: signs between its words make it a phrase, as in a path or a
 * number; each run of a script without spaces is a phrase of its own. */
static int want_piece(struct parse *parse, struct ng_str piece, bool star)
{
    const char *spaced = NULL;
    const char *spaced_end = NULL;
    struct ng_str run;
    enum script script = SCRIPT_SPACED;
    size_t at = 0;
    int rc = NG_OK;
    while (rc == NG_OK && word_run(piece, false, &at, &run, &script)) {
        if (script == SCRIPT_SPACED) {
            if (spaced == NULL) {
                spaced = run.data;
            }
            spaced_end = run.data + run.len;
            continue;
        }
        if (spaced != NULL) {
            rc =
                want(parse, str_of(spaced, (size_t)(spaced_end - spaced)), false, false, false);
            spaced = NULL;
        }
        if (rc == NG_OK) {
            rc = want_run(parse, run, script, star && at >= piece.len);
        }
    }
    if (rc == NG_OK && spaced != NULL) {
        rc = want(parse, str_of(spaced, (size_t)(spaced_end - spaced)), star, false, false);
    }
    return rc;
}

/* The next word or "phrase" of the text. */
static bool next_piece(struct ng_str text, size_t *at, struct ng_str *ret, bool *ret_quoted,
                       bool *ret_star)
{
    size_t i = *at;
    while (i < text.len && is_space(text.data[i])) {
        i++;
    }
    if (i >= text.len) {
        return false;
    }
    bool quoted = text.data[i] == '"';
    size_t from = i;
    if (quoted) {
        from = i + 1;
    }
    size_t to = from;
    while (to < text.len && text.data[to] != '"' && (quoted || !is_space(text.data[to]))) {
        to++;
    }
    size_t end = to;
    if (quoted && to < text.len) {
        end = to + 1;
    }
    *ret_star = quoted && end < text.len && text.data[end] == '*';
    end += *ret_star;
    if (!quoted && to > from && text.data[to - 1] == '*') {
        *ret_star = true;
    }
    *ret = str_of(text.data + from, to - from);
    *ret_quoted = quoted;
    *at = end;
    return true;
}

/* Stop words count only if there are no other words. */
static void drop_weak(struct wanted *wanted)
{
    size_t strong = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        strong += !wanted->phrases[i].weak;
    }
    if (strong == 0) {
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        if (!wanted->phrases[i].weak) {
            wanted->phrases[kept++] = wanted->phrases[i];
        }
    }
    wanted->count = kept;
}

int wanted_parse(struct ng_call *call, struct ng_str text, struct wanted *ret)
{
    struct parse parse = {call, ret, NULL};
    struct ng_str piece;
    bool star = false;
    bool quoted = false;
    size_t at = 0;
    int rc = NG_OK;
    memset(ret, 0, sizeof(*ret));
    if (text.len > SEARCH_BYTES_MAX) {
        return ng_fail(call, NG_ETOOLARGE, "the search text has %zu bytes; the maximum is %d",
                       text.len, SEARCH_BYTES_MAX);
    }
    while (rc == NG_OK && next_piece(text, &at, &piece, &quoted, &star)) {
        if (quoted) {
            rc = want(&parse, piece, star, true, false);
        } else {
            rc = want_piece(&parse, piece, star);
        }
    }
    if (rc == NG_OK) {
        drop_weak(ret);
    }
    return rc;
}

void wanted_done(struct wanted *wanted)
{
    arena_done(&wanted->memory);
    free(wanted->phrases);
    memset(wanted, 0, sizeof(*wanted));
}

/* ---- counting ---- */

struct count {
    const struct wanted *wanted;
    struct found *found;
    uint64_t reached[PHRASES_MAX]; /* bit i: the last words were words 0 to i of the phrase */
    size_t words, first_exact, first_stem;
};

static bool word_is(const struct phrase *phrase, size_t i, struct ng_str word)
{
    struct ng_str asked = phrase->words[i];
    if (phrase->star && i + 1 == phrase->count) {
        return word.len >= asked.len && memcmp(word.data, asked.data, asked.len) == 0;
    }
    return str_equal(word, asked);
}

static bool phrase_step(const struct phrase *phrase, struct ng_str word, uint64_t *reached)
{
    uint64_t next = (*reached << 1) | 1;
    uint64_t kept = 0;
    for (size_t i = 0; i < phrase->count; i++) {
        if ((next >> i & 1) != 0 && word_is(phrase, i, word)) {
            kept |= UINT64_C(1) << i;
        }
    }
    *reached = kept;
    return phrase->count > 0 && (kept >> (phrase->count - 1) & 1) != 0;
}

/* A word begins as its stem does: most words need not be stemmed. */
static bool is_form(struct ng_str stem, struct ng_str word)
{
    char buf[WORD_BYTES_MAX];
    if (stem.len == 0 || word.len < stem.len || word.data[0] != stem.data[0]) {
        return false;
    }
    return str_equal(stem, word) || str_equal(stem, token_stem(word, buf));
}

static int count_token(void *user, const struct token *token)
{
    struct count *count = user;
    count->words++;
    for (size_t i = 0; i < count->wanted->count; i++) {
        const struct phrase *phrase = &count->wanted->phrases[i];
        if (phrase_step(phrase, token->text, &count->reached[i])) {
            count->found[i].exact++;
            if (count->first_exact == SIZE_MAX) {
                count->first_exact = token->from;
            }
        } else if (is_form(phrase->stem, token->text)) {
            count->found[i].stems++;
            if (count->first_stem == SIZE_MAX) {
                count->first_stem = token->from;
            }
        }
    }
    return 0;
}

size_t wanted_count(const struct wanted *wanted, struct ng_str text, struct found *found)
{
    struct count count = {
        .wanted = wanted, .found = found, .first_exact = SIZE_MAX, .first_stem = SIZE_MAX};
    (void)tokens_each(text, count_token, &count);
    return count.words;
}

/* Result of first_token() that stops. */
#define FOUND 1

static int first_token(void *user, const struct token *token)
{
    const struct count *count = user;
    (void)count_token(user, token);
    if (count->first_exact != SIZE_MAX) {
        return FOUND;
    }
    return 0;
}

int wanted_first(const struct wanted *wanted, struct ng_str text, size_t *ret)
{
    struct found found[PHRASES_MAX] = {0};
    struct count count = {
        .wanted = wanted, .found = found, .first_exact = SIZE_MAX, .first_stem = SIZE_MAX};
    int rc = tokens_each(text, first_token, &count);
    *ret = count.first_stem;
    if (rc == FOUND) {
        *ret = count.first_exact;
        rc = NG_OK;
    }
    return rc;
}

double wanted_rank(size_t phrases, size_t found, size_t exact, double weight)
{
    if (found == 0) {
        return 0;
    }
    double all = (double)phrases + 1;
    double part = 0;
    if (weight > 0) {
        part = weight / (weight + 1);
    }
    return ((double)found + ((double)exact + part) / all) / all;
}
