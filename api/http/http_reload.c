/* SPDX-License-Identifier: MIT */
/* http_reload.c - the parts of the HTTP transport that follow the configuration while it runs:
 * the names it answers to, its certificate, the timeout of sessions. */
#include <stdlib.h>

#include "api/listen/http_names.h"
#include "api/listen/http_tls.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/reload_report.h"
#include "http_route.h"
#include "http_server.h"

/* One state of the names. The older ones stay until the server ends: a request may be at one,
 * and there are no more of them than an operator has typed. */
struct http_names_kept {
    struct http_names names;
    struct arena arena;
    struct http_names_kept *older;
};

static bool copy_list(struct arena *arena, const struct config *config, const char *key,
                      const struct ng_str **ret, size_t *ret_count)
{
    const struct ng_str *items = NULL;
    size_t count = config_list(config, key, &items);
    struct ng_str *copies = arena_alloc(arena, count * sizeof(*copies));
    for (size_t i = 0; i < count && copies != NULL; i++) {
        copies[i] = arena_copy(arena, items[i]);
        if (copies[i].data == NULL) {
            return false;
        }
    }
    *ret = copies;
    *ret_count = count;
    return copies != NULL;
}

int http_server_set_names(struct http_server *server, const struct config *config,
                          struct ng_str listen_host, unsigned listen_port)
{
    struct http_names_kept *kept = alloc_zeroed(1, sizeof(*kept));
    if (kept == NULL) {
        return NG_EINTERNAL;
    }
    struct http_names *names = &kept->names;
    arena_init(&kept->arena, 0);
    names->listen_host = arena_copy(&kept->arena, listen_host);
    names->listen_port = listen_port;
    if (names->listen_host.data == NULL ||
        !copy_list(&kept->arena, config, "allowed_hosts", &names->hosts, &names->host_count) ||
        !copy_list(&kept->arena, config, "allowed_origins", &names->origins,
                   &names->origin_count)) {
        arena_done(&kept->arena);
        free(kept);
        return NG_EINTERNAL;
    }
    kept->older = server->names_kept;
    server->names_kept = kept;
    atomic_store(&server->names, names);
    return NG_OK;
}

void http_server_free_names(struct http_server *server)
{
    while (server->names_kept != NULL) {
        struct http_names_kept *kept = server->names_kept;
        server->names_kept = kept->older;
        arena_done(&kept->arena);
        free(kept);
    }
}

void http_server_set_audit(const struct config *config)
{
    log_set_switch(LOG_AUDIT_KEYED, !config_is_set(config, "log.audit"));
}

static bool same_list(const struct config *config, const char *key, const struct ng_str *old,
                      size_t old_count)
{
    const struct ng_str *items = NULL;
    size_t count = config_list(config, key, &items);
    bool same = count == old_count;
    for (size_t i = 0; i < count && same; i++) {
        same = str_equal(items[i], old[i]);
    }
    return same;
}

static void reload_names(struct http_server *server, const struct config *config,
                         struct reload_report *report)
{
    const struct http_names *names = atomic_load(&server->names);
    if (same_list(config, "allowed_hosts", names->hosts, names->host_count) &&
        same_list(config, "allowed_origins", names->origins, names->origin_count)) {
        return;
    }
    if (http_server_set_names(server, config, names->listen_host, names->listen_port) !=
        NG_OK) {
        reload_tell(report, "allowed_hosts", false,
                    "out of memory: the old names stay in effect");
    }
}

/* The files are read at every reload: they are renewed without any key being changed. */
static void reload_tls(struct http_server *server, const struct config *config,
                       struct reload_report *report)
{
    bool changed = false;
    struct buf text;
    if (server->tls == NULL || !http_tls_wanted(config)) {
        return; /* on or off needs a restart, which was reported */
    }
    buf_init(&text, 65536);
    int rc = http_tls_reload(server->tls, config, &changed, &text);
    if (rc != NG_OK) {
        reload_tell(report, "tls.certificate", false, "the old certificate stays in effect: %s",
                    buf_cstr(&text));
    } else if (changed) {
        struct buf warnings;
        buf_init(&warnings, 65536);
        http_tls_describe(server->tls, config, &text, &warnings);
        reload_tell(report, "tls.certificate", true,
                    "new connections use the new certificate, %s%s%s", buf_cstr(&text),
                    text_if(warnings.len > 0, "; "), buf_cstr(&warnings));
        buf_done(&warnings);
    }
    buf_done(&text);
}

bool http_server_has_tls(const struct http_server *server)
{
    return server->tls != NULL;
}

void http_server_reload(struct http_server *server, const struct config *config,
                        struct reload_report *report)
{
    http_server_set_audit(config);
    reload_names(server, config, report);
    server->routes->service->reload(server->service, config);
    reload_tls(server, config, report);
}

void http_server_attach(struct http_server *server, struct reload *reload)
{
    atomic_store(&server->reload, reload);
}
