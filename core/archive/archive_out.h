/* SPDX-License-Identifier: MIT */
/* archive_out.h - state of an archive writer. Included by archive_*.c only. */
#ifndef NOTEGATE_CORE_ARCHIVE_OUT_H
#define NOTEGATE_CORE_ARCHIVE_OUT_H

#include "archive.h"
#include "core/json/json.h"

struct archive_out {
    const struct archive_origin *origin;
    struct call *call;
    archive_put_fn *put;
    void *user;
    struct sha256 *hash;
    struct buf line; /* the line in progress */
    struct buf out;  /* complete lines that were not handed over yet */
    struct ng_writer writer;
    struct archive_counts counts;
    /* Key, JSON and text of the previous revision line: the next one is a splice of it. */
    struct buf key, last_key, last_json, last_text; /* key: of the present line */
    struct buf collections;   /* collections declared so far: " NAME NAME ..." */
    struct sha256 *file_hash; /* of the present file */
    uint64_t file_size;
    int rc;
};

/* Keeps the first failure and returns it. */
int archive_out_fail(struct archive_out *out, int rc, const char *what);
void archive_line_begin(struct archive_out *out, const char *kind);
/* Ends the line with the running hash of all earlier bytes as member `hash_name`. */
int archive_line_end(struct archive_out *out, const char *hash_name, size_t hash_chars);
void archive_line_int(struct archive_out *out, const char *name, uint64_t number);
/* Only a flag that is set. */
void archive_line_flag(struct archive_out *out, const char *name, bool flag);
void archive_line_bytes(struct archive_out *out, const char *name, struct ng_str bytes);

/* archive_files.c: the roots' files; their format; "without" of line 1. */
uint64_t archive_files_format(const struct archive_out *out);
int archive_write_without(struct archive_out *out);
int archive_write_files(struct archive_out *out);

#endif
