/* SPDX-License-Identifier: MIT */
/* index_properties.c - the rows of the links in a note's properties: wiki and Markdown links in
 * the texts of its front matter. */
#include "index_rows.h"

struct properties {
    struct notes_row_source *source;
    struct notes_yaml_source yaml;
    size_t first_line; /* of the YAML, in the file */
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
    struct ng_str context = notes_link_context(properties->yaml.yaml, &properties->line_start,
                                               &properties->line_number, line, link->target);
    properties->failed =
        notes_rows_link(properties->source, link, properties->first_line + line - 1, context);
    return properties->failed;
}

static int take_image(void *user, const struct notes_link *image)
{
    struct properties *properties = user;
    properties->failed = notes_rows_image(properties->source, image);
    return properties->failed;
}

static int put_text(struct properties *properties, const struct notes_value *value,
                    struct ng_str text)
{
    static const struct notes_markdown_events events = {.link = take_link, .image = take_image};
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
    struct ng_str bare = notes_value_bare_wiki(&properties->yaml, value);
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
                                    .yaml = {.yaml = note->yaml},
                                    .first_line = 1 + note->place.there,
                                    .line_number = 1};
    return put_value(&properties, note->frontmatter);
}
