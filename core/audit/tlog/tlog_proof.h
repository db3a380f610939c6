/* SPDX-License-Identifier: MIT */
/* tlog_proof.h - roots of a log at any of its sizes, and proofs that it has an entry or only
 * grew (RFC 6962, sections 2.1.1 and 2.1.2), made from its tiles. */
#ifndef NOTEGATE_CORE_TLOG_PROOF_H
#define NOTEGATE_CORE_TLOG_PROOF_H

#include "tlog_hash.h"

/* Hashes of a proof. */
#define TLOG_PROOF_MAX (TLOG_SIZE_BITS + 1)

struct tlog_proof {
    size_t count;
    struct tlog_hash hashes[TLOG_PROOF_MAX];
};

/* Reads `count` hashes of one tile of this level, from number `first` of the level on. Its
 * failure is that of the function that was asked. */
typedef int tlog_read_fn(void *user, unsigned level, uint64_t first, size_t count,
                         struct tlog_hash *ret);

struct tlog_source {
    tlog_read_fn *read;
    void *user;
};

/* The root of the first `size` entries. NG_OK, NG_EINTERNAL, or the source's failure. */
int tlog_root(const struct tlog_source *source, uint64_t size, struct tlog_hash *ret);
/* Entry `index` is in the tree of `size`. NG_EINVAL: it has no such entry. */
int tlog_prove_inclusion(const struct tlog_source *source, uint64_t index, uint64_t size,
                         struct tlog_proof *ret);
/* The tree of `old` entries is the beginning of that of `size`. NG_EINVAL: it is larger. */
int tlog_prove_consistency(const struct tlog_source *source, uint64_t old, uint64_t size,
                           struct tlog_proof *ret);

/* NG_OK: proved; NG_EFAILED: not; NG_EINTERNAL: out of memory. */
int tlog_check_inclusion(const struct tlog_proof *proof, uint64_t index, uint64_t size,
                         const struct tlog_hash *leaf, const struct tlog_hash *root);
int tlog_check_consistency(const struct tlog_proof *proof, uint64_t old, uint64_t size,
                           const struct tlog_hash *old_root, const struct tlog_hash *root);

#endif
