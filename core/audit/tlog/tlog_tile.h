/* SPDX-License-Identifier: MIT */
/*
 * tlog_tile.h - tiles of a transparency log (C2SP tlog-tiles): pieces of its tree and of its
 * entries, as files that never change once they are full.
 *
 * A tile of level 0 has the hashes of 256 leaves, one of level L the roots of 256 full tiles
 * below. A bundle has the 256 entries of a tile of level 0. The last of each may be partial.
 */
#ifndef NOTEGATE_CORE_TLOG_TILE_H
#define NOTEGATE_CORE_TLOG_TILE_H

#include "tlog_hash.h"

#define TLOG_TILE_BITS 8
#define TLOG_TILE_WIDTH ((size_t)1 << TLOG_TILE_BITS)
#define TLOG_LEVELS (TLOG_SIZE_BITS / TLOG_TILE_BITS)
#define TLOG_TILE_BYTES (TLOG_TILE_WIDTH * SHA256_BYTES)
/* In place of a level: the bundle of entries. */
#define TLOG_ENTRIES TLOG_LEVELS

/* Bytes of one entry: its length has 16 bits. */
#define TLOG_ENTRY_MAX ((size_t)65535)
#define TLOG_ENTRY_HEAD ((size_t)2)
#define TLOG_BUNDLE_MAX (TLOG_TILE_WIDTH * (TLOG_ENTRY_HEAD + TLOG_ENTRY_MAX))

/* "tile/entries/x001/x234/067.p/112" with the largest number, and a NUL. */
#define TLOG_PATH_SIZE 64

/* The path of a tile, or of a bundle (level TLOG_ENTRIES). width: TLOG_TILE_WIDTH is a full
 * one. */
void tlog_tile_path(unsigned level, uint64_t index, size_t width, char out[TLOG_PATH_SIZE]);
/* The number of hashes of this level in a tree, or of its entries. */
static inline uint64_t tlog_tile_count(unsigned level, uint64_t size)
{
    return level == TLOG_ENTRIES ? size : size >> (TLOG_TILE_BITS * level);
}

/* The width that a tile has in a tree: 0 where the tree does not reach it. */
size_t tlog_tile_width(unsigned level, uint64_t index, uint64_t size);

/* Splits a bundle of exactly `count` entries. ret: room for them; they point into the bundle.
 * Returns how many are whole: less than `count` if the bundle ends early, count + 1 if bytes
 * follow. */
size_t tlog_bundle_split(struct ng_str bundle, size_t count, struct ng_str *ret);
/* Writes the bytes in front of an entry of at most TLOG_ENTRY_MAX. */
static inline void tlog_bundle_head(size_t len, char out[TLOG_ENTRY_HEAD])
{
    out[0] = (char)(unsigned char)(len >> 8);
    out[1] = (char)(unsigned char)(len & 0xff);
}

#endif
