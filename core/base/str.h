/* SPDX-License-Identifier: MIT */
/* str.h - small helpers over struct ng_str: comparing, searching, hashing for tables. */
#ifndef NOTEGATE_CORE_STR_H
#define NOTEGATE_CORE_STR_H

#include <endian.h>
#include <string.h>
#include <strings.h>

#include "minmax.h"
#include "notegate/abi.h"

static inline struct ng_str str_make(const char *data, size_t len)
{
    struct ng_str str = {data, len};
    return str;
}

static inline bool str_equal(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ASCII. */
static inline char str_lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        c = (char)(c + 32);
    }
    return c;
}

/* ASCII, all three. */
static inline bool str_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool str_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool str_is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static inline bool str_is(struct ng_str a, const char *text)
{
    return str_equal(a, ng_str_of(text));
}

/* The same in ASCII of either case: of header names and host names. */
static inline bool str_equal_fold(struct ng_str a, struct ng_str b)
{
    return a.len == b.len &&
           (a.len == 0 || (str_lower(a.data[a.len - 1]) == str_lower(b.data[a.len - 1]) &&
                           strncasecmp(a.data, b.data, a.len) == 0));
}

#define STR_NONE ((struct ng_str){NULL, 0})
#define STR_ONES UINT64_C(0x0101010101010101)

/* Marks those of eight bytes that are `byte` by their high bit. Only the lowest mark is to be
 * relied on, those above it may be wrong. */
static inline uint64_t str_word_mark(uint64_t word, unsigned char byte)
{
    uint64_t other = word ^ (STR_ONES * byte);
    return (other - STR_ONES) & ~other & (STR_ONES << 7);
}

/* Eight bytes, the first of them lowest. */
static inline uint64_t str_word(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

/* The place of the lowest mark among the eight bytes; there is one. */
static inline size_t str_word_first(uint64_t marks)
{
    return (size_t)__builtin_ctzll(marks) / 8;
}

/* Marks those of eight bytes that are no printable ASCII, or the quote or the backslash. As
 * above: only the lowest mark is to be relied on. */
static inline uint64_t str_word_unprintable(uint64_t word)
{
    uint64_t control = (word - STR_ONES * 0x20) & ~word;
    return (str_word_mark(word, '"') | str_word_mark(word, '\\') | control | word) &
           (STR_ONES << 7);
}

/* Does `text` begin with `start`? */
static inline bool str_starts(struct ng_str text, struct ng_str start)
{
    return text.len >= start.len &&
           (start.len == 0 || memcmp(text.data, start.data, start.len) == 0);
}

/* The text, or the fallback where it is empty or absent. */
static inline struct ng_str str_or(struct ng_str text, struct ng_str fallback)
{
    return text.len > 0 ? text : fallback;
}

/* Without the blanks and tabs around it. */
struct ng_str str_trim(struct ng_str text);

/* <0, 0, >0 by bytes. */
static inline int str_compare(struct ng_str a, struct ng_str b)
{
    size_t len = size_min(a.len, b.len);
    int order = 0;
    if (len > 0) {
        order = memcmp(a.data, b.data, len);
    }
    if (order == 0) {
        order = (a.len > b.len) - (a.len < b.len);
    }
    return order;
}

/* Copies the text to *at, which moves behind it: for a struct with room for its texts. An
 * absent text stays absent. */
static inline struct ng_str str_move_in(char **at, struct ng_str text)
{
    struct ng_str copy = {NULL, 0};
    if (text.data != NULL) {
        memcpy(*at, text.data, text.len);
        copy = str_make(*at, text.len);
        *at += text.len;
    }
    return copy;
}

/* 64-bit hash for tables in memory (seeded per process; never stored). */
uint64_t str_hash(struct ng_str text);
/* Is `word` one of the space-separated words of `words` (NULL: no). */
bool str_in_words(struct ng_str word, const char *words);
/* How `text` begins and ends. */
bool str_begins(struct ng_str text, const char *beginning);
bool str_ends(struct ng_str text, const char *ending);
/* A copy with a NUL behind it, to be freed. NULL: out of memory. */
char *str_dup(struct ng_str text);
/* A number of 1 to 19 plain digits. False: anything else, or more than `most`. */
bool str_number(struct ng_str text, uint64_t most, uint64_t *ret);
/* Place of the needle at or behind `from`; SIZE_MAX: none. An empty needle has no place. */
size_t str_find(struct ng_str text, struct ng_str needle, size_t from);
/* How often the byte is in the text. */
size_t str_count(struct ng_str text, char byte);

#endif
