/* SPDX-License-Identifier: MIT */
/* dispatch_allow.c - the rights of a caller: tools of its key, role and mode, and its rate. */
#include "dispatch_allow.h"

#include "audit.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "dispatch_space.h"

/* Of a key's tools that a sentence names. */
#define DISPATCH_LIST_TOOLS 20
#define DISPATCH_LIST_BYTES 4096

bool dispatch_only_reads(const struct tool *tool, const struct ng_value *args)
{
    if (tool->desc.effect == NG_EFFECT_READS) {
        return true;
    }
    if (tool->desc.read_argument == NULL) {
        return false;
    }
    const struct ng_value *value = json_get(args, tool->desc.read_argument);
    return value != NULL && value->type == NG_TYPE_STRING &&
           str_in_words(value->text, tool->desc.read_values);
}

bool dispatch_sees_plugin(struct call *call, const struct plugin *plugin)
{
    bool sees = !key_limits_tools(call->key);
    for (size_t i = 0; i < plugin->desc.tool_count && !sees; i++) {
        sees = key_allows_tool(call->key, plugin->desc.tools[i].name);
    }
    return sees;
}

bool dispatch_declares(const struct ng_plugin *plugin, struct ng_str collection)
{
    for (size_t i = 0; i < plugin->collection_count; i++) {
        if (str_is(collection, plugin->collections[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < plugin->resource_count; i++) {
        if (plugin->resources[i].collection != NULL &&
            str_is(collection, plugin->resources[i].collection)) {
            return true;
        }
    }
    return false;
}

bool dispatch_sees_collection(struct call *call, struct ng_str collection)
{
    bool all = !key_limits_tools(call->key);
    if (str_is(collection, KEYS_COLLECTION)) {
        return all && call->caller.role == NG_ROLE_ADMIN;
    }
    if (all) {
        return true;
    }
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        if (dispatch_declares(&plugins[i]->desc, collection) &&
            dispatch_sees_plugin(call, plugins[i])) {
            return true;
        }
    }
    return false;
}

static bool dispatch_lacks_restore(const struct call *call, const struct tool *tool)
{
    return (tool->desc.flags & NG_TOOL_RESTORES) != 0 &&
           (call->caller.rights & NG_RIGHT_RESTORE) == 0;
}

bool dispatch_may(struct call *call, const struct tool *tool)
{
    if (!key_allows_tool(call->key, tool->desc.name)) {
        return false;
    }
    bool reads = tool->desc.effect == NG_EFFECT_READS || tool->desc.read_argument != NULL;
    enum ng_mode mode = call->caller.mode;
    if (tool->desc.effect == NG_EFFECT_ADMIN && call->caller.role != NG_ROLE_ADMIN) {
        return false;
    }
    if (!reads && (call->caller.role == NG_ROLE_READER || mode == NG_MODE_ASK)) {
        return false;
    }
    if ((tool->desc.flags & NG_TOOL_AGENT_MODE) != 0 && mode != NG_MODE_AGENT) {
        return false;
    }
    if (dispatch_lacks_restore(call, tool)) {
        return false;
    }
    /* A tool that only reads for some arguments stays listed for readers. */
    return tool->desc.effect != NG_EFFECT_RUNS || reads || call->caller.run;
}

static bool dispatch_changes_by(struct call *call, const struct plugin *plugin)
{
    bool may = false;
    for (size_t i = 0; i < plugin->tool_count && !may; i++) {
        const struct tool *tool = plugin->tools[i];
        may = tool->desc.effect != NG_EFFECT_READS && dispatch_may(call, tool);
    }
    return may;
}

bool dispatch_may_change(struct call *call, struct ng_str collection)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(call->gateway->registry, &plugins);
    bool may = false;
    if (call->caller.role == NG_ROLE_READER || call->caller.mode == NG_MODE_ASK) {
        return false;
    }
    for (size_t i = 0; i < count && !may; i++) {
        may = dispatch_declares(&plugins[i]->desc, collection) &&
              dispatch_changes_by(call, plugins[i]);
    }
    return may;
}

bool dispatch_configured(struct call *call, const struct plugin *plugin)
{
    if (plugin->desc.configured == NULL || !plugin->started) {
        return true;
    }
    /* Asked in the space that a call would have; a sentence of it is for calls only. */
    struct ng_caller before = call->caller;
    struct result work = call->staged;
    const struct tool *tool = NULL;
    if (plugin->tool_count > 0) {
        tool = plugin->tools[0];
    }
    bool configured = dispatch_space_pick(call, tool) == NG_OK &&
                      plugin->desc.configured(plugin->self, &call->pub);
    call->caller = before;
    call->staged = work;
    return configured;
}

int dispatch_check_configured(struct call *call)
{
    const struct plugin *plugin = call->tool->plugin;
    if (plugin->desc.configured(plugin->self, &call->pub)) {
        return NG_OK;
    }
    if (call->staged.message.data == NULL) { /* else it is the plugin's own sentence */
        call_fail(call, NG_ENOTCONFIGURED, "the plugin %s has nothing to work on",
                  plugin->desc.name);
    }
    return NG_ENOTCONFIGURED;
}

bool dispatch_allows(struct call *call, const struct tool *tool)
{
    if (!dispatch_may(call, tool) || !dispatch_configured(call, tool->plugin)) {
        return false;
    }
    if (tool->desc.listed == NULL || !tool->plugin->started) {
        return true;
    }
    /* Asked in the space that a call of it would have. */
    struct ng_caller before = call->caller;
    bool listed = dispatch_space_pick(call, tool) == NG_OK &&
                  tool->desc.listed(tool->plugin->self, &call->pub);
    call->caller = before;
    return listed;
}

/* The tools that a key allows or excludes, in a sentence: "a, b and 3 more". */
static int dispatch_not_on_list(struct call *call, const struct tool *tool)
{
    const struct key *key = call->key;
    bool excluded = key_excludes_tool(key, ng_str_of(tool->desc.name));
    const struct ng_str *names = excluded ? key->no_tools : key->tools;
    size_t count = excluded ? key->no_tool_count : key->tool_count;
    struct buf list;
    buf_init(&list, DISPATCH_LIST_BYTES);
    size_t shown = size_min(count, DISPATCH_LIST_TOOLS);
    for (size_t i = 0; i < shown; i++) {
        buf_printf(&list, "%s`%.*s`", i == 0 ? "" : ", ", (int)names[i].len, names[i].data);
    }
    if (shown < count) {
        buf_printf(&list, " and %zu more", count - shown);
    }
    call_fail(call, NG_EFORBIDDEN, "the caller's key does not allow `%s`; it %s %s",
              tool->desc.name, excluded ? "excludes" : "allows", buf_cstr(&list));
    buf_done(&list);
    return NG_EFORBIDDEN;
}

/* How an admin changes the key that is in the way, if one is. */
static void dispatch_hint_key(struct call *call, const char *options)
{
    if (call->key != NULL) {
        call->staged.hint =
            arena_printf(&call->arena, "An admin can change the key: `notegate key set %s %s`",
                         call->key->id, options);
    }
}

static int dispatch_no_run(struct call *call, const struct tool *tool)
{
    call_fail(call, NG_ERUN, "`%s` runs code, and the caller's key has no right to run code",
              tool->desc.name);
    dispatch_hint_key(call, "--run");
    return NG_ERUN;
}

static int dispatch_no_restore(struct call *call, const struct tool *tool)
{
    call_fail(call, NG_EFORBIDDEN,
              "`%s` takes back the work of others: it needs the role admin or a key with the "
              "right --restore",
              tool->desc.name);
    dispatch_hint_key(call, "--restore");
    return NG_EFORBIDDEN;
}

/* Of a tool that does both: how to call it so that it only reads. */
static void dispatch_hint_reading(struct call *call, const struct tool *tool)
{
    if (tool->desc.read_argument != NULL) {
        call->pub.host->hint(&call->pub, "It only reads with `%s` one of: %s.",
                             tool->desc.read_argument, tool->desc.read_values);
    }
}

/* No change without an entry in the audit log: where too many wait already, it is refused. */
static int dispatch_check_audit(struct call *call)
{
    struct audit_writer *writer = call->gateway->audit.writer;
    struct buf why;
    if (!gateway_keeps_audit(call->gateway) || !audit_writer_is_full(writer)) {
        return NG_OK;
    }
    buf_init(&why, CALL_MESSAGE_MAX);
    bool fails = audit_writer_is_failing(writer, &why);
    call_fail(call, NG_EUNAVAILABLE, "changes are refused: %zu entries of the audit log %s%s",
              audit_writer_waiting(writer), fails ? "cannot be written: " : "wait for the disk",
              buf_cstr(&why));
    if (fails) {
        call->staged.hint = ng_str_of("Mend what keeps them from being written; they are tried "
                                      "again each second. audit: off and a restart give them "
                                      "up");
    } else {
        call->staged.hint = ng_str_of("Try again in a moment");
    }
    buf_done(&why);
    return NG_EUNAVAILABLE;
}

/* is, needs: the caller's role or mode. */
static int dispatch_lacks(struct call *call, const struct tool *tool, int rc, const char *is,
                          const char *needs)
{
    if (tool->desc.read_argument != NULL) {
        return call_fail(call, rc,
                         "this call of `%s` changes something and the caller's %s; it needs "
                         "the %s",
                         tool->desc.name, is, needs);
    }
    /* Also a call that would change nothing, as a preview. */
    return call_fail(call, rc, "`%s` needs the %s, and the caller's %s", tool->desc.name, needs,
                     is);
}

int dispatch_authorize(struct call *call, const struct tool *tool)
{
    if (!key_allows_tool(call->key, tool->desc.name)) {
        return dispatch_not_on_list(call, tool);
    }
    if (tool->desc.effect == NG_EFFECT_ADMIN && call->caller.role != NG_ROLE_ADMIN) {
        return call_fail(call, NG_EFORBIDDEN, "`%s` needs the role admin", tool->desc.name);
    }
    if ((tool->desc.flags & NG_TOOL_AGENT_MODE) != 0 && call->caller.mode != NG_MODE_AGENT) {
        call_fail(call, NG_EMODE,
                  "`%s` is allowed in Agent mode only; this caller's mode is %s",
                  tool->desc.name, key_mode_name(call->caller.mode));
        if (call->key != NULL && call->key->mode != NG_MODE_AGENT) {
            dispatch_hint_key(call, "--mode agent");
        }
        return NG_EMODE;
    }
    call->read_only = dispatch_only_reads(tool, call->pub.args);
    if (call->read_only) {
        return NG_OK;
    }
    int rc = NG_OK;
    if (call->caller.role == NG_ROLE_READER) {
        rc = dispatch_lacks(call, tool, NG_EFORBIDDEN, "role is reader", "role writer");
    } else if (call->caller.mode == NG_MODE_ASK) {
        rc = dispatch_lacks(call, tool, NG_EMODE, "mode is ask, which only reads",
                            "mode edit or agent");
    } else if (tool->desc.effect == NG_EFFECT_RUNS && !call->caller.run) {
        return dispatch_no_run(call, tool);
    } else if (dispatch_lacks_restore(call, tool)) {
        return dispatch_no_restore(call, tool);
    }
    if (rc != NG_OK) {
        dispatch_hint_reading(call, tool);
        return rc;
    }
    return dispatch_check_audit(call);
}

int dispatch_rate(struct call *call)
{
    int retry_s = 0;
    if ((call->options & CALL_NO_RATE) != 0 || key_take(call->key, &retry_s)) {
        return NG_OK;
    }
    double rate = call->key->rate;
    const char *unit = "second";
    if (rate < 1) {
        rate *= 60;
        unit = "minute";
    }
    call_fail(call, NG_ERATE, "the caller's key allows %g calls a %s, and this is more", rate,
              unit);
    call->staged.retry_after_s = retry_s;
    call->staged.hint = arena_printf(&call->arena, "Try again in %d s", retry_s);
    return NG_ERATE;
}

int dispatch_take_rate(struct call *call)
{
    int rc = dispatch_rate(call);
    if (rc != NG_OK) {
        metrics_count(call->gateway->metrics, METRICS_RATE_LIMITED);
        call_complete_result(call);
        call->final = call->staged;
        if (call_notes_changes(call->gateway)) {
            audit_call(call, rc, 0);
        }
    }
    return rc;
}
