/* SPDX-License-Identifier: MIT */
/* json_writer.h - JSON out, piece by piece, into a buffer. */
#ifndef NOTEGATE_CORE_JSON_WRITER_H
#define NOTEGATE_CORE_JSON_WRITER_H

#include "core/base/buf.h"

/* Writing. The writer puts commas and escapes; misuse (a value where a name is due, ends
 * missing) and a full buffer stick in buf->rc. */
#define JSON_WRITER_DEPTH 64
struct ng_writer {
    struct buf *buf;
    unsigned depth;
    bool is_array[JSON_WRITER_DEPTH];
    bool has_items[JSON_WRITER_DEPTH];
    bool name_due;      /* a name was written, its value comes next */
    bool complete;      /* the outermost value is written */
    const char *misuse; /* how the writer was misused; NULL: it was not */
};

void json_writer_init(struct ng_writer *writer, struct buf *buf);
void json_object(struct ng_writer *writer);
void json_array(struct ng_writer *writer);
void json_end(struct ng_writer *writer);
void json_name(struct ng_writer *writer, const char *name);
void json_name_str(struct ng_writer *writer, struct ng_str name);
void json_string(struct ng_writer *writer, struct ng_str text);
void json_cstring(struct ng_writer *writer, const char *text);
void json_int(struct ng_writer *writer, int64_t number);
void json_number(struct ng_writer *writer,
                 double number); /* shortest that reads back; not finite: null */
void json_bool(struct ng_writer *writer, bool value);
void json_null(struct ng_writer *writer);
/* `json` is one JSON value already (a schema, a stored body): copied as it is. */
void json_raw(struct ng_writer *writer, struct ng_str json);
/* Members: a name and its value. */
static inline void json_member_string(struct ng_writer *writer, const char *name,
                                      struct ng_str text)
{
    json_name(writer, name);
    json_string(writer, text);
}
static inline void json_member_cstring(struct ng_writer *writer, const char *name,
                                       const char *text)
{
    json_name(writer, name);
    json_cstring(writer, text);
}
static inline void json_member_int(struct ng_writer *writer, const char *name, int64_t number)
{
    json_name(writer, name);
    json_int(writer, number);
}
static inline void json_member_bool(struct ng_writer *writer, const char *name, bool value)
{
    json_name(writer, name);
    json_bool(writer, value);
}
/* An array of strings. */
void json_member_strings(struct ng_writer *writer, const char *name, const struct ng_str *texts,
                         size_t count);
/* The texts between commas, as an array. */
void json_comma_list(struct ng_writer *writer, struct ng_str text);
/* Most bytes of a JSON string for a byte of its text. */
#define JSON_GROWTH_MAX 6
/* The longest beginning, between characters, that a JSON string writes in at most `bytes`, its
 * quotes not counted. */
struct ng_str json_cut(struct ng_str text, size_t bytes);
/* Before and behind a value that the caller writes into writer->buf itself. begin: false where
 * no value may stand, or the buffer has failed. */
bool json_value_begin(struct ng_writer *writer);
void json_value_end(struct ng_writer *writer);

#endif
