/* SPDX-License-Identifier: MIT */
/* gateway.h - the parts of one running gateway. gateway_open.h opens and closes them. */
#ifndef NOTEGATE_CORE_GATEWAY_H
#define NOTEGATE_CORE_GATEWAY_H

#include "call.h"
#include "core/audit/audit_epochs.h"
#include "core/base/log.h"
#include "metrics.h"
#include "pool.h"

#define NOTEGATE_SOCKET_NAME "notegate.sock" /* in the data directory, mode 0600 */
#define NOTEGATE_LOCK_NAME                                                                     \
    "notegate.lock" /* in the data directory; holds the owner's pid and command */

struct config;
struct files;
struct module;
struct registry;
struct store;
struct timers;
struct journal_front;
struct idempotency_table;
struct feed;
struct keys;
struct quota;
struct cluster;
struct recorder;
struct watchdog;
struct disk;
struct audit_refusals;
struct audit_shared;
struct audit_writer;
struct undo_running;

/* The audit log, and what its entries need. */
struct gateway_audit {
    struct audit_writer *writer;     /* audit_writer.h; NULL: there is no audit log */
    struct audit_refusals *refusals; /* of requests, for its entries */
    struct audit_shared *shared;   /* gateway_audit_shared.h; NULL: documents are not shared */
    bool always;                   /* else while the gateway has keys */
    bool serves;                   /* it tells its stop */
    atomic_bool reads;             /* calls that only read have entries, too */
    struct audit_epochs epochs;    /* of calls */
    atomic_uint_fast64_t last_seq; /* of the changes that calls know */
};

struct gateway {
    struct ng_host
        host; /* the table handed to plugins: of host.h, findable back to this gateway */
    struct config *config;
    struct metrics *metrics;
    struct registry *registry;
    struct pool *pool;
    struct store *store;
    struct files *files;
    int (*repeat_refused)(struct call *call, int rc); /* files_repeat_refused(), or NULL */
    struct journal_front *journal;                    /* journal.h of the core */
    struct idempotency_table *idempotency;
    struct feed *feed;         /* feed.h; NULL in commands without a server */
    struct recorder *recorder; /* record.h; NULL: calls are not recorded */
    struct keys *keys;         /* keys.h */
    /* Keys that were not revoked, expired or not; NULL: there is no table of keys. */
    const atomic_size_t *active_keys;
    struct cluster *cluster;         /* cluster.h; NULL where there is no store */
    struct quota *buffered;          /* bytes of bodies, by agent: limits.buffered */
    struct quota *streams;           /* quota.h: streams by agent: limits.streams */
    struct quota *scans;             /* searches of files under way, by agent */
    struct disk *disk;               /* disk.h; NULL where there is no store */
    struct timers *timers;           /* deadlines of calls */
    struct audit_refusals *refusals; /* audit_refusals.h; NULL where nothing runs */
    struct gateway_audit audit;
    struct watchdog *watchdog; /* watchdog.h; NULL where nothing runs */
    struct buf left_out; /* names of plugins left out for their crashes; made at the start */
    struct module **modules;
    size_t module_count;
    int lock_fd;
    char *data_dir;
    bool is_public;         /* its address can be reached from other machines */
    bool serves_root;       /* root started it and it became a user: root is its owner, too */
    atomic_int active;      /* calls under way */
    atomic_bool stopping;   /* new calls are refused */
    atomic_bool cancelling; /* those that run are to end, background work as well */
    atomic_llong background_told_ms; /* a failed change of a plugin's own was logged then */
    atomic_bool upkeep_runs;
    atomic_uint purges;         /* under way: one at most */
    struct undo_running *undos; /* under way; NULL where there is no store */
    struct spare_calls spare_calls;
    /* Limits by the configuration. */
    struct {
        /* These a reload changes while calls read them. */
        atomic_size_t body, result, answer, buffered;
        atomic_size_t version; /* of a file; 0: files have no versions */
        atomic_uint depth, connections, streams, queue;
        _Atomic int64_t call_timeout_ms;
        unsigned workers, stream_backlog;
    } limits;
    /* Tasks of MCP (api/tasks/mcp_tasks.h); self NULL: there are none. It is set last: upkeep
     * may run by then. */
    struct {
        void *_Atomic self;
        int (*upkeep)(void *self, struct call *call); /* each minute, on a worker */
        void (*close)(void *self);                    /* when no call is left */
        int (*poll)(void *self, struct call *call); /* shared documents: what others changed */
    } tasks;
    /* Set by the MCP transport. lists: enum ng_lists; 0: the rights of a key changed, and so
     * did the lists of its callers. */
    void (*lists_changed)(struct gateway *gateway, unsigned lists, void *user);
    void *lists_user;
};

static inline bool gateway_has_keys(const struct gateway *of)
{
    return of != NULL && of->active_keys != NULL &&
           atomic_load_explicit(of->active_keys, memory_order_acquire) > 0;
}

/* Does the audit log get entries now? */
static inline bool gateway_keeps_audit(const struct gateway *of)
{
    return of != NULL && of->audit.writer != NULL && (of->audit.always || gateway_has_keys(of));
}

/* Does the gateway's log tell of calls? Where log.audit does not say so, that of a gateway with
 * keys does. Callers without a key have the bounded lines of auth.c. */
static inline bool call_is_audited(const struct gateway *of)
{
    return log_switched_on(LOG_AUDIT) ||
           (log_switched_on(LOG_AUDIT_KEYED) && gateway_has_keys(of));
}

static inline bool call_notes_changes(const struct gateway *of)
{
    return call_is_audited(of) || gateway_keeps_audit(of);
}

#endif
