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

/* ---- null is "not given" ---- */

static bool is_null(const struct ng_value *value)
{
    return json_is(value, NG_TYPE_NULL);
}

/* Arguments of tools are checked by their schema, answers of users by the code that asked. */
static bool is_of_others(const struct mcp_message *message, struct ng_str name)
{
    return str_is(name, "inputResponses") ||
           (str_is(name, "arguments") && str_is(message->method, "tools/call"));
}

/* The tree is the message's alone until it is handled. */
static struct ng_value *own(const struct ng_value *value)
{
    return (struct ng_value *)(uintptr_t)value;
}

static void drop_null(const struct ng_value *object, const char *name)
{
    struct ng_value **at = &own(object)->first;
    while (*at != NULL && !str_is((*at)->key, name)) {
        at = &(*at)->next;
    }
    if (is_null(*at)) {
        *at = (*at)->next;
        own(object)->count--;
    }
}

static void drop_nulls(const struct mcp_message *message, struct ng_value *params)
{
    struct ng_value **at = &params->first;
    while (*at != NULL) {
        struct ng_value *member = *at;
        if (is_null(member)) {
            *at = member->next;
            params->count--;
            continue;
        }
        if (!is_of_others(message, member->key)) {
            (void)json_drop_nulls(member);
        }
        at = &member->next;
    }
    params->text = str_make(NULL, 0);
}

const struct ng_value *mcp_message_get(const struct ng_value *message, const char *name)
{
    const struct ng_value *value = json_get(message, name);
    return is_null(value) ? NULL : value;
}

/* ---- reading ---- */

/* One of result and error; a result alone may be null. */
static bool is_answer(const struct ng_value *value)
{
    return (json_get(value, "result") != NULL) != (json_get(value, "error") != NULL);
}

static int read_params(const struct ng_value *value, struct mcp_message *ret,
                       const char **ret_error)
{
    const struct ng_value *params = mcp_message_get(value, "params");
    if (params == NULL) {
        return NG_OK;
    }
    if (params->type != NG_TYPE_OBJECT) {
        *ret_error = "`params` must be an object";
        return NG_EINVAL;
    }
    drop_nulls(ret, own(params));
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
    const struct ng_value *method = mcp_message_get(value, "method");
    if (method == NULL) {
        *ret_error = "a message has a `method`, or one of `result` and `error`";
        ret->kind = MCP_RESPONSE;
        drop_null(value, mcp_message_get(value, "error") != NULL ? "result" : "error");
        return is_answer(value) ? NG_OK : NG_EINVAL;
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

const struct ng_value *mcp_message_partial_id(const struct ng_value *read)
{
    const struct ng_value *id = NULL;
    if (mcp_message_get(read, "result") != NULL || mcp_message_get(read, "error") != NULL) {
        return NULL; /* an answer: its id is that of our question */
    }
    for (const struct ng_value *at = json_first(read); at != NULL; at = at->next) {
        if (str_is(at->key, "id")) {
            if (id != NULL) {
                return NULL; /* which one is meant? */
            }
            id = at;
        }
    }
    return id != NULL && is_id(id) ? id : NULL;
}

const struct ng_value *mcp_message_early_id(struct arena *arena, struct ng_str beginning)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    struct ng_str text = json_skip_mark(beginning);
    const char *comma = text.len > 0 ? memrchr(text.data, ',', text.len) : NULL;
    if (comma == NULL) {
        return NULL;
    }
    text.len = (size_t)(comma - text.data); /* an id that ends here is whole */
    if (json_parse(arena, text, JSON_DEPTH_DEFAULT, &value, &error) != NG_EJSON) {
        return NULL;
    }
    return mcp_message_partial_id(error.partial);
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

void mcp_print_notification(struct buf *out, const char *method, struct ng_str uri,
                            const char *meta)
{
    (void)buf_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\"", method);
    if (uri.data != NULL || meta != NULL) {
        (void)buf_add_c(out, ",\"params\":{");
        if (uri.data != NULL) {
            (void)buf_add_c(out, "\"uri\":");
            (void)buf_add_json(out, uri);
        }
        if (meta != NULL) {
            (void)buf_add_c(out, uri.data != NULL ? ",\"_meta\":{" : "\"_meta\":{");
            (void)buf_add_c(out, meta);
            (void)buf_add_char(out, '}');
        }
        (void)buf_add_char(out, '}');
    }
    (void)buf_add_char(out, '}');
}
