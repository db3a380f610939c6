/* SPDX-License-Identifier: MIT */
/* bytes.h - byte buffers and splices of backends that store revisions as splices. Compiled into
 * each of them. */
#ifndef NOTEGATE_BACKENDS_BYTES_H
#define NOTEGATE_BACKENDS_BYTES_H

#include <notegate/backend.h>

#include <stdlib.h>
#include <string.h>

/* Bytes that grow; all zero: none. A failure sticks until bytes_set(), so that several
 * additions need one check. */
struct bytes {
    char *data;
    size_t len, cap;
    int rc; /* NG_OK, NG_EINTERNAL (no memory) or NG_ETOOLARGE: then nothing more is added */
};

/* For bytes_reserve(): it has failed or has no room. */
int bytes_reserve_more(struct bytes *bytes, size_t more);

/* Room for `more` bytes. Returns bytes->rc. */
static inline int bytes_reserve(struct bytes *bytes, size_t more)
{
    if (bytes->rc != NG_OK || more > bytes->cap - bytes->len) {
        return bytes_reserve_more(bytes, more);
    }
    return NG_OK;
}

/* Returns bytes->rc. */
static inline int bytes_add(struct bytes *bytes, const void *data, size_t len)
{
    int rc = bytes_reserve(bytes, len);
    if (rc == NG_OK && len > 0) {
        memcpy(bytes->data + bytes->len, data, len);
        bytes->len += len;
    }
    return rc;
}

int bytes_add_c(struct bytes *bytes, const char *text);

static inline int bytes_set(struct bytes *bytes, struct ng_str data)
{
    bytes->len = 0;
    bytes->rc = NG_OK;
    return bytes_add(bytes, data.data, data.len);
}

/* NG_EUNAVAILABLE: the splice does not fit, so the stored data is damaged. */
int bytes_splice(struct bytes *bytes, uint64_t at, uint64_t removed, struct ng_str inserted);
static inline void bytes_done(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

/* The put that stores an imported revision, of the contents before it. */
void put_of_record(const struct ng_record *record, struct ng_str json_before,
                   struct ng_str text_before, struct ng_put *ret);

static inline struct ng_str str_of(const char *data, size_t len)
{
    struct ng_str str = {data, len};
    return str;
}

/* Borrowed until the buffer changes; never NULL. */
static inline struct ng_str bytes_str(const struct bytes *bytes)
{
    return str_of(bytes->data != NULL ? bytes->data : "", bytes->len);
}

#endif
