/* SPDX-License-Identifier: MIT */
/* tlog_hash.c - a byte in front of each hashed text keeps leaves and nodes apart. */
#include "tlog_hash.h"

#include "core/base/str.h"

#define TLOG_FULL_MAX 256 /* hashes of a full subtree that are joined at once */

static const char leaf_prefix[1] = {0};
static const char node_prefix[1] = {1};

static struct ng_str tlog_bytes(const struct tlog_hash *hash)
{
    return str_make((const char *)hash->bytes, sizeof(hash->bytes));
}

int tlog_hash_leaf(struct ng_str entry, struct tlog_hash *ret)
{
    const struct ng_str parts[] = {str_make(leaf_prefix, sizeof(leaf_prefix)), entry};
    return sha256_joined(parts, NG_COUNT(parts), ret->bytes);
}

int tlog_hash_node(const struct tlog_hash *left, const struct tlog_hash *right,
                   struct tlog_hash *ret)
{
    const struct ng_str parts[] = {str_make(node_prefix, sizeof(node_prefix)), tlog_bytes(left),
                                   tlog_bytes(right)};
    return sha256_joined(parts, NG_COUNT(parts), ret->bytes);
}

int tlog_hash_full(const struct tlog_hash *hashes, size_t count, struct tlog_hash *ret)
{
    struct tlog_hash row[TLOG_FULL_MAX];
    memcpy(row, hashes, count * sizeof(*row));
    for (; count > 1; count /= 2) {
        for (size_t i = 0; i < count; i += 2) {
            int rc = tlog_hash_node(&row[i], &row[i + 1], &row[i / 2]);
            if (rc != NG_OK) {
                return rc;
            }
        }
    }
    *ret = row[0];
    return NG_OK;
}

int tlog_range_add(struct tlog_range *range, unsigned bits, const struct tlog_hash *hash)
{
    struct tlog_hash node = *hash;
    uint64_t added = UINT64_C(1) << bits;
    unsigned at = bits;
    if (range->size > TLOG_SIZE_MAX - added) {
        return NG_ETOOLARGE;
    }
    for (; (range->size >> at & 1) != 0; at++) {
        int rc = tlog_hash_node(&range->nodes[at], &node, &node);
        if (rc != NG_OK) {
            return rc;
        }
    }
    range->nodes[at] = node;
    range->size += added;
    return NG_OK;
}

int tlog_range_root(const struct tlog_range *range, struct tlog_hash *ret)
{
    struct tlog_hash node;
    bool begun = false;
    if (range->size == 0) {
        return sha256_digest(STR_NONE, ret->bytes);
    }
    for (unsigned at = 0; at < TLOG_SIZE_BITS; at++) {
        if ((range->size >> at & 1) == 0) {
            continue;
        }
        if (!begun) {
            node = range->nodes[at];
            begun = true;
            continue;
        }
        int rc = tlog_hash_node(&range->nodes[at], &node, &node);
        if (rc != NG_OK) {
            return rc;
        }
    }
    *ret = node;
    return NG_OK;
}
