/* SPDX-License-Identifier: MIT */
/*
 * files.h - files under the gateway's roots: read, edit, list, undo, for every tool that
 * touches files.
 *
 * One service in the core does it, so that two tools cannot overwrite each other. Paths are
 * absolute; a path in none of the roots the caller may use is NG_EOUTSIDE. A save is an intent
 * (committed), the file (exchanged atomically), a completion (committed): the answer leaves
 * after the last. All of it may block: on an event loop these functions return NG_EWOULDBLOCK,
 * which the tool returns.
 */
#ifndef NOTEGATE_FILES_H
#define NOTEGATE_FILES_H

#include "documents.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ng_draft;

enum ng_file_type {
    NG_FILE_NONE = 0,
    NG_FILE_REGULAR = 1,
    NG_FILE_DIRECTORY = 2,
    NG_FILE_OTHER = 3
};

/* Versions kept for undo, per file. */
#define NG_FILE_UNDO_MAX 10
/* Before a file is read again that another program seems to be writing. */
#define NG_FILE_PAUSE_MS 50
/* Links followed on the way to one file. */
#define NG_FILE_LINKS_MAX 40

/* A file as it was found. Lent for the call. file_stat answers NG_OK for what is not there
 * (NG_FILE_NONE); file_read and file_stream fail: NG_ENOTFOUND, or NG_EFAILED for what is no
 * regular file. The revision of a stream is known only where it was read to its end. Read by
 * its size: set `size` before you give one to be filled. */
struct ng_file {
    size_t size;
    enum ng_file_type
        type; /* NG_FILE_NONE: there is no such file (its parents may be missing too) */
    struct ng_str path;  /* as the caller gave it */
    struct ng_str real;  /* absolute path of the real file, links resolved: its identity */
    struct ng_str space; /* of the root it is in */
    struct ng_str data;  /* the bytes; {NULL, 0} from file_stat */
    struct ng_str
        revision; /* hash of the bytes, 32 hex digits; {NULL, 0} where not read or not there */
    uint64_t bytes;
    int64_t modified_ms;
    uint32_t mode; /* permission bits */
};

/*
 * Makes the next content from the present one: sets it with host->draft_text or
 * host->draft_splice, and replies. No draft call: nothing is written, the reply stands. May run
 * more than once (another program saved meanwhile), on another thread than the tool, after the
 * tool has returned: `user` lies in call memory. Not NG_OK: nothing is written and the call
 * fails with it; but NG_EWOULDBLOCK means "another program seems to be in the middle of writing
 * it": the file is read again after a moment (NG_FILE_PAUSE_MS), and the function asked again;
 * it counts itself how often it waits.
 */
typedef int ng_file_fn(struct ng_call *call, const struct ng_file *present,
                       struct ng_draft *next, void *user);

/* A change of one file. Read by its size. */
struct ng_file_edit {
    size_t size;
    struct ng_str path;
    ng_file_fn *fn;
    void *user;
    struct ng_str expected_revision; /* compare-and-swap; absent: none */
    bool create;       /* the file must not be there (else fn decides: it sees present->type) */
    bool parents;      /* make missing parent folders */
    bool not_undoable; /* leaves the undo history alone */
    uint64_t max_bytes; /* of the present file, before it is read: larger is NG_ETOOLARGE; 0: no
                           limit */
    const char *collection; /* of the event: NULL = "files" */
    const char *action;     /* of the event: NULL = "created" or "updated" */
    int exists_code;        /* `create` and it is there: 0 = NG_ECONFLICT, or a plugin's own */
};

/* An entry of a listing. name: path relative to the listed folder. Read by its size. */
struct ng_file_entry {
    size_t size;
    struct ng_str name;
    enum ng_file_type
        type; /* of a link: of what it points to, NG_FILE_NONE where dangling or outside */
    bool link;
    uint64_t bytes;
    int64_t modified_ms;
};

/* Return 0 to go on, anything else to stop. Chunks come in file order. */
typedef int ng_entry_fn(void *user, const struct ng_file_entry *entry);
typedef int ng_chunk_fn(void *user, struct ng_str chunk);

/* What of a folder is listed. Read by its size. */
struct ng_file_list {
    size_t size;
    struct ng_str path;
    uint32_t depth;       /* 1: the folder's own entries */
    bool hidden;          /* also entries that begin with '.', and what is below them */
    uint32_t max_entries; /* more: NG_ETOOLARGE; 0: NG_FILE_ENTRIES_MAX */
    bool sorted;        /* the folder's own entries in the order of their names (as bytes): the
                           first max_entries, then NG_ETOOLARGE if there are more */
    struct ng_str from; /* sorted: of those that are not before it; absent: of all */
};

#define NG_FILE_ENTRIES_MAX 100000

/* Copies or moves a file inside the roots, never over another, missing parents made, mode kept.
 * Undoable; undo history follows a move. `replied` runs when it is clear that it will be done,
 * to reply; NULL: none. Read by its size. */
struct ng_file_transfer {
    size_t size;
    struct ng_str from;
    struct ng_str to;
    struct ng_str expected_revision; /* of `from` */
    bool keep;                       /* true: copy, false: move */
    ng_file_fn *replied;             /* present: the file under its new path, next: NULL */
    void *user;
    int exists_code; /* something is at `to`: 0 = NG_ECONFLICT, or a plugin's own */
};

/* What undo did, for its reply. */
enum ng_undo_kind {
    NG_UNDO_EDIT = 1,   /* the content before the edit is back */
    NG_UNDO_CREATE = 2, /* the file is removed */
    NG_UNDO_MOVE = 3    /* the file is back under its former path (`former`) */
};

typedef int ng_undo_fn(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                       struct ng_str former, void *user);

/* Takes the last change that a tool made back. NG_ENOTFOUND with the file missing; NG_ECONFLICT
 * where the file is not what that change left (nothing is touched); NG_EFAILED where there is
 * no history. Read by its size. */
struct ng_file_undo {
    size_t size;
    struct ng_str path;
    struct ng_str expected_revision;
    ng_undo_fn *replied;
    void *user;
    int no_history_code; /* 0 = NG_EFAILED, or a plugin's own */
};

#ifdef __cplusplus
}
#endif

#endif
