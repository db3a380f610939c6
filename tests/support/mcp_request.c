/* SPDX-License-Identifier: MIT */
/* mcp_request.c - one request to MCP without HTTP, and what came back. */
#include "mcp_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cmocka.h>

#include "core/base/str.h"

/* Waiting for an answer gives up after this long. */
#define PATIENCE_S 20
#define BODY_MAX ((size_t)4 * 1024 * 1024)

/* From the exchange's own lines; the request is its first member. */
static struct ng_str find_header(const struct mcp_http_request *request, const char *name)
{
    const struct exchange *exchange = (const struct exchange *)(const void *)request;
    struct ng_str value = {NULL, 0};
    size_t len = strlen(name);
    const char *line = exchange->params;
    while (line != NULL && value.data == NULL) {
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            value = str_make(line + len + 1, strcspn(line + len + 1, "\n"));
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return value;
}

static void all_headers(const struct mcp_http_request *request,
                        void (*each)(void *user, struct ng_str name, struct ng_str value),
                        void *user)
{
    const struct exchange *exchange = (const struct exchange *)(const void *)request;
    const char *line = exchange->params;
    while (line != NULL && *line != '\0') {
        size_t len = strcspn(line, "\n");
        size_t name = strcspn(line, ":");
        each(user, str_make(line, name), str_make(line + name + 1, len - name - 1));
        line += len + (line[len] == '\n' ? 1 : 0);
    }
}

/* It lives until exchange_free() anyway. */
static int keep_body(const struct mcp_http_request *request, struct call *call)
{
    (void)request;
    (void)call;
    return NG_OK;
}

static void exchange_done(struct mcp_http_response *response, void *user)
{
    struct exchange *exchange = user;
    (void)response;
    (void)pthread_mutex_lock(&exchange->lock);
    exchange->done = true;
    (void)pthread_cond_broadcast(&exchange->changed);
    (void)pthread_mutex_unlock(&exchange->lock);
}

void exchange_open(struct exchange *exchange, const struct auth_caller *caller,
                   const char *body)
{
    memset(exchange, 0, sizeof(*exchange));
    (void)pthread_mutex_init(&exchange->lock, NULL);
    (void)pthread_cond_init(&exchange->changed, NULL);
    exchange->request.method = HTTP_POST;
    exchange->request.content_type = ng_str_of("application/json");
    exchange->request.accept = ng_str_of("application/json, text/event-stream");
    exchange->request.body = ng_str_of(body);
    exchange->request.caller = caller;
    exchange->request.header = find_header;
    exchange->request.headers = all_headers;
    exchange->request.keep = keep_body;
    exchange->request.on_loop = true;
    buf_init(&exchange->response.body, BODY_MAX);
}

void exchange_send(struct exchange *exchange, struct mcp_http *mcp)
{
    if (mcp_http_handle(mcp, &exchange->request, &exchange->response, exchange_done,
                        exchange) == NG_OK) {
        exchange->done = true;
    }
}

const char *exchange_wait(struct exchange *exchange)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&exchange->lock);
    while (!exchange->done) {
        assert_int_equal(pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until),
                         0);
    }
    (void)pthread_mutex_unlock(&exchange->lock);
    return buf_cstr(&exchange->response.body);
}

void exchange_free(struct exchange *exchange)
{
    call_unref(exchange->response.call);
    buf_done(&exchange->response.body);
    (void)pthread_cond_destroy(&exchange->changed);
    (void)pthread_mutex_destroy(&exchange->lock);
}
