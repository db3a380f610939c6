/* SPDX-License-Identifier: MIT */
/* hash.h - FNV-1a, 64 bits: the same in every process, so it may be stored. Not for tables that
 * a caller could fill with equal hashes on purpose (str_hash() is for those), nor for secrets.
 */
#ifndef NOTEGATE_CORE_HASH_H
#define NOTEGATE_CORE_HASH_H

#include "notegate/abi.h"

#define HASH_FNV_BASIS UINT64_C(14695981039346656037)
#define HASH_FNV_PRIME UINT64_C(1099511628211)

static inline uint64_t hash_fnv_byte(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * HASH_FNV_PRIME;
}

/* Goes on from `hash`; begin with HASH_FNV_BASIS (or a seed in it). */
static inline uint64_t hash_fnv(uint64_t hash, struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = hash_fnv_byte(hash, (unsigned char)text.data[i]);
    }
    return hash;
}

/* The eight bytes of a number, lowest first. */
static inline uint64_t hash_fnv_u64(uint64_t hash, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        hash = hash_fnv_byte(hash, (unsigned char)(number >> (8 * i) & 0xff));
    }
    return hash;
}

#endif
