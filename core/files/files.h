/* SPDX-License-Identifier: MIT */
/* files.h - the file service: what struct ng_host offers under file_*, see notegate/files.h. */
#ifndef NOTEGATE_CORE_FILES_H
#define NOTEGATE_CORE_FILES_H

#include "core/call/call.h"
#include "notegate/files.h"

/* The collection whose events are changes of files. */

struct files;
struct store;

/* What belongs to the gateway itself: no root may be, hold or lie in it, and no path leads to
 * it. Absent members: there is none. Lent for the call. */
struct files_own {
    const char *data_dir; /* but its folder `files`, and one that has a plugin's name for that
                             plugin */
    struct ng_str config_file;
    struct ng_str tls_key;
};

/* Opens the roots, which must be there, removes temporary files that a kill left,
 * settles every open intent. roots: "PATH" or "SPACE:/PATH". */
int files_open(struct call *call, struct store *store, const struct ng_str *roots, size_t count,
               const struct files_own *own, struct files **ret);
/* Settles what could not be settled at the start, as the database was away. On workers. */
int files_recover_rest(struct files *files, struct call *call);
/* May this be a root? NG_ENOTFOUND: it is not there yet. */
int files_try_root(struct call *call, struct ng_str root, const struct files_own *own);
void files_close(struct files *files); /* NULL is a no-op */
/* A reload: the new roots hold from the next call on. */
int files_set_roots(struct files *files, struct call *call, const struct ng_str *roots,
                    size_t count, const struct files_own *own);
/* A folder that file calls of the plugin this call belongs to may use as a root, see
 * ng_host.file_folder; a reload keeps it. Unfinished saves in it are settled first. */
int files_add_folder(struct files *files, struct call *call, struct ng_str folder);
/* Roots: real path and space; for commands and the reload report. */
size_t files_roots(struct files *files, struct call *call, const struct ng_str **ret_roots);

int files_stat(struct files *files, struct call *call, struct ng_str path,
               struct ng_file *ret_file);
int files_read(struct files *files, struct call *call, struct ng_str path, uint64_t max_bytes,
               struct ng_file *ret_file);
int files_stream(struct files *files, struct call *call, struct ng_str path, ng_chunk_fn *chunk,
                 void *user, struct ng_file *ret_file);
int files_list(struct files *files, struct call *call, const struct ng_file_list *list,
               ng_entry_fn *entry, void *user);
int files_edit(struct files *files, struct call *call, const struct ng_file_edit *edit);
int files_transfer(struct files *files, struct call *call,
                   const struct ng_file_transfer *transfer);
int files_undo(struct files *files, struct call *call, const struct ng_file_undo *undo);

/* One root's folder for each file system that roots are on, but that of `data_dir`. */
void files_each_disk(struct files *files, const char *data_dir,
                     void (*each)(void *user, const char *path), void *user);
/* The roots and plugins' folders, as configured, that are no folders any more. */
void files_each_gone(struct files *files, void (*each)(void *user, const char *path),
                     void *user);

#endif
