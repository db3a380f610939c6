/* SPDX-License-Identifier: MIT */
/*
 * tree.h - the files of a notebook: opening below its root, walking it, watching it.
 *
 * Nothing here writes, makes or touches a file of the notebook. Links that stay inside the root
 * are followed, those that leave it are as if they were not there.
 */
#ifndef NOTEGATE_OPENNOTES_TREE_H
#define NOTEGATE_OPENNOTES_TREE_H

#include <sys/types.h>

#include "text/text.h"

/* Limits of one notebook; files beyond are left out, and the log reports it. */
#define NOTES_TREE_FILES_MAX ((size_t)2000000)
#define NOTES_TREE_DIRS_MAX ((size_t)400000)
/* Limit on folders reached through links: links to folders with links multiply. */
#define NOTES_TREE_LINKED_DIRS_MAX ((size_t)10000)

/* Attributes that show a change of a file. */
struct notes_stat {
    int64_t size;
    int64_t mtime_ns, ctime_ns;
    int64_t birth_ns; /* 0: not known */
    int64_t inode;
    int64_t device;
};

struct notes_tree_file {
    struct ng_str file; /* relative path, as its bytes are on disk */
    struct notes_stat stat;
    bool loose; /* a watch on its folder does not report its changes: a link, one of several
                   names of the same file, or a mount */
};

struct notes_tree_dir {
    struct ng_str path; /* "": the root */
    size_t parent;      /* its index; the root's is its own */
    uint64_t inode, device;
    bool linked; /* reached through a link */
};

/* The result of a walk, in its own memory. */
struct notes_tree {
    struct arena arena;
    struct notes_tree_file *files; /* sorted by the bytes of their paths */
    size_t file_count, file_cap;
    struct notes_tree_dir *dirs;
    size_t dir_count, dir_cap;
    size_t linked_dirs;
    bool cut; /* a limit was exceeded */
};

struct notes_tree_walk {
    int root_fd;
    /* Called with each folder, open, before it is read; may be NULL. */
    void (*folder)(void *user, int fd, struct ng_str path);
    bool (*stop)(void *user); /* may be NULL */
    void *user;
};

/* NG_OK, NG_ECANCELLED (stop), NG_ENOTFOUND (the root is gone), NG_EINTERNAL (no memory). */
int notes_tree_read(const struct notes_tree_walk *walk, struct notes_tree *ret_tree);
void notes_tree_done(struct notes_tree *tree);

/* Does a file of this name count as a note? */
bool notes_tree_is_note(struct ng_str name);
/* Names that begin with a dot are left out, with everything below them. */
bool notes_tree_is_hidden(struct ng_str name);

/* Opens a path below the root with openat2; a descriptor, or a negative errno. `flags` as for
 * open(2). Access times stay unchanged if the file system allows it. */
int notes_tree_open(int root_fd, const char *path, int flags);
/* Does this errno say that the system is out of descriptors or memory? Then the file may well
 * exist. */
bool notes_tree_is_busy(int error);
/* An entry of an open folder, if it is a regular file and no link; else NG_ENOTFOUND. NG_EBUSY:
 * as notes_tree_is_busy(). */
int notes_tree_stat_at(int dir_fd, const char *name, struct notes_stat *ret_stat,
                       bool *ret_loose);
/* Of an open file. */
int notes_tree_stat_of(int fd, struct notes_stat *ret_stat, bool *ret_loose);
/* The attributes of a file; NG_ENOTFOUND: missing, not a regular file, or outside. NG_EBUSY: as
 * notes_tree_is_busy(). */
int notes_tree_stat(int root_fd, const char *path, struct notes_stat *ret_stat,
                    bool *ret_loose);
/* Reads at most `max` bytes of an open file into malloc'd memory with a NUL behind. NG_OK,
 * NG_EINTERNAL (no memory), NG_EFAILED (errno). */
int notes_tree_read_fd(int fd, size_t max, struct ng_str *ret_bytes);
/* The folder at an absolute path that has no links in it; a descriptor, or a negative errno. */
int notes_tree_open_folder(const char *path);
/* The present absolute path of an open folder, malloc'd; NULL: none. */
char *notes_tree_path_of(int fd);

#endif
