/* SPDX-License-Identifier: MIT */
/* http_reply.c - answers: error objects, entity tags, headers. */
#include "http_reply.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "api/base/content.h"
#include "api/client/client.h"
#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "http_route.h"
#include "http_server.h"
#include "http_stream_transport.h"

/* Longest message of an error object the transport makes itself. */
#define MESSAGE_MAX 1024
#define JSON_TYPE "application/json"
#define STREAM_TYPE "text/event-stream"
/* Headers that a page of another allowed origin may send and read. */
#define CORS_HEADERS                                                                           \
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, "             \
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, X-Notegate-Agent, "           \
    "X-Notegate-Mode, X-Notegate-Run, X-Notegate-Space, X-Request-Id, traceparent"
#define CORS_EXPOSED                                                                           \
    "ETag, Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Notegate-Run, X-Request-Id, "      \
    "traceparent"
/* Headers that carry arguments of tools, whatever the arguments are called. */
#define CORS_PARAM "mcp-param-"
#define CORS_BYTES 2048

void http_reply_clear(struct http_request *request)
{
    struct http_reply *reply = &request->reply;
    struct buf body = reply->body;
    buf_clear(&body);
    if (reply->stream != NULL) {
        http_stream_drop(reply->stream);
    }
    memset(reply, 0, sizeof(*reply));
    reply->body = body;
}

/* {"error":true,"code","message","hint"?}, or the service's own form. Decided by the path: a
 * request that is refused for its headers, its Host or its Origin has no route. */
static void print_error(struct http_request *request, int rc, const char *hint,
                        const char *message)
{
    struct buf *body = &request->reply.body;
    const struct http_routes *routes = request->server->routes;
    if (http_route_is_service(routes, &request->target)) {
        (void)routes->service->refuse(rc, ng_str_of(message), ng_str_of(hint), body);
        return;
    }
    (void)buf_printf(body,
                     "{\"error\":true,\"code\":\"%s\",\"message\":", error_name(NULL, rc));
    (void)buf_add_json(body, ng_str_of(message));
    if (hint != NULL) {
        (void)buf_add_c(body, ",\"hint\":");
        (void)buf_add_json(body, ng_str_of(hint));
    }
    (void)buf_add_char(body, '}');
}

static void set_status(struct http_reply *reply, int status, int retry_after_s)
{
    reply->status = status;
    reply->authenticate = status == MHD_HTTP_UNAUTHORIZED;
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        if (retry_after_s > 0) {
            reply->retry_after_s = retry_after_s;
        } else {
            reply->retry_after_s = HTTP_RETRY_AFTER_S;
        }
    }
}

int http_reply_error(struct http_request *request, int rc, const char *hint, const char *format,
                     ...)
{
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    bool close = request->reply.close;
    const char *allow = request->reply.allow;
    http_reply_clear(request);
    print_error(request, rc, hint, message);
    set_status(&request->reply, error_status(NULL, rc), 0);
    request->reply.close = close;
    request->reply.allow = allow;
    if (rc == NG_EMETHOD && allow == NULL) {
        request->reply.allow = http_route_allow(request->server->routes, &request->target);
    }
    return rc;
}

int http_reply_call_error(struct http_request *request, const struct call *call)
{
    http_reply_clear(request);
    struct buf *body = &request->reply.body;
    if (call_print_error(call, body) == NG_OK && call->final.meta != NULL) {
        body->len--; /* the last brace */
        content_print_meta(body, &call->final);
        (void)buf_add_char(body, '}');
    }
    set_status(&request->reply, call->final.status, call->final.retry_after_s);
    return call->final.rc;
}

void http_reply_etag(struct http_request *request)
{
    struct http_reply *reply = &request->reply;
    uint64_t hash = hash_fnv(HASH_FNV_BASIS, buf_str(&reply->body));
    (void)snprintf(reply->etag, sizeof(reply->etag), "\"%016llx\"", (unsigned long long)hash);
    reply->status = MHD_HTTP_OK;
    reply->cache = "no-cache";
    if (request->headers.if_none_match.data != NULL &&
        http_etag_matches(request->headers.if_none_match, ng_str_of(reply->etag))) {
        reply->status = MHD_HTTP_NOT_MODIFIED;
        buf_clear(&reply->body);
    }
}

/* ---- sending ---- */

/* Large answers count in limits.buffered until they are sent. */
static void count_reply(struct http_request *request)
{
    size_t len = request->reply.body.len;
    int64_t used = metrics_use(request->gateway->metrics, METRICS_BUFFERED, (int64_t)len);
    request->reply_counted = len;
    if (used > (int64_t)request->gateway->limits.buffered && !request->reply.changed) {
        (void)metrics_use(request->gateway->metrics, METRICS_BUFFERED, -(int64_t)len);
        request->reply_counted = 0;
        (void)http_reply_error(
            request, NG_EBUSY, NULL,
            "Bodies and answers use all memory that they may use (limits.buffered); try again");
    }
}

static struct MHD_Response *make_response(struct http_request *request)
{
    struct http_reply *reply = &request->reply;
    if (reply->stream != NULL && request->method == HTTP_HEAD) {
        /* libmicrohttpd would end the body that is not there with a last chunk. */
        http_stream_drop(reply->stream);
        reply->stream = NULL;
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (reply->stream != NULL) {
        struct MHD_Response *stream = http_stream_attach(reply->stream, request->connection);
        if (stream != NULL) {
            reply->stream = NULL;
        }
        return stream;
    }
    if (reply->fixed.data != NULL) {
        void *data = (void *)(uintptr_t)reply->fixed.data; /* PERSISTENT: only read */
        return MHD_create_response_from_buffer(reply->fixed.len, data, MHD_RESPMEM_PERSISTENT);
    }
    if (reply->body.cap <= HTTP_KEEP_BYTES) {
        /* Stays the connection's, whose next request comes when this answer is out. */
        return MHD_create_response_from_buffer(reply->body.len, reply->body.data,
                                               MHD_RESPMEM_PERSISTENT);
    }
    size_t len = 0;
    char *data = buf_take(&reply->body, &len);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(data);
    }
    return response;
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Headers that few answers have. */
static bool add_rare(struct http_request *request, struct MHD_Response *response)
{
    const struct http_reply *reply = &request->reply;
    char number[16];
    bool ok = true;
    if (reply->etag[0] != '\0') {
        ok = ok && add(response, MHD_HTTP_HEADER_ETAG, reply->etag);
    }
    if (reply->allow != NULL && reply->allow[0] != '\0') {
        ok = ok && add(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
    }
    if (reply->location != NULL) {
        ok = ok && add(response, MHD_HTTP_HEADER_LOCATION, reply->location);
    }
    if (reply->csp != NULL) {
        ok = ok && add(response, "Content-Security-Policy", reply->csp) &&
             add(response, "Cross-Origin-Opener-Policy", "same-origin") &&
             add(response, "Cross-Origin-Resource-Policy", "same-origin") &&
             add(response, "Referrer-Policy", "no-referrer") &&
             add(response, "X-Frame-Options", "DENY");
    }
    if (reply->retry_after_s > 0) {
        (void)snprintf(number, sizeof(number), "%d", reply->retry_after_s);
        ok = ok && add(response, MHD_HTTP_HEADER_RETRY_AFTER, number);
    }
    if (reply->authenticate) {
        ok = ok && add(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                       request->bad_token ? "Bearer realm=\"notegate\", error=\"invalid_token\""
                                          : "Bearer realm=\"notegate\"");
    }
    if (request->server->is_local) {
        ok = ok && add(response, CLIENT_GATEWAY_HEADER, CLIENT_GATEWAY_MCP);
    }
    if (reply->session_id != NULL && reply->session_id[0] != '\0') {
        ok = ok && add(response, "Mcp-Session-Id", reply->session_id);
    }
    /* libmicrohttpd takes a bare LF for the end of a chunk's size line, where a proxy may read
     * on: what follows a chunked body is never believed to be another request. A gateway that
     * drains must have no idle connection left when it closes them, or a request may cross. */
    if (reply->close || request->headers.chunked || http_server_drains(request->server) ||
        atomic_load(&request->gateway->stopping)) {
        ok = ok && add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    return ok;
}

/* The headers a page may send, and of those it asked for the ones that carry arguments. */
static void cors_headers(struct ng_str asked, struct buf *out)
{
    const size_t prefix = sizeof(CORS_PARAM) - 1;
    (void)buf_add_c(out, CORS_HEADERS);
    while (asked.len > 0) {
        const char *comma = memchr(asked.data, ',', asked.len);
        size_t len = comma == NULL ? asked.len : (size_t)(comma - asked.data);
        struct ng_str name = str_trim(str_make(asked.data, len));
        if (name.len > prefix && strncasecmp(name.data, CORS_PARAM, prefix) == 0 &&
            http_is_token(name) && out->len + name.len + 2 < CORS_BYTES) {
            (void)buf_printf(out, ", %.*s", (int)name.len, name.data);
        }
        if (comma != NULL) {
            len += 1;
        }
        asked = str_make(asked.data + len, asked.len - len);
    }
}

static bool add_preflight(struct http_request *request, struct MHD_Response *response)
{
    struct buf names;
    buf_init(&names, CORS_BYTES);
    cors_headers(request->headers.preflight_headers, &names);
    bool ok = add(response, "Access-Control-Allow-Methods", request->reply.cors_allow) &&
              add(response, "Access-Control-Allow-Headers", buf_cstr(&names)) &&
              add(response, "Access-Control-Max-Age", "600");
    buf_done(&names);
    return ok;
}

/* A page of another origin, which was allowed, may read the answer. */
static bool add_cors(struct http_request *request, struct MHD_Response *response)
{
    char origin[HTTP_HOST_MAX + 16];
    struct ng_str from = request->headers.origin;
    if (from.len >= sizeof(origin)) {
        return true;
    }
    memcpy(origin, from.data, from.len);
    origin[from.len] = '\0';
    bool ok = add(response, "Access-Control-Allow-Origin", origin) &&
              add(response, MHD_HTTP_HEADER_VARY, "Origin") &&
              add(response, "Access-Control-Expose-Headers", CORS_EXPOSED);
    if (request->reply.cors_allow != NULL) {
        ok = ok && add_preflight(request, response);
    }
    return ok;
}

/* Nothing on the way may keep events back. */
static bool add_stream(const struct http_reply *reply, struct MHD_Response *response)
{
    const char *type = reply->content_type == NULL ? STREAM_TYPE : reply->content_type;
    return add(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
           add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
           add(response, "X-Accel-Buffering", "no");
}

/* MCP tells it for its own calls: a batch may have several. */
static bool add_run(struct http_request *request, struct MHD_Response *response)
{
    char text[CALL_RUN_MAX + 1];
    bool is_service = request->route != NULL && (request->route->flags & ROUTE_SERVICE) != 0;
    struct ng_str run = ng_str_of(request->reply.run);
    if (!is_service && request->authenticated) {
        run = auth_run(&request->caller);
    }
    if (run.len == 0) {
        return true;
    }
    utf8_copy(text, sizeof(text), run);
    return add(response, RUN_ID_HEADER, text);
}

static bool add_headers(struct http_request *request, struct MHD_Response *response,
                        bool is_stream)
{
    const struct http_reply *reply = &request->reply;
    bool ok = add(response, "X-Request-Id", request->request_id) &&
              add(response, "X-Content-Type-Options", "nosniff");
    if (is_stream) {
        ok = ok && add_stream(reply, response);
    } else if (reply->status != MHD_HTTP_NO_CONTENT && reply->status != MHD_HTTP_NOT_MODIFIED &&
               reply->status != MHD_HTTP_ACCEPTED) {
        ok = ok && add(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                       reply->content_type == NULL ? JSON_TYPE : reply->content_type);
    }
    if (request->method != HTTP_POST &&
        !is_stream) { /* answers to POST are not stored by anyone */
        ok = ok &&
             add(response, MHD_HTTP_HEADER_CACHE_CONTROL, text_or(reply->cache, "no-store"));
    }
    if (request->caller.traceparent.data != NULL && request->authenticated) {
        char trace[256];
        (void)snprintf(trace, sizeof(trace), "%.*s", (int)request->caller.traceparent.len,
                       request->caller.traceparent.data);
        ok = ok && add(response, "traceparent", trace);
    }
    ok = ok && add_run(request, response);
    ok = ok && add_rare(request, response);
    return ok && (!request->origin_allowed || add_cors(request, response));
}

bool http_reply_send(struct http_request *request)
{
    struct http_reply *reply = &request->reply;
    if (reply->body.len > HTTP_UNCOUNTED_BYTES) {
        count_reply(request);
    }
    if (reply->body.rc != NG_OK) {
        int rc = reply->body.rc;
        (void)http_reply_error(
            request, rc == NG_ETOOLARGE ? NG_ETOOLARGE : NG_EINTERNAL, NULL, "%s",
            rc == NG_ETOOLARGE ? "The answer is over the limit for one answer"
                               : "Out of memory");
        if (reply->body.rc != NG_OK) {
            return false;
        }
    }
    uint64_t body_bytes = reply->fixed.data != NULL ? reply->fixed.len : reply->body.len;
    bool is_stream = reply->stream != NULL;
    struct MHD_Response *response = make_response(request);
    if (response == NULL) {
        return false;
    }
    bool ok = add_headers(request, response, is_stream) &&
              MHD_queue_response(request->connection->mhd, (unsigned)reply->status, response) ==
                  MHD_YES;
    MHD_destroy_response(response);
    /* a stream counts itself */
    if (request->method == HTTP_HEAD) {
        request->sent = 0;
    } else {
        request->sent = body_bytes;
    }
    if (ok) {
        http_request_enter(request, http_request_is_left(request) ? HTTP_STATE_LEFT_ANSWERED
                                                                  : HTTP_STATE_ANSWERED);
    }
    return ok;
}
