/* SPDX-License-Identifier: MIT */
/* notebook_find.c - notebooks without registration: folders with .opennotes.json below the
 * roots. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text_choice.h"
#include "notebook_state.h"

struct search {
    struct ng_call *call;
    struct notes_folders *found;
    struct notes_folders folders; /* folders to scan, relative to the root */
    struct ng_str root;
    bool one;         /* stop at the first notebook */
    int64_t until_ms; /* 0: no limit */
};

static int add_path(struct notes_folders *folders, struct ng_call *call, struct ng_str path)
{
    if (folders->count == folders->cap) {
        size_t cap = folders->cap > 0 ? folders->cap * 2 : 32;
        struct ng_str *items = ng_alloc(call, cap * sizeof(*items));
        if (items == NULL) {
            return notes_fail_memory(call);
        }
        if (folders->count > 0) {
            memcpy(items, folders->items, folders->count * sizeof(*items));
        }
        folders->items = items;
        folders->cap = cap;
    }
    folders->items[folders->count++] = path;
    return notes_memory(call, path.data != NULL);
}

static size_t depth_of(struct ng_str path)
{
    size_t depth = path.len > 0 ? 1 : 0;
    for (size_t i = 0; i < path.len; i++) {
        depth += path.data[i] == '/';
    }
    return depth;
}

static bool is_folder(int fd, const struct dirent *entry)
{
    struct stat found;
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR;
    }
    return fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(found.st_mode);
}

static int add_folder(struct search *search, struct ng_str path, const char *name)
{
    if (name[0] == '.' || strcmp(name, "node_modules") == 0 ||
        depth_of(path) >= NOTES_FIND_DEPTH || search->folders.count >= NOTES_FIND_FOLDERS_MAX) {
        return NG_OK;
    }
    return add_path(&search->folders, search->call,
                    search->call->host->format(search->call, "%.*s%s%s", (int)path.len,
                                               path.data, text_if(path.len > 0, "/"), name));
}

static int found_one(struct search *search, struct ng_str path)
{
    struct ng_str whole = search->call->host->format(
        search->call, "%.*s%s%.*s", search->root.len > 1 ? (int)search->root.len : 0,
        search->root.data, text_if(path.len > 0, "/"), (int)path.len, path.data);
    for (size_t i = 0; i < search->found->count; i++) {
        if (str_equal(search->found->items[i], whole)) {
            return NG_OK; /* of nested roots */
        }
    }
    if (search->found->count >= NOTES_FIND_NOTEBOOKS_MAX) {
        return NG_OK;
    }
    return add_path(search->found, search->call, whole);
}

/* One folder: a notebook, or subfolders to scan. Folders inside a notebook are part of it. */
static int look(struct search *search, int root_fd, struct ng_str path)
{
    struct stat config;
    int fd = notes_tree_open(root_fd, path.len > 0 ? path.data : ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return NG_OK;
    }
    if (fstatat(fd, NOTES_CONFIG_NAME, &config, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(config.st_mode)) {
        (void)close(fd);
        return found_one(search, path);
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        (void)close(fd);
        return notes_fail_memory(search->call);
    }
    int rc = NG_OK;
    for (const struct dirent *entry = readdir(dir); entry != NULL && rc == NG_OK;
         entry = readdir(dir)) {
        if (is_folder(fd, entry)) {
            rc = add_folder(search, path, entry->d_name);
        }
    }
    (void)closedir(dir);
    return rc;
}

/* NG_OK: continue with the next folder. */
static int may_go_on(const struct search *search)
{
    struct ng_call *call = search->call;
    if (call->host->cancelled(call)) {
        return ng_fail(call, NG_ECANCELLED,
                       "The call was cancelled while notebooks were searched.");
    }
    if (search->until_ms != 0 && call->host->now_ms() > search->until_ms) {
        return NG_ETIMEOUT;
    }
    return NG_OK;
}

static int look_below(struct search *search, struct ng_str root)
{
    int fd = notes_tree_open_folder(root.data);
    if (fd < 0) {
        return NG_OK; /* a missing root has no notebooks */
    }
    search->root = root;
    search->folders = (struct notes_folders){.count = 0};
    int rc = add_path(&search->folders, search->call, str_make("", 0));
    size_t before = search->found->count;
    for (size_t i = 0; rc == NG_OK && i < search->folders.count; i++) {
        rc = may_go_on(search);
        if (rc == NG_OK) {
            rc = look(search, fd, search->folders.items[i]);
        }
        if (search->one && search->found->count > before) {
            break;
        }
    }
    (void)close(fd);
    return rc;
}

int notes_find_first(struct ng_call *call, struct ng_str root, int64_t until_ms,
                     struct notes_folders *ret)
{
    struct search search = {.call = call, .found = ret, .one = true, .until_ms = until_ms};
    struct ng_file file = {.size = sizeof(file)};
    if (call->host->file_stat(call, root, &file) != NG_OK || file.type != NG_FILE_DIRECTORY) {
        return NG_OK;
    }
    return look_below(&search, notes_call_copy(call, file.real));
}

int notes_find_folders(struct ng_call *call, struct notes_folders *ret)
{
    const struct ng_str *roots = NULL;
    size_t count = call->host->file_roots(call, &roots);
    struct search search = {.call = call, .found = ret};
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        struct ng_file file = {.size = sizeof(file)};
        if (call->host->file_stat(call, roots[i], &file) != NG_OK ||
            file.type != NG_FILE_DIRECTORY) {
            continue;
        }
        size_t first = ret->count;
        rc = look_below(&search, notes_call_copy(call, file.real));
        if (rc == NG_OK && ret->count > first) {
            /* Independent of the order on disk. */
            qsort(ret->items + first, ret->count - first, sizeof(*ret->items), notes_compare);
        }
    }
    return rc;
}
