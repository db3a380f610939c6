/* SPDX-License-Identifier: MIT */
/* edit_replace.c - replaces a text that occurs once. */
#include <string.h>

#include "core/base/text/line_ends.h"
#include "core/base/text/text_near.h"
#include "edit.h"

#define ECHO_BYTES_MAX 200   /* of the text, in an error */
#define REPLACE_LINES_MAX 10 /* listed in an error */
#define REPLACE_LINES_BYTES ((size_t)REPLACE_LINES_MAX * 32)

struct replace {
    struct ng_str path;
    struct ng_str text; /* of the note, with LF for CRLF if the search needs it */
    struct ng_str wanted;
};

static const char *replace_cut_mark(struct ng_str text)
{
    return text.len > ECHO_BYTES_MAX ? "..." : "";
}

static int replace_fail_absent(struct ng_call *call, const struct replace *replace)
{
    char note[TEXT_NEAR_NOTE_SIZE];
    struct ng_str shown = utf8_cut(replace->wanted, ECHO_BYTES_MAX);
    (void)ng_fail(call, NG_EFAILED,
                  "The note %.*s is unchanged: `oldStr` does not occur in it: '%.*s%s'.",
                  (int)replace->path.len, replace->path.data, (int)shown.len, shown.data,
                  replace_cut_mark(replace->wanted));
    if (text_near(replace->text, replace->wanted, "oldStr", note)) {
        call->host->hint(call, "%s", note);
    } else {
        call->host->hint(call, "Get the note again: it may have been changed.");
    }
    return NG_EFAILED;
}

/* Lists the lines of the occurrences; the second one may overlap the first. */
static int replace_fail_ambiguous(struct ng_call *call, const struct replace *replace,
                                  size_t first)
{
    struct ng_str text = replace->text;
    struct ng_str shown = utf8_cut(replace->wanted, ECHO_BYTES_MAX);
    struct buf lines;
    size_t line = 1;
    size_t listed = 0;
    size_t count = 0;
    size_t at = 0;
    bool more = false;
    buf_init(&lines, REPLACE_LINES_BYTES);
    for (size_t hit = first; hit != SIZE_MAX;
         hit = str_find(text, replace->wanted, hit + (count == 1 ? 1 : replace->wanted.len))) {
        count++;
        if (listed == REPLACE_LINES_MAX) {
            more = true;
            continue;
        }
        size_t step = str_count(str_make(text.data + at, hit - at), '\n');
        line += step;
        at = hit;
        if (listed == 0 || step > 0) {
            buf_printf(&lines, "%s%zu", listed > 0 ? ", " : "", line);
            listed++;
        }
    }
    notes_add_if(&lines, more, " ...");
    (void)ng_fail(call, NG_EFAILED,
                  "The note %.*s is unchanged: `oldStr` occurs %zu times, in line%s %.*s: "
                  "'%.*s%s'.",
                  (int)replace->path.len, replace->path.data, count, listed > 1 ? "s" : "",
                  (int)lines.len, buf_str(&lines).data, (int)shown.len, shown.data,
                  replace_cut_mark(replace->wanted));
    call->host->hint(call, "Add the text around it to `oldStr`, until it occurs once.");
    buf_done(&lines);
    return NG_EFAILED;
}

/* `put` with the line ends of the text that it replaces, unless that is given with CR. */
static struct ng_str replace_with_ends(struct arena *arena, struct ng_str bytes, size_t at,
                                       size_t to, struct ng_str put)
{
    struct ng_str old = {bytes.data + at, to - at};
    bool crlf = line_ends_is_crlf(bytes, to);
    if (put.len == 0 || memchr(put.data, '\n', put.len) == NULL ||
        (!crlf && !line_ends_has_crlf(old))) {
        return notes_present(put);
    }
    char *made = arena_alloc(arena, 2 * put.len);
    return str_make(made, made != NULL ? line_ends_follow(put, old, crlf, made) : 0);
}

static int replace_splice(struct arena *arena, struct ng_str bytes, struct ng_str put,
                          struct notes_change *change)
{
    size_t tail = bytes.len - change->to;
    size_t len = change->at + put.len + tail;
    if (len > NOTES_COMPOSE_MAX) {
        return NG_ETOOLARGE;
    }
    char *made = put.data != NULL ? arena_alloc(arena, len) : NULL;
    if (made == NULL) {
        return NG_EINTERNAL;
    }
    memcpy(made, bytes.data, change->at);
    memcpy(made + change->at, put.data, put.len);
    memcpy(made + change->at + put.len, bytes.data + change->to, tail);
    change->old = bytes;
    change->made = str_make(made, len);
    return NG_OK;
}

int notes_text_replace(struct ng_call *call, struct arena *arena, struct ng_str path,
                       struct ng_str bytes, struct ng_str wanted, struct ng_str put,
                       struct notes_change *change)
{
    struct replace replace = {.path = path, .text = bytes, .wanted = wanted};
    bool differ = line_ends_differ(bytes, wanted);
    if (differ) {
        char *text = arena_alloc(arena, bytes.len);
        if (text == NULL) {
            return NG_EINTERNAL;
        }
        replace.text = str_make(text, line_ends_to_lf(bytes, text));
    }
    size_t hit = str_find(replace.text, wanted, 0);
    if (hit == SIZE_MAX) {
        return replace_fail_absent(call, &replace);
    }
    if (str_find(replace.text, wanted, hit + 1) != SIZE_MAX) {
        return replace_fail_ambiguous(call, &replace, hit);
    }
    size_t behind = hit + wanted.len;
    change->at = differ ? line_ends_from_lf(bytes, hit) : hit;
    change->to = differ ? line_ends_from_lf(bytes, behind) : behind;
    change->exact = true;
    if (memchr(wanted.data, '\r', wanted.len) == NULL) {
        put = replace_with_ends(arena, bytes, change->at, change->to, put);
    }
    int rc = replace_splice(arena, bytes, notes_present(put), change);
    return rc == NG_OK ? notes_text_keeps_frontmatter(call, arena, change) : rc;
}
