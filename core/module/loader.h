/* SPDX-License-Identifier: MIT */
/* loader.h - shared objects: find, check before mapping, load. The only user of dlopen(). */
#ifndef NOTEGATE_CORE_LOADER_H
#define NOTEGATE_CORE_LOADER_H

#include <sys/stat.h>

#include "core/base/buf.h"
#include "notegate/backend.h"
#include "notegate/journal.h"

struct module {
    char *path;
    struct stat file; /* when it was loaded */
    void *handle;
    enum ng_module_kind kind;
    /* A whole copy of the descriptor by today's layout; its arrays are copies too. */
    union {
        struct ng_plugin plugin;
        struct ng_documents documents;
        struct ng_journal journal;
    } desc;
    void *arrays[NG_ITEM_SIZES]; /* owned copies */
};

/* `name`: a path (has a '/'), or a name looked for as NAME.so in each folder of `folders`.
 * Reads the ELF note first: a foreign ABI or kind never runs a line of the module. `error`: one
 * sentence that names the file and the fault. */
int loader_open(const char *const *folders, const char *name, enum ng_module_kind kind,
                struct module **ret, struct buf *error);
/* Is another file at its path than the one that was loaded? A deleted one is not. */
bool loader_replaced(const struct module *module);
/* The names of modules of this kind in the folders, sorted; free() each and the array. */
int loader_list(const char *const *folders, enum ng_module_kind kind, char ***ret_names,
                size_t *ret_count);
void loader_close(
    struct module *module); /* NULL is a no-op; no dlclose() in sanitizer builds */
/* The folder of modules of this kind where plugin_path names none: beside the executable
 * (../modules/plugins in a build tree, ../lib/notegate/plugins installed), else the installed
 * one. Tests: the environment's NOTEGATE_TEST_MODULES/plugins. NG_OK, NG_ETOOLARGE. */
int loader_default_folders(enum ng_module_kind kind, char *out, size_t out_size);

#endif
