/* SPDX-License-Identifier: MIT */
/*
 * files_state.h - internal interfaces of the file service. Included by files_*.c only.
 *
 * A change is a struct file_op: it resolves the path, waits for the file's lock, reads, commits
 * a write intent, saves the file, and commits history, event and the removal of the intent in
 * one transaction. While it waits for a lock or a commit it occupies no thread; it continues as
 * a task of the pool.
 */
#ifndef NOTEGATE_CORE_FILES_STATE_H
#define NOTEGATE_CORE_FILES_STATE_H

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/lock.h"
#include "core/call/pool.h"
#include "core/store/store.h"
#include "files.h"

#define FILES_HASH_SIZE 33 /* 32 hex digits and a NUL; "" = there is no file */
#define FILES_MARK_SIZE 64 /* of files_mark(), with its NUL */
#define FILES_TEMP_PREFIX ".notegate-"
#define FILES_TEMP_WRITING ".new"   /* suffix while it is written */
#define FILES_TEMP_COMPLETE ".tmp"  /* suffix once it is durable */
#define FILES_TEMP_OLD ".old"       /* suffix of the old content, while a file is overwritten */
#define FILES_BLOCK ((size_t)65536) /* bytes of one read */
#define FILES_PATH_MAX 4096         /* the kernel's own limit */
#define FILES_RETRIES_MAX 60        /* after saves of other programs; bounds the memory, too */
#define FILES_LOCK_WAIT_MS 10000    /* wait for the flock of another process */
#define FILES_WAITERS_MAX 4096      /* calls that wait for one file */
#define FILES_LOCK_BUCKETS 256
/* Undo text of one file; a change that alone needs more cannot be undone. */
#define FILES_UNDO_BYTES_MAX ((size_t)12 * 1024 * 1024)
/* Largest JSON of an intent or a history; it contains paths. */
#define FILES_JSON_MAX ((size_t)32 * 1024 * 1024)
/* Longest reply that an intent keeps for its idempotency key. */
#define FILES_REPLY_MAX ((size_t)4 * 1024 * 1024)
/* Contents of files kept in memory: of one file, of all, and their number. A smaller file is
 * hashed in about the time that a look-up takes. */
#define FILES_KEPT_LEAST ((size_t)64 * 1024)
#define FILES_KEPT_LARGEST ((size_t)4 * 1024 * 1024)
#define FILES_KEPT_BYTES ((size_t)16 * 1024 * 1024)
#define FILES_KEPT_MAX 64
/* Bytes between two states of the hash of a kept content, and their number. */
#define FILES_MARK_BYTES ((size_t)128 * 1024)
#define FILES_MARKS (FILES_KEPT_LARGEST / FILES_MARK_BYTES)

#define FILES_HISTORY "file_history"
#define FILES_INTENTS "file_intents"
#define FILES_INTENT_SPACE "shared"
/* The same with shared documents; the gateway's id follows: see files_intent_space(). */
#define FILES_INTENT_SPACE_OF "~:files:"

/* Result of a step that continues later; the caller must not touch the op any more. */
#define FILES_WAITING 2

/* ---- files of the gateway itself: files_holes.c */

/* A file or folder, whatever its names are. */
struct file_identity {
    dev_t dev;
    ino_t ino;
};

static inline struct file_identity files_identity(const struct stat *st)
{
    return (struct file_identity){st->st_dev, st->st_ino};
}

static inline bool files_same(struct file_identity a, struct file_identity b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

/* The identity of `name` in `dir` ("": of `dir` itself); follows no link. False: errno. */
bool files_identify(int dir, const char *name, struct file_identity *ret);
/* Closes *fd if it is open, and makes it -1. Leaves errno as it is. */
void files_close_fd(int *fd);

#define FILES_HOLES_FILES 2

struct file_hole {
    char *path; /* absolute; NULL: none */
    const char *what;
};

struct file_holes {
    atomic_int refs;
    char *data_dir;
    int fd; /* the data directory, O_PATH; -1: none */
    struct file_identity identity;
    struct file_hole files[FILES_HOLES_FILES];
};

struct file_root;

int files_holes_new(struct call *call, const struct files_own *own, struct file_holes **ret);
struct file_holes *files_holes_ref(struct file_holes *holes);
void files_holes_unref(struct file_holes *holes); /* NULL is a no-op */
/* True if `name` in `dir` ("": `dir` itself), with this stat, is a file of the gateway under
 * any name. The plugin's own folder in the data directory is none for `plugin`. */
bool files_is_hole(const struct file_holes *holes, const struct plugin *plugin, int dir,
                   const char *name, const struct stat *st);
int files_fail_hole(struct call *call, struct ng_str path);
/* NG_EINVAL: the root is, contains or lies in a file of the gateway. */
int files_check_root(struct call *call, const struct file_holes *holes,
                     const struct file_root *root);

/* ---- roots and paths: files.c, files_root.c, files_path.c */

struct file_root {
    char *path;  /* as configured */
    char *real;  /* links resolved */
    char *space; /* the space that the files belong to */
    int fd;      /* O_PATH */
    struct file_identity identity;
    /* Of a plugin's folder: only calls of that plugin use it as a root. NULL: for all calls. */
    const struct plugin *owner;
};

/* A folder that a plugin added; it is added again when the roots change. */
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
struct file_kept;

/* Contents of files that were read or saved lately: files_kept.c. */
struct files_kept {
    struct lock lock;
    struct file_kept *items[FILES_KEPT_MAX]; /* most recently used first */
    size_t count, bytes;
    uint64_t hits, misses;
};

struct files {
    struct store *store;
    atomic_bool unrecovered; /* intents wait for files_recover_rest() */
    struct lock roots_lock;
    struct file_roots *roots;
    struct file_folder *folders; /* only the thread that changes roots uses them */
    size_t folder_count;
    struct lock locks_lock;
    struct file_lock *locks[FILES_LOCK_BUCKETS];
    struct files_kept kept;
};

struct file_roots *files_roots_ref(struct files *files);
void files_roots_unref(struct file_roots *roots);
/* An empty table for `room` roots. NULL: the call has failed. */
struct file_roots *files_roots_new(struct call *call, size_t room, struct file_holes *holes);
/* Compare and swap: `fresh` replaces the roots for the next calls if they still are `expected`
 * (NULL: always). Takes ownership of `fresh`. */
void files_roots_publish(struct files *files, const struct file_roots *expected,
                         struct file_roots *fresh);
/* owner: the plugin that the folder belongs to, or NULL. NG_ENOTFOUND: it does not exist. The
 * caller passes `root` to files_root_done() after success and after failure. */
int files_open_root(struct call *call, const struct file_holes *holes, struct ng_str text,
                    const struct plugin *owner, struct file_root *root);
void files_root_done(struct file_root *root);
/* Makes a relative root absolute, from the working directory of the process. */
int files_absolute_root(struct call *call, struct file_root *root);
/* True if its path still leads to the open folder. */
bool files_root_is_current(const struct file_root *root);
/* Opens the root `stale` of `old` again for later calls. NG_EUNAVAILABLE: its folder does not
 * exist. */
int files_roots_reopen(struct files *files, struct call *call, struct file_roots *old,
                       const struct file_root *stale);
/* True if the caller has access to the space of the root. */
bool files_root_visible(struct call *call, const struct file_root *root);
/* True if path resolution stops at this root. A folder of another plugin is ignored, so that
 * the root around it decides; but a caller without access to its space is refused there. */
bool files_root_counts(struct call *call, const struct file_root *root);

/* A resolved path. Texts are call memory and end in NUL. */
struct file_place {
    struct file_roots *roots;
    const struct file_root *root;
    struct ng_str path;    /* as the caller gave it */
    struct ng_str real;    /* links resolved: the file's identity */
    struct ng_str missing; /* folders between `dir` and `name` that do not exist */
    struct ng_str name;    /* in its folder; "." for a root itself */
    int dir;               /* O_PATH, the deepest folder that exists */
    bool dangling;         /* the path itself is a link to nothing */
    bool below_file;       /* a part before the last is no folder */
    bool exists;
    struct stat st;
};

/* NG_OK also if the file does not exist. NG_EOUTSIDE, NG_EINVAL, NG_EFAILED, NG_EFORBIDDEN. */
int files_resolve(struct files *files, struct call *call, struct ng_str path,
                  struct file_place *ret);
/* The same for a path that the service recorded, without access checks. */
int files_resolve_any(struct files *files, struct call *call, struct ng_str path,
                      struct file_place *ret);
void files_place_done(struct file_place *place);
enum ng_file_type files_place_type(const struct file_place *place);
/* openat2() below `dir`; follows no links. -1 with errno. */
int files_open_beneath(int dir, const char *path, int flags);
/* Creates the missing folders of the place and moves place->dir there. */
int files_make_parents(struct call *call, struct file_place *place);
/* fsync of the folder `dir` (O_PATH); `file`: an open file on the same disk, or -1. */
int files_sync_folder(int dir, int file);
/* fdopendir(); takes ownership of `fd`, also if it is -1 or fails. NULL: errno. */
DIR *files_open_stream(int fd);

/* ---- errors: files_error.c */

/* Maps an errno to one sentence: the action that failed (`what`: "read"), the file, and a way
 * out. */
int files_fail_os(struct call *call, int error, const char *what, struct ng_str path);
/* The same for a step that makes or removes a name: names the folder if that is not writable.
 * fact: what belongs before it, or "". */
int files_fail_name(struct call *call, int error, const char *what,
                    const struct file_place *place, const char *fact);
int files_fail_missing(struct call *call, struct ng_str path);
/* code: of the tool; 0: NG_ECONFLICT. */
int files_fail_exists(struct call *call, struct ng_str path, int code, const char *command);
int files_fail_type(struct call *call, const struct file_place *place);
int files_fail_size(struct call *call, uint64_t bytes, uint64_t max);
int files_fail_revision(struct call *call, struct ng_str path, const char *current);

/* ---- reading: files_read.c */

/* Opens a regular file; never blocks on a FIFO or device. write: for reading and writing. */
int files_open_regular(struct call *call, struct file_place *place, bool write, int *ret_fd);
void files_hash(struct ng_str data, char hash[FILES_HASH_SIZE]);
/* The hash of an open file, read from its beginning. */
int files_hash_fd(struct call *call, struct ng_str path, int fd, char hash[FILES_HASH_SIZE]);
/* Hash of `name` in `dir`; "" if it does not exist. NG_EFAILED: not a regular file. */
int files_hash_at(struct call *call, int dir, const char *name, char hash[FILES_HASH_SIZE]);
/* The whole file into call memory. */
int files_load(struct call *call, struct ng_str path, int fd, uint64_t max_bytes,
               struct ng_str *ret_data);
/* Reads at most `room` bytes from the beginning. */
int files_fill(struct call *call, struct ng_str path, int fd, char *data, size_t room,
               size_t *ret_len);
/* True if the open file has this content. Allocates nothing. */
bool files_has_content(int fd, struct ng_str expected);
/* Identifies one file, also against another one with the same name and content. */
void files_mark(const struct stat *st, char mark[FILES_MARK_SIZE]);
void files_describe(const struct file_place *place, struct ng_file *ret);
bool files_cancelled(struct call *call);
/* NG_ECANCELLED or NG_ETIMEOUT with a message, or NG_OK. */
int files_check_cancelled(struct call *call);

/* "" for an absent text. */
static inline struct ng_str files_or_empty(struct ng_str text)
{
    return text.data != NULL ? text : ng_str_of("");
}

/* ---- states of a hash: files_marks.c */

struct sha256;

struct file_marks {
    size_t count;
    struct sha256 *items[FILES_MARKS]; /* after each FILES_MARK_BYTES */
};

/* As files_hash(), with the states for `ret`; files_marks_done() must follow. from: states of a
 * content whose first `same` bytes are the same; NULL: none. */
void files_hash_marked(struct ng_str data, const struct file_marks *from, size_t same,
                       struct file_marks *ret, char hash[FILES_HASH_SIZE]);
void files_marks_done(struct file_marks *marks);

/* ---- kept contents: files_kept.c */

struct files_load {
    struct ng_str path;
    int fd;
    uint64_t max_bytes; /* 0: no limit */
    /* Out, if not NULL: the kept content, or NULL; lives until the call ends. */
    const struct file_kept **ret_kept;
};

void files_kept_init(struct files_kept *table);
void files_kept_done(struct files_kept *table);
/* The whole file and its hash; lives until the call ends. */
int files_load_hashed(struct files *files, struct call *call, const struct files_load *load,
                      struct ng_str *ret_data, char hash[FILES_HASH_SIZE]);
struct file_op;
/* Hashes op->next, whose first `same` bytes are those of the file as it was read. */
int files_hash_next(struct file_op *op, size_t same);
/* The op has put op->next in place of its file. */
void files_keep_saved(struct files *files, const struct file_op *op);

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

/* One undo step: the splice that turns the content after the change into the one before. */
struct file_undo {
    enum ng_undo_kind kind;
    struct ng_str op; /* of the change, hex */
    char before[FILES_HASH_SIZE];
    char after[FILES_HASH_SIZE];
    uint64_t at, removed;
    struct ng_str inserted; /* as stored: UTF-8, or hex digits if `hex` */
    bool hex;
    struct ng_str former; /* NG_UNDO_MOVE */
    struct ng_str agent;  /* made the change; absent in steps of earlier versions */
    int64_t time_ms;
};

struct file_history {
    size_t count; /* oldest first */
    struct file_undo items[NG_FILE_UNDO_MAX];
};

struct file_record;

int files_history_read(struct call *call, const struct ng_doc *doc, struct file_history *ret);
int files_history_write(struct call *call, const struct file_history *history,
                        struct ng_draft *next);
/* Adds the step and drops the oldest ones beyond the limits. */
void files_history_push(struct file_history *history, const struct file_undo *undo);
/* The step is of the record's change: its id, hashes, agent and time. */
void files_undo_sign(struct call *call, const struct file_record *record,
                     struct file_undo *undo);
/* The splice back from `after` to `before`. */
int files_undo_make(struct call *call, struct ng_str before, struct ng_str after,
                    struct file_undo *ret);
/* The previous content, from the present one. */
int files_undo_apply(struct call *call, const struct file_undo *undo, struct ng_str now,
                     struct ng_str *ret);
/* A text member as a C string of at most `size` bytes. False, and "": there is none that fits.
 */
bool files_member_chars(const struct ng_value *object, const char *name, size_t size,
                        char *ret);
int files_undo_print(struct buf *out, const struct file_undo *undo);
int files_undo_parse(const struct ng_value *value, struct ng_str *text, struct file_undo *ret);

/* ---- a change as its intent records it: files_intent.c */

/* Unfinished saves of other gateways that one change may build on: two of the file, and for a
 * move two of its destination. */
#define FILES_MARKS_MAX 4
#define FILES_MARKS_EACH 2

/* An intent of another gateway and the content that it saved: its hash, "" for a removal. */
struct file_built_on {
    struct ng_str space, real;
    const char *after;
};

struct file_record {
    struct ng_str op;      /* id of this change: 16 hex digits */
    struct ng_str intents; /* the space of its intent */
    enum file_change kind;
    struct ng_str real, space;   /* the file; the source of a move */
    struct ng_str to, to_space;  /* the destination of a move */
    struct ng_str root, to_root; /* the roots' real paths */
    char before[FILES_HASH_SIZE];
    char after[FILES_HASH_SIZE];
    char mark[FILES_MARK_SIZE];       /* of a move: files_mark() of the source, "" if unknown */
    struct ng_str collection, action; /* of the event */
    bool undoable;
    struct file_undo undo;
    struct file_history carried; /* of a move: history of `real`, to be stored under `to` */
    bool has_answer;             /* parsed: `answer` is for retries of the call */
    struct ng_answer answer;
    bool happened;  /* parsed: another gateway has built on this save, so it took place */
    bool completed; /* its intent is gone: another attempt has completed it */
    bool replaced;  /* recovery of a move: the source path holds another file by now */
    struct file_built_on marks[FILES_MARKS_MAX]; /* intents to be marked as happened */
    size_t mark_count;
    const struct result *sealed; /* result of the call, for a retry by the store */
    struct ng_str stale;         /* out: JSON and text of an unfinished older intent */
    struct ng_str stale_text;
    /* Undo: reads the history under the lock and completes the record. */
    int (*peek)(struct call *call, struct file_record *record, const struct ng_doc *present,
                void *user);
    void *peek_user;
};

/* Most documents of one transaction. An intent: history, intent, intent at the destination of a
 * move, marks. A completion: two events, two histories, the intent. */
#define FILES_CHANGES_MAX (3 + FILES_MARKS_MAX)

int files_record_init(struct call *call, struct file_record *record, enum file_change kind);
bool files_record_moves(const struct file_record *record);
bool files_record_removes(const struct file_record *record);
/* The changes that commit the intent. They fail with NG_ECONFLICT and record->stale if an older
 * intent of the file, or of the destination of a move, is unfinished. */
size_t files_intent_changes(struct file_record *record, struct ng_change *changes);
size_t files_intent_drop(struct file_record *record, struct ng_change *changes);
/* Event, history and the removal of the intent. */
size_t files_completion_changes(struct file_record *record, struct ng_change *changes);
int files_record_parse(struct call *call, struct ng_str json, struct ng_str text,
                       struct file_record *ret);
/* Adds the answer of a call with an idempotency key to the JSON object in `out`, so that a
 * retry after a crash gets it. */
int files_intent_add_idempotency(struct call *call, const struct file_record *record,
                                 struct buf *out);

/* ---- crash recovery: files_recover.c */

int files_recover_all(struct files *files, struct call *call);
/* The space of this gateway's intents. Call memory. */
struct ng_str files_intent_space(struct call *call);
/* Recovers one intent of `space` with the file's lock held. Waits for the commit. */
int files_recover(struct files *files, struct call *call, struct ng_str space,
                  struct ng_str json, struct ng_str text);
/* True if another gateway on the same disk is saving this file. *ret_fd: the file, locked,
 * until the caller closes it; -1: it does not exist. */
bool files_busy_elsewhere(struct files *files, struct call *call, struct ng_str real,
                          int *ret_fd);

/* ---- retries with an idempotency key: files_replay.c */

/* Recovers the intents that an earlier attempt of this call left for these files, with their
 * locks held. *ret_answered: the attempt took place, and this call has its answer. */
int files_replay_recover(struct files *files, struct call *call, const struct ng_str *names,
                         size_t count, bool *ret_answered);
/* After this call's intent is committed: NG_EBUSY if another gateway is executing the same
 * call, *ret_answered if it has executed it. */
int files_replay_check(struct files *files, struct call *call, const struct ng_str *names,
                       size_t count, bool *ret_answered);
/* The result of a change that failed with rc: another gateway may be executing the same call
 * (NG_EBUSY), or has executed it (NG_OK with its answer). */
int files_replay_end(struct files *files, struct call *call, const struct ng_str *names,
                     size_t count, int rc);
/* Finds intents of other gateways that saved the content this change builds on, but could not
 * complete. They are marked as happened together with this change's intent: recovery compares
 * file contents, and this change overwrites the evidence. */
int files_replay_built_on(struct files *files, struct call *call, struct file_record *record);
/* Adopts the stored answer of the call's key, if there is one. */
int files_replay_answer(struct call *call, bool *ret_answered);

/* ---- locks: files_lock.c */

struct file_waiter {
    struct file_waiter *next;
    struct task *task;
    struct pool *pool;
};

/* NG_OK: locked. FILES_WAITING: the waiter's task runs when it is locked. NG_EBUSY,
 * NG_EINTERNAL. */
int files_lock(struct files *files, struct ng_str real, struct file_waiter *waiter);
bool files_try_lock(struct files *files, struct ng_str real);
void files_unlock(struct files *files, struct ng_str real);
/* flock() on an open file; waits at most FILES_LOCK_WAIT_MS for other processes. */
int files_flock(struct call *call, struct ng_str path, int fd);

/* ---- a change in progress: files_op.c */

/*
 * The stage decides what a failure does with the intent. Transitions (files_op_enter()):
 *
 *   from        to          when
 *   PREPARING   INTENDED    the intent is handed to the store
 *   INTENDED    PREPARING   the store refuses the intent
 *   INTENDED    INTENDED    another program saved: the intent is replaced by a newer one
 *   INTENDED    SAVED       the new file is about to take the name
 *   SAVED       SAVED       the second half of a move across file systems begins
 *   SAVED       INTENDED    the file did not take the name, or the root was replaced
 *   INTENDED    ENDING      failed before the save: the intent is dropped
 *   SAVED       ENDING      the completion is handed to the store; or failed after the save:
 * the intent stays for recovery
 */
enum file_op_stage {
    FILE_OP_PREPARING = 0, /* no intent of this change is committed */
    FILE_OP_INTENDED = 1,  /* the intent is, or may be, committed */
    FILE_OP_SAVED = 2,     /* the new content is, or may be, in place */
    FILE_OP_ENDING = 3     /* the intent needs nothing more from this op */
};

/* How a new content gets to a name that exists. */
enum file_put {
    FILE_PUT_RENAME = 0, /* a new file takes the name */
    FILE_PUT_LINKS = 1,  /* written in place: the file has several names */
    FILE_PUT_MOUNT = 2   /* written in place: the file is a mount of its own */
};

struct file_op {
    struct task task; /* first */
    struct files *files;
    struct call *call;
    struct ng_deferred *deferred; /* keeps the call open once the op has waited */
    int (*step)(struct file_op *op);
    int (*begin)(struct file_op *op);  /* first step of all */
    int (*locked)(struct file_op *op); /* first step with the locks held */
    enum file_op_stage stage;
    enum file_put put;
    int commit_rc;
    int kept_rc; /* result of the call once the intent is dropped */
    struct result kept;
    struct file_waiter waiter;
    struct ng_change changes[FILES_CHANGES_MAX];
    struct ng_str lock_names[2]; /* real paths, sorted */
    size_t lock_count, locks_held;
    struct file_place place, target;
    int fd;                  /* the file as it was read, locked; -1: none */
    int temp;                /* the file that replaces it, locked; -1: none */
    struct timespec written; /* mtime of `temp` after our last write */
    unsigned attempts;
    struct ng_file present;       /* as given to the tool */
    struct ng_str next;           /* the new content */
    const struct file_kept *base; /* the kept content of `present`; NULL: it is not kept */
    struct file_marks *marks;     /* of `next`; NULL: none */
    struct file_record record;
    bool copy;       /* the content comes from `fd`, not from `next`, and goes to `target` */
    bool keep_mode;  /* the new file gets the mode of `fd` */
    bool keep_owner; /* the new file gets the owner of `fd` */
    struct ng_file_edit edit;
    struct ng_file_transfer transfer;
    struct ng_file_undo undo;
    struct ng_str undo_former; /* undo of a move: the former path, to be locked, too */
    bool undo_load;            /* undo: read the content */
    bool relock;               /* undo: start again with undo_former or undo_load */
};

/* NG_EWOULDBLOCK: the call must not block. */
int files_op_new(struct files *files, struct call *call, enum file_change kind,
                 struct file_op **ret);
/* Changes the stage; asserts that the table above has the transition. */
void files_op_enter(struct file_op *op, enum file_op_stage stage);
/* Runs steps until one waits or the change has ended. The result of the tool's run(). */
int files_op_start(struct file_op *op, int (*begin)(struct file_op *op),
                   int (*locked)(struct file_op *op));
/* Two lock names in the order in which they are locked. */
void files_op_sort(struct ng_str a, struct ng_str b, struct ng_str ret_names[2]);
/* Takes the locks of op->lock_names one after the other, then runs op->locked. */
int files_op_lock(struct file_op *op);
/* Retries after a concurrent save of another program; keeps the locks. */
int files_op_again(struct file_op *op);
/* The same without the locks, if the path leads to another file by now. */
int files_op_restart(struct file_op *op);
/* Opens, locks (flock) and reads op->place: sets op->fd, op->present and the `before` hash of
 * the record. *ret_again: the file was replaced meanwhile. */
int files_op_read(struct file_op *op, bool load, uint64_t max_bytes, bool *ret_again);
int files_op_expect(struct file_op *op, struct ng_str expected);
/* Commits the intent, saves, and commits the completion together with the call's answer. */
int files_op_intent(struct file_op *op);

/* ---- putting files in place: files_save.c */

enum file_saved {
    FILE_SAVED = 0,
    FILE_AGAIN = 1 /* another program saved meanwhile; its content stays in place */
};

/* Name of the temporary file of a change. */
struct ng_str files_temp_name(struct call *call, struct ng_str op, const char *ending);
/* Writes op->next (or a copy of op->fd) to a temporary file and renames it to `place`. */
int files_save(struct file_op *op, struct file_place *place, enum file_saved *ret);
/* True if `name` is the file as the op has read it. */
bool files_is_as_read(struct file_op *op, int dir, const char *name);
/* Copies the bytes from `at` to `end`. block: FILES_BLOCK bytes of the caller. */
int files_write_range(struct call *call, struct ng_str path, int from, int to, off_t at,
                      off_t end, char *block);
/* Renames without replacing, on any file system: -1 with EEXIST. */
int files_rename_new(int from_dir, const char *from, int to_dir, const char *to);
/* Removes the file at `place`. */
int files_remove(struct file_op *op, struct file_place *place, enum file_saved *ret);
/* From op->place to op->target. */
int files_rename(struct file_op *op, enum file_saved *ret);

/* ---- files that keep their inode: files_in_place.c */

/* Sets op->put for the open file at `place`. */
void files_choose_put(struct file_op *op, const struct file_place *place);
/* A file beside the one that is saved could not be written; says why the save needs it. */
int files_fail_temp(struct file_op *op, const struct file_place *place, int error);
/* Writes op->next into the open file. temp: the complete new content in the same folder; it is
 * removed with the old content once the file is whole. */
int files_save_in_place(struct file_op *op, struct file_place *place, const char *temp,
                        enum file_saved *ret);
/* Recovery: gives the file its old content back if it holds parts of `old` and `complete`, as
 * a write that was cut off leaves it. *ret_restored: false if it holds anything else. */
int files_restore(struct call *call, struct file_place *place, const char *old,
                  const char *complete, bool *ret_restored);

#endif
