/* SPDX-License-Identifier: MIT */
/* keys_tools.c - the lists of tools in a request for a key: names and globs. */
#include "core/base/str.h"
#include "core/base/text/glob.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/module/registry.h"
#include "keys_table.h"

/* Bytes of a wrong name that a message quotes. */
#define SHOWN_MAX 80

static int shown(struct ng_str text)
{
    return (int)utf8_cut(text, SHOWN_MAX).len;
}

bool key_names_have(const struct ng_str *texts, size_t count, struct ng_str text)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(texts[i], text)) {
            return true;
        }
    }
    return false;
}

/* Does a tool of this gateway match the glob? */
static bool matches_some_tool(const struct registry *registry, struct ng_str glob)
{
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(registry, &tools);
    for (size_t i = 0; i < count; i++) {
        if (glob_match(glob, ng_str_of(tools[i]->desc.name))) {
            return true;
        }
    }
    return false;
}

static int check_glob(struct call *call, struct ng_str glob)
{
    if (!matches_some_tool(call->gateway->registry, glob)) {
        call_fail(call, NG_EINVAL, "no tool matches \"%.*s\"", shown(glob), glob.data);
        call->staged.hint = ng_str_of("`notegate tools` lists the tools.");
        return NG_EINVAL;
    }
    return NG_OK;
}

/* The name of a tool, or a glob that matches some. */
static int check_tool(struct call *call, const char *member, const struct ng_value *item,
                      struct ng_str *ret)
{
    if (item->type != NG_TYPE_STRING) {
        return call_fail(call, NG_EINVAL, "`%s` must be an array of strings", member);
    }
    if (glob_is(item->text)) {
        *ret = item->text;
        return check_glob(call, item->text);
    }
    const struct registry *registry = call->gateway->registry;
    const struct tool *tool = registry_find(registry, item->text);
    if (tool == NULL) {
        struct ng_str near = registry_nearest(registry, item->text);
        call_fail(call, NG_EINVAL, "no tool is called \"%.*s\"", shown(item->text),
                  item->text.data);
        if (near.data == NULL) {
            call->staged.hint = ng_str_of("`notegate tools` lists the tools.");
        } else {
            call->staged.hint =
                arena_printf(&call->arena, "Did you mean `%.*s`?", (int)near.len, near.data);
        }
        return NG_EINVAL;
    }
    *ret = ng_str_of(tool->desc.name);
    return NG_OK;
}

int key_names_read(struct call *call, const char *member, const struct ng_value *array,
                   const struct ng_str **ret, size_t *ret_count)
{
    struct ng_str *tools = arena_alloc(&call->arena, array->count * sizeof(*tools));
    size_t count = 0;
    if (tools == NULL) {
        return call_no_memory(call);
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        struct ng_str name = STR_NONE;
        int rc = check_tool(call, member, item, &name);
        if (rc != NG_OK) {
            return rc;
        }
        if (!key_names_have(tools, count, name)) {
            tools[count++] = name;
        }
    }
    *ret = tools;
    *ret_count = count;
    return NG_OK;
}

bool key_spec_allows_tool(const struct registry *registry, const struct key_spec *spec)
{
    const struct key key = {.tools = spec->tools,
                            .tool_count = spec->tool_count,
                            .no_tools = spec->no_tools,
                            .no_tool_count = spec->no_tool_count};
    const struct tool *const *tools = NULL;
    size_t count = registry_tools(registry, &tools);
    for (size_t i = 0; i < count; i++) {
        if (key_allows_tool(&key, tools[i]->desc.name)) {
            return true;
        }
    }
    return count == 0;
}
