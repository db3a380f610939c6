/* SPDX-License-Identifier: MIT */
/* files.c - opening and closing the file service; its roots and the callers that see them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "files_state.h"

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
        .name = NG_FILE_VERSIONS,
        .flags = NG_COLLECTION_QUIET,
        .field_size = sizeof(struct ng_field),
    },
    {
        .name = FILE_VERSION_PINS,
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
    lock_take(&files->roots_lock);
    struct file_roots *roots = files->roots;
    atomic_fetch_add(&roots->refs, 1);
    lock_release(&files->roots_lock);
    return roots;
}

void files_roots_unref(struct file_roots *roots)
{
    if (roots == NULL || atomic_fetch_sub(&roots->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < roots->count; i++) {
        files_root_done(&roots->items[i]);
    }
    files_holes_unref(roots->holes);
    free(roots->items);
    free(roots);
}

struct file_roots *files_roots_new(struct call *call, size_t room, struct file_holes *holes)
{
    struct file_roots *roots = alloc_zeroed(1, sizeof(*roots));
    struct file_root *items = alloc_zeroed(room + 1, sizeof(*items));
    if (roots == NULL || items == NULL) {
        free(roots);
        free(items);
        (void)call_no_memory(call);
        return NULL;
    }
    roots->items = items;
    roots->holes = files_holes_ref(holes);
    atomic_init(&roots->refs, 1);
    return roots;
}

void files_roots_publish(struct files *files, const struct file_roots *expected,
                         struct file_roots *fresh)
{
    struct file_roots *out = fresh;
    lock_take(&files->roots_lock);
    if (expected == NULL || files->roots == expected) {
        out = files->roots;
        files->roots = fresh;
    }
    lock_release(&files->roots_lock);
    files_roots_unref(out);
}

/* The configured roots and, where they can be opened, the plugins' folders. */
static int files_open_roots(struct files *files, struct call *call, const struct ng_str *texts,
                            size_t count, struct file_holes *holes, struct file_roots **ret)
{
    size_t folder_count = files->folder_count;
    if (count > FILES_ROOTS_MAX) {
        return call_fail(call, NG_EINVAL, "%zu roots are configured, at most %d are possible.",
                         count, FILES_ROOTS_MAX);
    }
    struct file_roots *roots = files_roots_new(call, count + folder_count, holes);
    if (roots == NULL) {
        return NG_EINTERNAL;
    }
    struct file_root *items = roots->items;
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        roots->count = i + 1;
        items[i].fd = -1;
        rc = files_open_root(call, holes, texts[i], NULL, &items[i]);
        if (rc == NG_OK) {
            rc = files_absolute_root(call, &items[i]);
        }
    }
    for (size_t i = 0; i < folder_count && rc == NG_OK; i++) {
        struct file_root *item = &items[roots->count];
        roots->count++;
        item->fd = -1;
        rc = files_open_root(call, holes, ng_str_of(files->folders[i].text),
                             files->folders[i].owner, item);
        if (rc == NG_ENOTFOUND) {
            /* The folder was removed: its files are unreachable until it exists again. */
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

/* The present roots and one more folder. */
static int files_with_folder(struct files *files, struct call *call, struct ng_str folder,
                             const struct file_roots *old, struct file_roots **ret)
{
    const struct plugin *owner = call_plugin(call);
    struct ng_str *texts = arena_alloc(&call->arena, (old->count + 1) * sizeof(*texts));
    size_t count = 0;
    for (size_t i = 0; texts != NULL && i < old->count; i++) {
        const struct file_root *root = &old->items[i];
        if (root->owner == NULL) {
            texts[count++] = arena_printf(&call->arena, "%s:%s", root->space, root->path);
        }
    }
    struct file_folder *folders = alloc_zeroed(files->folder_count + 1, sizeof(*folders));
    char *text = str_dup(folder);
    if (texts == NULL || folders == NULL || text == NULL) {
        free(folders);
        free(text);
        return call_no_memory(call);
    }
    if (files->folder_count > 0) {
        memcpy(folders, files->folders, files->folder_count * sizeof(*folders));
    }
    folders[files->folder_count] = (struct file_folder){text, owner};
    free(files->folders);
    files->folders = folders;
    files->folder_count++;
    return files_open_roots(files, call, texts, count, old->holes, ret);
}

/* Recovers now, or leaves it to files_recover_rest() if the database is away. */
static int files_recover_or_defer(struct files *files, struct call *call)
{
    int rc = files_recover_all(files, call);
    if (store_is_shared(files->store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call);
        atomic_store(&files->unrecovered, true);
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
        return call_fail(call, NG_EINTERNAL, "A folder must be added by a plugin.");
    }
    struct file_roots *old = files_roots_ref(files);
    int rc = files_open_root(call, old->holes, folder, owner, &probe);
    files_root_done(&probe);
    if (rc == NG_OK && files->folder_count == FILES_ROOTS_MAX) {
        rc = call_fail(call, NG_EINVAL, "More than %d folders are added to the roots.",
                       FILES_ROOTS_MAX);
    }
    if (rc == NG_OK) {
        rc = files_with_folder(files, call, folder, old, &fresh);
    }
    files_roots_unref(old);
    if (rc == NG_OK) {
        files_roots_publish(files, NULL, fresh);
        rc = files_recover_or_defer(files, call);
    }
    return rc;
}

bool files_has_space(struct files *files, struct ng_str space)
{
    struct file_roots *roots = files_roots_ref(files);
    bool found = false;
    for (size_t i = 0; i < roots->count && !found; i++) {
        found = str_is(space, roots->items[i].space);
    }
    files_roots_unref(roots);
    return found;
}

/* ---- for the upkeep of the store ---- */

static bool files_pinned(void *user, const struct ng_key *key, uint64_t revision)
{
    const struct files *files = user;
    return str_is(key->collection, NG_FILE_VERSIONS) &&
           store_pins_have(&files->pins, key, revision);
}

static int files_load_pins(void *user, struct call *call)
{
    struct files *files = user;
    return file_version_pins_load(files->store, call, &files->pins);
}

int files_open(struct call *call, struct store *store, const struct ng_str *roots, size_t count,
               const struct files_own *own, struct files **ret)
{
    struct file_holes *holes = NULL;
    struct files *files = alloc_zeroed(1, sizeof(*files));
    if (files == NULL) {
        return call_no_memory(call);
    }
    files->store = store;
    lock_init(&files->roots_lock, LOCK_FILES_ROOTS);
    lock_init(&files->locks_lock, LOCK_FILES_LOCKS);
    files_kept_init(&files->kept);
    int rc = NG_OK;
    for (size_t i = 0; i < NG_COUNT(files_collections) && rc == NG_OK; i++) {
        rc = store_declare(store, call, &files_collections[i]);
    }
    if (rc == NG_OK) {
        rc = files_holes_new(call, own, &holes);
    }
    if (rc == NG_OK) {
        rc = files_open_roots(files, call, roots, count, holes, &files->roots);
    }
    files_holes_unref(holes);
    if (rc == NG_OK) {
        rc = files_recover_or_defer(files, call);
    }
    if (rc != NG_OK) {
        files_close(files);
        return rc;
    }
    const struct store_pinner pinner = {files_load_pins, files_pinned, files};
    store_pin_revisions(store, &pinner);
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
    lock_done(&files->roots_lock);
    lock_done(&files->locks_lock);
    files_kept_done(&files->kept);
    store_pins_done(&files->pins);
    free(files);
}

int files_set_roots(struct files *files, struct call *call, const struct ng_str *roots,
                    size_t count, const struct files_own *own)
{
    struct file_holes *holes = NULL;
    struct file_roots *fresh = NULL;
    int rc = files_holes_new(call, own, &holes);
    if (rc == NG_OK) {
        rc = files_open_roots(files, call, roots, count, holes, &fresh);
    }
    files_holes_unref(holes);
    if (rc == NG_OK) {
        files_roots_publish(files, NULL, fresh);
    }
    return rc;
}

bool files_root_counts(struct call *call, const struct file_root *root)
{
    return root->owner == NULL || root->owner == call_plugin(call) ||
           (call->options & CALL_ALL_FOLDERS) != 0 || !files_root_visible(call, root);
}

bool files_root_visible(struct call *call, const struct file_root *root)
{
    const struct ng_caller *caller = call->pub.caller;
    return caller == NULL || caller->all_spaces ||
           call_has_space(caller, ng_str_of(root->space));
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

void files_each_disk(struct files *files, const char *data_dir,
                     void (*each)(void *user, const char *path), void *user)
{
    struct stat own;
    struct file_roots *roots = files_roots_ref(files);
    bool known = stat(data_dir, &own) == 0;
    for (size_t i = 0; i < roots->count; i++) {
        const struct file_root *root = &roots->items[i];
        dev_t disk = root->identity.dev;
        bool is_new = root->fd >= 0 && !(known && disk == own.st_dev);
        for (size_t j = 0; j < i && is_new; j++) {
            is_new = roots->items[j].identity.dev != disk;
        }
        if (is_new) {
            each(user, root->real);
        }
    }
    files_roots_unref(roots);
}

void files_each_gone(struct files *files, void (*each)(void *user, const char *path),
                     void *user)
{
    struct file_roots *roots = files_roots_ref(files);
    for (size_t i = 0; i < roots->count; i++) {
        struct stat now;
        const char *path = roots->items[i].path;
        bool exists = stat(path, &now) == 0;
        bool missing = !exists && (errno == ENOENT || errno == ENOTDIR);
        if (missing || (exists && !S_ISDIR(now.st_mode))) {
            each(user, path);
        }
    }
    files_roots_unref(roots);
}
