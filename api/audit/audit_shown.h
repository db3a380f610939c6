/* SPDX-License-Identifier: MIT */
/* audit_shown.h - an entry of the audit log with the values behind its names. */
#ifndef NOTEGATE_API_AUDIT_SHOWN_H
#define NOTEGATE_API_AUDIT_SHOWN_H

#include "core/audit/audit_entry.h"
#include "core/audit/audit_values.h"
#include "core/base/arena.h"

/* Memory of one entry. */
#define AUDIT_SHOWN_MEMORY_MAX ((size_t)4 * 1024 * 1024)

/* Members that it lacks are absent. A redacted value is its name. */
struct audit_shown {
    uint64_t number;
    struct ng_str time, face, agent, key, role, mode, space, remote, client, tool, operation,
        outcome, run, trace, request;
    int64_t ms; /* -1: none */
    const struct audit_doc *docs;
    size_t doc_count;
};

/* Reads an entry into memory of the arena. NG_OK; NG_EFAILED: it is none; NG_EUNAVAILABLE,
 * NG_EINTERNAL. The sentence is in error. */
int audit_shown_read(struct arena *arena, uint64_t number, struct ng_str entry,
                     struct audit_values *values, struct audit_shown *ret, struct buf *error);
/* As JSON: `number`, and the members of the entry. NG_OK or the error of `out`. */
int audit_shown_json(const struct audit_shown *shown, struct buf *out);
/* A line for people, without its line end. */
int audit_shown_line(const struct audit_shown *shown, struct buf *out);
/* audit_ocsf.c: as an event of OCSF, API Activity. */
int audit_shown_ocsf(const struct audit_shown *shown, struct buf *out);

#endif
