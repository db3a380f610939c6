/* SPDX-License-Identifier: MIT */
/* edit_text.c - edits of a note's text: append, prepend, replace the front matter. All other
 * bytes stay. */
#include <string.h>

#include "edit.h"

/* ---- pieces */

static bool uses_crlf(struct ng_str bytes)
{
    size_t end = notes_find_char(bytes, 0, '\n');
    return end > 0 && end < bytes.len && bytes.data[end - 1] == '\r';
}

/* Adds a text with the file's line ends, and a line end at its end. */
static void add_lines(struct buf *out, struct ng_str text, const char *newline)
{
    for (size_t at = 0; at < text.len;) {
        size_t stop = notes_find_char(text, at, '\n');
        size_t len = stop - at;
        len -= len > 0 && stop < text.len && text.data[stop - 1] == '\r';
        buf_add_str(out, str_make(text.data + at, len));
        buf_add_c(out, newline);
        at = stop + 1;
    }
}

int notes_text_put(struct arena *arena, struct ng_str bytes, size_t at, size_t to,
                   struct ng_str content, struct notes_change *change)
{
    struct buf out;
    const char *newline = uses_crlf(bytes) ? "\r\n" : "\n";
    buf_init(&out, NOTES_COMPOSE_MAX);
    buf_add_str(&out, str_make(bytes.data, at));
    if (at > 0 && bytes.data[at - 1] != '\n' && content.len > 0 &&
        !(at == 3 && str_begins(bytes, "\xef\xbb\xbf"))) {
        buf_add_c(&out, newline);
    }
    add_lines(&out, content, newline);
    buf_add_str(&out, str_make(bytes.data + to, bytes.len - to));
    int rc = out.rc;
    change->old = bytes;
    change->at = at;
    change->to = to;
    change->made = arena_copy(arena, notes_buf_str(&out));
    if (rc == NG_OK && change->made.data == NULL) {
        rc = NG_EINTERNAL;
    }
    buf_done(&out);
    return rc;
}

int notes_text_append(struct arena *arena, struct ng_str bytes, struct ng_str content,
                      struct notes_change *change)
{
    return notes_text_put(arena, bytes, bytes.len, bytes.len, content, change);
}

int notes_text_prepend(struct arena *arena, struct ng_str bytes, struct ng_str content,
                       struct notes_change *change)
{
    struct notes_frontmatter frontmatter;
    notes_frontmatter_find(bytes, &frontmatter);
    return notes_text_put(arena, bytes, frontmatter.body, frontmatter.body, content, change);
}

/* ---- front matter */

static int fail_line(struct ng_call *call, const struct notes_frontmatter *place, int64_t line)
{
    if (!place->there) {
        return ng_fail(call, NG_EINVAL, "`line` is %lld, but the note has no frontmatter.",
                       (long long)line);
    }
    return ng_fail(
        call, NG_EINVAL,
        "`line` is %lld; the frontmatter is between the lines 1 and %zu of the file.",
        (long long)line, place->lines);
}

static int fail_unended(struct ng_call *call)
{
    return ng_fail(call, NG_EFAILED,
                   "The note is unchanged: its frontmatter would have no end.");
}

static int check_parses(struct ng_call *call, struct arena *arena, struct ng_str made,
                        const struct notes_frontmatter *place, const char *hint)
{
    const struct notes_value *map = NULL;
    struct ng_str error = STR_NONE;
    struct ng_str yaml = {made.data + place->yaml, place->end - place->yaml};
    int rc = notes_frontmatter_parse(arena, yaml, 2, &map, &error);
    if (rc == NG_EINVAL) {
        (void)ng_fail(call, NG_EFAILED,
                      "The note is unchanged: its frontmatter would not parse (%.*s).",
                      (int)error.len, error.data);
        call->host->hint(call, "%s", hint);
        return NG_EFAILED;
    }
    return rc == NG_OK ? NG_OK : notes_fail_memory(call);
}

/* The result must have the same body, and front matter that parses. */
static int check_frontmatter(struct ng_call *call, struct arena *arena,
                             const struct notes_frontmatter *old,
                             const struct notes_change *change)
{
    struct notes_frontmatter place;
    struct ng_str made = change->made;
    struct ng_str body = str_make(change->old.data + old->body, change->old.len - old->body);
    notes_frontmatter_find(made, &place);
    if (!place.there && old->there) {
        return fail_unended(call);
    }
    if (!str_equal(str_make(made.data + place.body, made.len - place.body), body)) {
        return ng_fail(call, NG_EFAILED,
                       "The note is unchanged: `content` has a line '---' or '...' that would "
                       "end the frontmatter before its end.");
    }
    return check_parses(call, arena, made, &place,
                        "Quote a text that holds ': ' or begins with a sign; without `line` "
                        "all of the frontmatter is replaced.");
}

int notes_text_keeps_frontmatter(struct ng_call *call, struct arena *arena,
                                 const struct notes_change *change)
{
    struct notes_frontmatter old;
    struct notes_frontmatter made;
    const struct notes_value *map = NULL;
    struct ng_str error = STR_NONE;
    notes_frontmatter_find(change->old, &old);
    notes_frontmatter_find(change->made, &made);
    if (change->at > old.body || (!old.there && !made.there)) {
        return NG_OK;
    }
    int rc = notes_frontmatter_parse(
        arena, str_make(change->old.data + old.yaml, old.end - old.yaml), 2, &map, &error);
    if (rc != NG_OK) {
        return rc == NG_EINVAL ? NG_OK : notes_fail_memory(call);
    }
    if (made.there) {
        return check_parses(call, arena, change->made, &made,
                            "Quote a text that holds ': ' or begins with a sign.");
    }
    /* None is left: it is removed as a whole, or only in part. */
    return change->at > old.bom || change->to < old.body ? fail_unended(call) : NG_OK;
}

/* The lines between the fences, if the text is front matter with them. */
static struct ng_str without_fences(struct ng_str content)
{
    struct notes_frontmatter place;
    notes_frontmatter_find(content, &place);
    bool all = place.there && place.body == content.len;
    return all ? str_make(content.data + place.yaml, place.end - place.yaml) : content;
}

/* With fences, in the arena. */
static struct ng_str with_fences(struct arena *arena, struct ng_str content)
{
    struct buf text;
    buf_init(&text, NOTES_COMPOSE_MAX);
    buf_add_c(&text, "---\n");
    buf_add_str(&text, content);
    notes_add_if(&text, !str_ends(content, "\n"), "\n");
    buf_add_c(&text, "---\n");
    struct ng_str kept = text.rc == NG_OK ? arena_copy(arena, notes_buf_str(&text)) : STR_NONE;
    buf_done(&text);
    return kept;
}

int notes_text_frontmatter(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                           int64_t line, struct ng_str content, struct notes_change *change)
{
    struct notes_frontmatter place;
    notes_frontmatter_find(bytes, &place);
    size_t from = place.yaml;
    size_t to = place.end;
    if (line != 0) {
        if (!place.there || line < 2 || line >= (int64_t)place.lines) {
            return fail_line(call, &place, line);
        }
        for (int64_t at = 2; at < line; at++) {
            from = notes_next_line(bytes, from);
        }
        to = notes_next_line(bytes, from);
    } else {
        content = without_fences(notes_present(content));
    }
    if (!place.there && content.len > 0) {
        content = with_fences(arena, content);
    }
    if (content.data == NULL) {
        return arena->failed ? NG_EINTERNAL : NG_ETOOLARGE;
    }
    int rc = notes_text_put(arena, bytes, from, to, content, change);
    return rc == NG_OK ? check_frontmatter(call, arena, &place, change) : rc;
}
