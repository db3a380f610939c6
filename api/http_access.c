/* SPDX-License-Identifier: MIT */
/* http_access.c - the access log's line of a request, and the audit log's of a caller that was
 * turned away. */
#include "http_access.h"

#include <arpa/inet.h>

#include "audit.h"
#include "clock.h"
#include "gateway.h"
#include "http_request.h"
#include "keys.h"
#include "log_record.h"
#include "str.h"

#define REMOTE_MAX (INET6_ADDRSTRLEN + 8)

static void copy(char *out, size_t size, struct ng_str text)
{
    text = str_utf8_cut(text, size - 1);
    if (text.len > 0) {
        memcpy(out, text.data, text.len);
    }
    out[text.len] = '\0';
}

static struct ng_str absent_if_empty(const char *text)
{
    return text[0] == '\0' ? str_make(NULL, 0) : ng_str_of(text);
}

/* "127.0.0.1", "::1", or "unix" for the owner's socket. */
static struct ng_str remote(const struct http_connection *connection, char out[REMOTE_MAX])
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    const void *address = NULL;
    int family = connection->peer.ss_family;
    if (connection->auth.is_socket) {
        return ng_str_of("unix");
    }
    if (family == AF_INET) {
        memcpy(&in, &connection->peer, sizeof(in));
        address = &in.sin_addr;
    } else if (family == AF_INET6) {
        memcpy(&in6, &connection->peer, sizeof(in6));
        address = &in6.sin6_addr;
    }
    if (address == NULL || inet_ntop(family, address, out, REMOTE_MAX) == NULL) {
        return str_make(NULL, 0);
    }
    return ng_str_of(out);
}

void http_access_begin(struct http_request *request)
{
    struct http_access *access = &request->access;
    access->started_ns = log_switched_on(LOG_ACCESS) ? clock_monotonic_ns() : 0;
    access->trusted = false;
    access->agent[0] = '\0';
    access->key[0] = '\0';
    access->user_agent[0] = '\0';
    access->traceparent[0] = '\0';
}

static void audit_refusal(struct http_request *request, const char *what, int rc,
                          struct ng_str target, struct ng_str agent, struct ng_str key)
{
    char address[REMOTE_MAX];
    struct ng_str trace = request->headers.traceparent;
    audit_event(&(struct audit_event){
        .what = what,
        .outcome = error_name(NULL, rc),
        .agent = agent,
        .key = key,
        .remote = remote(request->connection, address),
        .target = str_utf8_cut(target, HTTP_ACCESS_PATH_MAX),
        .request_id = ng_str_of(request->request_id),
        .traceparent = http_traceparent_valid(trace) ? trace : str_make(NULL, 0),
    });
}

void http_access_refused(struct http_request *request, const char *what, int rc,
                         struct ng_str target)
{
    const struct auth_caller *caller = &request->caller;
    struct ng_str none = str_make(NULL, 0);
    bool known = request->authenticated;
    audit_refusal(request, what, rc, target, known ? caller->agent : none,
                  known && caller->key != NULL ? ng_str_of(caller->key->id) : none);
}

void http_access_caller(struct http_request *request, const struct auth_refusal *refusal)
{
    struct http_access *access = &request->access;
    if (refusal != NULL) {
        metrics_count(request->gateway->metrics, METRICS_AUTH_FAILURES);
        audit_refusal(request, "refused", refusal->rc, request->target.path,
                      absent_if_empty(refusal->agent), absent_if_empty(refusal->key));
    }
    if (access->started_ns == 0) {
        return;
    }
    const struct auth_caller *caller = &request->caller;
    if (refusal != NULL) {
        access->trusted = refusal->agent[0] != '\0';
        copy(access->agent, sizeof(access->agent), ng_str_of(refusal->agent));
        copy(access->key, sizeof(access->key), ng_str_of(refusal->key));
    } else {
        access->trusted = true;
        copy(access->agent, sizeof(access->agent), caller->agent);
        if (caller->key != NULL) {
            copy(access->key, sizeof(access->key), ng_str_of(caller->key->id));
        }
    }
    copy(access->user_agent, sizeof(access->user_agent), request->headers.user_agent);
    if (http_traceparent_valid(request->headers.traceparent)) {
        copy(access->traceparent, sizeof(access->traceparent), request->headers.traceparent);
    }
}

void http_access_end(struct http_request *request, bool whole)
{
    struct http_access *access = &request->access;
    struct log_record record;
    char address[REMOTE_MAX];
    metrics_http(request->gateway->metrics, request->answered ? request->reply.status : 0);
    if (access->started_ns == 0) {
        return;
    }
    int64_t took = clock_monotonic_ns() - access->started_ns;
    access->started_ns = 0;
    const char *method = request->method == 0 ? "?" : http_method_name(request->method);
    struct ng_str path = str_utf8_cut(request->target.path, HTTP_ACCESS_PATH_MAX);
    int status = request->answered ? request->reply.status : 0;
    log_record_begin(&record, LOG_ACCESS);
    log_record_text(&record, "remote", remote(request->connection, address));
    log_record_text(&record, "method", ng_str_of(method));
    log_record_text(&record, "path", path);
    log_record_int(&record, "status", status);
    log_record_int(&record, "bytes_in", (int64_t)request->received);
    log_record_int(&record, "bytes_out", (int64_t)request->sent);
    log_record_ms(&record, "duration_ms", took);
    if (access->trusted) {
        log_record_text(&record, "agent", ng_str_of(access->agent));
        log_record_text(&record, "key", absent_if_empty(access->key));
    }
    if (!whole) {
        log_record_text(&record, "ended", ng_str_of("early"));
    }
    log_record_text(&record, "request_id", absent_if_empty(request->request_id));
    log_record_text(&record, "traceparent", absent_if_empty(access->traceparent));
    log_record_text(&record, "user_agent", absent_if_empty(access->user_agent));
    log_record_end(&record, "%s %.*s %d", method, (int)path.len, path.data, status);
}
