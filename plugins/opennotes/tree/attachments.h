/* SPDX-License-Identifier: MIT */
/* attachments.h - names of a notebook's files other than notes: pictures and other embedded
 * files. No index has them; a walk over the folders finds them. */
#ifndef OPENNOTES_ATTACHMENTS_H
#define OPENNOTES_ATTACHMENTS_H

#include "text/text.h"

struct notes_attachments {
    struct arena arena;
    struct ng_str *names; /* folded, in order */
    size_t count, room;
    bool read;
    int rc;
};

/* Begins zeroed; the folders are read at the first call. Is there a file with the last part of
 * this path, in any folder? true if that is unknown. `path` is folded. */
bool notes_attachments_have(struct notes_attachments *files, int root_fd, struct ng_str path);
void notes_attachments_done(struct notes_attachments *files);

#endif
