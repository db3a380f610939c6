/* SPDX-License-Identifier: MIT */
/* merge_place.c - lines of a text found again in another version of it. */
#include "merge_place.h"

#include <stdlib.h>

#include "core/base/buf.h"
#include "core/base/str.h"
#include "merge3.h"
#include "merge_hunks.h"

/* A text whose last line ends, too. */
static int place_text(struct buf *copy, struct ng_str text)
{
    buf_init(copy, text.len + 1);
    int rc = buf_add_str(copy, text);
    return rc == NG_OK ? buf_add_char(copy, '\n') : rc;
}

static uint64_t place_lines(struct ng_str text, size_t from, size_t to)
{
    return str_count(str_make(text.data + from, to - from), '\n');
}

/* Numbers of lines before a hunk, and its own. */
struct place_hunk {
    uint64_t base, base_count, side, side_count;
};

/* Moves the places that are behind the hunk before this one and not behind this one. */
static void place_hunk(const struct place_hunk *at, uint64_t side_before, const uint64_t *lines,
                       size_t count, uint64_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t line = lines[i];
        if (line <= side_before || line > at->side + at->side_count) {
            continue;
        }
        if (line <= at->side) {
            ret[i] = line + at->base - at->side;
            continue;
        }
        uint64_t within = line - at->side;
        uint64_t last = at->base_count > 0 ? at->base_count : 1;
        ret[i] = at->base + (within < last ? within : last);
    }
}

/* The hunks from `to` to `from`, and the rest behind the last one. */
static void place_all(const struct merge_hunks *hunks, uint64_t *inout_lines, size_t count)
{
    uint64_t found[MERGE3_CONFLICTS_MAX];
    struct place_hunk at = {0};
    size_t base = 0;
    size_t side = 0;
    memcpy(found, inout_lines, count * sizeof(*found));
    for (size_t i = 0; i <= hunks->count; i++) {
        const struct merge_hunk end = {.base = hunks->base.len,
                                       .base_end = hunks->base.len,
                                       .side = hunks->side.len,
                                       .side_end = hunks->side.len};
        const struct merge_hunk *hunk = i < hunks->count ? &hunks->items[i] : &end;
        uint64_t before = at.side + at.side_count;
        at.base += at.base_count + place_lines(hunks->base, base, hunk->base);
        at.side = before + place_lines(hunks->side, side, hunk->side);
        at.base_count = place_lines(hunks->base, hunk->base, hunk->base_end);
        at.side_count = place_lines(hunks->side, hunk->side, hunk->side_end);
        place_hunk(&at, before, inout_lines, count, found);
        base = hunk->base_end;
        side = hunk->side_end;
    }
    for (size_t i = 0; i < count; i++) {
        inout_lines[i] = found[i] <= at.base ? found[i] : at.base;
    }
}

int merge_place_lines(struct ng_str from, struct ng_str to, uint64_t *inout_lines, size_t count)
{
    struct buf texts[2];
    struct merge_hunks hunks = {.count = 0};
    int64_t steps = MERGE3_STEPS_MAX;
    int rc = place_text(&texts[0], to);
    int other = place_text(&texts[1], from);
    rc = rc == NG_OK ? other : rc;
    if (rc == NG_OK) {
        rc = merge_hunks_find(buf_str(&texts[0]), buf_str(&texts[1]), &steps, &hunks);
    }
    if (rc == NG_OK) {
        place_all(&hunks, inout_lines, count);
    }
    merge_hunks_done(&hunks);
    buf_done(&texts[0]);
    buf_done(&texts[1]);
    return rc;
}
