/* SPDX-License-Identifier: MIT */
/* tlog_tile.c - numbers of tiles as paths, and entries with their lengths in front. */
#include "tlog_tile.h"

#include <stdio.h>

#include "core/base/str.h"

#define PATH_GROUP 1000 /* numbers of one folder */
#define PATH_GROUPS 6   /* of 2^56 */

void tlog_tile_path(unsigned level, uint64_t index, size_t width, char out[TLOG_PATH_SIZE])
{
    unsigned groups[PATH_GROUPS];
    size_t count = 0;
    size_t len = 0;
    do {
        groups[count++] = (unsigned)(index % PATH_GROUP);
        index /= PATH_GROUP;
    } while (index > 0 && count < PATH_GROUPS);
    if (level == TLOG_ENTRIES) {
        len = (size_t)snprintf(out, TLOG_PATH_SIZE, "tile/entries");
    } else {
        len = (size_t)snprintf(out, TLOG_PATH_SIZE, "tile/%u", level);
    }
    while (count-- > 0) {
        len += (size_t)snprintf(out + len, TLOG_PATH_SIZE - len, "/%s%03u",
                                count > 0 ? "x" : "", groups[count]);
    }
    if (width < TLOG_TILE_WIDTH) {
        (void)snprintf(out + len, TLOG_PATH_SIZE - len, ".p/%zu", width);
    }
}

size_t tlog_tile_width(unsigned level, uint64_t index, uint64_t size)
{
    uint64_t count = tlog_tile_count(level, size);
    uint64_t first = index << TLOG_TILE_BITS;
    if (index > count >> TLOG_TILE_BITS) {
        return 0;
    }
    return (size_t)u64_min(count - first, TLOG_TILE_WIDTH);
}

size_t tlog_bundle_split(struct ng_str bundle, size_t count, struct ng_str *ret)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (bundle.len - at < TLOG_ENTRY_HEAD) {
            return i;
        }
        size_t len = (size_t)(unsigned char)bundle.data[at] << 8 |
                     (size_t)(unsigned char)bundle.data[at + 1];
        at += TLOG_ENTRY_HEAD;
        if (bundle.len - at < len) {
            return i;
        }
        ret[i] = str_make(bundle.data + at, len);
        at += len;
    }
    return at == bundle.len ? count : count + 1;
}
