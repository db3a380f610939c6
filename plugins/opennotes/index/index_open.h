/* SPDX-License-Identifier: MIT */
/* index_open.h - the open indexes of a gateway, for the room notebook. */
#ifndef NOTEGATE_OPENNOTES_INDEX_OPEN_H
#define NOTEGATE_OPENNOTES_INDEX_OPEN_H

#include "index_state.h"

struct notes_indexes;

/* folder: the existing folder of the index files. NG_OK or NG_EINTERNAL (no memory). */
int notes_indexes_open(const char *folder, struct notes_indexes **ret);
/* index_sweep.c: removes index files whose notebook folders are gone and that have not changed
 * for a month. Call it before any index is open. */
void notes_indexes_sweep(const char *folder, int64_t now_s);
/* No index may be in use. NULL is a no-op. */
void notes_indexes_close(struct notes_indexes *indexes);
/* The shared index of the folder at an absolute path without links. Does not read the index
 * file yet. */
int notes_index_open(struct notes_indexes *indexes, struct ng_call *call, const char *path,
                     struct notes_index **ret);
/* NULL is a no-op. */
void notes_index_close(struct notes_indexes *indexes, struct notes_index *index);

#endif
