/* SPDX-License-Identifier: MIT */
/* archive_hash.h - the running SHA-256 of an archive. Included by archive*.c only. */
#ifndef NOTEGATE_CORE_ARCHIVE_HASH_H
#define NOTEGATE_CORE_ARCHIVE_HASH_H

#include "notegate/abi.h"

#define ARCHIVE_HASH_CHARS 64
/* Of the running hash in every line: enough to tell which line was changed. */
#define ARCHIVE_LINE_HASH_CHARS 16

struct archive_hash;

struct archive_hash *archive_hash_new(void); /* NULL: out of memory */
void archive_hash_free(struct archive_hash *hash);
/* NG_OK or NG_EINTERNAL. */
int archive_hash_add(struct archive_hash *hash, struct ng_str bytes);
/* The hash so far, in hex with a NUL; adding may go on. */
int archive_hash_hex(struct archive_hash *hash, char ret_hex[ARCHIVE_HASH_CHARS + 1]);

#endif
