/* SPDX-License-Identifier: MIT */
/* audit_tiles.c - one file is one tile, or one bundle of entries. */
#include "audit_tiles.h"

#include <dirent.h>
#include <fcntl.h>
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
