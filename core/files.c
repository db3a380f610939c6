/* SPDX-License-Identifier: MIT */
/* files.c - the file service: its life and its roots. What a root is and who sees it is decided
 * here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "files_state.h"
#include "str.h"

#define FILES_SPACE_DEFAULT "shared"
#define FILES_ROOTS_MAX 256

static const struct ng_collection files_collections[] = {
    {
        .name = FILES_EVENTS,
        .flags = NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
    {
        .name = FILES_HISTORY,
        .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
    {
        .name = FILES_INTENTS,
        .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
        .field_size = sizeof(struct ng_field),
    },
};

struct file_roots *files_roots_ref(struct files *files)
{
    (void)pthread_mutex_lock(&files->roots_lock);
    struct file_roots *roots = files->roots;
    atomic_fetch_add(&roots->refs, 1);
    (void)pthread_mutex_unlock(&files->roots_lock);
    return roots;
}

static void files_root_done(struct file_root *root)
{
    if (root->fd >= 0) {
        (void)close(root->fd);
    }
    free(root->path);
    free(root->real);
    free(root->space);
}

void files_roots_unref(struct file_roots *roots)
{
    if (roots == NULL || atomic_fetch_sub(&roots->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < roots->count; i++) {
        files_root_done(&roots->items[i]);
    }
    free(roots->items);
    free(roots);
}

/* From the next call on. Roots change on one thread at a time: at start, or in a reload. */
static void files_publish_roots(struct files *files, struct file_roots *fresh)
{
    (void)pthread_mutex_lock(&files->roots_lock);
    struct file_roots *old = files->roots;
    files->roots = fresh;
    (void)pthread_mutex_unlock(&files->roots_lock);
    files_roots_unref(old);
}

static char *files_copy(struct ng_str text)
{
    char *copy = alloc_bytes(text.len + 1);
    if (copy != NULL) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

void files_split_root(struct ng_str text, struct ng_str *ret_space, struct ng_str *ret_path)
{
    *ret_space = ng_str_of(FILES_SPACE_DEFAULT);
    *ret_path = text;
    for (size_t i = 0; i + 1 < text.len && text.data[i] != '/'; i++) {
        struct ng_str space = {text.data, i};
        if (text.data[i] == ':' && text.data[i + 1] == '/' && call_name_valid(space)) {
            *ret_space = space;
            *ret_path = str_make(text.data + i + 1, text.len - i - 1);
            return;
        }
    }
}

/* The folder and those above it, mode 0700. */
static int files_make_root(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/') {
            continue;
        }
        *at = '\0';
        int rc = mkdir(path, S_IRWXU);
        int error = errno;
        *at = '/';
        if (rc != 0 && error != EEXIST) {
            errno = error;
            return -1;
        }
    }
    return mkdir(path, S_IRWXU) == 0 || errno == EEXIST ? 0 : -1;
}

/* owner: it is a folder of this plugin, which must be there; else it is made where missing. */
static int files_open_root(struct call *call, struct ng_str text, const struct plugin *owner,
                           struct file_root *root)
{
    struct ng_str space;
    struct ng_str path;
    files_split_root(text, &space, &path);
    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.len--;
    }
    if (path.len == 0 || path.len >= FILES_PATH_MAX || memchr(path.data, '\0', path.len)) {
        return call_fail(call, NG_EINVAL,
                         "The root \"%.*s\" is not a usable path: give the path of a folder, "
                         "as PATH or SPACE:/PATH.",
                         (int)text.len, text.data);
    }
    root->fd = -1;
    root->owner = owner;
    root->space = files_copy(space);
    root->path = files_copy(path);
    if (root->space == NULL || root->path == NULL) {
        return call_fail(call, NG_EINTERNAL, "Out of memory while opening the roots.");
    }
    const char *doing = owner != NULL ? "open the folder" : "open the root";
    if (owner == NULL && files_make_root(root->path) != 0) {
        return files_fail_os(call, errno, "make the root", path);
    }
    root->real = realpath(root->path, NULL);
    if (root->real == NULL) {
        int error = errno;
        int rc = files_fail_os(call, error, doing, path);
        return error == ENOENT || error == ENOTDIR ? NG_ENOTFOUND : rc;
    }
    root->fd = open(root->real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0) {
        int error = errno;
        int rc = files_fail_os(call, error, doing, path);
        return error == ENOENT || error == ENOTDIR ? NG_ENOTFOUND : rc;
    }
    return NG_OK;
}

/* A relative root is meant from the working folder of the start; callers name it absolutely. */
static int files_absolute_root(struct call *call, struct file_root *root)
{
    if (root->path[0] == '/') {
        return NG_OK;
    }
    char *path = files_copy(ng_str_of(root->real));
    if (path == NULL) {
        return call_fail(call, NG_EINTERNAL, "Out of memory while opening the roots.");
    }
    free(root->path);
    root->path = path;
    return NG_OK;
}

/* The configured roots and, where they can be opened, the plugins' folders. */
static int files_open_roots(struct files *files, struct call *call, const struct ng_str *texts,
                            size_t count, struct file_roots **ret)
{
    size_t folder_count = files->folder_count;
    if (count > FILES_ROOTS_MAX) {
        return call_fail(call, NG_EINVAL, "%zu roots are configured, at most %d are possible.",
                         count, FILES_ROOTS_MAX);
    }
    struct file_roots *roots = alloc_zeroed(1, sizeof(*roots));
    struct file_root *items = alloc_zeroed(count + folder_count + 1, sizeof(*items));
    if (roots == NULL || items == NULL) {
        free(roots);
        free(items);
        return call_fail(call, NG_EINTERNAL, "Out of memory while opening the roots.");
    }
    roots->items = items;
    atomic_init(&roots->refs, 1);
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        roots->count = i + 1;
        items[i].fd = -1;
        rc = files_open_root(call, texts[i], NULL, &items[i]);
        if (rc == NG_OK) {
            rc = files_absolute_root(call, &items[i]);
        }
    }
    for (size_t i = 0; i < folder_count && rc == NG_OK; i++) {
        struct file_root *item = &items[roots->count];
        roots->count++;
        item->fd = -1;
        rc = files_open_root(call, ng_str_of(files->folders[i].text), files->folders[i].owner,
                             item);
        if (rc == NG_ENOTFOUND) {
            /* It was there once: its files are out of reach until it is again. */
            files_root_done(item);
            memset(item, 0, sizeof(*item));
            roots->count--;
            call_reset_result(call);
            rc = NG_OK;
        }
    }
    if (rc != NG_OK) {
        files_roots_unref(roots);
        return rc;
    }
    *ret = roots;
    return NG_OK;
}

/* A folder beside the roots that are there. */
static int files_with_folder(struct files *files, struct call *call, struct ng_str folder,
                             const struct plugin *owner, struct file_roots **ret)
{
    const struct file_roots *old = files->roots;
    struct ng_str *texts = arena_alloc(&call->arena, (old->count + 1) * sizeof(*texts));
    size_t count = 0;
    for (size_t i = 0; texts != NULL && i < old->count; i++) {
        const struct file_root *root = &old->items[i];
        if (root->owner == NULL) {
            texts[count++] = arena_printf(&call->arena, "%s:%s", root->space, root->path);
        }
    }
    struct file_folder *folders = alloc_zeroed(files->folder_count + 1, sizeof(*folders));
    char *text = files_copy(folder);
    if (texts == NULL || folders == NULL || text == NULL) {
        free(folders);
        free(text);
        return call_fail(call, NG_EINTERNAL, "Out of memory while adding a folder.");
    }
    if (files->folder_count > 0) {
        memcpy(folders, files->folders, files->folder_count * sizeof(*folders));
    }
    folders[files->folder_count] = (struct file_folder){text, owner};
    free(files->folders);
    files->folders = folders;
    files->folder_count++;
    return files_open_roots(files, call, texts, count, ret);
}

/* With the database away later: files_settle_rest(). */
static int files_settle_if_there(struct files *files, struct call *call)
{
    int rc = files_settle_all(files, call);
    if (store_is_shared(files->store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call);
        atomic_store(&files->unsettled, true);
        rc = NG_OK;
    }
    return rc;
}

int files_add_folder(struct files *files, struct call *call, struct ng_str folder)
{
    const struct plugin *owner = call_plugin(call);
    struct file_root probe = {.fd = -1};
    struct file_roots *fresh = NULL;
    if (owner == NULL) {
        return call_fail(call, NG_EINTERNAL, "A folder is added by no plugin.");
    }
    int rc = files_open_root(call, folder, owner, &probe);
    files_root_done(&probe);
    if (rc == NG_OK && files->folder_count == FILES_ROOTS_MAX) {
        rc = call_fail(call, NG_EINVAL, "More than %d folders are added to the roots.",
                       FILES_ROOTS_MAX);
    }
    if (rc == NG_OK) {
        rc = files_with_folder(files, call, folder, owner, &fresh);
    }
    if (rc == NG_OK) {
        files_publish_roots(files, fresh);
        rc = files_settle_if_there(files, call);
    }
    return rc;
}

int files_open(struct call *call, struct store *store, const struct ng_str *roots, size_t count,
               struct files **ret)
{
    struct files *files = alloc_zeroed(1, sizeof(*files));
    if (files == NULL) {
        return call_fail(call, NG_EINTERNAL, "Out of memory while opening the roots.");
    }
    files->store = store;
    (void)pthread_mutex_init(&files->roots_lock, NULL);
    (void)pthread_mutex_init(&files->locks_lock, NULL);
    int rc = NG_OK;
    for (size_t i = 0; i < NG_COUNT(files_collections) && rc == NG_OK; i++) {
        rc = store_declare(store, call, &files_collections[i]);
    }
    if (rc == NG_OK) {
        rc = files_open_roots(files, call, roots, count, &files->roots);
    }
    if (rc == NG_OK) {
        rc = files_settle_if_there(files, call);
    }
    if (rc != NG_OK) {
        files_close(files);
        return rc;
    }
    *ret = files;
    return NG_OK;
}

void files_close(struct files *files)
{
    if (files == NULL) {
        return;
    }
    files_roots_unref(files->roots);
    for (size_t i = 0; i < files->folder_count; i++) {
        free(files->folders[i].text);
    }
    free(files->folders);
    (void)pthread_mutex_destroy(&files->roots_lock);
    (void)pthread_mutex_destroy(&files->locks_lock);
    free(files);
}

int files_set_roots(struct files *files, struct call *call, const struct ng_str *roots,
                    size_t count)
{
    struct file_roots *fresh = NULL;
    int rc = files_open_roots(files, call, roots, count, &fresh);
    if (rc == NG_OK) {
        files_publish_roots(files, fresh);
    }
    return rc;
}

bool files_root_counts(struct call *call, const struct file_root *root)
{
    return root->owner == NULL || root->owner == call_plugin(call) ||
           !files_root_visible(call, root);
}

bool files_root_visible(struct call *call, const struct file_root *root)
{
    const struct ng_caller *caller = call->pub.caller;
    if (caller == NULL || caller->all_spaces) {
        return true;
    }
    for (size_t i = 0; i < caller->space_count; i++) {
        if (str_is(caller->spaces[i], root->space)) {
            return true;
        }
    }
    return false;
}

size_t files_roots(struct files *files, struct call *call, const struct ng_str **ret_roots)
{
    struct file_roots *roots = files_roots_ref(files);
    struct ng_str *names = arena_alloc(&call->arena, (roots->count + 1) * sizeof(*names));
    size_t count = 0;
    for (size_t i = 0; names != NULL && i < roots->count; i++) {
        if (roots->items[i].owner == NULL && files_root_visible(call, &roots->items[i])) {
            names[count] = arena_copy(&call->arena, ng_str_of(roots->items[i].path));
            if (names[count].data != NULL) {
                count++;
            }
        }
    }
    files_roots_unref(roots);
    *ret_roots = names;
    return count;
}
