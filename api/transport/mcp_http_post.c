/* SPDX-License-Identifier: MIT */
/* mcp_http_post.c - one job per POST: a plain answer, or an event stream from the first message
 * before the answer. */
#include "mcp_http_post.h"

#include <stddef.h>
#include <stdio.h>
#include <strings.h>

#include "api/listen/http_check.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

enum http_phase {
    PHASE_PLAIN = 0, /* nothing was said: the answer can still be a plain body */
    PHASE_LEFT,      /* the client left before that: its questions go elsewhere */
    PHASE_STREAM,    /* the response was given: an event stream */
    PHASE_ENDED
};

/* A header that may be asked for when the request is gone. Memory of the call. */
struct kept_header {
    struct kept_header *next;
    struct ng_str name, value;
};

/* A POST under way. Memory of its call. */
struct mcp_http_job {
    struct mcp_job job;
    struct mcp_http *mcp;
    struct mcp_headers headers;
    const struct mcp_http_request *request; /* lent while mcp_http_handle() runs; then NULL */
    struct kept_header *kept;
    struct mcp_http_response *response; /* the transport's again once done() was called */
    mcp_http_done_fn *done;
    void *user;
    char owner[MCP_SESSION_OWNER_MAX];
    struct key *key; /* lent: the call has it */
    struct buf out;
    bool takes_json, takes_events; /* Accept */
    bool has_session;              /* of the handshake versions: leaving is not cancelling */
    struct lock lock;              /* of the members below */
    enum http_phase phase;
    struct mcp_stream *stream;
};

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

void mcp_http_give_stream(struct mcp_http_response *response, struct http_stream *stream)
{
    response->kind = MCP_HTTP_STREAM;
    response->status = 200;
    response->content_type = "text/event-stream";
    response->stream = stream;
}

/* Before done() is called. */
static void tell_message(struct mcp_http_job *http)
{
    const struct mcp_message *message = &http->job.one.message;
    memcpy(http->response->run, http->job.run, sizeof(http->response->run));
    if (http->job.is_batch) {
        return;
    }
    utf8_copy(http->response->method, MCP_HTTP_NAME_SIZE, message->method);
    if (str_is(message->method, "tools/call")) {
        const struct ng_value *name = json_get(message->params, "name");
        utf8_copy(http->response->tool, MCP_HTTP_NAME_SIZE,
                  json_is(name, NG_TYPE_STRING) ? name->text : STR_NONE);
    }
}

/* Under the job's lock. The response becomes a stream, if it still can. True: call done() now,
 * without the lock. */
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
    mcp_http_give_stream(http->response, connection);
    tell_message(http);
    return true;
}

/* False: it did not get onto this job's stream. */
static bool say(struct mcp_http_job *http, struct ng_str message, enum mcp_stream_need need)
{
    struct mcp_http_response *response = http->response;
    lock_take(&http->lock);
    bool opened = open_stream(http);
    bool said = http->phase == PHASE_STREAM && mcp_stream_add(http->stream, message, need);
    lock_release(&http->lock);
    if (opened) {
        http->done(response, http->user);
    }
    return said;
}

static void notify(struct mcp_job *job, struct ng_str message)
{
    (void)say(http_of(job), message, MCP_STREAM_MAY_DROP);
}

/* If the answer cannot be a stream, the session's own stream is used. */
static void ask(struct mcp_job *job, struct ng_str message)
{
    struct mcp_http_job *http = http_of(job);
    if (say(http, message, MCP_STREAM_MUST_SEND)) {
        return;
    }
    lock_take(&http->lock);
    /* None: it was answered meanwhile. */
    struct mcp_stream *own =
        http->phase == PHASE_ENDED ? NULL : mcp_session_own_stream(job->session);
    lock_release(&http->lock);
    if (own != NULL) {
        (void)mcp_stream_add(own, message, MCP_STREAM_MUST_SEND);
        mcp_stream_unref(own);
    }
}

static void detach_client(struct mcp_job *job, int64_t retry_ms)
{
    struct mcp_http_job *http = http_of(job);
    struct mcp_http_response *response = http->response;
    lock_take(&http->lock);
    bool can = http->has_session && http->phase != PHASE_ENDED &&
               atomic_load(&job->session->version) >= MCP_2025_11_25;
    bool opened = can && open_stream(http);
    if (can && http->phase == PHASE_STREAM) {
        mcp_stream_pause(http->stream, retry_ms);
    }
    lock_release(&http->lock);
    if (opened) {
        http->done(response, http->user);
    }
}

/* ---- jobs ---- */

static int open_session(struct mcp_job *job, enum mcp_version version)
{
    struct mcp_http_job *http = (struct mcp_http_job *)(void *)job;
    struct mcp_session *session = NULL;
    struct ng_str owner = mcp_http_owner(job->caller, http->owner);
    bool stored =
        http->mcp->forwards != NULL && http->key != NULL && http->headers.other != NULL;
    int rc =
        mcp_sessions_open(http->mcp->sessions, owner, http->key, version, stored, &session);
    if (rc == NG_OK) {
        mcp_client_requests_start(http->mcp->client_requests);
        (void)snprintf(http->response->session_id, sizeof(http->response->session_id), "%s",
                       session->id);
        mcp_session_unref(job->session);
        job->session = session;
    }
    return rc;
}

static void started(struct mcp_job *job, struct call *call)
{
    struct mcp_http_job *http = http_of(job);
    if (!http->has_session && http->response->call == NULL) {
        http->response->call = call;
        call_ref(call);
    }
}

static bool can_notify(const struct mcp_job *job)
{
    return ((const struct mcp_http_job *)(const void *)job)->takes_events;
}

static bool streams(struct mcp_job *job)
{
    struct mcp_http_job *http = http_of(job);
    lock_take(&http->lock);
    bool plain = http->phase == PHASE_PLAIN || http->phase == PHASE_LEFT;
    lock_release(&http->lock);
    return !plain;
}

/* A stream that can be resumed must come to an end, else its client asks for the rest again and
 * again; and the end of a session is no cancellation by the client. Else: an empty 202. */
static bool owes_answer(struct mcp_job *job)
{
    struct mcp_http_job *http = http_of(job);
    lock_take(&http->lock);
    bool streams = http->phase == PHASE_STREAM;
    lock_release(&http->lock);
    return streams || job->session == NULL || mcp_session_has_ended(job->session);
}

/* Of a request that is gone only those of MCP are known. */
#define KEPT_PREFIX "Mcp-"

static void keep_header(void *user, struct ng_str name, struct ng_str value)
{
    struct mcp_http_job *http = user;
    struct arena *arena = &http->job.call->arena;
    size_t prefix = sizeof(KEPT_PREFIX) - 1;
    if (name.len < prefix || strncasecmp(name.data, KEPT_PREFIX, prefix) != 0) {
        return;
    }
    struct kept_header *kept = arena_zalloc(arena, sizeof(*kept));
    if (kept != NULL) {
        kept->name = arena_copy(arena, name);
        kept->value = arena_copy(arena, value);
        kept->next = http->kept;
        http->kept = kept;
    }
}

/* The first of that name, as with a request that is still there: the list is in the other
 * order. */
static struct ng_str find_kept(const struct mcp_http_job *http, const char *name)
{
    struct ng_str found = STR_NONE;
    for (const struct kept_header *at = http->kept; at != NULL; at = at->next) {
        if (str_equal_fold(at->name, ng_str_of(name))) {
            found = at->value;
        }
    }
    return found;
}

static int keep(struct mcp_job *job)
{
    struct mcp_http_job *http = http_of(job);
    const struct mcp_http_request *request = http->request;
    struct arena *arena = &job->call->arena;
    job->caller = auth_keep(job->caller, job->call);
    http->headers.version = arena_copy(arena, http->headers.version);
    http->headers.method = arena_copy(arena, http->headers.method);
    http->headers.name = arena_copy(arena, http->headers.name);
    if (http->headers.other != NULL) {
        request->headers(request, keep_header, http);
    }
    http->request = NULL;
    started(job, job->call); /* leaving ends it before it has begun */
    if (arena->oom || job->caller == NULL) {
        return NG_EINTERNAL;
    }
    return request->keep(request, job->call);
}

static const struct mcp_transport http_transport = {
    .keep = keep,
    .started = started,
    .notify = notify,
    .can_notify = can_notify,
    .streams = streams,
    .ask = ask,
    .detach_client = detach_client,
    .owes_answer = owes_answer,
    .is_http = true,
};

static void wrap_event(struct buf *out)
{
    size_t from = sizeof(event_begin) - 1;
    if (out->len > from) {
        mcp_stream_one_line(out->data + from, out->len - from);
    }
    buf_add_c(out, event_end);
}

/* The stream makes the event itself. */
static void unwrap_answer(struct mcp_http_job *http)
{
    size_t start = http->job.out_start;
    if (start > 0 && http->out.len >= start) {
        http->out.len -= start;
        memmove(http->out.data, http->out.data + start, http->out.len);
    }
}

/* The answer into the response, or as the last event of the stream. True: done() was called
 * before. */
static bool complete(struct mcp_http_job *http)
{
    struct mcp_http_response *response = http->response;
    struct mcp_job *job = &http->job;
    bool as_event = !http->takes_json;
    lock_take(&http->lock);
    bool streams = http->phase == PHASE_STREAM;
    http->phase = PHASE_ENDED;
    struct mcp_stream *stream = http->stream;
    http->stream = NULL;
    struct mcp_session *session = job->session; /* a late caller must not find it any more */
    job->session = NULL;
    lock_release(&http->lock);
    if (streams) {
        unwrap_answer(http);
        mcp_stream_finish(stream, &http->out);
        mcp_stream_unref(stream);
    } else {
        tell_message(http);
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
    if (session != NULL && atomic_load(&session->moved)) {
        mcp_sessions_let_go_of(http->mcp->sessions, session);
    }
    mcp_session_unref(session);
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
    mcp_http_count_job(mcp, false);
}

/* accepts: enum mcp_http_accept. */
static int check_post(const struct mcp_http_request *request, unsigned accepts,
                      struct mcp_http_response *response)
{
    if (!http_is_json(request->content_type)) {
        return mcp_http_refuse(response, 415, MCP_INVALID_REQUEST,
                               "Content-Type must be application/json, in UTF-8");
    }
    if (accepts == 0) {
        return mcp_http_refuse(response, 406, MCP_INVALID_REQUEST,
                               "Accept must include application/json and text/event-stream");
    }
    return NG_PENDING;
}

static struct ng_str find_header(const struct mcp_headers *headers, const char *name)
{
    const char *start = (const char *)headers - offsetof(struct mcp_http_job, headers);
    const struct mcp_http_job *http = (const struct mcp_http_job *)(const void *)start;
    if (http->request == NULL) {
        return find_kept(http, name);
    }
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
    http->headers.other = request->is_local ? NULL : find_header;
    http->request = request;
    job->gateway = mcp->gateway;
    job->client_requests = mcp->client_requests;
    job->transport = &http_transport;
    job->methods = mcp->methods;
    job->caller = request->caller;
    job->headers = &http->headers;
    job->text = request->body;
    job->idempotency_key = arena_copy(arena, request->idempotency_key);
    job->on_loop = request->on_loop;
    job->done = job_done;
    job->open_session = open_session;
    if (request->session_id.data != NULL &&
        !mcp_is_stateless(mcp_version_parse(request->protocol_version))) {
        job->session = mcp_sessions_find(mcp->sessions, request->session_id,
                                         mcp_http_owner(request->caller, http->owner));
        http->has_session = job->session != NULL;
        if (job->session == NULL) {
            return NG_ENOTFOUND;
        }
        return NG_OK;
    }
    return NG_OK;
}

static void destroy_job(void *object)
{
    struct mcp_http_job *http = object;
    buf_done(&http->out);
    lock_done(&http->lock);
}

/* The client of a session's request left before anything was said. It may come back for the
 * session's stream, where questions go now; the answer is dropped. */
static void session_left(void *user)
{
    struct mcp_http_job *http = user;
    lock_take(&http->lock);
    if (http->phase == PHASE_PLAIN) {
        http->phase = PHASE_LEFT;
    }
    lock_release(&http->lock);
}

/* In memory of the call, of which the job has the reference. */
static struct mcp_http_job *new_job(struct mcp_http *mcp,
                                    const struct mcp_http_response *response)
{
    struct call *call = call_new(mcp->gateway);
    struct mcp_http_job *http = call == NULL ? NULL : arena_zalloc(&call->arena, sizeof(*http));
    if (http == NULL) {
        call_unref(call);
        return NULL;
    }
    lock_init(&http->lock, LOCK_MCP_POST);
    buf_init(&http->out, response->body.max);
    http->job.call = call;
    if (call_pin(call, destroy_job, http) != NG_OK) {
        call_unref(call);
        return NULL;
    }
    return http;
}

int mcp_http_post(struct mcp_http *mcp, const struct mcp_http_request *request,
                  struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    unsigned accepts =
        request->accept.data == NULL ? MCP_HTTP_JSON : mcp_http_accepts(request->accept);
    if (check_post(request, accepts, response) == NG_OK) {
        return NG_OK;
    }
    struct mcp_http_job *http = new_job(mcp, response);
    if (http == NULL) {
        return mcp_http_refuse(response, 503, 503, "the gateway ran out of memory; try again");
    }
    struct call *call = http->job.call;
    call->face = "mcp";
    if (auth_apply(request->caller, call) != NG_OK) {
        response->status = 400;
        mcp_http_print_refusal(NG_EINVAL, call->staged.message, STR_NONE, &response->body);
        call_unref(call);
        return NG_OK;
    }
    if (fill_job(mcp, request, &call->arena, http) != NG_OK) {
        call_unref(call);
        return mcp_http_refuse_session(response);
    }
    http->takes_json = (accepts & MCP_HTTP_JSON) != 0;
    http->takes_events = (accepts & MCP_HTTP_EVENTS) != 0;
    http->key = call->key;
    http->response = response;
    if (http->has_session) {
        response->call = call;
        call_ref(call);
        response->left = session_left;
        response->left_user = http;
    }
    http->done = done;
    http->user = user;
    http->job.out = &http->out;
    if (!http->takes_json) {
        buf_add_c(&http->out, event_begin);
    }
    if (mcp_job_run(&http->job) == NG_PENDING) {
        mcp_http_count_job(mcp,
                           true); /* the transport waits for this thread, then for the count */
        return NG_PENDING;
    }
    bool was_done = complete(http);
    call_unref(call);
    if (was_done) {
        return NG_PENDING;
    }
    return NG_OK;
}
