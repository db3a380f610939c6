/* SPDX-License-Identifier: MIT */
/* line_counts.c - how many lines a change adds and removes. */
#include "line_counts.h"

#include "core/base/minmax.h"
#include "core/base/str.h"

/* Two texts that follow each other. */
struct counts_join {
    struct ng_str first, second;
};

static struct ng_str counts_part(struct ng_str text, size_t from, size_t to)
{
    return to > from ? str_make(text.data + from, to - from) : str_make("", 0);
}

static bool counts_same(struct counts_join a, struct counts_join b)
{
    if (a.first.len < b.first.len) {
        struct counts_join other = a;
        a = b;
        b = other;
    }
    size_t more = a.first.len - b.first.len;
    return a.first.len + a.second.len == b.first.len + b.second.len &&
           str_equal(counts_part(a.first, 0, b.first.len), b.first) &&
           str_equal(counts_part(a.first, b.first.len, a.first.len),
                     counts_part(b.second, 0, more)) &&
           str_equal(a.second, counts_part(b.second, more, b.second.len));
}

/* The place of the line feed at or behind `from`, or the end of the text. */
static size_t counts_end_at(struct ng_str text, size_t from)
{
    const char *end = from < text.len ? memchr(text.data + from, '\n', text.len - from) : NULL;
    return end == NULL ? text.len : (size_t)(end - text.data);
}

/* The beginning of the line that `at` is in. */
static size_t counts_line_start(struct ng_str text, size_t at)
{
    const char *end = at > 0 ? memrchr(text.data, '\n', at) : NULL;
    return end == NULL ? 0 : (size_t)(end - text.data) + 1;
}

/* The end of the line that a stretch begins in, from the stretch on; `rest` follows it. */
static struct counts_join counts_first(struct ng_str stretch, struct ng_str rest)
{
    size_t end = counts_end_at(stretch, 0);
    struct counts_join join = {counts_part(stretch, 0, end), str_make("", 0)};
    if (end == stretch.len) {
        join.second = rest;
    }
    return join;
}

/* The beginning of the line that a stretch ends in; `head` is before it. */
static struct counts_join counts_last(struct ng_str head, struct ng_str stretch)
{
    size_t start = counts_line_start(stretch, stretch.len);
    struct counts_join join = {str_make("", 0), counts_part(stretch, start, stretch.len)};
    if (start == 0) {
        join.first = head;
    }
    return join;
}

int line_counts(struct ng_str old, const struct ng_splice *splice, uint64_t *ret_added,
                uint64_t *ret_removed)
{
    if (splice->at > old.len || splice->removed > old.len - splice->at) {
        return NG_EINVAL;
    }
    size_t at = (size_t)splice->at;
    size_t end = at + (size_t)splice->removed;
    struct ng_str gone = counts_part(old, at, end);
    struct ng_str come = splice->inserted;
    uint64_t removed = old.len == 0 ? 0 : str_count(gone, '\n') + 1;
    uint64_t added = old.len - gone.len + come.len == 0 ? 0 : str_count(come, '\n') + 1;
    struct ng_str head = counts_part(old, counts_line_start(old, at), at);
    struct ng_str rest = counts_part(old, end, counts_end_at(old, end));
    if (removed > 0 && added > 0 &&
        counts_same(counts_first(gone, rest), counts_first(come, rest))) {
        removed--;
        added--;
    }
    if (removed > 0 && added > 0 &&
        counts_same(counts_last(head, gone), counts_last(head, come))) {
        removed--;
        added--;
    }
    *ret_added = added;
    *ret_removed = removed;
    return NG_OK;
}
