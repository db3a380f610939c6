/* SPDX-License-Identifier: MIT */
/* http_request.c - from the request line to the route's answer. */
#include "http_request.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/listen/http_names.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/keys/keys.h"
#include "http_reply.h"
#include "http_route.h"
#include "http_server.h"
#include "http_stream_transport.h"

/* Of a wrong value that a sentence shows. */
#define SHOWN_MAX 80
static void fault(struct http_request *request, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(struct http_request *request, int rc, const char *format, ...)
{
    if (request->fault.rc == NG_OK) {
        va_list args;
        va_start(args, format);
        request->fault.rc = rc;
        (void)vsnprintf(request->fault.text, sizeof(request->fault.text), format, args);
        va_end(args);
    }
    http_body_drop(request);
}

/* How many bytes of a wrong value a sentence shows. */
static int shown(struct ng_str value)
{
    return (int)utf8_cut(value, SHOWN_MAX).len;
}

static void fault_too_large(struct http_request *request)
{
    fault(request, NG_ETOOLARGE, "The body is over the limit of %zu bytes (limits.body)",
          (size_t)request->gateway->limits.body);
}

static void fault_no_room(struct http_request *request, int rc)
{
    if (rc == NG_EBUSY) {
        fault(request, rc,
              "Bodies and answers use all memory that they may use (limits.buffered, of which "
              "one agent has half); try again");
    } else {
        fault(request, rc, "Out of memory");
    }
}

bool http_request_body(struct http_request *request, const char *data, size_t len)
{
    request->received += len;
    if (request->fault.rc != NG_OK) {
        return request->received <= HTTP_DISCARD_BYTES;
    }
    if (request->received > request->gateway->limits.body) {
        fault_too_large(request);
        return true;
    }
    int rc = http_body_add(request, data, len);
    if (rc != NG_OK) {
        fault_no_room(request, rc);
    }
    return true;
}

/* ---- the headers ---- */

void http_request_enter(struct http_request *request, enum http_state state)
{
    static const unsigned from[] = {
        [HTTP_STATE_LINE] = ~0U,
        [HTTP_STATE_READ] = 1U << HTTP_STATE_LINE,
        [HTTP_STATE_ANSWERED] = 1U << HTTP_STATE_READ,
        [HTTP_STATE_LEFT] = 1U << HTTP_STATE_READ,
        [HTTP_STATE_LEFT_ANSWERED] = 1U << HTTP_STATE_LEFT,
    };
    assert((from[state] & 1U << request->state) != 0);
    request->state = state;
}

void http_request_begin(struct http_request *request, const char *target)
{
    memset(&request->headers, 0, sizeof(request->headers));
    auth_release(&request->caller);
    request->method = 0;
    request->fault.rc = NG_OK;
    request->fault.fatal = false;
    request->fault_hint = NULL;
    request->route = NULL;
    request->param = str_make(NULL, 0);
    request->authenticated = false;
    request->bad_token = false;
    request->origin_allowed = false;
    http_request_enter(request, HTTP_STATE_LINE);
    request->received = 0;
    request->sent = 0;
    struct http_access *access = &request->access;
    access->started_ns = 0;
    if (log_switched_on(LOG_ACCESS)) {
        memset(access, 0, sizeof(*access));
        access->started_ns = clock_monotonic_ns();
    }
    request->request_id[0] = '\0';
    atomic_store_explicit(&request->stage, HTTP_RUNNING, memory_order_relaxed);
    http_reply_clear(request);
    if (request->body != NULL) { /* its memory is used again */
        request->body->len = 0;
        memset(&request->body->values, 0, sizeof(request->body->values));
    }
    (void)http_check_target(target, &request->target, &request->fault);
}

/* The first fault is reported; a later one may still show that the framing is unsafe. True: it
 * is. */
static bool add_fault(struct http_request *request, const struct http_fault *found)
{
    bool first = request->fault.rc == NG_OK;
    bool fatal = request->fault.fatal || found->fatal;
    if (first) {
        request->fault = *found;
        http_body_drop(request);
    }
    request->fault.fatal = fatal;
    return fatal;
}

/* A walk over the headers; `end` is where the line of the one before ended. */
struct header_walk {
    struct http_request *request;
    const char *end;
};

/*
 * libmicrohttpd gives a value's length up to its first NUL. The lines still lie one behind the
 * other where they were received, so bytes hidden behind a NUL show as a gap; folded lines
 * and lines that end without CR show so too.
 */
static enum MHD_Result each_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                   size_t key_size, const char *value, size_t value_size)
{
    struct header_walk *walk = cls;
    struct http_request *request = walk->request;
    (void)kind;
    bool gap = value == NULL || (walk->end != NULL && walk->end != key) ||
               (value[value_size + 1] != '\n' && value[value_size + 1] != '\0');
    if (gap) {
        request->fault.fatal = true;
        fault(request, NG_EINVAL,
              "A header has a NUL in its value, is folded over several lines "
              "or does not end with CR LF");
        return MHD_NO;
    }
    walk->end = value + value_size + 2;
    struct http_fault found;
    int rc = http_check_header(&request->headers, str_make(key, key_size),
                               str_make(value, value_size), &found);
    if (rc == NG_OK || !add_fault(request, &found)) {
        return MHD_YES;
    }
    return MHD_NO;
}

/* Behind the last line comes the empty one. */
static void check_headers_end(struct http_request *request, const char *end)
{
    bool whole = end == NULL || request->fault.fatal ||
                 ((end[0] == '\r' || end[0] == '\0') && (end[1] == '\n' || end[1] == '\0'));
    if (!whole) {
        request->fault.fatal = true;
        fault(request, NG_EINVAL,
              "The last header has a NUL in its value or does not end with "
              "CR LF");
    }
}

/* The caller's id if it is sane, else one that is unique to this process. */
static void make_request_id(struct http_request *request)
{
    static const char digits[] = "0123456789abcdef";
    struct ng_str given = request->headers.request_id;
    if (given.data != NULL && http_request_id_valid(given)) {
        memcpy(request->request_id, given.data, given.len);
        request->request_id[given.len] = '\0';
        return;
    }
    struct http_server *server = request->server;
    uint64_t next = atomic_fetch_add_explicit(&server->id_next, 1, memory_order_relaxed);
    for (unsigned i = 0; i < 8; i++) {
        request->request_id[i] = digits[(server->id_prefix >> (28 - 4 * i)) & 15];
    }
    for (unsigned i = 0; i < 8; i++) {
        request->request_id[8 + i] = digits[(next >> (28 - 4 * i)) & 15];
    }
    request->request_id[16] = '\0';
}

/* A refused stranger does not learn from the fault of a route which paths there are. */
static void forget_route(struct http_request *request)
{
    request->route = NULL;
    request->fault.rc = NG_OK;
    request->fault_hint = NULL;
}

/* Nearly always it is that of the request before. */
static bool is_known_host(struct http_request *request, const struct http_names *names)
{
    struct http_connection *connection = request->connection;
    struct ng_str host = request->headers.host;
    if (connection->host_names == names &&
        str_equal(host, str_make(connection->host, connection->host_len))) {
        return true;
    }
    if (!http_host_allowed(names, host, ng_str_of(connection->local_text))) {
        return false;
    }
    connection->host_names = names; /* which stay until the server ends */
    connection->host_len = size_min(host.len, sizeof(connection->host));
    memcpy(connection->host, host.data, connection->host_len);
    return true;
}

static int check_names(struct http_request *request)
{
    const struct http_names *names = atomic_load(&request->server->names);
    const struct http_headers *headers = &request->headers;
    bool probe = request->route != NULL && (request->route->flags & ROUTE_PROBE) != 0;
    if (!probe && !is_known_host(request, names)) {
        forget_route(request);
        request->fault_hint = "Add the name to allowed_hosts in the configuration if clients "
                              "may use it for this gateway";
        fault(request, NG_EFORBIDDEN,
              "The Host header names \"%.*s\", which this gateway does not answer for",
              shown(headers->host), headers->host.data);
    } else if (headers->origin.data != NULL &&
               !http_origin_allowed(names, headers->origin, headers->host)) {
        forget_route(request);
        request->fault_hint = "Add the origin to allowed_origins in the configuration if its "
                              "pages may use this gateway";
        fault(request, NG_EFORBIDDEN,
              "The Origin header names \"%.*s\", whose pages may not use this gateway",
              shown(headers->origin), headers->origin.data);
    } else {
        request->origin_allowed = headers->origin.data != NULL;
        return NG_OK;
    }
    auth_log_refusal(request->server->auth, request->fault.text, request->connection->peer_text,
                     request->request_id);
    http_access_refused(request, "refused", NG_EFORBIDDEN, str_make(NULL, 0));
    return NG_EFORBIDDEN;
}

/* A probe may name any host; but a page of another site that reaches it by such a name, through
 * the browser of the gateway's own user, learns no more than a stranger. */
static bool is_foreign_probe(const struct http_request *request)
{
    const struct http_names *names = atomic_load(&request->server->names);
    const struct http_headers *headers = &request->headers;
    return headers->authorization.data == NULL &&
           request->connection->auth.way != AUTH_SOCKET &&
           !http_host_allowed(names, headers->host, ng_str_of(request->connection->local_text));
}

/* The connection counts for the agent whose key came on it. */
static void count_connection(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    int rc = NG_OK;
    if (request->caller.key != NULL && connection->auth.way != AUTH_SOCKET) {
        rc = http_monitor_agent(&request->server->monitor, connection, request->caller.agent);
    }
    if (rc == NG_OK) {
        atomic_store_explicit(&connection->trusted, true, memory_order_relaxed);
        return;
    }
    unsigned limit = atomic_load(&request->gateway->limits.connections);
    request->fault.fatal = true;
    if (rc == NG_EBUSY) {
        fault(request, rc,
              "This agent has %u connections open, its half of limits.connections; close some "
              "of them, or send several requests over one",
              limit - limit / 2);
    } else {
        fault(request, rc, "Out of memory");
    }
}

/* Clients look below /.well-known/ for a sign-in before they have a key, and take anything but
 * 404 for one. */
static bool is_discovery(const struct http_request *request)
{
    static const char prefix[] = "/.well-known/";
    struct ng_str path = request->target.path;
    return request->route == NULL && request->fault.rc == NG_ENOTFOUND &&
           path.len > sizeof(prefix) - 1 && memcmp(path.data, prefix, sizeof(prefix) - 1) == 0;
}

static int check_caller(struct http_request *request)
{
    struct auth_refusal refusal;
    struct auth_headers headers = {
        .authorization = request->headers.authorization,
        .agent = request->headers.agent,
        .space = request->headers.space,
        .mode = request->headers.mode,
        .run = request->headers.run,
        .process_run = request->headers.process_run,
        .proxied = request->headers.proxied,
    };
    int rc = auth_check(request->server->auth, &request->connection->auth, &headers,
                        &request->caller, &refusal);
    request->authenticated = rc == NG_OK;
    request->bad_token = rc != NG_OK && refusal.bad_token;
    if (rc == NG_OK) {
        request->caller.request_id = ng_str_of(request->request_id);
        if (request->headers.traceparent.data != NULL &&
            http_traceparent_valid(request->headers.traceparent)) {
            request->caller.traceparent = request->headers.traceparent;
        }
        request->caller.remote = http_connection_remote(request->connection);
        request->caller.client = request->headers.user_agent;
        if (request->access.started_ns != 0) {
            http_access_caller(request, NULL);
        }
        count_connection(request);
        return NG_OK;
    }
    if (request->route != NULL && (request->route->flags & ROUTE_OPEN) != 0) {
        return NG_OK;
    }
    if (is_discovery(request)) {
        return NG_OK; /* its fault is NOT_FOUND */
    }
    if (rc == NG_EUNAUTHENTICATED) {
        auth_log_refusal(request->server->auth, refusal.text, request->connection->peer_text,
                         request->request_id);
    }
    http_access_caller(request, &refusal);
    /* A fault of the route must not reveal existing paths to strangers. */
    request->fault.rc = NG_OK;
    request->fault_hint = refusal.hint;
    fault(request, rc, "%s", refusal.text);
    return rc;
}

static void check_body(struct http_request *request)
{
    const struct http_headers *headers = &request->headers;
    if (headers->has_length && headers->body_length > request->gateway->limits.body) {
        bool waits = headers->expect.data != NULL;
        fault_too_large(request);
        /* The client has not sent it yet, or it is too long to be read and thrown away. */
        request->fault.fatal |= waits || headers->body_length > HTTP_DISCARD_BYTES;
    }
    if (request->fault.rc == NG_OK && request->route != NULL &&
        (request->route->flags & ROUTE_BODY) != 0 &&
        (headers->chunked || headers->body_length > 0) &&
        (headers->content_type.data == NULL || !http_is_json(headers->content_type))) {
        request->fault_hint = "Send Content-Type: application/json";
        if (headers->content_type.data == NULL) {
            fault(request, NG_EMEDIATYPE, "The body has no Content-Type");
        } else {
            fault(request, NG_EMEDIATYPE, "The Content-Type \"%.*s\" is not JSON in UTF-8",
                  shown(headers->content_type), headers->content_type.data);
        }
    }
}

void http_request_headers(struct http_request *request, const char *method)
{
    http_request_enter(request, HTTP_STATE_READ);
    request->method = http_check_method(method);
    struct header_walk walk = {request, NULL};
    (void)MHD_get_connection_values_n(request->connection->mhd, MHD_HEADER_KIND, each_header,
                                      &walk);
    check_headers_end(request, walk.end);
    struct http_fault found;
    if (!request->fault.fatal && http_check_headers(&request->headers, &found) != NG_OK) {
        (void)add_fault(request, &found);
    }
    make_request_id(request);
    if (request->connection->identity != HTTP_IDENTITY_PROGRAM) {
        http_connection_identify(
            request->connection); /* also for the log's line of a bad one */
    }
    if (request->access.started_ns != 0) {
        http_access_headers(request);
    }
    if (request->method == 0) {
        request->fault.fatal = true;
        fault(request, NG_EMETHOD,
              "The method is none of GET, HEAD, POST, PUT, PATCH, DELETE, "
              "OPTIONS");
    }
    if (request->fault.rc == NG_OK) {
        http_route_find(request);
        bool probe = request->route != NULL && (request->route->flags & ROUTE_PROBE) != 0;
        if (check_names(request) == NG_OK && !(probe && is_foreign_probe(request))) {
            (void)check_caller(request);
        }
    }
    check_body(request);
    bool body = request->headers.chunked || request->headers.body_length > 0;
    if (body) {
        http_connection_phase(request->connection, HTTP_PHASE_BODY);
    }
}

/* ---- running ---- */

struct call *http_request_call(struct http_request *request)
{
    struct call *call = call_new(request->gateway);
    if (call == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NULL;
    }
    call->face = "rest";
    call->options |= CALL_ON_LOOP;
    call->done = http_request_call_done;
    call->done_user = request;
    int rc = auth_apply(&request->caller, call);
    if (rc != NG_OK) {
        (void)http_reply_error(request, rc, NULL, "%.*s", (int)call->staged.message.len,
                               call->staged.message.data);
        call_unref(call);
        return NULL;
    }
    return call;
}

/* A client that sends the headers and then takes long over the body may have lost its key
 * meanwhile, or the gateway may have got its first key. */
static void check_caller_again(struct http_request *request)
{
    struct key *key = request->caller.key;
    bool keyless = key == NULL && request->connection->auth.way != AUTH_SOCKET &&
                   auth_needs_key(request->server->auth);
    bool open = request->route != NULL && (request->route->flags & ROUTE_OPEN) != 0;
    if (request->fault.rc != NG_OK || open) {
        return;
    }
    if (key_live(key) && !keyless) {
        if (key_rights_changed(key)) {
            fault(request, NG_EBUSY,
                  "The rights of the key changed during the request; send it again");
        }
        return;
    }
    http_access_refused(request, "refused", NG_EUNAUTHENTICATED, str_make(NULL, 0));
    metrics_count(request->gateway->metrics, METRICS_AUTH_FAILURES);
    request->authenticated = false;
    request->bad_token = key != NULL;
    if (keyless) {
        fault(request, NG_EUNAUTHENTICATED,
              "This gateway requires a key now, and none was sent");
    } else {
        fault(request, NG_EUNAUTHENTICATED, "The key that was sent %s since the request began",
              key_why_ended(key));
    }
}

int http_request_run(struct http_request *request)
{
    check_caller_again(request);
    if (request->fault.rc == NG_OK && http_request_text(request).len > HTTP_UNWEIGHED_BYTES) {
        int rc = http_body_weigh(request);
        if (rc != NG_OK) {
            fault_no_room(request, rc);
        }
    }
    if (request->fault.rc != NG_OK) {
        request->reply.close = request->fault.fatal;
        (void)http_reply_error(request, request->fault.rc, request->fault_hint, "%s",
                               request->fault.text);
        return NG_OK;
    }
    struct http_connection *connection = request->connection;
    atomic_fetch_add_explicit(&connection->refs, 1, memory_order_relaxed);
    int rc = request->route->run(request);
    if (rc != NG_PENDING) {
        atomic_fetch_sub_explicit(&connection->refs, 1, memory_order_relaxed);
    }
    return rc;
}

void http_request_finish(struct http_request *request)
{
    if (http_request_is_left(request)) {
        request->reply.close = true;
        bool stopping = atomic_load(&request->server->stopping);
        (void)http_reply_error(request, stopping ? NG_EBUSY : NG_ECANCELLED, NULL, "%s",
                               stopping ? "The gateway is stopping" : "The client left");
        return;
    }
    request->route->finish(request);
}

void http_request_done(struct http_request *request)
{
    struct http_connection *connection = request->connection;
    int before = atomic_exchange(&request->stage, HTTP_DONE);
    if (before == HTTP_SUSPENDED) {
        MHD_resume_connection(request->connection->mhd);
    }
    http_connection_unref(connection);
}

bool http_request_abandon(struct http_request *request)
{
    int suspended = HTTP_SUSPENDED;
    if (!atomic_compare_exchange_strong(&request->stage, &suspended, HTTP_ABANDONED)) {
        return false;
    }
    MHD_resume_connection(request->connection->mhd);
    return true;
}

void http_request_call_done(struct call *call, void *user)
{
    (void)call;
    http_request_done(user);
}

void http_request_end(struct http_request *request)
{
    if (http_request_is_left(request)) {
        return; /* the thread that is still at it ends it, with the last reference */
    }
    auth_release(&request->caller);
    if (request->call != NULL) {
        call_unref(request->call);
        request->call = NULL;
    }
    if (request->service_state != NULL) {
        request->server->routes->service->release(request->service_state);
        request->service_state = NULL;
    }
    if (request->built.data != NULL) {
        buf_done(&request->built);
    }
    if (request->reply.stream != NULL) {
        http_reply_clear(request);
    }
    struct http_body *body = request->body;
    bool last = atomic_load(&request->connection->refs) == 0;
    if (body != NULL && (last || body->cap > HTTP_KEEP_BYTES || body->counted > 0 ||
                         atomic_load(&body->refs) != 1)) {
        http_body_drop(request);
    }
    if (request->reply_counted > 0) {
        (void)metrics_use(request->gateway->metrics, METRICS_BUFFERED,
                          -(int64_t)request->reply_counted);
        request->reply_counted = 0;
    }
}
