/* SPDX-License-Identifier: MIT */
/* mcp_http.c - MCP over HTTP: methods and media types of /mcp, sessions by header, one job per
 * POST. Bodies and JSON-RPC are mcp_server.c's. */
#include "mcp_http.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "http_check.h"
#include "keys.h"
#include "mcp_ask.h"
#include "str.h"

#define MCP_HTTP_ALLOW "GET, POST, DELETE"

struct mcp_http {
    struct gateway *gateway;
    struct mcp_sessions *sessions;
    struct mcp_asks *asks;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    size_t jobs; /* under way, also those whose client went away */
};

enum http_phase {
    PHASE_PLAIN = 0, /* nothing was said: the answer can still be a plain body */
    PHASE_STREAM,    /* the response was given: an event stream */
    PHASE_ENDED
};

/* A POST under way. Memory of its call. */
struct mcp_http_job {
    struct mcp_job job;
    struct mcp_http *mcp;
    struct mcp_headers headers;
    const struct mcp_http_request *request; /* lent while mcp_http_handle() runs */
    struct mcp_http_response *response;     /* the face's again once done() was called */
    mcp_http_done_fn *done;
    void *user;
    char owner[MCP_SESSION_OWNER_MAX];
    struct key *key; /* lent: the call has it */
    struct buf out;
    bool takes_json, takes_events; /* Accept */
    bool has_session;              /* of the handshake era: leaving is not cancelling */
    pthread_mutex_t lock;          /* of the members below */
    enum http_phase phase;
    struct mcp_stream *stream;
};

static const struct ng_str no_text = {NULL, 0};

static void sweep(void *user)
{
    struct mcp_http *mcp = user;
    mcp_sessions_sweep(mcp->sessions);
}

int mcp_http_new(struct gateway *gateway, struct mcp_http **ret)
{
    struct mcp_http *mcp = alloc_zeroed(1, sizeof(*mcp));
    if (mcp == NULL) {
        return NG_EINTERNAL;
    }
    mcp->gateway = gateway;
    (void)pthread_mutex_init(&mcp->lock, NULL);
    (void)pthread_cond_init(&mcp->idle, NULL);
    int rc =
        mcp_sessions_new(config_int(gateway->config, "mcp.session_timeout"), &mcp->sessions);
    if (rc == NG_OK) {
        rc = mcp_asks_new(gateway, sweep, mcp, &mcp->asks);
    }
    if (rc != NG_OK) {
        mcp_http_free(mcp);
        return rc;
    }
    *ret = mcp;
    return NG_OK;
}

void mcp_http_cancel_all(struct mcp_http *mcp)
{
    if (mcp != NULL) {
        mcp_sessions_close_all(mcp->sessions);
    }
}

void mcp_http_free(struct mcp_http *mcp)
{
    if (mcp == NULL) {
        return;
    }
    if (mcp->sessions != NULL) {
        mcp_sessions_close_all(mcp->sessions);
    }
    (void)pthread_mutex_lock(&mcp->lock);
    while (mcp->jobs > 0) {
        (void)pthread_cond_wait(&mcp->idle, &mcp->lock);
    }
    (void)pthread_mutex_unlock(&mcp->lock);
    mcp_asks_free(mcp->asks);
    mcp_sessions_free(mcp->sessions);
    (void)pthread_cond_destroy(&mcp->idle);
    (void)pthread_mutex_destroy(&mcp->lock);
    free(mcp);
}

static void count_job(struct mcp_http *mcp, bool begins)
{
    (void)pthread_mutex_lock(&mcp->lock);
    mcp->jobs += begins ? 1 : 0;
    mcp->jobs -= begins ? 0 : 1;
    if (mcp->jobs == 0) {
        (void)pthread_cond_broadcast(&mcp->idle);
    }
    (void)pthread_mutex_unlock(&mcp->lock);
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
        mcp_asks_start(http->mcp->asks);
        (void)snprintf(http->response->session_id, sizeof(http->response->session_id), "%s",
                       session->id);
        mcp_session_unref(job->session);
        job->session = session;
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

/* ---- event streams ---- */

static const char event_begin[] = "event: message\ndata: ";
static const char event_end[] = "\n\n";

static struct mcp_http_job *http_of(struct mcp_job *job)
{
    return (struct mcp_http_job *)(void *)job;
}

static void stream_left(void *user)
{
    struct mcp_http_job *http = user;
    mcp_job_cancel(&http->job);
}

static void release_call(void *user)
{
    struct mcp_http_job *http = user;
    call_unref(http->job.call);
}

/* A session's can be resumed and outlives its connections; another one cancels the job when its
 * client leaves. */
static struct mcp_stream *make_stream(struct mcp_http_job *http)
{
    if (http->has_session) {
        return mcp_session_new_stream(http->job.session);
    }
    struct mcp_stream_options options = {
        .left = stream_left,
        .user = http,
        .release = release_call,
    };
    call_ref(http->job.call);
    struct mcp_stream *stream = mcp_stream_new(&options);
    if (stream == NULL) {
        call_unref(http->job.call);
    }
    return stream;
}

static void give_stream(struct mcp_http_response *response, struct http_stream *stream)
{
    response->kind = MCP_HTTP_STREAM;
    response->status = 200;
    response->content_type = "text/event-stream";
    response->stream = stream;
}

/* Under the job's lock. The response becomes a stream, if it still can. True: now done() is to
 * be called, without the lock. */
static bool open_stream(struct mcp_http_job *http)
{
    if (http->phase != PHASE_PLAIN || !http->takes_events) {
        return false;
    }
    struct mcp_stream_reader reader = {
        .key = http->key,
        .open = http->has_session ? &http->job.session->busy : NULL,
    };
    struct mcp_stream *stream = make_stream(http);
    struct http_stream *connection = stream == NULL ? NULL : mcp_stream_attach(stream, &reader);
    if (connection == NULL) {
        mcp_stream_unref(stream);
        return false;
    }
    http->stream = stream;
    http->phase = PHASE_STREAM;
    give_stream(http->response, connection);
    return true;
}

/* False: it did not get onto this job's stream. */
static bool say(struct mcp_http_job *http, struct ng_str message, enum mcp_stream_need need)
{
    struct mcp_http_response *response = http->response;
    (void)pthread_mutex_lock(&http->lock);
    bool opened = open_stream(http);
    bool said = http->phase == PHASE_STREAM && mcp_stream_add(http->stream, message, need);
    (void)pthread_mutex_unlock(&http->lock);
    if (opened) {
        http->done(response, http->user);
    }
    return said;
}

static void notify(struct mcp_job *job, struct ng_str message)
{
    (void)say(http_of(job), message, MCP_STREAM_MAY_DROP);
}

/* Where the answer cannot be a stream, the session's own stream has to do. */
static void ask(struct mcp_job *job, struct ng_str message)
{
    if (say(http_of(job), message, MCP_STREAM_MUST_SEND)) {
        return;
    }
    struct mcp_stream *own = mcp_session_own_stream(job->session);
    if (own != NULL) {
        (void)mcp_stream_add(own, message, MCP_STREAM_MUST_SEND);
        mcp_stream_unref(own);
    }
}

static void let_go(struct mcp_job *job, int64_t retry_ms)
{
    struct mcp_http_job *http = http_of(job);
    struct mcp_http_response *response = http->response;
    bool can = http->has_session && atomic_load(&job->session->version) >= MCP_2025_11_25;
    if (!can) {
        return;
    }
    (void)pthread_mutex_lock(&http->lock);
    bool opened = open_stream(http);
    if (http->phase == PHASE_STREAM) {
        mcp_stream_pause(http->stream, retry_ms);
    }
    (void)pthread_mutex_unlock(&http->lock);
    if (opened) {
        http->done(response, http->user);
    }
}

/* ---- POST ---- */

static void started(struct mcp_job *job, struct call *call)
{
    struct mcp_http_job *http = http_of(job);
    if (!http->has_session) {
        http->response->call = call;
        call_ref(call);
    }
}

static bool can_notify(const struct mcp_job *job)
{
    const char *start = (const char *)job - offsetof(struct mcp_http_job, job);
    return ((const struct mcp_http_job *)(const void *)start)->takes_events;
}

static const struct mcp_face http_face = {
    .started = started,
    .notify = notify,
    .can_notify = can_notify,
    .ask = ask,
    .let_go = let_go,
    .answers_cancelled = true,
    .is_http = true,
};

/* A line feed between the parts of a JSON text would end the event's line. */
static void wrap_event(struct buf *out)
{
    for (size_t i = sizeof(event_begin) - 1; i < out->len; i++) {
        if (out->data[i] == '\n' || out->data[i] == '\r') {
            out->data[i] = ' ';
        }
    }
    buf_add_c(out, event_end);
}

/* The answer into the response, or as the last event of the stream. True: done() was called
 * before. */
static bool complete(struct mcp_http_job *http)
{
    struct mcp_http_response *response = http->response;
    struct mcp_job *job = &http->job;
    bool as_event = !http->takes_json;
    (void)pthread_mutex_lock(&http->lock);
    bool streams = http->phase == PHASE_STREAM;
    http->phase = PHASE_ENDED;
    struct mcp_stream *stream = http->stream;
    http->stream = NULL;
    (void)pthread_mutex_unlock(&http->lock);
    if (streams) {
        mcp_stream_finish(stream, &http->out);
        mcp_stream_unref(stream);
    } else {
        response->status = job->status;
        response->retry_after_s = job->retry_after_s;
        response->changed = job->is_batch || !job->call->read_only;
        if (http->out.len == job->out_start) {
            http->out.len = 0;
        } else if (as_event) {
            response->content_type = "text/event-stream";
            wrap_event(&http->out);
        }
        buf_done(&response->body);
        response->body = http->out;
        buf_init(&http->out, 0);
    }
    mcp_session_unref(job->session);
    job->session = NULL;
    return streams;
}

static void job_done(struct mcp_job *job)
{
    struct mcp_http_job *http = http_of(job);
    struct mcp_http_response *response = http->response;
    struct mcp_http *mcp = http->mcp;
    mcp_http_done_fn *done = http->done;
    void *user = http->user;
    struct call *call = job->call;
    bool was_done = complete(http);
    call_unref(call); /* the job is in its memory */
    if (!was_done) {
        done(response, user);
    }
    count_job(mcp, false);
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
    http->takes_json =
        request->accept.data == NULL || accepts(request->accept, "application", "json");
    http->takes_events =
        request->accept.data != NULL && accepts(request->accept, "text", "event-stream");
    job->gateway = mcp->gateway;
    job->asks = mcp->asks;
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
        http->has_session = job->session != NULL;
        return job->session == NULL ? NG_ENOTFOUND : NG_OK;
    }
    return NG_OK;
}

static void destroy_job(void *object)
{
    struct mcp_http_job *http = object;
    buf_done(&http->out);
    (void)pthread_mutex_destroy(&http->lock);
}

/* In memory of the call, of which the job has the reference. */
static struct mcp_http_job *new_job(struct mcp_http *mcp,
                                    const struct mcp_http_response *response)
{
    struct call *call = call_new(mcp->gateway);
    struct mcp_http_job *http = call == NULL ? NULL : arena_zalloc(&call->arena, sizeof(*http));
    if (http == NULL || pthread_mutex_init(&http->lock, NULL) != 0) {
        call_unref(call);
        return NULL;
    }
    buf_init(&http->out, response->body.max);
    http->job.call = call;
    if (call_pin(call, destroy_job, http) != NG_OK) {
        call_unref(call);
        return NULL;
    }
    return http;
}

static int handle_post(struct mcp_http *mcp, const struct mcp_http_request *request,
                       struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    if (check_post(request, response) == NG_OK) {
        return NG_OK;
    }
    struct mcp_http_job *http = new_job(mcp, response);
    if (http == NULL) {
        return refuse(response, 503, 503, "the gateway ran out of memory; try again");
    }
    struct call *call = http->job.call;
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
    http->key = call->key;
    http->response = response;
    http->done = done;
    http->user = user;
    http->job.out = &http->out;
    if (!http->takes_json) {
        buf_add_c(&http->out, event_begin);
    }
    count_job(mcp, true);
    if (mcp_job_run(&http->job) == NG_PENDING) {
        return NG_PENDING;
    }
    bool was_done = complete(http);
    call_unref(call);
    count_job(mcp, false);
    return was_done ? NG_PENDING : NG_OK;
}

/* ---- GET ---- */

/* The stream that the client wants to go on with, or its session's own. */
static struct mcp_stream *find_stream(struct mcp_session *session,
                                      const struct mcp_http_request *request,
                                      struct mcp_stream_reader *reader)
{
    unsigned number = 0;
    if (request->last_event_id.len > 0) {
        if (!mcp_stream_parse_id(request->last_event_id, &number, &reader->after)) {
            return NULL;
        }
        reader->resumes = true;
    }
    return mcp_session_find_stream(session, number);
}

static int attach(struct mcp_http *mcp, struct mcp_session *session,
                  const struct mcp_http_request *request, struct mcp_http_response *response)
{
    struct mcp_stream_reader reader = {
        .key = request->caller->key,
        .agent = request->caller->agent,
        .open = &session->busy,
    };
    struct mcp_stream *stream = find_stream(session, request, &reader);
    if (stream == NULL) {
        return refuse(response, 400, MCP_INVALID_REQUEST,
                      "Last-Event-ID is not that of an event which this session still keeps; "
                      "leave it out, and send what was not answered again");
    }
    if (http_stream_take(mcp->gateway, reader.agent) != NG_OK) {
        mcp_stream_unref(stream);
        response->retry_after_s = 1;
        return refuse(response, 503, 503,
                      "as many event streams are open as limits.streams allows; close one");
    }
    reader.gateway = mcp->gateway;
    struct http_stream *connection = mcp_stream_attach(stream, &reader);
    mcp_stream_unref(stream);
    if (connection == NULL) {
        http_stream_give(mcp->gateway, reader.agent);
        return refuse(response, 503, 503, "the gateway ran out of memory; try again");
    }
    give_stream(response, connection);
    return NG_OK;
}

static int handle_get(struct mcp_http *mcp, const struct mcp_http_request *request,
                      struct mcp_http_response *response)
{
    char owner[MCP_SESSION_OWNER_MAX];
    if (request->accept.data == NULL || !accepts(request->accept, "text", "event-stream")) {
        return refuse(response, 406, MCP_INVALID_REQUEST, "Accept must take text/event-stream");
    }
    if (request->session_id.data == NULL) {
        return refuse(response, 400, MCP_INVALID_REQUEST,
                      "the header Mcp-Session-Id is missing; it names the session whose "
                      "messages are asked for");
    }
    struct mcp_session *session =
        mcp_sessions_find(mcp->sessions, request->session_id, owner_of(request->caller, owner));
    if (session == NULL) {
        return refuse_session(response);
    }
    int rc = attach(mcp, session, request, response);
    mcp_session_unref(session);
    return rc;
}

int mcp_http_handle(struct mcp_http *mcp, const struct mcp_http_request *request,
                    struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    bool stateless = mcp_is_stateless(mcp_version_parse(str_trim(request->protocol_version)));
    if (request->method == MCP_HTTP_POST) {
        return handle_post(mcp, request, response, done, user);
    }
    if (request->method == MCP_HTTP_DELETE && !stateless) {
        return handle_delete(mcp, request, response);
    }
    if (request->method == MCP_HTTP_GET && !stateless) {
        return handle_get(mcp, request, response);
    }
    response->allow = stateless ? "POST" : MCP_HTTP_ALLOW;
    return refuse(response, 405, MCP_INVALID_REQUEST,
                  "MCP 2026-07-28 has no streams and sessions of its own here; send messages "
                  "with POST");
}
