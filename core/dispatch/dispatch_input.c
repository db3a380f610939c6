/* SPDX-License-Identifier: MIT */
/* dispatch_input.c - arguments that the tool's schema refuses: made to fit, or every violation
 * told. */
#include "dispatch_input.h"

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/module/registry.h"
#include "core/schema/schema.h"
#include "dispatch.h"
#include "dispatch_allow.h"

/* Violations told; one that is mended may show others. */
#define INVALID_SHOWN 10
/* Memory of their sentence; call_fail() shortens it. */
#define INVALID_MESSAGE_MAX ((size_t)64 * 1024)

/* One violation as a part of the sentence: models see that, and not the details. */
static void print_violation(struct buf *out, const struct violation *found)
{
    struct ng_str path = found->path;
    if (path.len == 0) {
        (void)buf_add_c(out, "the arguments");
    } else {
        (void)buf_printf(out, "`%.*s`", (int)path.len - 1, path.data + 1);
    }
    (void)buf_printf(out, ": expected %.*s, got %.*s", (int)found->expected.len,
                     found->expected.data, (int)found->got.len, found->got.data);
}

static void detail_violation(struct ng_writer *writer, const struct violation *found)
{
    json_object(writer);
    json_name(writer, "path");
    json_string(writer, found->path);
    json_name(writer, "expected");
    json_string(writer, found->expected);
    json_name(writer, "got");
    json_string(writer, found->got);
    json_end(writer);
}

static int dispatch_invalid(struct call *call, const struct violations *found)
{
    struct buf text;
    buf_init(&text, INVALID_MESSAGE_MAX);
    struct ng_writer *writer = call->pub.host->details(&call->pub);
    json_object(writer);
    json_name(writer, "violations");
    json_array(writer);
    for (size_t i = 0; i < found->count && i < INVALID_SHOWN; i++) {
        if (i > 0) {
            (void)buf_add_c(&text, "; ");
        }
        print_violation(&text, &found->items[i]);
        detail_violation(writer, &found->items[i]);
    }
    if (found->count > INVALID_SHOWN) {
        (void)buf_printf(&text, "; and %s%zu more",
                         text_if(found->count == SCHEMA_VIOLATIONS_MAX, "at least "),
                         found->count - INVALID_SHOWN);
    }
    json_end(writer);
    json_end(writer);
    int rc = call_fail(call, NG_EINVAL, "%.*s", (int)text.len, text.data);
    buf_done(&text);
    return rc;
}

const struct ng_value *dispatch_arguments(struct call *call, const struct ng_value *given)
{
    const struct ng_value *object = NULL;
    struct json_error error;
    if (!json_is(given, NG_TYPE_STRING) ||
        json_parse(&call->arena, given->text, call->gateway->limits.depth, &object, &error) !=
            NG_OK ||
        object->type != NG_TYPE_OBJECT) {
        return given;
    }
    call->args_text = str_make(NULL, 0); /* it is that of the object */
    return object;
}

/* Makes the arguments fit, where they are only written in another way. */
static bool fit_arguments(struct call *call)
{
    struct gateway *gateway = call->gateway;
    struct schema_leniency leniency = {.depth = gateway->limits.depth};
    /* The tree is this call's alone until its tool runs. */
    struct ng_value *args = (struct ng_value *)(uintptr_t)call->pub.args;
    leniency.ignored_count =
        config_list(gateway->config, "tools.ignored_arguments", &leniency.ignored);
    if (!schema_fit(call->tool->params, args, &call->arena, &leniency)) {
        return false;
    }
    call->args_text = str_make(NULL, 0); /* printed again */
    return true;
}

int dispatch_refuse_input(struct call *call, int rc, struct violations *found)
{
    if (rc == NG_EINVAL && fit_arguments(call)) {
        rc = schema_check(call->tool->params, call->pub.args, &call->arena, found);
        if (rc == NG_OK) { /* the right to call it depends on the arguments */
            return dispatch_authorize(call, call->tool);
        }
    }
    if (rc == NG_OK) {
        return NG_OK;
    }
    if (rc != NG_EINVAL || found->count == 0) {
        return call_fail(call, NG_EINTERNAL, "the arguments of `%s` could not be checked",
                         call->tool->desc.name);
    }
    return dispatch_invalid(call, found);
}
