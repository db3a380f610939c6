/* SPDX-License-Identifier: MIT */
/* frontmatter_parse.c - front matter from YAML: libyaml's events, the core schema of YAML 1.2.
 * The only user of libyaml here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "note.h"

#define ERROR_BYTES_MAX 300
#define NAME_BYTES_SHOWN 60

struct anchor {
    struct anchor *older;
    struct ng_str name;
    const struct notes_value *value; /* NULL: its container is not closed yet */
};

struct frontmatter_parser {
    struct arena *arena;
    yaml_parser_t yaml;
    yaml_event_t event;
    bool has_event;
    size_t line; /* line in the file of the first line of the YAML */
    size_t depth, values, bytes;
    struct anchor *anchors;
    size_t anchor_count;
    struct ng_str error;
};

static int fail_at(struct frontmatter_parser *parser, size_t line, const char *what,
                   struct ng_str name)
{
    char text[ERROR_BYTES_MAX];
    name = utf8_cut(name, NAME_BYTES_SHOWN);
    int len = snprintf(text, sizeof(text), "line %zu: %s", line + parser->line, what);
    if (name.len > 0) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, " `%.*s`", (int)name.len,
                        name.data);
    }
    parser->error = arena_copy(parser->arena, str_make(text, (size_t)len));
    return parser->arena->failed ? NG_EINTERNAL : NG_EINVAL;
}

static int fail_here(struct frontmatter_parser *parser, const char *what)
{
    return fail_at(parser, parser->event.start_mark.line, what, str_make(NULL, 0));
}

static int next_event(struct frontmatter_parser *parser)
{
    if (parser->has_event) {
        yaml_event_delete(&parser->event);
        parser->has_event = false;
    }
    if (yaml_parser_parse(&parser->yaml, &parser->event) == 1) {
        parser->has_event = true;
        return NG_OK;
    }
    if (parser->yaml.error == YAML_MEMORY_ERROR) {
        return NG_EINTERNAL;
    }
    char text[ERROR_BYTES_MAX];
    const char *context = parser->yaml.context;
    const char *problem = parser->yaml.problem;
    if (problem == NULL) {
        problem = "is not YAML";
    }
    if (context == NULL) {
        return fail_at(parser, parser->yaml.problem_mark.line, problem, str_make(NULL, 0));
    }
    (void)snprintf(text, sizeof(text), "%s, %s", context, problem);
    return fail_at(parser, parser->yaml.problem_mark.line, text, str_make(NULL, 0));
}

/* ---- anchors */

static int add_anchor(struct frontmatter_parser *parser, const yaml_char_t *name,
                      struct anchor **ret_anchor)
{
    *ret_anchor = NULL;
    if (name == NULL) {
        return NG_OK;
    }
    if (++parser->anchor_count > NOTES_FRONTMATTER_ANCHORS_MAX) {
        return fail_here(parser, "there are too many anchors");
    }
    struct anchor *anchor = arena_zalloc(parser->arena, sizeof(*anchor));
    if (anchor == NULL) {
        return NG_EINTERNAL;
    }
    anchor->name = arena_copy(parser->arena, ng_str_of((const char *)name));
    anchor->older = parser->anchors;
    parser->anchors = anchor;
    *ret_anchor = anchor;
    return NG_OK;
}

static int build_alias(struct frontmatter_parser *parser, struct notes_value *value)
{
    struct ng_str name = ng_str_of((const char *)parser->event.data.alias.anchor);
    const struct anchor *anchor = parser->anchors;
    while (anchor != NULL && !str_equal(anchor->name, name)) {
        anchor = anchor->older;
    }
    size_t line = parser->event.start_mark.line;
    if (anchor == NULL) {
        return fail_at(parser, line, "there is no anchor", name);
    }
    if (anchor->value == NULL) {
        return fail_at(parser, line, "an alias is inside of its own anchor", name);
    }
    struct notes_value own = *value;
    *value = *anchor->value;
    value->key = own.key;
    value->next = NULL;
    value->place = own.place;
    value->place.style = NOTES_STYLE_ALIAS;
    if (parser->depth + value->height > NOTES_FRONTMATTER_DEPTH_MAX) {
        return fail_at(parser, line, "values are nested too deeply", str_make(NULL, 0));
    }
    return NG_OK;
}

/* ---- values */

/* Counts a value against the limits, with expanded aliases. */
static int account(struct frontmatter_parser *parser, const struct notes_value *value,
                   bool whole)
{
    if (whole) {
        parser->values += value->values;
        parser->bytes += value->bytes;
    } else {
        parser->values++;
        parser->bytes += value->text.len + value->key.len;
    }
    if (parser->values > NOTES_FRONTMATTER_VALUES_MAX) {
        return fail_here(parser, "there are too many values");
    }
    if (parser->bytes > NOTES_FRONTMATTER_EXPANDED_MAX) {
        return fail_here(parser, "with its aliases written out it is too large");
    }
    return NG_OK;
}

static bool tag_is(const yaml_char_t *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;
    return text != NULL && strncmp(text, prefix, sizeof(prefix) - 1) == 0 &&
           strcmp(text + sizeof(prefix) - 1, name) == 0;
}

static enum notes_style scalar_style(yaml_scalar_style_t style)
{
    switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
        return NOTES_STYLE_SINGLE;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        return NOTES_STYLE_DOUBLE;
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        return NOTES_STYLE_BLOCK_TEXT;
    default:
        return NOTES_STYLE_PLAIN;
    }
}

static void build_scalar(struct frontmatter_parser *parser, struct notes_value *value)
{
    const yaml_char_t *tag = parser->event.data.scalar.tag;
    struct ng_str text =
        arena_copy(parser->arena, str_make((const char *)parser->event.data.scalar.value,
                                           parser->event.data.scalar.length));
    value->place.style = scalar_style(parser->event.data.scalar.style);
    bool typed = tag_is(tag, "int") || tag_is(tag, "float") || tag_is(tag, "bool") ||
                 tag_is(tag, "null");
    bool plain = value->place.style == NOTES_STYLE_PLAIN && tag == NULL;
    value->type = NOTES_STRING;
    value->text = text;
    if (plain || typed) {
        value->type = notes_scalar_type(parser->arena, text, &value->text);
    }
    if (value->type != NOTES_STRING) {
        value->written = text;
    }
    if (value->type != NOTES_STRING && value->type != NOTES_NUMBER) {
        value->text = str_make("", 0);
    }
    value->values = 1;
    value->height = 0;
    value->bytes = value->text.len;
}

static int build(struct frontmatter_parser *parser, struct notes_value *value);

/* The present event is a key: its text becomes the key of `member`. */
static int build_key(struct frontmatter_parser *parser, struct notes_value *member)
{
    if (parser->event.type != YAML_SCALAR_EVENT) {
        return fail_here(parser, "a key is not text");
    }
    member->key =
        arena_copy(parser->arena, str_make((const char *)parser->event.data.scalar.value,
                                           parser->event.data.scalar.length));
    member->place.key_start = parser->event.start_mark.index;
    member->place.key_end = parser->event.end_mark.index;
    member->place.key_line = parser->event.start_mark.line;
    member->place.key_column = parser->event.start_mark.column;
    /* An anchor at a key refers to its text. */
    struct anchor *anchor;
    int rc = add_anchor(parser, parser->event.data.scalar.anchor, &anchor);
    if (rc != NG_OK) {
        return rc;
    }
    if (anchor != NULL) {
        struct notes_value *text = arena_zalloc(parser->arena, sizeof(*text));
        if (text == NULL) {
            return NG_EINTERNAL;
        }
        *text = (struct notes_value){.type = NOTES_STRING, .text = member->key, .values = 1};
        text->bytes = text->text.len;
        anchor->value = text;
    }
    return next_event(parser);
}

static int compare_keys(const void *a, const void *b)
{
    const struct notes_value *const *left = a;
    const struct notes_value *const *right = b;
    return str_compare((*left)->key, (*right)->key);
}

/* Duplicate keys are an error. */
static int check_keys(struct frontmatter_parser *parser, const struct notes_value *map)
{
    if (map->count < 2) {
        return NG_OK;
    }
    const struct notes_value **sorted = malloc(map->count * sizeof(*sorted));
    size_t count = 0;
    int rc = NG_OK;
    if (sorted == NULL) {
        return NG_EINTERNAL;
    }
    for (const struct notes_value *item = map->first; item != NULL; item = item->next) {
        sorted[count++] = item;
    }
    qsort(sorted, count, sizeof(*sorted), compare_keys);
    for (size_t i = 1; rc == NG_OK && i < count; i++) {
        if (str_equal(sorted[i - 1]->key, sorted[i]->key)) {
            size_t line = size_max(sorted[i - 1]->place.key_line, sorted[i]->place.key_line);
            rc = fail_at(parser, line, "this key occurs twice:", sorted[i]->key);
        }
    }
    free(sorted);
    return rc;
}

/* The elements up to the event that ends them. */
static int build_items(struct frontmatter_parser *parser, struct notes_value *value,
                       yaml_event_type_t end)
{
    struct notes_value **link = &value->first;
    int rc = next_event(parser);
    while (rc == NG_OK && parser->event.type != end) {
        struct notes_value *item = arena_zalloc(parser->arena, sizeof(*item));
        if (item == NULL) {
            return NG_EINTERNAL;
        }
        if (value->type == NOTES_MAP) {
            rc = build_key(parser, item);
        }
        if (rc == NG_OK) {
            rc = build(parser, item);
        }
        if (rc != NG_OK) {
            return rc;
        }
        *link = item;
        link = &item->next;
        value->count++;
        value->values += item->values;
        value->bytes += item->bytes + item->key.len;
        value->height = size_max(item->height + 1, value->height);
        rc = next_event(parser);
    }
    return rc;
}

static int build_container(struct frontmatter_parser *parser, struct notes_value *value)
{
    bool map = parser->event.type == YAML_MAPPING_START_EVENT;
    yaml_event_type_t end = YAML_SEQUENCE_END_EVENT;
    bool flow = parser->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    value->type = NOTES_LIST;
    if (map) {
        end = YAML_MAPPING_END_EVENT;
        flow = parser->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        value->type = NOTES_MAP;
    }
    value->text = str_make("", 0);
    value->values = 1;
    value->height = 1;
    value->place.style = flow ? NOTES_STYLE_FLOW : NOTES_STYLE_BLOCK;
    if (++parser->depth > NOTES_FRONTMATTER_DEPTH_MAX) {
        return fail_here(parser, "values are nested too deeply");
    }
    int rc = build_items(parser, value, end);
    if (rc != NG_OK) {
        return rc;
    }
    value->place.end = parser->event.end_mark.index;
    value->place.end_line = parser->event.end_mark.line;
    parser->depth--;
    if (!map) {
        return NG_OK;
    }
    return check_keys(parser, value);
}

static const yaml_char_t *anchor_name(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

/* The value that begins at the present event; ends at its last event. Recursion is bounded by
 * NOTES_FRONTMATTER_DEPTH_MAX. */
static int build(struct frontmatter_parser *parser, struct notes_value *value)
{
    const yaml_event_t *event = &parser->event;
    struct anchor *anchor;
    int rc = add_anchor(parser, anchor_name(event), &anchor);
    if (rc != NG_OK) {
        return rc;
    }
    value->place.start = event->start_mark.index;
    value->place.end = event->end_mark.index;
    value->place.line = event->start_mark.line;
    value->place.end_line = event->end_mark.line;
    if (event->type == YAML_ALIAS_EVENT) {
        rc = build_alias(parser, value);
        if (rc != NG_OK) {
            return rc;
        }
        return account(parser, value, true);
    }
    bool scalar = event->type == YAML_SCALAR_EVENT;
    if (scalar) {
        build_scalar(parser, value);
    }
    rc = account(parser, value, false);
    if (rc == NG_OK && !scalar) {
        rc = build_container(parser, value);
    }
    if (rc == NG_OK && anchor != NULL) {
        anchor->value = value;
    }
    return rc;
}

static int build_document(struct frontmatter_parser *parser, struct notes_value *map)
{
    int rc = next_event(parser); /* start of the stream */
    if (rc == NG_OK) {
        rc = next_event(parser);
    }
    if (rc != NG_OK || parser->event.type == YAML_STREAM_END_EVENT) {
        return rc;
    }
    rc = next_event(parser);
    if (rc == NG_OK) {
        rc = build(parser, map);
    }
    if (rc == NG_OK && map->type == NOTES_NULL) {
        map->type = NOTES_MAP;
        map->place.style = NOTES_STYLE_BLOCK;
    }
    if (rc == NG_OK && map->type != NOTES_MAP) {
        return fail_at(parser, map->place.line, "front matter is lines of `key: value`",
                       str_make(NULL, 0));
    }
    if (rc == NG_OK) {
        rc = next_event(parser); /* end of the document */
    }
    if (rc == NG_OK) {
        rc = next_event(parser);
    }
    if (rc == NG_OK && parser->event.type != YAML_STREAM_END_EVENT) {
        rc = fail_here(parser, "a second document begins");
    }
    return rc;
}

int notes_frontmatter_parse(struct arena *arena, struct ng_str yaml, size_t line,
                            const struct notes_value **ret_map, struct ng_str *ret_error)
{
    struct frontmatter_parser parser = {.arena = arena, .line = line};
    struct notes_value *map = arena_zalloc(arena, sizeof(*map));
    *ret_error = str_make(NULL, 0);
    if (map == NULL || yaml.data == NULL) {
        return NG_EINTERNAL;
    }
    *map = (struct notes_value){.type = NOTES_MAP, .values = 1};
    map->place.style = NOTES_STYLE_BLOCK;
    if (yaml.len > NOTES_FRONTMATTER_BYTES_MAX) {
        int too_large =
            fail_at(&parser, 0, "front matter is larger than 1 MiB", str_make(NULL, 0));
        *ret_error = parser.error;
        return too_large;
    }
    if (yaml_parser_initialize(&parser.yaml) != 1) {
        return NG_EINTERNAL;
    }
    yaml_parser_set_encoding(&parser.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser.yaml, (const unsigned char *)yaml.data, yaml.len);
    int rc = build_document(&parser, map);
    if (parser.has_event) {
        yaml_event_delete(&parser.event);
    }
    yaml_parser_delete(&parser.yaml);
    *ret_error = parser.error;
    if (arena->failed) {
        return NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        *ret_map = map;
    }
    return rc;
}
