/* SPDX-License-Identifier: MIT */
/*
 * diff.c - comparison of two texts by lines, with the linear-space algorithm of Myers ("An
 * O(ND) Difference Algorithm and Its Variations", 1986): find the middle of a shortest edit
 * path, then recurse into both halves.
 *
 * Its time is the number of lines times the number of differences, so it has a budget. Beyond
 * the budget the remaining lines count as replaced: the result is still a correct diff, only
 * longer.
 */
#include "diff.h"

#include "core/base/arena.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Equal lines around a change in a unified diff. */

/* A distinct line, in a hash table. */
struct diff_line {
    const char *data;
    size_t len;
    uint32_t number; /* 0: free */
    uint32_t hash;   /* the upper half: lines in one slot are rarely compared by their bytes */
};

struct diff_work {
    struct diff *diff;
    const uint32_t *a, *b; /* line numbers: equal lines have equal numbers */
    int64_t *forward, *backward;
    int64_t middle; /* index of diagonal 0 in both arrays */
    int64_t *steps; /* left */
};

/* ---- lines ---- */

/* A last line without a line feed is one, too. */
static size_t count_lines(struct ng_str text)
{
    return str_count(text, '\n') + (text.len > 0 && text.data[text.len - 1] != '\n');
}

static size_t *line_starts(struct ng_str text, size_t count)
{
    size_t *starts = alloc_bytes((count + 1) * sizeof(*starts));
    size_t at = 0;
    for (size_t i = 0; starts != NULL && i < count; i++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        starts[i] = at;
        if (end == NULL) {
            at = text.len;
        } else {
            at = (size_t)(end - text.data) + 1;
        }
    }
    if (starts != NULL) {
        starts[count] = text.len;
    }
    return starts;
}

static struct ng_str line_of(struct ng_str text, const size_t *starts, size_t index)
{
    struct ng_str line = {text.data + starts[index], starts[index + 1] - starts[index]};
    return line;
}

/* Numbers the lines `from` to `to`: equal lines get equal numbers. */
static void number_lines(struct ng_str text, const size_t *starts, size_t from, size_t to,
                         struct diff_line *table, size_t mask, uint32_t *last, uint32_t *ret)
{
    for (size_t i = from; i < to; i++) {
        struct ng_str line = line_of(text, starts, i);
        uint64_t hash = str_hash(line);
        uint32_t upper = (uint32_t)(hash >> 32);
        size_t slot = (size_t)hash & mask;
        while (table[slot].number != 0) {
            struct ng_str there = {table[slot].data, table[slot].len};
            if (table[slot].hash == upper && str_equal(there, line)) {
                break;
            }
            slot = (slot + 1) & mask;
        }
        if (table[slot].number == 0) {
            table[slot] = (struct diff_line){line.data, line.len, ++*last, upper};
        }
        ret[i - from] = table[slot].number;
    }
}

/* ---- the algorithm ---- */

static void mark(unsigned char *flags, size_t from, size_t to)
{
    memset(flags + from, 1, to - from);
}

/* A range of both texts, in lines from the common beginning. */
struct stretch {
    int64_t a, a_end, b, b_end;
};

/* One round of forward paths. True: one meets a backward path at (*x, *y). */
static bool walk_forward(struct diff_work *work, const struct stretch *s, int64_t d,
                         int64_t *ret_x, int64_t *ret_y)
{
    int64_t n = s->a_end - s->a;
    int64_t m = s->b_end - s->b;
    int64_t delta = n - m;
    int64_t *v = work->forward + work->middle;
    const int64_t *back = work->backward + work->middle;
    for (int64_t k = -d; k <= d; k += 2) {
        int64_t x;
        if (k == -d || (k != d && v[k - 1] < v[k + 1])) {
            x = v[k + 1];
        } else {
            x = v[k - 1] + 1;
        }
        int64_t y = x - k;
        int64_t from = x;
        while (x < n && y < m && work->a[s->a + x] == work->b[s->b + y]) {
            x++;
            y++;
        }
        *work->steps -= x - from + 1;
        v[k] = x;
        int64_t across = delta - k;
        if ((delta & 1) != 0 && across >= -(d - 1) && across <= d - 1 &&
            x + back[across] >= n && x <= n && y <= m) {
            *ret_x = x;
            *ret_y = y;
            return true;
        }
    }
    return false;
}

/* One round of backward paths; x and y count from the end. */
static bool walk_backward(struct diff_work *work, const struct stretch *s, int64_t d,
                          int64_t *ret_x, int64_t *ret_y)
{
    int64_t n = s->a_end - s->a;
    int64_t m = s->b_end - s->b;
    int64_t delta = n - m;
    int64_t *v = work->backward + work->middle;
    const int64_t *front = work->forward + work->middle;
    for (int64_t k = -d; k <= d; k += 2) {
        int64_t x;
        if (k == -d || (k != d && v[k - 1] < v[k + 1])) {
            x = v[k + 1];
        } else {
            x = v[k - 1] + 1;
        }
        int64_t y = x - k;
        int64_t from = x;
        while (x < n && y < m && work->a[s->a_end - 1 - x] == work->b[s->b_end - 1 - y]) {
            x++;
            y++;
        }
        *work->steps -= x - from + 1;
        v[k] = x;
        int64_t across = delta - k;
        if ((delta & 1) == 0 && across >= -d && across <= d && x + front[across] >= n &&
            x <= n && y <= m) {
            *ret_x = n - x;
            *ret_y = m - y;
            return true;
        }
    }
    return false;
}

/* A point on a shortest path through the range. False: the budget is used up. */
static bool find_middle(struct diff_work *work, const struct stretch *s, int64_t *ret_x,
                        int64_t *ret_y)
{
    int64_t most = (s->a_end - s->a + s->b_end - s->b + 1) / 2;
    work->forward[work->middle + 1] = 0;
    work->backward[work->middle + 1] = 0;
    for (int64_t d = 0; d <= most && *work->steps > 0; d++) {
        if (walk_forward(work, s, d, ret_x, ret_y) || walk_backward(work, s, d, ret_x, ret_y)) {
            return true;
        }
    }
    return false;
}

static void trim_stretch(const struct diff_work *work, struct stretch *s)
{
    while (s->a < s->a_end && s->b < s->b_end && work->a[s->a] == work->b[s->b]) {
        s->a++;
        s->b++;
    }
    while (s->a < s->a_end && s->b < s->b_end &&
           work->a[s->a_end - 1] == work->b[s->b_end - 1]) {
        s->a_end--;
        s->b_end--;
    }
}

/* Marks the lines that differ; `base` is the length of the common beginning. Each half has half
 * the differences, so the depth is logarithmic. */
static void compare(struct diff_work *work, struct stretch s, size_t base)
{
    int64_t x = 0;
    int64_t y = 0;
    trim_stretch(work, &s);
    bool both = s.a < s.a_end && s.b < s.b_end;
    bool halved = both && find_middle(work, &s, &x, &y);
    /* A middle at a corner would give the same range again. */
    if (halved && (x + y == 0 || (s.a + x == s.a_end && s.b + y == s.b_end))) {
        halved = false;
    }
    if (!halved) {
        work->diff->coarse |= both && *work->steps <= 0;
        mark(work->diff->gone, base + (size_t)s.a, base + (size_t)s.a_end);
        mark(work->diff->come, base + (size_t)s.b, base + (size_t)s.b_end);
        return;
    }
    struct stretch first = {s.a, s.a + x, s.b, s.b + y};
    struct stretch second = {s.a + x, s.a_end, s.b + y, s.b_end};
    compare(work, first, base);
    compare(work, second, base);
}

/* ---- putting it together ---- */

static size_t table_size(size_t lines)
{
    size_t size = 16;
    while (size < lines * 2) {
        size *= 2;
    }
    return size;
}

/* Compares `old` lines from `base` on with `new` lines. */
static int diff_middle(struct diff *diff, size_t base, size_t old, size_t new,
                       int64_t *inout_steps)
{
    size_t size = table_size(old + new);
    size_t ways = 2 * (old + new) + 4;
    struct diff_line *table = alloc_zeroed(size, sizeof(*table));
    uint32_t *numbers = alloc_bytes((old + new + 1) * sizeof(*numbers));
    int64_t *room = alloc_bytes(2 * ways * sizeof(*room));
    int rc = NG_OK;
    if (table == NULL || numbers == NULL || room == NULL) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        uint32_t last = 0;
        struct stretch all = {0, (int64_t)old, 0, (int64_t) new};
        struct diff_work work = {
            .diff = diff,
            .a = numbers,
            .b = numbers + old,
            .forward = room,
            .backward = room + ways,
            .middle = (int64_t)(old + new) + 1,
            .steps = inout_steps,
        };
        *inout_steps -= (int64_t)(old + new);
        memset(room, 0, 2 * ways * sizeof(*room));
        number_lines(diff->old, diff->old_at, base, base + old, table, size - 1, &last,
                     numbers);
        number_lines(diff->new, diff->new_at, base, base + new, table, size - 1, &last,
                     numbers + old);
        compare(&work, all, base);
    }
    free(room);
    free(numbers);
    free(table);
    return rc;
}

static uint64_t count_marks(const unsigned char *flags, size_t count)
{
    uint64_t marks = 0;
    for (size_t i = 0; i < count; i++) {
        marks += flags[i];
    }
    return marks;
}

int diff_lines(struct ng_str old, struct ng_str new, struct diff *ret)
{
    int64_t steps = DIFF_STEPS_MAX;
    return diff_lines_within(old, new, &steps, ret);
}

int diff_lines_within(struct ng_str old, struct ng_str new, int64_t *inout_steps,
                      struct diff *ret)
{
    *ret = (struct diff){.old = old, .new = new};
    ret->old_count = count_lines(old);
    ret->new_count = count_lines(new);
    ret->old_at = line_starts(old, ret->old_count);
    ret->new_at = line_starts(new, ret->new_count);
    ret->gone = alloc_zeroed(ret->old_count + 1, 1);
    ret->come = alloc_zeroed(ret->new_count + 1, 1);
    if (ret->old_at == NULL || ret->new_at == NULL || ret->gone == NULL || ret->come == NULL) {
        return NG_EINTERNAL;
    }
    size_t least = size_min(ret->old_count, ret->new_count);
    size_t head = 0;
    size_t tail = 0;
    while (head < least &&
           str_equal(line_of(old, ret->old_at, head), line_of(new, ret->new_at, head))) {
        head++;
    }
    while (tail < least - head &&
           str_equal(line_of(old, ret->old_at, ret->old_count - 1 - tail),
                     line_of(new, ret->new_at, ret->new_count - 1 - tail))) {
        tail++;
    }
    size_t a = ret->old_count - head - tail;
    size_t b = ret->new_count - head - tail;
    int rc = NG_OK;
    if (a > 0 && b > 0 && a + b <= DIFF_LINES_MAX && *inout_steps > 0) {
        rc = diff_middle(ret, head, a, b, inout_steps);
    } else {
        ret->coarse = a > 0 && b > 0;
        mark(ret->gone, head, head + a);
        mark(ret->come, head, head + b);
    }
    ret->removed = count_marks(ret->gone, ret->old_count);
    ret->added = count_marks(ret->come, ret->new_count);
    return rc;
}

void diff_done(struct diff *diff)
{
    free(diff->old_at);
    free(diff->new_at);
    free(diff->gone);
    free(diff->come);
    *diff = (struct diff){0};
}

/* ---- the unified diff, as patch(1) reads it ---- */

struct unified {
    const struct diff *diff;
    diff_piece_fn *piece;
    void *user;
    int stop;
};

/* Changes with at most two contexts of equal lines between them. */
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

/* "12,3"; an empty range names the line before it. */
static void put_range(struct unified *out, const char *before, size_t from, size_t to)
{
    char text[80];
    size_t count = to - from;
    size_t first = from;
    if (count != 0) {
        first = from + 1;
    }
    int len;
    if (count == 1) {
        len = snprintf(text, sizeof(text), "%s%zu", before, first);
    } else {
        len = snprintf(text, sizeof(text), "%s%zu,%zu", before, first, count);
    }
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

/* The next hunk behind (*i, *j), which move to its end. */
static bool next_hunk(const struct diff *diff, size_t context, size_t *i, size_t *j,
                      struct hunk *ret)
{
    while (*i < diff->old_count && diff->gone[*i] == 0 && diff->come[*j] == 0) {
        ++*i;
        ++*j;
    }
    if (*i == diff->old_count && *j == diff->new_count) {
        return false;
    }
    size_t before = size_min(*i, context);
    size_t equal = 0;
    ret->old = *i - before;
    ret->new = *j - before;
    while (equal <= 2 * context && (*i < diff->old_count || *j < diff->new_count)) {
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
    size_t back = 0;
    if (equal > context) {
        back = equal - context;
    }
    *i -= back;
    *j -= back;
    ret->old_end = *i;
    ret->new_end = *j;
    return true;
}

int diff_unified(const struct diff *diff, size_t context, struct ng_str old_name,
                 struct ng_str new_name, diff_piece_fn *piece, void *user)
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
    while (out.stop == 0 && next_hunk(diff, context, &i, &j, &hunk)) {
        put_hunk(&out, &hunk);
    }
    return out.stop;
}
