/* SPDX-License-Identifier: MIT */
/* audit_entry.h - an entry of the audit log: one call, or one event of the gateway, as JSON. */
#ifndef NOTEGATE_CORE_AUDIT_ENTRY_H
#define NOTEGATE_CORE_AUDIT_ENTRY_H

#include "audit_names.h"

#define AUDIT_ENTRY_VERSION 1
/* Bytes of an entry. */
#define AUDIT_ENTRY_MAX ((size_t)60 * 1024)
/* Documents of an entry; what a call changed beyond that has further entries. */
#define AUDIT_ENTRY_DOCS_MAX ((size_t)200)
/* Bytes that a value takes in the JSON; a longer one is cut. */
#define AUDIT_ENTRY_VALUE_MAX ((size_t)256)
#define AUDIT_ENTRY_COLLECTION_MAX ((size_t)64)
#define AUDIT_ENTRY_ACTION_MAX ((size_t)32)

struct audit_doc {
    struct ng_str collection, id;
    uint64_t revision, seq; /* 0: not known */
    struct ng_str action;   /* of the change: "created", ...; or absent */
};

/* Absent texts ({NULL, 0}) are left out. */
struct audit_entry {
    int64_t time_ms;                          /* Unix time */
    int64_t took_ms;                          /* -1: none */
    const char *face, *outcome, *role, *mode; /* or NULL */
    struct ng_str agent, key, space, remote, client, tool, operation, run, trace, request;
    const struct audit_doc *docs;
    size_t doc_count;
};

/* Writes the entry with its documents from `first` on, as many as it takes; *ret_next: the
 * first that it does not have, doc_count after the last one. NG_OK; NG_EBUSY, NG_EUNAVAILABLE:
 * of audit_names_get(); NG_EINTERNAL. */
int audit_entry_write(const struct audit_entry *entry, size_t first, struct audit_names *names,
                      struct buf *out, size_t *ret_next, struct buf *error);

/* Bytes of the documents and texts of a copy. */
size_t audit_entry_bytes(const struct audit_entry *entry);
/* room: so many bytes, aligned as a struct audit_doc is. */
void audit_entry_copy(const struct audit_entry *entry, void *room, struct audit_entry *ret);

#endif
