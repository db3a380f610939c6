/* SPDX-License-Identifier: MIT */
/* stem.c - Porter's stemmer (An algorithm for suffix stripping, 1980) for English words. */
#include "stem.h"

#include <string.h>

#include "core/base/str.h"

/* Shorter words are their own stems. */
#define STEM_LETTERS_MIN 3

struct stem {
    char *word;
    size_t len;
};

struct rule {
    const char *suffix, *instead;
};

static bool consonant(const struct stem *stem, size_t i)
{
    switch (stem->word[i]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u':
        return false;
    case 'y':
        return i == 0 || !consonant(stem, i - 1);
    default:
        return true;
    }
}

/* Porter's measure: how often a vowel is followed by a consonant in the first `len` letters. */
static size_t measure(const struct stem *stem, size_t len)
{
    size_t count = 0;
    for (size_t i = 1; i < len; i++) {
        count += consonant(stem, i) && !consonant(stem, i - 1);
    }
    return count;
}

static bool has_vowel(const struct stem *stem, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!consonant(stem, i)) {
            return true;
        }
    }
    return false;
}

static bool doubled(const struct stem *stem)
{
    size_t len = stem->len;
    return len >= 2 && stem->word[len - 1] == stem->word[len - 2] && consonant(stem, len - 1);
}

/* Consonant, vowel, consonant at the end of the first `len` letters, the last not w, x, y. */
static bool closed(const struct stem *stem, size_t len)
{
    return len >= 3 && consonant(stem, len - 1) && !consonant(stem, len - 2) &&
           consonant(stem, len - 3) && strchr("wxy", stem->word[len - 1]) == NULL;
}

/* *ret_rest: the length without the suffix. */
static bool ends(const struct stem *stem, const char *suffix, size_t *ret_rest)
{
    size_t len = strlen(suffix);
    if (len >= stem->len || memcmp(stem->word + stem->len - len, suffix, len) != 0) {
        return false;
    }
    *ret_rest = stem->len - len;
    return true;
}

/* `instead` is never longer than what it replaces. */
static void put(struct stem *stem, size_t rest, const char *instead)
{
    size_t len = strlen(instead);
    memcpy(stem->word + rest, instead, len);
    stem->len = rest + len;
}

/* Applies the first rule whose suffix matches, if the measure before it is above `above`. */
static void apply(struct stem *stem, const struct rule *rules, size_t count, size_t above)
{
    size_t rest = 0;
    for (size_t i = 0; i < count; i++) {
        if (ends(stem, rules[i].suffix, &rest)) {
            if (measure(stem, rest) > above) {
                put(stem, rest, rules[i].instead);
            }
            return;
        }
    }
}

static void plurals(struct stem *stem)
{
    size_t rest = 0;
    if (ends(stem, "sses", &rest) || ends(stem, "ies", &rest)) {
        stem->len -= 2;
    } else if (stem->word[stem->len - 1] == 's' && stem->word[stem->len - 2] != 's') {
        stem->len--;
    }
}

/* eed, ed, ing */
static void tenses(struct stem *stem)
{
    size_t rest = 0;
    if (ends(stem, "eed", &rest)) {
        stem->len -= measure(stem, rest) > 0;
        return;
    }
    if (!((ends(stem, "ed", &rest) || ends(stem, "ing", &rest)) && has_vowel(stem, rest))) {
        return;
    }
    stem->len = rest;
    if (ends(stem, "at", &rest) || ends(stem, "bl", &rest) || ends(stem, "iz", &rest) ||
        (measure(stem, stem->len) == 1 && closed(stem, stem->len))) {
        stem->word[stem->len++] = 'e'; /* in place of the removed suffix */
    } else if (doubled(stem) && strchr("lsz", stem->word[stem->len - 1]) == NULL) {
        stem->len--;
    }
}

static void suffixes(struct stem *stem)
{
    static const struct rule twice[] = {
        {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
        {"izer", "ize"},    {"abli", "able"},   {"alli", "al"},     {"entli", "ent"},
        {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
        {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
        {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
    };
    static const struct rule once[] = {
        {"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
        {"ical", "ic"},  {"ful", ""},   {"ness", ""},
    };
    static const struct rule last[] = {
        {"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
        {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
        {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""},
    };
    apply(stem, twice, NG_COUNT(twice), 0);
    apply(stem, once, NG_COUNT(once), 0);
    size_t rest = 0;
    if (!ends(stem, "ion", &rest)) {
        apply(stem, last, NG_COUNT(last), 1);
    } else if (measure(stem, rest) > 1 && strchr("st", stem->word[rest - 1]) != NULL) {
        stem->len = rest;
    }
}

static void endings(struct stem *stem)
{
    size_t rest = stem->len - 1;
    if (stem->word[rest] == 'e') {
        size_t before = measure(stem, rest);
        if (before > 1 || (before == 1 && !closed(stem, rest))) {
            stem->len = rest;
        }
    }
    if (doubled(stem) && stem->word[stem->len - 1] == 'l' && measure(stem, stem->len - 1) > 1) {
        stem->len--;
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
size_t word_stem(char *word, size_t len)
{
    struct stem stem = {word, len};
    size_t rest = 0;
    for (size_t i = 0; i < len; i++) {
        if (word[i] < 'a' || word[i] > 'z') {
            return len;
        }
    }
    if (len < STEM_LETTERS_MIN) {
        return len;
    }
    plurals(&stem);
    tenses(&stem);
    if (ends(&stem, "y", &rest) && has_vowel(&stem, rest)) {
        stem.word[rest] = 'i';
    }
    suffixes(&stem);
    endings(&stem);
    return stem.len;
}
