/* SPDX-License-Identifier: MIT */
/* cells_attached.h - attachments, for the tools that change them. */
#ifndef NOTEGATE_PLUGIN_CELLS_ATTACHED_H
#define NOTEGATE_PLUGIN_CELLS_ATTACHED_H

#include "cells.h"
#include "core/base/arena.h"
#include "core/base/lock.h"

/* Maximum age of the cache behind a tool list before its document is polled. */
#define CELLS_LISTED_MS 2000
/* Owners with recent list requests. */
#define CELLS_ASKED_MAX 256
/* Buckets of owners, by the hash of their key. */
#define CELLS_OWNER_LISTS 1024

struct cells_attached {
    struct ng_str real;      /* identity: real path */
    struct ng_str path;      /* absolute, as last named by the caller */
    struct ng_str *selected; /* handles */
    size_t selected_count;
    struct ng_str editing; /* cell being edited, or absent */
};

/* A cached owner has all its texts in its memory; one that a change works on also borrows texts
 * of the call, which it does not outlive. */
struct cells_owner {
    struct cells_owner *next;
    struct arena memory;          /* of all below */
    struct ng_str key;            /* "space/agent" */
    struct cells_attached *items; /* one more than were loaded */
    size_t count;
    size_t active;   /* SIZE_MAX: none */
    uint64_t ticket; /* order of reads: a higher ticket is newer */
};

struct cells_poll {
    int64_t at_ms;
    char *key; /* to be polled, or NULL */
};

/* Cache of the documents. The lock guards all of it and is never held across I/O. */
struct cells_attachments {
    struct lock lock;
    struct cells_owner *owners[CELLS_OWNER_LISTS]; /* owners with at least one attachment */
    uint64_t tickets;
    struct cells_poll asked[CELLS_ASKED_MAX];
};

/* ---- cells_attached.c ---- */

void cells_owner_free(struct cells_owner *owner); /* NULL is a no-op */
struct cells_attached *cells_attached_find(const struct cells_owner *owner, struct ng_str real);
/* Stores `fresh` unless a newer state is cached. True: tool lists have changed. */
bool cells_attachments_put(struct cells_attachments *all, struct cells_owner *fresh);
/* The ticket for the next read. */
uint64_t cells_attachments_ticket(struct cells_attachments *all);
/* The key of an owner to be polled, to be freed; NULL: none. */
char *cells_attachments_next_poll(struct cells_attachments *all);

/* ---- cells_attached_store.c ---- */

/* Background step: polls the documents of owners with recent list requests. */
ng_step_fn cells_attachments_poll;
/* Changes the attachments of an owner; may be called again after a conflict. */
typedef int cells_attached_fn(struct ng_call *call, struct cells_owner *owner, void *user);
/* NG_OK: stored and cached. Notifies clients of changed tool lists. */
int cells_attached_change(struct cells *self, struct ng_call *call, cells_attached_fn *fn,
                          void *user);

#endif
