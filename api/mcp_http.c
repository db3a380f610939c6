/* SPDX-License-Identifier: MIT */
/* mcp_http.c - MCP over HTTP: methods and media types of /mcp, sessions by header, one job per
 * POST. Bodies and JSON-RPC are mcp_server.c's. */
#include "mcp_http.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "http_check.h"
#include "keys.h"
#include "mcp_server.h"
#include "str.h"

#define MCP_HTTP_ALLOW "POST, DELETE"

struct mcp_http {
    struct gateway *gateway;
    struct mcp_sessions *sessions;
};

/* A POST under way. Memory of its call. */
struct mcp_http_job {
    struct mcp_job job;
    struct mcp_http *mcp;
    struct mcp_headers headers;
    const struct mcp_http_request *request; /* lent while mcp_http_handle() runs */
    struct mcp_http_response *response;
    mcp_http_done_fn *done;
    void *user;
    char owner[MCP_SESSION_OWNER_MAX];
    bool as_event; /* the client takes only an event stream: the answer is its one event */
};

static const struct ng_str no_text = {NULL, 0};

int mcp_http_new(struct gateway *gateway, struct mcp_http **ret)
{
    struct mcp_http *mcp = alloc_zeroed(1, sizeof(*mcp));
    if (mcp == NULL) {
        return NG_EINTERNAL;
    }
    mcp->gateway = gateway;
    int rc =
        mcp_sessions_new(config_int(gateway->config, "mcp.session_timeout"), &mcp->sessions);
    if (rc != NG_OK) {
        free(mcp);
        return rc;
    }
    *ret = mcp;
    return NG_OK;
}

void mcp_http_free(struct mcp_http *mcp)
{
    if (mcp != NULL) {
        mcp_sessions_free(mcp->sessions);
        free(mcp);
    }
}

size_t mcp_http_sessions(struct mcp_http *mcp)
{
    return mcp_sessions_count(mcp->sessions);
}

void mcp_http_set_timeout(struct mcp_http *mcp, int64_t timeout_ms)
{
    mcp_sessions_set_timeout(mcp->sessions, timeout_ms);
}

int mcp_http_print_refusal(int rc, struct ng_str message, struct ng_str hint, struct buf *out)
{
    struct buf data;
    buf_init(&data, out->max);
    buf_printf(&data, "{\"error\":true,\"code\":\"%s\",\"message\":", error_name(NULL, rc));
    buf_add_json(&data, message);
    if (hint.len > 0) {
        buf_add_c(&data, ",\"hint\":");
        buf_add_json(&data, hint);
    }
    buf_add_char(&data, '}');
    mcp_print_error(out, NULL, error_status(NULL, rc), message,
                    data.rc == NG_OK ? buf_str(&data) : no_text);
    buf_done(&data);
    return out->rc;
}

static int refuse(struct mcp_http_response *response, int status, int code, const char *message)
{
    response->status = status;
    mcp_print_error(&response->body, NULL, code, ng_str_of(message), no_text);
    return NG_OK;
}

/* ---- media types ---- */

/* Does a list like "application/json;q=0.9, text/event-stream" take `type`/`subtype`? */
static bool accepts(struct ng_str list, const char *type, const char *subtype)
{
    size_t type_len = strlen(type);
    size_t subtype_len = strlen(subtype);
    size_t at = 0;
    while (at < list.len) {
        size_t end = at;
        while (end < list.len && list.data[end] != ',') {
            end++;
        }
        size_t from = at;
        while (from < end && (list.data[from] == ' ' || list.data[from] == '\t')) {
            from++;
        }
        size_t to = from;
        while (to < end && list.data[to] != ';' && list.data[to] != ' ' &&
               list.data[to] != '\t') {
            to++;
        }
        struct ng_str item = str_make(list.data + from, to - from);
        bool exact = item.len == type_len + 1 + subtype_len &&
                     strncasecmp(item.data, type, type_len) == 0 &&
                     item.data[type_len] == '/' &&
                     strncasecmp(item.data + type_len + 1, subtype, subtype_len) == 0;
        bool family = item.len == type_len + 2 && strncasecmp(item.data, type, type_len) == 0 &&
                      memcmp(item.data + type_len, "/*", 2) == 0;
        if (exact || family || str_is(item, "*/*")) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

/* ---- sessions ---- */

/* Who may use a session: the agent, and the key it came with. */
static struct ng_str owner_of(const struct auth_caller *caller,
                              char owner[MCP_SESSION_OWNER_MAX])
{
    int len = snprintf(owner, MCP_SESSION_OWNER_MAX, "%.*s %s",
                       (int)(caller->agent.len > 64 ? 64 : caller->agent.len),
                       caller->agent.data == NULL ? "" : caller->agent.data,
                       caller->key == NULL ? "" : caller->key->id);
    return str_make(owner, len < 0 ? 0 : (size_t)len);
}

static int open_session(struct mcp_job *job, enum mcp_version version)
{
    struct mcp_http_job *http = (struct mcp_http_job *)(void *)job;
    struct mcp_session *session = NULL;
    struct ng_str owner = owner_of(job->caller, http->owner);
    int rc = mcp_sessions_open(http->mcp->sessions, owner, version, &session);
    if (rc == NG_OK) {
        (void)snprintf(http->response->session_id, sizeof(http->response->session_id), "%s",
                       session->id);
        mcp_session_unref(session);
    }
    return rc;
}

static int refuse_session(struct mcp_http_response *response)
{
    return refuse(response, 404, MCP_INVALID_REQUEST,
                  "there is no such MCP session, or it has ended; send `initialize` without "
                  "Mcp-Session-Id to open one");
}

static int handle_delete(struct mcp_http *mcp, const struct mcp_http_request *request,
                         struct mcp_http_response *response)
{
    char owner[MCP_SESSION_OWNER_MAX];
    if (request->session_id.data == NULL) {
        return refuse(response, 400, MCP_INVALID_REQUEST,
                      "the header Mcp-Session-Id is missing; it names the session to end");
    }
    if (!mcp_sessions_end(mcp->sessions, request->session_id,
                          owner_of(request->caller, owner))) {
        return refuse_session(response);
    }
    response->status = 204;
    return NG_OK;
}

/* ---- POST ---- */

static const char event_begin[] = "event: message\ndata: ";
static const char event_end[] = "\n\n";

static void started(struct mcp_job *job, struct call *call)
{
    struct mcp_http_job *http = (struct mcp_http_job *)(void *)job;
    if (!job->is_batch) {
        http->response->call = call;
        call_ref(call);
    }
}

static const struct mcp_face http_face = {
    .started = started,
    .answers_cancelled = true,
    .is_http = true,
};

/* Job results into the response. */
static void complete(struct mcp_http_job *http)
{
    struct mcp_http_response *response = http->response;
    struct mcp_job *job = &http->job;
    response->status = job->status;
    response->retry_after_s = job->retry_after_s;
    if (response->body.len == job->out_start) {
        response->body.len = 0;
    } else if (http->as_event) {
        response->content_type = "text/event-stream";
        buf_add_c(&response->body, event_end);
    }
    mcp_session_unref(job->session);
}

static void job_done(struct mcp_job *job)
{
    struct mcp_http_job *http = (struct mcp_http_job *)(void *)job;
    struct mcp_http_response *response = http->response;
    mcp_http_done_fn *done = http->done;
    void *user = http->user;
    struct call *call = job->call;
    complete(http);
    call_unref(call); /* the job is in its memory */
    done(response, user);
}

static int check_post(const struct mcp_http_request *request,
                      struct mcp_http_response *response)
{
    if (!http_is_json(request->content_type)) {
        return refuse(response, 415, MCP_INVALID_REQUEST,
                      "Content-Type must be application/json, in UTF-8");
    }
    if (request->accept.data != NULL && !accepts(request->accept, "application", "json") &&
        !accepts(request->accept, "text", "event-stream")) {
        return refuse(response, 406, MCP_INVALID_REQUEST,
                      "Accept must take application/json and text/event-stream");
    }
    return NG_PENDING;
}

static struct ng_str find_header(const struct mcp_headers *headers, const char *name)
{
    const char *start = (const char *)headers - offsetof(struct mcp_http_job, headers);
    const struct mcp_http_job *http = (const struct mcp_http_job *)(const void *)start;
    return http->request->header(http->request, name);
}

static int fill_job(struct mcp_http *mcp, const struct mcp_http_request *request,
                    struct arena *arena, struct mcp_http_job *http)
{
    struct mcp_job *job = &http->job;
    http->mcp = mcp;
    http->headers.version = request->protocol_version;
    http->headers.method = request->mcp_method;
    http->headers.name = request->mcp_name;
    http->headers.other = find_header;
    http->request = request;
    http->as_event =
        request->accept.data != NULL && !accepts(request->accept, "application", "json");
    job->gateway = mcp->gateway;
    job->face = &http_face;
    job->caller = request->caller;
    job->headers = &http->headers;
    job->text = request->body;
    job->idempotency_key = arena_copy(arena, request->idempotency_key);
    job->on_loop = request->on_loop;
    job->done = job_done;
    job->open_session = open_session;
    bool stateless = mcp_is_stateless(mcp_version_parse(request->protocol_version));
    if (request->session_id.data != NULL && !stateless) {
        job->session = mcp_sessions_find(mcp->sessions, request->session_id,
                                         owner_of(request->caller, http->owner));
        return job->session == NULL ? NG_ENOTFOUND : NG_OK;
    }
    return NG_OK;
}

static int handle_post(struct mcp_http *mcp, const struct mcp_http_request *request,
                       struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    if (check_post(request, response) == NG_OK) {
        return NG_OK;
    }
    struct call *call = call_new(mcp->gateway);
    struct mcp_http_job *http = call == NULL ? NULL : arena_zalloc(&call->arena, sizeof(*http));
    if (http == NULL) {
        call_unref(call);
        return refuse(response, 503, 503, "the gateway ran out of memory; try again");
    }
    if (auth_apply(request->caller, call) != NG_OK) {
        response->status = 400;
        mcp_http_print_refusal(NG_EINVAL, call->work.message, no_text, &response->body);
        call_unref(call);
        return NG_OK;
    }
    if (fill_job(mcp, request, &call->arena, http) != NG_OK) {
        call_unref(call);
        return refuse_session(response);
    }
    http->response = response;
    http->done = done;
    http->user = user;
    http->job.call = call;
    http->job.out = &response->body;
    if (http->as_event) {
        buf_add_c(&response->body, event_begin);
    }
    if (mcp_job_run(&http->job) == NG_PENDING) {
        return NG_PENDING;
    }
    complete(http);
    call_unref(call);
    return NG_OK;
}

int mcp_http_handle(struct mcp_http *mcp, const struct mcp_http_request *request,
                    struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    bool stateless = mcp_is_stateless(mcp_version_parse(request->protocol_version));
    if (request->method == MCP_HTTP_POST) {
        return handle_post(mcp, request, response, done, user);
    }
    if (request->method == MCP_HTTP_DELETE && !stateless) {
        return handle_delete(mcp, request, response);
    }
    response->allow = stateless ? "POST" : MCP_HTTP_ALLOW;
    return refuse(response, 405, MCP_INVALID_REQUEST,
                  "this gateway opens no stream here; send messages with POST");
}
