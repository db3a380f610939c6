/* SPDX-License-Identifier: MIT */
/* note_tags.c - the tags of a note's text, in addition to those of its front matter. */
#include <string.h>

#include "core/base/hash.h"
#include "markdown/markdown.h"
#include "note.h"

bool notes_tag_set_add(struct notes_tag_set *set, struct ng_str fold)
{
    uint64_t hash = hash_fnv(HASH_FNV_BASIS ^ (uint64_t)(uintptr_t)set, fold) | 1;
    size_t at = (size_t)(hash >> 1) % NG_COUNT(set->slots);
    while (set->slots[at] != 0 && set->slots[at] != hash) {
        at = (at + 1) % NG_COUNT(set->slots);
    }
    if (set->slots[at] == hash || set->count == NOTES_TAGS_MAX) {
        return false;
    }
    set->slots[at] = hash;
    set->count++;
    return true;
}

struct tags {
    struct arena *arena;
    struct notes_tag_set set;
    struct ng_str *items;
    size_t count;
};

static int add_tag(void *user, const struct notes_inline_tag *tag)
{
    struct tags *tags = user;
    struct ng_str fold = notes_fold(tags->arena, tag->name);
    if (notes_tag_set_add(&tags->set, fold)) {
        /* The parser frees its text at the end. */
        tags->items[tags->count++] = arena_copy(tags->arena, tag->name);
    }
    return tags->arena->failed ? NG_EINTERNAL : 0;
}

bool notes_note_tags(struct arena *arena, struct notes_note *note)
{
    static const struct notes_markdown_events events = {.tag = add_tag};
    struct tags *tags = arena_zalloc(arena, sizeof(*tags));
    struct ng_str *items = arena_zalloc(arena, 2 * NOTES_TAGS_MAX * sizeof(*items));
    if (tags == NULL || items == NULL) {
        return false;
    }
    tags->arena = arena;
    tags->items = items;
    for (size_t i = 0; i < note->tag_count; i++) {
        (void)notes_tag_set_add(&tags->set, notes_fold(arena, note->tags[i]));
        items[tags->count++] = note->tags[i];
    }
    struct ng_str text = utf8_cut(note->body, NOTES_TAGS_BYTES_MAX);
    if (notes_markdown_parse(text, &events, tags, NULL) == NG_EINTERNAL || arena->failed) {
        return false;
    }
    note->tags = tags->items;
    note->tag_count = tags->count;
    return true;
}
