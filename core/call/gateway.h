/* SPDX-License-Identifier: MIT */
/* gateway.h - everything that makes up one running gateway, in one place, and its life. */
#ifndef NOTEGATE_CORE_GATEWAY_H
#define NOTEGATE_CORE_GATEWAY_H

#include "call.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/module/loader.h"
#include "core/module/registry.h"
#include "core/store/store.h"
#include "metrics.h"
#include "pool.h"

#define NOTEGATE_SOCKET_NAME "notegate.sock" /* in the data directory, mode 0600 */
#define NOTEGATE_LOCK_NAME                                                                     \
    "notegate.lock" /* in the data directory; holds the owner's pid and command */

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

struct gateway {
    struct ng_host
        host; /* the table handed to plugins: call_host, findable back to this gateway */
    struct config *config;
    struct metrics *metrics;
    struct registry *registry;
    struct pool *pool;
    struct store *store;
    struct files *files;
    struct journal_front *journal; /* journal.h of the core */
    struct idempotency_table *idempotency;
    struct feed *feed;         /* feed.h; NULL in commands that serve nobody */
    struct recorder *recorder; /* record.h; NULL: calls are not recorded */
    struct keys *keys;         /* keys.h */
    struct cluster *cluster;   /* cluster.h; NULL where there is no store */
    struct quota *buffered;    /* bytes of bodies, by agent: limits.buffered */
    struct quota *streams;     /* quota.h: who has how many of limits.streams */
    struct disk *disk;         /* disk.h; NULL where there is no store */
    struct timers *timers;     /* deadlines of calls */
    struct watchdog *watchdog; /* watchdog.h; NULL where nothing runs */
    struct buf left_out; /* names of plugins left out for their crashes; made at the start */
    struct module **modules;
    size_t module_count;
    int lock_fd;
    char *data_dir;
    bool is_public;         /* other machines reach what it listens on */
    bool serves_root;       /* root started it and it became a user: root is its owner, too */
    atomic_int active;      /* calls under way */
    atomic_bool stopping;   /* new calls are refused */
    atomic_bool cancelling; /* those that run are to end, background work as well */
    atomic_llong background_told_ms; /* a failed change of a plugin's own was logged then */
    atomic_bool upkeep_runs;
    struct spare_calls spare_calls;
    /* Limits by the configuration. */
    struct {
        /* These a reload changes while calls read them. */
        atomic_size_t body, result, buffered;
        atomic_uint depth, connections, streams, queue;
        _Atomic int64_t call_timeout_ms;
        unsigned workers, stream_backlog;
    } limits;
    /* Tasks of MCP (api/tasks/mcp_tasks.h); self NULL: nobody runs any. It is set last: upkeep
     * may run by then. */
    struct {
        void *_Atomic self;
        int (*upkeep)(void *self, struct call *call); /* each minute, on a worker */
        void (*close)(void *self);                    /* when no call is left */
        int (*poll)(void *self, struct call *call); /* shared documents: what others changed */
    } tasks;
    void (*lists_changed)(struct gateway *gateway, unsigned lists,
                          void *user); /* set by the MCP transport */
    void *lists_user;
};

enum gateway_parts {
    GATEWAY_DESCRIBE = 0, /* modules and configuration only: tools, check --help-config */
    GATEWAY_FULL = 1      /* data directory, store, files, plugins started */
};

/*
 * The data directory's owner: NG_OK (locked until gateway_close), or NG_EBUSY with a sentence
 * naming the process that has it. Waits up to wait_ms.
 */
int gateway_lock_data_dir(const char *data_dir, int64_t wait_ms, int *ret_fd,
                          struct buf *error);
/* The data directory by configuration, made with mode 0700 if `make`. malloc'd. */
char *gateway_data_dir(const struct config *config, bool make, struct buf *error);

/* May a gateway serve from there? Not where other users can get in, or where it is another
 * user's. One that is not there yet is fine. NG_EFORBIDDEN, NG_EUNAVAILABLE: `error` has the
 * sentence and the way out. */
int gateway_check_data_dir(const char *data_dir, struct buf *error);

/* The limits as the configuration has them (at the start). */
void gateway_read_limits(struct gateway *gateway);
/* Those limits that can change while it runs (a reload), and history.keep. */
void gateway_take_limits(struct gateway *gateway, const struct config *config);
/* The file service with the roots of this configuration (none: `files` in the data directory):
 * opened at the start, from then on these roots hold, each opened anew. */
int gateway_set_files(struct gateway *gateway, struct call *call, const struct config *config);
/* Opens everything. `error`: one or several lines. On NG_OK the gateway owns config. */
int gateway_open(struct config *config, enum gateway_parts parts, int64_t wait_ms,
                 struct gateway **ret, struct buf *error);
/* New calls fail with BUSY; waits until those running are done, at most wait_ms. False: some
 * were left. */
bool gateway_drain(struct gateway *gateway, int64_t wait_ms);
/* Closes in the reverse order. NULL is a no-op. */
void gateway_close(struct gateway *gateway);

/* The gateway's own configuration keys (config.c declares them). */
extern const struct ng_option gateway_options[];
extern const size_t gateway_option_count;

#endif
