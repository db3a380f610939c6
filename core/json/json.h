/* SPDX-License-Identifier: MIT */
/* json.h - JSON in and out. The only user of yajl. Numbers keep their digits, members their
 * order. */
#ifndef NOTEGATE_CORE_JSON_H
#define NOTEGATE_CORE_JSON_H

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/text/json_writer.h"
#include "notegate/plugin.h"

/* A parsed value. Read-only once parsed; lives as long as its arena. */
struct ng_value {
    enum ng_type type;
    uint32_t count;         /* elements or members */
    struct ng_value *first; /* containers: the first child */
    struct ng_value *next;  /* the next sibling */
    struct ng_str key;      /* members: the name, unescaped */
    /* string: unescaped bytes (may hold NUL); number: its digits; object, array: its text as it
     * came */
    struct ng_str text;
    bool printed; /* a container: its text is printed unchanged */
};

struct json_error {
    int code;          /* NG_EJSON; NG_EINTERNAL: out of memory */
    size_t offset;     /* bytes before the fault */
    size_t line;       /* from 1 */
    size_t column;     /* in characters, from 1 */
    char message[200]; /* one sentence without position: "member \"a\" occurs twice" */
    /* NG_EJSON: what was read, of which only whole values hold; NULL: nothing. That is all
     * before the fault, and the whole text if its grammar is right (a doubled member, a name
     * that is refused). */
    const struct ng_value *partial;
};

#define JSON_DEPTH_DEFAULT 128 /* limits.depth; the outermost value is at depth 1 */

/* Maximum number of values of a text, for the size of its tree; it need not be JSON. The text
 * may come in parts; zeroed before the first. */
struct json_counter {
    size_t separators;
    bool in_string, is_escaped;
};
void json_count_piece(struct json_counter *counter, struct ng_str piece);
static inline size_t json_counted_values(const struct json_counter *counter)
{
    return counter->separators + 1;
}

/*
 * One JSON text (RFC 8259), nothing after it but white space. Refused: doubled members, bad or
 * overlong UTF-8, encoded surrogates, a byte order mark, form feed, deeper than `depth`, empty
 * text; a name with the escape of a lone surrogate, which in a value becomes U+FFFD (also in
 * the `text` of the containers around it). The choices for the `i_` files of the parsing suite
 * are listed in core/README.md.
 */
int json_parse(struct arena *arena, struct ng_str text, unsigned depth,
               const struct ng_value **ret, struct json_error *error);

/* The same of an object or array in a text that lives as long as the arena and does not change:
 * its tree points into it, and the parser's own memory is not left in the arena. A lone
 * surrogate is refused in values too.
 * Containers are printed as they came, if that is without line ends and tabs. */
int json_parse_kept(struct arena *arena, struct ng_str text, unsigned depth,
                    const struct ng_value **ret, struct json_error *error);

/* The text behind a byte order mark, which clients may send though JSON has none. */
struct ng_str json_skip_mark(struct ng_str text);

const struct ng_value *json_get_str(const struct ng_value *object, struct ng_str name);
static inline const struct ng_value *json_get(const struct ng_value *object, const char *name)
{
    return json_get_str(object, ng_str_of(name));
}
/* The text of a string, the digits of a number; else absent. */
struct ng_str json_text(const struct ng_value *value);
/* Is a string of this array? False of anything else. */
bool json_has_text(const struct ng_value *array, struct ng_str text);
/* The text of a member that is a string; absent: there is none. */
struct ng_str json_get_text(const struct ng_value *object, const char *name);
static inline bool json_is(const struct ng_value *value, enum ng_type type)
{
    return value != NULL && value->type == type;
}
/* The first item or member; NULL where there is none, and of NULL. */
static inline const struct ng_value *json_first(const struct ng_value *value)
{
    return value != NULL ? value->first : NULL;
}
/* NG_EINVAL: not a number, has a fraction (1.0 and 1e2 are integers), or does not fit. */
int json_integer(const struct ng_value *number, int64_t *ret);
/* The value of a member that json_integer() takes, else 0. */
int64_t json_get_integer(const struct ng_value *object, const char *name);
double json_double(const struct ng_value *number);
/* Equal as JSON values: 1 and 1.0 are, member order does not count. Exact for numbers of any
 * length. */
bool json_equal(const struct ng_value *a, const struct ng_value *b);
/* <0, 0, >0; exact for numbers of any length and exponents up to +-10^9. */
int json_compare_numbers(struct ng_str a, struct ng_str b);
bool json_is_integer(const struct ng_value *number);
/* Removes the members that are null, also inside. True: there were some; the containers around
 * them have no text then. */
bool json_drop_nulls(struct ng_value *value);
/* A copy of the whole tree in another arena. NULL: out of memory. */
struct ng_value *json_clone(struct arena *arena, const struct ng_value *value);
/* Compact text. */
int json_print(struct buf *buf, const struct ng_value *value);

/* One value as the next one of a writer. */
void json_copy(struct ng_writer *writer, const struct ng_value *value);

#endif
