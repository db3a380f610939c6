/* SPDX-License-Identifier: MIT */
/* gateway_modules.h - loading, starting and adding modules: for gateway.c and the reload. */
#ifndef NOTEGATE_CORE_GATEWAY_MODULES_H
#define NOTEGATE_CORE_GATEWAY_MODULES_H

#include "core/call/gateway.h"

/* Modules of one gateway, and plugins that one reload may add. */
#define GATEWAY_MODULES_MAX 128
#define GATEWAY_ADDED_MAX 32

/* Finds, checks and loads one; it is the gateway's from then on. config: its plugin_path. */
int gateway_load(struct gateway *gateway, const struct config *config, enum ng_module_kind kind,
                 const char *name, struct module **ret, struct buf *error);
/* The backend that `key` of the configuration names. builtin: what may stand there without a
 * module, for the sentence about a name that is wrong. */
int gateway_load_backend(struct gateway *gateway, enum ng_module_kind kind, const char *key,
                         const char *name, const char *builtin, struct module **ret,
                         struct buf *error);
/* The keys of modules that are there and not in use: all, or those that are mentioned. */
int gateway_declare_unused(struct gateway *gateway, struct config *config,
                           enum ng_module_kind kind, bool all, struct buf *error);
/* At the start: all plugins of the configuration, and then, when the store is open, start(). */
int gateway_add_plugins(struct gateway *gateway, struct buf *error);
int gateway_declare_collections(struct gateway *gateway, struct call *call,
                                const struct plugin *plugin);
int gateway_start_plugins(struct gateway *gateway, struct buf *error);

/* Plugins on their way into a gateway that runs. */
struct gateway_added {
    struct plugin *plugins[GATEWAY_ADDED_MAX];
    size_t count;
    size_t modules_before;
};

/* Loads and checks those that `config` names and that are not there yet, and declares their
 * keys in it; config must live as long as they do. A failure: free `config`, then
 * gateway_drop_added(). One thread at a time. */
int gateway_make_new_plugins(struct gateway *gateway, struct config *config,
                             struct gateway_added *ret, struct buf *error);
/* Forgets them again, before any was started. */
void gateway_drop_added(struct gateway *gateway, struct gateway_added *added);
/* After config_finish(): declares its collections, starts it, shows its tools to everybody. A
 * failure leaves it out until the next start; all else is as it was. */
int gateway_start_added(struct gateway *gateway, struct plugin *plugin, struct buf *error);
/* Plugins that are loaded and that `config` does not name any more: they stay until a restart.
 */
size_t gateway_removed_plugins(const struct gateway *gateway, const struct config *config,
                               const char **ret_names, size_t max);

#endif
