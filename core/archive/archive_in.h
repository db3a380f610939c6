/* SPDX-License-Identifier: MIT */
/* archive_in.h - state of an archive reader. Included by archive_*.c only. */
#ifndef NOTEGATE_CORE_ARCHIVE_IN_H
#define NOTEGATE_CORE_ARCHIVE_IN_H

#include "archive.h"
#include "core/base/arena.h"
#include "core/json/json.h"

struct archive_in {
    archive_get_fn *get;
    void *user;
    const struct archive_sink *sink; /* or NULL */
    struct buf *error;
    struct sha256 *hash;
    struct arena arena; /* of one line */
    struct buf pending; /* bytes read ahead */
    size_t taken;       /* consumed bytes of `pending` */
    uint64_t line;      /* number of the present line, from 1 */
    int rc;             /* sticky: NG_EFAILED after the first fault */
    struct archive_counts counts;
    int last_kind; /* NG_RECORD_... of the line before, to check the order; 0: none */
    bool ended;
    uint64_t format;
    /* The document of the previous revision line. */
    bool has_last, last_newest;
    uint64_t last_revision, last_event;
    struct buf collection, space, id, json, text;
    struct buf why;                 /* message of the sink */
    uint64_t root_count, file_size; /* roots so far; bytes of the present file so far */
    struct sha256 *file_hash;       /* NULL: between files */
};

/* Reports the first fault with its line number; later ones are dropped. Returns NG_EFAILED. */
int archive_in_fail(struct archive_in *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The result of a function of the sink, whose message is in in->why. */
int archive_in_sunk(struct archive_in *in, int rc);
/* Members of a line. A missing or malformed one sets in->rc: check it once after all members.
 */
uint64_t archive_take_number(struct archive_in *in, const struct ng_value *line,
                             const char *name);
int64_t archive_take_time(struct archive_in *in, const struct ng_value *line, const char *name);
struct ng_str archive_take_bytes(struct archive_in *in, const struct ng_value *line,
                                 const char *name);
bool archive_take_flag(const struct ng_value *line, const char *name);
/* A string, or an object with base64. */
struct ng_str archive_bytes_of(struct archive_in *in, const char *name,
                               const struct ng_value *value);
/* The origin of a change, as far as the line has it. */
struct ng_origin archive_take_origin(struct archive_in *in, const struct ng_value *line);

/* archive_files.c: lines about files; "without" of line 1. */
int archive_read_without(struct archive_in *in, const struct ng_value *line);
int archive_read_root(struct archive_in *in, const struct ng_value *line);
int archive_read_folder(struct archive_in *in, const struct ng_value *line);
int archive_read_file(struct archive_in *in, const struct ng_value *line);
int archive_read_piece(struct archive_in *in, const struct ng_value *line);
int archive_read_file_end(struct archive_in *in, const struct ng_value *line);
int archive_read_left_out(struct archive_in *in, const struct ng_value *line);

#endif
