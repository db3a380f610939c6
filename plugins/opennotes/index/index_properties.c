/* SPDX-License-Identifier: MIT */
/* index_properties.c - the rows of the links in a note's properties: wiki and Markdown links in
 * the texts of its front matter. */
#include <string.h>

#include "index_rows.h"

struct properties {
    struct notes_row_source *source;
    struct ng_str yaml;
    size_t first_line; /* of the YAML, in the file */
    size_t character;  /* position in the YAML that was found last, */
    size_t byte;       /* and its offset: values come in the order of the text */
    size_t line_start, line_number;
    const struct notes_value *value; /* whose text is parsed */
    int failed;                      /* of a statement */
};

/* The line of a link in the YAML, from 1. The text of a block begins behind the line of its
 * key; other texts have no line ends of their own. */
static size_t line_of(const struct notes_value *value, const struct notes_link *link)
{
    bool block = value->place.style == NOTES_STYLE_BLOCK_TEXT;
    return value->place.line + 1 + (block ? link->line : 0);
}

static int take_link(void *user, const struct notes_link *link)
{
    struct properties *properties = user;
    if (link->kind == NOTES_LINK_AUTO) {
        return NG_OK;
    }
    size_t line = line_of(properties->value, link);
    struct ng_str context = notes_link_context(properties->yaml, &properties->line_start,
                                               &properties->line_number, line, link->target);
    properties->failed =
        notes_rows_link(properties->source, link, properties->first_line + line - 1, context);
    return properties->failed;
}

static int put_text(struct properties *properties, const struct notes_value *value,
                    struct ng_str text)
{
    static const struct notes_markdown_events events = {.link = take_link};
    if (str_find(text, ng_str_of("[["), 0) == SIZE_MAX &&
        str_find(text, ng_str_of("]("), 0) == SIZE_MAX) {
        return NG_OK;
    }
    properties->value = value;
    int rc = notes_markdown_parse(text, &events, properties, NULL);
    if (rc != NG_OK && properties->failed == NG_OK) {
        return notes_fail_memory(properties->source->call);
    }
    return rc;
}

static size_t byte_of(struct properties *properties, size_t character)
{
    if (character < properties->character) {
        properties->character = properties->byte = 0;
    }
    while (properties->character < character && properties->byte < properties->yaml.len) {
        (void)utf8_next(properties->yaml, &properties->byte);
        properties->character++;
    }
    return properties->byte;
}

/* [[Note]] without quotes is to YAML a list with a list: as it is written. {NULL, 0}: the value
 * is another one. */
static struct ng_str bare_wiki(struct properties *properties, const struct notes_value *value)
{
    const struct notes_value *inner = value->first;
    if (value->type != NOTES_LIST || value->place.style != NOTES_STYLE_FLOW ||
        value->count != 1 || inner->type != NOTES_LIST ||
        inner->place.style != NOTES_STYLE_FLOW) {
        return STR_NONE;
    }
    size_t from = byte_of(properties, value->place.start);
    size_t to = byte_of(properties, value->place.end);
    struct ng_str text = str_make(properties->yaml.data + from, to - from);
    if (!str_begins(text, "[[") || !str_ends(text, "]]") || text.len < sizeof("[[]]")) {
        return STR_NONE;
    }
    struct ng_str name = str_make(text.data + 2, text.len - 4);
    bool nested =
        memchr(name.data, '[', name.len) != NULL || memchr(name.data, ']', name.len) != NULL;
    return nested ? STR_NONE : text;
}

/* The links of an anchor are those of its text. The recursion is bounded by
 * NOTES_FRONTMATTER_DEPTH_MAX. */
static int put_value(struct properties *properties, const struct notes_value *value)
{
    if (value->place.style == NOTES_STYLE_ALIAS) {
        return NG_OK;
    }
    if (value->type == NOTES_STRING) {
        return put_text(properties, value, value->text);
    }
    struct ng_str bare = bare_wiki(properties, value);
    if (bare.data != NULL) {
        return put_text(properties, value, bare);
    }
    int rc = NG_OK;
    for (const struct notes_value *child = value->first; child != NULL && rc == NG_OK;
         child = child->next) {
        rc = put_value(properties, child);
    }
    return rc;
}

int notes_rows_properties(struct notes_row_source *source, const struct notes_note *note)
{
    struct properties properties = {.source = source,
                                    .yaml = note->yaml,
                                    .first_line = 1 + note->place.there,
                                    .line_number = 1};
    return put_value(&properties, note->frontmatter);
}
