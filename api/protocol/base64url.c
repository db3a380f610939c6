/* SPDX-License-Identifier: MIT */
/* base64url.c - three bytes are four letters; what is left over is written as far as it goes.
 */
#include "base64url.h"

#include <string.h>

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(struct buf *out, struct ng_str bytes)
{
    const unsigned char *from = (const unsigned char *)bytes.data;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        unsigned group = (unsigned)from[i] << 16;
        if (left > 1) {
            group |= (unsigned)from[i + 1] << 8;
        }
        if (left > 2) {
            group |= (unsigned)from[i + 2];
        }
        const char text[4] = {letters[group >> 18 & 63], letters[group >> 12 & 63],
                              letters[group >> 6 & 63], letters[group & 63]};
        (void)buf_add(out, text, left > 2 ? 4 : left + 1);
    }
}

bool base64url_decode(struct ng_str text, char *out)
{
    unsigned bits = 0;
    unsigned have = 0;
    if (text.len % 4 == 1) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(letters, text.data[i], sizeof(letters) - 1);
        if (at == NULL) {
            return false;
        }
        bits = (bits << 6 | (unsigned)(at - letters)) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            *out++ = (char)(bits >> have & 0xff);
        }
    }
    return (bits & ((1U << have) - 1U)) == 0;
}
