/* SPDX-License-Identifier: MIT */
/*
 * archive.h - the portable backup: lines of JSON with hashes, the same from and to every
 * backend.
 *
 * Line 1 has format and version. One line per record follows, in export order: collections
 * before their first use, revisions (as splices of the previous line if that is shorter),
 * events, stored answers, the last sequence number. The last line has their counts. Every line
 * ends in "h", a prefix of the SHA-256 of all bytes before it; the last line ends in the whole
 * "sha256". Bytes that are not UTF-8 are written as {"base64": ...}.
 *
 * Format 2 also has files, after the records: "root" (number, space, path) for each root, with
 * "real" if its path has links and, in format 3, "plugin" if it is a folder of that plugin;
 * then "folder" (root, path, mode) and, for each file, "file" (root, path, mode, modified_ms),
 * its bytes in lines of kind "piece", and "file_end" (size, "content", their SHA-256,
 * "changed": true if the file changed while it was read). Paths are relative to the root.
 * "left_out" (root, path, why) names an item that is no regular file or cannot be read.
 * Documents are one consistent snapshot; files are read after it, one by one. Without files
 * line 1 has "without": the roots (space, path, plugin) that have content.
 */
#ifndef NOTEGATE_CORE_ARCHIVE_H
#define NOTEGATE_CORE_ARCHIVE_H

#include "notegate/backend.h"

#include "core/base/buf.h"

struct call;
struct files;
struct packed_file;
struct store;
struct unpack;

/* With folders of plugins; with files of roots only; without files. An archive has the lowest
 * format that holds it, for older programs. */
#define ARCHIVE_FORMAT 3
#define ARCHIVE_FORMAT_FILES 2
#define ARCHIVE_FORMAT_PLAIN 1
/* Longest line: the largest document, escaped. */
#define ARCHIVE_LINE_MAX ((size_t)1024 * 1024 * 1024)

struct archive_counts {
    uint64_t documents, revisions, events, answers, bytes;
    /* left_out: links, devices, unreadable files; changed: files that changed while read. */
    uint64_t files, left_out, changed;
};

/* Consumes bytes of the archive. An error ends the writing and is returned. */
typedef int archive_put_fn(void *user, struct ng_str bytes);
/* Reads at most `room` bytes; *ret_len 0: the end. An error ends the reading. */
typedef int archive_get_fn(void *user, char *to, size_t room, size_t *ret_len);

/* Receives the records of an archive. Arguments are borrowed for the call. A function that
 * fails writes the message to `error`; its code ends the reading. NULL: not of interest. */
struct archive_sink {
    int (*collection)(void *user, const struct ng_collection *collection, struct buf *error);
    int (*record)(void *user, const struct ng_record *record, struct buf *error);
    void *user;
    int (*file)(void *user, const struct packed_file *file, struct buf *error);
};

/* A store to export from or to import into. */
struct archive_origin {
    const struct ng_documents *backend;
    void *db;
    /* The declaration of a collection; NULL: none. */
    const struct ng_collection *(*collection)(void *user, struct ng_str name);
    void *user;
    struct files *files;   /* export: the roots whose files are included; NULL: no files */
    struct files *without; /* export without files: the roots to name; NULL: none */
    struct unpack *unpack; /* import: the roots for files; NULL: an archive with files fails */
};

/* Counts the records that an archive of the store would hold. The call holds the message of a
 * failure. NG_ENOTFOUND: the backend cannot export. */
int archive_count_store(struct store *store, struct call *call, struct archive_counts *ret);

/* Writes one consistent snapshot of all records. The call holds the message of a failure. May
 * block. */
int archive_write(const struct archive_origin *origin, struct call *call, int64_t now_ms,
                  archive_put_fn *put, void *user, struct archive_counts *ret);
/* The same for the store of the call's gateway. */
int archive_write_store(struct call *call, bool with_files, archive_put_fn *put, void *user,
                        struct archive_counts *ret);

/*
 * Reads a whole archive and checks all of it: header, every line, hashes, order and counts.
 * sink NULL: only checks. NG_EFAILED: `error` has one sentence with the line and the cause; the
 * caller discards all records that the sink received before.
 */
int archive_read(archive_get_fn *get, void *user, const struct archive_sink *sink,
                 struct archive_counts *ret, struct buf *error);

/* An archive that can be read twice. */
struct archive_source {
    archive_get_fn *get;
    int (*rewind)(void *user); /* to its beginning */
    void *user;
};

/* Fills an empty store, all or nothing: the first pass checks the whole archive, the second
 * imports it. into->collection: declarations that override those of the archive. */
int archive_restore(const struct archive_origin *into, struct call *call,
                    const struct archive_source *source, struct archive_counts *ret,
                    struct buf *error);

/* One document or one file of an archive. */
struct archive_only {
    struct ng_key key; /* collection absent: no document */
    uint64_t revision; /* 0: the newest */
    struct ng_str uri; /* for messages */
    /* The file, by unpack_only(); NULL: no file. */
    struct unpack *unpack;
    /* The nearest document of the same collection, where the wanted one is missing. */
    struct buf near_space, near_id;
    bool has_files; /* out: the archive */
};

/*
 * Restores it into the store of the call's gateway, or into a root. The whole archive is
 * checked first. A document becomes one new revision; what exists is never replaced.
 * NG_ENOTFOUND: the archive has neither; `error` is empty.
 */
int archive_restore_only(struct archive_only *only, struct call *call,
                         const struct archive_source *source, struct buf *error);

#endif
