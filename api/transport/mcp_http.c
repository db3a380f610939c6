/* SPDX-License-Identifier: MIT */
/* mcp_http.c - MCP over HTTP: methods and media types of /mcp, sessions by header, the streams
 * that GET opens. POST is mcp_http_post.c's. */
#include "core/base/lock.h"
#include "mcp_find.h"

#include <stdlib.h>

#include "api/server/mcp_notifier.h"
#include "api/session/mcp_session_store.h"
#include "core/base/clock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "core/keys/keys.h"

#define MCP_HTTP_ALLOW "GET, POST, DELETE"
/* Longest `initialize` that may carry the id of a session that has ended. */
#define MCP_HTTP_INITIALIZE_MAX ((size_t)64 * 1024)
/* Longest name of an agent; behind it stands the key's number. */
#define MCP_HTTP_AGENT_MAX ((size_t)64)
_Static_assert(MCP_HTTP_AGENT_MAX + 1 + KEY_ID_LEN < MCP_SESSION_OWNER_MAX, "an owner fits");

static void sweep(void *user)
{
    struct mcp_http *mcp = user;
    mcp_forward_check_lapses(mcp);
    mcp_sessions_sweep(mcp->sessions);
    mcp_find_sweep(mcp);
}

static void forget(void *user, const struct mcp_session *session)
{
    mcp_find_forget(user, session);
}

int mcp_http_new(struct gateway *gateway, const struct mcp_methods *methods,
                 struct mcp_http **ret)
{
    struct mcp_http *mcp = alloc_zeroed(1, sizeof(*mcp));
    if (mcp == NULL) {
        return NG_EINTERNAL;
    }
    mcp->gateway = gateway;
    mcp->methods = methods;
    lock_init(&mcp->lock, LOCK_MCP_HTTP);
    lock_cond_init(&mcp->idle);
    int rc =
        mcp_sessions_new(config_int(gateway->config, "mcp.session_timeout"), &mcp->sessions);
    if (rc == NG_OK) {
        rc = mcp_client_requests_new(gateway, sweep, mcp, &mcp->client_requests);
    }
    if (rc == NG_OK) {
        rc = mcp_notifiers_open(gateway);
        mcp->notifiers = rc == NG_OK;
    }
    if (rc != NG_OK) {
        mcp_http_free(mcp);
        return rc;
    }
    *ret = mcp;
    return NG_OK;
}

int mcp_http_share(struct mcp_http *mcp, struct buf *error)
{
    if (!cluster_advertises(mcp->gateway->cluster)) {
        return NG_OK;
    }
    mcp_sessions_set_forget(mcp->sessions, forget, mcp);
    mcp->swept_ns = clock_monotonic_ns();
    int rc = mcp_session_declare(mcp->gateway, error);
    if (rc == NG_OK) {
        rc = mcp_forwards_open(mcp->gateway, &mcp->forwards, error);
    }
    return rc;
}

void mcp_http_cancel_all(struct mcp_http *mcp)
{
    if (mcp != NULL) {
        mcp_sessions_close_all(mcp->sessions);
        mcp_forwards_cancel(mcp->forwards);
    }
}

void mcp_http_age(struct mcp_http *mcp, int64_t ms)
{
    mcp_sessions_age(mcp->sessions, ms);
    mcp_client_requests_age(mcp->client_requests, ms);
}

size_t mcp_http_sessions(struct mcp_http *mcp)
{
    return mcp_sessions_count(mcp->sessions);
}

void mcp_http_free(struct mcp_http *mcp)
{
    if (mcp == NULL) {
        return;
    }
    if (mcp->sessions != NULL) {
        mcp_sessions_close_all(mcp->sessions);
    }
    lock_take(&mcp->lock);
    while (mcp->jobs > 0) {
        lock_wait(&mcp->idle, &mcp->lock);
    }
    lock_release(&mcp->lock);
    mcp_client_requests_free(mcp->client_requests);
    mcp_forwards_close(mcp->forwards);
    mcp_session_orphans_free(mcp->orphans);
    mcp_sessions_free(mcp->sessions);
    if (mcp->notifiers) {
        mcp_notifiers_close(mcp->gateway);
    }
    (void)pthread_cond_destroy(&mcp->idle);
    lock_done(&mcp->lock);
    free(mcp);
}

void mcp_http_count_job(struct mcp_http *mcp, bool begins)
{
    lock_take(&mcp->lock);
    mcp->jobs += begins ? 1 : -1;
    if (mcp->jobs == 0) {
        (void)pthread_cond_broadcast(&mcp->idle);
    }
    lock_release(&mcp->lock);
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
    mcp_print_error(out, NULL, error_status(NULL, rc), message, buf_str_or(&data, STR_NONE));
    buf_done(&data);
    return out->rc;
}

int mcp_http_refuse(struct mcp_http_response *response, int status, int code,
                    const char *message)
{
    response->status = status;
    mcp_print_error(&response->body, NULL, code, ng_str_of(message), STR_NONE);
    return NG_OK;
}

/* ---- media types ---- */

/* The media type that one member of the list accepts, "type/subtype" without parameters. */
static unsigned accepts_of(struct ng_str item)
{
    static const struct {
        const char *text;
        unsigned accepts;
    } known[] = {
        {"application/json", MCP_HTTP_JSON},
        {"text/event-stream", MCP_HTTP_EVENTS},
        {"*/*", MCP_HTTP_JSON | MCP_HTTP_EVENTS},
        {"application/*", MCP_HTTP_JSON},
        {"text/*", MCP_HTTP_EVENTS},
    };
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        if (str_equal_fold(item, ng_str_of(known[i].text))) {
            return known[i].accepts;
        }
    }
    return 0;
}

unsigned mcp_http_accepts(struct ng_str list)
{
    unsigned accepts = 0;
    size_t at = 0;
    while (at < list.len) {
        size_t from = at;
        while (from < list.len && (list.data[from] == ' ' || list.data[from] == '\t')) {
            from++;
        }
        size_t to = from;
        while (to < list.len && memchr(",; \t", list.data[to], 4) == NULL) {
            to++;
        }
        accepts |= accepts_of(str_make(list.data + from, to - from));
        while (to < list.len && list.data[to] != ',') {
            to++;
        }
        at = to + 1;
    }
    return accepts;
}

/* ---- sessions ---- */

/* The owner of a session: the agent, and the key it came with. */
struct ng_str mcp_http_owner(const struct auth_caller *caller,
                             char owner[MCP_SESSION_OWNER_MAX])
{
    /* Not with printf: every call in a session comes by here. */
    struct ng_str key = ng_str_of(caller->key == NULL ? "" : caller->key->id);
    size_t len = size_min(caller->agent.len, MCP_HTTP_AGENT_MAX);
    if (len > 0) {
        memcpy(owner, caller->agent.data, len);
    }
    owner[len++] = ' ';
    memcpy(owner + len, key.data, key.len + 1);
    return str_make(owner, len + key.len);
}

int mcp_http_refuse_session(struct mcp_http_response *response)
{
    return mcp_http_refuse(response, 404, MCP_INVALID_REQUEST,
                           "there is no such MCP session, or it has ended; send `initialize` "
                           "without Mcp-Session-Id to open one");
}

static int handle_delete(struct mcp_http *mcp, const struct mcp_http_request *request,
                         struct mcp_http_response *response)
{
    char owner[MCP_SESSION_OWNER_MAX];
    if (request->session_id.data == NULL) {
        return mcp_http_refuse(
            response, 400, MCP_INVALID_REQUEST,
            "the header Mcp-Session-Id is missing; it names the session to end");
    }
    if (!mcp_sessions_end(mcp->sessions, request->session_id,
                          mcp_http_owner(request->caller, owner))) {
        return mcp_http_refuse_session(response);
    }
    response->status = 204;
    return NG_OK;
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
        return mcp_http_refuse(response, 400, MCP_INVALID_REQUEST,
                               "Last-Event-ID is not the id of an event that this session "
                               "still keeps; leave it out, and send unanswered requests again");
    }
    if (http_stream_take(mcp->gateway, reader.agent) != NG_OK) {
        mcp_stream_unref(stream);
        response->retry_after_s = 1;
        return mcp_http_refuse(response, 503, 503,
                               "the open event streams fill limits.streams; close one");
    }
    reader.gateway = mcp->gateway;
    struct http_stream *connection = mcp_stream_attach(stream, &reader);
    mcp_stream_unref(stream);
    if (connection == NULL) {
        http_stream_give(mcp->gateway, reader.agent);
        return mcp_http_refuse(response, 503, 503, "the gateway ran out of memory; try again");
    }
    mcp_http_give_stream(response, connection);
    return NG_OK;
}

int mcp_http_get(struct mcp_http *mcp, const struct mcp_http_request *request,
                 struct mcp_http_response *response)
{
    char owner[MCP_SESSION_OWNER_MAX];
    if ((mcp_http_accepts(request->accept) & MCP_HTTP_EVENTS) == 0) {
        return mcp_http_refuse(response, 406, MCP_INVALID_REQUEST,
                               "Accept must include text/event-stream");
    }
    if (request->session_id.data == NULL) {
        return mcp_http_refuse(
            response, 400, MCP_INVALID_REQUEST,
            "the header Mcp-Session-Id is missing; it names the session of the messages");
    }
    struct mcp_session *session = mcp_sessions_find(mcp->sessions, request->session_id,
                                                    mcp_http_owner(request->caller, owner));
    if (session == NULL) {
        return mcp_http_refuse_session(response);
    }
    int rc = attach(mcp, session, request, response);
    mcp_session_unref(session);
    return rc;
}

/* Many clients send the id of the session that they lost with the `initialize` that is to
 * replace it. */
static bool opens_session(const struct mcp_http *mcp, const struct mcp_http_request *request)
{
    static const char method[] = "\"initialize\"";
    struct arena arena;
    const struct ng_value *message = NULL;
    if (request->method != HTTP_POST || request->session_id.data == NULL ||
        request->body.len > MCP_HTTP_INITIALIZE_MAX ||
        memmem(request->body.data, request->body.len, method, sizeof(method) - 1) == NULL) {
        return false;
    }
    arena_init(&arena, CALL_MEMORY_MAX);
    bool opens =
        json_parse(&arena, request->body, mcp->gateway->limits.depth + MCP_ENVELOPE_DEPTH,
                   &message, NULL) == NG_OK &&
        str_is(json_get_text(message, "method"), "initialize");
    arena_done(&arena);
    return opens;
}

int mcp_http_handle(struct mcp_http *mcp, const struct mcp_http_request *request,
                    struct mcp_http_response *response, mcp_http_done_fn *done, void *user)
{
    bool stateless = mcp_is_stateless(mcp_version_parse(str_trim(request->protocol_version)));
    struct mcp_http_request first;
    int rc = NG_ENOTFOUND;
    if (!stateless && opens_session(mcp, request)) {
        first = *request;
        first.session_id = STR_NONE;
        request = &first;
    }
    if (!stateless) {
        rc = mcp_forward(mcp, request, response, done, user);
    }
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    if (request->method == HTTP_POST) {
        return mcp_http_post(mcp, request, response, done, user);
    }
    if (request->method == HTTP_DELETE && !stateless) {
        return handle_delete(mcp, request, response);
    }
    if (request->method == HTTP_GET && !stateless) {
        return mcp_http_get(mcp, request, response);
    }
    response->allow = stateless ? "POST" : MCP_HTTP_ALLOW;
    return mcp_http_refuse(
        response, 405, MCP_INVALID_REQUEST,
        "MCP 2026-07-28 has no streams and sessions of its own here; send messages with POST");
}
