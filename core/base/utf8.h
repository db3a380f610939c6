/* SPDX-License-Identifier: MIT */
/* utf8.h - UTF-8, checked and walked (Unicode standard, table 3-7): no surrogates, no overlong
 * forms, at most U+10FFFF. */
#ifndef NOTEGATE_CORE_UTF8_H
#define NOTEGATE_CORE_UTF8_H

#include <string.h>

#include "buf.h"
#include "notegate/abi.h"

#define UTF8_BYTES_MAX 4                /* of one character */
#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Does a character begin at this byte of valid text? */
static inline bool utf8_is_start(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* For utf8_length(): of a character that is not ASCII. */
size_t utf8_length_long(struct ng_str text, size_t at);

/* Bytes of the character at `at` (below text.len), 1 to 4; 0: it is not valid there. */
static inline size_t utf8_length(struct ng_str text, size_t at)
{
    if ((unsigned char)text.data[at] < 0x80) {
        return 1;
    }
    return utf8_length_long(text, at);
}

/* The same, with its code point. */
size_t utf8_decode(struct ng_str text, size_t at, uint32_t *ret_code);
/* The code point at *at; *at moves behind it. A byte that is not valid counts as one U+FFFD. */
uint32_t utf8_next(struct ng_str text, size_t *at);
/* Writes a code point (not a surrogate, at most U+10FFFF); returns its bytes. */
size_t utf8_encode(uint32_t code, char out[UTF8_BYTES_MAX]);
bool utf8_valid(struct ng_str text);
/* Code points in valid text. */
size_t utf8_count(struct ng_str text);
/* The longest beginning of valid text of at most `bytes` bytes that ends between characters. */
static inline struct ng_str utf8_cut(struct ng_str text, size_t bytes)
{
    if (bytes < text.len) {
        while (bytes > 0 && !utf8_is_start(text.data[bytes])) {
            bytes--;
        }
        text.len = bytes;
    }
    return text;
}

/* Copies its longest beginning that fits between characters into out[size], and a final 0. */
static inline void utf8_copy(char *out, size_t size, struct ng_str text)
{
    text = utf8_cut(text, size - 1);
    if (text.len > 0) {
        memcpy(out, text.data, text.len);
    }
    out[text.len] = '\0';
}

/* The longest beginning of valid text with at most `count` characters. */
struct ng_str utf8_cut_count(struct ng_str text, size_t count);

/* Appends the text with Unicode's full case folding, in normal form C: texts that differ only
 * in case or normal form give the same bytes. Text that is not valid stays as it is. Returns
 * out->rc. */
int utf8_fold(struct buf *out, struct ng_str text);

#endif
