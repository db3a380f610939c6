/* SPDX-License-Identifier: MIT */
/* archive_out.h - an archive being written. Included by archive_*.c only. */
#ifndef NOTEGATE_CORE_ARCHIVE_OUT_H
#define NOTEGATE_CORE_ARCHIVE_OUT_H

#include "archive.h"
#include "core/json/json.h"

struct archive_out {
    const struct archive_origin *origin;
    struct call *call;
    archive_put_fn *put;
    void *user;
    struct archive_hash *hash;
    struct buf line; /* being made */
    struct buf out;  /* made, not handed over yet */
    struct ng_writer writer;
    struct archive_counts counts;
    /* The revision of the line before: key, json and text, to write the next as a splice. */
    bool has_last;
    struct buf last_collection, last_space, last_id, last_json, last_text;
    struct buf collections;         /* names written so far, each with its space in front */
    struct archive_hash *file_hash; /* of the present file's bytes */
    uint64_t file_size;
    int rc;
};

/* The first failure stays; returns it. */
int archive_out_fail(struct archive_out *out, int rc, const char *what);
void archive_line_begin(struct archive_out *out, const char *kind);
/* Ends the line with the hash over all that went before, under this name. */
int archive_line_end(struct archive_out *out, const char *hash_name, size_t hash_chars);
void archive_line_int(struct archive_out *out, const char *name, uint64_t number);
void archive_line_bytes(struct archive_out *out, const char *name, struct ng_str bytes);

/* archive_files.c: the roots' files. */
int archive_write_files(struct archive_out *out);

#endif
