/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 of libcrypto: of one text, or running. */
#ifndef NOTEGATE_CORE_SHA256_H
#define NOTEGATE_CORE_SHA256_H

#include "notegate/abi.h"

#define SHA256_BYTES 32
#define SHA256_HEX_SIZE (2 * SHA256_BYTES + 1) /* with a NUL */

/* Of one text. NG_OK or NG_EINTERNAL (out of memory); then the output is empty. */
int sha256_digest(struct ng_str text, unsigned char out[SHA256_BYTES]);
int sha256_hex(struct ng_str text, char out[SHA256_HEX_SIZE]);
/* Of several texts, one behind the other. NG_OK or NG_EINTERNAL (out of memory). */
int sha256_joined(const struct ng_str *texts, size_t count, unsigned char out[SHA256_BYTES]);

/* A running hash, of one thread at a time. */
struct sha256;

struct sha256 *sha256_new(void); /* NULL: out of memory */
/* One that goes on from the same state. NULL: out of memory. */
struct sha256 *sha256_copy(const struct sha256 *hash);
void sha256_free(struct sha256 *hash);
/* NG_OK or NG_EINTERNAL. */
int sha256_add(struct sha256 *hash, struct ng_str bytes);
/* The hash so far; adding may go on. NG_OK or NG_EINTERNAL. */
int sha256_now(struct sha256 *hash, unsigned char out[SHA256_BYTES]);

#endif
