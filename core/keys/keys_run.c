/* SPDX-License-Identifier: MIT */
/* keys_run.c - a sentence that names the callers with permission to run code. */
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/module/loader.h"
#include "keys.h"

/* Most keys that the sentence names. */
#define RUNNERS_NAMED_MAX 20

struct runner {
    struct ng_str agent, id;
};

bool keys_run_matters(const struct gateway *gateway)
{
    for (size_t i = 0; i < gateway->module_count; i++) {
        const struct module *module = gateway->modules[i];
        for (size_t j = 0; module->kind == NG_KIND_PLUGIN && j < module->desc.plugin.tool_count;
             j++) {
            if (module->desc.plugin.tools[j].effect == NG_EFFECT_RUNS) {
                return true;
            }
        }
    }
    return false;
}

/* open: no key is needed. */
static int write_runners(const struct runner *list, size_t count, bool open, uid_t user,
                         struct buf *out)
{
    if (count == 0 && open) {
        (void)buf_add_c(out, "no key exists: every program of the gateway's own user");
    } else if (count == 0) {
        (void)buf_add_c(out, "no key");
    }
    for (size_t i = 0; i < count && i < RUNNERS_NAMED_MAX; i++) {
        (void)buf_printf(out, "%s%.*s (%.*s)", i > 0 ? ", " : "", (int)list[i].agent.len,
                         list[i].agent.data, (int)list[i].id.len, list[i].id.data);
    }
    if (count > RUNNERS_NAMED_MAX) {
        (void)buf_printf(out, " and %zu more", count - RUNNERS_NAMED_MAX);
    }
    (void)buf_add_c(out, " may run code");
    if (open || count > 0) {
        (void)buf_printf(out, ", as user %ld", (long)user);
    }
    return out->rc;
}

int keys_runners(struct keys *keys, struct call *call, struct buf *out)
{
    struct key **all = NULL;
    size_t count = 0;
    size_t found = 0;
    int rc = keys_list(keys, call, &all, &count);
    if (rc != NG_OK) {
        return rc;
    }
    struct runner *list = arena_alloc(&call->arena, (count + 1) * sizeof(*list));
    if (list == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i]->run && key_live(all[i])) {
            list[found].agent = all[i]->agent;
            list[found++].id = ng_str_of(all[i]->id);
        }
    }
    return write_runners(list, found, keys_active(keys) == 0, geteuid(), out);
}

int keys_listed_runners(struct arena *arena, const struct ng_value *list, uid_t user,
                        struct buf *out)
{
    size_t count = 0;
    bool open = true;
    if (list == NULL || list->type != NG_TYPE_ARRAY) {
        return NG_EINTERNAL;
    }
    struct runner *runners = arena_alloc(arena, (list->count + 1) * sizeof(*runners));
    if (runners == NULL) {
        return NG_EINTERNAL;
    }
    for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
        const struct ng_value *run = json_get(key, "run");
        struct ng_str state = json_get_text(key, "state");
        open = open && str_is(state, "revoked");
        if (run != NULL && run->type == NG_TYPE_TRUE && str_is(state, "live")) {
            runners[count].agent = json_get_text(key, "agent");
            runners[count++].id = json_get_text(key, "id");
        }
    }
    return write_runners(runners, count, open, user, out);
}
