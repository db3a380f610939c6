/* SPDX-License-Identifier: MIT */
/* frontmatter_source.c - values as they are written in the YAML. */
#include "note.h"

#include <string.h>

static size_t byte_of(struct notes_yaml_source *source, size_t character)
{
    if (character < source->character) {
        source->character = source->byte = 0;
    }
    while (source->character < character && source->byte < source->yaml.len) {
        (void)utf8_next(source->yaml, &source->byte);
        source->character++;
    }
    return source->byte;
}

struct ng_str notes_value_source(struct notes_yaml_source *source,
                                 const struct notes_value *value)
{
    size_t from = byte_of(source, value->place.start);
    size_t to = byte_of(source, value->place.end);
    return str_make(source->yaml.data + from, to - from);
}

struct ng_str notes_value_bare_wiki(struct notes_yaml_source *source,
                                    const struct notes_value *value)
{
    const struct notes_value *inner = value->first;
    if (value->type != NOTES_LIST || value->place.style != NOTES_STYLE_FLOW ||
        value->count != 1 || inner->type != NOTES_LIST ||
        inner->place.style != NOTES_STYLE_FLOW) {
        return STR_NONE;
    }
    struct ng_str text = notes_value_source(source, value);
    if (!str_begins(text, "[[") || !str_ends(text, "]]") || text.len < sizeof("[[]]")) {
        return STR_NONE;
    }
    struct ng_str name = str_make(text.data + 2, text.len - 4);
    bool nested =
        memchr(name.data, '[', name.len) != NULL || memchr(name.data, ']', name.len) != NULL;
    return nested ? STR_NONE : text;
}
