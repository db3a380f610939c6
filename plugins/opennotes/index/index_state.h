/* SPDX-License-Identifier: MIT */
/* index_state.h - shared by the files of the index; other rooms use index.h. */
#ifndef NOTEGATE_OPENNOTES_INDEX_STATE_H
#define NOTEGATE_OPENNOTES_INDEX_STATE_H

#include <pthread.h>

#include "core/base/lock.h"
#include "index.h"
#include "index_link.h"
#include "tree/tree.h"
#include "tree/tree_watch.h"

/* Rows of one note in each of the tables fields, headings, links. */
#define NOTES_INDEX_ROWS_MAX 20000
#define NOTES_INDEX_READERS_MAX 8 /* idle connections kept */
#define NOTES_INDEX_LOOSE_MAX ((size_t)1000)
/* With more changes than that, the whole tree is walked. */
#define NOTES_INDEX_DIRTY_MAX ((size_t)1000)
#define NOTES_INDEX_BATCH_NOTES 500
/* Pages of the full-text index that a batch merges, for each of its notes: about as many as its
 * words add on all levels. */
#define NOTES_INDEX_MERGE_PAGES 12
/* Rows kept in the table changes. */
#define NOTES_INDEX_CHANGES_MAX 1000
#define NOTES_INDEX_BATCH_BYTES ((size_t)16 * 1024 * 1024)
/* If a file changed less than this before it was read, it may have changed again with the same
 * times, and is read again. */
#define NOTES_INDEX_YOUNG_NS ((int64_t)2000000000)
#define NOTES_WORD_CACHE ((size_t)65536) /* slots; a power of two */
#define NOTES_WORD_LETTERS_MAX 64        /* longer ones are not in vocab */
#define NOTES_CONTEXT_MAX ((size_t)240)  /* bytes of links.context */

/* Prepared statements of the writer. */
enum notes_statement {
    NOTES_PUT_NOTE = 0,
    NOTES_PUT_BODY,
    NOTES_PUT_TAG,
    NOTES_PUT_FIELD,
    NOTES_PUT_HEADING,
    NOTES_PUT_LINK,
    NOTES_PUT_IMAGE,
    NOTES_PUT_NAME,
    NOTES_PUT_GRAMS,
    NOTES_PUT_TERMS,
    NOTES_PUT_WORD,
    NOTES_PUT_WORD_GRAMS,
    NOTES_PUT_LONG,
    NOTES_DROP_GRAMS,
    NOTES_DROP_TERMS,
    NOTES_DROP_NOTE,
    NOTES_DROP_BODY,
    NOTES_DROP_TAGS,
    NOTES_DROP_FIELDS,
    NOTES_DROP_HEADINGS,
    NOTES_DROP_LINKS,
    NOTES_DROP_IMAGES,
    NOTES_DROP_NAMES,
    NOTES_DROP_LONG, /* the last one that drops a note */
    NOTES_PUT_CHANGE,
    NOTES_CUT_CHANGES,
    NOTES_MERGE_GRAMS,
    NOTES_MERGE_TERMS,
    NOTES_FIND_FILE,
    NOTES_FIND_PATH,
    NOTES_TOUCH_NOTE,
    NOTES_MOVE_AWAY,
    NOTES_MOVE_NOTE,
    NOTES_FIND_ROW,
    NOTES_FIND_LINKS,
    NOTES_MOVE_LINK,
    NOTES_FIND_IMAGES,
    NOTES_MOVE_IMAGE,
    NOTES_STATEMENTS
};

/* The writing connection, used by one refresh at a time. */
struct notes_writer {
    sqlite3 *db;
    sqlite3_stmt *statements[NOTES_STATEMENTS];
    uint64_t seed;   /* of the hashes, so that equal ones cannot be constructed */
    uint64_t *words; /* cache of the hashes of words in vocab; old ones are overwritten */
    int64_t db_inode;
    bool damaged;
};

/* A connection that is lent to one call at a time. */
struct notes_reader {
    struct notes_reader *next;
    sqlite3 *db;
    sqlite3_stmt *begin, *look, *rollback; /* of its transaction: prepared once */
    struct notes_kept *kept;               /* of the tools, or NULL */
    uint64_t generation;
};

struct notes_paths {
    struct arena arena;
    struct ng_str *items;
    size_t count, cap;
};

struct notes_indexes {
    struct lock lock;
    struct notes_index *first;
    uint64_t clock;
    char *folder;
    struct notes_wait *calls; /* calls that may wait for an index */
};

/* The index of one folder, shared by all its users. */
struct notes_index {
    struct notes_index *next; /* in the list of struct notes_indexes */
    struct notes_indexes *owner;
    uint64_t serial; /* unique */
    unsigned refs;   /* under the lock of the list */
    uint64_t used;   /* last use, by the clock of the list */
    char *path;      /* of the folder of notes */
    char *file;      /* of the SQLite file */
    int root_fd;
    int64_t inode, device; /* of the folder */

    struct lock lock; /* guards the members below; never held across I/O */
    pthread_cond_t changed;
    bool refreshing;
    uint64_t arrivals;          /* tickets given to calls */
    uint64_t covered;           /* the last ticket whose refresh is complete */
    struct notes_wait *waiting; /* calls that released their workers */
    size_t done, total;         /* notes of the present refresh */
    int64_t ticked_ns;          /* last check of the waiting calls */
    bool damaged;               /* a reader found damage */
    struct notes_reader *idle, *lent;
    size_t idle_count;
    uint64_t generation; /* of the file: older connections are not lent again */

    /* Used by the refreshing thread only. */
    struct notes_writer writer;
    struct notes_watch watch;
    bool watch_told;          /* the log says already that watching is off */
    bool scan;                /* the next refresh walks the whole tree */
    struct notes_paths loose; /* notes whose changes inotify does not report */
};

/* ---- index_schema.c */

/* Opens the writing connection; builds the file again if it is missing, damaged or of another
 * version. *ret_fresh: it is empty. */
int notes_schema_open(struct notes_index *index, struct ng_call *call, bool *ret_fresh);
void notes_schema_close(struct notes_writer *writer);
void notes_schema_remove(const struct notes_index *index);
/* The file at the path is not the open one any more. */
bool notes_schema_lost(const struct notes_index *index);
/* Fails the call with the error of the writing connection. Sets writer->damaged on damage. */
int notes_schema_fail(struct notes_index *index, struct ng_call *call, const char *what);
int notes_schema_fail_db(struct ng_call *call, sqlite3 *db, const char *file, const char *what,
                         bool *ret_damaged);

/* ---- index_refresh.c */

int notes_refresh(struct notes_index *index, struct ng_call *call);
/* Is this a file of the gateway itself under another name, which the file service refuses to
 * read? */
bool notes_index_is_closed(const struct notes_index *index, struct ng_call *call,
                           struct ng_str file, int fd);
void notes_paths_done(struct notes_paths *paths);
int notes_paths_add(struct notes_paths *paths, struct ng_str path);

/* ---- index.c */

/* The file was replaced: connections to the former one are closed. */
void notes_index_renewed(struct notes_index *index);
/* Adds a user; released by notes_index_close(). */
void notes_index_hold(struct notes_index *index);

/* ---- index_wait.c */

/* Brings the index up to date, or waits for the call that is doing so. NOTES_WAITS: return it
 * from the tool, which runs again afterwards. */
int notes_wait_fresh(struct notes_index *index, struct ng_call *call);
/* Called by the refresh: progress for the waiting calls. Calls whose time is up get an error.
 */
void notes_wait_tick(struct notes_index *index, size_t done, size_t total);

/* Reports progress to one call. */
void notes_wait_show(struct ng_call *call, size_t done, size_t total);
/* Continues the refresh after the call has ended. */
int notes_wait_background(struct notes_index *index, struct ng_call *call);
/* Must the refresh of this call stop, so that the call is answered before its deadline? */
bool notes_wait_is_over(struct ng_call *call, int64_t began_ms);

/* ---- index_write.c: one note in a transaction */

/* The row of a file. */
struct notes_known {
    int64_t id; /* 0: there is no row */
    struct notes_stat stat;
    int64_t checked_ns;
    char revision[40];
};

/* Reads, parses and stores a note; drops it if the file is gone. *bytes grows by the bytes
 * read. file: as on disk, NUL-terminated. */
int notes_write_note(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct arena *arena, size_t *bytes);
/* Gives the row of a removed file to this file if their bytes are equal. */
int notes_write_move(struct notes_index *index, struct ng_call *call, int64_t id,
                     struct ng_str file, struct arena *arena, size_t *bytes);
/* Do the file's bytes differ from the indexed ones? */
bool notes_write_differs(struct notes_index *index, struct ng_call *call, struct ng_str file);
int notes_write_drop(struct notes_index *index, struct ng_call *call, int64_t id);
int notes_write_find(struct notes_index *index, struct ng_call *call, struct ng_str file,
                     struct notes_known *ret);
/* From a row of id, size, mtime_ns, ctime_ns, inode, device, checked_ns, revision. */
void notes_write_known(sqlite3_stmt *statement, struct notes_known *ret);
int64_t notes_write_now_ns(void);

/* ---- index_changes.c: the work of a refresh */

struct notes_gone {
    int64_t id; /* its row */
    struct notes_stat stat;
};

struct notes_new {
    size_t at; /* in `changed` */
    struct notes_stat stat;
};

struct notes_move {
    int64_t id;
    struct ng_str file;
};

/* All memory belongs to the owner of the struct. */
struct notes_changes {
    struct notes_paths changed; /* files to read */
    struct notes_gone *gone;    /* rows of files that went */
    size_t gone_count, gone_cap;
    struct notes_new *fresh; /* files without a row */
    size_t fresh_count, fresh_cap;
    struct notes_move *moves; /* renamed files */
    size_t move_count;
};

int notes_changes_gone(struct notes_changes *changes, const struct notes_known *known);
int notes_changes_new(struct notes_changes *changes, struct ng_str file,
                      const struct notes_stat *stat);
/* Pairs removed with added files: renames. */
int notes_changes_match(struct notes_changes *changes);
void notes_changes_done(struct notes_changes *changes);
/* Have so many notes changed that building the index again costs less? Reads a sample of them.
 */
bool notes_changes_are_most(struct notes_index *index, struct ng_call *call,
                            const struct notes_changes *changes, size_t files);

#endif
