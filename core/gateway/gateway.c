/* SPDX-License-Identifier: MIT */
/* gateway.c - opening and closing one gateway: data directory, modules, store, files, plugins.
 */
#include "core/call/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/trust.h"
#include "core/call/quota.h"
#include "core/cluster/cluster.h"
#include "core/dispatch/record.h"
#include "core/dispatch/timers.h"
#include "core/fault/crash.h"
#include "core/feed/feed.h"
#include "core/journal/journal.h"
#include "core/keys/keys.h"
#include "core/module/watchdog.h"
#include "core/store/disk.h"
#include "core/store/idempotency.h"
#include "gateway_modules.h"

#define GATEWAY_UPKEEP_MS ((int64_t)60 * 1000)
#define GATEWAY_LOCK_STEP_MS 20
/* What a cell that does not let itself be interrupted takes to be given up, and more. */
#define GATEWAY_CLOSE_MS 8000
#define GATEWAY_ERRNO_TEXT 128
/* Names of plugins left out, for /readyz. */
#define GATEWAY_LEFT_OUT_MAX ((size_t)16 * 1024)

static const char *errno_text(int number, char *text, size_t size)
{
    return strerror_r(number, text, size);
}

/* ---- the data directory ---- */

char *gateway_data_dir(const struct config *config, bool make, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    struct ng_str path = config_text(config, "data_dir");
    char *dir = alloc_zeroed(1, path.len + 1);
    if (dir == NULL) {
        buf_add_c(error, "out of memory");
        return NULL;
    }
    memcpy(dir, path.data, path.len);
    /* Every missing parent as well: ~/.local/share may not be there yet. */
    for (size_t i = 1; make && i <= path.len; i++) {
        if (dir[i] != '/' && dir[i] != '\0') {
            continue;
        }
        char kept = dir[i];
        dir[i] = '\0';
        int rc = mkdir(dir, 0700);
        int number = errno;
        dir[i] = kept;
        if (rc != 0 && number != EEXIST && !(number == EROFS && kept != '\0')) {
            buf_printf(
                error,
                "the data directory %s cannot be made: %s; choose another with --data-dir", dir,
                errno_text(number, reason, sizeof(reason)));
            free(dir);
            return NULL;
        }
    }
    return dir;
}

int gateway_check_data_dir(const char *data_dir, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    char owner[GATEWAY_ERRNO_TEXT];
    struct stat info;
    if (stat(data_dir, &info) != 0) {
        if (errno == ENOENT) {
            return NG_OK;
        }
        buf_printf(error, "%s: %s", data_dir, errno_text(errno, reason, sizeof(reason)));
        return NG_EUNAVAILABLE;
    }
    if (!S_ISDIR(info.st_mode)) {
        buf_printf(error, "%s is no directory; choose another path", data_dir);
        return NG_EUNAVAILABLE;
    }
    if (info.st_uid != geteuid()) {
        trust_user_name(info.st_uid, owner, sizeof(owner));
        buf_printf(error, "%s belongs to user %s; run this as that user: sudo -u ", data_dir,
                   owner);
        trust_add_word(error, owner);
        buf_add_c(error, " notegate ..., or give it to this one: `chown -Rh ");
        trust_user_name(geteuid(), owner, sizeof(owner));
        buf_printf(error, "%s ", owner + (owner[0] == '#'));
        trust_add_word(error, data_dir);
        buf_add_char(error, '`');
        return NG_EFORBIDDEN;
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        buf_printf(error, "%s has mode %04o: other users can get in; do `chmod 700 ", data_dir,
                   (unsigned)(info.st_mode & 0777));
        trust_add_word(error, data_dir);
        buf_add_char(error, '`');
        return NG_EFORBIDDEN;
    }
    if (access(data_dir, R_OK | W_OK | X_OK) != 0) {
        buf_printf(error, "%s cannot be read and written by its user; do `chmod 700 ",
                   data_dir);
        trust_add_word(error, data_dir);
        buf_add_char(error, '`');
        return NG_EFORBIDDEN;
    }
    return NG_OK;
}

/* Who holds the lock, as it wrote itself into the file. */
static void lock_owner(int fd, char *owner, size_t size)
{
    ssize_t len = pread(fd, owner, size - 1, 0);
    owner[i64_max(len, 0)] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
}

static void lock_sign(int fd)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "process %ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, line, (size_t)len, 0) != len) {
        log_write(NG_LOG_DEBUG, "gateway", "the lock file could not be signed");
    }
}

int gateway_lock_data_dir(const char *data_dir, int64_t wait_ms, int *ret_fd, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    char owner[128];
    struct buf path;
    buf_init(&path, 65536);
    buf_printf(&path, "%s/%s", data_dir, NOTEGATE_LOCK_NAME);
    int fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        buf_printf(error, "the lock file %s cannot be opened: %s", buf_cstr(&path),
                   errno_text(errno, reason, sizeof(reason)));
        buf_done(&path);
        return NG_EUNAVAILABLE;
    }
    buf_done(&path);
    int64_t until = clock_monotonic_ns() + wait_ms * 1000000;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (clock_monotonic_ns() >= until) {
            lock_owner(fd, owner, sizeof(owner));
            buf_printf(error,
                       "the data directory %s is in use by %s; stop it, or choose another with "
                       "--data-dir",
                       data_dir, owner[0] != '\0' ? owner : "another process");
            close(fd);
            return NG_EBUSY;
        }
        struct timespec step = {0, (long)GATEWAY_LOCK_STEP_MS * 1000000};
        (void)nanosleep(&step, NULL);
    }
    lock_sign(fd);
    *ret_fd = fd;
    return NG_OK;
}

/* ---- storage ---- */

static int call_error(struct call *call, int rc, struct buf *error)
{
    if (rc != NG_OK) {
        struct ng_str text = call->staged.message;
        buf_printf(error, "%.*s", text.data != NULL ? (int)text.len : 18,
                   text.data != NULL ? text.data : "it did not say why");
    }
    return rc;
}

static int gateway_load_documents(struct gateway *gateway, struct module **ret,
                                  struct buf *error)
{
    struct ng_str name = config_text(gateway->config, "documents");
    bool memory = str_is(name, "memory");
    struct buf text;
    buf_init(&text, 4096);
    buf_add_str(&text, memory ? ng_str_of("sqlite") : name);
    int rc = gateway_load_backend(gateway, NG_KIND_DOCUMENTS, "documents", buf_cstr(&text),
                                  "memory", ret, error);
    buf_done(&text);
    if (rc == NG_OK) {
        const struct ng_documents *desc = &(*ret)->desc.documents;
        rc = config_declare(gateway->config, desc->name, desc->options, desc->option_count,
                            sizeof(struct ng_option), error);
    }
    return rc;
}

static int gateway_open_store(struct gateway *gateway, const struct ng_documents *backend,
                              struct buf *error)
{
    struct call *call = call_new(gateway);
    if (call == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc =
        store_open(call, backend, config_view(gateway->config, backend->name), &gateway->store);
    if (rc == NG_OK) {
        rc = cluster_open(gateway, call, &gateway->cluster);
    }
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = gateway_declare_collections(gateway, call, plugins[i]);
    }
    call_error(call, rc, error);
    call_unref(call);
    return rc;
}

static int gateway_open_keys(struct gateway *gateway, struct buf *error)
{
    struct call *call = call_new(gateway);
    if (call == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    int rc = call_error(call, keys_open(gateway, call, &gateway->keys), error);
    call_unref(call);
    return rc;
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
    /* The default, `files` in the data directory. A folder that was named is never made: a
     * mistyped name would become an empty root. */
    if (!config_is_set(config, "roots") && count == 1 && mkdir(roots[0].data, S_IRWXU) != 0 &&
        errno != EEXIST) {
        char reason[GATEWAY_ERRNO_TEXT];
        return call_fail(call, NG_EUNAVAILABLE, "the root %s cannot be made: %s", roots[0].data,
                         errno_text(errno, reason, sizeof(reason)));
    }
    if (gateway->files == NULL) {
        return files_open(call, gateway->store, roots, count, &own, &gateway->files);
    }
    return files_set_roots(gateway->files, call, roots, count, &own);
}

static int gateway_open_files(struct gateway *gateway, struct buf *error)
{
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = gateway_set_files(gateway, call, gateway->config);
    }
    if (call != NULL) {
        call_error(call, rc, error);
    }
    call_unref(call);
    return rc;
}

static int gateway_open_journal(struct gateway *gateway, struct buf *error)
{
    struct ng_str name = config_text(gateway->config, "journal");
    const struct ng_journal *backend = NULL;
    struct ng_conf *conf = config_view(gateway->config, "journal");
    int rc = NG_OK;
    if (!str_is(name, "documents")) {
        struct module *module = NULL;
        struct buf text;
        buf_init(&text, 4096);
        buf_add_str(&text, name);
        rc = gateway_load_backend(gateway, NG_KIND_JOURNAL, "journal", buf_cstr(&text),
                                  "documents", &module, error);
        buf_done(&text);
        if (rc == NG_OK) {
            backend = &module->desc.journal;
            rc = config_declare(gateway->config, backend->name, backend->options,
                                backend->option_count, sizeof(struct ng_option), error);
            conf = config_view(gateway->config, backend->name);
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct call *call = call_new(gateway);
    if (call == NULL) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    /* First its collection: the delivery passes over events that are not for the journal. */
    rc = record_open(gateway, call, &gateway->recorder);
    if (rc == NG_OK) {
        rc = journal_open(call, gateway, backend, conf, &gateway->journal);
    }
    call_error(call, rc, error);
    call_unref(call);
    return rc;
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

static int upkeep_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct gateway *gateway = call->gateway;
    (void)user;
    alloc_trim();
    disk_look(gateway->disk);
    disk_look_roots(gateway->disk, gateway->files);
    int rc = journal_pins_load(gateway->journal, call);
    if (rc == NG_OK) {
        rc = store_maintain(gateway->store, call);
    }
    int keep_rc = journal_keep_run(gateway->journal, call);
    if (rc == NG_OK) {
        rc = keep_rc;
    }
    int keys_rc = keys_upkeep(gateway->keys, call);
    if (rc == NG_OK) {
        rc = keys_rc;
    }
    void *tasks = atomic_load(&gateway->tasks.self);
    if (tasks == NULL) {
        return rc;
    }
    int tasks_rc = gateway->tasks.upkeep(tasks, call);
    if (rc != NG_OK) {
        return rc;
    }
    return tasks_rc;
}

static void gateway_upkeep(void *user)
{
    struct gateway *gateway = user;
    if (atomic_load(&gateway->stopping) || atomic_exchange(&gateway->upkeep_runs, true)) {
        return;
    }
    struct call *call = call_new(gateway);
    if (call == NULL) {
        atomic_store(&gateway->upkeep_runs, false);
        return;
    }
    call->lane = ng_str_of("/"); /* no agent's: no agent's calls are in its way */
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
    atomic_store(&gateway->limits.buffered, (size_t)config_int(config, "limits.buffered"));
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
    gateway->modules = alloc_zeroed(GATEWAY_MODULES_MAX, sizeof(struct module *));
    if (gateway->metrics == NULL || gateway->registry == NULL || gateway->idempotency == NULL ||
        gateway->streams == NULL || gateway->buffered == NULL || gateway->modules == NULL) {
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
        if (gateway->disk == NULL) {
            rc = NG_EINTERNAL;
        } else {
            rc = watchdog_new(gateway->metrics, &gateway->watchdog);
        }
    }
    if (rc == NG_OK) {
        rc = pool_new(gateway->limits.workers, gateway->limits.queue, gateway->metrics,
                      &gateway->pool);
    }
    if (rc == NG_OK) {
        gateway->timers = timers_new(gateway_upkeep, gateway, GATEWAY_UPKEEP_MS);
        if (gateway->timers == NULL) {
            rc = NG_EINTERNAL;
        } else {
            rc = NG_OK;
        }
    }
    if (rc == NG_OK) {
        rc = gateway_open_store(gateway, &backend->desc.documents, error);
    }
    if (rc == NG_OK) {
        rc = gateway_open_keys(gateway, error);
    }
    if (rc == NG_OK) {
        rc = gateway_open_files(gateway, error);
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
        gateway->config = NULL; /* stays the caller's */
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

void gateway_close(struct gateway *gateway)
{
    if (gateway == NULL) {
        return;
    }
    atomic_store(&gateway->stopping, true);
    atomic_store(&gateway->cancelling, true);
    /* Those that wait without a thread end by that; modules are stopped after them. */
    (void)gateway_drain(gateway, GATEWAY_CLOSE_MS);
    /* Calls that are left use timers and workers to their end: nothing is freed before them. */
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
    files_close(gateway->files);
    store_close(gateway->store);
    if (gateway->tasks.self != NULL) {
        gateway->tasks.close(gateway->tasks.self);
    }
    journal_close(gateway->journal);
    cluster_free(gateway->cluster);
    pool_free(gateway->pool);
    keys_close(gateway->keys); /* the store told it of changes to the end */
    timers_free(gateway->timers);
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
