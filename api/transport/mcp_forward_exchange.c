/* SPDX-License-Identifier: MIT */
/* mcp_forward_exchange.c - one forwarded request: its head and body go to the other gateway on
 * the thread of the exchanges, the answer is collected, or passed on as a stream with a bounded
 * buffer. */
#include "mcp_forward_state.h"

#include <stdio.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Bytes of a stream that wait for the client: over this the other gateway waits. */
#define FORWARD_QUEUE_MAX ((size_t)256 * 1024)
#define FORWARD_PATH "/mcp"

static struct forward *forward_of(struct exchange *exchange)
{
    return (struct forward *)(void *)exchange;
}

static void destroy(void *object)
{
    struct forward *forward = object;
    buf_done(&forward->out);
    lock_done(&forward->lock);
}

/* ---- the answer as a stream ---- */

static int fill(void *user, struct buf *out)
{
    struct forward *forward = user;
    lock_take(&forward->lock);
    if (forward->whole > 0) {
        (void)buf_add(out, forward->out.data, forward->whole);
        (void)buf_splice(&forward->out, 0, forward->whole, STR_NONE);
        forward->whole = 0;
    }
    bool resume = forward->paused;
    forward->paused = false;
    int state = (int)forward->state;
    lock_release(&forward->lock);
    if (resume) {
        mcp_forward_api(forward)->resume(&forward->exchange);
    }
    return state;
}

static void closed(void *user)
{
    struct forward *forward = user;
    lock_take(&forward->lock);
    forward->stream = NULL;
    lock_release(&forward->lock);
    mcp_forward_api(forward)->cancel(&forward->exchange);
    call_unref(forward->call);
}

/* Comments may be put between events: only whole ones are handed out. */
static bool open_stream(struct forward *forward)
{
    static const struct http_stream_source source = {.fill = fill, .closed = closed};
    call_ref(forward->call);
    struct http_stream *stream = http_stream_new(&source, forward, forward->call->key);
    if (stream == NULL) {
        call_unref(forward->call);
        return false;
    }
    forward->stream = stream;
    forward->heard_ms = clock_monotonic_ns() / 1000000;
    forward->phase = FORWARD_STREAM;
    mcp_http_give_stream(forward->response, stream);
    forward->done(forward->response, forward->user);
    return true;
}

/* ---- what the other gateway answers; on the thread of the exchanges ---- */

/* Lives as long as the call. NULL stays NULL. */
static const char *keep_text(struct forward *forward, const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    return arena_copy(&forward->call->arena, ng_str_of(text)).data;
}

static void on_head(struct exchange *exchange, const struct exchange_head *head)
{
    static const char events[] = "text/event-stream";
    struct forward *forward = forward_of(exchange);
    struct mcp_http_response *response = forward->response;
    if (forward->phase != FORWARD_ASKED) {
        return; /* of trailers */
    }
    if (head->status == STATUS_MISDIRECTED) {
        forward->phase = FORWARD_AWAY;
        return;
    }
    if (head->session_id != NULL) {
        (void)snprintf(response->session_id, sizeof(response->session_id), "%s",
                       head->session_id);
    }
    utf8_copy(response->run, sizeof(response->run), ng_str_of(head->run));
    bool is_stream = head->status == STATUS_OK && head->content_type != NULL &&
                     strncasecmp(head->content_type, events, sizeof(events) - 1) == 0;
    if (is_stream && open_stream(forward)) {
        return;
    }
    forward->phase = FORWARD_BODY;
    response->status = head->status;
    response->retry_after_s = head->retry_after_s;
    response->content_type = keep_text(forward, head->content_type);
    response->allow = keep_text(forward, head->allow);
    response->changed = forward->is_change;
}

/* Under the lock. */
static void queue_bytes(struct forward *forward, const char *data, size_t len)
{
    struct buf *out = &forward->out;
    size_t from = out->len;
    if (buf_add(out, data, len) != NG_OK) {
        forward->state = HTTP_STREAM_BROKEN;
        http_stream_wake(forward->stream);
        return;
    }
    for (size_t at = out->len; at > from && at >= 2; at--) {
        if (out->data[at - 1] == '\n' && out->data[at - 2] == '\n') {
            forward->whole = at;
            break;
        }
    }
    http_stream_wake(forward->stream);
}

static bool on_body(struct exchange *exchange, const char *data, size_t len)
{
    struct forward *forward = forward_of(exchange);
    bool taken = true;
    if (forward->phase == FORWARD_BODY) {
        (void)buf_add(&forward->response->body, data, len);
    } else if (forward->phase == FORWARD_STREAM) {
        forward->heard_ms = clock_monotonic_ns() / 1000000;
        lock_take(&forward->lock);
        /* An event that is longer than that is collected all the same. */
        taken = forward->stream == NULL || forward->whole == 0 ||
                forward->out.len < FORWARD_QUEUE_MAX;
        forward->paused = !taken;
        if (taken && forward->stream != NULL) {
            queue_bytes(forward, data, len);
        }
        lock_release(&forward->lock);
    }
    return taken;
}

/* No gateway has answered. */
static void refuse(struct forward *forward)
{
    struct mcp_http_response *response = forward->response;
    buf_clear(&response->body);
    response->content_type = NULL;
    response->allow = NULL;
    response->session_id[0] = '\0';
    response->run[0] = '\0';
    if (forward->phase == FORWARD_GONE) {
        (void)mcp_http_refuse_session(response);
    } else if (forward->came && forward->phase == FORWARD_AWAY) {
        (void)mcp_http_refuse(response, STATUS_MISDIRECTED, MCP_INVALID_REQUEST,
                              "another gateway has this MCP session");
    } else if (forward->token[0] == '\0') {
        response->retry_after_s = 1;
        (void)mcp_http_refuse(response, STATUS_UNAVAILABLE, STATUS_UNAVAILABLE,
                              "the MCP session could not be looked up in the database; try "
                              "again");
    } else {
        response->retry_after_s = 1;
        (void)mcp_http_refuse(response, STATUS_UNAVAILABLE, STATUS_UNAVAILABLE,
                              "the gateway of this MCP session did not answer; what this "
                              "request was to change may have been changed");
    }
}

static void end_stream(struct forward *forward, enum exchange_outcome outcome)
{
    lock_take(&forward->lock);
    if (outcome == EXCHANGE_BROKEN) {
        forward->state = HTTP_STREAM_BROKEN;
    } else if (forward->state == HTTP_STREAM_OPEN) {
        forward->state = HTTP_STREAM_END;
    }
    if (forward->stream != NULL) {
        http_stream_wake(forward->stream);
    }
    lock_release(&forward->lock);
}

void mcp_forward_count(struct forward *forward, bool begins)
{
    if (forward->is_change) {
        (void)atomic_fetch_add(&forward->mcp->gateway->active, begins ? 1 : -1);
    }
    mcp_http_count_job(forward->mcp, begins);
}

void mcp_forward_finish(struct forward *forward, enum exchange_outcome outcome)
{
    struct call *call = forward->call;
    if (forward->phase == FORWARD_STREAM) {
        end_stream(forward, outcome);
    } else {
        if (outcome != EXCHANGE_OK || forward->phase != FORWARD_BODY) {
            refuse(forward);
        }
        forward->done(forward->response, forward->user);
    }
    mcp_forward_count(forward, false);
    call_unref(call);
}

static void ended(struct exchange *exchange, enum exchange_outcome outcome)
{
    struct forward *forward = forward_of(exchange);
    bool unread = forward->phase == FORWARD_ASKED &&
                  (outcome == EXCHANGE_NOBODY ||
                   (outcome == EXCHANGE_BROKEN && forward->method == HTTP_GET));
    if ((unread || forward->phase == FORWARD_AWAY) && forward->rounds < FORWARD_ROUNDS) {
        mcp_forward_find(forward, outcome == EXCHANGE_NOBODY);
    } else {
        mcp_forward_finish(forward, outcome);
    }
}

/* While this side does not take them, no bytes come. */
static bool is_silent(struct forward *forward)
{
    int64_t now_ms = clock_monotonic_ns() / 1000000;
    lock_take(&forward->lock);
    bool paused = forward->paused;
    lock_release(&forward->lock);
    if (paused) {
        forward->heard_ms = now_ms;
    }
    return now_ms - forward->heard_ms > FORWARD_SILENCE_MS;
}

/* A gateway that is stopped keeps its connections and loses its lease. */
bool mcp_forward_is_lost(struct exchange *exchange)
{
    struct forward *forward = forward_of(exchange);
    return (forward->phase == FORWARD_STREAM && is_silent(forward)) ||
           !cluster_is_alive(forward->mcp->gateway->cluster, ng_str_of(forward->target));
}

/* ---- beginning ---- */

/* The client left before the head came. */
static void left(void *user)
{
    struct forward *forward = user;
    lock_take(&forward->lock);
    forward->gone = true;
    if (forward->begun) {
        mcp_forward_api(forward)->cancel(&forward->exchange);
    }
    lock_release(&forward->lock);
}

void mcp_forward_start(struct forward *forward, struct mcp_http_response *response)
{
    forward->response = response;
    response->call = forward->call;
    call_ref(forward->call);
    response->left = left;
    response->left_user = forward;
    mcp_forward_count(forward, true);
}

/* Of this connection, or made anew for the next one. */
static bool is_hop_header(struct ng_str name)
{
    static const char *const names[] = {
        "Connection",      "Keep-Alive",       "Transfer-Encoding",   "TE",
        "Trailer",         "Upgrade",          "Content-Length",      "Expect",
        "Accept-Encoding", "Proxy-Connection", "Proxy-Authorization", FORWARD_HEADER,
        "X-Request-Id"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (str_equal_fold(name, ng_str_of(names[i]))) {
            return true;
        }
    }
    return false;
}

static void add_line(struct forward *forward, struct ng_str line)
{
    if (line.data != NULL && forward->exchange.header_count < FORWARD_HEADERS_MAX) {
        forward->lines[forward->exchange.header_count++] = line.data;
    }
}

static void keep_header(void *user, struct ng_str name, struct ng_str value)
{
    struct forward *forward = user;
    if (value.len > 0 && !is_hop_header(name)) {
        add_line(forward, arena_printf(&forward->call->arena, "%.*s: %.*s", (int)name.len,
                                       name.data, (int)value.len, value.data));
    }
}

/* If there is none, and libcurl would send one of its own, a line says so: without a value
 * for none at all, with a semicolon for an empty one. */
static void keep_accept(struct forward *forward, struct ng_str accept)
{
    if (accept.data == NULL) {
        add_line(forward, ng_str_of("Accept:"));
    } else if (accept.len == 0) {
        add_line(forward, ng_str_of("Accept;"));
    }
}

static const char *method_of(enum http_method method)
{
    if (method == HTTP_POST) {
        return "POST";
    }
    if (method == HTTP_DELETE) {
        return "DELETE";
    }
    return "GET";
}

int mcp_forward_keep(struct forward *forward, const struct mcp_http_request *request)
{
    struct call *call = forward->call;
    struct exchange *exchange = &forward->exchange;
    exchange->header_count = 1; /* the token's, see begin() */
    request->headers(request, keep_header, forward);
    keep_accept(forward, request->accept);
    struct ng_str id = request->caller->request_id;
    add_line(forward, arena_printf(&call->arena, "X-Request-Id: %.*s", (int)id.len, id.data));
    exchange->headers = forward->lines;
    exchange->method = method_of(request->method);
    exchange->authorities = forward->mcp->forwards->authorities;
    exchange->on_head = on_head;
    exchange->on_body = on_body;
    exchange->ended = ended;
    exchange->is_lost = mcp_forward_is_lost;
    forward->method = request->method;
    forward->is_change = request->method != HTTP_GET;
    if (request->method == HTTP_POST) {
        exchange->body = request->body;
    }
    forward->id = arena_copy(&call->arena, request->session_id);
    forward->accept = arena_copy(&call->arena, request->accept);
    forward->last_event_id = arena_copy(&call->arena, request->last_event_id);
    forward->caller = auth_keep(request->caller, call);
    if (call->arena.oom || forward->caller == NULL) {
        return NG_EINTERNAL;
    }
    return request->keep(request, call);
}

bool mcp_forward_begin(struct forward *forward)
{
    struct exchange *exchange = &forward->exchange;
    struct mcp_forwards *forwards = forward->mcp->forwards;
    struct arena *arena = &forward->call->arena;
    struct cluster_address address;
    struct cluster *cluster = forward->mcp->gateway->cluster;
    struct ng_str target = ng_str_of(forward->target);
    if (!cluster_is_alive(cluster, target) || !cluster_address(cluster, target, &address)) {
        return false;
    }
    struct ng_str url = arena_printf(arena, "%s" FORWARD_PATH, address.url);
    struct ng_str line = arena_printf(arena, FORWARD_HEADER ": %s", address.token);
    if (address.token[0] == '\0' || url.data == NULL || line.data == NULL) {
        return false;
    }
    memcpy(forward->token, address.token, sizeof(forward->token));
    forward->phase = FORWARD_ASKED;
    exchange->url = url.data;
    exchange->of = NULL;
    exchange->handle = NULL;
    exchange->lines = NULL;
    exchange->asked = 0;
    exchange->over = false;
    forward->lines[0] = line.data;
    lock_take(&forward->lock);
    bool begun = !forward->gone;
    forward->begun = begun;
    if (begun) { /* it may end before this thread goes on */
        call_ref(forward->call);
        forwards->api->begin(forwards->exchanges, exchange);
    }
    lock_release(&forward->lock);
    if (begun) {
        call_unref(forward->call);
    }
    return begun;
}

struct forward *mcp_forward_new(struct mcp_http *mcp)
{
    struct call *call = call_new(mcp->gateway);
    struct forward *forward = NULL;
    if (call != NULL) {
        forward = arena_zalloc(&call->arena, sizeof(*forward));
    }
    if (forward == NULL) {
        call_unref(call);
        return NULL;
    }
    forward->mcp = mcp;
    forward->call = call;
    lock_init(&forward->lock, LOCK_MCP_FORWARD);
    buf_init(&forward->out, HTTP_STREAM_FILL_MAX);
    if (call_pin(call, destroy, forward) != NG_OK) {
        destroy(forward);
        call_unref(call);
        return NULL;
    }
    return forward;
}
