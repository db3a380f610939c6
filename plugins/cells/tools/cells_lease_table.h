/* SPDX-License-Identifier: MIT */
/* cells_lease_table.h - the table of leases, for the files of the leases. */
#ifndef NOTEGATE_PLUGIN_CELLS_LEASE_TABLE_H
#define NOTEGATE_PLUGIN_CELLS_LEASE_TABLE_H

#include <pthread.h>

#include "cells_lease.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/text/sha256.h"

struct lease {
    struct lease *next;
    char *notebook;
    char id[SHA256_HEX_SIZE]; /* of its document */
    unsigned users;           /* runs and kernels */
    unsigned losses;          /* how often another gateway has taken it */
    unsigned looks;           /* due after a new term */
    int64_t due_ms;           /* of the next look, or the next attempt to release it */
    uint64_t revision;        /* of the document as this gateway wrote it; 0: not its own */
    uint64_t undeleted;       /* newest revision that is its own and may be there still */
    bool releasing;           /* nothing is taken meanwhile */
};

/* The lock guards all of it and is never held across I/O. A lease is freed by the thread alone,
 * without users. */
struct cells_leases {
    struct lock lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct cells *self;
    struct ng_str name; /* of this gateway */
    struct lease *first;
    uint64_t term; /* all leases are looked at in a new one */
    bool settled;  /* the kernels may not be used */
    bool looking;
    bool stopping;
};

enum lease_deed { LEASE_TAKE, LEASE_DELETE, LEASE_LOOK };

struct lease_write {
    enum lease_deed deed;
    uint64_t revision;  /* expected of the document; LEASE_DELETE: its newest one */
    struct ng_str json; /* LEASE_TAKE */
    bool beaten;        /* it has another one: nothing was changed */
    struct cells_leases *leases;
    bool done;
    int rc;
};

/* The document of a lease. */
struct ng_key lease_key(const char *id);
/* The id of a lease's document. False: out of memory. */
bool lease_id(struct ng_str notebook, char id[SHA256_HEX_SIZE]);
/* With the lock held: the lease of a notebook, or NULL. */
struct lease *lease_of(const struct cells_leases *leases, struct ng_str notebook);
/* One more user. NULL: out of memory. */
struct lease *lease_use(struct cells_leases *leases, struct ng_str notebook);
void lease_leave(struct cells_leases *leases, struct ng_str notebook);
/* The revision is not the document's any more: if the lease still stands on it, another gateway
 * took it meanwhile, and what runs here is ended. */
void lease_lose(struct cells_leases *leases, struct lease *lease, uint64_t revision);
/* The function of all changes; user: struct lease_write. */
ng_change_fn lease_change;

static inline int64_t lease_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

#endif
