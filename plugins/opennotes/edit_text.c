/* SPDX-License-Identifier: MIT */
/* edit_text.c - edits of a note's text by its bytes: behind it, before it, a section of it. All
 * else stays as it is. */
#include <string.h>

#include "edit.h"
#include "markdown.h"

#define HEADINGS_SHOWN 20
#define HEADING_BYTES_SHOWN 80

/* ---- pieces */

static bool uses_crlf(struct ng_str bytes)
{
    const char *end = bytes.len > 0 ? memchr(bytes.data, '\n', bytes.len) : NULL;
    return end != NULL && end > bytes.data && end[-1] == '\r';
}

/* Adds a text with the file's line ends and one at its end. */
static void add_lines(struct on_buf *out, struct ng_str text, bool crlf)
{
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        size_t stop = end != NULL ? (size_t)(end - text.data) : text.len;
        size_t len = stop - at;
        len -= len > 0 && end != NULL && text.data[stop - 1] == '\r' ? 1 : 0;
        on_buf_add(out, on_str(text.data + at, len));
        on_buf_add_c(out, crlf ? "\r\n" : "\n");
        at = stop + 1;
    }
}

static int take(struct on_arena *arena, struct on_buf *out, struct ng_str *ret_bytes)
{
    int rc = out->rc;
    if (rc == NG_OK) {
        *ret_bytes = on_arena_copy(arena, on_buf_str(out));
        rc = ret_bytes->data != NULL ? NG_OK : NG_EINTERNAL;
    }
    on_buf_done(out);
    return rc;
}

/* `content` as lines of its own at `at`, in place of what is up to `to`. */
static int put_lines(struct on_arena *arena, struct ng_str bytes, size_t at, size_t to,
                     struct ng_str content, struct ng_str *ret_bytes)
{
    struct on_buf out;
    bool crlf = uses_crlf(bytes);
    on_buf_init(&out, ON_COMPOSE_MAX);
    on_buf_add(&out, on_str(bytes.data, at));
    if (at > 0 && bytes.data[at - 1] != '\n' && content.len > 0 &&
        !(at == 3 && on_begins(bytes, "\xef\xbb\xbf"))) {
        on_buf_add_c(&out, crlf ? "\r\n" : "\n");
    }
    add_lines(&out, content, crlf);
    on_buf_add(&out, on_str(bytes.data + to, bytes.len - to));
    return take(arena, &out, ret_bytes);
}

int on_text_append(struct on_arena *arena, struct ng_str bytes, struct ng_str content,
                   struct ng_str *ret_bytes)
{
    return put_lines(arena, bytes, bytes.len, bytes.len, content, ret_bytes);
}

int on_text_prepend(struct on_arena *arena, struct ng_str bytes, struct ng_str content,
                    struct ng_str *ret_bytes)
{
    struct on_front front;
    on_front_find(bytes, &front);
    return put_lines(arena, bytes, front.body, front.body, content, ret_bytes);
}

/* ---- sections */

struct outline_heading {
    size_t line; /* from 0 */
    unsigned level;
    struct ng_str text, fold, slug;
};

struct outline {
    struct on_arena *arena;
    struct outline_heading *items;
    size_t count, room;
};

static int add_heading(void *user, const struct on_heading *heading)
{
    struct outline *outline = user;
    if (outline->count == outline->room) {
        size_t room = outline->room == 0 ? 32 : outline->room * 2;
        struct outline_heading *items = on_arena_alloc(outline->arena, room * sizeof(*items));
        if (items == NULL) {
            return NG_EINTERNAL;
        }
        if (outline->count > 0) {
            memcpy(items, outline->items, outline->count * sizeof(*items));
        }
        outline->items = items;
        outline->room = room;
    }
    struct outline_heading *item = &outline->items[outline->count++];
    item->line = heading->line - 1;
    item->level = heading->level;
    item->text = on_arena_copy(outline->arena, heading->text);
    item->fold = on_fold(outline->arena, item->text);
    item->slug = on_arena_copy(outline->arena, heading->slug);
    return item->text.data != NULL && item->fold.data != NULL && item->slug.data != NULL
               ? NG_OK
               : NG_EINTERNAL;
}

/* Where line `line` of the body begins in the file. */
static size_t line_offset(struct ng_str bytes, size_t body, size_t line)
{
    size_t at = body;
    while (line > 0 && at < bytes.len) {
        const char *end = memchr(bytes.data + at, '\n', bytes.len - at);
        at = end != NULL ? (size_t)(end - bytes.data) + 1 : bytes.len;
        line--;
    }
    return at;
}

static struct ng_str line_of(struct ng_str bytes, size_t at)
{
    size_t next = line_offset(bytes, at, 1);
    return on_trim(on_str(bytes.data + at, next - at));
}

/* Behind the heading at `at`, which may be underlined. */
static size_t behind_heading(struct ng_str bytes, size_t at)
{
    struct ng_str line = line_of(bytes, at);
    while (line.len > 0 && (line.data[0] == '>' || line.data[0] == ' ')) {
        line = on_str(line.data + 1, line.len - 1);
    }
    bool marked = line.len > 0 && line.data[0] == '#';
    at = line_offset(bytes, at, 1);
    while (!marked && at < bytes.len) {
        line = line_of(bytes, at);
        at = line_offset(bytes, at, 1);
        size_t i = 0;
        while (i < line.len && (line.data[i] == '=' || line.data[i] == '-' ||
                                line.data[i] == '>' || line.data[i] == ' ')) {
            i++;
        }
        marked = line.len > 0 && i == line.len;
    }
    return at;
}

/* "## Tasks" means the heading `Tasks` of level 2; without '#' any level. */
static unsigned split_level(struct ng_str *section)
{
    unsigned level = 0;
    struct ng_str text = on_trim(*section);
    while (level < 6 && text.len > level && text.data[level] == '#') {
        level++;
    }
    bool marked = level > 0 && text.len > level && text.data[level] == ' ';
    *section = marked ? on_trim(on_str(text.data + level, text.len - level)) : text;
    return marked ? level : 0;
}

static int fail_section(struct ng_call *call, const struct outline *outline,
                        struct ng_str section)
{
    struct on_buf list;
    on_buf_init(&list, 4096);
    for (size_t i = 0; i < outline->count && i < HEADINGS_SHOWN; i++) {
        struct ng_str text = on_utf8_cut(outline->items[i].text, HEADING_BYTES_SHOWN);
        on_buf_printf(&list, "%s'%.*s'", i == 0 ? "" : ", ", (int)text.len, text.data);
    }
    (void)ng_fail(call, ON_ESECTION, "Section not found: %.*s", (int)section.len, section.data);
    if (list.len > 0) {
        call->host->hint(call, "The note has the headings %.*s%s", (int)list.len, list.data,
                         outline->count > HEADINGS_SHOWN ? ", ..." : "");
    } else {
        call->host->hint(call, "The note has no headings.");
    }
    on_buf_done(&list);
    return ON_ESECTION;
}

/* The heading with this anchor; SIZE_MAX: none. */
static size_t find_slug(const struct outline *outline, struct ng_str slug)
{
    for (size_t i = 0; i < outline->count; i++) {
        if (on_equal(outline->items[i].slug, slug)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int fail_ambiguous(struct ng_call *call, const struct outline *outline, size_t first,
                          size_t matches)
{
    const struct outline_heading *item = &outline->items[first];
    (void)ng_fail(call, NG_EINVAL, "The note has the heading '%.*s' %zu times.",
                  (int)item->text.len, item->text.data, matches);
    call->host->hint(call,
                     "Name the first by its anchor: '#%.*s'; the next has '-1' behind it.",
                     (int)item->slug.len, item->slug.data);
    return NG_EINVAL;
}

/* By its text ("Tasks", "## Tasks"), else by its anchor ("tasks"); "#tasks" is the anchor. */
static int find_heading(struct ng_call *call, const struct outline *outline,
                        struct ng_str section, size_t *ret_found)
{
    struct ng_str name = section;
    unsigned level = split_level(&name);
    bool anchor = level == 0 && name.len > 1 && name.data[0] == '#';
    struct ng_str slug = anchor ? on_str(name.data + 1, name.len - 1) : name;
    struct ng_str fold = on_fold(outline->arena, name);
    size_t matches = 0;
    if (fold.data == NULL) {
        return on_fail_memory(call);
    }
    for (size_t i = outline->count; !anchor && i-- > 0;) {
        const struct outline_heading *item = &outline->items[i];
        if (on_equal(item->fold, fold) && (level == 0 || level == item->level)) {
            matches++;
            *ret_found = i;
        }
    }
    if (matches > 1) {
        return fail_ambiguous(call, outline, *ret_found, matches);
    }
    if (matches == 0) {
        *ret_found = find_slug(outline, slug);
    }
    return *ret_found == SIZE_MAX ? fail_section(call, outline, section) : NG_OK;
}

/* Behind the empty lines that begin at `at`. */
static size_t skip_blank(struct ng_str bytes, size_t at, size_t end)
{
    while (at < end) {
        size_t next = line_offset(bytes, at, 1);
        if (on_trim(on_str(bytes.data + at, next - at)).len > 0) {
            break;
        }
        at = next;
    }
    return at < end ? at : end;
}

/* Where the empty lines begin that end at `end`. */
static size_t before_blank(struct ng_str bytes, size_t from, size_t end)
{
    size_t last = from;
    for (size_t at = from; at < end;) {
        size_t next = line_offset(bytes, at, 1);
        last = on_trim(on_str(bytes.data + at, next - at)).len > 0 ? next : last;
        at = next;
    }
    return last;
}

int on_text_section(struct ng_call *call, struct on_arena *arena, struct ng_str bytes,
                    struct ng_str section, struct ng_str content, struct ng_str *ret_bytes)
{
    static const struct on_markdown_events events = {.heading = add_heading};
    struct outline outline = {.arena = arena};
    struct on_note note;
    size_t found = 0;
    int rc = on_note_parse(arena, bytes, &note);
    rc = rc == NG_OK ? on_markdown_parse(note.body, &events, &outline, NULL) : rc;
    if (rc != NG_OK) {
        return on_fail_memory(call);
    }
    rc = find_heading(call, &outline, section, &found);
    if (rc != NG_OK) {
        return rc;
    }
    size_t body = note.place.body;
    size_t end = bytes.len;
    for (size_t i = found + 1; i < outline.count; i++) {
        if (outline.items[i].level <= outline.items[found].level) {
            end = line_offset(bytes, body, outline.items[i].line);
            break;
        }
    }
    size_t start = behind_heading(bytes, line_offset(bytes, body, outline.items[found].line));
    start = start < end ? start : end;
    /* The empty lines around the old text stay around the new one. */
    size_t from = skip_blank(bytes, start, end);
    size_t to = from < end ? before_blank(bytes, from, end) : end;
    if (from == end && end < bytes.len && from > start) {
        to = from = line_offset(bytes, start, 1);
    }
    if (content.len > 0 && (content.data[0] == '\n' || content.data[0] == '\r')) {
        from = start;
    }
    return put_lines(arena, bytes, from, to < from ? from : to, content, ret_bytes);
}
