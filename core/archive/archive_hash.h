/* SPDX-License-Identifier: MIT */
/* archive_hash.h - the running SHA-256 of an archive, in hex. Included by archive*.c only. */
#ifndef NOTEGATE_CORE_ARCHIVE_HASH_H
#define NOTEGATE_CORE_ARCHIVE_HASH_H

#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"

#define ARCHIVE_HASH_CHARS (SHA256_HEX_SIZE - 1)
/* Prefix of the running hash in every line: enough to find the line that was changed. */
#define ARCHIVE_LINE_HASH_CHARS 16

/* The hash so far; adding may go on. NG_OK or NG_EINTERNAL. */
static inline int archive_hash_hex(struct sha256 *hash, char ret_hex[SHA256_HEX_SIZE])
{
    unsigned char raw[SHA256_BYTES];
    int rc = sha256_now(hash, raw);
    if (rc == NG_OK) {
        hex_write(raw, sizeof(raw), ret_hex);
    }
    return rc;
}

#endif
