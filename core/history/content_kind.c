/* SPDX-License-Identifier: MIT */
/* content_kind.c - runs the functions of plugins that view, merge and check contents of files.
 */
#include "content_kind.h"

#include <strings.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "core/module/registry.h"

static bool kind_has(const struct ng_content_kind *kind, struct ng_str path)
{
    size_t len = strlen(kind->ending);
    return path.len > len && strncasecmp(path.data + path.len - len, kind->ending, len) == 0;
}

bool content_kind_find(struct call *call, struct ng_str path, struct content_kind *ret)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        for (size_t at = 0; at < desc->content_count; at++) {
            if (kind_has(&desc->contents[at], path)) {
                *ret = (struct content_kind){&desc->contents[at], plugins[i]};
                return true;
            }
        }
    }
    return false;
}

static void kind_enter(const struct content_kind *kind, const struct call *call,
                       struct module_run *run)
{
    module_run_begin(run, plugin_module_name(kind->plugin), "a content", call->caller.agent);
}

/* A code that the function must not give. */
static int kind_fail(const struct content_kind *kind, struct call *call, int rc)
{
    if (rc == NG_EINTERNAL) {
        return call_no_memory(call);
    }
    return call_fail(call, NG_EINTERNAL, "plugin %s failed with %d for a content of %s",
                     kind->plugin->desc.name, rc, kind->desc->ending);
}

int content_kind_view(const struct content_kind *kind, struct call *call, struct ng_str bytes,
                      struct ng_str *ret)
{
    struct module_run run;
    *ret = STR_NONE;
    kind_enter(kind, call, &run);
    int rc = kind->desc->view(kind->plugin->self, &call->pub, bytes, ret);
    module_run_end(&run);
    if (rc == NG_OK) {
        *ret = str_or(*ret, ng_str_of(""));
    }
    return rc == NG_OK || rc == NG_EINVAL || rc == NG_ETOOLARGE ? rc
                                                                : kind_fail(kind, call, rc);
}

/* Is it an object with a reason? It becomes part of an answer. */
static bool conflict_is_valid(struct call *call, struct ng_str conflict)
{
    const struct ng_value *value = NULL;
    return json_parse(&call->arena, conflict, JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK &&
           json_get_text(value, "reason").len > 0;
}

int content_kind_merge(const struct content_kind *kind, struct call *call,
                       const struct ng_sides *sides, struct ng_str *ret_merged,
                       struct ng_str *ret_conflict)
{
    struct module_run run;
    *ret_merged = STR_NONE;
    *ret_conflict = STR_NONE;
    kind_enter(kind, call, &run);
    int rc = kind->desc->merge(kind->plugin->self, &call->pub, sides, ret_merged, ret_conflict);
    module_run_end(&run);
    if (rc != NG_OK) {
        return kind_fail(kind, call, rc);
    }
    if (ret_merged->data == NULL && !conflict_is_valid(call, *ret_conflict)) {
        return call_fail(call, NG_EINTERNAL,
                         "plugin %s gave neither a merged content of %s nor a conflict",
                         kind->plugin->desc.name, kind->desc->ending);
    }
    return NG_OK;
}

int content_kind_check(const struct content_kind *kind, struct call *call,
                       const struct ng_sides *sides, struct ng_str merged, bool *ret_good)
{
    struct module_run run;
    *ret_good = false;
    kind_enter(kind, call, &run);
    int rc = kind->desc->check(kind->plugin->self, &call->pub, sides, merged, ret_good);
    module_run_end(&run);
    return rc == NG_OK ? NG_OK : kind_fail(kind, call, rc);
}
