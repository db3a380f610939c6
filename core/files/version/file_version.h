/* SPDX-License-Identifier: MIT */
/*
 * file_version.h - the versions of a file: change functions that add one, with its content, to
 * the document of the file in NG_FILE_VERSIONS (see notegate/files.h).
 */
#ifndef NOTEGATE_CORE_FILE_VERSION_H
#define NOTEGATE_CORE_FILE_VERSION_H

#include <sys/stat.h>

#include "core/store/store.h"
#include "notegate/files.h"

#define FILE_VERSION_HASH 33   /* 32 hex digits and a NUL */
#define FILE_VERSION_OP_MAX 16 /* hex digits of a change's id */
/* OP/HASH and a NUL. */
#define FILE_VERSION_PIN_SIZE (FILE_VERSION_OP_MAX + STORE_PIN_CHARS + 2)
/* The documents with the pins. */
#define FILE_VERSION_PINS "file_version_pins"

/* A version to be added, and how it was. Texts are in call memory. */
struct file_version {
    struct ng_str space, real;    /* the file; real {NULL, 0}: no version is added */
    struct ng_str op;             /* id of the change, which makes it once */
    struct ng_str collection;     /* of the event of the change */
    char hash[FILE_VERSION_HASH]; /* of the content; "": the file is gone */
    struct ng_str content;        /* {NULL, 0}: not known, or too large: then none is added */
    uint32_t mode;                /* permission bits */
    int64_t modified_ms;          /* of a found one: of the file */
    struct ng_str
        other; /* moves, copies: the path where it came from or went to; or {NULL, 0} */
    uint64_t other_version; /* there; 0: unknown */
    const char *before;     /* hash of the content that the change finds; NULL: unknown */
    bool moves_gap; /* `other_version` is not the content that was moved: that was not kept */
    const bool *is_done; /* true: the change is complete, nothing is added; NULL: it is not */
    /* Out. */
    uint64_t number; /* 0: none was added */
    bool has_gap;    /* the content before it was not kept: moves_gap, or `before` tells */
    uint64_t lines_added, lines_removed;
    char pin[FILE_VERSION_PIN_SIZE]; /* the id of its pins */
};

/* Change functions; user: the struct file_version. file_version_found_fn() adds the content
 * that a change finds, unless it is that of the newest version; file_version_saved_fn() what
 * the change makes of it. */
ng_change_fn file_version_found_fn;
ng_change_fn file_version_saved_fn;

/* Their change: of the document, with its action. */
void file_version_found(struct file_version *version, struct ng_change *ret);
void file_version_saved(struct file_version *version, struct ng_change *ret);

/* ---- versions that are not thinned out: file_version_pin.c ---- */

/* Did the version come with a move or a copy? Then it, and the one that it came from, are
 * pinned by this change, behind its own. */
bool file_version_is_pinned(const struct file_version *version);
void file_version_pin(struct file_version *version, struct ng_change *ret);
/* See store_pins_load(). */
int file_version_pins_load(struct store *store, struct call *call, struct store_pins *inout);

/* The newest version. number 0: there is none; hash "": the file is gone. May block. */
int file_version_newest(struct store *store, struct call *call, struct ng_str space,
                        struct ng_str real, struct file_version *ret);

/* The end of the history at one path. */
struct file_version_tail {
    uint64_t number;           /* of the newest version; 0: there is none */
    struct ng_str to;          /* the file was moved away, to here; {NULL, 0}: it was not */
    struct ng_str collections; /* of the changes so far, as words, the newest first */
    struct ng_str collection;  /* of the newest change */
};

/* Texts are in call memory. May block. */
int file_version_tail(struct store *store, struct call *call, const struct ng_key *key,
                      struct file_version_tail *ret);

/* Bytes of the largest content that is kept; 0: none is. */
size_t file_version_room(const struct call *call);

/* ---- the versions of one change: file_version_plan.c ---- */

/* A change of a file, before it is made or at its recovery. */
struct file_version_change {
    struct ng_str op, collection; /* as in struct file_version */
    struct ng_str space, real;
    struct ng_str to_space, to;         /* of a move; to {NULL, 0}: it is none */
    struct ng_str copied_space, copied; /* of a copy: its source; {NULL, 0}: it is none */
    const char *before, *after;         /* hashes; "": no file */
    struct ng_str content; /* before or after the change; {NULL, 0}: it is read from fd */
    int fd;                /* the open file that has it; -1: none */
    const struct stat *st; /* of the file, for mode and time; NULL: not known */
    const bool *is_done;   /* as in struct file_version */
};

/* Those of the change. The first one belongs into the transaction before the change, the others
 * into that of its completion. */
struct file_versions {
    struct file_version found; /* the content there, if no version has it */
    struct file_version left;  /* of a move: the removal at the old path */
    struct file_version saved;
};

/* Plans, first before the change (ret->found), then for its completion (the others). NG_OK also
 * where a content is too large or not known: then it is left out. NG_EBUSY: no memory for it
 * just now. May block. */
int file_versions_find(struct store *store, struct call *call,
                       const struct file_version_change *change, struct file_versions *ret);
int file_versions_save(struct store *store, struct call *call,
                       const struct file_version_change *change, struct file_versions *ret);
/* The latter of a file that moves with its folder, which is not read: it takes along its newest
 * version. *inout_room: bytes of contents that the move may still take along. */
int file_versions_carry(struct store *store, struct call *call,
                        const struct file_version_change *change, size_t *inout_room,
                        struct file_versions *ret);

#endif
