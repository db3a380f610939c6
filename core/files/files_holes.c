/* SPDX-License-Identifier: MIT */
/* files_holes.c - keeps files of the gateway itself out of the roots: its data directory,
 * configuration file and TLS key. They are compared by device and inode, so that symbolic
 * links, hard links and bind mounts do not bypass the check. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/module/registry.h"
#include "files_state.h"

/* Folder of the data directory that is the default root. */
#define HOLES_OPEN_FOLDER "files"
#define HOLES_DEPTH 16 /* levels of the data directory that are searched */

/* ---- the protected files */

/* The absolute path of a file that may not exist yet: the real path of its folder and its name.
 * NULL: out of memory, or no such folder. */
static char *absolute_file(struct ng_str path)
{
    char *whole = str_dup(path);
    char *name = str_dup(path);
    char *folder = NULL;
    if (whole != NULL && name != NULL) {
        folder = realpath(dirname(whole), NULL);
    }
    char *ret = NULL;
    if (folder != NULL) {
        const char *leaf = basename(name);
        size_t size = strlen(folder) + strlen(leaf) + 2;
        ret = alloc_bytes(size);
        if (ret != NULL) {
            const char *separator = strcmp(folder, "/") == 0 ? "" : "/";
            (void)snprintf(ret, size, "%s%s%s", folder, separator, leaf);
        }
    }
    free(folder);
    free(whole);
    free(name);
    return ret;
}

void files_holes_unref(struct file_holes *holes)
{
    if (holes == NULL || atomic_fetch_sub(&holes->refs, 1) != 1) {
        return;
    }
    files_close_fd(&holes->fd);
    free(holes->data_dir);
    for (size_t i = 0; i < FILES_HOLES_FILES; i++) {
        free(holes->files[i].path);
    }
    free(holes);
}

struct file_holes *files_holes_ref(struct file_holes *holes)
{
    atomic_fetch_add(&holes->refs, 1);
    return holes;
}

int files_holes_new(struct call *call, const struct files_own *own, struct file_holes **ret)
{
    struct file_holes *holes = alloc_zeroed(1, sizeof(*holes));
    if (holes == NULL) {
        return call_no_memory(call);
    }
    atomic_init(&holes->refs, 1);
    holes->fd = -1;
    holes->files[0].what = "configuration file";
    holes->files[1].what = "TLS key";
    const struct ng_str files[FILES_HOLES_FILES] = {own->config_file, own->tls_key};
    for (size_t i = 0; i < FILES_HOLES_FILES; i++) {
        if (files[i].len > 0) {
            holes->files[i].path = absolute_file(files[i]);
        }
    }
    if (own->data_dir != NULL) {
        holes->data_dir = str_dup(ng_str_of(own->data_dir));
        holes->fd = open(own->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (holes->data_dir == NULL || holes->fd < 0 ||
            !files_identify(holes->fd, "", &holes->identity)) {
            int error = ENOMEM;
            if (holes->data_dir != NULL) {
                error = errno;
            }
            files_holes_unref(holes);
            return files_fail_os(call, error, "open the data directory",
                                 ng_str_of(own->data_dir));
        }
    }
    *ret = holes;
    return NG_OK;
}

/* ---- comparing files with them */

/* Folders of the data directory that may contain roots. */
static bool is_open_folder(const char *name, const struct plugin *plugin)
{
    return strcmp(name, HOLES_OPEN_FOLDER) == 0 ||
           (plugin != NULL && strcmp(name, plugin->desc.name) == 0);
}

/* Searches a protected folder for a file or folder. Folders that this user cannot read hold no
 * secrets of this gateway. */
static enum file_hole_kind tree_has(int parent, const char *folder, struct file_identity wanted,
                                    const struct plugin *plugin, unsigned depth)
{
    int fd = openat(parent, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = files_open_stream(fd);
    if (dir == NULL) {
        bool is_short = fd >= 0 || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return is_short ? FILE_HOLE_UNKNOWN : FILE_HOLE_NONE;
    }
    enum file_hole_kind found = FILE_HOLE_NONE;
    const struct dirent *entry = NULL;
    while (found == FILE_HOLE_NONE && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        struct stat st;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (depth == HOLES_DEPTH && is_open_folder(name, plugin)) ||
            fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (files_same(files_identity(&st), wanted)) {
            found = FILE_HOLE_OWN;
        } else if (S_ISDIR(st.st_mode) && depth > 1) {
            found = tree_has(dirfd(dir), name, wanted, plugin, depth - 1);
        }
    }
    (void)closedir(dir);
    return found;
}

/* True if it may have a second name: a hard link, or the root of a mount. */
static bool may_have_alias(int dir, const char *name, const struct stat *st)
{
    struct statx found;
    if (S_ISREG(st->st_mode) && st->st_nlink > 1) {
        return true;
    }
    if (statx(dir, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, 0, &found) !=
            0 ||
        (found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0) {
        return true; /* this kernel does not report mount roots */
    }
    return (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

enum file_hole_kind files_find_hole(const struct file_holes *holes, const struct plugin *plugin,
                                    int dir, const char *name, const struct stat *st)
{
    struct file_identity wanted = files_identity(st);
    struct stat own;
    if (S_ISDIR(st->st_mode) && holes->fd >= 0 && files_same(wanted, holes->identity)) {
        return FILE_HOLE_OWN;
    }
    if (S_ISLNK(st->st_mode) || !may_have_alias(dir, name, st)) {
        return FILE_HOLE_NONE;
    }
    for (size_t i = 0; i < FILES_HOLES_FILES; i++) {
        /* stat() at each check: TLS keys are renewed while the gateway runs. */
        if (holes->files[i].path != NULL && stat(holes->files[i].path, &own) == 0 &&
            files_same(wanted, files_identity(&own))) {
            return FILE_HOLE_OWN;
        }
    }
    return holes->fd >= 0 ? tree_has(holes->fd, ".", wanted, plugin, HOLES_DEPTH)
                          : FILE_HOLE_NONE;
}

int files_fail_hole(struct call *call, struct ng_str path, enum file_hole_kind hole)
{
    if (hole == FILE_HOLE_UNKNOWN) {
        return call_fail(call, NG_EBUSY,
                         "The path %.*s cannot be compared with the gateway's own files just "
                         "now: too few file descriptors or too little memory is free. Try "
                         "again in a moment.",
                         (int)path.len, path.data);
    }
    return call_fail(
        call, NG_EOUTSIDE,
        "The path %.*s leads to the gateway's own files (its data directory, its configuration "
        "or its TLS key). No tool may read or change them. Choose another path.",
        (int)path.len, path.data);
}

/* ---- checking a root */

/* Opens the parent folder and closes `fd`. -1: there is none, or it cannot be opened. */
static int go_up(int fd, struct stat *st)
{
    struct file_identity below = files_identity(st);
    int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)close(fd);
    if (up >= 0 && (fstat(up, st) != 0 || files_same(below, files_identity(st)))) {
        files_close_fd(&up);
    }
    return up;
}

/* True if the folder at `path` is the wanted one or lies below it. */
static bool is_below(int at, const char *path, struct file_identity wanted)
{
    struct stat st;
    int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) != 0) {
        files_close_fd(&fd);
    }
    while (fd >= 0 && !files_same(files_identity(&st), wanted)) {
        fd = go_up(fd, &st);
    }
    bool found = fd >= 0;
    files_close_fd(&fd);
    return found;
}

/* True if it is one of the open folders of the data directory. */
static bool is_open_identity(const struct file_holes *holes, const struct plugin *plugin,
                             struct file_identity wanted)
{
    const char *names[] = {HOLES_OPEN_FOLDER, plugin != NULL ? plugin->desc.name : NULL};
    struct stat st;
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (names[i] != NULL && fstatat(holes->fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            files_same(files_identity(&st), wanted)) {
            return true;
        }
    }
    return false;
}

/* Walks up from the root to the first open or protected folder. */
static bool lies_in_hole(const struct file_holes *holes, const struct file_root *root)
{
    struct stat st;
    int fd = openat(root->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) != 0) {
        (void)close(fd);
        return true;
    }
    bool hole = false;
    while (fd >= 0 && !hole && !is_open_identity(holes, root->owner, files_identity(&st))) {
        hole = files_is_hole(holes, root->owner, fd, "", &st);
        if (!hole) {
            fd = go_up(fd, &st);
        }
    }
    files_close_fd(&fd);
    return hole;
}

static int refuse(struct call *call, const struct file_root *root, const char *how,
                  const char *what, const char *path)
{
    return call_fail(call, NG_EINVAL,
                     "The %s %s %s the %s %s: agents could read and change the gateway's own "
                     "files. Choose a separate folder, or move the %s.",
                     root->owner != NULL ? "folder" : "root", root->path, how, what, path,
                     what);
}

/* Checks the folder of the path and, for a link, the folder of its target. */
static bool holds_file(const struct file_root *root, const char *path)
{
    struct file_identity wanted = root->identity;
    char *real = realpath(path, NULL);
    const char *paths[] = {path, real};
    bool holds = false;
    for (size_t i = 0; i < NG_COUNT(paths) && !holds; i++) {
        char *copy = NULL;
        if (paths[i] != NULL) {
            copy = str_dup(ng_str_of(paths[i]));
        }
        holds = copy != NULL && is_below(AT_FDCWD, dirname(copy), wanted);
        free(copy);
    }
    free(real);
    return holds;
}

int files_check_root(struct call *call, const struct file_holes *holes,
                     const struct file_root *root)
{
    struct file_identity wanted = root->identity;
    if (holes->fd >= 0) {
        if (files_same(wanted, holes->identity)) {
            return refuse(call, root, "is", "data directory", holes->data_dir);
        }
        if (is_below(holes->fd, ".", wanted)) {
            return refuse(call, root, "holds", "data directory", holes->data_dir);
        }
        if (lies_in_hole(holes, root)) {
            return refuse(call, root, "lies in", "data directory", holes->data_dir);
        }
    }
    for (size_t i = 0; i < FILES_HOLES_FILES; i++) {
        const struct file_hole *file = &holes->files[i];
        if (file->path != NULL && holds_file(root, file->path)) {
            return refuse(call, root, "holds", file->what, file->path);
        }
    }
    return NG_OK;
}
