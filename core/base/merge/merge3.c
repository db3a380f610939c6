/* SPDX-License-Identifier: MIT */
/*
 * merge3.c - three-way merge of texts by lines, and of whole values.
 *
 * The texts are merged with a line feed behind their last line, which is taken away again: then
 * pieces and lines that end in a line feed are the same.
 */
#include "merge3.h"

#include "core/base/arena.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "merge_hunks.h"

#include <stdlib.h>

struct merge_work {
    struct merge3 *ret;
    struct ng_str texts[3]; /* base, present, before: as they came */
    char *copies[3];        /* with a line feed behind the last line */
    struct merge_hunks present, before;
    int64_t steps;
    size_t base_at; /* base is merged up to here */
    size_t i, j;    /* the next hunks of present and of before */
    size_t line_at; /* in present: the line feeds before it are counted */
    uint64_t line;
};

/* Lines of base, and those that they became on both sides. */
struct merge_region {
    size_t base, base_end;
    size_t present, present_end, before, before_end;
};

/* ---- hunks of both sides ---- */

static bool merge_is_insertion(const struct merge_hunk *hunk)
{
    return hunk->base == hunk->base_end;
}

static bool merge_is_removal(const struct merge_hunk *hunk)
{
    return hunk->side == hunk->side_end;
}

/* Do lines [a, a_end) and [b, b_end) of base, either of them perhaps empty, exclude each other?
 */
static bool merge_overlap(size_t a, size_t a_end, size_t b, size_t b_end)
{
    return (a == b && a_end == b_end) || (a < b_end && b < a_end);
}

static bool merge_hunks_overlap(const struct merge_hunk *a, const struct merge_hunk *b)
{
    return merge_overlap(a->base, a->base_end, b->base, b->base_end);
}

/* Slides the hunk down until it does not overlap `other`. False: it stays as it was. */
static bool merge_slide_past(struct merge_work *work, struct merge_hunks *hunks, size_t index,
                             const struct merge_hunk *other)
{
    struct merge_hunk *hunk = &hunks->items[index];
    struct merge_hunk was = *hunk;
    while (merge_hunks_overlap(hunk, other)) {
        if (!merge_hunks_slide(hunks, index, &work->steps)) {
            *hunk = was;
            return false;
        }
    }
    return true;
}

/* Makes two hunks touch that overlap, if one can slide. Not two insertions, nor two removals:
 * lines that both sides added or removed would be so twice. */
static bool merge_avoid(struct merge_work *work, size_t i, size_t j)
{
    const struct merge_hunk *p = &work->present.items[i];
    const struct merge_hunk *b = &work->before.items[j];
    if ((merge_is_insertion(p) && merge_is_insertion(b)) ||
        (merge_is_removal(p) && merge_is_removal(b))) {
        return false;
    }
    return merge_slide_past(work, &work->present, i, b) ||
           merge_slide_past(work, &work->before, j, p);
}

/* ---- output ---- */

static void merge_put(struct merge_work *work, struct ng_str text, size_t from, size_t to)
{
    (void)buf_add(&work->ret->text, text.data + from, to - from);
}

/* Base up to `at`, unchanged. */
static void merge_put_base(struct merge_work *work, size_t at)
{
    merge_put(work, work->present.base, work->base_at, at);
    work->base_at = at;
}

static void merge_put_hunk(struct merge_work *work, const struct merge_hunks *hunks,
                           const struct merge_hunk *hunk)
{
    merge_put_base(work, hunk->base);
    merge_put(work, hunks->side, hunk->side, hunk->side_end);
    work->base_at = hunk->base_end;
}

/* Lines of one side, as they stand in the caller's text, without the last line end. */
static struct ng_str merge_side(struct ng_str text, size_t from, size_t to)
{
    size_t end = size_min(to, text.len + 1);
    if (text.len == 0 || from >= end) {
        return str_make("", 0);
    }
    return utf8_cut(str_make(text.data + from, end - 1 - from), MERGE3_SIDE_MAX);
}

static void merge_conflict(struct merge_work *work, const struct merge_region *region)
{
    struct merge3 *ret = work->ret;
    uint64_t index = ret->conflict_count++;
    if (index >= MERGE3_CONFLICTS_MAX) {
        return;
    }
    struct ng_str present = work->texts[1];
    for (; work->line_at < size_min(region->present, present.len); work->line_at++) {
        if (present.data[work->line_at] == '\n') {
            work->line++;
        }
    }
    ret->conflicts[index] = (struct merge3_conflict){
        .line = work->line,
        .present = merge_side(work->texts[1], region->present, region->present_end),
        .before = merge_side(work->texts[2], region->before, region->before_end),
    };
}

/* ---- the merge ---- */

/* The hunks from here on that overlap each other, in one region; work->i and work->j move
 * behind them. */
static void merge_gather(struct merge_work *work, struct merge_region *ret)
{
    const struct merge_hunk *first_p = &work->present.items[work->i];
    const struct merge_hunk *first_b = &work->before.items[work->j];
    const struct merge_hunk *p = first_p;
    const struct merge_hunk *b = first_b;
    size_t from = size_min(p->base, b->base);
    size_t to = size_max(p->base_end, b->base_end);
    bool more = true;
    work->i++;
    work->j++;
    while (more) {
        more = false;
        if (work->i < work->present.count &&
            merge_overlap(from, to, p[1].base, p[1].base_end)) {
            p++;
            work->i++;
            more = true;
        } else if (work->j < work->before.count &&
                   merge_overlap(from, to, b[1].base, b[1].base_end)) {
            b++;
            work->j++;
            more = true;
        }
        to = size_max(to, size_max(p->base_end, b->base_end));
    }
    *ret = (struct merge_region){
        .base = from,
        .base_end = to,
        .present = first_p->side - (first_p->base - from),
        .present_end = p->side_end + (to - p->base_end),
        .before = first_b->side - (first_b->base - from),
        .before_end = b->side_end + (to - b->base_end),
    };
}

/* Hunks that exclude each other: equal ones count once. Else they may touch instead, or are a
 * conflict. */
static void merge_overlapping(struct merge_work *work)
{
    struct merge_region region;
    size_t i = work->i;
    size_t j = work->j;
    merge_gather(work, &region);
    struct ng_str present = {work->present.side.data + region.present,
                             region.present_end - region.present};
    struct ng_str before = {work->before.side.data + region.before,
                            region.before_end - region.before};
    bool equal = str_equal(present, before);
    if (!equal && merge_avoid(work, i, j)) {
        work->i = i;
        work->j = j;
        return;
    }
    merge_put_base(work, region.base);
    work->base_at = region.base_end;
    if (equal) {
        (void)buf_add_str(&work->ret->text, present);
    } else {
        merge_conflict(work, &region);
    }
}

/* The order in base; an insertion stands before the lines that begin at its place. */
static bool merge_is_first(const struct merge_hunk *a, const struct merge_hunk *b)
{
    return a->base < b->base || (a->base == b->base && a->base_end < b->base_end);
}

static void merge_all(struct merge_work *work)
{
    while (work->i < work->present.count && work->j < work->before.count) {
        const struct merge_hunk *p = &work->present.items[work->i];
        const struct merge_hunk *b = &work->before.items[work->j];
        if (merge_hunks_overlap(p, b)) {
            merge_overlapping(work);
        } else if (merge_is_first(p, b)) {
            merge_put_hunk(work, &work->present, p);
            work->i++;
        } else {
            merge_put_hunk(work, &work->before, b);
            work->j++;
        }
    }
    for (; work->i < work->present.count; work->i++) {
        merge_put_hunk(work, &work->present, &work->present.items[work->i]);
    }
    for (; work->j < work->before.count; work->j++) {
        merge_put_hunk(work, &work->before, &work->before.items[work->j]);
    }
    merge_put_base(work, work->present.base.len);
    struct buf *text = &work->ret->text;
    if (text->rc == NG_OK && text->len > 0) {
        buf_cut(text, text->len - 1);
    }
}

/* The text with a line feed behind its last line. */
static int merge_end_lines(struct merge_work *work, int which, struct ng_str *ret)
{
    struct ng_str base = work->texts[0];
    struct ng_str text = work->texts[which];
    char *copy = alloc_bytes(text.len + 1);
    if (copy == NULL) {
        return NG_EINTERNAL;
    }
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\n';
    work->copies[which] = copy;
    bool none = text.len == 0 && (base.len == 0 || base.data[base.len - 1] != '\n');
    *ret = str_make(copy, none ? 0 : text.len + 1);
    return NG_OK;
}

static int merge_lines(struct merge_work *work)
{
    struct ng_str lines[3];
    int rc = NG_OK;
    for (int which = 0; rc == NG_OK && which < 3; which++) {
        rc = merge_end_lines(work, which, &lines[which]);
    }
    if (rc == NG_OK) {
        rc = merge_hunks_find(lines[0], lines[1], &work->steps, &work->present);
    }
    if (rc == NG_OK) {
        rc = merge_hunks_find(lines[0], lines[2], &work->steps, &work->before);
    }
    if (rc == NG_OK) {
        merge_all(work);
        rc = work->ret->text.rc;
        work->ret->coarse = work->present.coarse || work->before.coarse || work->steps <= 0;
    }
    merge_hunks_done(&work->present);
    merge_hunks_done(&work->before);
    for (int which = 0; which < 3; which++) {
        free(work->copies[which]);
    }
    return rc;
}

int merge3_texts_within(struct ng_str base, struct ng_str present, struct ng_str before,
                        int64_t *inout_steps, struct merge3 *ret)
{
    struct merge_work work = {
        .ret = ret,
        .texts = {base, present, before},
        .steps = *inout_steps,
        .line = 1,
    };
    *ret = (struct merge3){0};
    if (str_equal(present, base)) {
        buf_init(&ret->text, before.len);
        return buf_add_str(&ret->text, before);
    }
    if (str_equal(before, base) || str_equal(present, before)) {
        buf_init(&ret->text, present.len);
        return buf_add_str(&ret->text, present);
    }
    size_t longest = size_max(base.len, size_max(present.len, before.len));
    if (longest > MERGE3_TEXT_MAX) {
        return NG_ETOOLARGE;
    }
    buf_init(&ret->text, present.len + before.len + 2);
    int rc = merge_lines(&work);
    *inout_steps = work.steps;
    return rc;
}

int merge3_texts(struct ng_str base, struct ng_str present, struct ng_str before,
                 struct merge3 *ret)
{
    int64_t steps = MERGE3_STEPS_MAX;
    return merge3_texts_within(base, present, before, &steps, ret);
}

void merge3_done(struct merge3 *merge)
{
    buf_done(&merge->text);
    merge->conflict_count = 0;
}

static bool merge_same_value(struct ng_str a, struct ng_str b)
{
    if (a.data == NULL || b.data == NULL) {
        return a.data == b.data;
    }
    return str_equal(a, b);
}

enum merge3_value merge3_values(struct ng_str base, struct ng_str present, struct ng_str before)
{
    if (merge_same_value(before, base) || merge_same_value(present, before)) {
        return MERGE3_PRESENT;
    }
    return merge_same_value(present, base) ? MERGE3_BEFORE : MERGE3_CONFLICT;
}
