/* SPDX-License-Identifier: MIT */
/* reload_state.h - the state of reloads, for reload*.c. */
#ifndef NOTEGATE_API_RELOAD_STATE_H
#define NOTEGATE_API_RELOAD_STATE_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/gateway/gateway_modules.h"
#include "reload.h"

struct reload {
    struct gateway *gateway;
    struct http_server *server;
    const struct config_input *input;
    pthread_t thread;
    int64_t shutdown_ms, delay_ms;
    size_t start_modules; /* those whose keys the start's configuration knows */
    /* The last one read that was good; NULL: that of the start. Replaced under asked.lock. */
    struct config *known;
    bool known_for_plugins;
    struct config *held[GATEWAY_MODULES_MAX]; /* earlier ones; each brought plugins in */
    size_t held_count;
    struct {
        struct lock lock;
        struct call *waiters[RELOAD_WAITERS_MAX];
        size_t count;
        bool ended;
    } asked;
};

/* The effect of a changed key while the gateway runs. */
enum reload_kind {
    RELOAD_RESTART = 0,
    RELOAD_TAKEN,   /* its users read it again */
    RELOAD_ROOTS,   /* told by reload_roots() */
    RELOAD_SERVER,  /* taken where there is a server */
    RELOAD_PLUGINS, /* told by reload_plugins() */
    RELOAD_TLS      /* told by http_server_reload() */
};

enum reload_kind reload_kind_of(const char *key);
/* The configuration that was read last. */
const struct config *reload_known(const struct reload *reload);
/* Does the server take over the certificate of this configuration? */
bool reload_tls_holds(const struct reload *reload, const struct config *config);
/* No roots: the default, which is taken at the start only. */
bool reload_roots_hold(const struct gateway *gateway, const struct config *config);

#endif
