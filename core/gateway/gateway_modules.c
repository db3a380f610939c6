/* SPDX-License-Identifier: MIT */
/* gateway_modules.c - the modules of a gateway: chooses and loads them, starts plugins, adds
 * plugins in a reload. */
#include "gateway_modules.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"
#include "core/fault/crash.h"
#include "core/fault/module_run.h"
#include "core/host/host.h"
#include "core/journal/journal.h"
#include "core/module/loader.h"
#include "core/module/watchdog.h"
#include "core/store/store.h"

/* The folders with modules: plugin_path, or those of the installation. */
#define GATEWAY_FOLDERS_MAX 16

struct folders {
    char text[8192];
    const char *list[GATEWAY_FOLDERS_MAX + 1];
};

static void folders_of(const struct config *config, enum ng_module_kind kind,
                       struct folders *folders)
{
    const struct ng_str *paths = NULL;
    size_t count = 0;
    if (kind == NG_KIND_PLUGIN) {
        count = config_list(config, "plugin_path", &paths);
    }
    size_t used = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < GATEWAY_FOLDERS_MAX; i++) {
        if (paths[i].len >= sizeof(folders->text) - used) {
            break;
        }
        folders->list[kept++] = folders->text + used;
        memcpy(folders->text + used, paths[i].data, paths[i].len);
        used += paths[i].len;
        folders->text[used++] = '\0';
    }
    if (count == 0 &&
        loader_default_folders(kind, folders->text, sizeof(folders->text)) == NG_OK) {
        folders->list[kept++] = folders->text;
    }
    folders->list[kept] = NULL;
}

/* Adds the existing names to the message about an unknown one. builtin: a name without a
 * module, or NULL. */
static void gateway_list_modules(const struct folders *folders, enum ng_module_kind kind,
                                 const char *builtin, struct buf *error)
{
    char **names = NULL;
    size_t count = 0;
    if (loader_list(folders->list, kind, &names, &count) != NG_OK) {
        return;
    }
    if (builtin != NULL) {
        buf_printf(error, "; there are: %s", builtin);
    }
    for (size_t i = 0; i < count; i++) {
        buf_printf(error, "%s%s", i == 0 && builtin == NULL ? "; there are: " : ", ", names[i]);
        free(names[i]);
    }
    free(names);
}

/* Adds a loaded module. If its library is loaded already, by another name or for its options,
 * closes it and returns the earlier one. */
static struct module *gateway_keep_module(struct gateway *gateway, struct module *module)
{
    for (size_t i = 0; i < gateway->module_count; i++) {
        if (gateway->modules[i]->handle == module->handle) {
            loader_close(module);
            return gateway->modules[i];
        }
    }
    gateway->modules[gateway->module_count++] = module;
    return module;
}

static int gateway_find(struct gateway *gateway, const struct config *config,
                        enum ng_module_kind kind, const char *name, const char *builtin,
                        struct module **ret, struct buf *error)
{
    struct folders folders;
    if (gateway->module_count == GATEWAY_MODULES_MAX) {
        buf_printf(error, "more than %d modules", GATEWAY_MODULES_MAX);
        return NG_ETOOLARGE;
    }
    folders_of(config, kind, &folders);
    struct module_run run;
    module_run_begin(&run, name, "load", str_make(NULL, 0));
    int rc = loader_open(folders.list, name, kind, ret, error);
    module_run_end(&run);
    if (rc == NG_OK) {
        *ret = gateway_keep_module(gateway, *ret);
    } else if (rc == NG_ENOTFOUND && strchr(name, '/') == NULL) {
        gateway_list_modules(&folders, kind, builtin, error);
    }
    return rc;
}

int gateway_load(struct gateway *gateway, const struct config *config, enum ng_module_kind kind,
                 const char *name, struct module **ret, struct buf *error)
{
    return gateway_find(gateway, config, kind, name, NULL, ret, error);
}

int gateway_load_backend(struct gateway *gateway, enum ng_module_kind kind, const char *key,
                         const char *name, const char *builtin, struct module **ret,
                         struct buf *error)
{
    struct buf why;
    buf_init(&why, error->max);
    int rc = gateway_find(gateway, gateway->config, kind, name, builtin, ret, &why);
    if (rc != NG_OK) {
        config_where(gateway->config, key, error);
        buf_printf(error, "`%s`: ", key);
        buf_add_str(error, buf_str(&why));
    }
    buf_done(&why);
    return rc;
}

static int declare_options(struct config *config, const char *name, const struct module *module,
                           struct buf *error)
{
    const struct ng_option *options = module->desc.plugin.options;
    size_t count = module->desc.plugin.option_count;
    if (module->kind == NG_KIND_DOCUMENTS) {
        options = module->desc.documents.options;
        count = module->desc.documents.option_count;
    } else if (module->kind == NG_KIND_JOURNAL) {
        options = module->desc.journal.options;
        count = module->desc.journal.option_count;
    }
    return config_declare(config, name, options, count, sizeof(struct ng_option), error);
}

/* The options of a module that is not in use are no mistake in the configuration. */
int gateway_declare_unused(struct gateway *gateway, struct config *config,
                           enum ng_module_kind kind, bool all, struct buf *error)
{
    struct folders folders;
    char **names = NULL;
    size_t count = 0;
    folders_of(config, kind, &folders);
    int rc = loader_list(folders.list, kind, &names, &count);
    for (size_t i = 0; i < count; i++) {
        struct module *module = NULL;
        if (rc == NG_OK && (all || config_mentions(config, names[i])) &&
            gateway_load(gateway, config, kind, names[i], &module, error) == NG_OK) {
            rc = declare_options(config, names[i], module, error);
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

/* ---- choosing plugins ---- */

/* The configured names, without "+"; if all have it, the installed plugins before them. Memory
 * of the arena. */
static int wanted_plugins(const struct config *config, struct arena *arena, struct ng_str **ret,
                          size_t *ret_count)
{
    struct folders folders;
    const struct ng_str *names = NULL;
    char **found = NULL;
    size_t found_count = 0;
    size_t count = config_list(config, "plugins", &names);
    bool only_more = true;
    for (size_t i = 0; i < count; i++) {
        only_more = only_more && names[i].len > 0 && names[i].data[0] == '+';
    }
    int rc = NG_OK;
    if (only_more && (count > 0 || !config_is_set(config, "plugins"))) {
        folders_of(config, NG_KIND_PLUGIN, &folders);
        rc = loader_list(folders.list, NG_KIND_PLUGIN, &found, &found_count);
    }
    struct ng_str *wanted = arena_alloc(arena, (count + found_count) * sizeof(*wanted));
    if (rc == NG_OK && wanted == NULL) {
        rc = NG_EINTERNAL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < found_count; i++) {
        if (rc == NG_OK && strcmp(found[i], "conformance") != 0) {
            wanted[kept++] = arena_copy(arena, ng_str_of(found[i]));
        }
        free(found[i]);
    }
    free(found);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        size_t skip = names[i].len > 0 && names[i].data[0] == '+' ? 1 : 0;
        wanted[kept++] = arena_copy(arena, str_make(names[i].data + skip, names[i].len - skip));
    }
    for (size_t i = 0; i < kept && rc == NG_OK; i++) {
        rc = wanted[i].data != NULL ? NG_OK : NG_EINTERNAL;
    }
    *ret = wanted;
    *ret_count = kept;
    return rc;
}

/* Is the plugin left out because of repeated crashes? Then the log and /readyz tell it. It is
 * still loaded for its options (*ret_load), unless loading it crashed. asked: NUL-terminated.
 */
static bool is_left_out(struct gateway *gateway, struct ng_str asked, bool *ret_load)
{
    struct buf folder;
    bool loading = false;
    buf_init(&folder, 65536);
    buf_add_str(&folder, config_text(gateway->config, "data_dir"));
    unsigned count =
        crash_count(buf_cstr(&folder), asked.data, clock_unix_ms() / 1000, &loading);
    *ret_load = !loading;
    if (count >= CRASHES_MAX) {
        log_write(NG_LOG_ERROR, "crash",
                  "the plugin %s crashed the gateway %u times within %d minutes and is left "
                  "out; when it is fixed, remove the file %s/%s and start again",
                  asked.data, count, CRASHES_WITHIN_S / 60, buf_cstr(&folder), CRASH_FILE_NAME);
        /* Only at the start: in a reload, other threads read left_out. */
        if (gateway->store == NULL) {
            buf_printf(&gateway->left_out, "%s%s", gateway->left_out.len > 0 ? ", " : "",
                       asked.data);
        }
    }
    buf_done(&folder);
    return count >= CRASHES_MAX;
}

/* Loads a plugin, declares its options and makes it, without publishing its tools. asked:
 * NUL-terminated. *ret NULL with NG_OK: it is left out, or was named before. */
static int make_plugin(struct gateway *gateway, struct config *config, struct ng_str asked,
                       struct plugin **ret, struct buf *error)
{
    struct module *module = NULL;
    bool load = true;
    bool left_out = is_left_out(gateway, asked, &load);
    *ret = NULL;
    if (!load && left_out) {
        return NG_OK;
    }
    int rc = gateway_load(gateway, config, NG_KIND_PLUGIN, asked.data, &module, error);
    if (rc == NG_OK && registry_of_module(gateway->registry, module) != NULL) {
        return NG_OK;
    }
    if (rc == NG_OK) {
        const struct ng_plugin *desc = &module->desc.plugin;
        rc = config_declare(config, desc->name, desc->options, desc->option_count,
                            sizeof(struct ng_option), error);
    }
    if (rc != NG_OK || left_out) {
        return rc;
    }
    rc = registry_make(gateway->registry, &module->desc.plugin, module, ret, error);
    if (rc == NG_OK) {
        struct plugin *plugin = *ret;
        plugin->conf = config_view(config, plugin->desc.name);
        plugin->asked = arena_copy(&plugin->arena, asked);
        if (plugin->desc.name_prefix != NULL && plugin->conf != NULL) {
            struct ng_str prefix = call_host.conf_text(plugin->conf, "prefix");
            if (prefix.data != NULL) {
                rc = registry_rename(plugin, prefix, error);
            }
        }
    }
    return rc;
}

static int publish(struct gateway *gateway, struct plugin *plugin, struct buf *error)
{
    for (size_t i = 0; i < plugin->tool_count; i++) {
        plugin->tools[i]->metrics_slot =
            metrics_tool(gateway->metrics, plugin->tools[i]->desc.name);
    }
    return registry_publish(gateway->registry, plugin, error);
}

int gateway_add_plugins(struct gateway *gateway, struct buf *error)
{
    struct arena arena;
    struct ng_str *wanted = NULL;
    size_t count = 0;
    arena_init(&arena, 0);
    int rc = wanted_plugins(gateway->config, &arena, &wanted, &count);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        struct plugin *plugin = NULL;
        rc = make_plugin(gateway, gateway->config, wanted[i], &plugin, error);
        if (rc == NG_OK && plugin != NULL) {
            rc = publish(gateway, plugin, error);
        }
    }
    arena_done(&arena);
    return rc;
}

int gateway_declare_collections(struct gateway *gateway, struct call *call,
                                const struct plugin *plugin)
{
    const struct ng_plugin *desc = &plugin->desc;
    int rc = NG_OK;
    for (size_t i = 0; i < desc->collection_count && rc == NG_OK; i++) {
        rc = store_declare(gateway->store, call, &desc->collections[i]);
    }
    return rc;
}

/* ---- starting plugins ---- */

struct start_wait {
    struct lock lock;
    pthread_cond_t wake;
    bool done;
};

static void start_done(struct call *call, void *user)
{
    struct start_wait *wait = user;
    (void)call;
    lock_take(&wait->lock);
    wait->done = true;
    pthread_cond_signal(&wait->wake);
    lock_release(&wait->lock);
}

/* Calls start() and waits for its changes and deferred work: its changes are on disk before the
 * first call. */
static int gateway_start_plugin(struct plugin *plugin, struct call *call)
{
    struct start_wait wait = {LOCK_INITIALIZER(LOCK_GATEWAY_START), PTHREAD_COND_INITIALIZER,
                              false};
    call->done = start_done;
    call->done_user = &wait;
    call->started_ns = clock_monotonic_ns();
    call->plugin = plugin;
    call->caller.all_spaces = true; /* it works for all spaces */
    call->over = dispatch_over;
    call_ref(call); /* for the run, until it has completed */
    call_pend(call);
    struct module_run run;
    struct watched watched;
    module_run_begin(&run, plugin_module_name(plugin), "start()", str_make(NULL, 0));
    watchdog_begin(call->gateway->watchdog, &watched, plugin->desc.name, "start()");
    int rc = plugin->desc.start(&call->pub, plugin->conf, &plugin->self);
    watchdog_end(call->gateway->watchdog, &watched);
    module_run_end(&run);
    bool started = rc >= NG_OK;
    if (rc < NG_OK && call->staged.message.data == NULL) {
        call_fail(call, rc, "it gave no reason");
    }
    if (rc != NG_PENDING) {
        call->staged.rc = rc;
    }
    call_complete(call);
    lock_take(&wait.lock);
    while (!wait.done) {
        lock_wait(&wait.wake, &wait.lock);
    }
    lock_release(&wait.lock);
    lock_done(&wait.lock);
    pthread_cond_destroy(&wait.wake);
    plugin->started = started; /* even if its changes failed: stop() is called */
    return call->final.rc;
}

static int start_plugin(struct gateway *gateway, struct plugin *plugin, struct buf *error)
{
    if (plugin->desc.start == NULL) {
        plugin->started = true;
        return NG_OK;
    }
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = gateway_start_plugin(plugin, call);
    }
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s did not start: ", plugin->desc.name);
        buf_add_str(error, call != NULL ? call->final.message : ng_str_of("out of memory"));
    }
    call_unref(call);
    return rc;
}

int gateway_start_plugins(struct gateway *gateway, struct buf *error)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = start_plugin(gateway, plugins[i], error);
    }
    return rc;
}

/* ---- adding plugins in a reload ---- */

int gateway_make_new_plugins(struct gateway *gateway, struct config *config,
                             struct gateway_added *ret, struct buf *error)
{
    struct arena arena;
    struct ng_str *wanted = NULL;
    size_t count = 0;
    ret->count = 0;
    ret->modules_before = gateway->module_count;
    arena_init(&arena, 0);
    int rc = wanted_plugins(config, &arena, &wanted, &count);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        if (registry_knows(gateway->registry, wanted[i])) {
            continue;
        }
        if (ret->count == GATEWAY_ADDED_MAX) {
            buf_printf(error, "more than %d plugins are new; restart it", GATEWAY_ADDED_MAX);
            rc = NG_ETOOLARGE;
            break;
        }
        struct plugin *plugin = NULL;
        rc = make_plugin(gateway, config, wanted[i], &plugin, error);
        if (plugin != NULL) {
            ret->plugins[ret->count++] = plugin;
        }
        if (rc == NG_OK && plugin != NULL) {
            rc = registry_check(gateway->registry, plugin, error);
        }
    }
    arena_done(&arena);
    return rc;
}

void gateway_drop_added(struct gateway *gateway, struct gateway_added *added)
{
    while (added->count > 0) {
        registry_drop(gateway->registry, added->plugins[--added->count]);
    }
    while (gateway->module_count > added->modules_before) {
        loader_close(gateway->modules[--gateway->module_count]);
    }
}

int gateway_start_added(struct gateway *gateway, struct plugin *plugin, struct buf *error)
{
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = gateway_declare_collections(gateway, call, plugin);
    }
    if (rc == NG_OK && journal_enter(gateway->journal, call) != NG_OK) {
        call_reset_result(call); /* the delivery does it once the database is back */
    }
    if (rc != NG_OK) {
        buf_printf(error, "plugin %s: ", plugin->desc.name);
        buf_add_str(error, call != NULL ? call->staged.message : ng_str_of("out of memory"));
    }
    call_unref(call);
    if (rc == NG_OK) {
        rc = start_plugin(gateway, plugin, error);
    }
    if (rc == NG_OK) {
        rc = publish(gateway, plugin, error);
    }
    if (rc == NG_OK) {
        unsigned lists =
            (unsigned)NG_LIST_TOOLS | (unsigned)NG_LIST_RESOURCES | (unsigned)NG_LIST_PROMPTS;
        gateway->host.lists_changed(&gateway->host, lists);
    }
    return rc;
}

size_t gateway_removed_plugins(const struct gateway *gateway, const struct config *config,
                               const char **ret_names, size_t max)
{
    struct arena arena;
    struct ng_str *wanted = NULL;
    struct plugin *const *plugins = NULL;
    size_t count = 0;
    size_t removed = 0;
    arena_init(&arena, 0);
    size_t plugin_count = registry_plugins(gateway->registry, &plugins);
    if (wanted_plugins(config, &arena, &wanted, &count) != NG_OK) {
        plugin_count = 0;
    }
    for (size_t i = 0; i < plugin_count && removed < max; i++) {
        bool named = plugins[i]->asked.data == NULL;
        for (size_t j = 0; j < count && !named; j++) {
            named = str_equal(plugins[i]->asked, wanted[j]);
        }
        if (!named) {
            ret_names[removed++] = plugins[i]->desc.name;
        }
    }
    arena_done(&arena);
    return removed;
}
