/* SPDX-License-Identifier: MIT */
/* dispatch_space.c - the space of a call: named by the caller, by the argument `space`, or the
 * default of its key or tool. */
#include "dispatch_space.h"

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "core/call/plugin.h"
#include "dispatch.h"
#include "dispatch_allow.h"

/* Spaces of a caller without a key: its own, shared, and the one that it named. */
#define SPACES_WITHOUT_KEYS 3
/* Maximum size of the list of spaces in a refusal. */
#define SPACES_SHOWN_BYTES ((size_t)1024)

/* The space of a call that names none. */
static struct ng_str space_by_default(const struct call *call, const struct tool *tool,
                                      struct ng_str own)
{
    const struct ng_caller *caller = &call->caller;
    if (call->key != NULL && call->key->first_is_default && caller->space_count > 0) {
        return caller->spaces[0];
    }
    enum ng_tool_space meant = tool != NULL ? tool->desc.space : call->step_space;
    return meant == NG_SPACE_SHARED ? ng_str_of("shared") : own;
}

int dispatch_space_pick(struct call *call, const struct tool *tool)
{
    struct ng_caller *caller = &call->caller;
    char *text = arena_alloc(&call->arena, caller->agent.len + 1);
    if (text == NULL) {
        return NG_EINTERNAL;
    }
    text[0] = '~';
    memcpy(text + 1, caller->agent.data, caller->agent.len);
    struct ng_str own = str_make(text, caller->agent.len + 1);
    bool named = caller->space_named;
    if (!named) {
        caller->space = space_by_default(call, tool, own);
    }
    if (caller->spaces == NULL) {
        struct ng_str *spaces =
            arena_alloc(&call->arena, SPACES_WITHOUT_KEYS * sizeof(*spaces));
        if (spaces == NULL) {
            return NG_EINTERNAL;
        }
        spaces[0] = own;
        spaces[1] = ng_str_of("shared");
        spaces[2] = caller->space;
        caller->spaces = spaces;
        caller->space_count = named ? SPACES_WITHOUT_KEYS : SPACES_WITHOUT_KEYS - 1;
        return NG_OK;
    }
    if (caller->all_spaces || call_has_space(caller, caller->space)) {
        return NG_OK;
    }
    if (!named && caller->space_count > 0) {
        caller->space = caller->spaces[0]; /* the key lacks the tool's default */
        return NG_OK;
    }
    return NG_EFORBIDDEN;
}

/* The message lists the spaces that the key allows. */
int dispatch_refuse_space(struct call *call, struct ng_str space)
{
    const struct ng_caller *caller = &call->caller;
    struct buf names;
    buf_init(&names, SPACES_SHOWN_BYTES);
    for (size_t i = 0; i < caller->space_count; i++) {
        (void)buf_printf(&names, "%s%.*s", text_if(i > 0, ", "), (int)caller->spaces[i].len,
                         caller->spaces[i].data);
    }
    call->target = space;
    int rc = call_fail(call, NG_EFORBIDDEN,
                       "the caller's key does not allow the space \"%.*s\"; it allows %.*s%s",
                       (int)space.len, space.data, (int)names.len, buf_str(&names).data,
                       text_if(names.rc != NG_OK, "..."));
    call->staged.hint = ng_str_of("Name one of them, or none");
    buf_done(&names);
    return rc;
}

int dispatch_spaces(struct call *call, const struct tool *tool)
{
    int rc = dispatch_space_pick(call, tool);
    if (rc == NG_EFORBIDDEN) {
        return dispatch_refuse_space(call, call->caller.space);
    }
    return rc == NG_OK ? rc : call_fail(call, rc, "out of memory");
}

/* ---- of documents ---- */

bool dispatch_may_use_space(const struct call *call, struct ng_str space)
{
    const struct ng_caller *caller = &call->caller;
    return call->key == NULL || caller->all_spaces || call_has_space(caller, space);
}

/* The first tool of the plugin that declares the collection; NULL: it has none. */
static const struct tool *collection_tool(struct gateway *gateway, struct ng_str collection)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    const struct tool *tool = NULL;
    for (size_t i = 0; i < count && tool == NULL; i++) {
        if (plugins[i]->tool_count > 0 && dispatch_declares(&plugins[i]->desc, collection)) {
            tool = plugins[i]->tools[0];
        }
    }
    return tool;
}

int dispatch_space_of(struct call *call, struct ng_str collection)
{
    if (call->caller.space_named) {
        return NG_OK;
    }
    return dispatch_spaces(call, collection_tool(call->gateway, collection));
}

/* ---- the argument ---- */

static int take_name(struct call *call, struct ng_str name)
{
    struct ng_str before = call->caller.space;
    if (!call->caller.space_named) {
        call->options |= CALL_SPACE_ARGUED;
        return call_name_space(call, name);
    }
    if (str_equal(before, name)) {
        return NG_OK;
    }
    return call_fail(call, NG_EINVAL,
                     "the argument `space` is \"%.*s\", but the caller names the space "
                     "\"%.*s\": leave one of them out",
                     (int)utf8_cut(name, NG_SPACE_MAX).len, name.data, (int)before.len,
                     before.data);
}

/* Returns a copy of the object without the member: the transport still uses the original. NULL:
 * out of memory. */
static const struct ng_value *without_member(struct arena *arena, const struct ng_value *object,
                                             const struct ng_value *left_out)
{
    struct ng_value *copies = arena_alloc(arena, (object->count + 1) * sizeof(*copies));
    if (copies == NULL) {
        return NULL;
    }
    struct ng_value *copy = &copies[object->count];
    struct ng_value **at = &copy->first;
    *copy = *object;
    copy->count--;
    copy->text = str_make(NULL, 0);
    copy->printed = false;
    size_t used = 0;
    for (const struct ng_value *child = object->first; child != NULL; child = child->next) {
        if (child != left_out) {
            copies[used] = *child;
            *at = &copies[used++];
            at = &(*at)->next;
        }
    }
    *at = NULL;
    return copy;
}

int dispatch_space_take(struct call *call)
{
    const struct ng_value *args = call->pub.args;
    const struct ng_value *found = NULL;
    if ((call->tool->desc.flags & NG_TOOL_BY_SPACE) != 0 && json_is(args, NG_TYPE_OBJECT)) {
        found = json_get(args, TOOL_SPACE_MEMBER);
    }
    if (!json_is(found, NG_TYPE_STRING)) {
        return NG_OK; /* none, or one that the schema refuses */
    }
    call->pub.args = without_member(&call->arena, args, found);
    if (call->pub.args == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    call->args_text = str_make(NULL, 0); /* printed again */
    return take_name(call, found->text);
}
