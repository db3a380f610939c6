/* SPDX-License-Identifier: MIT */
/* gateway_modules.h - loads, starts and adds modules: for gateway.c and the reload. */
#ifndef NOTEGATE_CORE_GATEWAY_MODULES_H
#define NOTEGATE_CORE_GATEWAY_MODULES_H

#include "core/call/gateway.h"

/* Most modules of one gateway, and most plugins that one reload can add. */
#define GATEWAY_MODULES_MAX 128
#define GATEWAY_ADDED_MAX 32

/* Finds, checks and loads a module, which the gateway closes. config: for its plugin_path. */
int gateway_load(struct gateway *gateway, const struct config *config, enum ng_module_kind kind,
                 const char *name, struct module **ret, struct buf *error);
/* Loads the backend that `key` of the configuration names. builtin: a value of `key` that needs
 * no module, for the message about an unknown name. */
int gateway_load_backend(struct gateway *gateway, enum ng_module_kind kind, const char *key,
                         const char *name, const char *builtin, struct module **ret,
                         struct buf *error);
/* Declares the options of installed modules that are not in use: of all, or of those that the
 * configuration mentions. */
int gateway_declare_unused(struct gateway *gateway, struct config *config,
                           enum ng_module_kind kind, bool all, struct buf *error);
/* At the start: loads and publishes the configured plugins. */
int gateway_add_plugins(struct gateway *gateway, struct buf *error);
int gateway_declare_collections(struct gateway *gateway, struct call *call,
                                const struct plugin *plugin);
/* Calls start() of each plugin, when the store is open. */
int gateway_start_plugins(struct gateway *gateway, struct buf *error);

/* Plugins that a reload adds to a running gateway. */
struct gateway_added {
    struct plugin *plugins[GATEWAY_ADDED_MAX];
    size_t count;
    size_t modules_before;
};

/* Loads and checks the plugins that are new in `config`, and declares their options in it;
 * config must live as long as they do. After a failure: free `config`, then
 * gateway_drop_added(). One thread at a time. */
int gateway_make_new_plugins(struct gateway *gateway, struct config *config,
                             struct gateway_added *ret, struct buf *error);
/* Removes the new plugins, before any was started. */
void gateway_drop_added(struct gateway *gateway, struct gateway_added *added);
/* After config_finish(): declares the collections of a new plugin, starts it and publishes its
 * tools. A failure leaves it out until the next start, and changes nothing else. */
int gateway_start_added(struct gateway *gateway, struct plugin *plugin, struct buf *error);
/* The names of loaded plugins that `config` names no longer: they stay until a restart. */
size_t gateway_removed_plugins(const struct gateway *gateway, const struct config *config,
                               const char **ret_names, size_t max);

#endif
