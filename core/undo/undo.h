/* SPDX-License-Identifier: MIT */
/*
 * undo.h - takes back changes of many documents. See struct ng_undo_work.
 *
 * The changes are selected first, up to a number that does not move any more. Of each document
 * they form groups of consecutive revisions. The newest group comes first: what it changed is
 * taken out of what is there by a three-way merge (base: the content after the group, before:
 * the content before it). Each document is a commit of its own, under the revision that it was
 * planned for, with up to UNDO_BATCH under way; one that has moved is planned again.
 *
 * The record of an undo is durable before its first commit, and its removal is its last one. So
 * what a kill leaves is known, and can be continued. Where documents are shared the record also
 * names the process that does the undo: an undo is unfinished if its record is there and no
 * process does it any more.
 */
#ifndef NOTEGATE_CORE_UNDO_H
#define NOTEGATE_CORE_UNDO_H

#include "content.h"
#include "core/base/hash_table.h"
#include "core/base/merge/merge_conflict.h"
#include "core/store/store.h"

/* Documents of one undo, and their changes. */
#define UNDO_DOCUMENTS_MAX ((size_t)10000)
#define UNDO_CHANGES_MAX ((size_t)1000 * 1000)
/* Shared documents: the longest wait for the numbers of the newest changes. */
#define UNDO_SETTLE_MS 30000
/* Plans of a document that moves, before it is `busy`. */
#define UNDO_TRIES_MAX 10
/* The pause before those again for which the store had no place. */
#define UNDO_BUSY_PAUSE_MS 100
/* Commits under way at once. */
#define UNDO_BATCH STORE_EACH_MAX
/* Moves of one file that are followed, and that are taken back at once. */
#define UNDO_MOVES_MAX 64
/* Bytes of the contents of one document, which are in memory together. */
#define UNDO_PLAN_BYTES ((size_t)64 << 20)
/* Bytes of contents that are merged again in the change function itself, where another change
 * was faster: that function must be quick. */
#define UNDO_MERGE_BYTES ((size_t)256 << 10)
/* Bytes of the contents of one batch, beyond which it is committed. */
#define UNDO_BATCH_BYTES ((size_t)16 << 20)
/* Revisions that an event lists. */
#define UNDO_LISTED_MAX 1000
/* "undo-", 12 characters, NUL. */
#define UNDO_RUN_SIZE 18
#define UNDO_RUN_PREFIX "undo-"
#define UNDO_RECORDS "history_undos"
#define UNDO_RECORDS_SPACE "shared"

struct undo;

/* The tool's functions: ng_host. */
int undo_changes(struct call *call, const struct ng_undo_work *work, struct ng_undo_done *ret);
int undo_unfinished(struct call *call, ng_unfinished_fn *undo, void *user);
/* restore.c: see struct ng_restore. */
int undo_restore(struct call *call, const struct ng_restore *what);
/* restore_file.c: the same of a file. */
int undo_restore_file(struct call *call, const struct ng_restore *what);
/* The collection of the records, and the undos of this process. */
int undo_open(struct call *call);
void undo_close(struct gateway *gateway);
/* Logs the undos that were cut off. */
void undo_tell(struct call *call);

/* ---- for the files of this folder ---- */

/* A document with its selected changes. Of a file: those of one stay at a path, which may have
 * begun with a move. */
struct undo_doc {
    struct hash_link link;
    struct undo_doc *next;  /* the document whose newest change is older */
    struct undo_doc *later; /* the stay at the same path after this one */
    struct undo_doc
        *older;          /* the stay that ended with this move: both are taken back at once */
    struct ng_key key;   /* of its revisions */
    struct ng_key shown; /* as answers name it: a file by the collection of its change */
    const struct ng_collection *collection; /* NULL: a file */
    uint64_t *revisions;                    /* selected, newest first; ascending once sorted */
    size_t count, room;
    uint64_t first_seq, last_seq; /* of the oldest and the newest selected change */
    unsigned tries;
    bool is_foreign;     /* a change of another agent is among them */
    bool is_file;        /* the revisions are versions of a file */
    bool is_folder;      /* a folder that was moved, which its files are moved back from */
    bool is_out;         /* not in the list: done, or taken back with another one */
    const char *refused; /* the reason why it is not taken back; NULL: none */
    /* The move that the stay began with, if it is selected. */
    uint64_t moved_seq;       /* of the change; 0: none */
    uint64_t moved_at;        /* the version that it came with; 0: none, no content was known */
    struct ng_str moved_from; /* the path that it came from */
    struct ng_str moved_space;
    uint64_t moved_version; /* its version there; 0: the version at the new place tells it */
    struct ng_str across;   /* id of a move from another space; else {NULL, 0} */
    struct ng_str folder;   /* it moved with this folder, now; {NULL, 0}: by itself */
};

struct undo_moved;
struct undo_file_change;

/* A file that a folder took along in its move, at its new place. */
struct undo_carried {
    struct undo_carried *next;
    struct ng_str path, folder;
};

/* The event of a move between spaces: in the space that the file left, or in the other one. */
struct undo_across {
    struct undo_across *next;
    struct ng_str id;
    struct ng_key key; /* of the versions of the file there */
    struct ng_str collection;
    uint64_t version;
    bool is_source, is_foreign;
};

struct undo {
    struct call *call;
    const struct ng_undo_work *work;
    struct ng_trail what;
    const uint64_t *changes; /* as in the work, in any order */
    size_t change_count;
    struct hash_table table; /* the oldest stay of each file, and the other documents */
    struct undo_doc *first, **last;
    size_t doc_count;
    struct hash_table done; /* those that an earlier part of this undo has taken back */
    struct ng_str agents[NG_IN_MAX];
    size_t agent_count;
    size_t change_total;
    char run[UNDO_RUN_SIZE];
    struct ng_str parent_run;
    struct undo_moved *moved, **last_moved; /* of a preview, in the order of the plans */
    struct undo_across *across;
    struct undo_carried *carried; /* all selected ones */
    struct undo_carried *left;    /* those that this undo has moved back */
    bool recorded;                /* its record is stored */
    bool is_running;
    struct undo *next_running; /* of undo_running.c */
    struct ng_undo_done result;
};

/* Consecutive revisions: the content that they led to, and the one before them. */
struct undo_group {
    struct content base, before;
};

/* In a preview: a file that would be moved back, for the plans of older changes. Memory of the
 * undo's call. */
struct undo_moved {
    struct undo_moved *next;
    struct ng_str from, to; /* its path now, and then */
    struct ng_str text;     /* its content then */
};

/* A planned file. Texts are memory of the plan's call. */
struct undo_file {
    struct ng_str path;   /* of the file now */
    struct content there; /* its content now */
    struct ng_str hash;   /* of that; {NULL, 0}: there is nothing */
    struct ng_str back; /* it moves back, or comes back, to here; {NULL, 0}: it does not move */
    uint32_t mode;      /* of a file that comes back; 0: not known */
    const struct undo_moved *planned; /* of a preview; NULL: what is there is on the disk */
    struct ng_str away; /* id of its move to another space; {NULL, 0}: it is in this one */
    bool has_left;      /* its path since, and may have come back */
};

/* A planned document. */
struct undo_plan {
    struct undo *undo;
    struct undo_doc *doc;
    struct undo_doc *part; /* the stay whose contents are read */
    struct call *call;     /* of its own, holds its memory and makes the change */
    uint64_t present;      /* newest revision; 0: none */
    enum ng_undo_result result;
    struct content next;
    const struct ng_value *last; /* see struct ng_content */
    struct ng_str conflict;      /* JSON */
    struct undo_group *groups;   /* the newest first */
    size_t group_count;
    size_t bytes; /* of all these contents */
    uint64_t lines_added, lines_removed;
    struct buf text;        /* the merged text */
    uint64_t made;          /* revision */
    bool moved;             /* another change was faster */
    struct undo_file *file; /* of a file; else NULL */
    const char *collection; /* of the event of a file */
};

/* undo_select.c: the documents, newest change first, without those that an earlier part has
 * done. NG_ETOOLARGE, or the store's error. */
int undo_select(struct undo *undo);
/* Are the documents of all changes of its runs selected, also of those that its caller may not
 * see, and are there no newer ones? */
int undo_select_is_all(struct undo *undo, bool *ret_all);
/* For tables of struct undo_doc; key: a struct ng_key. */
hash_table_is_fn undo_doc_is;
/* undo.c. All changes so far get their numbers. */
int undo_settle(struct call *call);
/* undo_select_moves.c. Notes what the change has to do with other ones of its move. */
int undo_move_note(struct undo *undo, const struct ng_event *event,
                   const struct undo_file_change *change);
/* Adds a file to the list; without a folder it is a no-op. The folder is not copied. */
int undo_carry(struct undo *undo, struct undo_carried **list, struct ng_str path,
               struct ng_str folder);
/* After the last change: leaves out folders that their files move back, finds the places that
 * files from other spaces left, and joins the stays of files that were moved on. */
int undo_moves_end(struct undo *undo);
/* The oldest stay that is taken back with this one. */
const struct undo_doc *undo_doc_oldest(const struct undo_doc *doc);
/* The path of the file before these stays. */
struct ng_str undo_doc_home(const struct undo_doc *doc);
/* Is this move to another space one of the selected changes? */
bool undo_across_has(const struct undo *undo, struct ng_str id);
/* The next move out of a space, from `at` on, that no selected change in the other space
 * belongs to; NULL: no more. */
const struct undo_across *undo_across_lone(const struct undo *undo,
                                           const struct undo_across *at);
/* Why half of a move between spaces is not taken back. */
const char *undo_across_refusal(const struct undo *undo);
/* undo_plan.c. NG_OK: also a conflict; else the plan's call has failed. undo_plan_done() in any
 * case. */
int undo_plan(struct undo_plan *plan);
/* The same for another newest revision; reads nothing. */
int undo_plan_merge(struct undo_plan *plan, const struct ng_doc *newest);
/* Reads a content at or before a revision. *ret_kept: it could be read. */
typedef int undo_read_fn(struct undo_plan *plan, uint64_t revision, struct content *ret,
                         bool *ret_kept);
/* Reads the contents around each group of selected revisions, the newest first: after its last
 * one and before its first one. They do not change any more. */
int undo_plan_load(struct undo_plan *plan, undo_read_fn *after, undo_read_fn *before);
void undo_plan_done(struct undo_plan *plan);
/* The failure of the plan's call is that of the undo's own. Returns rc. */
int undo_plan_fail(struct undo_plan *plan, int rc);
/* Does a change of the file need the mode agent, which the caller has not? */
bool undo_needs_agent(const struct call *call, struct ng_str path);
/* A conflict without places; the text is a literal. */
void undo_plan_refuse(struct undo_plan *plan, const char *reason);
/* Newer groups have been taken out of plan->next already: the lines of a conflict with it
 * become those of the text that is there. NG_OK or NG_EINTERNAL (out of memory). */
int undo_plan_place(const struct undo_plan *plan, struct merge_conflict *conflict,
                    struct ng_str present);
/* Its conflict. */
int undo_plan_conflict(struct undo_plan *plan, const struct merge_conflict *conflict);

/* undo_taken.c: have undos taken back all selected changes already? NG_OK, or the undo's call
 * has failed. */
int undo_taken(struct undo_plan *plan, bool *ret_taken);
/* The documents that the event of an undo names as taken back: `of`, their revisions, and
 * `path` of a file. at: the one before; NULL: the first. Returns NULL: no more. */
const struct ng_value *undo_taken_next(const struct ng_value *data, const struct ng_value *at);

/* restore.c: another revision was expected than the present one. */
int undo_restore_conflict(struct call *call, const struct ng_restore *what, uint64_t present);
/* The failure of `own`, message and details, is that of `call`. Returns rc. */
int undo_fail_as(struct call *call, struct call *own, int rc);

/* ---- files ---- */

/* The change in an event, and the document that it counts for. */
struct undo_file_change {
    struct ng_key key;
    uint64_t version; /* of a file, 0: it has none; else the revision */
    bool is_file;
    bool is_across;       /* of a move of a folder between spaces */
    bool is_source;       /* the event in the space that the file left */
    bool is_folder;       /* the move of a folder itself */
    bool has_gap;         /* the content before it is not kept */
    struct ng_str across; /* id of the move of a file between spaces; as `from` */
    struct ng_str from;   /* it came with a move, from here; memory of the undo's call */
    struct ng_str to; /* it was moved away, to here, and counts by the event there; as `from` */
    struct ng_str folder; /* it moved with this folder, at its new path; as `from` */
};

/* The end of a file's stay at a path. Texts are memory of the undo's call. */
struct undo_leave {
    uint64_t seq;         /* 0: it is still there */
    struct ng_str to;     /* {NULL, 0}: to another space */
    struct ng_str across; /* then the id of that move */
    uint64_t back; /* this undo has moved a file here from another space; 0: it has not */
};

/* undo_file_version.c. */
int undo_file_change(struct undo *undo, const struct ng_event *event,
                     struct undo_file_change *ret);
/* See undo_plan_load(). The content before a file came with a move is the one that it had at
 * its old place. */
undo_read_fn undo_file_after;
undo_read_fn undo_file_before;
/* undo_file_find.c: fills plan->file with the path of the file now, and its content. */
int undo_file_find(struct undo_plan *plan);
/* Was the file that was at this path after the change moved away from there? A failure is that
 * of `call`. */
int undo_file_leave(struct undo *undo, struct call *call, const struct ng_key *key,
                    uint64_t since, struct undo_leave *ret);
/* Of a move that is taken back: the path where the folder is again that the file is moved back
 * with; {NULL, 0}: it moves by itself. */
struct ng_str undo_file_folder(const struct undo_plan *plan);
/* Removes the folders that the files have left and that are empty. */
void undo_file_drop_folders(struct undo *undo);
/* May the caller change what is at this path, which is not that of the selected change? Else
 * the plan is refused. */
int undo_file_check(struct undo_plan *plan, struct ng_str path);
/* undo_file.c. As undo_plan(). */
int undo_file_plan(struct undo_plan *plan);
/* Changes the file, and waits for it. note: for its event. plan->moved: it was changed since.
 */
int undo_file_commit(struct undo_plan *plan, struct ng_str note);
/* undo_file_merge.c: takes the group out of plan->next by a merge; the three contents differ.
 */
int undo_file_merge(struct undo_plan *plan, const struct undo_group *group);

/* undo_record.c. Reads the record of an undo that goes on into `what` and the like, and takes
 * it over. NG_ENOTFOUND: there is none; NG_EFORBIDDEN: it is of another agent; NG_ECONFLICT: it
 * runs. */
int undo_record_read(struct undo *undo, struct ng_str run);
/* Stores the record; waits for the commit. */
int undo_record_write(struct undo *undo);
/* Removes it, and the records of the undos that this one has taken back as a whole. */
int undo_record_end(struct undo *undo);
struct ng_key undo_record_key(struct ng_str run);

/* undo_running.c: the undos of this process. */
int undo_running_open(struct call *call);
/* False: another call does this run. */
bool undo_running_add(struct undo *undo);
/* A no-op unless it was added. */
void undo_running_remove(struct undo *undo);
bool undo_is_running(struct gateway *gateway, struct ng_str run);

/* undo_unfinished.c. Takes over the undo of this record, which its process does not do any
 * more; with dry_run only finds out whether that is possible. NG_ECONFLICT: it runs. */
int undo_take_over(struct undo *undo, const struct ng_value *record);
/* Others may continue it: this process has failed to. */
void undo_release(struct undo *undo);
/* Does a process do the undo of this record? */
int undo_record_runs(struct call *call, struct ng_str run, const struct ng_value *record,
                     bool *ret);

#endif
