/* SPDX-License-Identifier: MIT */
/* base64.c - three bytes are four characters of six bits each. */
#include "base64.h"

#include <string.h>

static const char *const alphabets[] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

void base64_encode(struct buf *out, struct ng_str bytes, enum base64_alphabet alphabet)
{
    const char *letters = alphabets[alphabet];
    const unsigned char *from = (const unsigned char *)bytes.data;
    if (bytes.len > SIZE_MAX / 4) {
        out->rc = NG_ETOOLARGE;
        return;
    }
    char *to = buf_reserve(out, (bytes.len + 2) / 3 * 4);
    if (to == NULL) {
        return;
    }
    size_t i = 0;
    for (; bytes.len - i >= 3; i += 3) {
        unsigned group = (unsigned)from[i] << 16 | (unsigned)from[i + 1] << 8 | from[i + 2];
        *to++ = letters[group >> 18];
        *to++ = letters[group >> 12 & 63];
        *to++ = letters[group >> 6 & 63];
        *to++ = letters[group & 63];
    }
    size_t left = bytes.len - i;
    if (left > 0) {
        unsigned group = (unsigned)from[i] << 16;
        if (left == 2) {
            group |= (unsigned)from[i + 1] << 8;
        }
        char last[4] = {letters[group >> 18], letters[group >> 12 & 63], '=', '='};
        if (left == 2) {
            last[2] = letters[group >> 6 & 63];
        }
        memcpy(to, last, sizeof(last));
        to += sizeof(last);
        if (alphabet == BASE64_URL) {
            to -= 3 - left;
        }
    }
    out->len = (size_t)(to - out->data);
}

/* 0 to 63; -1: not in this alphabet. */
static int base64_value(char c, enum base64_alphabet alphabet)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    const char *letters = alphabets[alphabet];
    if (c == letters[62]) {
        return 62;
    }
    if (c == letters[63]) {
        return 63;
    }
    return -1;
}

bool base64_decode(struct buf *out, struct ng_str text, enum base64_alphabet alphabet)
{
    if (alphabet == BASE64_STANDARD) {
        if (text.len % 4 != 0) {
            return false;
        }
        for (int i = 0; i < 2 && text.len > 0 && text.data[text.len - 1] == '='; i++) {
            text.len--;
        }
    }
    if (text.len % 4 == 1) {
        return false;
    }
    size_t rest = text.len % 4; /* characters of the last, shorter group: one less in bytes */
    if (buf_reserve(out, text.len / 4 * 3 + rest - (rest > 0)) == NULL) {
        return false;
    }
    size_t len = out->len;
    unsigned bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.data[i], alphabet);
        if (value < 0) {
            return false;
        }
        bits = (bits << 6 | (unsigned)value) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out->data[len++] = (char)(bits >> have & 0xff);
        }
    }
    if ((bits & ((1U << have) - 1U)) != 0) {
        return false;
    }
    out->len = len;
    return true;
}

int base64_decode_in(struct arena *arena, struct ng_str text, enum base64_alphabet alphabet,
                     struct ng_str *ret)
{
    size_t room = text.len / 4 * 3 + 4;
    struct buf out = {.data = arena_alloc(arena, room), .cap = room, .max = room};
    if (out.data == NULL) {
        return NG_EINTERNAL;
    }
    if (!base64_decode(&out, text, alphabet)) {
        return NG_EINVAL;
    }
    *ret = buf_str(&out);
    return NG_OK;
}

bool base64_decode_loose(struct buf *out, struct ng_str text)
{
    unsigned bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '=' || c == '\n' || c == '\r' || c == ' ') {
            continue;
        }
        int value = base64_value(c, BASE64_STANDARD);
        if (value < 0) {
            value = base64_value(c, BASE64_URL);
        }
        if (value < 0) {
            return false;
        }
        bits = (bits << 6 | (unsigned)value) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            (void)buf_add_char(out, (char)(bits >> have & 0xff));
        }
    }
    return out->rc == NG_OK;
}
