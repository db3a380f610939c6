/* SPDX-License-Identifier: MIT */
/* fuzz_mcp.c - one byte that picks the headers, then a body: every request is answered, and
 * every answer is JSON-RPC, or a stream of events. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/http_stream_transport.h"
#include "api/serve/mcp_methods.h"
#include "api/transport/mcp_http.h"
#include "core/base/str.h"
#include "test_gateway.h"

#define ANSWER_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define INPUT_BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
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
    waiter->done = true;
    (void)pthread_cond_signal(&waiter->changed);
    (void)pthread_mutex_unlock(&waiter->lock);
}

/* Is every message of the answer an answer? */
static void check_message(const struct ng_value *message)
{
    must(message->type == NG_TYPE_OBJECT);
    must(json_get(message, "jsonrpc") != NULL && json_get(message, "id") != NULL);
    must((json_get(message, "result") != NULL) != (json_get(message, "error") != NULL));
}

static void check_answer(const struct mcp_http_response *response)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    struct json_error error;
    must(response->status >= 200 && response->status < 600 && response->body.rc == NG_OK);
    must(response->status != 202 || response->body.len == 0);
    if (response->body.len == 0 || response->content_type != NULL) {
        must(response->body.len > 0 || response->status == 202);
        return;
    }
    arena_init(&arena, 0);
    must(json_parse(&arena, buf_str(&response->body), 1024, &value, &error) == NG_OK);
    if (value->type == NG_TYPE_ARRAY) {
        for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
            check_message(item);
        }
    } else {
        check_message(value);
    }
    arena_done(&arena);
}

static void fill(struct mcp_http_request *request, uint8_t choice)
{
    static const char *const versions[] = {NULL, "2025-03-26", "2025-11-25", "2026-07-28"};
    static const char *const methods[] = {NULL, "tools/call", "tools/list", "server/discover"};
    static const char *const accepts[] = {NULL, "text/event-stream"};
    static const char *const names[] = {NULL, "t_echo"};
    request->method = HTTP_POST;
    request->content_type = ng_str_of("application/json");
    request->protocol_version = ng_str_of(versions[choice & 3]);
    request->mcp_method = ng_str_of(methods[choice >> 2 & 3]);
    request->mcp_name = ng_str_of(names[choice >> 4 & 1]);
    request->accept = ng_str_of(accepts[choice >> 5 & 1]);
    request->on_loop = (choice >> 6 & 1) != 0;
    request->header = no_header;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Opened once: starting threads for each input would be most of the work. */
    static struct gateway *gateway;
    static struct mcp_http *mcp;
    if (gateway == NULL) {
        static const char *const sets[] = {"limits.workers=2", NULL};
        test_tools_release(true);
        gateway = test_gateway_open(sets);
        must(gateway != NULL && mcp_http_new(gateway, mcp_methods_all(), &mcp) == NG_OK);
    }
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    struct auth_caller caller = {
        .agent = ng_str_of("fuzz"), .role = NG_ROLE_ADMIN, .mode = NG_MODE_AGENT};
    struct mcp_http_request request = {.caller = &caller};
    struct mcp_http_response response;
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    memset(&response, 0, sizeof(response));
    buf_init(&response.body, ANSWER_BYTES_MAX);
    fill(&request, data[0]);
    request.body = str_make((const char *)data + 1, size - 1);
    if (mcp_http_handle(mcp, &request, &response, answered, &waiter) == NG_PENDING) {
        (void)pthread_mutex_lock(&waiter.lock);
        while (!waiter.done) {
            (void)pthread_cond_wait(&waiter.changed, &waiter.lock);
        }
        (void)pthread_mutex_unlock(&waiter.lock);
    }
    if (response.kind == MCP_HTTP_STREAM) {
        must(response.status == 200 && response.body.len == 0);
        http_stream_drop(response.stream); /* the client leaves */
    } else {
        check_answer(&response);
    }
    call_unref(response.call);
    buf_done(&response.body);
    (void)pthread_cond_destroy(&waiter.changed);
    (void)pthread_mutex_destroy(&waiter.lock);
    return 0;
}
