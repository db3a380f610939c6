/* SPDX-License-Identifier: MIT */
/* dispatch_input.c - arguments against the tool's schema, and every violation told. */
#include "dispatch_input.h"

#include "registry.h"
#include "schema.h"
#include "str.h"

static int dispatch_invalid(struct call *call, const struct violations *found)
{
    const struct violation *first = &found->items[0];
    struct ng_str path = first->path;
    bool whole = path.len == 0;
    call_fail(call, NG_EINVAL, "%s%.*s%s: expected %.*s, got %.*s",
              whole ? "the arguments" : "`", whole ? 0 : (int)path.len - 1,
              whole ? "" : path.data + 1, whole ? "" : "`", (int)first->expected.len,
              first->expected.data, (int)first->got.len, first->got.data);
    struct ng_writer *writer = call_host.details(&call->pub);
    json_object(writer);
    json_name(writer, "violations");
    json_array(writer);
    for (size_t i = 0; i < found->count; i++) {
        json_object(writer);
        json_name(writer, "path");
        json_string(writer, found->items[i].path);
        json_name(writer, "expected");
        json_string(writer, found->items[i].expected);
        json_name(writer, "got");
        json_string(writer, found->items[i].got);
        json_end(writer);
    }
    json_end(writer);
    json_end(writer);
    return NG_EINVAL;
}

int dispatch_check_input(struct call *call)
{
    struct violations found;
    found.count = 0;
    int rc = schema_check(call->tool->params, call->pub.args, &call->arena, &found);
    if (rc == NG_OK && call->pub.args->type != NG_TYPE_OBJECT) {
        return call_fail(call, NG_EINVAL, "the arguments: expected an object");
    }
    if (rc == NG_OK) {
        return NG_OK;
    }
    if (rc != NG_EINVAL || found.count == 0) {
        return call_fail(call, NG_EINTERNAL, "the arguments of `%s` could not be checked",
                         call->tool->desc.name);
    }
    return dispatch_invalid(call, &found);
}
