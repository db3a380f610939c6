/* SPDX-License-Identifier: MIT */
/* mcp_relay_message.c - reads what the headers of a relayed message repeat, and answers for a
 * gateway that did not. */
#include "mcp_relay_message.h"

#include <stdio.h>
#include <string.h>

#include "api/protocol/mcp_version.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/json/json.h"

#define RELAY_MEMORY_MAX ((size_t)1024 * 1024 * 1024)
#define RELAY_ID_MAX ((size_t)64 * 1024)
#define RELAY_DEPTH 1024
#define RELAY_ERROR_CODE (-32603)

/* A header's value as it is, where it may be one; else "". */
static void take_plain(const struct ng_value *value, char *ret, size_t size)
{
    ret[0] = '\0';
    if (!json_is(value, NG_TYPE_STRING) || value->text.len >= size) {
        return;
    }
    for (size_t i = 0; i < value->text.len; i++) {
        if (value->text.data[i] < 0x21 || value->text.data[i] > 0x7e) {
            return;
        }
    }
    memcpy(ret, value->text.data, value->text.len);
    ret[value->text.len] = '\0';
}

static bool name_is_plain(struct ng_str text)
{
    if (text.len == 0 || text.data[0] == ' ' || text.data[text.len - 1] == ' ' ||
        (text.len >= 2 && memcmp(text.data, "=?", 2) == 0)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < 0x20 || text.data[i] > 0x7e) {
            return false;
        }
    }
    return true;
}

/* A name that is no header text travels as =?base64?...?=. */
static void take_name(const struct ng_value *value, char *ret, size_t size)
{
    ret[0] = '\0';
    if (!json_is(value, NG_TYPE_STRING)) {
        return;
    }
    struct ng_str text = value->text;
    if (name_is_plain(text) && text.len < size) {
        memcpy(ret, text.data, text.len);
        ret[text.len] = '\0';
        return;
    }
    struct buf coded;
    buf_init(&coded, size - 1);
    buf_add_c(&coded, "=?base64?");
    base64_encode(&coded, text, BASE64_STANDARD);
    buf_add_c(&coded, "?=");
    /* The gateway would take a cut value for another name. */
    if (coded.rc == NG_OK) {
        (void)snprintf(ret, size, "%s", buf_cstr(&coded));
    }
    buf_done(&coded);
}

/* Which member of params Mcp-Name repeats, or NULL. */
static const char *name_member(const char *method)
{
    if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0) {
        return "name";
    }
    if (strcmp(method, "resources/read") == 0 || strcmp(method, "resources/subscribe") == 0 ||
        strcmp(method, "resources/unsubscribe") == 0) {
        return "uri";
    }
    if (strncmp(method, "tasks/", 6) == 0) {
        return "taskId";
    }
    return NULL;
}

/* A message that the gateway refuses has no method here: its refusal is passed on as it is. */
static void read_value(const struct ng_value *value, struct relay_message *ret)
{
    struct mcp_message message;
    const char *error = NULL;
    if (mcp_message_read(value, &message, &error) != NG_OK) {
        return;
    }
    const struct ng_value *method = mcp_message_get(value, "method");
    take_plain(method, ret->method, sizeof(ret->method));
    take_plain(json_get(message.meta, MCP_META_VERSION), ret->version, sizeof(ret->version));
    const char *member = name_member(ret->method);
    if (member != NULL) {
        take_name(json_get(message.params, member), ret->name, sizeof(ret->name));
    }
    if (message.id != NULL && ret->method[0] != '\0') {
        (void)json_print(&ret->id, message.id);
    }
    if (message.id != NULL && message.kind == MCP_RESPONSE) {
        (void)json_print(&ret->answers, message.id);
    }
    const struct ng_value *cancels = json_get(message.params, "requestId");
    if (cancels != NULL && strcmp(ret->method, "notifications/cancelled") == 0) {
        (void)json_print(&ret->cancels, cancels);
    }
    ret->is_initialize = strcmp(ret->method, "initialize") == 0;
    ret->is_initialized = strcmp(ret->method, "notifications/initialized") == 0;
    ret->is_listen = strcmp(ret->method, "subscriptions/listen") == 0;
}

void relay_message_read(struct ng_str text, struct relay_message *ret)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    memset(ret, 0, sizeof(*ret));
    buf_init(&ret->id, RELAY_ID_MAX);
    buf_init(&ret->answers, RELAY_ID_MAX);
    buf_init(&ret->cancels, RELAY_ID_MAX);
    arena_init(&arena, RELAY_MEMORY_MAX);
    if (json_parse(&arena, json_skip_mark(text), RELAY_DEPTH, &value, NULL) == NG_OK) {
        read_value(value, ret);
    }
    ret->is_batch = json_is(value, NG_TYPE_ARRAY);
    arena_done(&arena);
}

void relay_message_done(struct relay_message *message)
{
    buf_done(&message->id);
    buf_done(&message->answers);
    buf_done(&message->cancels);
}

enum relay_said relay_message_said(struct ng_str text, char *ret_id, size_t size)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    enum relay_said said = RELAY_SAYS;
    ret_id[0] = '\0';
    arena_init(&arena, RELAY_MEMORY_MAX);
    if (json_parse(&arena, text, RELAY_DEPTH, &value, NULL) == NG_OK) {
        const struct ng_value *id = json_get(value, "id");
        if (value->type == NG_TYPE_ARRAY) {
            said = RELAY_ANSWERS; /* a batch is answered as a whole */
        } else if (id != NULL && json_get(value, "method") == NULL) {
            said = RELAY_ANSWERS;
        } else if (id != NULL) {
            struct buf printed;
            said = RELAY_ASKS;
            buf_init(&printed, size - 1);
            if (json_print(&printed, id) == NG_OK) {
                memcpy(ret_id, printed.data, printed.len);
                ret_id[printed.len] = '\0';
            }
            buf_done(&printed);
        }
    }
    arena_done(&arena);
    return said;
}

void relay_message_agreed(struct ng_str answer, char ret_version[RELAY_HEADER_MAX])
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, RELAY_MEMORY_MAX);
    if (json_parse(&arena, answer, RELAY_DEPTH, &value, NULL) == NG_OK) {
        const struct ng_value *result = json_get(value, "result");
        take_plain(json_get(result, "protocolVersion"), ret_version, RELAY_HEADER_MAX);
    }
    arena_done(&arena);
}

void relay_message_error(const struct relay_message *message, int status, struct ng_str body,
                         struct buf *out)
{
    struct arena arena;
    struct ng_writer writer;
    const struct ng_value *value = NULL;
    arena_init(&arena, RELAY_MEMORY_MAX);
    bool parsed = status != 0 && json_parse(&arena, body, RELAY_DEPTH, &value, NULL) == NG_OK;
    const struct ng_value *said = parsed ? json_get(value, "error") : NULL;
    json_writer_init(&writer, out);
    json_object(&writer);
    json_member_cstring(&writer, "jsonrpc", "2.0");
    json_name(&writer, "id");
    json_raw(&writer, buf_str(&message->id));
    json_name(&writer, "error");
    if (json_is(said, NG_TYPE_OBJECT)) {
        json_copy(&writer, said);
    } else {
        char text[64];
        (void)snprintf(text, sizeof(text), "the gateway answered with status %d", status);
        json_object(&writer);
        json_member_int(&writer, "code", RELAY_ERROR_CODE);
        json_member_string(&writer, "message", status == 0 ? body : ng_str_of(text));
        json_end(&writer);
    }
    json_end(&writer);
    arena_done(&arena);
}
