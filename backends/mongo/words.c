/* SPDX-License-Identifier: MIT */
/* words.c - words of a text, folded, and what a search asks of them. */
#include "words.h"

#include <utf8proc.h>

/* Words longer than this are compared by their beginning. */
#define WORD_BYTES_MAX 512

static bool is_ascii_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_word_category(utf8proc_category_t category)
{
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
           category == UTF8PROC_CATEGORY_CO;
}

/* Length of the word character at the place; 0: none there, *ret_step moves over it. */
static size_t word_char(struct ng_str text, size_t at, size_t *ret_step)
{
    unsigned char c = (unsigned char)text.data[at];
    *ret_step = 1;
    if (c < 0x80) {
        return is_ascii_word(c) ? 1 : 0;
    }
    utf8proc_int32_t code = 0;
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)text.data + at,
                                            (utf8proc_ssize_t)(text.len - at), &code);
    if (len <= 0) {
        return 0;
    }
    *ret_step = (size_t)len;
    return is_word_category(utf8proc_category(code)) ? (size_t)len : 0;
}

bool word_next(struct ng_str text, size_t *at, struct ng_str *ret)
{
    size_t step = 0;
    size_t i = *at;
    while (i < text.len && word_char(text, i, &step) == 0) {
        i += step;
    }
    size_t from = i;
    while (i < text.len && word_char(text, i, &step) > 0) {
        i += step;
    }
    *at = i;
    *ret = str_of(text.data + from, i - from);
    return i > from;
}

int word_fold(struct ng_str word, struct bytes *ret)
{
    bool ascii = true;
    word.len = word.len < WORD_BYTES_MAX ? word.len : WORD_BYTES_MAX;
    int rc = bytes_set(ret, word);
    for (size_t i = 0; i < ret->len && rc == NG_OK; i++) {
        unsigned char c = (unsigned char)ret->data[i];
        ascii = ascii && c < 0x80;
        ret->data[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (rc != NG_OK || ascii) {
        return rc;
    }
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t len =
        utf8proc_map((const utf8proc_uint8_t *)word.data, (utf8proc_ssize_t)word.len, &folded,
                     UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK |
                         UTF8PROC_CASEFOLD | UTF8PROC_COMPAT);
    if (len >= 0) {
        rc = bytes_set(ret, str_of((const char *)folded, (size_t)len));
    }
    free(folded);
    return rc;
}

/* ---- what is asked for ---- */

static bool is_space(char c)
{
    return (unsigned char)c <= ' ';
}

/* The next word or "phrase" of the text. */
static bool next_phrase(struct ng_str text, size_t *at, struct ng_str *ret, bool *ret_star)
{
    size_t i = *at;
    while (i < text.len && is_space(text.data[i])) {
        i++;
    }
    if (i >= text.len) {
        return false;
    }
    bool quoted = text.data[i] == '"';
    size_t from = quoted ? i + 1 : i;
    size_t to = from;
    while (to < text.len &&
           (quoted ? text.data[to] != '"' : !is_space(text.data[to]) && text.data[to] != '"')) {
        to++;
    }
    size_t end = quoted && to < text.len ? to + 1 : to;
    *ret_star = quoted && end < text.len && text.data[end] == '*';
    end += *ret_star ? 1 : 0;
    if (!quoted && to > from && text.data[to - 1] == '*') {
        *ret_star = true;
    }
    *ret = str_of(text.data + from, to - from);
    *at = end;
    return true;
}

static int phrase_fill(struct phrase *phrase, struct ng_str text)
{
    struct ng_str word;
    size_t at = 0;
    int rc = NG_OK;
    while (rc == NG_OK && phrase->count < PHRASE_WORDS_MAX && word_next(text, &at, &word)) {
        rc = word_fold(word, &phrase->words[phrase->count++]);
    }
    return rc;
}

int wanted_parse(struct ng_call *call, struct ng_str text, struct wanted *ret)
{
    struct ng_str piece;
    bool star = false;
    size_t at = 0;
    memset(ret, 0, sizeof(*ret));
    if (text.len > SEARCH_BYTES_MAX) {
        return ng_fail(call, NG_ETOOLARGE, "the search text has %zu bytes, the most are %d",
                       text.len, SEARCH_BYTES_MAX);
    }
    while (next_phrase(text, &at, &piece, &star)) {
        if (ret->count == PHRASES_MAX) {
            return ng_fail(call, NG_ETOOLARGE, "the search text has more than %d words",
                           PHRASES_MAX);
        }
        struct phrase *grown = realloc(ret->phrases, (ret->count + 1) * sizeof(*ret->phrases));
        if (grown == NULL) {
            return ng_fail(call, NG_EINTERNAL, "no memory for the search");
        }
        ret->phrases = grown;
        struct phrase *phrase = &ret->phrases[ret->count];
        memset(phrase, 0, sizeof(*phrase));
        phrase->star = star;
        ret->count++;
        if (phrase_fill(phrase, piece) != NG_OK) {
            return ng_fail(call, NG_EINTERNAL, "no memory for the search");
        }
        if (phrase->count == 0) {
            ret->count--; /* signs only: asks for nothing */
        }
    }
    return NG_OK;
}

void wanted_done(struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        for (size_t j = 0; j < wanted->phrases[i].count; j++) {
            bytes_done(&wanted->phrases[i].words[j]);
        }
    }
    free(wanted->phrases);
    memset(wanted, 0, sizeof(*wanted));
}

/* ---- counting ---- */

static bool word_is(const struct phrase *phrase, size_t i, struct ng_str word)
{
    struct ng_str asked = bytes_str(&phrase->words[i]);
    if (phrase->star && i + 1 == phrase->count) {
        return word.len >= asked.len && memcmp(word.data, asked.data, asked.len) == 0;
    }
    return str_same(word, asked);
}

/* Bit i of reached[p]: the words before this one were words 0 to i of phrase p. */
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
    return (kept >> (phrase->count - 1) & 1) != 0;
}

size_t wanted_count(const struct wanted *wanted, struct ng_str text, uint32_t *hits,
                    size_t *ret_first)
{
    uint64_t reached[PHRASES_MAX] = {0};
    struct bytes folded = {0};
    struct ng_str word;
    size_t at = 0;
    size_t words = 0;
    *ret_first = SIZE_MAX;
    while (word_next(text, &at, &word) && word_fold(word, &folded) == NG_OK) {
        words++;
        for (size_t i = 0; i < wanted->count; i++) {
            if (phrase_step(&wanted->phrases[i], bytes_str(&folded), &reached[i])) {
                hits[i]++;
                if (*ret_first == SIZE_MAX) {
                    *ret_first = (size_t)(word.data - text.data);
                }
            }
        }
    }
    bytes_done(&folded);
    return words;
}
