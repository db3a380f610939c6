/* SPDX-License-Identifier: MIT */
/* buf.h - a growing byte buffer that is born with its maximum. An error sticks; check it at the
 * end. */
#ifndef NOTEGATE_CORE_BUF_H
#define NOTEGATE_CORE_BUF_H

#include <stdarg.h>

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

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
void buf_clear(struct buf *buf);
/* Truncates to an earlier length and clears the error: only the part behind it did not fit. */
void buf_cut(struct buf *buf, size_t len);
/* Replaces `removed` bytes at `at`. NG_EINVAL: they are not there, and nothing has changed. */
int buf_splice(struct buf *buf, size_t at, size_t removed, struct ng_str inserted);
int buf_add(struct buf *buf, const void *data, size_t len);
int buf_add_str(struct buf *buf, struct ng_str text);
int buf_add_c(struct buf *buf, const char *text);
int buf_add_char(struct buf *buf, char c);
int buf_add_number(struct buf *buf, uint64_t number); /* in decimal */
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* `text` as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD. */
int buf_add_json(struct buf *buf, struct ng_str text);
/* Room for `len` more bytes; the caller writes them and adds to buf->len. NULL: failed. */
char *buf_reserve(struct buf *buf, size_t len);
/* The text with a NUL behind it; "" where it failed. */
const char *buf_cstr(struct buf *buf);
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
