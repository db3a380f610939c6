/* SPDX-License-Identifier: MIT */
/* random.c - random bytes of the kernel, and ids made of them. */
#include "random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "hex.h"

bool random_bytes(void *bytes, size_t len)
{
    char *to = bytes;
    while (len > 0) {
        ssize_t got = getrandom(to, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        to += got;
        len -= (size_t)got;
    }
    return true;
}

bool random_hex(size_t bytes, char *out)
{
    unsigned char raw[RANDOM_HEX_MAX];
    if (bytes > sizeof(raw) || !random_bytes(raw, bytes)) {
        return false;
    }
    hex_write(raw, bytes, out);
    return true;
}

void uuid_write(const unsigned char bytes[16], char out[UUID_SIZE])
{
    static const unsigned char ends[] = {4, 6, 8, 10,
                                         16}; /* a dash behind each group but the last */
    /* Ids of stored documents are derived from idempotency tokens by this table: keep it. */
    static const unsigned char variants[16] = {8, 8, 9, 9, 10, 10, 11, 11,
                                               8, 8, 8, 9, 9,  10, 10, 11};
    unsigned char raw[16];
    memcpy(raw, bytes, sizeof(raw));
    raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40);
    raw[8] = (unsigned char)(variants[raw[8] >> 4] << 4 | (raw[8] & 0x0f));
    size_t from = 0;
    for (size_t group = 0; group < sizeof(ends); group++) {
        hex_write(raw + from, ends[group] - from, out);
        out += 2 * (ends[group] - from);
        *out++ = '-';
        from = ends[group];
    }
    out[-1] = '\0';
}
