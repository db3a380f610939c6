/* SPDX-License-Identifier: MIT */
/* snapshot.h - shared by dumping and restoring. */
#ifndef NOTEGATE_REDIS_SNAPSHOT_H
#define NOTEGATE_REDIS_SNAPSHOT_H

#include "redis.h"

/* The same format as that of a journal kept in documents, so either can restore it. */
#define REDIS_DUMP_FORMAT "notegate-journal-1"
/* The format of a reference to a kept journal, and an upper bound of its bytes. */
#define REDIS_KEPT_FORMAT "notegate-journal-kept-1"
#define REDIS_KEPT_JSON_MAX ((size_t)4096)

/* ---- aside.c: keeping the journal under other keys ---- */

/* Key prefixes: of the present journal, of the kept one, and of the copy that takes its place
 * ("": none); and the mark of the kept one. */
struct aside {
    struct ng_str live, kept, from, mark;
};

struct aside redis_aside(struct redis *redis, struct ng_call *call, struct ng_str space,
                         struct ng_str id, bool with_copy);
/* Adds the command that keeps the journal. No effect if that is already done. */
void redis_aside_add(struct pipeline *pipeline, const struct aside *aside);

/* restore.c: as redis_restore, but keeps the present journal. */
int redis_restore_beside(struct redis *redis, struct ng_call *call, struct ng_str space,
                         struct ng_str json, const struct aside *aside);

#endif
