/* SPDX-License-Identifier: MIT */
/* files_pack.h - the files of the roots, all of them: into an archive and back. */
#ifndef NOTEGATE_CORE_FILES_PACK_H
#define NOTEGATE_CORE_FILES_PACK_H

#include <stdint.h>

#include "notegate/abi.h"

struct buf;
struct call;
struct files;
struct unpack;

enum packed_kind {
    PACKED_ROOT = 0,
    PACKED_FOLDER = 1,
    PACKED_FILE = 2,
    PACKED_PIECE = 3,    /* bytes of the most recent PACKED_FILE */
    PACKED_FILE_END = 4, /* the file is complete */
    PACKED_LEFT_OUT = 5
};

/* One item of a packed tree. `kind` decides which members are set. Texts are borrowed. */
struct packed_file {
    enum packed_kind kind;
    uint64_t root;       /* number of the root, from 0 */
    struct ng_str space; /* of a root */
    struct ng_str path;  /* absolute for a root, else relative to its root */
    uint32_t mode;       /* permission bits */
    int64_t modified_ms;
    struct ng_str bytes; /* of a piece */
    bool changed;        /* of PACKED_FILE_END: the file changed while it was read */
    const char *why;     /* of PACKED_LEFT_OUT: the reason */
};

/* Not NG_OK: it ends with it. */
typedef int files_pack_fn(void *user, const struct packed_file *file);

/*
 * Tells of every root that is configured (not of plugins' own folders), and of what is in it:
 * of each file once, by the innermost root, and by the first of several spaces' same folder.
 * A file that changes while it is read is told as changed; the gateway's own saves replace
 * files whole, so that what is read of them is one state. The data directory, where it lies in
 * a root, and temporary files of saves are not told. Failures carry their sentence in the call.
 * Blocks.
 */
int files_pack(struct files *files, struct call *call, files_pack_fn *fn, void *user);

/*
 * Into the roots of a configuration: "PATH" or "SPACE:/PATH". A root of the archive is the one
 * of the same space and path; else the one of the same place among its space's.
 * own_root: made where it is missing; the others must be there.
 */
int unpack_new(const struct ng_str *roots, size_t count, struct ng_str own_root,
               struct unpack **ret, struct buf *error);
void unpack_free(struct unpack *unpack); /* NULL is a no-op */
/* Again from the first file; write: makes them, else only looks whether it can. */
void unpack_begin(struct unpack *unpack, bool write);
/* Files made so far: they stay, whatever becomes of the documents. */
uint64_t unpack_made(const struct unpack *unpack);
/* The sink for an archive's files. A file that is there with other bytes is never replaced:
 * NG_EFAILED. */
int unpack_file(struct unpack *unpack, const struct packed_file *file, struct buf *error);
/* Once all are made: from then on their names and folders outlive a power failure, too. */
int unpack_sync(struct unpack *unpack, struct buf *error);

#endif
