/* SPDX-License-Identifier: MIT */
/* files_pack.h - all files of the roots, into an archive and back. */
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
    PACKED_LEFT_OUT = 5,
    PACKED_ROOT_LEFT_OUT = 6 /* a root whose files are not in the archive */
};

/* One item of a packed tree. `kind` decides which members are set. Texts are borrowed. */
struct packed_file {
    enum packed_kind kind;
    uint64_t root;        /* number of the root, from 0 */
    struct ng_str space;  /* of a root */
    struct ng_str path;   /* absolute for a root, else relative to its root */
    struct ng_str real;   /* of a root: its path without links */
    struct ng_str plugin; /* of a root: the plugin that added this folder; "": configured */
    bool empty;           /* of a root: the folder has no content */
    uint32_t mode;        /* permission bits */
    int64_t modified_ms;
    struct ng_str bytes; /* of a piece */
    bool changed;        /* of PACKED_FILE_END: the file changed while it was read */
    const char *why;     /* of PACKED_LEFT_OUT: the reason */
};

/* Receives one item. An error ends the walk and is returned. */
typedef int files_pack_fn(void *user, const struct packed_file *file);

/*
 * Passes every configured root and its content to `fn`, then the folders of plugins that lie in
 * no root. Each file comes once: below the innermost root, and below the first of several roots
 * with the same folder. A file that changes while it is read is marked as changed; saves of the
 * gateway replace whole files, so they are never read half. The data directory and temporary
 * files of saves are left out. The call holds the message of a failure. Blocks.
 */
int files_pack(struct files *files, struct call *call, files_pack_fn *fn, void *user);
/* Only its PACKED_ROOT items. Roots that are missing count as empty. */
int files_pack_roots(struct files *files, struct call *call, files_pack_fn *fn, void *user);

/*
 * Restores into the roots of a configuration: "PATH" or "SPACE:/PATH". A root of the archive
 * maps to the root with the same space and path; else to the one at the same position within
 * its space. own_root: created if it is missing; the others must exist.
 */
int unpack_new(const struct ng_str *roots, size_t count, struct ng_str own_root,
               struct unpack **ret, struct buf *error);
/* A configured folder of a plugin: folders of this plugin in the archive map to it as roots do.
 */
int unpack_add_folder(struct unpack *unpack, const char *plugin, struct ng_str folder);
/* Restores only the file at this path (as it was at the time of the backup) and the folders on
 * the way to it. Borrowed. */
void unpack_only(struct unpack *unpack, struct ng_str path);
/* Was it in the archive? ret_path: where it is restored; or NULL. */
bool unpack_found(struct unpack *unpack, struct buf *ret_path);
void unpack_free(struct unpack *unpack); /* NULL is a no-op */
/* Starts a pass over the archive. write: creates files; else only checks that it can. */
void unpack_begin(struct unpack *unpack, bool write);
/* Number of files created. They stay even if the restore of documents fails. */
uint64_t unpack_made(const struct unpack *unpack);
/* Restores one item. NG_EFAILED: the file exists with other content; it is not replaced. */
int unpack_file(struct unpack *unpack, const struct packed_file *file, struct buf *error);
/* Makes names and folders durable, after the last file. */
int unpack_sync(struct unpack *unpack, struct buf *error);

#endif
