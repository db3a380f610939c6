/* SPDX-License-Identifier: MIT */
/* audit_tiles.c - one file is one tile, or one bundle of entries. */
#include "audit_tiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_disk.h"
#include "core/base/str.h"

static int tiles_fail(const struct audit_tiles *tiles, int rc, const char *name)
{
    (void)audit_disk_fail(rc, name, "read", tiles->error);
    return rc == NG_ENOTFOUND || rc == NG_ETOOLARGE ? NG_EFAILED : rc;
}

int audit_tiles_read(const struct audit_tiles *tiles, unsigned level, uint64_t index,
                     struct tlog_hash ret[TLOG_TILE_WIDTH])
{
    char name[TLOG_PATH_SIZE];
    char room[TLOG_TILE_BYTES + 1];
    struct buf bytes = {.data = room, .cap = sizeof(room), .max = TLOG_TILE_BYTES};
    size_t width = tlog_tile_width(level, index, tiles->size);
    tlog_tile_path(level, index, width, name);
    int rc = audit_disk_read(tiles->dir, name, &bytes);
    if (rc != NG_OK) {
        return tiles_fail(tiles, rc, name);
    }
    if (bytes.len != width * SHA256_BYTES) {
        (void)buf_printf(tiles->error,
                         "the audit log's tile %s has %zu bytes; its %zu hashes have %zu", name,
                         bytes.len, width, width * SHA256_BYTES);
        return NG_EFAILED;
    }
    memcpy(ret, room, bytes.len);
    return NG_OK;
}

int audit_tiles_source(void *user, unsigned level, uint64_t first, size_t count,
                       struct tlog_hash *ret)
{
    struct tlog_hash tile[TLOG_TILE_WIDTH];
    int rc = audit_tiles_read(user, level, first >> TLOG_TILE_BITS, tile);
    if (rc == NG_OK) {
        memcpy(ret, tile + first % TLOG_TILE_WIDTH, count * sizeof(*ret));
    }
    return rc;
}

int audit_tiles_entries(const struct audit_tiles *tiles, uint64_t index, struct buf *bundle,
                        struct ng_str ret[TLOG_TILE_WIDTH], size_t *ret_count)
{
    char name[TLOG_PATH_SIZE];
    size_t width = tlog_tile_width(TLOG_ENTRIES, index, tiles->size);
    *ret_count = 0;
    buf_clear(bundle);
    tlog_tile_path(TLOG_ENTRIES, index, width, name);
    int rc = audit_disk_read(tiles->dir, name, bundle);
    if (rc != NG_OK) {
        return tiles_fail(tiles, rc, name);
    }
    size_t whole = tlog_bundle_split(buf_str(bundle), width, ret);
    *ret_count = size_min(whole, width);
    if (whole > width) {
        (void)buf_printf(tiles->error,
                         "the audit log's bundle %s has bytes behind its %zu entries", name,
                         width);
        return NG_EFAILED;
    }
    if (whole < width) {
        (void)buf_printf(tiles->error, "the audit log's bundle %s has %zu whole entries of %zu",
                         name, whole, width);
        return NG_EFAILED;
    }
    return NG_OK;
}

int audit_tiles_entry(const struct audit_tiles *tiles, uint64_t index, struct buf *bundle,
                      struct ng_str *ret)
{
    struct ng_str entries[TLOG_TILE_WIDTH];
    size_t count;
    int rc = audit_tiles_entries(tiles, index >> TLOG_TILE_BITS, bundle, entries, &count);
    if (rc == NG_OK) {
        *ret = entries[index % TLOG_TILE_WIDTH];
    }
    return rc;
}

/* ---- beyond the tree ---- */

/* The largest number that names a file of the folder; 0: none. */
static size_t tiles_widest(int dir, const char *folder)
{
    int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    uint64_t widest = 0;
    if (stream == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return 0;
    }
    while ((entry = readdir(stream)) != NULL) {
        uint64_t width = 0;
        if (str_number(ng_str_of(entry->d_name), TLOG_TILE_WIDTH - 1, &width)) {
            widest = u64_max(widest, width);
        }
    }
    (void)closedir(stream);
    return (size_t)widest;
}

/* Entries that the last tile of level 0 or the last bundle has, and one that begins anew. */
static uint64_t tiles_reach(const struct audit_tiles *tiles, unsigned level)
{
    char name[TLOG_PATH_SIZE];
    struct stat info;
    uint64_t index = tiles->size >> TLOG_TILE_BITS;
    tlog_tile_path(level, index, TLOG_TILE_WIDTH, name);
    if (fstatat(tiles->dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        return (index + 1) << TLOG_TILE_BITS;
    }
    tlog_tile_path(level, index, 1, name);
    *strrchr(name, '/') = '\0';
    return (index << TLOG_TILE_BITS) + tiles_widest(tiles->dir, name);
}

uint64_t audit_tiles_reach(const struct audit_tiles *tiles)
{
    return u64_max(tiles_reach(tiles, 0), tiles_reach(tiles, TLOG_ENTRIES));
}

/* ---- pruning ---- */

#define FIRST_MAX ((size_t)32)

int audit_tiles_first(int dir, uint64_t *ret, struct buf *error)
{
    struct buf text;
    *ret = 0;
    buf_init(&text, FIRST_MAX);
    int rc = audit_disk_read(dir, AUDIT_FIRST_FILE, &text);
    if (rc == NG_ENOTFOUND) {
        rc = NG_OK;
    } else if (rc != NG_OK) {
        (void)audit_disk_fail(rc, AUDIT_FIRST_FILE, "read", error);
        rc = rc == NG_ETOOLARGE ? NG_EFAILED : rc;
    } else if (!str_number(buf_str(&text), UINT64_MAX, ret) || *ret % TLOG_TILE_WIDTH != 0) {
        (void)buf_add_c(error, "the audit log's file " AUDIT_FIRST_FILE
                               " is not the number of an entry that begins a tile");
        rc = NG_EFAILED;
    }
    buf_done(&text);
    return rc;
}

static int prune_write_first(const struct audit_tiles *tiles, uint64_t first)
{
    char text[FIRST_MAX];
    (void)snprintf(text, sizeof(text), "%" PRIu64, first);
    int rc =
        audit_disk_replace(tiles->dir, AUDIT_FIRST_FILE, ng_str_of(text), S_IRUSR | S_IWUSR);
    return rc == NG_OK ? rc : audit_disk_fail(rc, AUDIT_FIRST_FILE, "written", tiles->error);
}

static bool prune_stat(const struct audit_tiles *tiles, uint64_t index, struct stat *ret)
{
    char name[TLOG_PATH_SIZE];
    tlog_tile_path(TLOG_ENTRIES, index, TLOG_TILE_WIDTH, name);
    return fstatat(tiles->dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

/* True: both are gone. */
static bool prune_remove(const struct audit_tiles *tiles, uint64_t index)
{
    static const unsigned levels[] = {TLOG_ENTRIES, 0};
    char name[TLOG_PATH_SIZE];
    bool found = false;
    for (size_t i = 0; i < NG_COUNT(levels); i++) {
        tlog_tile_path(levels[i], index, TLOG_TILE_WIDTH, name);
        found = unlinkat(tiles->dir, name, 0) == 0 || found;
    }
    return found;
}

/* The full bundles from `begin` to `end`: the first of those that stay. */
static uint64_t prune_choose(const struct audit_tiles *tiles, const struct audit_prune *prune,
                             int64_t now_ms, uint64_t begin, uint64_t end)
{
    struct stat info;
    uint64_t bytes = 0;
    uint64_t stays = begin;
    for (uint64_t index = begin; index < end; index++) {
        bytes += prune_stat(tiles, index, &info) ? (uint64_t)info.st_size + TLOG_TILE_BYTES : 0;
    }
    for (; stays < end && prune_stat(tiles, stays, &info); stays++) {
        bool is_old =
            prune->keep_ms > 0 && now_ms - (int64_t)info.st_mtime * 1000 > prune->keep_ms;
        if (!is_old && (prune->max_bytes == 0 || bytes <= prune->max_bytes)) {
            break;
        }
        bytes -= (uint64_t)info.st_size + TLOG_TILE_BYTES;
    }
    return stays;
}

int audit_tiles_prune(const struct audit_tiles *tiles, const struct audit_prune *prune,
                      int64_t now_ms, uint64_t *ret_first)
{
    int rc = audit_tiles_first(tiles->dir, ret_first, tiles->error);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t begin = *ret_first >> TLOG_TILE_BITS;
    uint64_t stays = prune_choose(tiles, prune, now_ms, begin, tiles->size >> TLOG_TILE_BITS);
    if (stays > begin) {
        rc = prune_write_first(tiles, stays << TLOG_TILE_BITS);
    }
    if (rc != NG_OK) {
        return rc;
    }
    *ret_first = stays << TLOG_TILE_BITS;
    /* The oldest go first, so what a kill leaves ends where the log begins. */
    for (uint64_t left = begin; left > 0 && prune_remove(tiles, left - 1);) {
        left--;
    }
    for (uint64_t index = begin; index < stays; index++) {
        (void)prune_remove(tiles, index);
    }
    return NG_OK;
}
