/* SPDX-License-Identifier: MIT */
/* http_mcp.c - /mcp: hands a request to MCP and its answer back. */
#include "http_mcp.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/http_reply.h"
#include "api/http/http_server.h"
#include "api/http/http_stream_transport.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

static struct ng_str find_header(const struct mcp_http_request *request, const char *name)
{
    const struct http_request *http = request->transport;
    return ng_str_of(MHD_lookup_connection_value(http->connection->mhd, MHD_HEADER_KIND, name));
}

struct each {
    void (*each)(void *user, struct ng_str name, struct ng_str value);
    void *user;
};

static enum MHD_Result each_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                   size_t key_size, const char *value, size_t value_size)
{
    struct each *each = cls;
    (void)kind;
    each->each(each->user, str_make(key, key_size), str_make(text_or(value, ""), value_size));
    return MHD_YES;
}

static void all_headers(const struct mcp_http_request *request,
                        void (*each)(void *user, struct ng_str name, struct ng_str value),
                        void *user)
{
    const struct http_request *http = request->transport;
    struct each context = {each, user};
    (void)MHD_get_connection_values_n(http->connection->mhd, MHD_HEADER_KIND, each_header,
                                      &context);
}

static int keep_body(const struct mcp_http_request *request, struct call *call)
{
    return http_request_keep_body(request->transport, call);
}

static void mcp_done(struct mcp_http_response *response, void *user)
{
    (void)response;
    http_request_done(user);
}

int mcp_route(struct http_request *request)
{
    const struct http_headers *headers = &request->headers;
    struct mcp_http_request asked = {
        .method = (enum http_method)request->method,
        .content_type = headers->content_type,
        .accept = headers->accept,
        .origin = headers->origin,
        .protocol_version = headers->mcp_version,
        .session_id = headers->mcp_session,
        .mcp_method = headers->mcp_method,
        .mcp_name = headers->mcp_name,
        .last_event_id = headers->last_event_id,
        .idempotency_key = headers->idempotency_key,
        .header = find_header,
        .headers = all_headers,
        .body = http_request_text(request),
        .keep = keep_body,
        .caller = &request->caller,
        .is_local = request->connection->auth.way == AUTH_SOCKET,
        .on_loop = true,
        .transport = request,
    };
    struct mcp_http_response *response = alloc_zeroed(1, sizeof(*response));
    if (response == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    buf_init(&response->body, request->reply.body.max);
    request->service_state = response;
    int rc = mcp_http_handle(request->server->service, &asked, response, mcp_done, request);
    if (rc != NG_PENDING) {
        mcp_route_finish(request);
    }
    return rc;
}

void mcp_route_finish(struct http_request *request)
{
    struct mcp_http_response *answer = request->service_state;
    struct http_reply *reply = &request->reply;
    if (answer->kind == MCP_HTTP_STREAM) {
        reply->stream = answer->stream;
        answer->stream = NULL;
    }
    reply->status = answer->status;
    reply->content_type = answer->content_type;
    reply->session_id = answer->session_id;
    reply->run = answer->run;
    reply->allow = answer->allow;
    reply->retry_after_s = answer->retry_after_s;
    reply->changed = answer->changed;
    reply->authenticate = answer->status == MHD_HTTP_UNAUTHORIZED;
    if (request->access.started_ns != 0) {
        http_access_message(request, answer->method, answer->tool);
    }
    if (answer->body.len > 0 || answer->body.rc != NG_OK) {
        buf_done(&reply->body);
        reply->body = answer->body;
        buf_init(&answer->body, reply->body.max);
    }
    /* Session id and run stay in the response until the answer is queued; mcp_route_release()
     * frees the rest. */
}

void mcp_route_wait(struct http_request *request, struct http_wait *ret)
{
    const struct mcp_http_response *response = request->service_state;
    ret->call = response->call;
    ret->left = response->left;
    ret->user = response->left_user;
}

void mcp_route_release(void *service_state)
{
    struct mcp_http_response *response = service_state;
    buf_done(&response->body);
    http_stream_drop(response->stream);
    call_unref(response->call);
    free(response);
}
