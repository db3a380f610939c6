/* SPDX-License-Identifier: MIT */
/* utf8.c - UTF-8, checked and walked; case folding. */
#include "utf8.h"

#include <string.h>

#include <utf8proc.h>

#include "str.h"

#define UTF8_HIGH_BITS UINT64_C(0x8080808080808080)

size_t utf8_length_long(struct ng_str text, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    unsigned char c = bytes[0];
    size_t len = (size_t)2 + (c >= 0xe0) + (c >= 0xf0);
    if (c < 0xc2 || c > 0xf4 || len > text.len - at) {
        return 0;
    }
    /* Overlong forms, surrogates and code points above U+10FFFF show in the second byte. */
    if ((bytes[1] & 0xc0) != 0x80 || (c == 0xe0 && bytes[1] < 0xa0) ||
        (c == 0xed && bytes[1] > 0x9f) || (c == 0xf0 && bytes[1] < 0x90) ||
        (c == 0xf4 && bytes[1] > 0x8f)) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

size_t utf8_decode(struct ng_str text, size_t at, uint32_t *ret_code)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t len = utf8_length(text, at);
    if (len > 0) {
        uint32_t code = (unsigned char)text.data[at] & first_bits[len];
        for (size_t i = 1; i < len; i++) {
            code = code << 6 | ((unsigned char)text.data[at + i] & 0x3f);
        }
        *ret_code = code;
    }
    return len;
}

uint32_t utf8_next(struct ng_str text, size_t *at)
{
    uint32_t code = 0xfffd;
    size_t len = utf8_decode(text, *at, &code);
    *at += len + (len == 0);
    return code;
}

size_t utf8_encode(uint32_t code, char out[UTF8_BYTES_MAX])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = (size_t)2 + (code >= 0x800) + (code >= 0x10000);
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(leads[len] | code);
    return len;
}

bool utf8_valid(struct ng_str text)
{
    size_t i = 0;
    while (i < text.len) {
        uint64_t word;
        if (text.len - i >= sizeof(word)) {
            memcpy(&word, text.data + i, sizeof(word));
            if ((word & UTF8_HIGH_BITS) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t len = utf8_length(text, i);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

size_t utf8_count(struct ng_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += utf8_is_start(text.data[i]);
    }
    return count;
}

struct ng_str utf8_cut_count(struct ng_str text, size_t count)
{
    for (size_t i = 0; i < text.len; i++) {
        if (utf8_is_start(text.data[i]) && count-- == 0) {
            text.len = i;
        }
    }
    return text;
}

static bool is_ascii(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

int utf8_fold(struct buf *out, struct ng_str text)
{
    if (is_ascii(text)) {
        char *to = buf_reserve(out, text.len);
        for (size_t i = 0; to != NULL && i < text.len; i++) {
            to[i] = str_lower(text.data[i]);
        }
        out->len += to == NULL ? 0 : text.len;
        return out->rc;
    }
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t len = utf8proc_map(
        (const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.len, &folded,
        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
    if (len >= 0) {
        (void)buf_add(out, folded, (size_t)len);
    } else if (len != UTF8PROC_ERROR_NOMEM) {
        (void)buf_add_str(out, text);
    } else {
        out->rc = NG_EINTERNAL;
    }
    free(folded);
    return out->rc;
}
