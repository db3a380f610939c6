/* SPDX-License-Identifier: MIT */
/* tlog_hash.h - the Merkle tree of a transparency log (RFC 6962, section 2.1): hashes of leaves
 * and nodes, and a tree that grows. */
#ifndef NOTEGATE_CORE_TLOG_HASH_H
#define NOTEGATE_CORE_TLOG_HASH_H

#include <string.h>

#include "core/base/text/sha256.h"

struct tlog_hash {
    unsigned char bytes[SHA256_BYTES];
};

static inline bool tlog_hash_equal(const struct tlog_hash *a, const struct tlog_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* All three: NG_OK or NG_EINTERNAL (out of memory). */
int tlog_hash_leaf(struct ng_str entry, struct tlog_hash *ret);
/* ret may be left or right. */
int tlog_hash_node(const struct tlog_hash *left, const struct tlog_hash *right,
                   struct tlog_hash *ret);
/* The root of a full subtree of `count` neighbours, a power of two. */
int tlog_hash_full(const struct tlog_hash *hashes, size_t count, struct tlog_hash *ret);

/* Entries of a log: fewer than 2^56, far more than any gateway writes. */
#define TLOG_SIZE_BITS 56
#define TLOG_SIZE_MAX ((UINT64_C(1) << TLOG_SIZE_BITS) - 1)

/* A tree to which leaves are added: only the roots of its full subtrees, nodes[b] that of 2^b
 * leaves where bit b of its size is set. All zeros is the empty tree. */
struct tlog_range {
    uint64_t size;
    struct tlog_hash nodes[TLOG_SIZE_BITS];
};

/* Adds a leaf, or the root of a full subtree of 2^bits leaves at a place that is a multiple of
 * that. NG_OK, NG_ETOOLARGE (over TLOG_SIZE_MAX), NG_EINTERNAL; then nothing has changed. */
int tlog_range_add(struct tlog_range *range, unsigned bits, const struct tlog_hash *hash);
/* NG_OK or NG_EINTERNAL. */
int tlog_range_root(const struct tlog_range *range, struct tlog_hash *ret);

#endif
