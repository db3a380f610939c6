/* SPDX-License-Identifier: MIT */
/* str.h - small helpers over struct ng_str: comparing, nearest name, UTF-8, hashing. */
#ifndef NOTEGATE_CORE_STR_H
#define NOTEGATE_CORE_STR_H

#include <endian.h>
#include <string.h>

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

static inline bool str_is(struct ng_str a, const char *text)
{
    return str_equal(a, ng_str_of(text));
}

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

/* Bytes of `text` are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool str_utf8_valid(struct ng_str text);
/* Characters (code points) in valid UTF-8. */
size_t str_utf8_count(struct ng_str text);
/* The longest beginning of `text` of at most `bytes` bytes that ends between characters. */
struct ng_str str_utf8_cut(struct ng_str text, size_t bytes);
/* Without the blanks and tabs around it. */
struct ng_str str_trim(struct ng_str text);
/* <0, 0, >0 by bytes. */
int str_compare(struct ng_str a, struct ng_str b);
/* 64-bit hash for tables in memory (seeded per process; never stored). */
uint64_t str_hash(struct ng_str text);
/* Is `word` one of the space-separated words of `words` (NULL: no). */
bool str_in_words(struct ng_str word, const char *words);
/* How far `a` is from `b` in edits (two swapped letters are one), case folded (ASCII); SIZE_MAX
 * when over `most`. */
size_t str_distance(struct ng_str a, struct ng_str b, size_t most);

#endif
