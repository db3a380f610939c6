/* SPDX-License-Identifier: MIT */
/* fuzz_mcp_methods.c - requests to a whole gateway, with plugins, documents and tasks: a byte
 * that picks method and protocol version, then the params, which get their _meta. Each is
 * answered, once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/serve/mcp_methods.h"
#include "api/tasks/mcp_tasks.h"
#include "api/transport/mcp_http.h"
#include "core/base/str.h"
#include "whole_gateway.h"

#define ANSWER_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define INPUT_BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static struct whole_gateway whole;
static struct gateway *gateway;
static struct mcp_http *mcp;
static const char no_id[] = "000000000000000000000000000000000000000000000000";
static char last_id[MCP_TASK_ID_LEN + 1];

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void close_gateway(void)
{
    mcp_tasks_stop(gateway, true);
    bool drained = whole_gateway_drain(&whole);
    if (drained) {
        mcp_http_free(mcp);
    }
    whole_gateway_close(&whole, drained);
}

static void open_gateway(void)
{
    static const char *const sets[] = {
        "documents=memory", "plugins=" NOTEGATE_BUILD "/tests/modules/tasker.so,notebook",
        "limits.workers=4", "limits.call_timeout=200ms", NULL};
    struct buf error;
    buf_init(&error, 65536);
    whole_folder(whole.folder);
    whole_gateway_open(&whole, sets);
    gateway = whole.gateway;
    must(mcp_tasks_open(gateway, &error) == NG_OK);
    must(mcp_http_new(gateway, mcp_methods_all(), &mcp) == NG_OK && atexit(close_gateway) == 0);
    buf_done(&error);
}

static struct ng_str no_header(const struct mcp_http_request *request, const char *name)
{
    struct ng_str none = {NULL, 0};
    (void)request;
    (void)name;
    return none;
}

static void answered(struct mcp_http_response *response, void *user)
{
    struct waiter *waiter = user;
    (void)response;
    (void)pthread_mutex_lock(&waiter->lock);
    must(!waiter->done);
    waiter->done = true;
    (void)pthread_cond_signal(&waiter->changed);
    (void)pthread_mutex_unlock(&waiter->lock);
}

/* The message's text; its name goes to `ret_name`, memory of the arena. */
static void compose(struct buf *body, const char *method, bool is_newer, struct ng_str params,
                    struct arena *arena, struct ng_str *ret_name)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    struct ng_str inner = {NULL, 0};
    if (json_parse(arena, params, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
        value->type == NG_TYPE_OBJECT && value->count > 0 && json_get(value, "_meta") == NULL) {
        static const char *const names[] = {"name", "uri", "taskId"};
        for (size_t i = 0; i < NG_COUNT(names); i++) {
            const struct ng_value *name = json_get(value, names[i]);
            *ret_name = name != NULL && name->type == NG_TYPE_STRING ? name->text : *ret_name;
        }
        inner = str_make(value->text.data + 1, value->text.len - 2);
    }
    buf_printf(body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{", method);
    if (is_newer) {
        buf_add_c(body, "\"_meta\":{\"" MCP_META_VERSION "\":\"2026-07-28\","
                        "\"" MCP_META_CAPABILITIES "\":{\"elicitation\":{},\"sampling\":{},"
                        "\"extensions\":{\"" MCP_TASKS_EXTENSION "\":{}}}}");
        buf_add_c(body, inner.len > 0 ? "," : "");
    }
    buf_add_str(body, inner);
    buf_add_c(body, "}}");
}

/* The id in the inputs stands for the last task that was made. */
static void put_id(struct buf *body, struct ng_str *name)
{
    char *at = last_id[0] == '\0' ? NULL : strstr((char *)(uintptr_t)buf_cstr(body), no_id);
    if (at != NULL) {
        memcpy(at, last_id, MCP_TASK_ID_LEN);
        *name = str_is(*name, no_id) ? ng_str_of(last_id) : *name;
    }
}

static void keep_id(struct buf *answer)
{
    static const char before[] = "\"taskId\":\"";
    const char *at = strstr(buf_cstr(answer), before);
    if (at != NULL && strlen(at) > sizeof(before) + MCP_TASK_ID_LEN) {
        (void)snprintf(last_id, sizeof(last_id), "%s", at + sizeof(before) - 1);
    }
}

static void ask(const char *method, bool is_newer, struct ng_str params)
{
    struct auth_caller caller = {
        .agent = ng_str_of("fuzz"), .role = NG_ROLE_ADMIN, .mode = NG_MODE_AGENT};
    struct mcp_http_request request = {.caller = &caller};
    struct mcp_http_response response;
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct arena arena;
    struct buf body;
    memset(&response, 0, sizeof(response));
    arena_init(&arena, 0);
    buf_init(&body, 4 * INPUT_BYTES_MAX);
    buf_init(&response.body, ANSWER_BYTES_MAX);
    request.method = HTTP_POST;
    request.content_type = ng_str_of("application/json");
    request.accept = ng_str_of("application/json");
    request.protocol_version = ng_str_of(is_newer ? "2026-07-28" : "2025-11-25");
    request.mcp_method = ng_str_of(method);
    request.header = no_header;
    request.on_loop = true;
    compose(&body, method, is_newer, params, &arena, &request.mcp_name);
    put_id(&body, &request.mcp_name);
    request.body = buf_str(&body);
    if (mcp_http_handle(mcp, &request, &response, answered, &waiter) == NG_PENDING) {
        (void)pthread_mutex_lock(&waiter.lock);
        while (!waiter.done) {
            (void)pthread_cond_wait(&waiter.changed, &waiter.lock);
        }
        (void)pthread_mutex_unlock(&waiter.lock);
    }
    must(response.status >= 200 && response.status < 600 && response.body.rc == NG_OK);
    must(response.body.len > 0);
    keep_id(&response.body);
    call_unref(response.call);
    buf_done(&response.body);
    buf_done(&body);
    arena_done(&arena);
    (void)pthread_cond_destroy(&waiter.changed);
    (void)pthread_mutex_destroy(&waiter.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {
        "tools/call",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "initialize",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "tasks/list",
        "logging/setLevel",
    };
    if (gateway == NULL) {
        open_gateway();
    }
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    ask(methods[data[0] % NG_COUNT(methods)], (data[0] & 128) != 0,
        str_make((const char *)data + 1, size - 1));
    return 0;
}
