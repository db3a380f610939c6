/* SPDX-License-Identifier: MIT */
/* tlog_proof.c - a subtree of full size is read from a tile; any other is split where RFC 6962
 * splits it, at the largest power of two below its size. */
#include "tlog_proof.h"

#include "tlog_tile.h"

/* Bits of the largest power of two below `size`, which is over 1. */
static unsigned split_bits(uint64_t size)
{
    return 63U - (unsigned)__builtin_clzll(size - 1);
}

/* The full subtree of 2^bits entries from `first` on. */
static int proof_full(const struct tlog_source *source, uint64_t first, unsigned bits,
                      struct tlog_hash *ret)
{
    struct tlog_hash row[TLOG_TILE_WIDTH];
    unsigned level = bits / TLOG_TILE_BITS;
    size_t count = (size_t)1 << bits % TLOG_TILE_BITS;
    int rc = source->read(source->user, level, first >> (level * TLOG_TILE_BITS), count, row);
    return rc == NG_OK ? tlog_hash_full(row, count, ret) : rc;
}

/* The root of `size` (at least 1) entries from `first` on, a multiple of the power of two at or
 * above `size`. */
static int proof_subtree(const struct tlog_source *source, uint64_t first, uint64_t size,
                         struct tlog_hash *ret)
{
    struct tlog_range range = {.size = 0};
    for (unsigned bits = TLOG_SIZE_BITS; bits-- > 0;) {
        struct tlog_hash node;
        if ((size >> bits & 1) == 0) {
            continue;
        }
        int rc = proof_full(source, first + range.size, bits, &node);
        if (rc == NG_OK) {
            rc = tlog_range_add(&range, bits, &node);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return tlog_range_root(&range, ret);
}

int tlog_root(const struct tlog_source *source, uint64_t size, struct tlog_hash *ret)
{
    return proof_subtree(source, 0, size, ret);
}

/* Adds the root of a subtree; from the top down. */
static int proof_add(const struct tlog_source *source, uint64_t first, uint64_t size,
                     struct tlog_proof *proof)
{
    int rc = proof_subtree(source, first, size, &proof->hashes[proof->count]);
    proof->count += rc == NG_OK;
    return rc;
}

/* Proofs go from the leaf up. */
static void proof_turn(struct tlog_proof *proof)
{
    for (size_t i = 0; i < proof->count / 2; i++) {
        struct tlog_hash hash = proof->hashes[i];
        proof->hashes[i] = proof->hashes[proof->count - 1 - i];
        proof->hashes[proof->count - 1 - i] = hash;
    }
}

int tlog_prove_inclusion(const struct tlog_source *source, uint64_t index, uint64_t size,
                         struct tlog_proof *ret)
{
    uint64_t first = 0;
    ret->count = 0;
    if (index >= size || size > TLOG_SIZE_MAX) {
        return NG_EINVAL;
    }
    while (size > 1) {
        uint64_t left = UINT64_C(1) << split_bits(size);
        int rc;
        if (index - first < left) {
            rc = proof_add(source, first + left, size - left, ret);
            size = left;
        } else {
            rc = proof_add(source, first, left, ret);
            first += left;
            size -= left;
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    proof_turn(ret);
    return NG_OK;
}

int tlog_prove_consistency(const struct tlog_source *source, uint64_t old, uint64_t size,
                           struct tlog_proof *ret)
{
    uint64_t first = 0;
    ret->count = 0;
    if (old > size || size > TLOG_SIZE_MAX) {
        return NG_EINVAL;
    }
    if (old == 0 || old == size) {
        return NG_OK;
    }
    /* `old` counts from `first` on; the subtree ends where the two trees agree. */
    while (old != size) {
        uint64_t left = UINT64_C(1) << split_bits(size);
        int rc;
        if (old <= left) {
            rc = proof_add(source, first + left, size - left, ret);
            size = left;
        } else {
            rc = proof_add(source, first, left, ret);
            first += left;
            old -= left;
            size -= left;
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    /* At the very left it is the old root, which the checker has. */
    if (first != 0) {
        int rc = proof_add(source, first, size, ret);
        if (rc != NG_OK) {
            return rc;
        }
    }
    proof_turn(ret);
    return NG_OK;
}

static int proof_verdict(bool proved)
{
    return proved ? NG_OK : NG_EFAILED;
}

int tlog_check_inclusion(const struct tlog_proof *proof, uint64_t index, uint64_t size,
                         const struct tlog_hash *leaf, const struct tlog_hash *root)
{
    struct tlog_hash node = *leaf;
    uint64_t last = size - 1;
    size_t at = 0;
    if (index >= size) {
        return NG_EFAILED;
    }
    /* From the leaf up; the last node of a row without a neighbour rises as it is. */
    for (; last > 0; index >>= 1, last >>= 1) {
        if (index == last && (index & 1) == 0) {
            continue;
        }
        if (at == proof->count) {
            return NG_EFAILED;
        }
        const struct tlog_hash *other = &proof->hashes[at++];
        int rc = (index & 1) != 0 ? tlog_hash_node(other, &node, &node)
                                  : tlog_hash_node(&node, other, &node);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return proof_verdict(at == proof->count && tlog_hash_equal(&node, root));
}

/* One step up: the old tree has what lies left of its last node, the new one all. */
static int consistency_step(const struct tlog_hash *other, bool is_left, struct tlog_hash *old,
                            struct tlog_hash *new)
{
    if (!is_left) {
        return tlog_hash_node(new, other, new);
    }
    int rc = tlog_hash_node(other, old, old);
    return rc == NG_OK ? tlog_hash_node(other, new, new) : rc;
}

int tlog_check_consistency(const struct tlog_proof *proof, uint64_t old, uint64_t size,
                           const struct tlog_hash *old_root, const struct tlog_hash *root)
{
    if (old > size || old == 0) {
        return proof_verdict(old == 0 && proof->count == 0);
    }
    if (old == size) {
        return proof_verdict(proof->count == 0 && tlog_hash_equal(old_root, root));
    }
    uint64_t index = old - 1;
    uint64_t last = size - 1;
    size_t at = 0;
    for (; (index & 1) != 0; index >>= 1, last >>= 1) {
    }
    /* A power of two: its root is the node to begin with. */
    if (index != 0 && proof->count == 0) {
        return NG_EFAILED;
    }
    struct tlog_hash old_node = index == 0 ? *old_root : proof->hashes[at++];
    struct tlog_hash new_node = old_node;
    for (; last > 0; index >>= 1, last >>= 1) {
        bool is_left = (index & 1) != 0;
        if (!is_left && index == last) {
            continue;
        }
        if (at == proof->count) {
            return NG_EFAILED;
        }
        int rc = consistency_step(&proof->hashes[at++], is_left, &old_node, &new_node);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return proof_verdict(at == proof->count && tlog_hash_equal(&old_node, old_root) &&
                         tlog_hash_equal(&new_node, root));
}
