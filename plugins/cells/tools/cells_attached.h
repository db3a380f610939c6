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
/* Without use for this time a notebook is not active any more. */
#define CELLS_ACTIVE_MS ((int64_t)12 * 60 * 60 * 1000)
/* A use is stored if the last stored one is as old as this. */
#define CELLS_USED_MS ((int64_t)60 * 1000)
/* Active notebooks per agent and space, one for each session. The one unused longest makes
 * room. */
#define CELLS_ACTIVE_MAX 64
/* Digits of the name of a session, with NUL. */
#define CELLS_SESSION_SIZE 17
/* Buckets of owners, by the hash of their key. */
#define CELLS_OWNER_LISTS 1024

struct cells_attached {
    struct ng_str real;      /* identity: real path */
    struct ng_str path;      /* absolute, as last named by the caller */
    struct ng_str *selected; /* handles */
    size_t selected_count;
    struct ng_str editing; /* cell being edited, or absent */
    int64_t used_ms;       /* attached, or used as the active one; 0: unknown */
};

/* The active notebook of a session, or of the calls without one. */
struct cells_active {
    struct ng_str session; /* "": none */
    struct ng_str real;    /* of an attached notebook */
    struct ng_str process; /* of the gateway that made it active, and with which it ends */
    int64_t used_ms;
    bool lives; /* the process runs */
};

/* A cached owner has all its texts in its memory; one that a change works on also borrows texts
 * of the call, which it does not outlive. */
struct cells_owner {
    struct cells_owner *next;
    struct arena memory;          /* of all below */
    struct ng_str key;            /* "space/agent" */
    struct cells_attached *items; /* one more than were loaded */
    size_t count;
    struct cells_active *actives; /* one more than were loaded */
    size_t active_count;
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
/* Of this session; NULL: none. */
struct cells_active *cells_active_find(const struct cells_owner *owner, struct ng_str session);
/* Is it active still? */
bool cells_active_holds(const struct cells_active *active, int64_t now_ms);
/* The session of the call; "": none. Two sessions have different names. */
void cells_session(const struct ng_call *call, char session[CELLS_SESSION_SIZE]);
/* The path of the caller's active notebook in call memory; absent: none. *ret_used: its last
 * use that is stored. */
struct ng_str cells_active_path(struct cells *self, struct ng_call *call, int64_t *ret_used);
/* The paths of the caller's notebooks that were attached or used within CELLS_ACTIVE_MS, in
 * call memory: "a, b"; returns their number. */
size_t cells_recent(struct cells *self, struct ng_call *call, struct ng_str *ret_paths);
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
