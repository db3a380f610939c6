/* SPDX-License-Identifier: MIT */
/* index_state.h - what the parts of the index share; readers use index.h. */
#ifndef NOTEGATE_OPENNOTES_INDEX_STATE_H
#define NOTEGATE_OPENNOTES_INDEX_STATE_H

#include <pthread.h>

#include "index.h"
#include "tree/tree.h"
#include "tree/tree_watch.h"

/* Rows of one note in each of the tables fields, headings, links. */
#define ON_INDEX_ROWS_MAX 20000
#define ON_INDEX_READERS_MAX 8 /* idle connections kept */
#define ON_INDEX_LOOSE_MAX ((size_t)1000)
#define ON_INDEX_DIRTY_MAX ((size_t)1000) /* more of them: everything is looked at */
#define ON_INDEX_BATCH_NOTES 500
#define ON_INDEX_BATCH_BYTES ((size_t)16 * 1024 * 1024)
/* A file that was changed so short a time before it was read may have been changed again with
 * the same times: it is read again. */
#define ON_INDEX_YOUNG_NS ((int64_t)2000000000)
#define ON_WORD_CACHE ((size_t)65536) /* slots; a power of two */
#define ON_WORD_LETTERS_MAX 64        /* longer ones are not in vocab */
#define ON_CONTEXT_MAX ((size_t)240)  /* bytes of links.context */

/* Statements of the writer, made once. */
enum on_statement {
    ON_PUT_NOTE = 0,
    ON_PUT_BODY,
    ON_PUT_TAG,
    ON_PUT_FIELD,
    ON_PUT_HEADING,
    ON_PUT_LINK,
    ON_PUT_NAME,
    ON_PUT_GRAMS,
    ON_PUT_TERMS,
    ON_PUT_WORD,
    ON_PUT_WORD_GRAMS,
    ON_PUT_LONG,
    ON_DROP_GRAMS,
    ON_DROP_TERMS,
    ON_DROP_NOTE,
    ON_DROP_BODY,
    ON_DROP_TAGS,
    ON_DROP_FIELDS,
    ON_DROP_HEADINGS,
    ON_DROP_LINKS,
    ON_DROP_NAMES,
    ON_DROP_LONG,
    ON_FIND_FILE,
    ON_FIND_PATH,
    ON_TOUCH_NOTE,
    ON_MOVE_AWAY,
    ON_MOVE_NOTE,
    ON_FIND_ROW,
    ON_FIND_LINKS,
    ON_MOVE_LINK,
    ON_STATEMENTS
};

/* The writing connection; used by one refresh at a time. */
struct on_writer {
    sqlite3 *db;
    sqlite3_stmt *statements[ON_STATEMENTS];
    uint64_t seed;   /* of their hashes, so that nobody finds equal ones */
    uint64_t *words; /* hashes of words that are in vocab: a table that forgets */
    int64_t db_inode;
    bool damaged;
};

/* A connection that is lent to calls, one at a time. */
struct on_reader {
    struct on_reader *next;
    sqlite3 *db;
    uint64_t generation;
};

struct on_paths {
    struct on_arena arena;
    struct ng_str *items;
    size_t count, cap;
};

struct on_indexes {
    pthread_mutex_t lock;
    struct on_index *first;
    uint64_t clock;
    char *folder;
    struct on_wait *calls; /* that may wait for an index */
};

/* The index of one folder, shared by all who use it. */
struct on_index {
    struct on_index *next; /* in the list of struct on_indexes */
    struct on_indexes *owner;
    uint64_t serial; /* no two have the same */
    unsigned refs;   /* under the lock of the list */
    uint64_t used;   /* when last, by the list's clock */
    char *path;      /* of the folder of notes */
    char *file;      /* of the SQLite file */
    int root_fd;
    int64_t inode, device; /* of the folder */

    pthread_mutex_t lock; /* of what follows; never held across I/O */
    pthread_cond_t changed;
    bool refreshing;
    uint64_t arrivals;       /* calls that came */
    uint64_t covered;        /* calls whose refresh is done */
    struct on_wait *waiting; /* calls that gave their workers back */
    size_t done, total;      /* notes of the present refresh */
    int64_t ticked_ns;       /* when those who wait were looked at */
    bool damaged;            /* a reader found it so */
    struct on_reader *idle, *lent;
    size_t idle_count;
    uint64_t generation; /* of the file: connections to an older one are not lent again */

    /* Of the one who refreshes. */
    struct on_writer writer;
    struct on_watch watch;
    bool watch_told;       /* the log knows that watching is off */
    bool scan;             /* everything must be looked at */
    struct on_paths loose; /* notes whose changes no watch tells */
};

/* ---- index_schema.c */

/* Opens the writing connection, making the file anew where it is missing, damaged or of another
 * version. *ret_fresh: it is empty. */
int on_schema_open(struct on_index *index, struct ng_call *call, bool *ret_fresh);
void on_schema_close(struct on_writer *writer);
void on_schema_remove(const struct on_index *index);
/* The file is no more the one that is open. */
bool on_schema_lost(const struct on_index *index);
/* The failure of the writing connection. Notes damage in writer->damaged. */
int on_schema_fail(struct on_index *index, struct ng_call *call, const char *what);
int on_schema_fail_db(struct ng_call *call, sqlite3 *db, const char *file, const char *what,
                      bool *ret_damaged);

/* ---- index_refresh.c */

int on_refresh(struct on_index *index, struct ng_call *call);
/* Is the open file one that the file service lets nobody read: what belongs to the gateway
 * itself under another name? */
bool on_index_is_closed(const struct on_index *index, struct ng_call *call, struct ng_str file,
                        int fd);
void on_paths_done(struct on_paths *paths);
int on_paths_add(struct on_paths *paths, struct ng_str path);

/* ---- index.c */

/* The file is a new one: connections to the former are given up. */
void on_index_renewed(struct on_index *index);
/* One more user; given back by on_index_close(). */
void on_index_hold(struct on_index *index);

/* ---- index_wait.c */

/* Makes the index true, or has another call that is at it do so. ON_WAITS: return it from the
 * tool, which runs again when that is done. */
int on_wait_fresh(struct on_index *index, struct ng_call *call);
/* From the refresh: how far it is, for those who wait. Those whose time is up are answered. */
void on_wait_tick(struct on_index *index, size_t done, size_t total);

/* Tells one call. */
void on_wait_show(struct ng_call *call, size_t done, size_t total);
/* Goes on with the refresh when the call is over. */
int on_wait_background(struct on_index *index, struct ng_call *call);
/* Must this call's refresh end, so that what waits for its answer gets one in time? */
bool on_wait_is_over(struct ng_call *call, int64_t began_ms);

/* ---- index_write.c: one note in a transaction */

/* What the index knows of a file. */
struct on_known {
    int64_t id; /* 0: nothing */
    struct on_stat stat;
    int64_t checked_ns;
    char revision[40];
};

/* Reads, parses and stores; what is not there any more is dropped. *bytes grows by what was
 * read. file: as on disk, with a NUL behind it. */
int on_write_note(struct on_index *index, struct ng_call *call, struct ng_str file,
                  struct on_arena *arena, size_t *bytes);
/* The row of a file that went is that of this one, if the bytes are the same. */
int on_write_move(struct on_index *index, struct ng_call *call, int64_t id, struct ng_str file,
                  struct on_arena *arena, size_t *bytes);
/* Are the file's bytes others than those in the index? */
bool on_write_differs(struct on_index *index, struct ng_call *call, struct ng_str file);
int on_write_drop(struct on_index *index, struct ng_call *call, int64_t id);
int on_write_find(struct on_index *index, struct ng_call *call, struct ng_str file,
                  struct on_known *ret);
/* From a row of id, size, mtime_ns, ctime_ns, inode, device, checked_ns, revision. */
void on_write_known(sqlite3_stmt *statement, struct on_known *ret);
int64_t on_write_now_ns(void);

/* ---- index_changes.c: what is to be done */

struct on_gone {
    int64_t id; /* its row */
    struct on_stat stat;
};

struct on_new {
    size_t at; /* in `changed` */
    struct on_stat stat;
};

struct on_move {
    int64_t id;
    struct ng_str file;
};

/* All in the memory of their owner. */
struct on_changes {
    struct on_paths changed; /* files to read */
    struct on_gone *gone;    /* rows of files that went */
    size_t gone_count, gone_cap;
    struct on_new *fresh; /* files without a row */
    size_t fresh_count, fresh_cap;
    struct on_move *moves; /* files that were under another path */
    size_t move_count;
};

int on_changes_gone(struct on_changes *changes, const struct on_known *known);
int on_changes_new(struct on_changes *changes, struct ng_str file, const struct on_stat *stat);
/* Pairs what went with what came: the same file under another name. */
int on_changes_match(struct on_changes *changes);
void on_changes_done(struct on_changes *changes);
/* Are the bytes of so many notes others that making the file anew costs less? A few are read.
 */
bool on_changes_are_most(struct on_index *index, struct ng_call *call,
                         const struct on_changes *changes, size_t files);

/* ---- index_link.c */

/* What to look up in names; {NULL, 0}: it leads nowhere in a notebook. */
struct ng_str on_link_key(struct on_arena *arena, struct ng_str note_path, bool wiki,
                          struct ng_str target);
/* A wiki link's target, or a name it may mean, without the block of "note^block". */
struct ng_str on_link_note(struct ng_str target);
/* The line that holds the link, shortened. line counts from 1. */
struct ng_str on_link_context(struct ng_str body, size_t *line_start, size_t *line_number,
                              size_t line, struct ng_str needle);

#endif
