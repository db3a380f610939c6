/* SPDX-License-Identifier: MIT */
/* mcp_message.c - reading and printing JSON-RPC messages. Strict about the envelope, silent
 * about members it does not know. */
#include "mcp_message.h"

#include "core/base/str.h"

static bool is_id(const struct ng_value *value)
{
    return value->type == NG_TYPE_STRING ||
           (value->type == NG_TYPE_NUMBER && json_is_integer(value));
}

static int read_params(const struct ng_value *value, struct mcp_message *ret,
                       const char **ret_error)
{
    const struct ng_value *params = json_get(value, "params");
    if (params == NULL) {
        return NG_OK;
    }
    if (params->type != NG_TYPE_OBJECT) {
        *ret_error = "`params` must be an object";
        return NG_EINVAL;
    }
    ret->params = params;
    const struct ng_value *meta = json_get(params, "_meta");
    if (meta != NULL && meta->type != NG_TYPE_OBJECT) {
        *ret_error = "`params._meta` must be an object";
        return NG_EINVAL;
    }
    ret->meta = meta;
    return NG_OK;
}

int mcp_message_read(const struct ng_value *value, struct mcp_message *ret,
                     const char **ret_error)
{
    memset(ret, 0, sizeof(*ret));
    if (value->type != NG_TYPE_OBJECT) {
        *ret_error = "a message must be a JSON object";
        return NG_EINVAL;
    }
    const struct ng_value *id = json_get(value, "id");
    if (id != NULL && !is_id(id)) {
        *ret_error = "`id` must be a string or an integer; leave it out for a notification";
        return NG_EINVAL;
    }
    ret->id = id;
    const struct ng_value *version = json_get(value, "jsonrpc");
    if (!json_is(version, NG_TYPE_STRING) || !str_is(version->text, "2.0")) {
        *ret_error = "`jsonrpc` must be \"2.0\"";
        return NG_EINVAL;
    }
    const struct ng_value *method = json_get(value, "method");
    if (method == NULL) {
        bool answers =
            (json_get(value, "result") != NULL) != (json_get(value, "error") != NULL);
        *ret_error = "a message has a `method`, or one of `result` and `error`";
        ret->kind = MCP_RESPONSE;
        if (answers) {
            return NG_OK;
        }
        return NG_EINVAL;
    }
    if (method->type != NG_TYPE_STRING) {
        *ret_error = "`method` must be a string";
        return NG_EINVAL;
    }
    ret->kind = MCP_REQUEST;
    if (id == NULL) {
        ret->kind = MCP_NOTIFICATION;
    }
    ret->method = method->text;
    return read_params(value, ret, ret_error);
}

bool mcp_id_equal(const struct ng_value *a, const struct ng_value *b)
{
    return a != NULL && b != NULL && a->type == b->type && str_equal(a->text, b->text);
}

void mcp_print_id(struct buf *out, const struct ng_value *id)
{
    if (id == NULL) {
        buf_add_c(out, "null");
    } else if (id->type == NG_TYPE_STRING) {
        buf_add_json(out, id->text);
    } else {
        buf_add_str(out, id->text);
    }
}

void mcp_print_error(struct buf *out, const struct ng_value *id, int code,
                     struct ng_str message, struct ng_str data)
{
    buf_add_c(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    mcp_print_id(out, id);
    buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    buf_add_json(out, message);
    if (data.data != NULL) {
        buf_add_c(out, ",\"data\":");
        buf_add_str(out, data);
    }
    buf_add_c(out, "}}");
}
