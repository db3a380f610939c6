/* SPDX-License-Identifier: MIT */
/* reload.c - compares the configuration read again with the one that holds, and takes over what
 * can change. */
#include "reload.h"

#include <stdio.h>

#include "log.h"
#include "str.h"

/* What a change of a key does while running. */
enum reload_kind { RELOAD_RESTART = 0, RELOAD_LOG, RELOAD_ROOTS, RELOAD_LIMIT };

static enum reload_kind reload_kind_of(const char *key)
{
    static const char limits[] = "limits.body limits.depth limits.call_timeout limits.result";
    if (strcmp(key, "log.level") == 0 || strcmp(key, "log.format") == 0) {
        return RELOAD_LOG;
    }
    if (strcmp(key, "roots") == 0) {
        return RELOAD_ROOTS;
    }
    return str_in_words(ng_str_of(key), limits) ? RELOAD_LIMIT : RELOAD_RESTART;
}

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

void reload_log(const struct config *config)
{
    static const struct {
        const char *name;
        enum ng_level level;
    } levels[] = {
        {"error", NG_LOG_ERROR},
        {"warning", NG_LOG_WARNING},
        {"info", NG_LOG_INFO},
        {"debug", NG_LOG_DEBUG},
    };
    struct ng_str level = config_text(config, "log.level");
    for (size_t i = 0; i < NG_COUNT(levels); i++) {
        if (str_is(level, levels[i].name)) {
            log_set_level(levels[i].level);
        }
    }
    struct ng_str format = config_text(config, "log.format");
    if (str_is(format, "json") || str_is(format, "text")) {
        log_set_format(str_is(format, "json") ? LOG_JSON : LOG_TEXT);
    }
}

/* No roots: the default, which is made at the start only. */
static bool reload_roots_hold(const struct gateway *gateway, const struct config *config)
{
    const struct ng_str *roots = NULL;
    return gateway->files != NULL && config_list(config, "roots", &roots) > 0;
}

static int reload_roots(struct gateway *gateway, const struct config *config,
                        struct buf *report)
{
    const struct ng_str *roots = NULL;
    size_t count = config_list(config, "roots", &roots);
    struct call *call = call_new(gateway);
    if (call == NULL) {
        return NG_EINTERNAL;
    }
    int rc = files_set_roots(gateway->files, call, roots, count);
    if (rc != NG_OK) {
        struct ng_str why = call->work.message;
        buf_printf(report, "roots: %.*s", (int)why.len, why.data);
    }
    call_unref(call);
    return rc;
}

static void reload_limits(struct gateway *gateway, const struct config *config)
{
    size_t body = (size_t)config_int(config, "limits.body");
    size_t result = (size_t)config_int(config, "limits.result");
    unsigned depth = (unsigned)config_int(config, "limits.depth");
    int64_t timeout = config_int(config, "limits.call_timeout");
    atomic_store(&gateway->limits.body, body);
    atomic_store(&gateway->limits.result, result);
    atomic_store(&gateway->limits.depth, depth);
    atomic_store(&gateway->limits.call_timeout_ms, timeout);
    metrics_limit(gateway->metrics, METRICS_BODY, (int64_t)body);
    metrics_limit(gateway->metrics, METRICS_RESULT, (int64_t)result);
    metrics_limit(gateway->metrics, METRICS_DEPTH, (int64_t)depth);
    metrics_limit(gateway->metrics, METRICS_CALL_TIMEOUT, timeout / 1000);
}

static void reload_options(struct gateway *gateway, const struct config *old,
                           const struct config *new_config, const char *prefix,
                           const struct ng_option *options, size_t count, struct buf *report)
{
    for (size_t i = 0; i < count; i++) {
        char key[128];
        (void)snprintf(key, sizeof(key), "%s%s%s", prefix, prefix[0] ? "." : "",
                       options[i].name);
        if (reload_equal(old, new_config, key, options[i].type)) {
            continue;
        }
        enum reload_kind kind = reload_kind_of(key);
        bool restart = kind == RELOAD_RESTART ||
                       (kind == RELOAD_ROOTS && !reload_roots_hold(gateway, new_config));
        buf_printf(report, "%s: %s\n", key,
                   restart ? "changed, but it needs a restart to hold"
                           : RELOAD_HOLDS);
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
    return rc == NG_OK ? config_finish(config, error) : rc;
}

int reload_apply(struct gateway *gateway, const struct config_input *input,
                 struct config **known, struct buf *report)
{
    struct config *config = NULL;
    int rc = config_load(input, &config, report);
    if (rc == NG_OK) {
        rc = reload_declare(gateway, config, report);
    }
    /* First of all, because it can fail: then the next reload tries it again. */
    const struct config *old = *known == NULL ? gateway->config : *known;
    if (rc == NG_OK && !reload_lists_equal(old, config, "roots") &&
        reload_roots_hold(gateway, config)) {
        rc = reload_roots(gateway, config, report);
    }
    if (rc != NG_OK) {
        config_free(config);
        return rc;
    }
    reload_options(gateway, old, config, "", gateway_options, gateway_option_count, report);
    for (size_t i = 0; i < gateway->module_count; i++) {
        const char *name = "";
        size_t count = 0;
        const struct ng_option *options = reload_module(gateway->modules[i], &name, &count);
        reload_options(gateway, old, config, name, options, count, report);
    }
    reload_log(config);
    reload_limits(gateway, config);
    config_free(*known);
    *known = config;
    return NG_OK;
}
