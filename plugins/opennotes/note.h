/* SPDX-License-Identifier: MIT */
/* note.h - a note from its bytes: front matter (YAML 1.2, core types) and body. */
#ifndef OPENNOTES_NOTE_H
#define OPENNOTES_NOTE_H

#include "text.h"

/* Of front matter; what is over one of them does not parse (and the note is still a note). */
#define ON_FRONT_BYTES_MAX 1048576    /* as written */
#define ON_FRONT_EXPANDED_MAX 4194304 /* bytes of text, aliases written out */
#define ON_FRONT_VALUES_MAX 50000     /* values, aliases written out */
#define ON_FRONT_DEPTH_MAX 64
#define ON_FRONT_ANCHORS_MAX 1000

enum on_type { ON_NULL = 0, ON_FALSE, ON_TRUE, ON_NUMBER, ON_STRING, ON_LIST, ON_MAP };

/* A value of front matter. Lists and maps are chains of their elements. */
struct on_value {
    enum on_type type;
    struct ng_str key;  /* of a member; valid UTF-8 */
    struct ng_str text; /* ON_STRING; ON_NUMBER: as JSON writes it */
    struct on_value *first;
    struct on_value *next;
    size_t count; /* elements or members */
    /* What it comes to with its aliases written out. */
    size_t values, bytes, height;
};

/* A member of a map; NULL: none, or no map. */
const struct on_value *on_value_get(const struct on_value *map, struct ng_str key);
/* As JSON. `.inf` and `.nan`, which JSON has not, are the strings ".inf", "-.inf", ".nan". */
void on_value_json(struct on_buf *buf, const struct on_value *value);
/* Same type and content; the order of members matters not. */
bool on_value_equal(const struct on_value *a, const struct on_value *b);

/* Where front matter is in a file. All are offsets into the bytes, or lengths. */
struct on_front {
    bool there;
    size_t bom;   /* 3 or 0 */
    size_t yaml;  /* first byte behind the opening line */
    size_t end;   /* first byte of the closing line */
    size_t body;  /* first byte behind the closing line; == bom where there is none */
    bool crlf;    /* the opening line (without front matter: the first line) ends in CRLF */
    size_t lines; /* lines before the body */
};

void on_front_find(struct ng_str bytes, struct on_front *front);
/* Parses YAML into one map (NULL members: {}). NG_OK; NG_EINVAL with *ret_error a sentence;
 * NG_EINTERNAL: no memory. Everything lies in the arena. `line` is that of the first byte. */
int on_front_parse(struct on_arena *arena, struct ng_str yaml, size_t line,
                   const struct on_value **ret_map, struct ng_str *ret_error);

struct on_note {
    struct ng_str body; /* valid UTF-8, without front matter and BOM, line ends as they are */
    size_t body_line;   /* lines before it in the file */
    const struct on_value *front; /* a map, empty where there is none or it does not parse */
    bool has_front;
    struct ng_str front_error; /* {NULL, 0}: none */
    struct ng_str title;       /* front matter's; {NULL, 0}: none */
    const struct ng_str *tags; /* union of `tag` and `tags`, without '#', each once */
    size_t tag_count;
    const struct ng_str *aliases;
    size_t alias_count;
    bool has_created, has_modified; /* front matter's; else use the file's times */
    int64_t created_ms, modified_ms;
    size_t words; /* of the body */
    struct on_front place;
};

/* NG_OK, or NG_EINTERNAL: no memory. Any bytes are a note. Parts point into `bytes` or the
 * arena. */
int on_note_parse(struct on_arena *arena, struct ng_str bytes, struct on_note *ret_note);

/* Hash of a file's bytes, 32 hex digits, the same as ng_file.revision. */
#define ON_REVISION_SIZE 33

/* Case-insensitive key of a tag; "a/b" is below "a". */
bool on_tag_below(struct ng_str tag, struct ng_str prefix);

#endif
