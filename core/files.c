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

void files_roots_unref(struct file_roots *roots)
{
    if (roots == NULL || atomic_fetch_sub(&roots->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < roots->count; i++) {
        struct file_root *root = &roots->items[i];
        if (root->fd >= 0) {
            (void)close(root->fd);
        }
        free(root->path);
        free(root->real);
        free(root->space);
    }
    free(roots->items);
    free(roots);
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

/* "PATH" or "SPACE:/PATH". Both parts lent. */
static void files_split_root(struct ng_str text, struct ng_str *ret_space,
                             struct ng_str *ret_path)
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

static int files_open_root(struct call *call, struct ng_str text, struct file_root *root)
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
    root->space = files_copy(space);
    root->path = files_copy(path);
    if (root->space == NULL || root->path == NULL) {
        return call_fail(call, NG_EINTERNAL, "Out of memory while opening the roots.");
    }
    if (files_make_root(root->path) != 0) {
        return files_fail_os(call, errno, "make the root", path);
    }
    root->real = realpath(root->path, NULL);
    if (root->real == NULL) {
        return files_fail_os(call, errno, "open the root", path);
    }
    root->fd = open(root->real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root->fd >= 0 ? NG_OK : files_fail_os(call, errno, "open the root", path);
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

static int files_open_roots(struct call *call, const struct ng_str *texts, size_t count,
                            struct file_roots **ret)
{
    if (count > FILES_ROOTS_MAX) {
        return call_fail(call, NG_EINVAL, "%zu roots are configured, at most %d are possible.",
                         count, FILES_ROOTS_MAX);
    }
    struct file_roots *roots = alloc_zeroed(1, sizeof(*roots));
    struct file_root *items = alloc_zeroed(count + 1, sizeof(*items));
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
        rc = files_open_root(call, texts[i], &items[i]);
        if (rc == NG_OK) {
            rc = files_absolute_root(call, &items[i]);
        }
    }
    if (rc != NG_OK) {
        files_roots_unref(roots);
        return rc;
    }
    *ret = roots;
    return NG_OK;
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
        rc = files_open_roots(call, roots, count, &files->roots);
    }
    if (rc == NG_OK) {
        rc = files_settle_all(files, call);
    }
    if (store_is_shared(store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call); /* the database is away: files_settle_rest() */
        atomic_store(&files->unsettled, true);
        rc = NG_OK;
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
    (void)pthread_mutex_destroy(&files->roots_lock);
    (void)pthread_mutex_destroy(&files->locks_lock);
    free(files);
}

int files_set_roots(struct files *files, struct call *call, const struct ng_str *roots,
                    size_t count)
{
    struct file_roots *fresh = NULL;
    int rc = files_open_roots(call, roots, count, &fresh);
    if (rc != NG_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&files->roots_lock);
    struct file_roots *old = files->roots;
    files->roots = fresh;
    (void)pthread_mutex_unlock(&files->roots_lock);
    files_roots_unref(old);
    return NG_OK;
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
        if (files_root_visible(call, &roots->items[i])) {
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
