/* SPDX-License-Identifier: MIT */
/* rest_tools.c - /v1/tools: listing, showing and calling. */
#include <stdio.h>

#include "http_reply.h"
#include "routes.h"
#include "str.h"
#include "tool_formats.h"

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
    if (tool == NULL || !dispatch_allows(call, tool)) {
        struct ng_str near = registry_nearest(registry, request->param);
        struct ng_str shown = str_utf8_cut(request->param, 100);
        char hint[160];
        (void)snprintf(hint, sizeof(hint), "Did you mean `%.*s`?", (int)near.len, near.data);
        (void)http_reply_error(request, NG_EUNKNOWN_TOOL,
                               tool == NULL && near.data != NULL ? hint : NULL,
                               "no tool is called \"%.*s\"", (int)shown.len, shown.data);
    } else {
        (void)tool_formats_print_tool(tool, format, &request->reply.body);
        http_reply_etag(request);
    }
    call_unref(call);
    return NG_OK;
}

/* ---- calling ---- */

static void add_base64(struct buf *out, struct ng_str bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t groups = bytes.len / 3 + (bytes.len % 3 != 0);
    (void)buf_add_char(out, '"');
    char *to = groups > out->max / 4 ? NULL : buf_reserve(out, groups * 4);
    if (to == NULL) {
        out->rc = out->rc == NG_OK ? NG_ETOOLARGE : out->rc;
        return;
    }
    const unsigned char *from = (const unsigned char *)bytes.data;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        unsigned group = (unsigned)from[i] << 16;
        group |= left > 1 ? (unsigned)from[i + 1] << 8 : 0;
        group |= left > 2 ? (unsigned)from[i + 2] : 0;
        *to++ = digits[(group >> 18) & 63];
        *to++ = digits[(group >> 12) & 63];
        *to++ = left > 1 ? digits[(group >> 6) & 63] : '=';
        *to++ = left > 2 ? digits[group & 63] : '=';
    }
    out->len += groups * 4;
    (void)buf_add_char(out, '"');
}

static void add_member(struct buf *out, const char *name, struct ng_str value)
{
    if (value.data != NULL) {
        (void)buf_printf(out, ",\"%s\":", name);
        (void)buf_add_json(out, value);
    }
}

/* As MCP's content blocks are. */
static void add_part(struct buf *out, const struct part *part)
{
    switch (part->kind) {
    case PART_TEXT:
        (void)buf_add_c(out, "{\"type\":\"text\"");
        add_member(out, "text", part->data);
        break;
    case PART_IMAGE:
    case PART_AUDIO:
        (void)buf_printf(out, "{\"type\":\"%s\"", part->kind == PART_IMAGE ? "image" : "audio");
        add_member(out, "mimeType", part->mime_type);
        (void)buf_add_c(out, ",\"data\":");
        add_base64(out, part->data);
        break;
    case PART_RESOURCE:
        (void)buf_add_c(out, "{\"type\":\"resource\",\"resource\":{\"uri\":");
        (void)buf_add_json(out, part->uri);
        add_member(out, "mimeType", part->mime_type);
        if (part->is_text) {
            (void)buf_add_c(out, ",\"text\":");
            (void)buf_add_json(out, part->data);
        } else {
            (void)buf_add_c(out, ",\"blob\":");
            add_base64(out, part->data);
        }
        (void)buf_add_char(out, '}');
        break;
    case PART_LINK:
        (void)buf_add_c(out, "{\"type\":\"resource_link\"");
        add_member(out, "uri", part->uri);
        add_member(out, "name", part->name);
        add_member(out, "mimeType", part->mime_type);
        break;
    }
    (void)buf_add_char(out, '}');
}

/* {"result":...,"content"?:[...],"revision"?:...} */
static void print_result(const struct result *result, struct buf *out)
{
    (void)buf_add_c(out, "{\"result\":");
    if (result->is_json) {
        (void)buf_add_str(out, result->text);
    } else if (result->text.len > 0) {
        (void)buf_add_json(out, result->text);
    } else {
        (void)buf_add_c(out, "\"\"");
    }
    if (result->parts != NULL) {
        (void)buf_add_c(out, ",\"content\":[");
        for (const struct part *part = result->parts; part != NULL; part = part->next) {
            add_part(out, part);
            (void)buf_add_c(out, part->next != NULL ? "," : "]");
        }
    }
    if (result->revision_kind == REVISION_NUMBER) {
        (void)buf_add_c(out, ",\"revision\":");
        (void)buf_add_number(out, result->revision_number);
    } else if (result->revision_kind == REVISION_TEXT) {
        (void)buf_add_c(out, ",\"revision\":");
        (void)buf_add_json(out, result->revision_text);
    }
    (void)buf_add_char(out, '}');
}

static bool is_large(const struct result *result)
{
    return result->text.len > BUILD_INLINE_BYTES || result->parts != NULL;
}

/* On whichever thread the call ended. */
static void call_done(struct call *call, void *user)
{
    struct http_request *request = user;
    if (call->result.rc == NG_OK && is_large(&call->result)) {
        print_result(&call->result, &request->built);
    }
    http_request_done(request);
}

void rest_tools_finish(struct http_request *request)
{
    struct call *call = request->call;
    if (call->result.rc != NG_OK) {
        (void)http_reply_call_error(request, call);
    } else {
        request->reply.status = STATUS_OK;
        request->reply.changed = !call->read_only;
        if (request->built.len > 0 || request->built.rc != NG_OK) {
            buf_done(&request->reply.body);
            request->reply.body = request->built;
            buf_init(&request->built, request->reply.body.max);
        } else {
            print_result(&call->result, &request->reply.body);
        }
    }
    request->call = NULL;
    call_unref(call);
}

int rest_tools_call(struct http_request *request)
{
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    call->done = call_done;
    /* What the call points to must live as long as it does, which may be longer than the
     * request: a call that ran into its deadline is answered before its tool returns. */
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
