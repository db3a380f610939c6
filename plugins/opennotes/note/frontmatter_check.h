/* SPDX-License-Identifier: MIT */
/* frontmatter_check.h - the front matter of a note after a merge. */
#ifndef OPENNOTES_FRONTMATTER_CHECK_H
#define OPENNOTES_FRONTMATTER_CHECK_H

#include "note.h"

/*
 * Front matter that parsed on both sides must parse after. A side without front matter asks for
 * none; a side with an error makes every result good. *ret_good: is `merged` all right? NG_OK
 * or NG_EINTERNAL (out of memory).
 */
int notes_frontmatter_check(struct ng_str present, struct ng_str before, struct ng_str merged,
                            bool *ret_good);

#endif
