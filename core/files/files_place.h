/* SPDX-License-Identifier: MIT */
/* files_place.h - roots, paths, reading and errors of the file service. Included by files_*.c
 * only, here and in core/archive. */
#ifndef NOTEGATE_CORE_FILES_PLACE_H
#define NOTEGATE_CORE_FILES_PLACE_H

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/store/store.h"
#include "files.h"

#define FILES_HASH_SIZE 33  /* 32 hex digits and a NUL; "" = there is no file */
#define FILES_MARK_SIZE 64  /* of files_mark(), with its NUL */
#define FILES_INODE_SIZE 40 /* of files_inode(), with its NUL */
#define FILES_TEMP_PREFIX ".notegate-"
#define FILES_TEMP_WRITING ".new"   /* suffix while it is written */
#define FILES_TEMP_COMPLETE ".tmp"  /* suffix once it is durable */
#define FILES_TEMP_OLD ".old"       /* suffix of the old content, while a file is overwritten */
#define FILES_BLOCK ((size_t)65536) /* bytes of one read */
#define FILES_PATH_MAX 4096         /* the kernel's own limit */
/* Contents of files kept in memory: of one file, of all, and their number. A smaller file is
 * hashed in about the time that a look-up takes. */
#define FILES_KEPT_LEAST ((size_t)64 * 1024)
#define FILES_KEPT_LARGEST ((size_t)4 * 1024 * 1024)
#define FILES_KEPT_BYTES ((size_t)16 * 1024 * 1024)
#define FILES_KEPT_MAX 64
/* Bytes between two states of the hash of a kept content, and their number. */
#define FILES_MARK_BYTES ((size_t)128 * 1024)
#define FILES_MARKS (FILES_KEPT_LARGEST / FILES_MARK_BYTES)
#define FILES_LOCK_BUCKETS 256

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
enum file_hole_kind {
    FILE_HOLE_NONE = 0,
    FILE_HOLE_OWN,
    FILE_HOLE_UNKNOWN /* no descriptor or memory was left for comparing */
};

/* Is `name` in `dir` ("": `dir` itself), with this stat, a file of the gateway under any name?
 * The plugin's own folder in the data directory is none for `plugin`. */
enum file_hole_kind files_find_hole(const struct file_holes *holes, const struct plugin *plugin,
                                    int dir, const char *name, const struct stat *st);
/* Also true if it is unknown. */
static inline bool files_is_hole(const struct file_holes *holes, const struct plugin *plugin,
                                 int dir, const char *name, const struct stat *st)
{
    return files_find_hole(holes, plugin, dir, name, st) != FILE_HOLE_NONE;
}
/* NG_EOUTSIDE, or NG_EBUSY if it is unknown. */
int files_fail_hole(struct call *call, struct ng_str path, enum file_hole_kind hole);
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
    struct store_pins pins; /* of versions, for the upkeep in progress */
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
/* Renames without replacing, on any file system: -1 with EEXIST. */
int files_rename_new(int from_dir, const char *from, int to_dir, const char *to);
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
/* True if the system refuses to change a name: then it did not. */
bool files_is_refusal(int error);
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
/* The id of the history that all names of the file share. */
void files_inode(const struct stat *st, char inode[FILES_INODE_SIZE]);
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

#endif
