/* SPDX-License-Identifier: MIT */
/* dispatch_space.c - the space of a call: named by the caller, by the argument `space`, or the
 * default of its key or tool. */
#include "dispatch_space.h"

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/key.h"
#include "dispatch.h"

/* Of a caller without keys: its own, shared, the one it named. */
#define SPACES_WITHOUT_KEYS 3

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

int dispatch_spaces(struct call *call, const struct tool *tool)
{
    struct ng_str space;
    int rc = dispatch_space_pick(call, tool);
    if (rc == NG_EFORBIDDEN) {
        space = call->caller.space;
        call->target = space;
        return call_fail(call, rc, "the caller's key does not allow the space \"%.*s\"",
                         (int)space.len, space.data);
    }
    if (rc == NG_OK) {
        return rc;
    }
    return call_fail(call, rc, "out of memory");
}

/* ---- the argument ---- */

static int take_name(struct call *call, struct ng_str name)
{
    struct ng_str before = call->caller.space;
    if (call->caller.space_named && !str_equal(before, name)) {
        return call_fail(call, NG_EINVAL,
                         "the argument `space` is \"%.*s\", but the caller names the space "
                         "\"%.*s\": leave one of them out",
                         (int)utf8_cut(name, NG_SPACE_MAX).len, name.data, (int)before.len,
                         before.data);
    }
    return call_name_space(call, name);
}

int dispatch_space_take(struct call *call)
{
    if ((call->tool->desc.flags & NG_TOOL_BY_SPACE) == 0 ||
        !json_is(call->pub.args, NG_TYPE_OBJECT)) {
        return NG_OK;
    }
    /* The tree is this call's alone until its tool runs. */
    struct ng_value *args = (struct ng_value *)(uintptr_t)call->pub.args;
    struct ng_value **at = &args->first;
    while (*at != NULL && !str_is((*at)->key, TOOL_SPACE_MEMBER)) {
        at = &(*at)->next;
    }
    const struct ng_value *found = *at;
    if (!json_is(found, NG_TYPE_STRING)) {
        return NG_OK; /* none, or one that the schema refuses */
    }
    *at = found->next;
    args->count--;
    args->text = str_make(NULL, 0);
    args->printed = false;
    call->args_text = str_make(NULL, 0); /* printed again */
    return take_name(call, found->text);
}
