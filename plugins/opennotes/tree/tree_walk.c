/* SPDX-License-Identifier: MIT */
/* tree_walk.c - finds the notes of a notebook: folder by folder, without recursion. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "tree.h"

static struct ng_str join(struct arena *arena, struct ng_str folder, struct ng_str name)
{
    size_t len = folder.len + (folder.len > 0) + name.len;
    char *path = arena_zalloc(arena, len + 1);
    if (path == NULL) {
        return str_make(NULL, 0);
    }
    if (folder.len > 0) {
        memcpy(path, folder.data, folder.len);
        path[folder.len] = '/';
    }
    memcpy(path + len - name.len, name.data, name.len);
    return str_make(path, len);
}

static int add_dir(struct notes_tree *tree, struct notes_tree_dir dir)
{
    if (tree->dir_count >= NOTES_TREE_DIRS_MAX ||
        (dir.linked && tree->linked_dirs >= NOTES_TREE_LINKED_DIRS_MAX)) {
        tree->cut = true;
        return NG_OK;
    }
    if (array_reserve((void **)&tree->dirs, &tree->dir_cap, tree->dir_count + 1,
                      sizeof(*tree->dirs), NOTES_TREE_DIRS_MAX) != NG_OK) {
        return NG_EINTERNAL;
    }
    tree->dirs[tree->dir_count++] = dir;
    tree->linked_dirs += dir.linked;
    return NG_OK;
}

static int add_file(struct notes_tree *tree, const struct notes_tree_file *file)
{
    if (tree->file_count >= NOTES_TREE_FILES_MAX) {
        tree->cut = true;
        return NG_OK;
    }
    if (array_reserve((void **)&tree->files, &tree->file_cap, tree->file_count + 1,
                      sizeof(*tree->files), NOTES_TREE_FILES_MAX) != NG_OK) {
        return NG_EINTERNAL;
    }
    tree->files[tree->file_count++] = *file;
    return NG_OK;
}

/* One entry of folder number `at`. */
static int add_entry(const struct notes_tree_walk *walk, struct notes_tree *tree, size_t at,
                     int dir_fd, const struct dirent *entry)
{
    struct ng_str name = ng_str_of(entry->d_name);
    unsigned char type = entry->d_type;
    if (notes_tree_is_hidden(name) || (type == DT_REG && !notes_tree_is_note(name)) ||
        (type != DT_REG && type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN)) {
        return NG_OK;
    }
    struct ng_str path = join(&tree->arena, tree->dirs[at].path, name);
    if (path.data == NULL) {
        return NG_EINTERNAL;
    }
    if (type == DT_DIR) {
        return add_dir(tree, (struct notes_tree_dir){
                                 .path = path, .parent = at, .linked = tree->dirs[at].linked});
    }
    struct notes_tree_file file = {.file = path};
    bool note = notes_tree_is_note(name);
    int rc = note && type != DT_LNK
                 ? notes_tree_stat_at(dir_fd, entry->d_name, &file.stat, &file.loose)
                 : NG_ENOTFOUND;
    if (rc == NG_ENOTFOUND && note && type != DT_REG) {
        rc = notes_tree_stat(walk->root_fd, path.data, &file.stat, &file.loose);
    }
    if (rc != NG_ENOTFOUND) {
        if (rc != NG_OK) {
            return rc;
        }
        return add_file(tree, &file);
    }
    if (type == DT_REG) {
        return NG_OK;
    }
    int fd = notes_tree_open(walk->root_fd, path.data, O_PATH | O_DIRECTORY);
    if (fd < 0) {
        if (notes_tree_is_busy(-fd)) {
            return NG_EBUSY;
        }
        return NG_OK;
    }
    (void)close(fd);
    return add_dir(tree,
                   (struct notes_tree_dir){.path = path,
                                           .parent = at,
                                           .linked = type == DT_LNK || tree->dirs[at].linked});
}

/* Is this folder one of its own ancestors? Then a link leads in a circle. */
static bool is_circle(const struct notes_tree *tree, size_t at)
{
    const struct notes_tree_dir *dir = &tree->dirs[at];
    for (size_t up = at; up != 0;) {
        up = tree->dirs[up].parent;
        if (tree->dirs[up].inode == dir->inode && tree->dirs[up].device == dir->device) {
            return true;
        }
    }
    return false;
}

static int read_folder(const struct notes_tree_walk *walk, struct notes_tree *tree, size_t at)
{
    struct ng_str path = tree->dirs[at].path;
    int fd =
        notes_tree_open(walk->root_fd, path.len > 0 ? path.data : ".", O_RDONLY | O_DIRECTORY);
    struct stat found;
    if (fd < 0 && notes_tree_is_busy(-fd)) {
        return NG_EBUSY; /* the folder exists: without it, its notes would look deleted */
    }
    if (fd < 0 || fstat(fd, &found) != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        /* removed, or not readable */
        if (at == 0) {
            return NG_ENOTFOUND;
        }
        return NG_OK;
    }
    tree->dirs[at].inode = found.st_ino;
    tree->dirs[at].device = found.st_dev;
    if (is_circle(tree, at)) {
        (void)close(fd);
        return NG_OK;
    }
    if (walk->folder != NULL) {
        walk->folder(walk->user, fd, path);
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        (void)close(fd);
        return NG_EINTERNAL;
    }
    int rc = NG_OK;
    for (const struct dirent *entry = readdir(dir); entry != NULL && rc == NG_OK;
         entry = readdir(dir)) {
        rc = add_entry(walk, tree, at, fd, entry);
    }
    (void)closedir(dir);
    return rc;
}

static int compare_files(const void *a, const void *b)
{
    const struct notes_tree_file *first = a;
    const struct notes_tree_file *second = b;
    return str_compare(first->file, second->file);
}

int notes_tree_read(const struct notes_tree_walk *walk, struct notes_tree *ret_tree)
{
    struct notes_tree *tree = ret_tree;
    struct stat root;
    memset(tree, 0, sizeof(*tree));
    arena_init(&tree->arena, 0);
    /* A folder that was removed while it was open still opens, and is empty. */
    int rc = fstat(walk->root_fd, &root) == 0 && root.st_nlink > 0 ? NG_OK : NG_ENOTFOUND;
    if (rc == NG_OK) {
        rc = add_dir(tree, (struct notes_tree_dir){.path = str_make("", 0)});
    }
    for (size_t at = 0; at < tree->dir_count && rc == NG_OK; at++) {
        if (walk->stop != NULL && walk->stop(walk->user)) {
            rc = NG_ECANCELLED;
        } else {
            rc = read_folder(walk, tree, at);
        }
    }
    if (rc != NG_OK) {
        notes_tree_done(tree);
        return rc;
    }
    if (tree->file_count > 1) {
        qsort(tree->files, tree->file_count, sizeof(*tree->files), compare_files);
    }
    return NG_OK;
}

void notes_tree_done(struct notes_tree *tree)
{
    arena_done(&tree->arena);
    free(tree->files);
    free(tree->dirs);
    memset(tree, 0, sizeof(*tree));
}
