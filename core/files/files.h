/* SPDX-License-Identifier: MIT */
/* files.h - the file service behind ng_host.file_*, see notegate/files.h. */
#ifndef NOTEGATE_CORE_FILES_H
#define NOTEGATE_CORE_FILES_H

#include "core/call/call.h"
#include "notegate/files.h"

struct files;
struct store;

/* Files of the gateway itself. No root may be, contain or lie in one of them, and no path
 * resolves to one. Members may be absent. Borrowed for the call. */
struct files_own {
    /* Except its folder `files`; for a plugin also except the folder with the plugin's name. */
    const char *data_dir;
    struct ng_str config_file;
    struct ng_str tls_key;
};

/* Opens the roots (they must exist), removes temporary files of a crash and recovers every
 * open intent. roots: "PATH" or "SPACE:/PATH". */
int files_open(struct call *call, struct store *store, const struct ng_str *roots, size_t count,
               const struct files_own *own, struct files **ret);
/* Recovers the intents that files_open() could not, because the database was away. On workers.
 */
int files_recover_rest(struct files *files, struct call *call);
/* Checks a root before it is configured. NG_ENOTFOUND: it does not exist yet. */
int files_try_root(struct call *call, struct ng_str text, const struct files_own *own);
/* A tool refused a call with an idempotency key (rc), perhaps because an earlier attempt has
 * made its change: then that is completed, and the call gets its answer (NG_OK), or NG_EBUSY
 * while another gateway completes it. On workers. */
int files_repeat_refused(struct call *call, int rc);
void files_close(struct files *files); /* NULL is a no-op */
/* Replaces the roots at a reload; takes effect with the next call. */
int files_set_roots(struct files *files, struct call *call, const struct ng_str *roots,
                    size_t count, const struct files_own *own);
/* Adds a root that only calls of the present plugin use, see ng_host.file_folder. Recovers
 * unfinished saves in it first. A reload keeps it. */
int files_add_folder(struct files *files, struct call *call, struct ng_str folder);
/* Does a configured root or a plugin's folder belong to the space? */
bool files_has_space(struct files *files, struct ng_str space);
/* The roots that the caller sees, for commands and the reload report. */
size_t files_roots(struct files *files, struct call *call, const struct ng_str **ret_roots);
/* Splits "PATH" or "SPACE:/PATH", without slashes at the end. Both parts are borrowed. */
void files_split_root(struct ng_str text, struct ng_str *ret_space, struct ng_str *ret_path);

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

/* Of a change whose thread waits until it is durable: for the core's own work on many files.
 * The functions of the edit must not reply. NG_EBUSY also if a call is changing the file. */
struct files_waited {
    struct ng_str note; /* in: members for the data of the event, as JSON; or {NULL, 0} */
    uint32_t mode;      /* in: permission bits of a file that is made; 0: those of the umask */
    uint64_t version;   /* out: that it made; 0: none */
    bool saved;         /* out: the change took place; after an error recovery completes it */
};

int files_edit_wait(struct files *files, struct call *call, const struct ng_file_edit *edit,
                    struct files_waited *inout);
int files_transfer_wait(struct files *files, struct call *call,
                        const struct ng_file_transfer *transfer, struct files_waited *inout);

/* Removes the empty folders around the path, up to `top` with it: not a root. Stops at one that
 * cannot be removed. */
void files_drop_folders(struct files *files, struct call *call, struct ng_str path,
                        struct ng_str top);

/* Contents of files in memory, for metrics. */
struct files_kept_stats {
    size_t bytes, count, limit;
    uint64_t hits, misses;
};

void files_kept_stats(struct files *files, struct files_kept_stats *ret);

/* One root for each file system that holds roots, except the one of `data_dir`. */
void files_each_disk(struct files *files, const char *data_dir,
                     void (*each)(void *user, const char *path), void *user);
/* The configured roots and plugins' folders that are no longer folders. */
void files_each_gone(struct files *files, void (*each)(void *user, const char *path),
                     void *user);

#endif
