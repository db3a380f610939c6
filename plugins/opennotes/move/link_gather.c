/* SPDX-License-Identifier: MIT */
/* link_gather.c - finds the links of a file as the index does, with their places. */
#include <string.h>

#include "link_gather.h"

static int add_link(struct notes_gather *gather, const struct notes_link *found, size_t line,
                    size_t base)
{
    if (found->kind == NOTES_LINK_AUTO) {
        return NG_OK;
    }
    if (!notes_grow(gather->arena, (void **)&gather->links, gather->count, &gather->room,
                    sizeof(*gather->links))) {
        return NG_EINTERNAL;
    }
    struct notes_gathered *link = &gather->links[gather->count++];
    *link = (struct notes_gathered){.wiki = found->kind == NOTES_LINK_WIKI,
                                    .reference = found->kind == NOTES_LINK_REFERENCE,
                                    .line = line,
                                    .target = arena_copy(gather->arena, found->target),
                                    .at = SIZE_MAX,
                                    .end = SIZE_MAX};
    if (found->at != SIZE_MAX) {
        link->at = base + found->at;
        link->end = base + found->end;
    }
    if (link->reference) {
        gather->references = true;
        link->label = notes_markdown_label(gather->arena, found->label);
    }
    return gather->arena->failed ? NG_EINTERNAL : NG_OK;
}

static int add_body_link(void *user, const struct notes_link *found)
{
    struct notes_gather *gather = user;
    return add_link(gather, found, gather->note.body_line + found->line, gather->body);
}

static int add_value_link(void *user, const struct notes_link *found)
{
    struct notes_gather *gather = user;
    size_t before = gather->count;
    int rc = add_link(gather, found, 0, 0);
    if (gather->count > before) {
        gather->links[before].property = true;
    }
    return rc;
}

static const struct notes_markdown_events body_events = {
    .link = add_body_link, .image = add_body_link, .places = true};
static const struct notes_markdown_events value_events = {
    .link = add_value_link, .image = add_value_link, .places = true};

/* The written value. A block text ends before its last line end. */
static void place_value(struct notes_gather *gather, const struct notes_value *value,
                        struct notes_gathered_value *ret)
{
    struct ng_str written = notes_value_source(&gather->yaml, value);
    ret->at = (size_t)(written.data - gather->text.data);
    while (written.len > 0 && notes_is_space(written.data[written.len - 1])) {
        written.len--;
    }
    ret->end = ret->at + written.len;
}

static int add_text(struct notes_gather *gather, const struct notes_value *value,
                    struct ng_str text)
{
    size_t before = gather->count;
    if (str_find(text, ng_str_of("[["), 0) == SIZE_MAX &&
        str_find(text, ng_str_of("]("), 0) == SIZE_MAX) {
        return NG_OK;
    }
    if (!notes_grow(gather->arena, (void **)&gather->values, gather->value_count,
                    &gather->value_room, sizeof(*gather->values))) {
        return NG_EINTERNAL;
    }
    struct notes_gathered_value *kept = &gather->values[gather->value_count++];
    *kept = (struct notes_gathered_value){
        .style = value->place.style, .text = text, .first = before};
    place_value(gather, value, kept);
    gather->other_values -= value->values;
    int rc = notes_markdown_parse(text, &value_events, gather, NULL);
    kept->count = gather->count - before;
    for (size_t i = before; i < gather->count; i++) {
        gather->links[i].line = value->place.line + 1 + gather->note.place.there;
    }
    return rc;
}

/* The recursion is bounded by NOTES_FRONTMATTER_DEPTH_MAX. */
static int add_value(struct notes_gather *gather, const struct notes_value *value)
{
    if (value->place.style == NOTES_STYLE_ALIAS) {
        return NG_OK;
    }
    if (value->type == NOTES_STRING) {
        return add_text(gather, value, value->text);
    }
    struct ng_str bare = notes_value_bare_wiki(&gather->yaml, value);
    if (bare.data != NULL) {
        return add_text(gather, value, bare);
    }
    int rc = NG_OK;
    for (const struct notes_value *child = value->first; child != NULL && rc == NG_OK;
         child = child->next) {
        rc = add_value(gather, child);
    }
    return rc;
}

static int add_definition(void *user, const struct notes_definition *found)
{
    struct notes_gather *gather = user;
    struct buf meant;
    if (!notes_grow(gather->arena, (void **)&gather->definitions, gather->definition_count,
                    &gather->definition_room, sizeof(*gather->definitions))) {
        return NG_EINTERNAL;
    }
    buf_init(&meant, found->target.len + 64);
    (void)notes_markdown_target(&meant, found->target, SIZE_MAX);
    gather->definitions[gather->definition_count++] = (struct notes_gathered_definition){
        .label = notes_markdown_label(gather->arena, found->label),
        .target = arena_copy(gather->arena, notes_buf_str(&meant)),
        .written = str_make(gather->note.body.data + found->at, found->target.len)};
    buf_done(&meant);
    return gather->arena->failed ? NG_EINTERNAL : NG_OK;
}

int notes_gather_links(struct arena *arena, struct ng_str text, struct notes_gather *ret)
{
    *ret = (struct notes_gather){.arena = arena, .text = text};
    int rc = notes_note_parse(arena, text, &ret->note);
    if (rc != NG_OK) {
        return rc;
    }
    ret->body = ret->note.place.body;
    ret->yaml.yaml = ret->note.yaml;
    ret->other_values = ret->note.frontmatter->values;
    rc = add_value(ret, ret->note.frontmatter);
    if (rc == NG_OK) {
        rc = notes_markdown_parse(ret->note.body, &body_events, ret, NULL);
    }
    if (rc == NG_OK && ret->references) {
        rc = notes_markdown_definitions(ret->note.body, add_definition, ret);
    }
    return rc;
}

struct ng_str notes_gather_definition(const struct notes_gather *gather,
                                      const struct notes_gathered *link)
{
    for (size_t i = 0; i < gather->definition_count; i++) {
        const struct notes_gathered_definition *definition = &gather->definitions[i];
        if (str_equal(definition->label, link->label) &&
            str_equal(definition->target, link->target)) {
            return definition->written;
        }
    }
    return STR_NONE;
}
