/* SPDX-License-Identifier: MIT */
/* revision.h - the hash of a note's bytes, equal to the revision of the file service. */
#ifndef NOTEGATE_OPENNOTES_REVISION_H
#define NOTEGATE_OPENNOTES_REVISION_H

#include "note.h"

/* Of `head` and the rest of fd (-1: nothing). NG_OK; NG_EINTERNAL: out of memory; NG_EFAILED:
 * errno. */
int notes_revision(struct ng_str head, int fd, char out[NOTES_REVISION_SIZE]);

#endif
