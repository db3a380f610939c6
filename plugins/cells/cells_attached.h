/* SPDX-License-Identifier: MIT */
/* cells_attached.h - what is attached, for the tools that change it. */
#ifndef NOTEGATE_PLUGIN_CELLS_ATTACHED_H
#define NOTEGATE_PLUGIN_CELLS_ATTACHED_H

#include "cells.h"

#include <pthread.h>

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
    size_t count;  /* 1 or more, but for a moment */
    size_t active; /* SIZE_MAX: none */
};

/* All of it belongs to the lock, which is never held across I/O. */
struct cells_attachments {
    pthread_mutex_t lock;
    struct cells_owner *first;
    bool unread; /* the database was away at the start: `first` is empty until it is read */
};

/* A C string of its own; NULL: out of memory. */
char *cells_copy(struct ng_str text);
/* With the lock held. `make`: where there is none; NULL: there is none, or out of memory. */
struct cells_owner *cells_owner_of(struct cells_attachments *all, struct ng_str key, bool make);
/* With the lock held: forgets an owner who has nothing attached. */
void cells_owner_tidy(struct cells_attachments *all, struct cells_owner *owner);
struct cells_attached *cells_attached_find(const struct cells_owner *owner, struct ng_str real);
/* NULL: out of memory, or CELLS_ATTACHED_MAX are there. */
struct cells_attached *cells_attached_add(struct cells_owner *owner, struct ng_str real,
                                          struct ng_str path);
void cells_attached_done(struct cells_attached *attached);
/* Writes what the caller has attached now. */
int cells_attached_save(struct ng_call *call, struct cells_attachments *all);

#endif
