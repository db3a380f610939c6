/* SPDX-License-Identifier: MIT */
/* reload_config.c - the configuration in effect: of each key, that of the start or the last one
 * read. */
#include "reload_state.h"

#include "api/http/http_transport.h"
#include "core/base/str.h"
#include "core/module/registry.h"

enum reload_kind reload_kind_of(const char *key)
{
    static const struct {
        const char *keys;
        enum reload_kind kind;
    } kinds[] = {
        {"log.level log.format log.access log.audit", RELOAD_TAKEN},
        {"limits.body limits.depth limits.call_timeout limits.result limits.buffered "
         "limits.connections limits.streams limits.queue tools.max_answer",
         RELOAD_TAKEN},
        {"shutdown_timeout shutdown_delay history.keep history.files history.max_file "
         "journal.keep",
         RELOAD_TAKEN},
        {"audit.reads audit.keep audit.max_size", RELOAD_TAKEN},
        {"plugins", RELOAD_PLUGINS},
        {"plugin_path", RELOAD_TAKEN},
        {"roots", RELOAD_ROOTS},
        {"allowed_hosts allowed_origins mcp.session_timeout", RELOAD_SERVER},
        {"tls.certificate tls.key", RELOAD_TLS},
    };
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        if (str_in_words(ng_str_of(key), kinds[i].keys)) {
            return kinds[i].kind;
        }
    }
    return RELOAD_RESTART;
}

const struct config *reload_known(const struct reload *reload)
{
    if (reload->known == NULL) {
        return reload->gateway->config;
    }
    return reload->known;
}

bool reload_roots_hold(const struct gateway *gateway, const struct config *config)
{
    const struct ng_str *roots = NULL;
    return gateway->files != NULL && config_list(config, "roots", &roots) > 0;
}

bool reload_tls_holds(const struct reload *reload, const struct config *config)
{
    return reload->server != NULL && http_server_has_tls(reload->server) &&
           config_text(config, "tls.certificate").len > 0 &&
           config_text(config, "tls.key").len > 0;
}

/* A plugin keeps the configuration that it came with. */
static const struct config *reload_of_module(const struct reload *reload, const char *name,
                                             const char *key)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(reload->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(plugins[i]->desc.name, name) == 0 && plugins[i]->conf != NULL) {
            return config_of_view(plugins[i]->conf);
        }
    }
    return config_declares(reload->gateway->config, key) ? reload->gateway->config
                                                         : reload_known(reload);
}

static const struct config *reload_in_effect(void *user, const char *prefix, const char *key,
                                             bool *ret_reloadable)
{
    const struct reload *reload = user;
    const struct config *known = reload_known(reload);
    bool holds = true;
    if (prefix[0] != '\0') {
        return reload_of_module(reload, prefix, key);
    }
    switch (reload_kind_of(key)) {
    case RELOAD_RESTART:
        return reload->gateway->config;
    case RELOAD_TAKEN:
    case RELOAD_PLUGINS:
        break;
    case RELOAD_SERVER:
        holds = reload->server != NULL;
        break;
    case RELOAD_ROOTS:
        holds = reload_roots_hold(reload->gateway, known);
        break;
    case RELOAD_TLS:
        holds = reload_tls_holds(reload, known);
        break;
    }
    *ret_reloadable = holds;
    return holds ? known : reload->gateway->config;
}

int reload_print_config(struct reload *reload, struct buf *out)
{
    lock_take(&reload->asked.lock);
    int rc = config_print(reload_known(reload), reload_in_effect, reload, out);
    lock_release(&reload->asked.lock);
    return rc;
}
