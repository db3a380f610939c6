/* SPDX-License-Identifier: MIT */
/* merge_hunks.c - the difference of two texts as a list of replaced stretches of lines. */
#include "merge_hunks.h"

#include "core/base/array.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"

#include <stdlib.h>

/* Bytes that are compared in a step of the budget. */
#define HUNK_BYTES_STEP 64

static struct ng_str hunk_line(struct ng_str text, const size_t *starts, size_t index)
{
    return str_make(text.data + starts[index], starts[index + 1] - starts[index]);
}

static bool hunk_same_line(struct ng_str text, const size_t *starts, size_t a, size_t b,
                           int64_t *inout_steps)
{
    struct ng_str line = hunk_line(text, starts, a);
    *inout_steps -= 1 + (int64_t)(line.len / HUNK_BYTES_STEP);
    return str_equal(line, hunk_line(text, starts, b));
}

/* Moves the hunk, in lines, up to the end of the one before it, at line `floor` of base. */
static void hunk_slide_up(const struct diff *diff, struct merge_hunk *hunk, size_t floor,
                          int64_t *inout_steps)
{
    bool removes = hunk->side == hunk->side_end;
    if (!removes && hunk->base != hunk->base_end) {
        return;
    }
    while (hunk->base > floor && *inout_steps > 0) {
        bool same = removes ? hunk_same_line(diff->old, diff->old_at, hunk->base - 1,
                                             hunk->base_end - 1, inout_steps)
                            : hunk_same_line(diff->new, diff->new_at, hunk->side - 1,
                                             hunk->side_end - 1, inout_steps);
        if (!same) {
            break;
        }
        hunk->base--;
        hunk->base_end--;
        hunk->side--;
        hunk->side_end--;
    }
}

/* The next hunk behind line *i of old and *j of new, which move to its end. */
static bool hunk_next(const struct diff *diff, size_t *i, size_t *j, struct merge_hunk *ret)
{
    while (*i < diff->old_count && diff->gone[*i] == 0 && diff->come[*j] == 0) {
        ++*i;
        ++*j;
    }
    ret->base = *i;
    ret->side = *j;
    while (*i < diff->old_count && diff->gone[*i] != 0) {
        ++*i;
    }
    while (*j < diff->new_count && diff->come[*j] != 0) {
        ++*j;
    }
    ret->base_end = *i;
    ret->side_end = *j;
    return ret->base < ret->base_end || ret->side < ret->side_end;
}

/* Adds a hunk in lines. One that reaches the hunk before it becomes one with it. */
static int hunk_add(struct merge_hunks *hunks, const struct diff *diff, struct merge_hunk hunk,
                    int64_t *inout_steps)
{
    while (true) {
        size_t floor = hunks->count > 0 ? hunks->items[hunks->count - 1].base_end : 0;
        hunk_slide_up(diff, &hunk, floor, inout_steps);
        if (hunks->count == 0 || (hunk.base > floor && hunks->count < MERGE_HUNKS_MAX)) {
            break;
        }
        hunks->coarse = hunks->coarse || hunk.base > floor;
        hunks->count--;
        hunk.base = hunks->items[hunks->count].base;
        hunk.side = hunks->items[hunks->count].side;
    }
    int rc = array_reserve((void **)&hunks->items, &hunks->cap, hunks->count + 1,
                           sizeof(*hunks->items), MERGE_HUNKS_MAX);
    if (rc == NG_OK) {
        hunks->items[hunks->count++] = hunk;
    }
    return rc;
}

int merge_hunks_find(struct ng_str base, struct ng_str side, int64_t *inout_steps,
                     struct merge_hunks *ret)
{
    struct diff diff;
    struct merge_hunk hunk;
    size_t i = 0;
    size_t j = 0;
    *ret = (struct merge_hunks){.base = base, .side = side};
    int rc = diff_lines_within(base, side, inout_steps, &diff);
    while (rc == NG_OK && hunk_next(&diff, &i, &j, &hunk)) {
        rc = hunk_add(ret, &diff, hunk, inout_steps);
    }
    for (size_t k = 0; rc == NG_OK && k < ret->count; k++) {
        struct merge_hunk *lines = &ret->items[k];
        *lines = (struct merge_hunk){
            .base = diff.old_at[lines->base],
            .base_end = diff.old_at[lines->base_end],
            .side = diff.new_at[lines->side],
            .side_end = diff.new_at[lines->side_end],
        };
    }
    ret->coarse = ret->coarse || diff.coarse;
    diff_done(&diff);
    return rc;
}

void merge_hunks_done(struct merge_hunks *hunks)
{
    free(hunks->items);
    *hunks = (struct merge_hunks){0};
}

/* The bytes of the line at `at`, which is below the end of the text. */
static size_t hunk_line_len(struct ng_str text, size_t at)
{
    const char *end = memchr(text.data + at, '\n', text.len - at);
    return (size_t)(end - text.data) + 1 - at;
}

bool merge_hunks_slide(struct merge_hunks *hunks, size_t index, int64_t *inout_steps)
{
    struct merge_hunk *hunk = &hunks->items[index];
    bool removes = hunk->side == hunk->side_end;
    struct ng_str text = removes ? hunks->base : hunks->side;
    size_t from = removes ? hunk->base : hunk->side;
    size_t to = removes ? hunk->base_end : hunk->side_end;
    bool last = index + 1 == hunks->count;
    size_t ceiling = last ? hunks->base.len + 1 : hunks->items[index + 1].base;
    if ((!removes && hunk->base != hunk->base_end) || to == text.len || *inout_steps <= 0) {
        return false;
    }
    size_t len = hunk_line_len(text, from);
    *inout_steps -= 1 + (int64_t)(len / HUNK_BYTES_STEP);
    if (len > text.len - to || memcmp(text.data + from, text.data + to, len) != 0 ||
        hunk->base_end + len >= ceiling) {
        return false;
    }
    hunk->base += len;
    hunk->base_end += len;
    hunk->side += len;
    hunk->side_end += len;
    return true;
}
