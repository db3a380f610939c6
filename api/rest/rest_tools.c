/* SPDX-License-Identifier: MIT */
/* rest_tools.c - /v1/tools: listing, showing and calling. */
#include <stdio.h>

#include "api/base/content.h"
#include "api/definitions/tool_formats.h"
#include "api/http/http_reply.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "rest.h"

/* Answers above this are escaped on the thread that finished the call, not on the event loop.
 */
#define BUILD_INLINE_BYTES ((size_t)16 * 1024)
#define STATUS_OK 200

static int parse_format(struct http_request *request, enum tool_format *ret)
{
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    *ret = TOOL_FORMAT_MCP;
    while (http_query_next(&query, &name, &value)) {
        if (!str_is(name, "format")) {
            return http_reply_error(request, NG_EINVAL, "The only parameter is format",
                                    "There is no parameter \"%.*s\"", (int)name.len, name.data);
        }
        if (!tool_format_parse(value, ret)) {
            return http_reply_error(request, NG_EINVAL, NULL,
                                    "format is \"%.*s\", it must be one of %s", (int)value.len,
                                    value.data, tool_format_names());
        }
    }
    return NG_OK;
}

int rest_tools_list(struct http_request *request)
{
    enum tool_format format;
    if (parse_format(request, &format) != NG_OK) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    (void)tool_formats_print(request->gateway, call, format, &request->reply.body);
    call_unref(call);
    http_reply_etag(request);
    return NG_OK;
}

int rest_tools_show(struct http_request *request)
{
    enum tool_format format;
    if (parse_format(request, &format) != NG_OK) {
        return NG_OK;
    }
    const struct registry *registry = request->gateway->registry;
    const struct tool *tool = registry_find(registry, request->param);
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    /* Also one that is not listed now (no notebook attached): it may be called all the same. */
    if (tool == NULL || !dispatch_may(call, tool)) {
        struct ng_str near = registry_nearest(registry, request->param);
        const struct tool *meant = NULL;
        if (near.data != NULL) {
            meant = registry_find(registry, near);
        }
        bool hints = tool == NULL && meant != NULL && dispatch_allows(call, meant);
        struct ng_str shown = utf8_cut(request->param, 100);
        char hint[160];
        (void)snprintf(hint, sizeof(hint), "Did you mean `%.*s`?", (int)near.len, near.data);
        (void)http_reply_error(request, NG_EUNKNOWN_TOOL, hints ? hint : NULL,
                               "no tool is called \"%.*s\"", (int)shown.len, shown.data);
    } else {
        (void)tool_formats_print_tool(tool, call, format, &request->reply.body);
        http_reply_etag(request);
    }
    call_unref(call);
    return NG_OK;
}

/* ---- calling ---- */

/* On whichever thread the call ended. */
static void call_done(struct call *call, void *user)
{
    struct http_request *request = user;
    bool is_large = call->final.text.len > BUILD_INLINE_BYTES || call->final.parts != NULL;
    if (call->final.rc == NG_OK && is_large) {
        content_print_result(&request->built, &call->final);
    }
    http_request_done(request);
}

void rest_tools_finish(struct http_request *request)
{
    struct call *call = request->call;
    if (call->final.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else {
        request->reply.status = STATUS_OK;
        request->reply.changed = !call->read_only;
        if (request->built.len > 0 || request->built.rc != NG_OK) {
            buf_done(&request->reply.body);
            request->reply.body = request->built;
            buf_init(&request->built, request->reply.body.max);
        } else {
            content_print_result(&request->reply.body, &call->final);
        }
    }
    request->call = NULL;
    call_unref(call);
}

/* raw=true: the answer is not cut to tools.max_answer. */
static int parse_raw(struct http_request *request, bool *ret)
{
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    *ret = false;
    while (http_query_next(&query, &name, &value)) {
        if (!str_is(name, "raw")) {
            continue;
        }
        *ret = str_is(value, "true");
        if (!*ret && !str_is(value, "false")) {
            return http_reply_error(request, NG_EINVAL, NULL,
                                    "raw is \"%.*s\", it must be true or false", (int)value.len,
                                    value.data);
        }
    }
    return NG_OK;
}

int rest_tools_call(struct http_request *request)
{
    bool is_raw = false;
    if (parse_raw(request, &is_raw) != NG_OK) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    call->options |= is_raw ? CALL_RAW_ANSWER : 0;
    call->done = call_done;
    /* The data of the call must live as long as the call, which may be longer than the request:
     * a call that ran into its deadline is answered before its tool returns. */
    call->tool_name = arena_copy(&call->arena, request->param);
    if (request->headers.idempotency_key.data != NULL) {
        call->idempotency_key = arena_copy(&call->arena, request->headers.idempotency_key);
    }
    call->args_text = http_request_text(request);
    if (call->tool_name.data == NULL || http_request_keep_body(request, call) != NG_OK) {
        call_unref(call);
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    request->call = call;
    int rc = dispatch(call);
    if (rc == NG_PENDING) {
        return NG_PENDING;
    }
    rest_tools_finish(request);
    return NG_OK;
}
