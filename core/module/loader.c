/* SPDX-License-Identifier: MIT */
/* loader.c - finds modules, refuses foreign ones by their note, maps them, and copies their
 * descriptors to today's layout (loader_check.c checks their content). */
#include "loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/files/trust.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "elf_note.h"
#include "loader_check.h"
#include "module_lint.h"

#define LOADER_PATH_MAX 4096
/* Modules in all folders. */
#define LOADER_MODULES_MAX 1024
/* Elements of one array of a descriptor, and the largest element of a newer header. */
#define LOADER_ITEMS_MAX 4096
#define LOADER_ITEM_SIZE_MAX ((size_t)64 * 1024)
#define LOADER_SUFFIX ".so"

#ifdef NOTEGATE_SANITIZED
#define LOADER_UNLOADS false /* a report at the end needs the module's symbols */
#else
#define LOADER_UNLOADS true
#endif

static const char *loader_kind_name(uint32_t kind)
{
    const struct loader_form *form = loader_form_of(kind);
    return form != NULL ? form->name : "a module of an unknown kind";
}

/* The whole path of the module into `path`. */
static int loader_find(const char *const *folders, const char *name, char *path,
                       struct buf *error)
{
    if (strchr(name, '/') != NULL) {
        int len = snprintf(path, LOADER_PATH_MAX, "%s", name);
        if (len > 0 && len < LOADER_PATH_MAX) {
            return NG_OK;
        }
        (void)buf_printf(error, "the path of a module is longer than %d bytes",
                         LOADER_PATH_MAX);
        return NG_EINVAL;
    }
    for (size_t i = 0; folders != NULL && folders[i] != NULL; i++) {
        int len = snprintf(path, LOADER_PATH_MAX, "%s/%s" LOADER_SUFFIX, folders[i], name);
        if (len > 0 && len < LOADER_PATH_MAX && access(path, F_OK) == 0) {
            return NG_OK;
        }
    }
    if (str_ends(ng_str_of(name), LOADER_SUFFIX)) {
        (void)buf_printf(error,
                         "module `%s` has no path: name a file as ./%s, and a module of this "
                         "gateway without " LOADER_SUFFIX,
                         name, name);
        return NG_ENOTFOUND;
    }
    (void)buf_printf(error, "module `%s` is not there: no %s" LOADER_SUFFIX " in ", name, name);
    for (size_t i = 0; folders != NULL && folders[i] != NULL; i++) {
        (void)buf_printf(error, "%s%s", i > 0 ? ", " : "", folders[i]);
    }
    if (folders == NULL || folders[0] == NULL) {
        (void)buf_add_c(error, "any folder (none is given)");
    }
    return NG_ENOTFOUND;
}

/* note: the module's description of itself, in its note or in its record. */
static int loader_check_numbers(const char *path, const struct elf_note *note,
                                enum ng_module_kind kind, struct buf *error)
{
    if (note->abi != NG_ABI) {
        (void)buf_printf(error,
                         "%s was built for ABI %lu; this gateway has ABI %d: build it again "
                         "with this gateway's headers",
                         path, (unsigned long)note->abi, NG_ABI);
        return NG_EINVAL;
    }
    if (note->kind != (uint32_t)kind) {
        (void)buf_printf(error, "%s is %s, not %s", path, loader_kind_name(note->kind),
                         loader_kind_name(kind));
        return NG_EINVAL;
    }
    if (note->is_old) {
        (void)buf_printf(error,
                         "%s was built with headers from before ABI 1 was settled: build it "
                         "again with this gateway's headers",
                         path);
        return NG_EINVAL;
    }
    if (note->needs_host > sizeof(struct ng_host)) {
        (void)buf_printf(error,
                         "%s needs a newer gateway: it uses %lu bytes of struct ng_host, and "
                         "notegate " NOTEGATE_VERSION
                         " has %zu; update the gateway, or build it with this gateway's "
                         "headers or with NG_NEEDS_HOST",
                         path, (unsigned long)note->needs_host, sizeof(struct ng_host));
        return NG_EINVAL;
    }
    return NG_OK;
}

/* ---- copying descriptors ---- */

static bool loader_item_size_valid(uint32_t size)
{
    return size >= sizeof(void *) && size % sizeof(void *) == 0 && size <= LOADER_ITEM_SIZE_MAX;
}

/* One array of the descriptor `desc` (already a copy) becomes a copy of ours. */
static int loader_copy_array(char *desc, const struct loader_array *array, uint32_t item_size,
                             void **ret_copy, struct buf *error)
{
    const char *items;
    size_t count;
    memcpy(&items, desc + array->at, sizeof(items));
    memcpy(&count, desc + array->count_at, sizeof(count));
    if ((items == NULL) != (count == 0)) {
        (void)buf_printf(error, "declares `%s` without `%s`",
                         items == NULL ? array->count_name : array->name,
                         items == NULL ? array->name : array->count_name);
        return NG_EINVAL;
    }
    if (count == 0) {
        return NG_OK;
    }
    if (count > LOADER_ITEMS_MAX) {
        (void)buf_printf(error, "declares %zu `%s`; at most %d can be", count, array->name,
                         LOADER_ITEMS_MAX);
        return NG_EINVAL;
    }
    if (!loader_item_size_valid(item_size)) {
        (void)buf_printf(error, "gives its `%s` an invalid item size: %lu", array->name,
                         (unsigned long)item_size);
        return NG_EINVAL;
    }
    char *copy = alloc_zeroed(count, array->item_size);
    if (copy == NULL) {
        (void)buf_add_c(error, "cannot be loaded: out of memory");
        return NG_EINTERNAL;
    }
    size_t shared = size_min(item_size, array->item_size);
    for (size_t i = 0; i < count; i++) {
        memcpy(copy + i * array->item_size, items + i * item_size, shared);
    }
    memcpy(desc + array->at, &copy, sizeof(copy));
    *ret_copy = copy;
    return NG_OK;
}

static int loader_copy(struct module *module, const struct ng_module *record, struct buf *error)
{
    const struct loader_form *form = loader_form_of(module->kind);
    char *desc = (char *)&module->desc;
    if (record->desc == NULL || record->struct_size == 0) {
        (void)buf_add_c(error, "has no descriptor in its ng_module");
        return NG_EINVAL;
    }
    memcpy(desc, record->desc, size_min(record->struct_size, form->size));
    for (size_t i = 0; i < form->array_count; i++) {
        int rc = loader_copy_array(desc, &form->arrays[i], record->item_sizes[i],
                                   &module->arrays[i], error);
        if (rc != NG_OK) {
            return rc;
        }
    }
    int rc = loader_check(module, error);
    if (rc != NG_OK) {
        return rc;
    }
    return module_lint(module, error);
}

/* ---- loading ---- */

static int loader_map(struct module *module, struct buf *error)
{
    module->handle = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
    if (module->handle == NULL) {
        const char *why = dlerror();
        (void)buf_printf(error, "%s cannot be loaded: %s", module->path,
                         why != NULL ? why : "unknown error");
        return NG_EINVAL;
    }
    const struct ng_module *record = dlsym(module->handle, "ng_module");
    if (record == NULL) {
        (void)buf_printf(error, "%s has no symbol ng_module: export it with NG_EXPORT_...",
                         module->path);
        return NG_EINVAL;
    }
    /* The note decided whether to load; the record decides how to read. */
    const struct elf_note said = {
        .abi = record->abi, .kind = record->kind, .needs_host = record->needs_host};
    int rc = loader_check_numbers(module->path, &said, module->kind, error);
    if (rc != NG_OK) {
        return rc;
    }
    struct buf why;
    buf_init(&why, 2048);
    rc = loader_copy(module, record, &why);
    if (rc != NG_OK) {
        (void)buf_printf(error, "%s %s", module->path, buf_cstr(&why));
    }
    buf_done(&why);
    return rc;
}

/* Checks the opened file: its permissions and its note. *ret_file: which one it is. */
static int loader_check_file(const char *path, enum ng_module_kind kind, struct stat *ret_file,
                             struct buf *error)
{
    struct elf_note note;
    struct buf why;
    int fd = -1;
    buf_init(&why, 1024);
    int rc = elf_note_open(path, &fd, &why);
    if (rc == NG_OK) {
        rc = trust_check(fd, path, TRUST_PROGRAM, error);
        if (rc == NG_OK) {
            rc = elf_note_read_file(fd, &note, &why);
        }
        (void)fstat(fd, ret_file);
        (void)close(fd);
    }
    if (why.len > 0) {
        (void)buf_printf(error, "%s %s", path, buf_cstr(&why));
    } else if (rc == NG_EFORBIDDEN) {
        (void)buf_add_c(error, "; a module that other users can change is not loaded");
    }
    buf_done(&why);
    if (rc != NG_OK) {
        return rc;
    }
    return loader_check_numbers(path, &note, kind, error);
}

int loader_open(const char *const *folders, const char *name, enum ng_module_kind kind,
                struct module **ret, struct buf *error)
{
    char path[LOADER_PATH_MAX];
    struct stat file = {.st_ino = 0};
    int rc = loader_find(folders, name, path, error);
    if (rc == NG_OK) {
        rc = loader_check_file(path, kind, &file, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct module *module = alloc_zeroed(1, sizeof(*module));
    char *copy = str_dup(ng_str_of(path));
    if (module == NULL || copy == NULL) {
        free(module);
        free(copy);
        (void)buf_printf(error, "%s cannot be loaded: out of memory", path);
        return NG_EINTERNAL;
    }
    module->path = copy;
    module->file = file;
    module->kind = kind;
    rc = loader_map(module, error);
    if (rc != NG_OK) {
        loader_close(module);
        return rc;
    }
    *ret = module;
    return NG_OK;
}

bool loader_replaced(const struct module *module)
{
    const struct stat *then = &module->file;
    struct stat now;
    return stat(module->path, &now) == 0 &&
           (now.st_dev != then->st_dev || now.st_ino != then->st_ino ||
            now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

void loader_close(struct module *module)
{
    if (module == NULL) {
        return;
    }
    for (size_t i = 0; i < NG_ITEM_SIZES; i++) {
        free(module->arrays[i]);
    }
    if (LOADER_UNLOADS && module->handle != NULL) {
        (void)dlclose(module->handle);
    }
    free(module->path);
    free(module);
}

/* ---- installed modules ---- */

struct loader_names {
    char **names;
    size_t count;
};

static int loader_add_name(struct loader_names *list, const char *name, size_t len)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->names[i], name, len) == 0 && list->names[i][len] == '\0') {
            return NG_OK; /* an earlier folder has it too */
        }
    }
    if (list->count == LOADER_MODULES_MAX) {
        return NG_ETOOLARGE;
    }
    char *copy = str_dup(str_make(name, len));
    if (copy == NULL) {
        return NG_EINTERNAL;
    }
    list->names[list->count++] = copy;
    return NG_OK;
}

/* NG_EINTERNAL: it cannot be checked now. */
static int loader_is_kind(const char *folder, const char *file, enum ng_module_kind kind,
                          bool *ret)
{
    char path[LOADER_PATH_MAX];
    struct elf_note note;
    struct buf ignored;
    int len = snprintf(path, sizeof(path), "%s/%s", folder, file);
    *ret = false;
    if (len < 0 || len >= LOADER_PATH_MAX) {
        return NG_OK;
    }
    buf_init(&ignored, 1024);
    int rc = elf_note_read(path, &note, &ignored);
    buf_done(&ignored);
    *ret = rc == NG_OK && note.kind == (uint32_t)kind;
    if (rc == NG_EINTERNAL) {
        return rc;
    }
    return NG_OK;
}

static bool loader_is_module(const char *file, size_t len)
{
    size_t suffix = strlen(LOADER_SUFFIX);
    return len > suffix && file[0] != '.' && strcmp(file + len - suffix, LOADER_SUFFIX) == 0;
}

static int loader_list_folder(const char *folder, enum ng_module_kind kind,
                              struct loader_names *list)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int rc = NG_OK;
    if (dir == NULL) {
        /* A folder that is not there holds no modules. */
        if (elf_short_of(errno)) {
            return NG_EINTERNAL;
        }
        return NG_OK;
    }
    /* readdir is safe: the stream belongs to this thread. */
    while (rc == NG_OK && (entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);
        bool wanted = false;
        if (loader_is_module(entry->d_name, len)) {
            rc = loader_is_kind(folder, entry->d_name, kind, &wanted);
        }
        if (rc == NG_OK && wanted) {
            rc = loader_add_name(list, entry->d_name, len - strlen(LOADER_SUFFIX));
        }
    }
    (void)closedir(dir);
    return rc;
}

static int loader_order(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

int loader_list(const char *const *folders, enum ng_module_kind kind, char ***ret_names,
                size_t *ret_count)
{
    struct loader_names list = {alloc_zeroed(LOADER_MODULES_MAX, sizeof(char *)), 0};
    int rc = list.names == NULL ? NG_EINTERNAL : NG_OK;
    for (size_t i = 0; rc == NG_OK && folders != NULL && folders[i] != NULL; i++) {
        rc = loader_list_folder(folders[i], kind, &list);
    }
    if (rc != NG_OK) {
        for (size_t i = 0; i < list.count; i++) {
            free(list.names[i]);
        }
        free(list.names);
        return rc;
    }
    qsort(list.names, list.count, sizeof(char *), loader_order);
    *ret_names = list.names;
    *ret_count = list.count;
    return NG_OK;
}

/* The folder of the executable's folder, without '/' at its end. False: not known. */
static bool loader_prefix(char *path, size_t size)
{
    ssize_t len = readlink("/proc/self/exe", path, size - 1);
    if (len <= 0 || (size_t)len >= size - 1) {
        return false;
    }
    path[len] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = '\0';
    }
    return true;
}

int loader_default_folders(enum ng_module_kind kind, char *out, size_t out_size)
{
    static const char *const beside[] = {"modules", "lib/notegate"};
    const char *folder = loader_form_of(kind)->folder;
    const char *tests = secure_getenv("NOTEGATE_TEST_MODULES");
    char prefix[LOADER_PATH_MAX];
    int len;
    if (tests != NULL && tests[0] != '\0') {
        len = snprintf(out, out_size, "%s/%s", tests, folder);
        if (len > 0 && (size_t)len < out_size) {
            return NG_OK;
        }
        return NG_ETOOLARGE;
    }
    bool known = loader_prefix(prefix, sizeof(prefix));
    for (size_t i = 0; known && i < NG_COUNT(beside); i++) {
        len = snprintf(out, out_size, "%s/%s/%s", prefix, beside[i], folder);
        if (len > 0 && (size_t)len < out_size && access(out, R_OK | X_OK) == 0) {
            return NG_OK;
        }
    }
    len = snprintf(out, out_size, "%s/%s", NOTEGATE_INSTALLED_MODULES, folder);
    if (len > 0 && (size_t)len < out_size) {
        return NG_OK;
    }
    return NG_ETOOLARGE;
}
