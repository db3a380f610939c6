/* SPDX-License-Identifier: MIT */
/* merge_place.c - lines of a text, and places of a conflict, found again in another version of
 * the text. */
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
    uint64_t found[MERGE_PLACE_LINES_MAX];
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

/* ---- the places of a conflict ---- */

/* The text without its last line feed, as sides are told. */
static struct ng_str place_body(struct ng_str text)
{
    bool ends = text.len > 0 && text.data[text.len - 1] == '\n';
    return str_make(text.data, text.len - ends);
}

/* Lines of a text without its last line feed. */
static uint64_t side_lines(struct ng_str side)
{
    return side.len > 0 ? str_count(side, '\n') + 1 : 0;
}

/* The lines from `first` on, up to `end`. */
static struct ng_str place_cut(struct ng_str text, uint64_t first, uint64_t end)
{
    size_t from = 0;
    size_t to = 0;
    uint64_t line = 1;
    for (size_t at = 0; at < text.len && line < end; at++) {
        bool ends = text.data[at] == '\n';
        from = line < first ? at + 1 : from;
        line += ends;
        to = ends && line == end ? at : at + 1;
    }
    return first < end && from < to ? str_make(text.data + from, to - from) : ng_str_of("");
}

int merge_place_conflict(struct ng_str from, struct ng_str to,
                         struct merge_conflict *inout_conflict)
{
    struct merge_conflict found = {.reason = inout_conflict->reason};
    uint64_t lines[MERGE_PLACE_LINES_MAX];
    bool is_end[MERGE_PLACES_MAX]; /* the side is the end of the text */
    size_t count = inout_conflict->place_count;
    for (size_t i = 0; i < count; i++) {
        const struct merge_place *place = &inout_conflict->places[i];
        lines[2 * i] = place->line;
        lines[2 * i + 1] = place->line + side_lines(merge_conflict_present(inout_conflict, i));
        is_end[i] = lines[2 * i + 1] > side_lines(place_body(from));
    }
    int rc = merge_place_lines(from, to, lines, 2 * count);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        uint64_t end = is_end[i] ? UINT64_MAX : lines[2 * i + 1];
        merge_conflict_add(&found, inout_conflict->reason, lines[2 * i],
                           place_cut(place_body(to), lines[2 * i], end),
                           merge_conflict_before(inout_conflict, i));
        rc = found.sides.rc;
    }
    if (rc != NG_OK) {
        merge_conflict_done(&found);
        return rc;
    }
    found.count = inout_conflict->count;
    merge_conflict_done(inout_conflict);
    *inout_conflict = found;
    return NG_OK;
}
