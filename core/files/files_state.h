/* SPDX-License-Identifier: MIT */
/*
 * files_state.h - changes of files: internal interfaces of the file service. Included by
 * files_*.c only.
 *
 * A change is a struct file_op: it resolves the path, waits for the file's lock, reads, commits
 * a write intent, saves the file, and commits history, event and the removal of the intent in
 * one transaction. While it waits for a lock or a commit it occupies no thread; it continues as
 * a task of the pool.
 */
#ifndef NOTEGATE_CORE_FILES_STATE_H
#define NOTEGATE_CORE_FILES_STATE_H

#include "core/base/buf.h"
#include "core/call/pool.h"
#include "core/store/store.h"
#include "files_place.h"
#include "version/file_version.h"

#define FILES_RETRIES_MAX 60     /* after saves of other programs; bounds the memory, too */
#define FILES_LOCK_WAIT_MS 10000 /* wait for the flock of another process */
#define FILES_WAITERS_MAX 4096   /* calls that wait for one file */
/* Undo text of one file; a change that alone needs more cannot be undone. */
#define FILES_UNDO_BYTES_MAX NG_FILE_UNDO_BYTES
/* Largest JSON of an intent or a history; it contains paths. */
#define FILES_JSON_MAX ((size_t)32 * 1024 * 1024)
/* Longest reply that an intent keeps for its idempotency key. */
#define FILES_REPLY_MAX ((size_t)4 * 1024 * 1024)
#define FILES_HISTORY "file_history"
#define FILES_INTENTS "file_intents"
#define FILES_INTENT_SPACE "shared"
/* The same with shared documents; the gateway's id follows: see files_intent_space(). */
#define FILES_INTENT_SPACE_OF "~:files:"

/* Result of a step that continues later; the caller must not touch the op any more. */
#define FILES_WAITING 2

/* ---- undo history: files_history.c */

enum file_change {
    FILE_CHANGE_EDIT = 1,
    FILE_CHANGE_CREATE = 2,
    FILE_CHANGE_DELETE = 3,
    FILE_CHANGE_MOVE = 4,
    FILE_CHANGE_UNDO_EDIT = 5,
    FILE_CHANGE_UNDO_CREATE = 6,
    FILE_CHANGE_UNDO_MOVE = 7,
    FILE_CHANGE_UNDO_DELETE = 8
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
    struct ng_str former; /* NG_UNDO_MOVE; in the history of an inode: the name of the edit */
    uint32_t mode;        /* NG_UNDO_DELETE: permission bits */
    uint64_t names;       /* NG_UNDO_DELETE: names that the file had; 0: one */
    struct ng_str agent;  /* made the change; absent in steps of earlier versions */
    int64_t time_ms;
    /* Of a change in a group: the path that the move led to. Its own step lists the files that
     * changed with it, by their paths after the move. */
    struct ng_str group;
    const struct ng_value *files; /* as it was read, or NULL */
    const struct ng_str *listed;  /* to be printed, if `files` is NULL */
    size_t listed_count;
};

struct file_history {
    size_t count; /* oldest first */
    struct file_undo items[NG_FILE_UNDO_MAX];
};

struct file_record;
struct file_group;

int files_history_read(struct call *call, const struct ng_doc *doc, struct file_history *ret);
int files_history_write(struct call *call, const struct file_history *history,
                        struct ng_draft *next);
/* Is this change's step the last one? */
bool files_history_on_top(const struct file_history *history, struct ng_str op);
/* Did the last step remove the file of this name? An undo brings it back, once a newer file of
 * the name is away again. */
bool files_history_has_removal(const struct file_history *history);
/* Removes the last step, if it is that of the change `op`. */
void files_history_pop(struct file_history *history, struct ng_str op);
/* The last edit of the inode, if it was made under another name than that with `history`; else
 * NULL. now: the hash of the file; inode: the history of its inode, NULL: none. */
const struct file_undo *files_history_elsewhere(const struct file_history *history,
                                                const struct file_history *inode,
                                                const char *now);
/* Adds the step and drops the oldest ones beyond the limits. */
void files_history_push(struct file_history *history, const struct file_undo *undo);
/* Change functions of a completion; user: the record. The history of the file; of its inode,
 * with the edits under all its names and without texts; the history that a move takes from the
 * source path, then stores under the destination. */
ng_change_fn files_history_fn;
ng_change_fn files_inode_fn;
ng_change_fn files_history_from_fn;
ng_change_fn files_history_to_fn;
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
/* True for a step that belongs to a group. */
static inline bool files_undo_is_group(const struct file_undo *step)
{
    return step->group.len > 0 || step->files != NULL;
}

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
    struct ng_str op;                   /* id of this change: 16 hex digits */
    struct ng_str intents;              /* the space of its intent */
    struct ng_str agent, tool;          /* of the change, for its events; absent in intents of
                                           earlier versions */
    struct ng_str run, key_id, request; /* the same; each may be absent */
    enum file_change kind;
    struct ng_str real, space;          /* the file; the source of a move */
    struct ng_str to, to_space;         /* the destination of a move */
    struct ng_str copied, copied_space; /* of a copy: its source, for its version */
    struct ng_str root, to_root;        /* the roots' real paths */
    char before[FILES_HASH_SIZE];
    char after[FILES_HASH_SIZE];
    char mark[FILES_MARK_SIZE];   /* of a move: files_mark() of the source, "" if unknown */
    char inode[FILES_INODE_SIZE]; /* files_inode(): the file may have several names; or "" */
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
    struct file_history *inode_history; /* read before `peek`; NULL: it is not wanted */
    struct file_group *group;           /* of a move: what changes with it; NULL: nothing */
    const struct file_record *move; /* of a file of a group: its intent is that of this one */
    struct file_versions versions;  /* those that the change adds; zeros: none */
    struct ng_str note; /* members for the data of its event, as JSON; or {NULL, 0} */
};

/* A file of a group. */
struct file_group_item {
    /* Kind: EDIT or UNDO_EDIT; for a file inside a moved folder MOVE or UNDO_MOVE. `undo`: the
     * splice back to the content before, and the step that is added; of an undo the op is that
     * of the step it removes. Without an op the history only moves along. */
    struct file_record record;
    bool saves;                 /* its content changes */
    bool is_self;               /* the moved file itself */
    struct ng_str before, next; /* contents, while the change is made */
    struct stat st;             /* of the file that has `before` */
};

struct file_group {
    size_t count;
    struct file_group_item *items;
    /* The moved file itself, if its content changes: not in `items`. */
    struct file_group_item self;
};

/* Bytes of the splices of a group in its intent. */
#define FILES_GROUP_BYTES_MAX FILES_UNDO_BYTES_MAX
/* Documents of one file of a group: two versions, their pins, two events, two histories. */
#define FILES_GROUP_DOCUMENTS 7
/* Bytes of contents that a moved folder takes along as versions at the new paths. */
#define FILES_GROUP_CARRY_MAX ((size_t)64 * 1024 * 1024)

/* Most documents of one transaction. An intent: history, that of the inode, intent, intent at
 * the destination of a move, version, marks. A completion: the intent, two versions,
 * their pins, two events, two histories. */
#define FILES_CHANGES_MAX (5 + FILES_MARKS_MAX)

int files_record_init(struct call *call, struct file_record *record, enum file_change kind);
bool files_record_moves(const struct file_record *record);
bool files_record_removes(const struct file_record *record);
/* The changes that commit the intent. They fail with NG_ECONFLICT and record->stale if an older
 * intent of the file, or of the destination of a move, is unfinished. */
size_t files_intent_changes(struct file_record *record, struct ng_change *changes);
size_t files_intent_drop(struct file_record *record, struct ng_change *changes);
/* Event, history and the removal of the intent. */
size_t files_completion_changes(struct file_record *record, struct ng_change *changes);
/* Events and history alone, for a file of a group. */
size_t files_effect_changes(struct file_record *record, struct ng_change *changes);
/* Is the document of this change? */
bool files_same_op(struct call *call, const struct ng_doc *present, struct ng_str op);
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
/* The same of the file `real`, with its lock. *ret_busy: a call, or another gateway, changes
 * the file just now; nothing was done. */
int files_recover_one(struct files *files, struct call *call, struct ng_str space,
                      struct ng_str real, bool *ret_busy);
/* One file of an intent: removes temporary files, and restores a torn one. *ret_done: it has
 * the new content. */
int files_recover_place(struct files *files, struct call *call,
                        const struct file_record *record, bool *ret_done);
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

/* The files that change with a move. */
struct file_grouping {
    struct ng_str *paths; /* files whose content changes */
    size_t path_count;
    struct file_undo step; /* of an undo: the step of the move */
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
    struct ng_str *lock_names; /* real paths, sorted; lock_pair, or of a group */
    struct ng_str lock_pair[2];
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
    mode_t mode;     /* without keep_mode: permission bits and S_IFREG; 0: those of the umask */
    struct ng_file_edit edit;
    struct ng_file_transfer transfer;
    struct ng_file_undo undo;
    struct ng_str undo_former;      /* undo of a move: the former path, to be locked, too */
    bool undo_load;                 /* undo: read the content */
    bool relock;                    /* undo: start again with undo_former or undo_load */
    struct file_grouping *grouping; /* NULL: the move has no group */
    /* Its thread waits for the change; never FILES_WAITING. NULL: the answer of the call does.
     */
    struct files_waited *waited;
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
/* A name was not changed: back to INTENDED where the system has refused it. */
int files_fail_rename(struct file_op *op, int error, const char *what,
                      const struct file_place *place);
/* Removes the folder at `place`, which is empty; or makes one. */
int files_remove_folder(struct file_op *op, enum file_saved *ret);
int files_make_folder(struct file_op *op, enum file_saved *ret);
/* Removes the file at `place`. */
int files_remove(struct file_op *op, struct file_place *place, enum file_saved *ret);
/* From op->place to op->target: files_transfer.c. */
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

/* ---- contents of a change: files_kept.c */

/* Hashes op->next, whose first `same` bytes are those of the file as it was read. */
int files_hash_next(struct file_op *op, size_t same);
/* The op has put op->next in place of its file. */
void files_keep_saved(struct files *files, const struct file_op *op);

/* ---- moves with their groups: files_group.c, files_group_save.c, files_group_undo.c */

/* ... files_group.c */

/* True for a path inside the folder. */
bool files_is_below(struct ng_str path, struct ng_str folder);
/* The names of a group's locks, sorted, each once: source, destination, files in a moved
 * folder, the paths of op->grouping. */
int files_group_locks(struct file_op *op, const struct file_place *from,
                      const struct file_place *to);
/* *ret_same: op->lock_names are still these names. */
int files_group_is_locked(struct file_op *op, bool *ret_same);
/* *ret: room for `count` paths. */
int files_grouping_new(struct call *call, size_t count, struct file_grouping **ret);
/* An empty group; of a moved folder with an item of the kind `inside` for each file. */
int files_group_start(struct file_op *op, enum file_change inside);
int files_group_add(struct file_op *op, struct ng_str real, enum file_change kind,
                    struct file_group_item **ret);
struct file_group_item *files_group_find(struct file_group *group, struct ng_str real);
/* Reads a file whose content is to change. The place is closed again. */
int files_group_read(struct file_op *op, struct ng_str real, uint64_t max_bytes,
                     struct file_place *ret_place, struct ng_file *ret_file,
                     char ret_hash[FILES_HASH_SIZE]);
/* Checks the size of the splices; the move's undo step lists the files. */
int files_group_end(struct file_op *op);
/* Reads the files with their locks held, runs the edits, and sets op->record.group. *ret_again:
 * another program has saved the moved file since it was read. */
int files_group_plan(struct file_op *op, bool *ret_again);
/* The moved file's own record, from that of the move. */
void files_group_self(struct file_group *group, const struct file_record *record);

/* ... files_group_save.c */

/* Saves the contents, then renames. After a failure the contents are those before, or the stage
 * is SAVED. */
int files_group_save(struct file_op *op, enum file_saved *ret);
/* Events and histories of the files of a group. Commits them in parts, and waits for that; the
 * last part is *ret_changes, to be committed with the completion of the move, for which there
 * is room behind it. */
int files_group_complete(struct files *files, struct call *call, struct file_record *record,
                         struct ng_change **ret_changes, size_t *ret_count);
/* *ret_done: the move took place; else the files have their contents from before. */
int files_group_recover(struct files *files, struct call *call, struct file_record *record,
                        bool *ret_done);

/* ... files_group_undo.c */

/* Is the last change of this file or folder one of a group? Then *ret_taken, and the op is made
 * to revert the group. Called at the begin of an undo. */
int files_group_undo(struct file_op *op, const struct file_place *place, bool *ret_taken);

/* ---- events: files_event.c */

/* Change functions of a completion; user: the record. At the path with the new content, and at
 * the source path of a move. */
ng_change_fn files_event_fn;
ng_change_fn files_moved_away_fn;
/* The action of the first one. */
const char *files_event_action(const struct file_record *record);

/* ---- versions: files_versions.c */

/* Plans the versions of the change in its record: before the intent what it finds, before the
 * save what it adds. What a group finds is committed by the first. */
int files_op_find_versions(struct file_op *op);
int files_op_save_versions(struct file_op *op);
/* Those that a file of a group adds. *inout_room: as in file_versions_carry(). */
int files_group_save_versions(struct files *files, struct call *call,
                              struct file_group_item *item, size_t *inout_room);
/* Recovery of a change that took place: those that it adds. */
int files_recover_versions(struct files *files, struct call *call, struct file_record *record);

/* ---- undo: undo/files_undo.c, used by files_group_undo.c */

/* Resolves op->undo_former as the destination. */
int files_undo_target(struct file_op *op);
/* NG_ECONFLICT: the step is of another agent. */
int files_undo_author(struct file_op *op, const struct file_undo *last, struct ng_str path);
/* NG_ECONFLICT: the file is not as its last step left it. */
int files_undo_changed(struct file_op *op, struct ng_str path, const char *now);
int files_undo_reply(struct file_op *op);
/* A path that an undo step names may be outside of the caller's roots: does not reveal it. */
int files_undo_hide(struct file_op *op, int rc);

#endif
