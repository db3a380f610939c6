/* SPDX-License-Identifier: MIT */
/* revision.h - the hash of a note's bytes, the same that the file service tells. */
#ifndef NOTEGATE_OPENNOTES_REVISION_H
#define NOTEGATE_OPENNOTES_REVISION_H

#include "note.h"

/* Of `head` and all that is still to be read of fd (-1: nothing). NG_OK; NG_EINTERNAL: no
 * memory; NG_EFAILED: errno. */
int notes_revision(struct ng_str head, int fd, char out[NOTES_REVISION_SIZE]);

#endif
