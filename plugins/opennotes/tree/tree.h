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

/* Most of one notebook; what is beyond is left out, and the log says so. */
#define NOTES_TREE_FILES_MAX ((size_t)2000000)
#define NOTES_TREE_DIRS_MAX ((size_t)400000)
/* Folders reached through links: links to folders of links to folders multiply. */
#define NOTES_TREE_LINKED_DIRS_MAX ((size_t)10000)

/* What tells whether a file was changed. */
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
    bool loose; /* changes in it are not told by a watch on its folder: a link, one of several
                   names of the same file, or mounted there */
};

struct notes_tree_dir {
    struct ng_str path; /* "": the root */
    size_t parent;      /* its index; the root's is its own */
    uint64_t inode, device;
    bool linked; /* reached through a link */
};

/* What a walk found, in its own memory. */
struct notes_tree {
    struct arena arena;
    struct notes_tree_file *files; /* in the order of the bytes of their paths */
    size_t file_count, file_cap;
    struct notes_tree_dir *dirs;
    size_t dir_count, dir_cap;
    size_t linked_dirs;
    bool cut; /* over one of the maxima */
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
/* Names that begin with a dot are left out, and what is below them. */
bool notes_tree_is_hidden(struct ng_str name);

/* Opens what is below the root with openat2; a descriptor, or a negative errno. `flags` as for
 * open(2). Access times stay as they are where the file system lets us. */
int notes_tree_open(int root_fd, const char *path, int flags);
/* Is this errno of a system that has no descriptor or memory left? Then what was asked for may
 * well be there. */
bool notes_tree_is_busy(int error);
/* An entry of an open folder, if it is a regular file and no link; else NG_ENOTFOUND. NG_EBUSY:
 * as notes_tree_is_busy(). */
int notes_tree_stat_at(int dir_fd, const char *name, struct notes_stat *ret_stat,
                       bool *ret_loose);
/* Of an open file. */
int notes_tree_stat_of(int fd, struct notes_stat *ret_stat, bool *ret_loose);
/* The file as it is now; NG_ENOTFOUND: not there, no regular file, or outside. NG_EBUSY: as
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
