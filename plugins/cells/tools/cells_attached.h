/* SPDX-License-Identifier: MIT */
/* cells_attached.h - what is attached, for the tools that change it. */
#ifndef NOTEGATE_PLUGIN_CELLS_ATTACHED_H
#define NOTEGATE_PLUGIN_CELLS_ATTACHED_H

#include "cells.h"
#include "core/base/lock.h"

/* How old what a list is made of may be before the document is looked at. */
#define CELLS_LISTED_MS 2000
/* Owners whose lists were asked for lately that are remembered. */
#define CELLS_ASKED_MAX 256
/* Owners are found by the hash of their key. */
#define CELLS_OWNER_LISTS 1024

struct cells_attached {
    char *real;      /* its identity: links resolved */
    char *path;      /* absolute, as it was named last */
    char **selected; /* handles; NULL at the end */
    char *editing;   /* the one that is being edited, or NULL */
};

struct cells_owner {
    struct cells_owner *next;
    char *key; /* "space/agent" */
    struct cells_attached *items;
    size_t count;
    size_t active;   /* SIZE_MAX: none */
    uint64_t ticket; /* of the reading it is of: what was read later is newer */
};

struct cells_poll {
    int64_t at_ms;
    char *key; /* still to be looked at, or NULL */
};

/* What is known of the documents. All of it belongs to the lock, which is never held across
 * I/O. */
struct cells_attachments {
    struct lock lock;
    struct cells_owner *owners[CELLS_OWNER_LISTS]; /* each with something attached */
    uint64_t tickets;
    struct cells_poll asked[CELLS_ASKED_MAX];
};

/* ---- cells_attached.c ---- */

/* A C string of its own; NULL: out of memory. */
char *cells_copy(struct ng_str text);
struct cells_owner *cells_owner_new(struct ng_str key); /* NULL: out of memory */
void cells_owner_free(struct cells_owner *owner);       /* NULL is a no-op */
struct cells_attached *cells_attached_find(const struct cells_owner *owner, struct ng_str real);
/* NULL: out of memory, or CELLS_ATTACHED_MAX are there. */
struct cells_attached *cells_attached_add(struct cells_owner *owner, struct ng_str real,
                                          struct ng_str path);
void cells_attached_done(struct cells_attached *attached);
/* Takes `fresh`, unless something newer is known. True: lists are others now. */
bool cells_attachments_put(struct cells_attachments *all, struct cells_owner *fresh);
/* For what is read from now on. */
uint64_t cells_attachments_ticket(struct cells_attachments *all);
/* An owner whose document is to be looked at, to be freed; NULL: none. */
char *cells_attachments_next_poll(struct cells_attachments *all);

/* ---- cells_attached_doc.c ---- */

/* Background work: looks at the documents of all who asked for lists. */
ng_step_fn cells_attachments_poll;
/* Changes what the owner has attached; may run several times, as the function of a change. */
typedef int cells_attached_fn(struct ng_call *call, struct cells_owner *owner, void *user);
/* NG_OK: it is on disk, and known. Tells of lists that are others now. */
int cells_attached_change(struct cells *self, struct ng_call *call, cells_attached_fn *fn,
                          void *user);

#endif
