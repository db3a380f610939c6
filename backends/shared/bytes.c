/* SPDX-License-Identifier: MIT */
/* bytes.c - a growing byte buffer. */
#include "bytes.h"

#include "core/base/minmax.h"

int bytes_reserve_more(struct bytes *bytes, size_t more)
{
    if (more > SIZE_MAX / 4 || bytes->len > SIZE_MAX / 4) {
        bytes->rc = NG_ETOOLARGE;
    }
    if (bytes->rc != NG_OK) {
        return bytes->rc;
    }
    size_t need = bytes->len + more;
    size_t cap = size_max(bytes->cap, 64);
    while (cap < need) {
        cap += cap / 2;
    }
    char *data = realloc(bytes->data, cap);
    if (data == NULL) {
        bytes->rc = NG_EINTERNAL;
        return bytes->rc;
    }
    bytes->data = data;
    bytes->cap = cap;
    return NG_OK;
}

int bytes_add_c(struct bytes *bytes, const char *text)
{
    return bytes_add(bytes, text, strlen(text));
}

int bytes_splice(struct bytes *bytes, uint64_t at, uint64_t removed, struct ng_str inserted)
{
    if (at > bytes->len || removed > bytes->len - at) {
        return NG_EUNAVAILABLE; /* does not fit: the stored data is damaged */
    }
    if (bytes_reserve(bytes, inserted.len) != NG_OK) {
        return bytes->rc;
    }
    size_t from = (size_t)(at + removed);
    size_t tail = bytes->len - from;
    if (tail > 0) {
        memmove(bytes->data + at + inserted.len, bytes->data + from, tail);
    }
    if (inserted.len > 0) {
        memcpy(bytes->data + at, inserted.data, inserted.len);
    }
    bytes->len = (size_t)at + inserted.len + tail;
    return NG_OK;
}
