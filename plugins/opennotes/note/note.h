/* SPDX-License-Identifier: MIT */
/* note.h - a note from its bytes: front matter (YAML 1.2, core types) and body. */
#ifndef OPENNOTES_NOTE_H
#define OPENNOTES_NOTE_H

#include "text/text.h"

/* Limits of front matter; front matter over one of them does not parse (the file is still a
 * note). */
#define NOTES_FRONTMATTER_BYTES_MAX 1048576    /* as written */
#define NOTES_FRONTMATTER_EXPANDED_MAX 4194304 /* bytes of text, with expanded aliases */
#define NOTES_FRONTMATTER_VALUES_MAX 50000     /* values, with expanded aliases */
#define NOTES_FRONTMATTER_DEPTH_MAX 64
#define NOTES_FRONTMATTER_ANCHORS_MAX 1000

enum notes_type {
    NOTES_NULL = 0,
    NOTES_FALSE,
    NOTES_TRUE,
    NOTES_NUMBER,
    NOTES_STRING,
    NOTES_LIST,
    NOTES_MAP
};

enum notes_style {
    NOTES_STYLE_PLAIN = 0,
    NOTES_STYLE_SINGLE, /* 'text' */
    NOTES_STYLE_DOUBLE, /* "text" */
    NOTES_STYLE_BLOCK_TEXT,
    NOTES_STYLE_FLOW,  /* [a, b], {a: b} */
    NOTES_STYLE_BLOCK, /* - a */
    NOTES_STYLE_ALIAS
};

/* The place of a value: characters from the start of the YAML, lines from 0. */
struct notes_place {
    enum notes_style style;
    size_t key_start, key_end; /* of a member */
    size_t start, end;         /* for a block list or map, `end` is an upper bound */
    size_t key_line, key_column, line, end_line;
};

/* A value of front matter. Lists and maps are chains of their elements. */
struct notes_value {
    enum notes_type type;
    struct ng_str key;  /* of a member; valid UTF-8 */
    struct ng_str text; /* NOTES_STRING; NOTES_NUMBER: as JSON writes it */
    struct ng_str
        written; /* of values other than strings: the text in the YAML; {NULL, 0} elsewhere */
    struct notes_value *first;
    struct notes_value *next;
    size_t count; /* elements or members */
    /* Totals with expanded aliases. */
    size_t values, bytes, height;
    struct notes_place place;
};

/* Is it a key of tags or aliases? Their case does not matter: programs that own such folders
 * write and read them in any. */
bool notes_key_is_name(struct ng_str key);
/* A member of a map; NULL: none, or no map. */
const struct notes_value *notes_value_get(const struct notes_value *map, struct ng_str key);
/* Is it a list or a map with elements? YAML writes it as a block. */
static inline bool notes_value_is_block(const struct notes_value *value)
{
    return (value->type == NOTES_LIST || value->type == NOTES_MAP) && value->first != NULL;
}
/* Writes JSON. `.inf` and `.nan` become the strings ".inf", "-.inf", ".nan", because JSON has
 * no such numbers. */
void notes_value_json(struct buf *buf, const struct notes_value *value);
/* Same type and content; the order of members does not count. */
bool notes_value_equal(const struct notes_value *a, const struct notes_value *b);

/* The YAML that values were parsed from, and the place in it that was found last: values are
 * asked for in the order of the text. */
struct notes_yaml_source {
    struct ng_str yaml;
    size_t character, byte;
};

/* A value as it is written. */
struct ng_str notes_value_source(struct notes_yaml_source *source,
                                 const struct notes_value *value);
/* [[Note]] without quotes is to YAML a list with a list: as it is written. {NULL, 0}: the value
 * is another one. */
struct ng_str notes_value_bare_wiki(struct notes_yaml_source *source,
                                    const struct notes_value *value);

/* The place of front matter in a file: offsets or lengths in bytes. */
struct notes_frontmatter {
    bool there;
    size_t bom;   /* 3 or 0 */
    size_t yaml;  /* first byte behind the opening line */
    size_t end;   /* first byte of the closing line */
    size_t body;  /* first byte behind the closing line; == bom where there is none */
    bool crlf;    /* the opening line (without front matter: the first line) ends in CRLF */
    size_t lines; /* lines before the body */
};

/* The type of a plain scalar by the core schema, and its JSON if it is a number. {NULL, 0} in
 * *ret_text: out of memory. */
enum notes_type notes_scalar_type(struct arena *arena, struct ng_str text,
                                  struct ng_str *ret_text);
/* A value as YAML. Blocks begin on a line of their own, indented by `indent`, and end in a line
 * end. `begun`: the line is already at the indent, behind a dash. */
struct notes_yaml {
    struct buf *out;
    const char *newline;     /* "\n" or "\r\n" */
    enum notes_style quotes; /* of a string, if possible: SINGLE or DOUBLE */
};
/* In one line: a scalar, or a flow list or map. */
void notes_yaml_flow(const struct notes_yaml *yaml, const struct notes_value *value,
                     bool in_flow);
/* "key: value" with its line end, lists and maps that are not empty as blocks. */
void notes_yaml_member(const struct notes_yaml *yaml, struct ng_str key,
                       const struct notes_value *value, size_t indent, bool begun);
/* The elements of a block list or map, each on lines of its own. */
void notes_yaml_block(const struct notes_yaml *yaml, const struct notes_value *value,
                      size_t indent, bool begun);
void notes_yaml_key(const struct notes_yaml *yaml, struct ng_str key, bool in_flow);

void notes_frontmatter_find(struct ng_str bytes, struct notes_frontmatter *frontmatter);
/* Parses YAML into one map (NULL members: {}). NG_OK; NG_EINVAL with *ret_error a sentence;
 * NG_EINTERNAL: no memory. Everything lies in the arena. `line` is that of the first byte. */
int notes_frontmatter_parse(struct arena *arena, struct ng_str yaml, size_t line,
                            const struct notes_value **ret_map, struct ng_str *ret_error);

/* ---- frontmatter_edit.c */

/* The bytes of a file after setting the members of `set` in its front matter; a null member is
 * removed. All other bytes stay. NG_OK; NG_EINVAL with *ret_error a sentence if the edit is not
 * safe; NG_EINTERNAL: out of memory. */
int notes_frontmatter_set(struct arena *arena, struct ng_str bytes,
                          const struct notes_value *set, struct ng_str *ret_bytes,
                          struct ng_str *ret_error);
/* Merges two maps; members of `over` win. The order is that of `over`, then the rest of
 * `under`. NULL: out of memory, or one of the two is NULL. */
struct notes_value *notes_value_merge(struct arena *arena, const struct notes_value *over,
                                      const struct notes_value *under);
/* Adds a member, or replaces the one of that key. False: no memory. */
bool notes_value_put(struct arena *arena, struct notes_value *map, struct ng_str key,
                     const struct notes_value *value);
/* JSON in `depth` lists and maps: is it nested deeper than NOTES_FRONTMATTER_DEPTH_MAX? */
bool notes_value_is_deep(struct ng_call *call, const struct ng_value *json, unsigned depth);
/* A value from the JSON of the caller, which lies `depth` levels deep. NULL: out of memory, or
 * notes_value_is_deep(). */
struct notes_value *notes_value_from(struct arena *arena, struct ng_call *call,
                                     const struct ng_value *json, unsigned depth);

struct notes_note {
    struct ng_str body; /* valid UTF-8, without front matter and BOM, line ends as they are */
    size_t body_line;   /* lines before it in the file */
    const struct notes_value
        *frontmatter; /* a map; empty if there is no front matter, or if it does not parse */
    bool has_frontmatter;
    struct ng_str frontmatter_error; /* {NULL, 0}: none */
    struct ng_str yaml;              /* the text of the front matter, valid UTF-8 */
    struct ng_str title;       /* front matter's; {NULL, 0}: none; see notes_note_title() */
    const struct ng_str *tags; /* union of `tag` and `tags` in any case, without '#', each once;
                                  those of the text with notes_note_tags() */
    size_t tag_count;
    const struct ng_str *aliases;
    size_t alias_count;
    bool has_created, has_modified; /* front matter's; else use the file's times */
    int64_t created_ms, modified_ms;
    size_t words; /* of the body */
    struct notes_frontmatter place;
};

/* NG_OK, or NG_EINTERNAL: no memory. Any bytes are a note. Parts point into `bytes` or the
 * arena. */
int notes_note_parse(struct arena *arena, struct ng_str bytes, struct notes_note *ret_note);
/* Parses the front matter only; body and words stay empty. */
int notes_note_parse_frontmatter(struct arena *arena, struct ng_str bytes,
                                 struct notes_note *ret_note);
/* A note's title: front matter's, else the file's name without its ending. */
struct ng_str notes_note_title(const struct notes_note *note, struct ng_str path);

/* ---- note_tags.c */

/* Maximum number of tags of a note, with those of its text; more are left out. */
#define NOTES_TAGS_MAX 1000
/* Bytes of a body that are searched for tags, as in the index. */
#define NOTES_TAGS_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Tags already seen, in any case of letters. Begins zeroed. */
struct notes_tag_set {
    uint64_t slots[2048];
    size_t count;
};

/* Adds a folded tag; true: it is new. */
bool notes_tag_set_add(struct notes_tag_set *set, struct ng_str fold);
/* Adds the tags of its body to those of front matter. False: no memory. */
bool notes_note_tags(struct arena *arena, struct notes_note *note);

/* Hash of a file's bytes, 32 hexadecimal digits, equal to ng_file.revision. */
#define NOTES_REVISION_SIZE 33

#endif
