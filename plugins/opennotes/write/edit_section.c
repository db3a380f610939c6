/* SPDX-License-Identifier: MIT */
/* edit_section.c - edits of the section below a heading: replace, append, prepend. */
#include <string.h>

#include "edit.h"
#include "markdown/outline.h"
#include "text/codes.h"

#define LEVEL_NEW 2 /* of a heading that is made, if it is not asked for with one */
#define NAME_SHOWN 200

/* ---- finding */

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
        "themselves are edited.",
        (int)item->text.len, item->text.data, (unsigned)item->line);
    call->host->hint(call, "Name the section around it.");
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

/* ---- editing */

int notes_text_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       struct ng_str section, enum notes_section_edit edit,
                       struct ng_str content, struct notes_change *change)
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
    change->level = outline.items[found].level;
    if (edit == NOTES_SECTION_PREPEND) {
        return notes_text_put(arena, bytes, start, start, content, change);
    }
    if (edit == NOTES_SECTION_APPEND) {
        size_t last = before_blank(bytes, start, end);
        return notes_text_put(arena, bytes, last, last, content, change);
    }
    /* The empty lines around the old text are kept. */
    size_t from = skip_blank(bytes, start, end);
    size_t to = size_max(before_blank(bytes, from, end), from);
    if (from == end && end < bytes.len && from > start) {
        to = from = notes_next_line(bytes, start);
    }
    if (content.len > 0 && (content.data[0] == '\n' || content.data[0] == '\r')) {
        from = start;
    }
    return notes_text_put(arena, bytes, from, size_max(from, to), content, change);
}

/* ---- a section that may be missing */

/* The text with the heading of the section at its end, below an empty line. */
static int add_section(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                       size_t body, struct ng_str section, struct ng_str *ret_bytes)
{
    static const char marks[] = "######";
    struct notes_change change = {.level = 0};
    struct ng_str name = section;
    unsigned level = notes_outline_level(&name);
    if (level == 0) {
        level = LEVEL_NEW;
        name = str_make(name.data + str_begins(name, "#"), name.len - str_begins(name, "#"));
    }
    if (name.len == 0 || memchr(name.data, '\n', name.len) != NULL ||
        memchr(name.data, '\r', name.len) != NULL) {
        return ng_fail(call, NG_EINVAL,
                       "`section` must be the text of a heading, in one line.");
    }
    bool below = bytes.len > body && before_blank(bytes, body, bytes.len) == bytes.len;
    struct ng_str heading = arena_printf(arena, "%s%.*s %.*s", below ? "\n" : "", (int)level,
                                         marks, (int)name.len, name.data);
    if (heading.data == NULL) {
        return notes_fail_memory(call);
    }
    int rc = notes_text_append(arena, bytes, heading, &change);
    *ret_bytes = change.made;
    return rc;
}

static int fail_unmade(struct ng_call *call, struct ng_str section)
{
    (void)ng_fail(
        call, NG_EFAILED,
        "The note is unchanged: a heading '%.*s' at its end would not be found again.",
        (int)utf8_cut(section, NAME_SHOWN).len, section.data);
    call->host->hint(call,
                     "Use a heading without marks, and end the code or HTML at the end of "
                     "the note, if it has no end.");
    return NG_EFAILED;
}

int notes_text_section_or_new(struct ng_call *call, struct arena *arena, struct ng_str bytes,
                              struct ng_str section, struct ng_str content,
                              struct notes_change *change)
{
    struct notes_outline outline;
    struct notes_frontmatter frontmatter;
    struct ng_str with_heading = bytes;
    size_t found = 0;
    size_t matches = 0;
    notes_frontmatter_find(bytes, &frontmatter);
    struct ng_str body = str_make(bytes.data + frontmatter.body, bytes.len - frontmatter.body);
    if (notes_outline_read(arena, body, &outline) != NG_OK ||
        !notes_outline_find(&outline, section, &found, &matches)) {
        return notes_fail_memory(call);
    }
    bool missing = matches == 0 && outline.whole;
    if (missing) {
        int rc = add_section(call, arena, bytes, frontmatter.body, section, &with_heading);
        if (rc != NG_OK) {
            return rc;
        }
    }
    int rc = notes_text_section(call, arena, with_heading, section, NOTES_SECTION_APPEND,
                                content, change);
    if (rc != NG_OK || !missing) {
        return rc == NOTES_ESECTION ? fail_unmade(call, section) : rc;
    }
    change->old = bytes;
    change->at = change->to = bytes.len;
    return NG_OK;
}
