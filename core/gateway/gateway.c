/* SPDX-License-Identifier: MIT */
/* gateway.c - opens and closes a gateway: data directory, modules, store, files, plugins. */
#include "core/call/gateway.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/quota.h"
#include "core/cluster/cluster.h"
#include "core/config/config.h"
#include "core/dispatch/audit_refusals.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatch/record.h"
#include "core/dispatch/timers.h"
#include "core/fault/crash.h"
#include "core/feed/feed.h"
#include "core/files/files.h"
#include "core/host/host.h"
#include "core/host/sqlite_memory.h"
#include "core/journal/journal.h"
#include "core/keys/keys.h"
#include "core/module/loader.h"
#include "core/module/watchdog.h"
#include "core/store/disk.h"
#include "core/store/idempotency.h"
#include "core/store/store.h"
#include "core/undo/undo.h"
#include "gateway_audit.h"
#include "gateway_audit_shared.h"
#include "gateway_modules.h"
#include "gateway_open.h"

#define GATEWAY_UPKEEP_MS ((int64_t)60 * 1000)
/* How long a close waits for running calls: longer than the notebook takes to abandon a cell
 * that ignores its interrupt. */
#define GATEWAY_CLOSE_MS 8000
#define GATEWAY_ERRNO_TEXT 128
/* Bytes of the names of plugins left out, for /readyz. */
#define GATEWAY_LEFT_OUT_MAX ((size_t)16 * 1024)

/* ---- storage ---- */

/* Runs one step of opening in a call of its own. */
static int gateway_step(struct gateway *gateway,
                        int (*step)(struct gateway *gateway, struct call *call,
                                    const void *user),
                        const void *user, struct buf *error)
{
    struct call *call = call_new(gateway);
    if (call == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc = step(gateway, call, user);
    if (rc != NG_OK) {
        buf_add_str(error, str_or(call->staged.message, ng_str_of("it gave no reason")));
    }
    call_unref(call);
    return rc;
}

static int gateway_load_documents(struct gateway *gateway, struct module **ret,
                                  struct buf *error)
{
    const char *name = config_text(gateway->config, "documents").data;
    if (strcmp(name, "memory") == 0) {
        name = "sqlite";
    }
    int rc = gateway_load_backend(gateway, NG_KIND_DOCUMENTS, "documents", name, "memory", ret,
                                  error);
    if (rc == NG_OK) {
        const struct ng_documents *desc = &(*ret)->desc.documents;
        rc = config_declare(gateway->config, desc->name, desc->options, desc->option_count,
                            sizeof(struct ng_option), error);
    }
    return rc;
}

static int open_store(struct gateway *gateway, struct call *call, const void *user)
{
    const struct ng_documents *backend = user;
    int rc =
        store_open(call, backend, config_view(gateway->config, backend->name), &gateway->store);
    if (rc == NG_OK) {
        rc = cluster_open(gateway, call, &gateway->cluster);
        store_set_gateway(gateway->store, cluster_id(gateway->cluster));
    }
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = gateway_declare_collections(gateway, call, plugins[i]);
    }
    if (rc == NG_OK) {
        rc = undo_open(call);
    }
    if (rc == NG_OK) {
        undo_tell(call);
    }
    return rc == NG_OK ? host_purge_open(gateway, call) : rc;
}

static int open_keys(struct gateway *gateway, struct call *call, const void *user)
{
    (void)user;
    return keys_open(gateway, call, &gateway->keys);
}

int gateway_set_files(struct gateway *gateway, struct call *call, const struct config *config)
{
    const char *file = config_file(config);
    const struct files_own own = {
        .data_dir = gateway->data_dir,
        .config_file = ng_str_of(file),
        .tls_key = config_text(config, "tls.key"),
    };
    const struct ng_str *roots = NULL;
    size_t count = config_list(config, "roots", &roots);
    /* Only the default root (`files` in the data directory) is made. A configured one is not: a
     * mistyped name would become an empty root. */
    if (!config_is_set(config, "roots") && count == 1 && mkdir(roots[0].data, S_IRWXU) != 0 &&
        errno != EEXIST) {
        char reason[GATEWAY_ERRNO_TEXT];
        return call_fail(call, NG_EUNAVAILABLE, "the root %s cannot be made: %s", roots[0].data,
                         strerror_r(errno, reason, sizeof(reason)));
    }
    if (gateway->files == NULL) {
        gateway->repeat_refused = files_repeat_refused;
        return files_open(call, gateway->store, roots, count, &own, &gateway->files);
    }
    return files_set_roots(gateway->files, call, roots, count, &own);
}

static int open_files(struct gateway *gateway, struct call *call, const void *user)
{
    (void)user;
    int rc = gateway_set_files(gateway, call, gateway->config);
    const struct disk_roots roots = {gateway->files, files_each_disk, files_each_gone};
    disk_set_roots(gateway->disk, &roots);
    return rc;
}

/* Reads the keys that other gateways made and revoked. */
static int gateway_look(void *user, struct call *call)
{
    struct gateway *gateway = user;
    return keys_look(gateway->keys, call);
}

/* Reads what else other gateways on the same documents changed. */
static int gateway_poll(void *user, struct call *call)
{
    struct gateway *gateway = user;
    int rc = files_recover_rest(gateway->files, call);
    void *tasks = atomic_load(&gateway->tasks.self);
    if (rc == NG_OK && tasks != NULL) {
        rc = gateway->tasks.poll(tasks, call);
    }
    if (rc == NG_OK) { /* saves that a kill cut off are complete by now */
        audit_shared_step(gateway->audit.shared, call);
    }
    return rc;
}

static int open_journal(struct gateway *gateway, struct call *call, const void *user)
{
    const struct ng_journal *backend = user;
    const char *prefix = backend != NULL ? backend->name : "journal";
    /* The recorder declares its collection first: the delivery of the journal skips the events
     * of other collections. */
    int rc = record_open(gateway, call, &gateway->recorder);
    if (rc != NG_OK) {
        return rc;
    }
    return journal_open(call, gateway, backend, config_view(gateway->config, prefix),
                        &gateway->journal);
}

static int gateway_open_journal(struct gateway *gateway, struct buf *error)
{
    const char *name = config_text(gateway->config, "journal").data;
    const struct ng_journal *backend = NULL;
    int rc = NG_OK;
    if (strcmp(name, "documents") != 0) {
        struct module *module = NULL;
        rc = gateway_load_backend(gateway, NG_KIND_JOURNAL, "journal", name, "documents",
                                  &module, error);
        if (rc == NG_OK) {
            backend = &module->desc.journal;
            rc = config_declare(gateway->config, backend->name, backend->options,
                                backend->option_count, sizeof(struct ng_option), error);
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    return gateway_step(gateway, open_journal, backend, error);
}

/* ---- upkeep ---- */

static void upkeep_done(struct call *call, void *user)
{
    struct gateway *gateway = user;
    if (call->final.rc != NG_OK) {
        log_write(NG_LOG_WARNING, "store", "upkeep: %.*s", (int)call->final.message.len,
                  call->final.message.data);
    }
    atomic_store(&gateway->upkeep_runs, false);
    call_unref(call);
}

static int first_error(int first, int second)
{
    return first != NG_OK ? first : second;
}

static int upkeep_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct gateway *gateway = call->gateway;
    (void)user;
    alloc_trim();
    disk_look(gateway->disk);
    disk_look_roots(gateway->disk);
    int rc = store_maintain(gateway->store, call);
    rc = first_error(rc, host_purge_upkeep(gateway, call));
    rc = first_error(rc, journal_keep_run(gateway->journal, call));
    rc = first_error(rc, keys_upkeep(gateway->keys, call));
    void *tasks = atomic_load(&gateway->tasks.self);
    if (tasks != NULL) {
        rc = first_error(rc, gateway->tasks.upkeep(tasks, call));
    }
    return rc;
}

static void gateway_upkeep(void *user)
{
    struct gateway *gateway = user;
    audit_refusals_tell(gateway->refusals);
    if (atomic_load(&gateway->stopping) || atomic_exchange(&gateway->upkeep_runs, true)) {
        return;
    }
    struct call *call = call_new(gateway);
    if (call == NULL) {
        atomic_store(&gateway->upkeep_runs, false);
        return;
    }
    call->lane = ng_str_of("/"); /* not an agent's lane: it waits for no agent's calls */
    call->done = upkeep_done;
    call->done_user = gateway;
    if (dispatch_step(call, upkeep_step, NULL) == NG_OK) {
        upkeep_done(call, gateway);
    }
}

/* ---- opening and closing ---- */

void gateway_take_limits(struct gateway *gateway, const struct config *config)
{
    struct metrics *metrics = gateway->metrics;
    const struct {
        const char *key;
        enum metrics_limit limit;
    } known[] = {
        {"limits.body", METRICS_BODY},
        {"limits.result", METRICS_RESULT},
        {"limits.buffered", METRICS_BUFFERED},
        {"limits.depth", METRICS_DEPTH},
        {"limits.connections", METRICS_CONNECTIONS},
        {"limits.streams", METRICS_STREAMS},
        {"limits.queue", METRICS_QUEUE},
    };
    atomic_store(&gateway->limits.body, (size_t)config_int(config, "limits.body"));
    atomic_store(&gateway->limits.result, (size_t)config_int(config, "limits.result"));
    atomic_store(&gateway->limits.answer, (size_t)config_int(config, "tools.max_answer"));
    atomic_store(&gateway->limits.buffered, (size_t)config_int(config, "limits.buffered"));
    atomic_store(&gateway->limits.version, config_bool(config, "history.files")
                                               ? (size_t)config_int(config, "history.max_file")
                                               : 0);
    atomic_store(&gateway->limits.depth, (unsigned)config_int(config, "limits.depth"));
    atomic_store(&gateway->limits.connections,
                 (unsigned)config_int(config, "limits.connections"));
    atomic_store(&gateway->limits.streams, (unsigned)config_int(config, "limits.streams"));
    atomic_store(&gateway->limits.queue, (unsigned)config_int(config, "limits.queue"));
    atomic_store(&gateway->limits.call_timeout_ms, config_int(config, "limits.call_timeout"));
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        metrics_limit(metrics, known[i].limit, config_int(config, known[i].key));
    }
    metrics_limit(metrics, METRICS_CALL_TIMEOUT,
                  config_int(config, "limits.call_timeout") / 1000);
    gateway_audit_limits(gateway, config);
    if (gateway->pool != NULL) {
        pool_set_queue(gateway->pool, (unsigned)config_int(config, "limits.queue"));
    }
    if (gateway->store != NULL) {
        store_set_keep(gateway->store, config_int(config, "history.keep"));
        journal_set_keep(gateway->journal, config_int(config, "journal.keep"));
    }
}

void gateway_read_limits(struct gateway *gateway)
{
    const struct config *config = gateway->config;
    gateway->limits.workers = (unsigned)config_int(config, "limits.workers");
    gateway->limits.stream_backlog = (unsigned)config_int(config, "limits.stream_backlog");
    metrics_limit(gateway->metrics, METRICS_WORKERS, gateway->limits.workers);
    metrics_limit(gateway->metrics, METRICS_STREAM_BACKLOG, gateway->limits.stream_backlog);
    gateway_take_limits(gateway, config);
}

static int gateway_describe(struct gateway *gateway, struct module **ret_backend,
                            struct buf *error)
{
    gateway->metrics = metrics_new();
    gateway->registry = registry_new();
    gateway->idempotency = idempotency_new();
    gateway->streams = quota_new();
    gateway->buffered = quota_new();
    gateway->scans = quota_new();
    gateway->modules = alloc_zeroed(GATEWAY_MODULES_MAX, sizeof(struct module *));
    if (gateway->metrics == NULL || gateway->registry == NULL || gateway->idempotency == NULL ||
        gateway->streams == NULL || gateway->buffered == NULL || gateway->scans == NULL ||
        gateway->modules == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc = gateway_add_plugins(gateway, error);
    if (rc == NG_OK) {
        rc = gateway_load_documents(gateway, ret_backend, error);
    }
    for (int kind = NG_KIND_PLUGIN; kind <= NG_KIND_JOURNAL && rc == NG_OK; kind++) {
        rc = gateway_declare_unused(gateway, gateway->config, (enum ng_module_kind)kind, false,
                                    error);
    }
    if (rc == NG_OK) {
        rc = config_finish(gateway->config, error);
    }
    if (rc == NG_OK) {
        gateway_read_limits(gateway);
    }
    return rc;
}

static int gateway_open_all(struct gateway *gateway, const struct module *backend,
                            int64_t wait_ms, struct buf *error)
{
    gateway->data_dir = gateway_data_dir(gateway->config, true, error);
    if (gateway->data_dir == NULL) {
        return NG_EUNAVAILABLE;
    }
    int rc = gateway_lock_data_dir(gateway->data_dir, wait_ms, &gateway->lock_fd, error);
    if (rc == NG_OK) {
        crash_forget_old(gateway->data_dir, clock_unix_ms() / 1000);
        crash_remember_in(gateway->data_dir);
        gateway->disk = disk_new(gateway->data_dir);
        rc = gateway->disk != NULL ? NG_OK : NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        rc = watchdog_new(gateway->metrics, &gateway->watchdog);
    }
    if (rc == NG_OK) {
        rc = pool_new(gateway->limits.workers, gateway->limits.queue, gateway->metrics,
                      &gateway->pool);
    }
    if (rc == NG_OK) {
        gateway->timers = timers_new(gateway_upkeep, gateway, GATEWAY_UPKEEP_MS);
        gateway->refusals = audit_refusals_new(AUDIT_REFUSALS_LINES);
        rc = gateway->timers != NULL && gateway->refusals != NULL ? NG_OK : NG_EINTERNAL;
    }
    if (rc == NG_OK) {
        rc = gateway_step(gateway, open_store, &backend->desc.documents, error);
    }
    if (rc == NG_OK) {
        rc = gateway_step(gateway, open_keys, NULL, error);
    }
    if (rc == NG_OK) {
        rc = gateway_step(gateway, open_files, NULL, error);
    }
    if (rc == NG_OK) { /* recovery after a kill is complete by now, and no call is under way */
        rc = gateway_open_audit(gateway, error);
    }
    if (rc == NG_OK) {
        rc = gateway_open_journal(gateway, error);
    }
    if (rc == NG_OK) {
        rc = feed_new(gateway, gateway->limits.stream_backlog, &gateway->feed);
    }
    if (rc == NG_OK) {
        rc = gateway_start_plugins(gateway, error);
    }
    if (rc == NG_OK) {
        timers_begin_upkeep(gateway->timers);
        cluster_each_look(gateway->cluster, gateway_look, gateway);
        cluster_each_step(gateway->cluster, gateway_poll, gateway);
        rc = cluster_start(gateway->cluster);
    }
    return rc;
}

int gateway_open(struct config *config, enum gateway_parts parts, int64_t wait_ms,
                 struct gateway **ret, struct buf *error)
{
    struct gateway *gateway = alloc_zeroed(1, sizeof(*gateway));
    if (gateway == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    sqlite_memory_settle(); /* no module has used SQLite yet */
    call_init_spares(gateway);
    buf_init(&gateway->left_out, GATEWAY_LEFT_OUT_MAX);
    gateway->host = call_host;
    gateway->config = config;
    gateway->lock_fd = -1;
    struct module *backend = NULL;
    int rc = gateway_describe(gateway, &backend, error);
    if (rc == NG_OK && parts == GATEWAY_FULL) {
        rc = gateway_open_all(gateway, backend, wait_ms, error);
    }
    if (rc != NG_OK) {
        if (error->len == 0) {
            buf_add_c(error, "the gateway could not be opened");
        }
        gateway->config = NULL; /* the caller frees it */
        gateway_close(gateway);
        return rc;
    }
    *ret = gateway;
    return NG_OK;
}

bool gateway_drain(struct gateway *gateway, int64_t wait_ms)
{
    atomic_store(&gateway->stopping, true);
    int64_t until = clock_monotonic_ns() + wait_ms * 1000000;
    while (atomic_load(&gateway->active) > 0) {
        if (clock_monotonic_ns() >= until) {
            return false;
        }
        struct timespec step = {0, 1000000};
        (void)nanosleep(&step, NULL);
    }
    return true;
}

/* Ends all calls, then everything that they use. Frees nothing that a call could still use. */
static void gateway_stop(struct gateway *gateway)
{
    atomic_store(&gateway->stopping, true);
    atomic_store(&gateway->cancelling, true);
    /* `cancelling` ends the deferred calls; modules are stopped after them. */
    (void)gateway_drain(gateway, GATEWAY_CLOSE_MS);
    /* Remaining calls use timers and workers until they end: these are stopped first, and freed
     * later. */
    if (gateway->timers != NULL) {
        timers_stop(gateway->timers);
    }
    cluster_stop(gateway->cluster);
    if (gateway->journal != NULL) {
        journal_stop(gateway->journal);
    }
    if (gateway->pool != NULL) {
        pool_stop(gateway->pool);
    }
    record_close(gateway->recorder); /* all calls have ended */
    keys_store_last(gateway->keys);
    store_stop(gateway->store);
    feed_free(gateway->feed);
    if (gateway->registry != NULL) {
        registry_stop(gateway->registry, gateway->watchdog);
    }
}

void gateway_close(struct gateway *gateway)
{
    if (gateway == NULL) {
        return;
    }
    gateway_stop(gateway);
    gateway_audit_seen(gateway);
    files_close(gateway->files);
    store_close(gateway->store);
    undo_close(gateway);
    if (gateway->tasks.self != NULL) {
        gateway->tasks.close(gateway->tasks.self);
    }
    journal_close(gateway->journal);
    gateway_close_audit(gateway); /* no call is left */
    cluster_free(gateway->cluster);
    pool_free(gateway->pool);
    keys_close(gateway->keys); /* after the store, which calls its watcher */
    timers_free(gateway->timers);
    audit_refusals_free(gateway->refusals);
    watchdog_free(gateway->watchdog);
    disk_close(gateway->disk);
    registry_free(gateway->registry);
    for (size_t i = gateway->module_count; i > 0; i--) {
        loader_close(gateway->modules[i - 1]);
    }
    free(gateway->modules);
    idempotency_free(gateway->idempotency);
    quota_free(gateway->streams);
    quota_free(gateway->buffered);
    quota_free(gateway->scans);
    metrics_free(gateway->metrics);
    config_free(gateway->config);
    if (gateway->lock_fd >= 0) {
        close(gateway->lock_fd);
    }
    if (gateway->data_dir != NULL) {
        crash_remember_in(NULL);
    }
    buf_done(&gateway->left_out);
    call_free_spares(gateway);
    free(gateway->data_dir);
    free(gateway);
}
