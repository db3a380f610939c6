/* SPDX-License-Identifier: MIT */
/* base64url.h - bytes as letters that stand in URLs and JSON as they are (RFC 4648, section 5),
 * without padding. One value has one spelling. */
#ifndef NOTEGATE_API_BASE64URL_H
#define NOTEGATE_API_BASE64URL_H

#include "core/base/buf.h"

/* Bytes that a text of this length stands for; a length of 4 * n + 1 is none, see decode. */
static inline size_t base64url_size(size_t text_len)
{
    return text_len / 4 * 3 + (text_len % 4 == 0 ? 0 : text_len % 4 - 1);
}

/* A failure stays in out->rc. */
void base64url_encode(struct buf *out, struct ng_str bytes);
/* Fills `out` (base64url_size() bytes). False: another character, an impossible length, or bits
 * left over that are not zero. */
bool base64url_decode(struct ng_str text, char *out);

#endif
