/* SPDX-License-Identifier: MIT */
/*
 * files_state.h - what the parts of the file service (files_*.c) share.
 *
 * A change is a struct file_op: it resolves the path, waits for the file's lock, reads, commits
 * an intent, saves the file, and hands history, event and the intent's removal to the store as
 * one step. Where it waits (a lock, a commit) it leaves the thread and goes on as a task of the
 * pool.
 */
#ifndef NOTEGATE_CORE_FILES_STATE_H
#define NOTEGATE_CORE_FILES_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/call/pool.h"
#include "core/store/store.h"
#include "files.h"

#define FILES_HASH_SIZE 33 /* 32 hex digits and a NUL; "" = there is no file */
#define FILES_MARK_SIZE 64 /* of files_mark(), with its NUL */
#define FILES_TEMP_PREFIX ".notegate-"
#define FILES_TEMP_WRITING ".new"   /* behind it while it is written */
#define FILES_TEMP_COMPLETE ".tmp"  /* behind it when all of it is on disk */
#define FILES_BLOCK ((size_t)65536) /* bytes of one read */
#define FILES_PATH_MAX 4096         /* the kernel's own limit */
#define FILES_RETRIES_MAX 60        /* another program saved meanwhile; bounds the memory too */
#define FILES_LOCK_WAIT_MS 10000    /* for another process' flock */
#define FILES_WAITERS_MAX 4096      /* calls that wait for one file */
#define FILES_LOCK_BUCKETS 256
/* Undo text kept for one file; a change that alone needs more cannot be undone. */
#define FILES_UNDO_BYTES_MAX ((size_t)12 * 1024 * 1024)
/* Largest JSON of an intent or a history (paths are in it). */
#define FILES_JSON_MAX ((size_t)32 * 1024 * 1024)
/* Longest reply of a call with an idempotency key that its intent keeps. */
#define FILES_REPLY_MAX ((size_t)4 * 1024 * 1024)

#define FILES_HISTORY "file_history"
#define FILES_INTENTS "file_intents"
#define FILES_INTENT_SPACE "shared"
/* ... and with shared documents, followed by the gateway's id: see files_intent_space(). */
#define FILES_INTENT_SPACE_OF "~:files:"

/* What a step returns when it goes on later; nothing of the op may be touched then. */
#define FILES_WAITING 2

/* ---- what is the gateway's own: files_holes.c */

#define FILES_HOLES_FILES 2

struct file_hole {
    char *path; /* absolute; NULL: there is none */
    const char *what;
};

struct file_holes {
    atomic_int refs;
    char *data_dir;
    int fd; /* the data directory, O_PATH; -1: none */
    dev_t dev;
    ino_t ino;
    struct file_hole files[FILES_HOLES_FILES];
};

struct file_root;

int files_holes_new(struct call *call, const struct files_own *own, struct file_holes **ret);
struct file_holes *files_holes_ref(struct file_holes *holes);
void files_holes_unref(struct file_holes *holes); /* NULL is a no-op */
/* Is `name` in `dir` ("": `dir` itself), with this stat, the gateway's own, under whatever
 * name? plugin: who asks; its own folder in the data directory is none to it. */
bool files_is_hole(const struct file_holes *holes, const struct plugin *plugin, int dir,
                   const char *name, const struct stat *st);
int files_fail_hole(struct call *call, struct ng_str path);
/* NG_EINVAL where an open root is, holds or lies in what is the gateway's own. */
int files_check_root(struct call *call, const struct file_holes *holes,
                     const struct file_root *root);

/* ---- roots and paths: files.c, files_root.c, files_path.c */

struct file_root {
    char *path;  /* as configured */
    char *real;  /* links resolved */
    char *space; /* whose files these are */
    int fd;      /* O_PATH */
    dev_t dev;   /* of `fd` */
    ino_t ino;
    /* Of a plugin's folder: only that plugin's calls use it as a root. NULL: a root for all. */
    const struct plugin *owner;
};

/* A folder that a plugin added, to be added again when the roots change. */
struct file_folder {
    char *text;
    const struct plugin *owner;
};

struct file_roots {
    atomic_int refs;
    size_t count;
    struct file_root *items;
    struct file_holes *holes;
};

struct file_lock;

struct files {
    struct store *store;
    atomic_bool unrecovered; /* the database was away at the start */
    pthread_mutex_t roots_lock;
    struct file_roots *roots;
    struct file_folder *folders; /* of the thread that changes roots */
    size_t folder_count;
    pthread_mutex_t locks_lock;
    struct file_lock *locks[FILES_LOCK_BUCKETS];
};

/* "PATH" or "SPACE:/PATH". Both parts lent. */
void files_split_root(struct ng_str text, struct ng_str *ret_space, struct ng_str *ret_path);
struct file_roots *files_roots_ref(struct files *files);
void files_roots_unref(struct file_roots *roots);
/* Room for so many. NULL: the call has failed. */
struct file_roots *files_roots_new(struct call *call, size_t room, struct file_holes *holes);
/* They hold from the next call on, unless others do than `expected` by now (NULL: in any case).
 * At a start and in a reload on one thread; any may open one root again. Takes `fresh`. */
void files_roots_publish(struct files *files, const struct file_roots *expected,
                         struct file_roots *fresh);
/* owner: it is a folder of this plugin. NG_ENOTFOUND: it is not there. `root` is to be given to
 * files_root_done() in any case. */
int files_open_root(struct call *call, const struct file_holes *holes, struct ng_str text,
                    const struct plugin *owner, struct file_root *root);
void files_root_done(struct file_root *root);
/* A relative root is meant from the working folder of the start; callers name it absolutely. */
int files_absolute_root(struct call *call, struct file_root *root);
/* Does its path still lead to the folder that is open? */
bool files_root_is_current(const struct file_root *root);
/* Opens the root `stale` of `old` again, for the calls from now on. NG_EUNAVAILABLE: its folder
 * is not there. */
int files_roots_again(struct files *files, struct call *call, struct file_roots *old,
                      const struct file_root *stale);
/* malloc'd; NULL: out of memory. */
char *files_copy(struct ng_str text);
/* May the caller see the files of this root? */
bool files_root_visible(struct call *call, const struct file_root *root);
/* Is it a root to this call? A folder of another plugin is none, and what holds it decides; but
 * who may not see its files meets it, and is stopped, on every way. */
bool files_root_counts(struct call *call, const struct file_root *root);

/* Where a path leads. Texts are call memory and end in NUL. */
struct file_place {
    struct file_roots *roots;
    const struct file_root *root;
    struct ng_str path;    /* as the caller gave it */
    struct ng_str real;    /* links resolved: the file's identity */
    struct ng_str missing; /* folders between `dir` and `name` that are not there */
    struct ng_str name;    /* in its folder; "." for a root itself */
    int dir;               /* O_PATH, the deepest folder that is there */
    bool dangling;         /* the path itself is a link to nothing */
    bool below_file;       /* a part before the last is no folder */
    bool exists;
    struct stat st;
};

/* NG_OK also where there is no such file. NG_EOUTSIDE, NG_EINVAL, NG_EFAILED, NG_EFORBIDDEN. */
int files_resolve(struct files *files, struct call *call, struct ng_str path,
                  struct file_place *ret);
/* The same for a path the service itself recorded, whoever is calling. */
int files_resolve_any(struct files *files, struct call *call, struct ng_str path,
                      struct file_place *ret);
void files_place_done(struct file_place *place);
enum ng_file_type files_place_type(const struct file_place *place);
/* openat2() below `dir` that follows no link. -1 with errno. */
int files_open_beneath(int dir, const char *path, int flags);
/* Makes the missing folders of the place and steps into them. */
int files_make_parents(struct call *call, struct file_place *place);
/* fsync of the folder `dir` (O_PATH); `file`: an open file on the same disk, or -1. */
int files_sync_folder(int dir, int file);

/* ---- errors: files_error.c */

/* One sentence of ours for an error of the system: what could not be done (`what`: "read"),
 * with which file, and the way out. */
int files_fail_os(struct call *call, int error, const char *what, struct ng_str path);
int files_fail_missing(struct call *call, struct ng_str path);
int files_fail_type(struct call *call, const struct file_place *place);
int files_fail_size(struct call *call, uint64_t bytes, uint64_t max);
int files_fail_revision(struct call *call, struct ng_str path, const char *current);

/* ---- reading: files_read.c */

/* Opens the place's regular file, never blocking on a FIFO or device. write: for both. */
int files_open_regular(struct call *call, struct file_place *place, bool write, int *ret_fd);
void files_hash(struct ng_str data, char hash[FILES_HASH_SIZE]);
/* The hash of an open file, read from its beginning. */
int files_hash_fd(struct call *call, struct ng_str path, int fd, char hash[FILES_HASH_SIZE]);
/* Hash of `name` in `dir`; "" where it is not there. NG_EFAILED: not a regular file. */
int files_hash_at(struct call *call, int dir, const char *name, char hash[FILES_HASH_SIZE]);
/* The whole file into call memory. */
int files_load(struct call *call, struct ng_str path, int fd, uint64_t max_bytes,
               struct ng_str *ret_data);
/* Tells a file from every other one that has, had or will have its name and its content. */
void files_mark(const struct stat *st, char mark[FILES_MARK_SIZE]);
void files_describe(const struct file_place *place, struct ng_file *ret);
bool files_cancelled(struct call *call);
/* NG_ECANCELLED or NG_ETIMEOUT with a sentence; NG_OK: go on. */
int files_check_cancelled(struct call *call);

/* ---- undo history: files_history.c */

enum file_change {
    FILE_CHANGE_EDIT = 1,
    FILE_CHANGE_CREATE = 2,
    FILE_CHANGE_DELETE = 3,
    FILE_CHANGE_MOVE = 4,
    FILE_CHANGE_UNDO_EDIT = 5,
    FILE_CHANGE_UNDO_CREATE = 6,
    FILE_CHANGE_UNDO_MOVE = 7
};

/* One step back: the splice that turns what the change left into what was there before. */
struct file_undo {
    enum ng_undo_kind kind;
    struct ng_str op; /* of the change, hex */
    char before[FILES_HASH_SIZE];
    char after[FILES_HASH_SIZE];
    uint64_t at, removed;
    struct ng_str inserted; /* as stored: UTF-8, or hex digits where hex */
    bool hex;
    struct ng_str former; /* NG_UNDO_MOVE */
};

struct file_history {
    size_t count; /* oldest first */
    struct file_undo items[NG_FILE_UNDO_MAX];
};

int files_history_read(struct call *call, const struct ng_doc *doc, struct file_history *ret);
int files_history_write(struct call *call, const struct file_history *history,
                        struct ng_draft *next);
/* Adds the step, the oldest fall out. */
void files_history_push(struct file_history *history, const struct file_undo *undo);
/* The splice back from `after` to `before`. */
int files_undo_make(struct call *call, struct ng_str before, struct ng_str after,
                    struct file_undo *ret);
/* The content before, from the content now. */
int files_undo_apply(struct call *call, const struct file_undo *undo, struct ng_str now,
                     struct ng_str *ret);
int files_undo_print(struct buf *out, const struct file_undo *undo);
int files_undo_parse(const struct ng_value *value, struct ng_str *text, struct file_undo *ret);

/* ---- a change as its intent tells it: files_intent.c */

/* Unfinished saves of other gateways that one change can find itself built on: two of the file,
 * and of a move two of the place it goes to. */
#define FILES_MARKS_MAX 4
#define FILES_MARKS_EACH 2

/* An intent of another gateway, and what it left: the file's hash, "" where it removed it. */
struct file_built_on {
    struct ng_str space, real;
    const char *after;
};

struct file_record {
    struct ng_str op;      /* names this change: 16 hex digits */
    struct ng_str intents; /* the space of its intent */
    enum file_change kind;
    struct ng_str real, space;   /* the file; of a move: where it was */
    struct ng_str to, to_space;  /* of a move: where it goes */
    struct ng_str root, to_root; /* the roots' real paths */
    char before[FILES_HASH_SIZE];
    char after[FILES_HASH_SIZE];
    char mark[FILES_MARK_SIZE];       /* of a move: which file it was, "" where not known */
    struct ng_str collection, action; /* of the event */
    bool undoable;
    struct file_undo undo;
    struct file_history carried; /* of a move: found under `real`, for `to` */
    bool has_answer;             /* read back from an intent: the answer to a repeated call */
    struct ng_answer answer;
    bool happened; /* read back: another gateway has built on what it saved */
    bool replaced; /* of a move that is settled: another file is at the old place by now */
    struct file_built_on marks[FILES_MARKS_MAX]; /* intents to be marked so */
    size_t mark_count;
    const struct result *sealed; /* what the call answers, should the store ask again */
    struct ng_str stale;         /* out: JSON and text of an older intent in the way */
    struct ng_str stale_text;
    /* Undo: looks at the history under the lock, completes the record. */
    int (*peek)(struct call *call, struct file_record *record, const struct ng_doc *present,
                void *user);
    void *peek_user;
};

/* Most documents one step touches. An intent: history, intent, that of the place a move goes
 * to, marks. A completion: two events, two histories, the intent. */
#define FILES_CHANGES_MAX (3 + FILES_MARKS_MAX)

int files_record_init(struct call *call, struct file_record *record, enum file_change kind);
/* What leaves the intent. A stale one in the way, of the file or of the place a move goes to:
 * NG_ECONFLICT with record->stale set. */
size_t files_intent_changes(struct file_record *record, struct ng_change *changes);
size_t files_intent_drop(struct file_record *record, struct ng_change *changes);
/* Event, history and the intent's removal. */
size_t files_completion_changes(struct file_record *record, struct ng_change *changes);
int files_record_parse(struct call *call, struct ng_str json, struct ng_str text,
                       struct file_record *ret);
/* The answer of a call with an idempotency key joins the intent, so that a repeat after a kill
 * gets it: a member of the object that `out` is in the middle of. */
int files_intent_add_idempotency(struct call *call, const struct file_record *record,
                                 struct buf *out);

/* ---- settlement: files_recover.c */

int files_recover_all(struct files *files, struct call *call);
/* Where the intents of this gateway are. Memory of the call. */
struct ng_str files_intent_space(struct call *call);
/* One intent of that space, the file's lock held. Waits for the commit. */
int files_recover(struct files *files, struct call *call, struct ng_str space,
                  struct ng_str json, struct ng_str text);
/* Whether another gateway that shares the disk is in the middle of a save of this file.
 * *ret_fd: the file, locked, until the caller closes it; -1: it is not there. */
bool files_in_work_elsewhere(struct files *files, struct call *call, struct ng_str real,
                             int *ret_fd);

/* ---- a call that comes again: files_replay.c */

/* Settles what an earlier call with this one's idempotency key left at these files, their locks
 * held. *ret_answered: that call had happened, and its answer is this one's now. */
int files_replay_recover(struct files *files, struct call *call, const struct ng_str *names,
                         size_t count, bool *ret_answered);
/* With this call's intent committed: does another gateway do the same just now (NG_EBUSY), or
 * has it done so (*ret_answered)? */
int files_replay_check(struct files *files, struct call *call, const struct ng_str *names,
                       size_t count, bool *ret_answered);
/* What a change comes to that fails with rc: it may have met what another gateway made of the
 * same call a moment ago, or is about to make. */
int files_replay_end(struct files *files, struct call *call, const struct ng_str *names,
                     size_t count, int rc);
/* The file as it was read - or that there was none, also where a move goes to - is what another
 * gateway left and could not complete yet: that is to be marked with this change's intent, as
 * the file will no longer tell. */
int files_replay_built_on(struct files *files, struct call *call, struct file_record *record);
/* Takes the stored answer of the call's key, if there is one. */
int files_replay_answer(struct call *call, bool *ret_answered);

/* ---- locks: files_lock.c */

struct file_waiter {
    struct file_waiter *next;
    struct task *task;
    struct pool *pool;
};

/* NG_OK: held. FILES_WAITING: the waiter's task runs when it is held. NG_EBUSY, NG_EINTERNAL.
 */
int files_lock(struct files *files, struct ng_str real, struct file_waiter *waiter);
bool files_try_lock(struct files *files, struct ng_str real);
void files_unlock(struct files *files, struct ng_str real);
/* flock() on an open file; waits for other processes, bounded. */
int files_flock(struct call *call, struct ng_str path, int fd);

/* ---- a change under way: files_op.c */

struct file_op {
    struct task task; /* first */
    struct files *files;
    struct call *call;
    struct ng_deferred *deferred; /* holds the call once the op has waited */
    int (*step)(struct file_op *op);
    int (*begin)(struct file_op *op);  /* first step of all; undo only */
    int (*locked)(struct file_op *op); /* first step with the locks held */
    int (*save)(struct file_op *op);   /* first step with the intent committed */
    int commit_rc;
    bool intent_open; /* an intent of ours is (or may be) committed */
    bool in_place;    /* what was saved is (or may be) in place */
    int kept_rc;      /* what the call fails with when the intent is gone */
    struct result kept;
    struct file_waiter waiter;
    struct ng_change changes[FILES_CHANGES_MAX];
    struct ng_str lock_names[2]; /* real paths, sorted */
    size_t lock_count, locks_held;
    struct file_place place, target;
    int fd;                  /* the file as it was read, locked; -1: none */
    int temp;                /* what takes its place, locked; -1: none */
    struct timespec written; /* `temp`, as long as nobody else writes into it */
    unsigned attempts;
    struct ng_file present; /* as given to the tool */
    struct ng_str next;     /* the new content */
    struct file_record record;
    bool copy;       /* the content comes from `fd`, not from `next` */
    bool keep_mode;  /* the new file gets the mode of `fd` */
    bool keep_owner; /* and its owner */
    struct ng_file_edit edit;
    struct ng_file_transfer transfer;
    struct ng_file_undo undo;
    struct ng_str undo_former; /* the former path that is to be locked too; absent: none */
    bool undo_load;            /* undo: the content is read */
    bool relock; /* undo: the history asks for another former path, or for the content */
};

struct file_op *files_op_new(struct files *files, struct call *call);
/* Runs steps until one waits or the change has ended; what run() returns. */
int files_op_start(struct file_op *op, int (*step)(struct file_op *op));
/* Takes the locks of op->lock_names one after the other, then runs op->locked. */
int files_op_lock(struct file_op *op);
/* Another program was faster: closes the files and does `step` again, the locks kept. */
int files_op_again(struct file_op *op, int (*step)(struct file_op *op));
/* The same without the locks: the path leads elsewhere now. */
int files_op_restart(struct file_op *op, int (*step)(struct file_op *op));
/* Opens, locks (flock) and reads op->place: op->fd, op->present, the record's before hash.
 * *ret_again: the file was replaced while waiting. */
int files_op_read(struct file_op *op, bool load, uint64_t max_bytes, bool *ret_again);
int files_op_expect(struct file_op *op, struct ng_str expected);
/* Commits the intent, then runs `save`. */
int files_op_intent(struct file_op *op, int (*save)(struct file_op *op));
/* Writes the completion; the call's answer leaves with it. */
int files_op_complete(struct file_op *op, const char *revision);

/* ---- putting files in place: files_save.c */

enum file_saved {
    FILE_SAVED = 0,
    FILE_AGAIN = 1 /* another program saved meanwhile; its content is in place */
};

/* Name of the temporary file of a change. */
struct ng_str files_temp_name(struct call *call, struct ng_str op, const char *ending);
/* Writes op->next (or a copy of op->fd) beside `place` and puts it there. */
int files_save(struct file_op *op, struct file_place *place, enum file_saved *ret);
/* Takes the file at `place` away. */
int files_remove(struct file_op *op, struct file_place *place, enum file_saved *ret);
/* From op->place to op->target. */
int files_rename(struct file_op *op, enum file_saved *ret);

#endif
