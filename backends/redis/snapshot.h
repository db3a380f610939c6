/* SPDX-License-Identifier: MIT */
/* snapshot.h - between dumping and restoring. */
#ifndef NOTEGATE_REDIS_SNAPSHOT_H
#define NOTEGATE_REDIS_SNAPSHOT_H

#include "redis.h"

/* The same form as that of a journal kept in documents, so that either can restore it. */
#define REDIS_DUMP_FORMAT "notegate-journal-1"
/* What names a kept journal, and more bytes than that takes. */
#define REDIS_KEPT_FORMAT "notegate-journal-kept-1"
#define REDIS_KEPT_JSON_MAX ((size_t)4096)

/* ---- aside.c: keeping the journal under other keys ---- */

/* What the keys begin with: those of the journal, of where it is kept, of the copy that takes
 * its place ("": nothing does); and the mark of what is kept. */
struct aside {
    struct ng_str live, kept, from, mark;
};

int redis_aside_open(struct redis *redis, struct ng_call *call, struct ng_str space,
                     struct ng_str id, bool with_copy, struct aside *ret);
/* Adds the command that keeps the journal. It does nothing where that is done. */
void redis_aside_add(struct pipeline *pipeline, const struct aside *aside);

/* restore.c: as redis_restore, but what is there is kept. */
int redis_restore_beside(struct redis *redis, struct ng_call *call, struct ng_str space,
                         struct ng_str json, const struct aside *aside);

#endif
