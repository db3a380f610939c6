/* SPDX-License-Identifier: MIT */
/* edit_check.c - checks of the result of an edit: it must not change bytes or headings outside
 * of its place, nor remove lines that only our Markdown parser reads as text. */
#include <string.h>

#include "edit.h"
#include "markdown/outline.h"
#include "text/codes.h"

#define FENCE_MIN 3
#define INDENT_MAX 3 /* blanks before a heading or a fence */

int notes_edit_text(struct ng_call *call, struct ng_str path, struct ng_str bytes)
{
    const char *fault = NULL;
    if (str_begins(bytes, "\xff\xfe") || str_begins(bytes, "\xfe\xff")) {
        fault = "it is UTF-16 text, not UTF-8";
    } else if (bytes.len > 0 && memchr(bytes.data, '\0', bytes.len) != NULL) {
        fault = "it holds NUL bytes, so it is binary or not UTF-8 text";
    } else if (!utf8_valid(bytes)) {
        fault = "it holds bytes that are not UTF-8 text";
    }
    if (fault == NULL) {
        return NG_OK;
    }
    return ng_fail(call, NOTES_ENOTTEXT,
                   "The note %.*s cannot be edited: %s. Only UTF-8 text is edited, so that "
                   "nothing in it is destroyed.",
                   (int)path.len, path.data, fault);
}

/* ---- headings outside */

static int fail_heading(struct ng_call *call, struct ng_str path,
                        const struct notes_outline_heading *item, bool lost)
{
    (void)ng_fail(call, NG_EFAILED,
                  lost ? "The note %.*s is unchanged: with this content '%.*s' (line %u of its "
                         "content) would be a heading no longer, or another one."
                       : "The note %.*s is unchanged: this content would make '%.*s' (line %u "
                         "of its content) a heading.",
                  (int)path.len, path.data, (int)utf8_cut(item->text, 200).len, item->text.data,
                  (unsigned)item->line);
    call->host->hint(call,
                     "End what `content` opens (``` or ~~~, <!--, HTML), and put an empty "
                     "line before a line of '=' or '-'.");
    return NG_EFAILED;
}

static bool is_same(const struct notes_outline_heading *a,
                    const struct notes_outline_heading *b)
{
    return a->level == b->level && a->nested == b->nested && str_equal(a->text, b->text) &&
           a->last_line - a->line == b->last_line - b->line;
}

static size_t body_of(struct ng_str bytes, struct ng_str *ret_body)
{
    struct notes_frontmatter frontmatter;
    notes_frontmatter_find(bytes, &frontmatter);
    *ret_body = str_make(bytes.data + frontmatter.body, bytes.len - frontmatter.body);
    return frontmatter.body;
}

/* Headings that begin before `at` and behind `to`, both offsets of the file. */
static void count_outside(const struct notes_outline *outline, size_t body, size_t at,
                          size_t to, size_t *ret_before, size_t *ret_behind)
{
    *ret_before = *ret_behind = 0;
    for (size_t i = 0; i < outline->count; i++) {
        *ret_before += body + outline->items[i].at < at;
        *ret_behind += body + outline->items[i].at >= to;
    }
}

static int compare(struct ng_call *call, struct ng_str path, const struct notes_outline *old,
                   const struct notes_outline *made, const size_t counts[4])
{
    size_t before = counts[0];
    size_t behind = counts[1];
    for (size_t i = 0; i < before; i++) {
        if (i >= counts[2] || !is_same(&old->items[i], &made->items[i])) {
            return fail_heading(call, path, &old->items[i], true);
        }
    }
    if (counts[2] > before) {
        return fail_heading(call, path, &made->items[before], false);
    }
    for (size_t i = 1; i <= behind; i++) {
        const struct notes_outline_heading *item = &old->items[old->count - i];
        if (i > counts[3] || !is_same(item, &made->items[made->count - i])) {
            return fail_heading(call, path, item, true);
        }
    }
    if (counts[3] > behind) {
        return fail_heading(call, path, &made->items[made->count - counts[3]], false);
    }
    return NG_OK;
}

/* ---- lines that look like headings */

static size_t count_of(struct ng_str line, size_t at, char c)
{
    size_t end = at;
    while (end < line.len && line.data[end] == c) {
        end++;
    }
    return end - at;
}

/* The level of "## text"; 0: the line is none. */
static size_t level_of(struct ng_str line)
{
    size_t at = count_of(line, 0, ' ');
    size_t level = count_of(line, at, '#');
    size_t behind = at + level;
    bool ends = behind >= line.len || memchr(" \t\r", line.data[behind], 3) != NULL;
    if (at > INDENT_MAX || level > 6 || !ends) {
        return 0;
    }
    return level;
}

/* Updates the state of fenced code for a line that begins or ends one. */
static void look_at_fence(struct ng_str line, char *fence, size_t *fence_len)
{
    size_t at = count_of(line, 0, ' ');
    if (at >= line.len || at > INDENT_MAX || (line.data[at] != '`' && line.data[at] != '~')) {
        return;
    }
    char c = line.data[at];
    size_t len = count_of(line, at, c);
    struct ng_str rest = str_make(line.data + at + len, line.len - at - len);
    if (*fence == '\0' && len >= FENCE_MIN &&
        (c == '~' || rest.len == 0 || memchr(rest.data, '`', rest.len) == NULL)) {
        *fence = c;
        *fence_len = len;
    } else if (*fence != '\0' && c == *fence && len >= *fence_len &&
               notes_trim(rest).len == 0) {
        *fence = '\0';
    }
}

/* The offset of a line in [at, to) that looks like a heading that would end the section, but
 * that the Markdown parser reads as text; SIZE_MAX: there is none. Code between fences does not
 * count, unless the last fence is never closed. */
static size_t find_hidden(const struct notes_change *change,
                          const struct notes_outline *outline, size_t body)
{
    char fence = '\0';
    size_t fence_len = 0;
    size_t in_fence = SIZE_MAX;
    size_t item = 0;
    for (size_t at = change->at; at < change->to;) {
        size_t end = size_min(notes_find_char(change->old, at, '\n'), change->to);
        struct ng_str line = str_make(change->old.data + at, end - at);
        size_t level = level_of(line);
        while (item < outline->count && body + outline->items[item].at < at) {
            item++;
        }
        bool known = item < outline->count && body + outline->items[item].at == at;
        if (level > 0 && level <= change->level && !known) {
            if (fence == '\0') {
                return at;
            }
            in_fence = size_min(in_fence, at);
        }
        look_at_fence(line, &fence, &fence_len);
        if (fence == '\0') {
            in_fence = SIZE_MAX;
        }
        at = end + 1;
    }
    return in_fence;
}

static int fail_hidden(struct ng_call *call, struct ng_str path,
                       const struct notes_change *change, size_t at)
{
    size_t end = notes_find_char(change->old, at, '\n');
    struct ng_str line = utf8_cut(str_make(change->old.data + at, end - at), 200);
    (void)ng_fail(call, NG_EFAILED,
                  "The note %.*s is unchanged: its line '%.*s' looks like the heading of the "
                  "next section, but stands in HTML or in code that is not ended, so that it "
                  "would be replaced, too.",
                  (int)path.len, path.data, (int)notes_trim(line).len, notes_trim(line).data);
    call->host->hint(call, "Replace the section around it, with an end of the code or HTML.");
    return NG_EFAILED;
}

/* ---- */

static bool keeps_bytes(const struct notes_change *change)
{
    size_t tail = change->old.len - change->to;
    return change->made.len >= change->at + tail &&
           memcmp(change->old.data, change->made.data, change->at) == 0 &&
           memcmp(change->old.data + change->to, change->made.data + change->made.len - tail,
                  tail) == 0;
}

int notes_edit_check(struct ng_call *call, struct arena *arena, struct ng_str path, int made_rc,
                     const struct notes_change *change)
{
    if (made_rc == NG_ETOOLARGE) {
        return ng_fail(call, made_rc, "The note %.*s would be too large.", (int)path.len,
                       path.data);
    }
    if (made_rc != NG_OK) {
        return made_rc == NG_EINTERNAL ? notes_fail_memory(call) : made_rc;
    }
    struct notes_outline old;
    struct notes_outline made;
    struct ng_str bodies[2];
    size_t counts[4]; /* headings before and behind the place: old and new */
    if (!keeps_bytes(change)) {
        return ng_fail(call, NG_EFAILED,
                       "The note %.*s is unchanged: the edit would have changed more than its "
                       "place. Please report this.",
                       (int)path.len, path.data);
    }
    if (change->exact) {
        return NG_OK;
    }
    size_t old_body = body_of(change->old, &bodies[0]);
    size_t made_body = body_of(change->made, &bodies[1]);
    if (notes_outline_read(arena, bodies[0], &old) != NG_OK ||
        notes_outline_read(arena, bodies[1], &made) != NG_OK) {
        return notes_fail_memory(call);
    }
    size_t hidden = find_hidden(change, &old, old_body);
    if (hidden != SIZE_MAX) {
        return fail_hidden(call, path, change, hidden);
    }
    if (change->level == 0 && !(old.whole && made.whole)) {
        return NG_OK; /* if the Markdown is only partly parsed, its headings are unknown */
    }
    size_t tail = change->old.len - change->to;
    count_outside(&old, old_body, change->at, change->to, &counts[0], &counts[1]);
    count_outside(&made, made_body, change->at, change->made.len - tail, &counts[2],
                  &counts[3]);
    return compare(call, path, &old, &made, counts);
}
