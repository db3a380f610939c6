/* SPDX-License-Identifier: MIT */
/* http_access.c - the access log's line of a request, and the audit log's of a caller that was
 * turned away. */
#include "http_access.h"

#include "core/base/clock.h"
#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/dispatch/audit.h"
#include "core/keys/keys.h"
#include "http_request.h"

/* A text that begins with "ng_" and is this long may be a key, whole or in part. */
#define KEY_SHOWN_LEN (3 + KEY_ID_LEN)

static struct ng_str absent_if_empty(const char *text)
{
    return str_or(ng_str_of(text), str_make(NULL, 0));
}

static bool in_key(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

/* The path, shortened; a text that looks like a key (mistaken for its id) is cut to "ng_". */
static struct ng_str shown_path(const struct http_request *request,
                                char out[HTTP_ACCESS_PATH_MAX + 1])
{
    struct ng_str path = utf8_cut(request->target.path, HTTP_ACCESS_PATH_MAX);
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++) {
        size_t end = i;
        while (end < path.len && in_key(path.data[end])) {
            end++;
        }
        out[len++] = path.data[i];
        if (end - i >= KEY_SHOWN_LEN && memcmp(path.data + i, "ng_", 3) == 0) {
            memcpy(out + len, "g_...", 5);
            len += 5;
            i = end - 1;
        }
    }
    return str_make(out, len);
}

void http_access_headers(struct http_request *request)
{
    struct http_access *access = &request->access;
    utf8_copy(access->user_agent, sizeof(access->user_agent), request->headers.user_agent);
    if (http_traceparent_valid(request->headers.traceparent)) {
        utf8_copy(access->traceparent, sizeof(access->traceparent),
                  request->headers.traceparent);
    }
}

/* target: absent for the path. */
static void audit_refusal(struct http_request *request, const char *what, int rc,
                          struct ng_str target, struct ng_str agent, struct ng_str key)
{
    char path[HTTP_ACCESS_PATH_MAX + 1];
    struct ng_str trace = request->headers.traceparent;
    audit_event(&(struct audit_event){
        .gateway = request->gateway,
        .what = what,
        .outcome = error_name(NULL, rc),
        .face = "http",
        .is_refusal = true,
        .agent = agent,
        .key = key,
        .remote = http_connection_remote(request->connection),
        .client = request->headers.user_agent,
        .target = target.data != NULL ? utf8_cut(target, HTTP_ACCESS_PATH_MAX)
                                      : shown_path(request, path),
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
        audit_refusal(request, "refused", refusal->rc, str_make(NULL, 0),
                      absent_if_empty(refusal->agent), absent_if_empty(refusal->key));
    }
    if (access->started_ns == 0) {
        return;
    }
    const struct auth_caller *caller = &request->caller;
    if (refusal != NULL) {
        access->trusted = refusal->agent[0] != '\0';
        utf8_copy(access->agent, sizeof(access->agent), ng_str_of(refusal->agent));
        utf8_copy(access->key, sizeof(access->key), ng_str_of(refusal->key));
    } else {
        access->trusted = true;
        utf8_copy(access->agent, sizeof(access->agent), caller->agent);
        if (caller->key != NULL) {
            utf8_copy(access->key, sizeof(access->key), ng_str_of(caller->key->id));
        }
    }
}

void http_access_message(struct http_request *request, const char *method, const char *tool)
{
    struct http_access *access = &request->access;
    utf8_copy(access->mcp_method, sizeof(access->mcp_method), ng_str_of(method));
    utf8_copy(access->tool, sizeof(access->tool), ng_str_of(tool));
}

void http_access_end(struct http_request *request, bool whole)
{
    struct http_access *access = &request->access;
    struct log_record record;
    int64_t took = clock_monotonic_ns() - access->started_ns;
    access->started_ns = 0;
    const char *method = "?";
    if (request->method != 0) {
        method = http_method_name(request->method);
    }
    char shown[HTTP_ACCESS_PATH_MAX + 1];
    struct ng_str path = shown_path(request, shown);
    int status = http_request_status(request);
    char sentence_path[HTTP_ACCESS_PATH_MAX + 1];
    log_record_shown(sentence_path, sizeof(sentence_path), path);
    log_record_begin(&record, LOG_ACCESS);
    log_record_text(&record, "remote", http_connection_remote(request->connection));
    log_record_text(&record, "method", ng_str_of(method));
    log_record_text(&record, "path", path);
    log_record_text(&record, "mcp_method", absent_if_empty(access->mcp_method));
    log_record_text(&record, "tool", absent_if_empty(access->tool));
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
    log_record_end(&record, "%s %s %d", method, sentence_path, status);
}
