/* SPDX-License-Identifier: MIT */
/*
 * archive.h - the portable backup: lines of JSON with hashes, the same from and to every
 * backend.
 *
 * Line 1 names format and version. Then one line per record, in export order: collections where
 * they are first used, revisions (as splices of the line before where that is shorter), events,
 * stored answers, the last sequence number. The last line counts them. Every line ends in "h",
 * the beginning of a SHA-256 over all bytes before it; the last one in the whole "sha256".
 * Bytes that are not UTF-8 are written as {"base64": ...}.
 *
 * With files (the second format) there is, behind the records: "root" (number, space, path)
 * for each root; then "folder" (root, path, mode) and, for each file, "file" (root, path, mode,
 * modified_ms), its bytes in lines of kind "piece", and "file_end" (size, "content", their
 * SHA-256, "changed": true where the file changed meanwhile). Paths are relative to the root.
 * "left_out" (root, path, why) names what is no file or cannot be read. Documents are one
 * state, files each as it was when it was read, after them.
 */
#ifndef NOTEGATE_CORE_ARCHIVE_H
#define NOTEGATE_CORE_ARCHIVE_H

#include "notegate/backend.h"

#include "core/base/buf.h"

struct call;
struct files;
struct store;
struct unpack;

/* Written where files go along; all others in the first, which older programs read, too. */
#define ARCHIVE_FORMAT 2
#define ARCHIVE_FORMAT_PLAIN 1
/* Bytes in one line at most: the largest documents, escaped. */
#define ARCHIVE_LINE_MAX ((size_t)1024 * 1024 * 1024)

struct archive_counts {
    uint64_t documents, revisions, events, answers, bytes;
    /* left_out: links, devices and what could not be read; changed: while it was read. */
    uint64_t files, left_out, changed;
};

enum archive_file_kind {
    ARCHIVE_ROOT = 0,
    ARCHIVE_FOLDER = 1,
    ARCHIVE_FILE = 2,
    ARCHIVE_PIECE = 3,    /* of the file before */
    ARCHIVE_FILE_END = 4, /* all pieces were there */
    ARCHIVE_LEFT_OUT = 5
};

/* One line about files; members as its kind has them. Texts are lent. */
struct archive_file {
    enum archive_file_kind kind;
    uint64_t root;       /* its number, from 0 */
    struct ng_str space; /* of a root */
    struct ng_str path;  /* absolute of a root, else relative to it */
    uint32_t mode;       /* permission bits */
    int64_t modified_ms;
    struct ng_str bytes; /* of a piece */
    bool changed;        /* at the end: while it was read */
    const char *why;     /* left out */
};

/* Takes bytes of the archive. Not NG_OK: writing ends with it. */
typedef int archive_put_fn(void *user, struct ng_str bytes);
/* Gives at most `room` bytes; *ret_len 0: the end. Not NG_OK: reading ends with it. */
typedef int archive_get_fn(void *user, char *to, size_t room, size_t *ret_len);

/* Where an archive's records go. Everything is lent for the call. Not NG_OK: reading ends with
 * it, and the sink has written the sentence. */
struct archive_sink {
    int (*collection)(void *user, const struct ng_collection *collection, struct buf *error);
    int (*record)(void *user, const struct ng_record *record, struct buf *error);
    void *user;
    int (*file)(void *user, const struct archive_file *file, struct buf *error); /* or NULL */
};

/* Where a record came from. */
struct archive_origin {
    const struct ng_documents *backend;
    void *db;
    /* The declaration of a collection; NULL: none. */
    const struct ng_collection *(*collection)(void *user, struct ng_str name);
    void *user;
    struct files *files; /* written along: the files of its roots; NULL: none */
    struct unpack
        *unpack; /* restored into: its roots; NULL: an archive with files is refused */
};

/* Counts what an archive of the store would hold. Failures carry their sentence in the call.
 * NG_ENOTFOUND: the backend does not say. */
int archive_count_store(struct store *store, struct call *call, struct archive_counts *ret);

/* One consistent state of everything. Failures carry their sentence in the call. May block. */
int archive_write(const struct archive_origin *origin, struct call *call, int64_t now_ms,
                  archive_put_fn *put, void *user, struct archive_counts *ret);
/* The same of a store; files NULL: without files. */
int archive_write_store(struct store *store, struct files *files, struct call *call,
                        archive_put_fn *put, void *user, struct archive_counts *ret);

/*
 * Reads a whole archive and checks all of it: header, every line, hashes, order and counts.
 * sink NULL: only checks. NG_EFAILED: `error` has one sentence with the line and the cause.
 * What the sink got before a fault is not to be kept.
 */
int archive_read(archive_get_fn *get, void *user, const struct archive_sink *sink,
                 struct archive_counts *ret, struct buf *error);

/* An archive that can be read twice. */
struct archive_source {
    archive_get_fn *get;
    int (*rewind)(void *user); /* to its beginning */
    void *user;
};

/* Fills an empty store, all or nothing: the whole archive is checked first, then read again and
 * kept. into->collection: declarations that go before those of the archive. */
int archive_restore(const struct archive_origin *into, struct call *call,
                    const struct archive_source *source, struct archive_counts *ret,
                    struct buf *error);

#endif
