/* SPDX-License-Identifier: MIT */
/* attachments.c - names of a notebook's files other than notes. */
#include "attachments.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"
#include "tree.h"

static void add_name(struct notes_attachments *files, struct ng_str name)
{
    if (array_reserve((void **)&files->names, &files->room, files->count + 1,
                      sizeof(*files->names), NOTES_TREE_FILES_MAX) != NG_OK) {
        files->rc = NG_EINTERNAL;
        return;
    }
    struct ng_str copy = arena_copy(&files->arena, name);
    files->names[files->count++] =
        notes_fold(&files->arena, notes_utf8_clean(&files->arena, copy));
    if (files->arena.failed) {
        files->rc = NG_EINTERNAL;
    }
}

static void add_folder(void *user, int fd, struct ng_str path)
{
    struct notes_attachments *files = user;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = NULL;
    if (own >= 0) {
        dir = fdopendir(own);
    }
    (void)path;
    if (dir == NULL) {
        files->rc = NG_EFAILED;
        if (own >= 0) {
            (void)close(own);
        }
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL && files->rc == NG_OK;
         entry = readdir(dir)) {
        struct ng_str name = ng_str_of(entry->d_name);
        if (!notes_tree_is_hidden(name) && !notes_tree_is_note(name)) {
            add_name(files, name);
        }
    }
    (void)closedir(dir);
}

static void read_names(struct notes_attachments *files, int root_fd)
{
    const struct notes_tree_walk walk = {
        .root_fd = root_fd, .folder = add_folder, .user = files};
    struct notes_tree tree;
    files->read = true;
    arena_init(&files->arena, 0);
    int rc = notes_tree_read(&walk, &tree);
    if (rc == NG_OK) {
        if (tree.cut) {
            files->rc = NG_ETOOLARGE;
        }
        notes_tree_done(&tree);
    } else {
        files->rc = rc;
    }
    if (files->count > 0) {
        qsort(files->names, files->count, sizeof(*files->names), notes_compare);
    }
}

bool notes_attachments_have(struct notes_attachments *files, int root_fd, struct ng_str path)
{
    struct ng_str name = notes_file_name(path);
    if (!files->read) {
        read_names(files, root_fd);
    }
    return files->rc != NG_OK ||
           (files->count > 0 && bsearch(&name, files->names, files->count,
                                        sizeof(*files->names), notes_compare) != NULL);
}

void notes_attachments_done(struct notes_attachments *files)
{
    if (files->read) {
        arena_done(&files->arena);
    }
    free(files->names);
    *files = (struct notes_attachments){.names = NULL};
}
