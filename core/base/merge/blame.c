/* SPDX-License-Identifier: MIT */
/*
 * blame.c - the revision that put in each line of a text.
 *
 * The text of the current revision is kept in chunks of bytes, with a line feed behind its last
 * line, and its lines in chunks as well. A line has a mark: forward, the revision that put it
 * in; backward, the line of the newest text that it is (from 1), or 0.
 */
#include "blame.h"

#include "blame_splice.h"
#include "core/base/arena.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/diff.h"

#include <stdlib.h>
#include <string.h>

/* Items of a chunk. */
#define BLAME_CHUNK_BYTES 8192
#define BLAME_CHUNK_LINES 512
/* Bytes of a stretch that count as a step. */
#define BLAME_BYTES_STEP 8

struct blame_line {
    uint64_t mark;
    size_t bytes; /* with its line feed */
};

struct blame {
    enum blame_way way;
    uint64_t revision; /* of the current text */
    struct chunks text;
    struct chunks lines;
    uint64_t *settled; /* backward: the revision of each line of the newest text */
    bool *is_settled;
    size_t newest_lines, open; /* lines of the newest text; those that are not settled */
    int64_t steps;             /* left for all comparisons */
    bool coarse;
};

/* The lines that a splice changes, of the current text and of the next one. */
struct blame_stretch {
    struct chunks_place first; /* in blame->lines */
    size_t line_count;
    uint64_t from; /* in blame->text */
    char *now, *next;
    size_t now_len, next_len;
    struct blame_line *lines; /* of the current text */
};

static uint64_t blame_line_weight(const void *items, size_t count)
{
    const struct blame_line *lines = items;
    uint64_t weight = 0;
    for (size_t i = 0; i < count; i++) {
        weight += lines[i].bytes;
    }
    return weight;
}

/* The bytes of the current text, without the line feed behind it. */
static size_t blame_len(const struct blame *blame)
{
    return blame->text.total == 0 ? 0 : (size_t)blame->text.total - 1;
}

static bool blame_fits(const struct blame *blame, const struct ng_splice *splice)
{
    size_t len = blame_len(blame);
    return splice->at <= len && splice->removed <= len - splice->at;
}

/* A line of the newest text, by its mark, came with the current revision. */
static void blame_settle(struct blame *blame, uint64_t mark)
{
    if (blame->way == BLAME_BACKWARD && mark != 0) {
        blame->settled[mark - 1] = blame->revision;
        blame->is_settled[mark - 1] = true;
        blame->open--;
    }
}

/* ---- the first text ---- */

static int blame_add_lines(struct blame *blame, struct ng_str text)
{
    size_t count = str_count(text, '\n');
    struct blame_line *lines = alloc_bytes((count + 1) * sizeof(*lines));
    size_t at = 0;
    if (lines == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        size_t next = (size_t)(end - text.data) + 1;
        lines[i].mark = blame->way == BLAME_FORWARD ? blame->revision : i + 1;
        lines[i].bytes = next - at;
        at = next;
    }
    int rc = chunks_replace(&blame->lines, chunks_find(&blame->lines, 0), 0, lines, count);
    free(lines);
    if (rc == NG_OK && blame->way == BLAME_BACKWARD) {
        blame->settled = alloc_zeroed(count + 1, sizeof(*blame->settled));
        blame->is_settled = alloc_zeroed(count + 1, sizeof(*blame->is_settled));
        blame->newest_lines = count;
        blame->open = count;
        if (blame->settled == NULL || blame->is_settled == NULL) {
            rc = NG_EINTERNAL;
        }
    }
    return rc;
}

int blame_new(enum blame_way way, struct ng_str text, uint64_t revision, struct blame **ret)
{
    if (text.len > BLAME_TEXT_MAX) {
        return NG_ETOOLARGE;
    }
    struct blame *blame = alloc_zeroed(1, sizeof(*blame));
    char *copy = alloc_bytes(text.len + 1);
    int rc = blame == NULL || copy == NULL ? NG_EINTERNAL : NG_OK;
    if (rc == NG_OK) {
        struct ng_str whole = {copy, text.len > 0 ? text.len + 1 : 0};
        blame->way = way;
        blame->revision = revision;
        blame->steps = BLAME_STEPS_MAX;
        chunks_init(&blame->text, 1, BLAME_CHUNK_BYTES, NULL);
        chunks_init(&blame->lines, sizeof(struct blame_line), BLAME_CHUNK_LINES,
                    blame_line_weight);
        if (text.len > 0) {
            memcpy(copy, text.data, text.len);
        }
        copy[text.len] = '\n';
        rc = chunks_replace(&blame->text, chunks_find(&blame->text, 0), 0, whole.data,
                            whole.len);
        if (rc == NG_OK) {
            rc = blame_add_lines(blame, whole);
        }
    }
    free(copy);
    if (rc == NG_OK) {
        *ret = blame;
    } else {
        blame_free(blame);
    }
    return rc;
}

void blame_free(struct blame *blame)
{
    if (blame != NULL) {
        chunks_done(&blame->text);
        chunks_done(&blame->lines);
        free(blame->settled);
        free(blame->is_settled);
        free(blame);
    }
}

/* ---- a step ---- */

/* A change within one line: it is another one then, and nothing is to be compared. */
static int blame_step_line(struct blame *blame, struct chunks_place place,
                           const struct ng_splice *splice)
{
    struct chunks_place next = place;
    struct blame_line line = *(const struct blame_line *)chunks_next(&blame->lines, &next);
    blame_settle(blame, line.mark);
    line.mark = blame->way == BLAME_FORWARD ? blame->revision : 0;
    line.bytes = line.bytes - (size_t)splice->removed + splice->inserted.len;
    int rc = chunks_replace(&blame->lines, place, 1, &line, 1);
    if (rc == NG_OK) {
        rc = chunks_replace(&blame->text, chunks_find(&blame->text, splice->at),
                            (size_t)splice->removed, splice->inserted.data,
                            splice->inserted.len);
    }
    return rc;
}

/* Reads the lines from the one at splice->at to the one behind the removed bytes. */
static int blame_read_stretch(const struct blame *blame, const struct ng_splice *splice,
                              struct blame_stretch *ret)
{
    uint64_t end = splice->at + splice->removed;
    ret->first = chunks_find(&blame->lines, splice->at);
    ret->from = ret->first.before;
    struct chunks_place place = ret->first;
    while (place.before <= end && chunks_next(&blame->lines, &place) != NULL) {
        ret->line_count++;
    }
    ret->now_len = (size_t)(place.before - ret->from);
    ret->lines = alloc_bytes((ret->line_count + 1) * sizeof(*ret->lines));
    ret->now = alloc_bytes(ret->now_len + 1);
    if (ret->lines == NULL || ret->now == NULL) {
        return NG_EINTERNAL;
    }
    chunks_copy(&blame->lines, ret->first, ret->line_count, ret->lines);
    chunks_copy(&blame->text, chunks_find(&blame->text, ret->from), ret->now_len, ret->now);
    return NG_OK;
}

/* The stretch after the splice. */
static int blame_make_stretch(const struct ng_splice *splice, size_t next_text_len,
                              struct blame_stretch *stretch)
{
    struct ng_str in = splice->inserted;
    size_t head = (size_t)(splice->at - stretch->from);
    size_t behind = head + (size_t)splice->removed;
    stretch->next = alloc_bytes(stretch->now_len + in.len + 1);
    if (stretch->next == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(stretch->next, stretch->now, head);
    if (in.len > 0) {
        memcpy(stretch->next + head, in.data, in.len);
    }
    if (stretch->now_len > 0) {
        memcpy(stretch->next + head + in.len, stretch->now + behind, stretch->now_len - behind);
        stretch->next_len = stretch->now_len - (size_t)splice->removed + in.len;
    } else { /* the text was empty */
        stretch->next[in.len] = '\n';
        stretch->next_len = in.len + 1;
    }
    if (next_text_len == 0) {
        stretch->next_len = 0;
    }
    return NG_OK;
}

/* Gives the lines of the next text their marks; `diff` is that of the stretch, the older text
 * first. */
static int blame_mark(struct blame *blame, const struct diff *diff,
                      const struct blame_stretch *stretch, struct blame_line **ret_lines,
                      size_t *ret_count)
{
    bool forward = blame->way == BLAME_FORWARD;
    const unsigned char *gone = forward ? diff->gone : diff->come;
    const unsigned char *come = forward ? diff->come : diff->gone;
    const size_t *starts = forward ? diff->new_at : diff->old_at;
    size_t count = forward ? diff->new_count : diff->old_count;
    struct blame_line *lines = alloc_bytes((count + 1) * sizeof(*lines));
    size_t i = 0;
    if (lines == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t j = 0; j < count; j++) {
        lines[j].bytes = starts[j + 1] - starts[j];
        lines[j].mark = forward ? blame->revision : 0;
        if (come[j] == 0) {
            while (gone[i] != 0) {
                blame_settle(blame, stretch->lines[i++].mark);
            }
            lines[j].mark = stretch->lines[i++].mark;
        }
    }
    for (; i < stretch->line_count; i++) {
        blame_settle(blame, stretch->lines[i].mark);
    }
    *ret_lines = lines;
    *ret_count = count;
    return NG_OK;
}

static int blame_compare(struct blame *blame, const struct blame_stretch *stretch)
{
    struct ng_str now = {stretch->now, stretch->now_len};
    struct ng_str next = {stretch->next, stretch->next_len};
    bool forward = blame->way == BLAME_FORWARD;
    struct blame_line *lines = NULL;
    size_t count = 0;
    struct diff diff;
    blame->steps -= (int64_t)((now.len + next.len) / BLAME_BYTES_STEP);
    int rc =
        diff_lines_within(forward ? now : next, forward ? next : now, &blame->steps, &diff);
    if (rc == NG_OK) {
        blame->coarse = blame->coarse || diff.coarse;
        rc = blame_mark(blame, &diff, stretch, &lines, &count);
    }
    diff_done(&diff);
    if (rc == NG_OK) {
        rc = chunks_replace(&blame->lines, stretch->first, stretch->line_count, lines, count);
    }
    if (rc == NG_OK) {
        rc = chunks_replace(&blame->text, chunks_find(&blame->text, stretch->from), now.len,
                            next.data, next.len);
    }
    free(lines);
    return rc;
}

static int blame_step_stretch(struct blame *blame, const struct ng_splice *splice,
                              size_t next_text_len)
{
    struct blame_stretch stretch = {0};
    int rc = blame_read_stretch(blame, splice, &stretch);
    if (rc == NG_OK) {
        rc = blame_make_stretch(splice, next_text_len, &stretch);
    }
    if (rc == NG_OK) {
        rc = blame_compare(blame, &stretch);
    }
    free(stretch.lines);
    free(stretch.now);
    free(stretch.next);
    return rc;
}

/* Is it a change of bytes within one line? Then *ret_place is that line. */
static bool blame_is_within_line(const struct blame *blame, const struct ng_splice *splice,
                                 struct chunks_place *ret_place)
{
    struct ng_str in = splice->inserted;
    struct chunks_place place = chunks_find(&blame->lines, splice->at);
    *ret_place = place;
    return chunks_next(&blame->lines, &place) != NULL &&
           splice->at + splice->removed < place.before &&
           (in.len == 0 || memchr(in.data, '\n', in.len) == NULL);
}

/* The splice is that of two texts, and fits. */
static int blame_step_narrow(struct blame *blame, uint64_t revision,
                             const struct ng_splice *splice)
{
    size_t len = blame_len(blame);
    size_t next_len = len - (size_t)splice->removed + splice->inserted.len;
    struct chunks_place place;
    int rc = NG_OK;
    if (blame->way == BLAME_FORWARD) {
        blame->revision = revision;
    }
    if (next_len > 0 && blame_is_within_line(blame, splice, &place)) {
        if (splice->removed + splice->inserted.len > 0) {
            rc = blame_step_line(blame, place, splice);
        }
    } else if (len + next_len > 0) {
        rc = blame_step_stretch(blame, splice, next_len);
    }
    blame->revision = revision;
    return rc;
}

int blame_step(struct blame *blame, uint64_t revision, const struct ng_splice *splice)
{
    const struct blame_bytes text = {&blame->text, blame_len(blame)};
    struct ng_splice narrow = *splice;
    char *owned = NULL;
    if (!blame_fits(blame, splice)) {
        return NG_EINVAL;
    }
    if (splice->inserted.len > BLAME_TEXT_MAX - (size_t)(text.end - splice->removed)) {
        return NG_ETOOLARGE;
    }
    int rc = blame_splice_narrow(&text, &narrow, &owned);
    if (rc == NG_OK) {
        rc = blame_step_narrow(blame, revision, &narrow);
    }
    free(owned);
    return rc;
}

int blame_check_utf8(const struct blame *blame, const struct ng_splice *splice)
{
    const struct blame_bytes text = {&blame->text, blame_len(blame)};
    return blame_fits(blame, splice) ? blame_splice_utf8(&text, splice) : NG_EINVAL;
}

/* ---- whole texts ---- */

/* How many bytes at the beginning of both are the same. */
static size_t blame_common_head(const struct chunks *text, struct ng_str other, size_t most)
{
    size_t at = 0;
    for (size_t i = 0; i < text->count && at < most; i++) {
        const struct chunk *chunk = &text->list[i];
        size_t len = size_min(chunk->count, most - at);
        if (memcmp(chunk->items, other.data + at, len) != 0) {
            size_t same = 0;
            while (chunk->items[same] == other.data[at + same]) {
                same++;
            }
            return at + same;
        }
        at += len;
    }
    return at;
}

/* The same at the end; the line feed behind the text is not in `other`. */
static size_t blame_common_tail(const struct chunks *text, struct ng_str other, size_t most)
{
    size_t tail = 0;
    size_t skip = 1;
    for (size_t i = text->count; i > 0 && tail < most; i--) {
        const struct chunk *chunk = &text->list[i - 1];
        size_t have = chunk->count - skip;
        size_t len = size_min(have, most - tail);
        const char *end = other.data + other.len - tail;
        skip = 0;
        if (memcmp(chunk->items + have - len, end - len, len) != 0) {
            size_t same = 0;
            while (chunk->items[have - 1 - same] == end[-1 - (ptrdiff_t)same]) {
                same++;
            }
            return tail + same;
        }
        tail += len;
    }
    return tail;
}

struct ng_splice blame_splice_to(const struct blame *blame, struct ng_str text)
{
    size_t len = blame_len(blame);
    size_t least = size_min(len, text.len);
    size_t head = least == 0 ? 0 : blame_common_head(&blame->text, text, least);
    size_t tail = least == head ? 0 : blame_common_tail(&blame->text, text, least - head);
    return (struct ng_splice){
        .at = head,
        .removed = len - head - tail,
        .inserted = str_make(text.len > 0 ? text.data + head : "", text.len - head - tail),
    };
}

int blame_step_text(struct blame *blame, uint64_t revision, struct ng_str text)
{
    const struct ng_splice splice = blame_splice_to(blame, text);
    return blame_step(blame, revision, &splice);
}

int blame_walk(struct blame *blame, blame_older_fn *older, void *user)
{
    int rc = NG_OK;
    while (rc == NG_OK && !blame_settled(blame)) {
        uint64_t revision = 0;
        struct ng_str text = {NULL, 0};
        rc = older(user, &revision, &text);
        if (rc == NG_OK) {
            rc = blame_step_text(blame, revision, text);
        }
    }
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

/* ---- the result ---- */

bool blame_settled(const struct blame *blame)
{
    return blame->way == BLAME_BACKWARD && blame->open == 0;
}

bool blame_exact(const struct blame *blame)
{
    return !blame->coarse;
}

static size_t blame_line_count(const struct blame *blame)
{
    size_t count = 0;
    for (size_t i = 0; i < blame->lines.count; i++) {
        count += blame->lines.list[i].count;
    }
    return count;
}

int blame_result(const struct blame *blame, uint64_t **ret_revisions, size_t *ret_count)
{
    bool forward = blame->way == BLAME_FORWARD;
    size_t count = forward ? blame_line_count(blame) : blame->newest_lines;
    uint64_t *revisions = alloc_bytes((count + 1) * sizeof(*revisions));
    struct chunks_place place = {0, 0, 0};
    if (revisions == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        if (forward) {
            const struct blame_line *line = chunks_next(&blame->lines, &place);
            revisions[i] = line->mark;
        } else {
            revisions[i] = blame->is_settled[i] ? blame->settled[i] : blame->revision;
        }
    }
    *ret_revisions = revisions;
    *ret_count = count;
    return NG_OK;
}
