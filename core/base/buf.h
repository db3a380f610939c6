/* SPDX-License-Identifier: MIT */
/* buf.h - a growing byte buffer that is born with its maximum. An error sticks; check it at the
 * end. */
#ifndef NOTEGATE_CORE_BUF_H
#define NOTEGATE_CORE_BUF_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "notegate/abi.h"

struct buf {
    char *data; /* not NUL-terminated, see buf_cstr */
    size_t len;
    size_t cap;
    size_t max;
    int rc; /* NG_OK, NG_ETOOLARGE (over max) or NG_EINTERNAL (out of memory); then nothing more
               is added */
    bool *oom; /* set when memory could not be had; NULL: not wanted */
};

static inline void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

static inline void buf_done(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = 0;
    buf->cap = 0;
}

/* Truncates to an earlier length and clears the error: only the part behind it did not fit. */
static inline void buf_cut(struct buf *buf, size_t len)
{
    buf->len = len;
    buf->rc = NG_OK;
}

static inline void buf_clear(struct buf *buf)
{
    buf_cut(buf, 0);
}

/* For buf_reserve(): it has failed, has no room or is over its maximum. */
char *buf_reserve_more(struct buf *buf, size_t len);

/* Room for `len` more bytes; the caller writes them and adds to buf->len. NULL: failed. */
static inline char *buf_reserve(struct buf *buf, size_t len)
{
    if (buf->rc != NG_OK || buf->cap - buf->len <= len || buf->max < len ||
        buf->max - len < buf->len) {
        return buf_reserve_more(buf, len);
    }
    return buf->data + buf->len;
}

static inline int buf_add(struct buf *buf, const void *data, size_t len)
{
    char *to = buf_reserve(buf, len);
    if (to != NULL && len > 0) {
        memcpy(to, data, len);
        buf->len += len;
    }
    return buf->rc;
}

static inline int buf_add_str(struct buf *buf, struct ng_str text)
{
    return buf_add(buf, text.data, text.len);
}

static inline int buf_add_c(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

static inline int buf_add_char(struct buf *buf, char c)
{
    return buf_add(buf, &c, 1);
}

/* Replaces `removed` bytes at `at`. NG_EINVAL: they are not there, and nothing has changed. */
int buf_splice(struct buf *buf, size_t at, size_t removed, struct ng_str inserted);
int buf_add_number(struct buf *buf, uint64_t number); /* in decimal */
/* A text that does not fit is cut after the last character that does, so that an error keeps
 * its beginning. */
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* `text` as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD. */
int buf_add_json(struct buf *buf, struct ng_str text);
/* The text; of one that is longer than `max` bytes (over 100) its beginning and end, and how
 * many bytes are between them. Valid UTF-8 is cut between characters. */
int buf_add_shortened(struct buf *buf, struct ng_str text, size_t max);
/* The text with a NUL behind it; "" where it failed. */
static inline const char *buf_cstr(struct buf *buf)
{
    if (buf->data == NULL) {
        return "";
    }
    buf->data[buf->len] = '\0';
    return buf->data;
}

static inline struct ng_str buf_str(const struct buf *buf)
{
    struct ng_str str = {buf->data, buf->len};
    return str;
}
/* The text, or the fallback where the buffer failed. */
static inline struct ng_str buf_str_or(const struct buf *buf, struct ng_str fallback)
{
    return buf->rc == NG_OK ? buf_str(buf) : fallback;
}
/* The memory passes to the caller (free()); the buffer is empty again. */
char *buf_take(struct buf *buf, size_t *ret_len);

#endif
