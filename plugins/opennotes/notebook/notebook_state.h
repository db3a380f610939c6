/* SPDX-License-Identifier: MIT */
/* notebook_state.h - what the parts that know notebooks share. */
#ifndef NOTEGATE_OPENNOTES_NOTEBOOK_STATE_H
#define NOTEGATE_OPENNOTES_NOTEBOOK_STATE_H

#include "index/index_open.h"
#include "notebook.h"

/* Discovery below the roots; what is beyond is not found, and can still be named. */
#define ON_FIND_DEPTH 8
#define ON_FIND_FOLDERS_MAX 20000
#define ON_FIND_NOTEBOOKS_MAX 1000

struct on_registered {
    char *space;
    char *path; /* absolute, as configured, without slashes at its end */
};

struct on_notebooks {
    struct on_registered *items;
    size_t count;
    struct on_indexes *indexes;
    struct on_discovery *discovery;
};

/* A growing list in call memory. */
struct on_folders {
    struct ng_str *items; /* absolute, without links */
    struct ng_str *spaces;
    size_t count, cap;
};

/* ---- notebook_config.c */

/* Reads .opennotes.json of a folder (absolute, without links; opened as fd) and fills name,
 * path, folder and config. NOTEBOOK_CONFIG_ERROR where it is of no use. */
int on_config_read(struct on_notebook *notebook, struct ng_call *call, int fd,
                   struct ng_str folder);

/* ---- notebook_find.c */

/* Folders with .opennotes.json below the caller's roots, in the order of the roots and of
 * paths. */
int on_find_folders(struct ng_call *call, struct on_folders *ret);
/* The first one below a root; none: *ret stays as it is. NG_ETIMEOUT: the clock is past
 * until_ms (0: no limit) and not all was looked at. */
int on_find_first(struct ng_call *call, struct ng_str root, int64_t until_ms,
                  struct on_folders *ret);
int on_find_add(struct on_folders *folders, struct ng_call *call, struct ng_str path,
                struct ng_str space);
struct ng_str on_call_copy(struct ng_call *call, struct ng_str text);

/* ---- notebook_discovery.c: below which roots there are notebooks, as of the last look */

/* From start(): looks at all roots, for a bounded time. NULL: out of memory. */
struct on_discovery *on_discovery_open(struct ng_call *call);
void on_discovery_close(struct on_discovery *discovery);

#endif
