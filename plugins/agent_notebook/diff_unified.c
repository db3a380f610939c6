/* SPDX-License-Identifier: MIT */
/* diff_unified.c - a comparison as a unified diff, as patch(1) reads it. */
#include <stdio.h>

#include "diff.h"

#define DIFF_CONTEXT 3

struct unified {
    const struct diff *diff;
    diff_piece_fn *piece;
    void *user;
    int stop;
};

/* A run of lines with less than two contexts of equal ones between its changes. */
struct hunk {
    size_t old, old_end, new, new_end;
};

static void put(struct unified *out, struct ng_str piece)
{
    if (out->stop == 0 && piece.len > 0) {
        out->stop = out->piece(out->user, piece);
    }
}

static void put_line(struct unified *out, const char *mark, struct ng_str text,
                     const size_t *starts, size_t index)
{
    struct ng_str line = {text.data + starts[index], starts[index + 1] - starts[index]};
    put(out, ng_str_of(mark));
    put(out, line);
    if (line.data[line.len - 1] != '\n') {
        put(out, ng_str_of("\n\\ No newline at end of file\n"));
    }
}

/* "12,3": a range of no lines names the line before it. */
static void put_range(struct unified *out, const char *before, size_t from, size_t to)
{
    char text[80];
    size_t count = to - from;
    size_t first = count == 0 ? from : from + 1;
    int len = count == 1 ? snprintf(text, sizeof(text), "%s%zu", before, first)
                         : snprintf(text, sizeof(text), "%s%zu,%zu", before, first, count);
    struct ng_str piece = {text, len < 0 ? 0 : (size_t)len};
    put(out, piece);
}

static void put_hunk(struct unified *out, const struct hunk *hunk)
{
    const struct diff *diff = out->diff;
    size_t i = hunk->old;
    size_t j = hunk->new;
    put_range(out, "@@ -", hunk->old, hunk->old_end);
    put_range(out, " +", hunk->new, hunk->new_end);
    put(out, ng_str_of(" @@\n"));
    while (out->stop == 0 && (i < hunk->old_end || j < hunk->new_end)) {
        if (i < hunk->old_end && diff->gone[i] != 0) {
            put_line(out, "-", diff->old, diff->old_at, i++);
        } else if (j < hunk->new_end && diff->come[j] != 0) {
            put_line(out, "+", diff->new, diff->new_at, j++);
        } else {
            put_line(out, " ", diff->old, diff->old_at, i++);
            j++;
        }
    }
}

/* The next hunk behind (*i, *j); both go to its end. */
static bool next_hunk(const struct diff *diff, size_t *i, size_t *j, struct hunk *ret)
{
    while (*i < diff->old_count && diff->gone[*i] == 0 && diff->come[*j] == 0) {
        ++*i;
        ++*j;
    }
    if (*i == diff->old_count && *j == diff->new_count) {
        return false;
    }
    size_t before = *i < DIFF_CONTEXT ? *i : DIFF_CONTEXT;
    size_t equal = 0;
    ret->old = *i - before;
    ret->new = *j - before;
    while (equal <= (size_t)2 * DIFF_CONTEXT &&
           (*i < diff->old_count || *j < diff->new_count)) {
        if (*i < diff->old_count && diff->gone[*i] != 0) {
            ++*i;
            equal = 0;
        } else if (*j < diff->new_count && diff->come[*j] != 0) {
            ++*j;
            equal = 0;
        } else {
            ++*i;
            ++*j;
            equal++;
        }
    }
    size_t back = equal > DIFF_CONTEXT ? equal - DIFF_CONTEXT : 0;
    *i -= back;
    *j -= back;
    ret->old_end = *i;
    ret->new_end = *j;
    return true;
}

int diff_unified(const struct diff *diff, struct ng_str old_name, struct ng_str new_name,
                 diff_piece_fn *piece, void *user)
{
    struct unified out = {diff, piece, user, 0};
    struct hunk hunk;
    size_t i = 0;
    size_t j = 0;
    if (diff->removed + diff->added == 0) {
        return 0;
    }
    put(&out, ng_str_of("--- "));
    put(&out, old_name);
    put(&out, ng_str_of("\n+++ "));
    put(&out, new_name);
    put(&out, ng_str_of("\n"));
    while (out.stop == 0 && next_hunk(diff, &i, &j, &hunk)) {
        put_hunk(&out, &hunk);
    }
    return out.stop;
}
