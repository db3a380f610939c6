/* SPDX-License-Identifier: MIT */
/* reload.c - compares the configuration read again with the one that holds, and takes over what
 * can change. */
#include "reload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "api/http/http_transport.h"
#include "api/listen/http_names.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config_log.h"
#include "core/config/gateway_options.h"
#include "core/dispatch/audit.h"
#include "core/gateway/gateway_open.h"
#include "core/journal/journal.h"
#include "core/keys/keys.h"
#include "core/module/loader.h"
#include "core/module/registry.h"
#include "core/store/disk.h"
#include "reload_state.h"

/* Descriptors for other things than connections: databases, files, kernels, the log. */
#define RELOAD_SPARE_FILES 256

/* ---- comparing ---- */

static bool reload_lists_equal(const struct config *a, const struct config *b, const char *key)
{
    const struct ng_str *a_items = NULL;
    const struct ng_str *b_items = NULL;
    size_t count = config_list(a, key, &a_items);
    if (config_list(b, key, &b_items) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(a_items[i], b_items[i])) {
            return false;
        }
    }
    return true;
}

static bool reload_equal(const struct config *a, const struct config *b, const char *key,
                         enum ng_option_type type)
{
    switch (type) {
    case NG_OPTION_TEXT:
        return str_equal(config_text(a, key), config_text(b, key));
    case NG_OPTION_BOOL:
        return config_bool(a, key) == config_bool(b, key);
    case NG_OPTION_LIST:
        return reload_lists_equal(a, b, key);
    case NG_OPTION_NUMBER: {
        double x = config_number(a, key);
        double y = config_number(b, key);
        return !(x < y) && !(x > y);
    }
    case NG_OPTION_INT:
    case NG_OPTION_SIZE:
    case NG_OPTION_DURATION:
        break;
    }
    return config_int(a, key) == config_int(b, key);
}

/* Also those that did not change: their folders may be others by now. */
static int reload_roots(struct gateway *gateway, const struct config *config, struct buf *error)
{
    struct call *call = call_new(gateway);
    if (call == NULL) {
        return NG_EINTERNAL;
    }
    int rc = gateway_set_files(gateway, call, config);
    if (rc != NG_OK) {
        struct ng_str why = call->staged.message;
        buf_printf(error, "roots: %.*s", (int)why.len, why.data);
    } else if (gateway->disk != NULL) {
        disk_look_roots(gateway->disk);
    }
    call_unref(call);
    return rc;
}

/* ---- limits ---- */

void reload_fit_files(struct gateway *gateway)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    unsigned connections = atomic_load(&gateway->limits.connections);
    rlim_t wanted = (rlim_t)connections + RELOAD_SPARE_FILES;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) {
        return;
    }
    unsigned fit = (unsigned)(limit.rlim_cur / 2);
    if (limit.rlim_cur > 2 * RELOAD_SPARE_FILES) {
        fit = (unsigned)(limit.rlim_cur - RELOAD_SPARE_FILES);
    }
    log_write(NG_LOG_WARNING, "serve",
              "this process may open %llu files, limits.connections needs %u and %d more: at "
              "most %u connections are accepted; raise the limit (ulimit -n, LimitNOFILE)",
              (unsigned long long)limit.rlim_cur, connections, RELOAD_SPARE_FILES, fit);
    atomic_store(&gateway->limits.connections, fit);
    if (atomic_load(&gateway->limits.streams) > fit / 2) {
        atomic_store(&gateway->limits.streams, fit / 2);
    }
    metrics_limit(gateway->metrics, METRICS_CONNECTIONS, (int64_t)fit);
    metrics_limit(gateway->metrics, METRICS_STREAMS,
                  (int64_t)atomic_load(&gateway->limits.streams));
}

/* ---- what changed ---- */

static void reload_option(struct reload *reload, const char *key, bool both_tls,
                          const struct config *config, struct reload_report *report)
{
    switch (reload_kind_of(key)) {
    case RELOAD_TAKEN:
        break;
    case RELOAD_SERVER:
        if (reload->server != NULL) {
            break;
        }
        return;
    case RELOAD_ROOTS:
        if (reload_roots_hold(reload->gateway, config)) {
            break;
        }
        reload_tell(report, key, false, "changed; takes effect after a restart");
        return;
    case RELOAD_PLUGINS:
        return;
    case RELOAD_TLS:
        if (both_tls) {
            return; /* the files are checked in any case */
        }
        reload_tell(report, key, false, "changed; takes effect after a restart");
        return;
    case RELOAD_RESTART:
        reload_tell(report, key, false, "changed; takes effect after a restart");
        return;
    }
    reload_tell(report, key, true, "the new value is in effect");
}

/* started: the configuration that values which need a restart still have: each reload reports
 * them until the restart, or until they have the old value again. */
static void reload_options(struct reload *reload, const struct config *config,
                           const struct config *started, const char *prefix,
                           const struct ng_option *options, size_t count,
                           struct reload_report *report)
{
    const struct config *known = started;
    if (reload->known != NULL) {
        known = reload->known;
    }
    bool both_tls = reload_tls_holds(reload, config);
    for (size_t i = 0; i < count; i++) {
        char key[128];
        (void)snprintf(key, sizeof(key), "%s%s%s", prefix, text_if(prefix[0], "."),
                       options[i].name);
        const struct config *old = known;
        if (reload_kind_of(key) == RELOAD_RESTART) {
            old = started;
        }
        if (!reload_equal(old, config, key, options[i].type)) {
            reload_option(reload, key, both_tls, config, report);
        }
    }
}

/* A module's name and options, whatever its kind. */
static const struct ng_option *reload_module(const struct module *module, const char **ret_name,
                                             size_t *ret_count)
{
    switch (module->kind) {
    case NG_KIND_PLUGIN:
        *ret_name = module->desc.plugin.name;
        *ret_count = module->desc.plugin.option_count;
        return module->desc.plugin.options;
    case NG_KIND_DOCUMENTS:
        *ret_name = module->desc.documents.name;
        *ret_count = module->desc.documents.option_count;
        return module->desc.documents.options;
    case NG_KIND_JOURNAL:
        break;
    }
    *ret_name = module->desc.journal.name;
    *ret_count = module->desc.journal.option_count;
    return module->desc.journal.options;
}

static int reload_declare(struct gateway *gateway, struct config *config, struct buf *error)
{
    int rc = NG_OK;
    for (size_t i = 0; i < gateway->module_count && rc == NG_OK; i++) {
        const char *name = "";
        size_t count = 0;
        const struct ng_option *options = reload_module(gateway->modules[i], &name, &count);
        rc = config_declare(config, name, options, count, sizeof(struct ng_option), error);
    }
    return rc;
}

/* Everything that can fail and would leave the rest undone. */
static int reload_read(struct reload *reload, struct config **ret, struct gateway_added *added,
                       struct buf *error)
{
    struct config *config = NULL;
    struct gateway *gateway = reload->gateway;
    const struct config *old = reload_known(reload);
    added->count = 0;
    added->modules_before = gateway->module_count;
    int rc = config_load(reload->input, &config, error);
    if (rc == NG_OK) {
        rc = reload_declare(gateway, config, error);
    }
    if (rc == NG_OK) {
        rc = gateway_make_new_plugins(gateway, config, added, error);
    }
    for (int kind = NG_KIND_PLUGIN; kind <= NG_KIND_JOURNAL && rc == NG_OK; kind++) {
        rc = gateway_declare_unused(gateway, config, (enum ng_module_kind)kind, false, error);
    }
    if (rc == NG_OK) {
        rc = config_finish(config, error);
    }
    if (rc == NG_OK && reload->server != NULL) {
        rc = http_names_check(config, error);
    }
    if (rc == NG_OK) {
        rc = journal_check_zone(config,
                                error); /* it holds after a restart, which it would stop */
    }
    if (rc == NG_OK && gateway->files != NULL &&
        (reload_roots_hold(gateway, config) || reload_lists_equal(old, config, "roots"))) {
        rc = reload_roots(gateway, config, error);
    }
    if (rc != NG_OK) {
        config_free(config); /* before the modules whose keys it knows */
        gateway_drop_added(gateway, added);
        return rc;
    }
    *ret = config;
    return NG_OK;
}

/* Each by itself: one that does not start leaves the others as they are. */
static void reload_plugins(struct reload *reload, const struct config *config,
                           struct gateway_added *added, struct reload_report *report)
{
    const char *removed[GATEWAY_MODULES_MAX];
    for (size_t i = 0; i < added->count; i++) {
        struct plugin *plugin = added->plugins[i];
        struct buf error;
        buf_init(&error, RELOAD_ERROR_MAX);
        if (gateway_start_added(reload->gateway, plugin, &error) == NG_OK) {
            reload_tell(report, "plugins", true, "%s was added, with %zu tool%s",
                        plugin->desc.name, plugin->tool_count, plural(plugin->tool_count));
        } else {
            reload_tell(report, "plugins", false,
                        "%s was not added; the next start tries again: %s", plugin->desc.name,
                        buf_cstr(&error));
        }
        buf_done(&error);
    }
    for (size_t i = 0; i < reload->gateway->module_count; i++) {
        const struct module *module = reload->gateway->modules[i];
        if (loader_replaced(module)) {
            reload_tell(report, "plugins", false,
                        "the file %s was replaced; it is loaded after a restart", module->path);
        }
    }
    size_t count = gateway_removed_plugins(reload->gateway, config, removed, NG_COUNT(removed));
    const struct config *old = reload_known(reload);
    for (size_t i = 0; i < count && !reload_lists_equal(old, config, "plugins"); i++) {
        reload_tell(report, "plugins", false, "%s stays until a restart", removed[i]);
    }
}

/* A configuration that plugins look into lives as long as they do. */
static void reload_keep(struct reload *reload, struct config *config, bool for_plugins)
{
    struct config *old = reload->known;
    lock_take(&reload->asked.lock);
    reload->known = config;
    lock_release(&reload->asked.lock);
    if (reload->known_for_plugins) {
        reload->held[reload->held_count++] = old;
    } else {
        config_free(old);
    }
    reload->known_for_plugins = for_plugins;
}

/* The configuration that holds for a module: a plugin keeps the one it came with. */
static const struct config *reload_held_by(const struct reload *reload, size_t at)
{
    const struct gateway *gateway = reload->gateway;
    const struct plugin *plugin = registry_of_module(gateway->registry, gateway->modules[at]);
    if (plugin != NULL && plugin->conf != NULL) {
        return config_of_view(plugin->conf);
    }
    if (at < reload->start_modules) {
        return gateway->config;
    }
    return reload->known;
}

static void reload_take(struct reload *reload, struct config *config,
                        struct gateway_added *added, struct reload_report *report)
{
    struct gateway *gateway = reload->gateway;
    const struct config *started = gateway->config;
    reload_options(reload, config, started, "", gateway_options, gateway_option_count, report);
    for (size_t i = 0; i < added->modules_before; i++) {
        const char *name = "";
        size_t count = 0;
        const struct ng_option *options = reload_module(gateway->modules[i], &name, &count);
        reload_options(reload, config, reload_held_by(reload, i), name, options, count, report);
    }
    gateway_take_limits(gateway, config);
    reload_fit_files(gateway);
    reload->shutdown_ms = config_int(config, "shutdown_timeout");
    reload->delay_ms = config_int(config, "shutdown_delay");
    reload_plugins(reload, config, added, report);
    if (reload->server != NULL) {
        http_server_reload(reload->server, config, report);
    }
    reload_keep(reload, config, added->count > 0);
    config_apply_log(config);
}

/* ---- requests ---- */

static size_t reload_waiters(struct reload *reload, struct call **ret, bool end)
{
    lock_take(&reload->asked.lock);
    size_t count = reload->asked.count;
    memcpy(ret, reload->asked.waiters, count * sizeof(struct call *));
    reload->asked.count = 0;
    reload->asked.ended = reload->asked.ended || end;
    lock_release(&reload->asked.lock);
    return count;
}

static void reload_answer(struct call *call, struct reload_report *report)
{
    struct buf text;
    buf_init(&text, RELOAD_MEMORY_MAX);
    int rc = report->rc;
    if (rc != NG_OK) {
        rc = call_fail(call, rc == NG_EINTERNAL ? rc : NG_EINVAL, "nothing was changed: %s",
                       buf_cstr(&report->error));
    } else if (reload_print(report, &text) == NG_OK) {
        rc = ng_reply(&call->pub, buf_str(&text));
    } else {
        rc = call_fail(call, NG_EINTERNAL, "out of memory");
    }
    buf_done(&text);
    call->pub.host->finish((struct ng_deferred *)(void *)call, rc);
}

int reload_ask(struct reload *reload, struct call *call)
{
    int rc = NG_EBUSY;
    lock_take(&reload->asked.lock);
    if (!reload->asked.ended && reload->asked.count < RELOAD_WAITERS_MAX) {
        (void)call->pub.host->defer(&call->pub);
        reload->asked.waiters[reload->asked.count++] = call;
        rc = NG_PENDING;
        (void)pthread_kill(reload->thread, SIGHUP);
    }
    lock_release(&reload->asked.lock);
    if (rc == NG_PENDING) {
        return rc;
    }
    return call_fail(call, rc, "too many reloads are waiting, or the gateway is stopping");
}

void reload_end(struct reload *reload)
{
    struct call *waiters[RELOAD_WAITERS_MAX];
    size_t count = reload_waiters(reload, waiters, true);
    for (size_t i = 0; i < count; i++) {
        int rc = call_fail(waiters[i], NG_EBUSY, "the gateway is stopping");
        waiters[i]->pub.host->finish((struct ng_deferred *)(void *)waiters[i], rc);
    }
}

/* ---- running ---- */

/* asker: the first call that waits for the reload; NULL: a signal asked. */
static void reload_audit(const struct reload *reload, const struct reload_report *report,
                         const struct call *asker)
{
    struct audit_event event = {
        .gateway = reload->gateway,
        .what = "reload",
        .outcome = report->rc == NG_OK ? "ok" : error_name(NULL, NG_EINVAL),
    };
    if (asker == NULL) {
        event.target = ng_str_of("signal");
    } else {
        audit_event_by(&event, asker);
    }
    audit_event(&event);
}

void reload_run(struct reload *reload, struct reload_report *report)
{
    struct call *waiters[RELOAD_WAITERS_MAX];
    struct config *config = NULL;
    struct gateway_added added;
    struct reload_report own;
    if (report == NULL) {
        reload_report_init(&own);
        report = &own;
    }
    /* A request that comes after this asks for another reload: the files may have been read by
     * then. */
    size_t count = reload_waiters(reload, waiters, false);
    report->rc = reload_read(reload, &config, &added, &report->error);
    if (report->rc != NG_OK) {
        log_write(NG_LOG_ERROR, "serve", "reload: nothing was changed: %s",
                  buf_cstr(&report->error));
    } else {
        reload_take(reload, config, &added, report);
        if (report->first == NULL) {
            log_write(NG_LOG_INFO, "serve", "reload: the configuration is the same");
        }
    }
    metrics_count(reload->gateway->metrics,
                  report->rc == NG_OK ? METRICS_RELOADS : METRICS_RELOAD_FAILURES);
    reload_audit(reload, report, count > 0 ? waiters[0] : NULL);
    for (size_t i = 0; i < count; i++) {
        reload_answer(waiters[i], report);
    }
    if (report == &own) {
        reload_report_done(&own);
    }
}

int64_t reload_shutdown_ms(const struct reload *reload)
{
    return reload->shutdown_ms;
}

int64_t reload_delay_ms(const struct reload *reload)
{
    return reload->delay_ms;
}

int reload_new(struct gateway *gateway, const struct config_input *input, struct reload **ret)
{
    struct reload *reload = alloc_zeroed(1, sizeof(*reload));
    if (reload == NULL) {
        return NG_EINTERNAL;
    }
    reload->gateway = gateway;
    reload->input = input;
    reload->start_modules = gateway->module_count;
    reload->thread = pthread_self();
    reload->shutdown_ms = config_int(gateway->config, "shutdown_timeout");
    reload->delay_ms = config_int(gateway->config, "shutdown_delay");
    lock_init(&reload->asked.lock, LOCK_RELOAD);
    *ret = reload;
    return NG_OK;
}

void reload_attach(struct reload *reload, struct http_server *server)
{
    reload->server = server;
    http_server_attach(server, reload);
}

void reload_free(struct reload *reload)
{
    if (reload != NULL) {
        config_free(reload->known);
        for (size_t i = 0; i < reload->held_count; i++) {
            config_free(reload->held[i]);
        }
        lock_done(&reload->asked.lock);
        free(reload);
    }
}
