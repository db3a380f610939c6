/* SPDX-License-Identifier: MIT */
/* random.h - random bytes of the kernel, and ids made of them. */
#ifndef NOTEGATE_CORE_RANDOM_H
#define NOTEGATE_CORE_RANDOM_H

#include "notegate/abi.h"

#define UUID_SIZE 37 /* 8-4-4-4-12 hexadecimal digits and a NUL */

/* Fills `bytes`. false: the kernel gives none (before it is seeded, or without getrandom). */
bool random_bytes(void *bytes, size_t len);
/* 2 * bytes hexadecimal digits and a NUL; bytes is at most RANDOM_HEX_MAX. */
#define RANDOM_HEX_MAX ((size_t)64)
bool random_hex(size_t bytes, char *out);
/* The UUID, version 4 (RFC 9562), of 16 bytes. */
void uuid_write(const unsigned char bytes[16], char out[UUID_SIZE]);

#endif
