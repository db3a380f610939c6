/* SPDX-License-Identifier: MIT */
/* audit_verify.c - one pass over the entries, then one over each level of tiles. */
#include "audit_verify.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "audit_disk.h"
#include "audit_key.h"
#include "audit_log.h"
#include "audit_names.h"
#include "audit_pending.h"
#include "core/base/str.h"

struct verify {
    int dir;
    struct note_key key;
    struct checkpoint checkpoint;
    struct checkpoint kept;
    bool has_kept;
    struct audit_tiles tiles;
    uint64_t first;          /* entry that is left by pruning */
    struct tlog_range range; /* of the entries read so far */
    struct buf bundle;
    struct audit_verify_report *report;
    struct buf *problem;
};

/* ---- problems ---- */

/* The first bad entry is one of first..last; the problem is in the text already. */
static int verify_bad(struct verify *verify, uint64_t first, uint64_t last)
{
    verify->report->bad_first = first;
    verify->report->bad_last = last;
    return NG_EFAILED;
}

/* The same of a file that could not be used: its sentence is in the text, and rc its result. */
static int verify_file(struct verify *verify, int rc, uint64_t first, uint64_t last)
{
    return rc == NG_EFAILED ? verify_bad(verify, first, last) : rc;
}

static int verify_no_memory(struct verify *verify)
{
    (void)buf_add_c(verify->problem, "out of memory");
    return NG_EINTERNAL;
}

/* The entries that a tile spans. */
static uint64_t verify_span(unsigned level, uint64_t index)
{
    return index << (TLOG_TILE_BITS * (level + 1));
}

static uint64_t verify_span_last(const struct verify *verify, unsigned level, uint64_t index)
{
    return u64_min(verify_span(level, index + 1), verify->checkpoint.size) - 1;
}

/* ---- entries ---- */

/* The tree of the first entries is that of the kept checkpoint? */
static int verify_kept(struct verify *verify)
{
    struct tlog_hash root;
    if (!verify->has_kept || verify->range.size != verify->kept.size) {
        return NG_OK;
    }
    if (tlog_range_root(&verify->range, &root) != NG_OK) {
        return verify_no_memory(verify);
    }
    if (tlog_hash_equal(&root, &verify->kept.root)) {
        return NG_OK;
    }
    (void)buf_printf(verify->problem,
                     "the first %" PRIu64
                     " entries are not those that the given checkpoint has "
                     "signed",
                     verify->kept.size);
    return verify_bad(verify, 0, u64_max(verify->kept.size, 1) - 1);
}

/* One bundle against its tile; both are added to the tree by the tile's hashes. */
static int verify_bundle(struct verify *verify, uint64_t index)
{
    struct tlog_hash tile[TLOG_TILE_WIDTH];
    struct ng_str entries[TLOG_TILE_WIDTH];
    size_t count = 0;
    uint64_t first = verify_span(0, index);
    uint64_t last = verify_span_last(verify, 0, index);
    int rc = audit_tiles_read(&verify->tiles, 0, index, tile);
    if (rc != NG_OK) {
        return verify_file(verify, rc, first, last);
    }
    size_t told = verify->problem->len;
    int bundle_rc =
        audit_tiles_entries(&verify->tiles, index, &verify->bundle, entries, &count);
    if (bundle_rc != NG_OK && bundle_rc != NG_EFAILED) {
        return bundle_rc;
    }
    for (size_t i = 0; i < count; i++) {
        struct tlog_hash leaf;
        if (tlog_hash_leaf(entries[i], &leaf) != NG_OK) {
            return verify_no_memory(verify);
        }
        if (!tlog_hash_equal(&leaf, &tile[i])) {
            buf_cut(verify->problem, told);
            (void)buf_printf(verify->problem,
                             "entry %" PRIu64 " is not the one whose hash is in its tile",
                             first + i);
            return verify_bad(verify, first + i, first + i);
        }
        rc = tlog_range_add(&verify->range, 0, &tile[i]);
        if (rc != NG_OK) {
            return verify_no_memory(verify);
        }
        rc = verify_kept(verify);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return verify_file(verify, bundle_rc, first + count, first + count);
}

/* Of the bundles that were pruned there are the roots, in the tiles above. */
static int verify_pruned(struct verify *verify)
{
    struct tlog_hash tile[TLOG_TILE_WIDTH];
    uint64_t end = verify->first >> TLOG_TILE_BITS;
    if (verify->first > verify->checkpoint.size) {
        (void)buf_printf(verify->problem,
                         "the file " AUDIT_FIRST_FILE " says that the log begins with entry "
                         "%" PRIu64 "; the checkpoint has the first %" PRIu64,
                         verify->first, verify->checkpoint.size);
        return verify_bad(verify, 0, verify->checkpoint.size);
    }
    if (verify->has_kept && verify->kept.size < verify->first &&
        verify->kept.size % TLOG_TILE_WIDTH != 0) {
        (void)buf_printf(verify->problem,
                         "the given checkpoint has the first %" PRIu64
                         " entries; of those only whole tiles of %zu can be checked, as they "
                         "were pruned: take a newer checkpoint",
                         verify->kept.size, TLOG_TILE_WIDTH);
        return NG_EINVAL;
    }
    int rc = NG_OK;
    for (uint64_t index = 0; rc == NG_OK && index < end; index++) {
        size_t at = (size_t)(index % TLOG_TILE_WIDTH);
        if (at == 0) {
            rc = audit_tiles_read(&verify->tiles, 1, index >> TLOG_TILE_BITS, tile);
            if (rc != NG_OK) {
                return verify_file(verify, rc, verify_span(0, index), verify->first - 1);
            }
        }
        if (tlog_range_add(&verify->range, TLOG_TILE_BITS, &tile[at]) != NG_OK) {
            return verify_no_memory(verify);
        }
        rc = verify_kept(verify);
    }
    return rc;
}

static int verify_entries(struct verify *verify)
{
    struct tlog_hash root;
    uint64_t size = verify->checkpoint.size;
    int rc = verify_kept(verify);
    if (rc == NG_OK) {
        rc = verify_pruned(verify);
    }
    for (uint64_t index = verify->first >> TLOG_TILE_BITS;
         rc == NG_OK && verify_span(0, index) < size; index++) {
        rc = verify_bundle(verify, index);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (tlog_range_root(&verify->range, &root) != NG_OK) {
        return verify_no_memory(verify);
    }
    if (!tlog_hash_equal(&root, &verify->checkpoint.root)) {
        (void)buf_printf(verify->problem,
                         "the root of the %" PRIu64
                         " entries is not the one that the checkpoint "
                         "has signed",
                         size);
        return verify_bad(verify, verify->kept.size < size ? verify->kept.size : 0, size - 1);
    }
    return NG_OK;
}

/* ---- tiles ---- */

/* Each hash of a tile above level 0 is the root of the full tile below. */
static int verify_tile(struct verify *verify, unsigned level, uint64_t index)
{
    struct tlog_hash tile[TLOG_TILE_WIDTH];
    struct tlog_hash below[TLOG_TILE_WIDTH];
    struct tlog_hash root;
    size_t width = tlog_tile_width(level, index, verify->checkpoint.size);
    int rc = audit_tiles_read(&verify->tiles, level, index, tile);
    if (rc != NG_OK) {
        return verify_file(verify, rc, verify_span(level, index),
                           verify_span_last(verify, level, index));
    }
    for (size_t i = 0; i < width; i++) {
        uint64_t at = (index << TLOG_TILE_BITS) + i;
        uint64_t first = verify_span(level - 1, at);
        uint64_t last = verify_span_last(verify, level - 1, at);
        if (last < verify->first && level == 1) {
            continue; /* pruned */
        }
        rc = audit_tiles_read(&verify->tiles, level - 1, at, below);
        if (rc != NG_OK) {
            return verify_file(verify, rc, first, last);
        }
        if (tlog_hash_full(below, TLOG_TILE_WIDTH, &root) != NG_OK) {
            return verify_no_memory(verify);
        }
        if (!tlog_hash_equal(&root, &tile[i])) {
            char name[TLOG_PATH_SIZE];
            tlog_tile_path(level, index, width, name);
            (void)buf_printf(verify->problem,
                             "hash %zu of %s is not that of entries %" PRIu64 " to %" PRIu64, i,
                             name, first, last);
            return verify_bad(verify, first, last);
        }
    }
    return NG_OK;
}

static int verify_tiles(struct verify *verify)
{
    int rc = NG_OK;
    for (unsigned level = 1; rc == NG_OK && level < TLOG_LEVELS; level++) {
        uint64_t count = tlog_tile_count(level, verify->checkpoint.size);
        for (uint64_t index = 0; rc == NG_OK && index << TLOG_TILE_BITS < count; index++) {
            rc = verify_tile(verify, level, index);
        }
    }
    return rc;
}

/* ---- beyond the checkpoint ---- */

/* Entries that wait, and tiles of more entries than the checkpoint has: a fold that a kill
 * broke off has left those, if its entries still wait. Otherwise the checkpoint is an older
 * one. */
static int verify_beyond(struct verify *verify)
{
    struct audit_pending pending;
    uint64_t size = verify->checkpoint.size;
    /* Before the pending entries: a gateway makes tiles of those that are there by then. */
    uint64_t reach = audit_tiles_reach(&verify->tiles);
    int rc = audit_pending_look(verify->dir, &pending, verify->problem);
    audit_pending_close(&pending);
    if (rc != NG_OK) {
        return verify_file(verify, rc, size, size);
    }
    uint64_t end = pending.count > 0 ? pending.first + pending.count : size;
    if (pending.count > 0 && pending.first != size && end > size) {
        (void)buf_printf(verify->problem,
                         "the entries that wait begin with %" PRIu64
                         "; the checkpoint has the first %" PRIu64,
                         pending.first, size);
        return verify_bad(verify, u64_min(size, pending.first), u64_max(size, pending.first));
    }
    end = u64_max(end, size);
    if (reach > end) {
        (void)buf_printf(verify->problem,
                         "the tiles have %" PRIu64 " entries, the checkpoint the first %" PRIu64
                         ": it is an older one, or was cut",
                         reach, size);
        return verify_bad(verify, end, end);
    }
    verify->report->pending = end - size;
    return NG_OK;
}

/* The names that entries show are those of their values. */
static int verify_names(struct verify *verify)
{
    uint64_t size = verify->checkpoint.size;
    int rc = audit_names_check(verify->dir, &verify->report->names, verify->problem);
    return verify_file(verify, rc, size, size);
}

/* ---- all of it ---- */

/* The kept checkpoint is this log's, and not ahead of it. */
static int verify_open_kept(struct verify *verify, struct ng_str text)
{
    verify->has_kept = text.data != NULL;
    if (!verify->has_kept) {
        return NG_OK;
    }
    int rc = checkpoint_open(text, &verify->key, &verify->kept);
    if (rc == NG_EINVAL) {
        (void)buf_printf(verify->problem, "the given file is no checkpoint of the log %s",
                         verify->key.name);
        return rc;
    }
    if (rc == NG_EINTERNAL) {
        return verify_no_memory(verify);
    }
    if (rc != NG_OK) {
        (void)buf_printf(verify->problem,
                         "the given checkpoint is not signed by this log's key, %s+%08x",
                         verify->key.name, verify->key.id);
        return verify_bad(verify, 0, u64_max(verify->checkpoint.size, 1) - 1);
    }
    verify->report->kept = verify->kept.size;
    return NG_OK;
}

static int verify_not_ahead(struct verify *verify)
{
    uint64_t size = verify->checkpoint.size;
    if (verify->kept.size <= size) {
        return NG_OK;
    }
    (void)buf_printf(verify->problem,
                     "the log has %" PRIu64 " entries, the given checkpoint %" PRIu64
                     ": its end is missing",
                     size, verify->kept.size);
    return verify_bad(verify, size, size);
}

static int verify_once(struct verify *verify, struct ng_str kept)
{
    bool is_new = false;
    int rc = audit_key_load_public(verify->dir, &verify->key, verify->problem);
    if (rc != NG_OK) {
        return verify_file(verify, rc, 0, 0);
    }
    rc = audit_log_read_checkpoint(verify->dir, &verify->key, &verify->checkpoint, &is_new,
                                   verify->problem);
    if (rc == NG_OK && is_new) {
        (void)buf_add_c(verify->problem, "the audit log's checkpoint is missing");
        rc = NG_EFAILED;
    }
    if (rc != NG_OK) {
        return verify_file(verify, rc, 0, 0);
    }
    verify->report->size = verify->checkpoint.size;
    verify->tiles = (struct audit_tiles){verify->dir, verify->checkpoint.size, verify->problem};
    rc = audit_tiles_first(verify->dir, &verify->first, verify->problem);
    if (rc != NG_OK) {
        return verify_file(verify, rc, 0, 0);
    }
    verify->report->pruned = verify->first;
    rc = verify_open_kept(verify, kept);
    if (rc == NG_OK) {
        rc = verify_entries(verify);
    }
    if (rc == NG_OK) {
        rc = verify_tiles(verify);
    }
    if (rc == NG_OK) {
        rc = verify_not_ahead(verify);
    }
    if (rc == NG_OK) {
        rc = verify_beyond(verify);
    }
    return rc == NG_OK ? verify_names(verify) : rc;
}

/* Did the gateway write a newer checkpoint since? Its older tiles may be gone then. */
static bool verify_is_outdated(const struct verify *verify)
{
    char room[256];
    struct checkpoint now;
    struct buf ignored = {.data = room, .cap = sizeof(room), .max = sizeof(room) - 1};
    bool is_new;
    return audit_log_read_checkpoint(verify->dir, &verify->key, &now, &is_new, &ignored) ==
               NG_OK &&
           !is_new && now.size > verify->checkpoint.size;
}

int audit_verify(const char *path, struct ng_str kept, struct audit_verify_report *ret,
                 struct buf *problem)
{
    struct verify verify = {.problem = problem, .report = ret};
    *ret = (struct audit_verify_report){.size = 0};
    int rc = audit_disk_open(path, false, &verify.dir, problem);
    if (rc != NG_OK) {
        return rc;
    }
    int dir = verify.dir;
    buf_init(&verify.bundle, TLOG_BUNDLE_MAX);
    for (unsigned i = 0; i < AUDIT_VERIFY_TRIES; i++) {
        struct buf bundle = verify.bundle;
        verify =
            (struct verify){.dir = dir, .problem = problem, .report = ret, .bundle = bundle};
        *ret = (struct audit_verify_report){.size = 0};
        buf_clear(problem);
        rc = verify_once(&verify, kept);
        if (rc != NG_EFAILED || !verify_is_outdated(&verify)) {
            break;
        }
    }
    buf_done(&verify.bundle);
    (void)close(dir);
    return rc;
}
