/* SPDX-License-Identifier: MIT */
/* audit_tiles.h - the tiles and entries of the audit log, read from its folder. */
#ifndef NOTEGATE_CORE_AUDIT_TILES_H
#define NOTEGATE_CORE_AUDIT_TILES_H

#include "core/audit/tlog/tlog_proof.h"
#include "core/audit/tlog/tlog_tile.h"
#include "core/base/buf.h"

/* The tree that a checkpoint of this folder has signed. Its partial tiles are on the disk until
 * the next checkpoint is. */
struct audit_tiles {
    int dir;
    uint64_t size;
    struct buf *error; /* gets the sentence of a failure */
};

/* The next four: NG_OK, NG_EINTERNAL; NG_EFAILED: a file is missing or of a wrong length;
 * NG_EUNAVAILABLE: one cannot be read. */

/* Reads a whole tile, and its width. */
int audit_tiles_read(const struct audit_tiles *tiles, unsigned level, uint64_t index,
                     struct tlog_hash ret[TLOG_TILE_WIDTH]);
/* A tlog_read_fn of a struct audit_tiles. */
int audit_tiles_source(void *user, unsigned level, uint64_t first, size_t count,
                       struct tlog_hash *ret);
/* Reads a bundle into `bundle` (emptied first; maximum TLOG_BUNDLE_MAX) and splits it.
 * *ret_count entries are whole: fewer or more than the bundle's width only with NG_EFAILED. */
int audit_tiles_entries(const struct audit_tiles *tiles, uint64_t index, struct buf *bundle,
                        struct ng_str ret[TLOG_TILE_WIDTH], size_t *ret_count);
/* Reads entry `index` into `bundle`. */
int audit_tiles_entry(const struct audit_tiles *tiles, uint64_t index, struct buf *bundle,
                      struct ng_str *ret);
/* Pruning takes the oldest full tiles of level 0 and their bundles; those above stay, so that
 * roots, and proofs of what is left, hold. The file `first` has the number of the first entry
 * that is left. NG_OK; NG_EFAILED: it is damaged; NG_EUNAVAILABLE, NG_EINTERNAL. */
#define AUDIT_FIRST_FILE "first"
int audit_tiles_first(int dir, uint64_t *ret, struct buf *error);

struct audit_prune {
    int64_t keep_ms;    /* bundles that were full so long ago go; 0: none */
    uint64_t max_bytes; /* of bundles and tiles of level 0: then the oldest go; 0: no limit */
};
/* now_ms: Unix time. *ret_first: as of the file `first` from now on. As above. */
int audit_tiles_prune(const struct audit_tiles *tiles, const struct audit_prune *prune,
                      int64_t now_ms, uint64_t *ret_first);

/* The entries for which there are files: more than the tree has where a fold was broken off, or
 * where its checkpoint is an older one. Looks no further than one tile. */
uint64_t audit_tiles_reach(const struct audit_tiles *tiles);

#endif
