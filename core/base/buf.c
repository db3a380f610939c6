/* SPDX-License-Identifier: MIT */
/* buf.c - the growing buffer. */
#include "buf.h"

#include <stdio.h>

#include "arena.h"
#include "minmax.h"
#include "str.h"
#include "utf8.h"

/* First allocation: most answers fit, and malloc has such sizes at hand. */
#define BUF_FIRST 1000
/* Room for the note at a cut, and for the rest of a character. */
#define BUF_CUT_BYTES 48

int buf_splice(struct buf *buf, size_t at, size_t removed, struct ng_str inserted)
{
    if (at > buf->len || removed > buf->len - at) {
        return NG_EINVAL;
    }
    if (buf_reserve(buf, inserted.len) == NULL) {
        return buf->rc;
    }
    size_t tail = buf->len - at - removed;
    memmove(buf->data + at + inserted.len, buf->data + at + removed, tail);
    if (inserted.len > 0) {
        memcpy(buf->data + at, inserted.data, inserted.len);
    }
    buf->len = at + inserted.len + tail;
    return NG_OK;
}

char *buf_reserve_more(struct buf *buf, size_t len)
{
    if (buf->rc == NG_OK && (len > buf->max || buf->len > buf->max - len)) {
        buf->rc = NG_ETOOLARGE;
    }
    if (buf->rc != NG_OK) {
        return NULL;
    }
    size_t need = buf->len + len + 1;
    size_t cap = size_max(buf->cap, BUF_FIRST);
    while (cap < need) {
        if (cap > SIZE_MAX / 2) {
            cap = need;
        } else {
            cap *= 2;
        }
    }
    char *data = alloc_resize(buf->data, cap);
    if (data == NULL) {
        buf->rc = NG_EINTERNAL;
        if (buf->oom != NULL) {
            *buf->oom = true;
        }
        return NULL;
    }
    buf->data = data;
    buf->cap = cap;
    return data + buf->len;
}

int buf_add_number(struct buf *buf, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return buf_add(buf, digits + at, sizeof(digits) - at);
}

/* Bytes without a character that is cut at the end. */
static size_t whole_characters(struct ng_str text)
{
    for (size_t i = 1; i <= text.len && i < UTF8_BYTES_MAX; i++) {
        if (utf8_is_start(text.data[text.len - i])) {
            return utf8_length(text, text.len - i) > 0 ? text.len : text.len - i;
        }
    }
    return text.len;
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    size_t room = buf->max - size_min(buf->len, buf->max);
    size_t fits = size_min((size_t)len, room);
    char *to = NULL;
    if (len >= 0) {
        to = buf_reserve(buf, fits);
    }
    if (to != NULL) {
        (void)vsnprintf(to, fits + 1, format, again);
        buf->len += fits;
    }
    if (to != NULL && fits < (size_t)len) {
        buf->len -= fits - whole_characters(str_make(to, fits));
        buf->rc = NG_ETOOLARGE;
    }
    va_end(again);
    return buf->rc;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = buf_vprintf(buf, format, args);
    va_end(args);
    return rc;
}

int buf_add_shortened(struct buf *buf, struct ng_str text, size_t max)
{
    if (text.len <= max) {
        return buf_add_str(buf, text);
    }
    struct ng_str head = utf8_cut(text, max / 2);
    size_t tail = utf8_cut(text, text.len - (max / 2 - BUF_CUT_BYTES)).len;
    (void)buf_add_str(buf, head);
    (void)buf_printf(buf, " [... %zu bytes ...] ", tail - head.len);
    return buf_add(buf, text.data + tail, text.len - tail);
}

static int buf_add_json_escape(struct buf *buf, unsigned char c)
{
    switch (c) {
    case '\n':
        return buf_add(buf, "\\n", 2);
    case '"':
        return buf_add(buf, "\\\"", 2);
    case '\\':
        return buf_add(buf, "\\\\", 2);
    case '\t':
        return buf_add(buf, "\\t", 2);
    case '\r':
        return buf_add(buf, "\\r", 2);
    case '\b':
        return buf_add(buf, "\\b", 2);
    case '\f':
        return buf_add(buf, "\\f", 2);
    default:
        return buf_printf(buf, "\\u%04x", c);
    }
}

/* Copies whole characters that stand for themselves, up to the first that does not. `to` has
 * room for all that is left. */
static size_t json_copy_plain(char *to, const unsigned char *at, size_t left)
{
    size_t run = 0;
    while (run < left) {
        if (left - run >= sizeof(uint64_t)) {
            uint64_t marks = str_word_unprintable(str_word(at + run));
            memcpy(to + run, at + run, sizeof(uint64_t));
            if (marks == 0) {
                run += sizeof(uint64_t);
                continue;
            }
            run += str_word_first(marks);
        }
        unsigned char c = at[run];
        size_t len = 0;
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            to[run++] = (char)c;
            continue;
        }
        if (c >= 0x80) {
            len = utf8_length(str_make((const char *)at, left), run);
        }
        if (len == 0) {
            break;
        }
        for (size_t i = 0; i < len; i++) {
            to[run + i] = (char)at[run + i];
        }
        run += len;
    }
    return run;
}

int buf_add_json(struct buf *buf, struct ng_str text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.len;
    buf_add_char(buf, '"');
    while (left > 0) {
        char *to = buf_reserve(buf, left);
        if (to == NULL) {
            return buf->rc;
        }
        size_t run = json_copy_plain(to, at, left);
        buf->len += run;
        at += run;
        left -= run;
        if (left > 0) {
            if (at[0] >= 0x80) {
                buf_add_c(buf, UTF8_REPLACEMENT);
            } else {
                buf_add_json_escape(buf, at[0]);
            }
            at++;
            left--;
        }
    }
    return buf_add_char(buf, '"');
}

char *buf_take(struct buf *buf, size_t *ret_len)
{
    char *data = buf->data;
    if (data != NULL) {
        data[buf->len] = '\0';
    }
    *ret_len = buf->len;
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
    return data;
}
