/* SPDX-License-Identifier: MIT */
/* notebook_state.h - shared by the files of this room. */
#ifndef NOTEGATE_OPENNOTES_NOTEBOOK_STATE_H
#define NOTEGATE_OPENNOTES_NOTEBOOK_STATE_H

#include "core/base/lock.h"
#include "index/index_open.h"
#include "notebook.h"

/* Limits of the discovery below the roots; notebooks beyond can still be named. */
#define NOTES_FIND_DEPTH 8
#define NOTES_FIND_FOLDERS_MAX 20000
#define NOTES_FIND_NOTEBOOKS_MAX 1000

struct notes_registered {
    char *space;
    char *path; /* absolute, as configured, without slashes at its end */
    /* Name and folder of notes as of the last read of its configuration; NULL: not read yet.
     * Guarded by names_lock. */
    char *name, *notes;
};

struct notes_notebooks {
    struct notes_registered *items;
    size_t count;
    struct notes_indexes *indexes;
    struct notes_discovery *discovery;
    struct lock names_lock;
};

/* A growing list in call memory. */
struct notes_folders {
    struct ng_str *items; /* absolute, without links */
    size_t count, cap;
};

/* ---- notebook_config.c */

/* Reads .opennotes.json of a folder (absolute, without links; opened as fd) and fills name,
 * path, folder and config. NOTEBOOK_CONFIG_ERROR if it is unusable. */
int notes_config_read(struct notes_notebook *notebook, struct ng_call *call, int fd,
                      struct ng_str folder);

/* ---- notebook_names.c */

/* Remembers the name and the folder of notes of the notebook that is registered as `path`. */
void notes_names_keep(struct notes_notebooks *notebooks, struct ng_str path,
                      const struct notes_notebook *notebook);

/* ---- notebook_find.c */

/* Folders with .opennotes.json below the caller's roots, in the order of the roots and of
 * paths. */
int notes_find_folders(struct ng_call *call, struct notes_folders *ret);
/* The first one below a root; if there is none, *ret is unchanged. NG_ETIMEOUT: the clock is
 * past until_ms (0: no limit) before the scan has ended. */
int notes_find_first(struct ng_call *call, struct ng_str root, int64_t until_ms,
                     struct notes_folders *ret);

/* ---- notebook_discovery.c: the roots with notebooks, as of the last scan */

/* Called by start(): scans all roots, for a bounded time. NULL: out of memory. */
struct notes_discovery *notes_discovery_open(struct ng_call *call);
void notes_discovery_close(struct notes_discovery *discovery);

#endif
