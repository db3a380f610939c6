/* SPDX-License-Identifier: MIT */
/* outline.c - the headings of a text and the sections below them. */
#include "outline.h"

#include <string.h>

#include "markdown.h"
#include "text/codes.h"

#define HEADINGS_SHOWN 20
#define HEADING_BYTES_SHOWN 80
#define LEVEL_MAX 6

/* ---- reading */

static bool make_room(struct on_outline *outline)
{
    if (outline->count < outline->room) {
        return true;
    }
    size_t room = outline->room == 0 ? 32 : outline->room * 2;
    struct on_outline_heading *items = on_arena_alloc(outline->arena, room * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    if (outline->count > 0) {
        memcpy(items, outline->items, outline->count * sizeof(*items));
    }
    outline->items = items;
    outline->room = room;
    return true;
}

static int add_heading(void *user, const struct on_heading *heading)
{
    struct on_outline *outline = user;
    if (!make_room(outline)) {
        return NG_EINTERNAL;
    }
    struct on_outline_heading *item = &outline->items[outline->count++];
    *item = (struct on_outline_heading){.line = heading->line,
                                        .last_line = heading->last_line,
                                        .level = heading->level,
                                        .nested = heading->nested,
                                        .text = on_arena_copy(outline->arena, heading->text),
                                        .slug = on_arena_copy(outline->arena, heading->slug)};
    item->fold = on_fold(outline->arena, item->text);
    return item->text.data != NULL && item->fold.data != NULL && item->slug.data != NULL
               ? NG_OK
               : NG_EINTERNAL;
}

static size_t next_line(struct ng_str text, size_t at)
{
    const char *end = at < text.len ? memchr(text.data + at, '\n', text.len - at) : NULL;
    return end != NULL ? (size_t)(end - text.data) + 1 : text.len;
}

static void find_offsets(struct on_outline *outline, struct ng_str text)
{
    size_t at = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < outline->count; i++) {
        struct on_outline_heading *item = &outline->items[i];
        for (; line < item->line; line++) {
            at = next_line(text, at);
        }
        item->at = at;
        item->end = at;
        for (uint32_t last = line; last <= item->last_line; last++) {
            item->end = next_line(text, item->end);
        }
    }
}

int on_outline_read(struct on_arena *arena, struct ng_str text, struct on_outline *outline)
{
    static const struct on_markdown_events events = {.heading = add_heading};
    struct on_markdown_stats stats = {.whole = false};
    *outline = (struct on_outline){.arena = arena};
    int rc = on_markdown_parse(text, &events, outline, &stats);
    outline->whole = stats.whole;
    find_offsets(outline, text);
    return rc;
}

/* ---- finding */

/* "## Tasks" means the heading `Tasks` of level 2; without '#' any level. */
static unsigned split_level(struct ng_str *section)
{
    unsigned level = 0;
    struct ng_str text = on_trim(*section);
    while (level < LEVEL_MAX && text.len > level && text.data[level] == '#') {
        level++;
    }
    bool marked = level > 0 && text.len > level && text.data[level] == ' ';
    *section = marked ? on_trim(on_str(text.data + level, text.len - level)) : text;
    return marked ? level : 0;
}

static size_t find_slug(const struct on_outline *outline, struct ng_str fold)
{
    for (size_t i = 0; i < outline->count; i++) {
        struct ng_str slug = on_fold(outline->arena, outline->items[i].slug);
        if (slug.data != NULL && on_equal(slug, fold)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t count_text(const struct on_outline *outline, struct ng_str fold, unsigned level,
                         size_t *ret_found)
{
    size_t matches = 0;
    for (size_t i = outline->count; i-- > 0;) {
        const struct on_outline_heading *item = &outline->items[i];
        if (on_equal(item->fold, fold) && (level == 0 || level == item->level)) {
            matches++;
            *ret_found = i;
        }
    }
    return matches;
}

bool on_outline_find(const struct on_outline *outline, struct ng_str section, size_t *ret_found,
                     size_t *ret_matches)
{
    struct ng_str name = section;
    unsigned level = split_level(&name);
    bool anchor = level == 0 && name.len > 1 && name.data[0] == '#';
    struct ng_str fold = on_fold(outline->arena, name);
    struct on_buf plain;
    *ret_matches = 0;
    if (fold.data == NULL) {
        return false;
    }
    if (!anchor) {
        *ret_matches = count_text(outline, fold, level, ret_found);
    }
    if (!anchor && *ret_matches == 0) {
        on_buf_init(&plain, ON_MARKDOWN_TEXT_MAX + 1);
        bool read = on_markdown_plain(name, &plain);
        struct ng_str text = on_fold(outline->arena, on_trim(on_buf_str(&plain)));
        *ret_matches =
            read && text.data != NULL ? count_text(outline, text, level, ret_found) : 0;
        on_buf_done(&plain);
        if (!read || text.data == NULL) {
            return false;
        }
    }
    if (*ret_matches == 0) {
        *ret_found = find_slug(outline, anchor ? on_str(fold.data + 1, fold.len - 1) : fold);
        *ret_matches = *ret_found != SIZE_MAX;
    }
    return true;
}

const struct on_outline_heading *on_outline_next(const struct on_outline *outline, size_t found)
{
    for (size_t i = found + 1; i < outline->count; i++) {
        if (outline->items[i].level <= outline->items[found].level) {
            return &outline->items[i];
        }
    }
    return NULL;
}

int on_outline_fail(struct ng_call *call, const struct on_outline *outline,
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
