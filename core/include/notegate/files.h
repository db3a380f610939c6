/* SPDX-License-Identifier: MIT */
/*
 * files.h - files under the roots of the gateway: read, edit, list, undo, for all tools.
 *
 * One service in the core serves all tools, so that two of them cannot overwrite each other's
 * changes. Paths are absolute; a path outside the accessible roots is NG_EOUTSIDE. A save
 * commits a write intent, exchanges the file atomically and commits a completion; the answer is
 * sent after that. These functions may block: on an event loop they return NG_EWOULDBLOCK,
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

/* Undo steps of one file, and bytes of text that they keep. */
#define NG_FILE_UNDO_MAX 10
#define NG_FILE_UNDO_BYTES ((size_t)12 * 1024 * 1024)
/* The collection with the versions of files: the history of the document with the space of the
 * root and the real path of the file has one revision for each content that a tool has saved,
 * and for each that it found. The text is the content, the bytes as they are. The JSON has the
 * members: `hash` of the content, `mode` (permission bits), `collections` of the changes so far
 * (words, that of the newest first); of a moved or copied file `from`, its path then, and
 * `from_version` (0: unknown); `gap`: true where the change found another content than that of
 * the version before, which was not kept (history.max_file). The file was removed where the
 * document is deleted; then the data of the event has `collections`, `gap`, and `to` if it was
 * moved. Of a found content it has
 * `modified`, the time of the file in ms. Quiet, so its changes are in no feed: the event of a
 * change is in the collection of the tool, and has the number of the version as the member
 * `version` of its data, and `gap` as it does. */
#define NG_FILE_VERSIONS "file_versions"
/* The action of a version that was found: the author and tool are those of the change that
 * found it, not of the content. */
#define NG_FILE_FOUND "found"
/* Pause before a retry of a read while another program seems to write the file. */
#define NG_FILE_PAUSE_MS 50
/* Most links in one path. */
#define NG_FILE_LINKS_MAX 40

/* A file. Borrowed for the call. For a missing file file_stat returns NG_OK and NG_FILE_NONE;
 * file_read and file_stream fail with NG_ENOTFOUND. For other types than regular files the
 * latter fail with NG_EFAILED. A stream has a revision only after it was read to its end. Read
 * by its size: set `size` before you pass one to be filled. */
struct ng_file {
    size_t size;
    enum ng_file_type
        type;            /* NG_FILE_NONE: it does not exist; its parents may not exist either */
    struct ng_str path;  /* as the caller gave it */
    struct ng_str real;  /* absolute path with links resolved: the identity of the file */
    struct ng_str space; /* space of its root */
    struct ng_str data;  /* the bytes; {NULL, 0} from file_stat */
    struct ng_str revision; /* hash of the bytes, 32 hex digits; {NULL, 0} if not read */
    uint64_t bytes;
    int64_t modified_ms;
    uint32_t mode; /* permission bits */
    /* Of a removed file that an undo made again: the names that it had, if they were several.
     * It is a file of its own now. Else 0; newer. */
    uint64_t names;
};

/*
 * Makes the next content from the present one: sets it with host->draft_text or
 * host->draft_splice, or removes the file, or an empty folder, with host->draft_delete; and
 * replies. Without a draft call nothing is written and the reply is
 * sent. May be retried after a save of another program, on another thread, after the tool has
 * returned: so `user` is in call memory. An error writes nothing and fails the call, except
 * NG_EWOULDBLOCK: it means that another program seems to be writing the file. Then the file is
 * read and the function called again after NG_FILE_PAUSE_MS; the function limits the retries.
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
    bool create;            /* the file must not exist; else fn decides by present->type */
    bool parents;           /* create missing parent folders */
    bool not_undoable;      /* add no undo step */
    uint64_t max_bytes;     /* NG_ETOOLARGE if the present file is larger; 0: no limit */
    const char *collection; /* of the event; NULL: "files" */
    const char *action;     /* of the event; NULL: "created" or "updated" */
    int exists_code;        /* with `create`, if the file exists; 0: NG_ECONFLICT */
};

/* An entry of a listing. name: path relative to the listed folder. Read by its size. */
struct ng_file_entry {
    size_t size;
    struct ng_str name;
    enum ng_file_type
        type; /* of a link: type of its target; NG_FILE_NONE: missing or outside */
    bool link;
    uint64_t bytes;
    int64_t modified_ms;
};

/* Return 0 to continue, any other value to stop. Chunks come in file order. */
#define NG_ENTRY_INTO 2 /* of ng_entry_fn in a walk: enter the folder, read the file */
typedef int ng_entry_fn(void *user, const struct ng_file_entry *entry);
typedef int ng_chunk_fn(void *user, struct ng_str chunk);

/* Options of a listing. Read by its size. */
struct ng_file_list {
    size_t size;
    struct ng_str path;
    uint32_t depth;       /* levels; 1: only entries of the folder itself */
    bool hidden;          /* also entries that begin with '.', and those below them */
    uint32_t max_entries; /* NG_ETOOLARGE if there are more; 0: NG_FILE_ENTRIES_MAX */
    /* One level, ordered by names (as bytes): the first max_entries, then NG_ETOOLARGE if there
     * are more. */
    bool sorted;
    struct ng_str from; /* with `sorted`: skips names before this one; absent: none */
    /* A walk: all entries, also hidden ones, by the bytes of their paths, in bounded memory.
     * `path` may be a regular file: one entry without name. Folders are entered, and regular
     * files read, where `entry` returns NG_ENTRY_INTO: blocks, then an empty chunk as the end;
     * another value than 0 ends this file. Without any chunk a file could not be read. Links
     * are not followed. */
    ng_chunk_fn *content;
};

#define NG_FILE_ENTRIES_MAX 100000

/* Most files that change with one move: those inside a moved folder, and those of `edits`. */
#define NG_FILE_GROUP_MAX 4096

/* Copies or moves a file inside the roots; never replaces a file. Creates missing parents and
 * keeps the mode. Undoable; a move takes the undo history along. `replied` makes the reply once
 * all checks have passed; NULL: no reply. Read by its size. */
struct ng_file_transfer {
    size_t size;
    struct ng_str from;
    struct ng_str to;
    struct ng_str expected_revision; /* of `from` */
    bool keep;                       /* true: copy, false: move */
    ng_file_fn *replied;             /* present: the file under its new path, next: NULL */
    void *user;
    int exists_code; /* if `to` exists; 0: NG_ECONFLICT */
    /* Of a move: edits of other files, or of `from`, that belong to it. After a crash all of it
     * took place, or nothing; one undo of `to`, or of an edited file, reverts all. Paths are
     * those before the move; a file that does not exist is left out. Of an edit only size,
     * path, fn, user, max_bytes and collection count; `fn` must not reply. At most
     * NG_FILE_GROUP_MAX. `user` of each is in call memory. */
    const struct ng_file_edit *edits;
    size_t edit_count;
    bool folder; /* `from` may be a folder; it moves with all its files */
};

/* The effect of an undo, for its reply. */
enum ng_undo_kind {
    NG_UNDO_EDIT = 1,   /* restored the content before the edit */
    NG_UNDO_CREATE = 2, /* removed the file */
    NG_UNDO_MOVE = 3,   /* moved the file back to its former path (`former`) */
    NG_UNDO_DELETE = 4  /* made the file or empty folder again that was removed */
};

typedef int ng_undo_fn(struct ng_call *call, enum ng_undo_kind kind, const struct ng_file *now,
                       struct ng_str former, void *user);

/* Reverts the last change of a tool, also a removal. NG_ENOTFOUND: the file does not exist.
 * NG_ECONFLICT: it was changed since by another program; nothing is changed. NG_EFAILED: no
 * history. Read by its size.
 */
struct ng_file_undo {
    size_t size;
    struct ng_str path;
    struct ng_str expected_revision;
    ng_undo_fn *replied;
    void *user;
    int no_history_code;    /* without history; 0: NG_EFAILED */
    const char *collection; /* of the event; NULL: "files" */
};

/* ---- kinds of contents ---- */

/* The contents of a three-way merge, which takes a change out of a file. Never grows. */
struct ng_sides {
    struct ng_str base;    /* after the change */
    struct ng_str present; /* of the file now */
    struct ng_str before;  /* before the change */
};

/*
 * A kind of contents of files that is not merely text, by the ending of file names: how its
 * history is compared, and how a change is taken back. Without a function it is treated as
 * text. The functions run on workers, in calls of any plugin, several at a time even if
 * `threads` of the plugin is SERIAL; they must not block on input or output. Texts that they
 * give are in call memory. Codes that are not named here: NG_EINTERNAL, out of memory. Read by
 * its size, which is in the module record.
 */
struct ng_content_kind {
    const char *ending; /* ".ipynb", of any case; of two plugins the first counts. Required */
    /* The content as a text of lines, for comparisons and blame. NG_EINVAL: it is not of this
     * kind, its bytes are compared. NG_ETOOLARGE: it is not compared. */
    int (*view)(void *self, struct ng_call *call, struct ng_str bytes, struct ng_str *ret_text);
    /* The three contents differ. NG_OK and *ret_merged; or it stays {NULL, 0}, and
     * *ret_conflict is {"reason", "at"?: [{"line"?, "present", "before"}]}: why they are not
     * merged, and where in the view of present. */
    int (*merge)(void *self, struct ng_call *call, const struct ng_sides *sides,
                 struct ng_str *ret_merged, struct ng_str *ret_conflict);
    /* Is a merged content one of this kind, as far as present and before are? */
    int (*check)(void *self, struct ng_call *call, const struct ng_sides *sides,
                 struct ng_str merged, bool *ret_good);
};

#ifdef __cplusplus
}
#endif

#endif
