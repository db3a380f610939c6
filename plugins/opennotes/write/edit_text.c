/* SPDX-License-Identifier: MIT */
/* edit_text.c - edits of a note's text: append, prepend, replace the front matter or a section.
 * All other bytes stay. */
#include <string.h>

#include "edit.h"
#include "markdown/outline.h"

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

/* Writes `content` as its own lines at `at`, replacing the bytes up to `to`. */
static int put_lines(struct arena *arena, struct ng_str bytes, size_t at, size_t to,
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
    return put_lines(arena, bytes, bytes.len, bytes.len, content, change);
}

int notes_text_prepend(struct arena *arena, struct ng_str bytes, struct ng_str content,
                       struct notes_change *change)
{
    struct notes_frontmatter frontmatter;
    notes_frontmatter_find(bytes, &frontmatter);
    return put_lines(arena, bytes, frontmatter.body, frontmatter.body, content, change);
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

/* The result must have the same body, and front matter that parses. */
static int check_frontmatter(struct ng_call *call, struct arena *arena,
                             const struct notes_frontmatter *old,
                             const struct notes_change *change)
{
    struct notes_frontmatter place;
    const struct notes_value *map = NULL;
    struct ng_str error = STR_NONE;
    struct ng_str made = change->made;
    struct ng_str body = str_make(change->old.data + old->body, change->old.len - old->body);
    notes_frontmatter_find(made, &place);
    if (!place.there && old->there) {
        return ng_fail(call, NG_EFAILED,
                       "The note is unchanged: its frontmatter would have no end.");
    }
    if (!str_equal(str_make(made.data + place.body, made.len - place.body), body)) {
        return ng_fail(call, NG_EFAILED,
                       "The note is unchanged: `content` has a line '---' or '...' that would "
                       "end the frontmatter before its end.");
    }
    int rc = notes_frontmatter_parse(
        arena, str_make(made.data + place.yaml, place.end - place.yaml), 2, &map, &error);
    if (rc == NG_EINVAL) {
        (void)ng_fail(call, NG_EFAILED,
                      "The note is unchanged: its frontmatter would not parse (%.*s).",
                      (int)error.len, error.data);
        call->host->hint(call, "Quote a text that holds ': ' or begins with a sign; without "
                               "`line` all of the frontmatter is replaced.");
        return NG_EFAILED;
    }
    return rc == NG_OK ? NG_OK : notes_fail_memory(call);
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
    int rc = put_lines(arena, bytes, from, to, content, change);
    return rc == NG_OK ? check_frontmatter(call, arena, &place, change) : rc;
}

/* ---- sections */

static int fail_ambiguous(struct ng_call *call, const struct notes_outline_heading *item,
                          size_t matches)
{
    (void)ng_fail(call, NG_EINVAL, "The note has the heading '%.*s' %zu times.",
                  (int)item->text.len, item->text.data, matches);
    call->host->hint(call,
                     "Name the first by its anchor: '#%.*s'; the next has '-1' behind it.",
                     (int)item->slug.len, item->slug.data);
    return NG_EINVAL;
}

/* A section inside a list item or a quote ends with it, and its lines have its marks. */
static int fail_nested(struct ng_call *call, const struct notes_outline_heading *item)
{
    (void)ng_fail(
        call, NG_EFAILED,
        "The note is unchanged: the heading '%.*s' (line %u of its content) stands in "
        "a list item, a quote or a footnote; only sections of headings that stand by "
        "themselves are replaced.",
        (int)item->text.len, item->text.data, (unsigned)item->line);
    call->host->hint(call, "Replace the section around it.");
    return NG_EFAILED;
}

static int find_section(struct ng_call *call, const struct notes_outline *outline,
                        struct ng_str section, size_t *ret_found)
{
    size_t matches = 0;
    if (!notes_outline_find(outline, section, ret_found, &matches)) {
        return notes_fail_memory(call);
    }
    if (!outline->whole) {
        return ng_fail(call, NG_EFAILED,
                       "The note is unchanged: its Markdown is nested too deep or has too many "
                       "parts to be parsed completely, so the end of the section is unknown.");
    }
    if (matches > 1) {
        return fail_ambiguous(call, &outline->items[*ret_found], matches);
    }
    if (matches == 0) {
        return notes_outline_fail(call, outline, section);
    }
    const struct notes_outline_heading *item = &outline->items[*ret_found];
    if (item->nested) {
        return fail_nested(call, item);
    }
    return NG_OK;
}

/* Behind the empty lines that begin at `at`. */
static size_t skip_blank(struct ng_str bytes, size_t at, size_t end)
{
    while (at < end) {
        size_t next = notes_next_line(bytes, at);
        if (notes_trim(str_make(bytes.data + at, next - at)).len > 0) {
            break;
        }
        at = next;
    }
    return size_min(at, end);
}

/* The beginning of the empty lines that end at `end`. */
static size_t before_blank(struct ng_str bytes, size_t from, size_t end)
{
    size_t last = from;
    for (size_t at = from; at < end;) {
        size_t next = notes_next_line(bytes, at);
        if (notes_trim(str_make(bytes.data + at, next - at)).len > 0) {
            last = next;
        }
        at = next;
    }
    return last;
}

/* The content without the section's own heading at its beginning, which stays anyway. */
static int without_heading(struct ng_call *call, struct arena *arena,
                           const struct notes_outline_heading *heading, struct ng_str *content)
{
    struct notes_outline outline;
    if (notes_outline_read(arena, *content, &outline) != NG_OK) {
        return notes_fail_memory(call);
    }
    const struct notes_outline_heading *first = outline.items;
    bool own = outline.count > 0 && !first->nested && first->level == heading->level &&
               str_equal(first->fold, heading->fold) &&
               skip_blank(*content, 0, content->len) == first->at;
    if (own) {
        *content = str_make(content->data + first->end, content->len - first->end);
    }
    return NG_OK;
}

int notes_text_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       struct ng_str section, struct ng_str content,
                       struct notes_change *change)
{
    struct notes_outline outline;
    struct notes_frontmatter frontmatter;
    size_t found = 0;
    notes_frontmatter_find(bytes, &frontmatter);
    struct ng_str body = str_make(bytes.data + frontmatter.body, bytes.len - frontmatter.body);
    if (notes_outline_read(arena, body, &outline) != NG_OK) {
        return notes_fail_memory(call);
    }
    int rc = find_section(call, &outline, section, &found);
    if (rc == NG_OK) {
        rc = without_heading(call, arena, &outline.items[found], &content);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct notes_outline_heading *next = notes_outline_next(&outline, found);
    size_t end = bytes.len;
    if (next != NULL) {
        end = frontmatter.body + next->at;
    }
    size_t start = size_min(frontmatter.body + outline.items[found].end, end);
    /* The empty lines around the old text are kept. */
    size_t from = skip_blank(bytes, start, end);
    size_t to = size_max(before_blank(bytes, from, end), from);
    if (from == end && end < bytes.len && from > start) {
        to = from = notes_next_line(bytes, start);
    }
    if (content.len > 0 && (content.data[0] == '\n' || content.data[0] == '\r')) {
        from = start;
    }
    change->level = outline.items[found].level;
    return put_lines(arena, bytes, from, size_max(from, to), content, change);
}
