/* SPDX-License-Identifier: MIT */
/* archive_in.h - an archive being read. Included by archive_*.c only. */
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
    struct archive_hash *hash;
    struct arena arena; /* of one line */
    struct buf pending; /* read, not looked at yet */
    size_t taken;       /* of pending */
    uint64_t line;      /* number of the present one, from 1 */
    struct archive_counts counts;
    int last_kind; /* NG_RECORD_... of the line before, to check the order; 0: none */
    bool ended;
    uint64_t format;
    /* The document of the revision before. */
    bool has_last, last_newest;
    uint64_t last_revision, last_event;
    struct buf collection, space, id, json, text;
    /* Files: roots so far; of the present one its bytes. */
    uint64_t root_count, file_size;
    struct archive_hash *file_hash; /* NULL: between files */
};

/* A sentence with the line's number; NG_EFAILED. */
int archive_in_fail(struct archive_in *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int archive_take_number(struct archive_in *in, const struct ng_value *line, const char *name,
                        uint64_t *ret);
int archive_take_time(struct archive_in *in, const struct ng_value *line, const char *name,
                      int64_t *ret);
int archive_take_bytes(struct archive_in *in, const struct ng_value *line, const char *name,
                       struct ng_str *ret);

/* archive_files.c: the lines of an archive's files. */
int archive_read_root(struct archive_in *in, const struct ng_value *line);
int archive_read_folder(struct archive_in *in, const struct ng_value *line);
int archive_read_file(struct archive_in *in, const struct ng_value *line);
int archive_read_piece(struct archive_in *in, const struct ng_value *line);
int archive_read_file_end(struct archive_in *in, const struct ng_value *line);
int archive_read_left_out(struct archive_in *in, const struct ng_value *line);

#endif
