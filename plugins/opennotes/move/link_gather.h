/* SPDX-License-Identifier: MIT */
/* link_gather.h - all links of a file with their places, in the text and in front matter. */
#ifndef OPENNOTES_LINK_GATHER_H
#define OPENNOTES_LINK_GATHER_H

#include "link_rewrite.h"
#include "note/note.h"

/* A link or an image. */
struct notes_gathered {
    bool wiki, reference;
    size_t line;          /* of the file, from 1 */
    struct ng_str target; /* as it is meant */
    struct ng_str label;  /* of a reference, made equal */
    /* The target as it is written: bytes of the file; in front matter of the text of
     * the value. SIZE_MAX: see struct notes_link. */
    size_t at, end;
    bool property; /* in front matter */
};

/* A text of front matter with links. */
struct notes_gathered_value {
    enum notes_style style;
    struct ng_str text;  /* as YAML means it */
    size_t at, end;      /* as it is written: bytes of the file */
    size_t first, count; /* its links */
};

/* The definition of a label. */
struct notes_gathered_definition {
    struct ng_str label;   /* made equal */
    struct ng_str target;  /* as it is meant */
    struct ng_str written; /* in the text */
};

/* Everything lies in the arena or in the text. */
struct notes_gather {
    struct arena *arena;
    struct ng_str text; /* the file: valid UTF-8, without NUL */
    bool references;    /* there are some */
    struct notes_note note;
    size_t body; /* offset of the body */
    struct notes_gathered *links;
    size_t count, room;
    struct notes_gathered_value *values;
    size_t value_count, value_room;
    size_t other_values; /* of front matter, without those */
    struct notes_yaml_source yaml;
    struct notes_gathered_definition *definitions; /* in order, if there are references */
    size_t definition_count, definition_room;
};

/* NG_OK, or NG_EINTERNAL: out of memory. */
int notes_gather_links(struct arena *arena, struct ng_str text, struct notes_gather *ret);
/* The target in the definition of a reference, as it is written in the text. {NULL, 0}: it is
 * not found. */
struct ng_str notes_gather_definition(const struct notes_gather *gather,
                                      const struct notes_gathered *link);

#endif
