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

static int add_heading(void *user, const struct notes_heading *heading)
{
    struct notes_outline *outline = user;
    if (!notes_grow(outline->arena, (void **)&outline->items, outline->count, &outline->room,
                    sizeof(*outline->items))) {
        outline->count = 0;
        return NG_EINTERNAL;
    }
    struct notes_outline_heading *item = &outline->items[outline->count++];
    *item = (struct notes_outline_heading){.line = heading->line,
                                           .last_line = heading->last_line,
                                           .level = heading->level,
                                           .nested = heading->nested,
                                           .text = arena_copy(outline->arena, heading->text),
                                           .slug = arena_copy(outline->arena, heading->slug)};
    item->fold = notes_fold(outline->arena, item->text);
    return outline->arena->failed ? NG_EINTERNAL : NG_OK;
}

static void find_offsets(struct notes_outline *outline, struct ng_str text)
{
    size_t at = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < outline->count; i++) {
        struct notes_outline_heading *item = &outline->items[i];
        for (; line < item->line; line++) {
            at = notes_next_line(text, at);
        }
        item->at = at;
        item->end = at;
        for (uint32_t last = line; last <= item->last_line; last++) {
            item->end = notes_next_line(text, item->end);
        }
    }
}

int notes_outline_read(struct arena *arena, struct ng_str text, struct notes_outline *outline)
{
    static const struct notes_markdown_events events = {.heading = add_heading};
    struct notes_markdown_stats stats = {.whole = false};
    *outline = (struct notes_outline){.arena = arena};
    int rc = notes_markdown_parse(text, &events, outline, &stats);
    outline->whole = stats.whole;
    find_offsets(outline, text);
    return rc;
}

/* ---- finding */

unsigned notes_outline_level(struct ng_str *section)
{
    unsigned level = 0;
    struct ng_str text = notes_trim(*section);
    while (level < LEVEL_MAX && text.len > level && text.data[level] == '#') {
        level++;
    }
    bool marked = level > 0 && text.len > level && text.data[level] == ' ';
    *section = text;
    if (!marked) {
        return 0;
    }
    *section = notes_trim(str_make(text.data + level, text.len - level));
    return level;
}

static size_t find_slug(const struct notes_outline *outline, struct ng_str fold)
{
    for (size_t i = 0; i < outline->count; i++) {
        if (str_equal(notes_fold(outline->arena, outline->items[i].slug), fold)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t count_text(const struct notes_outline *outline, struct ng_str fold,
                         unsigned level, size_t *ret_found)
{
    size_t matches = 0;
    for (size_t i = outline->count; i-- > 0;) {
        const struct notes_outline_heading *item = &outline->items[i];
        if (str_equal(item->fold, fold) && (level == 0 || level == item->level)) {
            matches++;
            *ret_found = i;
        }
    }
    return matches;
}

bool notes_outline_find(const struct notes_outline *outline, struct ng_str section,
                        size_t *ret_found, size_t *ret_matches)
{
    struct ng_str name = section;
    unsigned level = notes_outline_level(&name);
    struct ng_str fold = notes_fold(outline->arena, name);
    *ret_matches = 0;
    if (level == 0 && fold.len > 1 && fold.data[0] == '#') {
        fold = str_make(fold.data + 1, fold.len - 1);
    } else {
        *ret_matches = count_text(outline, fold, level, ret_found);
        if (*ret_matches == 0) {
            struct buf plain;
            buf_init(&plain, NOTES_MARKDOWN_TEXT_MAX + 1);
            bool read = notes_markdown_plain(name, &plain);
            struct ng_str text = notes_fold(outline->arena, notes_trim(notes_buf_str(&plain)));
            buf_done(&plain);
            if (!read) {
                return false;
            }
            *ret_matches = count_text(outline, text, level, ret_found);
        }
    }
    if (*ret_matches == 0) {
        *ret_found = find_slug(outline, fold);
        *ret_matches = *ret_found != SIZE_MAX;
    }
    return !outline->arena->failed;
}

const struct notes_outline_heading *notes_outline_next(const struct notes_outline *outline,
                                                       size_t found)
{
    for (size_t i = found + 1; i < outline->count; i++) {
        if (outline->items[i].level <= outline->items[found].level) {
            return &outline->items[i];
        }
    }
    return NULL;
}

int notes_outline_fail(struct ng_call *call, const struct notes_outline *outline,
                       struct ng_str section)
{
    struct buf list;
    buf_init(&list, 4096);
    for (size_t i = 0; i < outline->count && i < HEADINGS_SHOWN; i++) {
        struct ng_str text = utf8_cut(outline->items[i].text, HEADING_BYTES_SHOWN);
        notes_add_if(&list, i > 0, ", ");
        buf_printf(&list, "'%.*s'", (int)text.len, text.data);
    }
    notes_add_if(&list, outline->count > HEADINGS_SHOWN, ", ...");
    (void)ng_fail(call, NOTES_ESECTION, "Section not found: %.*s", (int)section.len,
                  section.data);
    if (list.len > 0) {
        call->host->hint(call, "The note has the headings %.*s", (int)list.len, list.data);
    } else {
        call->host->hint(call, "The note has no headings.");
    }
    buf_done(&list);
    return NOTES_ESECTION;
}
