/* SPDX-License-Identifier: MIT */
/* rest_history.c - addresses of tools besides /v1/tools: each request is a call of its tool. */
#include "api/definitions/tool_routes.h"
#include "api/http/http_reply.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text/json_writer.h"
#include "core/base/utf8.h"
#include "core/call/plugin.h"
#include "core/dispatch/dispatch.h"
#include "core/module/registry.h"
#include "rest.h"

#define STATUS_OK 200
/* Bytes of the arguments: every byte of a query may need an escape. */
#define ARGUMENTS_MAX ((size_t)1024 * 1024)
#define PARAMETER_SHOWN 60

/* ---- the query as arguments ---- */

/* Does the schema of the argument leave its type open, for texts and lists of them? */
static bool takes_list(const struct tool *tool, struct ng_str name)
{
    const struct ng_value *properties = json_get(tool->params_tree, "properties");
    const struct ng_value *property = json_get_str(properties, name);
    return property != NULL && json_get(property, "type") == NULL;
}

static int add_parameter(struct http_request *request, struct ng_writer *writer,
                         const struct tool *tool, struct ng_str name, struct ng_str value)
{
    struct call *call = request->call;
    struct ng_str text = str_make(arena_alloc(&call->arena, value.len + 1), 0);
    if (text.data == NULL) {
        return http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    if (http_decode(value, (char *)(uintptr_t)text.data, &text.len) != NG_OK) {
        name = utf8_cut(name, PARAMETER_SHOWN);
        return http_reply_error(request, NG_EINVAL, NULL,
                                "The value of %.*s must be UTF-8, percent-encoded",
                                (int)name.len, name.data);
    }
    json_name_str(writer, name);
    if (takes_list(tool, name) && str_count(text, ',') > 0) {
        json_comma_list(writer, text);
    } else {
        json_string(writer, text);
    }
    return NG_OK;
}

/* The arguments, in memory of the call. Not NG_OK: it is answered. */
static int read_arguments(struct http_request *request, const struct tool *tool)
{
    struct call *call = request->call;
    struct ng_str query = request->target.query;
    struct ng_str name;
    struct ng_str value;
    struct ng_writer writer;
    struct buf text;
    int rc = NG_OK;
    buf_init(&text, ARGUMENTS_MAX);
    json_writer_init(&writer, &text);
    json_object(&writer);
    while (rc == NG_OK && http_query_next(&query, &name, &value)) {
        rc = add_parameter(request, &writer, tool, name, value);
    }
    json_end(&writer);
    call->args_text = arena_copy(&call->arena, buf_str(&text));
    if (rc == NG_OK && (text.rc != NG_OK || call->args_text.data == NULL)) {
        rc = http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    buf_done(&text);
    return rc;
}

/* ---- the body as arguments ---- */

/* In memory that lives as long as the call. Not NG_OK: it is answered. */
static int read_body(struct http_request *request)
{
    struct call *call = request->call;
    struct ng_str key = request->headers.idempotency_key;
    if (key.data != NULL) {
        call->idempotency_key = arena_copy(&call->arena, key);
    }
    call->args_text = http_request_text(request);
    bool has_key = key.data == NULL || call->idempotency_key.data != NULL;
    if (!has_key || http_request_keep_body(request, call) != NG_OK) {
        return http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    return NG_OK;
}

/* ---- the call ---- */

static void history_done(struct call *call, void *user)
{
    (void)call;
    http_request_done(user);
}

static bool wants_plain(const struct http_request *request)
{
    return str_begins(request->headers.accept, "text/plain");
}

/* A writing tool's answer is not cut either: it cannot be asked for again. */
static bool wants_all(const struct http_request *request, const struct tool_route *route)
{
    return route->method == TOOL_ROUTE_POST || (route->plain != NULL && wants_plain(request));
}

int rest_history(struct http_request *request)
{
    const struct tool_route *route = tool_route_find(request->target.path);
    const struct tool *tool = registry_find(request->gateway->registry, ng_str_of(route->tool));
    if (tool == NULL) {
        return http_reply_error(request, NG_ENOTFOUND, "Add `history` to `plugins`",
                                "The plugin with %s is not loaded", route->tool);
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    request->call = call;
    int rc =
        route->method == TOOL_ROUTE_POST ? read_body(request) : read_arguments(request, tool);
    if (rc != NG_OK) {
        request->call = NULL;
        call_unref(call);
        return NG_OK;
    }
    call->options |= wants_all(request, route) ? CALL_RAW_ANSWER : 0;
    call->done = history_done;
    call->tool_name = ng_str_of(route->tool);
    if (dispatch(call) == NG_PENDING) {
        return NG_PENDING;
    }
    rest_history_finish(request);
    return NG_OK;
}

/* Is there more of the text than the answer has, which the request did not leave out? The lines
 * behind `max_lines` it did; those that did not fit into the answer, it did not. */
static bool is_cut(const struct call *call, const struct ng_value *answer)
{
    int64_t next = json_get_integer(answer, "next_line");
    int64_t start = json_get_integer(call->pub.args, "start_line");
    int64_t most = json_get_integer(call->pub.args, "max_lines");
    if (next > 0) {
        return most == 0 || next - (start > 0 ? start : 1) < most;
    }
    return json_get(answer, "truncated") != NULL;
}

/* The text of one member, as it is and whole, or the bytes. Answers of several documents do not
 * have it, and remain objects. */
static void reply_plain(struct http_request *request, struct call *call, const char *member)
{
    const struct ng_value *answer = NULL;
    struct json_error error;
    if (json_parse(&call->arena, call->final.text, JSON_DEPTH_DEFAULT, &answer, &error) !=
        NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return;
    }
    const struct ng_value *text = json_get(answer, member);
    if (text == NULL) {
        (void)buf_add_str(&request->reply.body, call->final.text);
        return;
    }
    if (is_cut(call, answer)) {
        (void)http_reply_error(request, NG_ETOOLARGE,
                               json_get(answer, "truncated") != NULL
                                   ? "Without `Accept: text/plain` the answer is its beginning"
                                   : "Ask for parts with `start_line` and `max_lines`",
                               "The %s is longer than an answer (limits.result)", member);
        return;
    }
    if (json_get(answer, "encoding") != NULL) {
        request->reply.content_type = "application/octet-stream";
        (void)base64_decode(&request->reply.body, json_text(text), BASE64_STANDARD);
        return;
    }
    request->reply.content_type = "text/plain; charset=utf-8";
    (void)buf_add_str(&request->reply.body, json_text(text));
}

void rest_history_finish(struct http_request *request)
{
    struct call *call = request->call;
    const struct tool_route *route = tool_route_find(request->target.path);
    request->reply.status = STATUS_OK;
    if (call->final.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else if (route->plain != NULL && wants_plain(request)) {
        reply_plain(request, call, route->plain);
    } else {
        (void)buf_add_str(&request->reply.body, call->final.text);
        request->reply.changed = !call->read_only;
    }
    request->call = NULL;
    call_unref(call);
}
