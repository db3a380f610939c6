/* SPDX-License-Identifier: MIT */
/*
 * fuzz_events.c - positions at which a client resumes: lines that are the query of /v1/events,
 * its Last-Event-ID, that of a GET at /mcp, its session ("": one there is), its Accept ("":
 * events); behind them what a plugin added to an event, which is printed as one whole event.
 *
 * Each stream opens, or is refused with a sentence, and its page is JSON; a cursor of MCP leads
 * to an event that is still kept, or nowhere.
 */
#include <stdio.h>

#include "api/http/http_server.h"
#include "api/rest/rest_events.c" /* NOLINT(bugprone-suspicious-include) */
#include "api/serve/mcp_methods.h"
#include "api/serve/routes.h"
#include "api/session/mcp_stream.h"
#include "api/transport/mcp_http.h"
#include "whole_gateway.h"

#define INPUT_BYTES_MAX 8192
#define BODY_BYTES_MAX ((size_t)1024 * 1024)
#define TARGET_BYTES_MAX 4096
#define INITIALIZE                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"f\",\"version\":\"1\"}}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct whole_gateway whole;
static struct mcp_http *mcp;
static char session[MCP_HTTP_SESSION_MAX];
static const struct auth_caller caller = {
    .agent = {"fuzz", 4}, .role = NG_ROLE_ADMIN, .mode = NG_MODE_AGENT};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct ng_str take_line(struct ng_str *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    struct ng_str taken = {rest->data, end == NULL ? rest->len : (size_t)(end - rest->data)};
    size_t used = taken.len + (end != NULL);
    *rest = str_make(rest->data + used, rest->len - used);
    return taken;
}

/* ---- the gateway ---- */

static struct ng_str no_header(const struct mcp_http_request *request, const char *name)
{
    (void)request;
    (void)name;
    return str_make(NULL, 0);
}

static void not_pending(struct mcp_http_response *response, void *user)
{
    (void)response;
    (void)user;
}

static void close_response(struct mcp_http_response *response)
{
    http_stream_drop(response->stream);
    call_unref(response->call);
    buf_done(&response->body);
}

static void handle(const struct mcp_http_request *request, struct mcp_http_response *response)
{
    memset(response, 0, sizeof(*response));
    buf_init(&response->body, BODY_BYTES_MAX);
    must(mcp_http_handle(mcp, request, response, not_pending, NULL) == NG_OK);
    must(response->status >= 200 && response->status < 600);
}

static void post(const char *body)
{
    struct mcp_http_response response;
    struct mcp_http_request request = {
        .method = HTTP_POST,
        .content_type = ng_str_of("application/json"),
        .accept = ng_str_of("application/json, text/event-stream"),
        .protocol_version = ng_str_of("2025-11-25"),
        .session_id = session[0] == '\0' ? str_make(NULL, 0) : ng_str_of(session),
        .header = no_header,
        .body = ng_str_of(body),
        .caller = &caller,
        .on_loop = true,
    };
    handle(&request, &response);
    must(response.status == 200);
    if (session[0] == '\0') {
        memcpy(session, response.session_id, sizeof(session));
    }
    close_response(&response);
}

static void close_gateway(void)
{
    mcp_http_cancel_all(mcp);
    bool drained = whole_gateway_drain(&whole);
    if (drained) {
        mcp_http_free(mcp);
    }
    whole_gateway_close(&whole, drained);
}

static void open_gateway(void)
{
    static const char *const sets[] = {"documents=memory", "plugins=notebook",
                                       "limits.workers=2", NULL};
    whole_folder(whole.folder);
    whole_gateway_open(&whole, sets);
    must(mcp_http_new(whole.gateway, mcp_methods_all(), &mcp) == NG_OK &&
         atexit(close_gateway) == 0);
    post(INITIALIZE);
    post(LIST);
    must(session[0] != '\0');
}

/* ---- /v1/events ---- */

static bool read_target(struct http_request *request, struct ng_str query)
{
    char raw[TARGET_BYTES_MAX];
    struct http_fault fault = {0};
    int len = snprintf(raw, sizeof(raw), "/v1/events%s%.*s", query.len > 0 ? "?" : "",
                       (int)query.len, query.len == 0 ? "" : query.data);
    return len > 0 && (size_t)len < sizeof(raw) &&
           http_check_target(raw, &request->target, &fault) == NG_OK;
}

/* Takes over the call. */
static void try_stream(struct http_request *request, struct call *call,
                       const struct events_query *query)
{
    struct events *events = events_new(request, call, query);
    must(events != NULL);
    struct http_stream *stream = events->stream;
    http_stream_ref(stream);
    if (events_place(request, events) == NG_OK &&
        events_open(request, events, query) == NG_OK) {
        struct buf out;
        buf_init(&out, HTTP_STREAM_FILL_MAX);
        must(query->since == UINT64_MAX ||
             query->since <= store_last_seq(whole.gateway->store));
        must(events_fill(events, &out) == HTTP_STREAM_OPEN && out.len > 0);
        buf_done(&out);
    } else {
        must(request->reply.status >= 400 && request->reply.body.len > 0);
    }
    http_stream_drop(stream);
}

/* Runs the step of the worker on this thread. */
static void try_page(struct call *call, struct events_query *query)
{
    struct json_error error;
    const struct ng_value *value = NULL;
    call->may_block = true;
    if (events_query_find(call, query) == NG_OK && query->pages) {
        must(events_page(call, query) == NG_OK);
        must(json_parse(&call->arena, buf_str(&call->reply_buf), JSON_DEPTH_DEFAULT + 1, &value,
                        &error) == NG_OK);
    }
}

static void try_query(struct http_request *request)
{
    struct call *call = http_request_call(request);
    must(call != NULL && dispatch_spaces(call, NULL) == NG_OK);
    struct events_query *query = arena_zalloc(&call->arena, sizeof(*query));
    must(query != NULL);
    if (events_query_parse(request, call, query) != NG_OK) {
        must(request->reply.status >= 400 && request->reply.body.len > 0);
        call_unref(call);
        return;
    }
    must(query->filters[FILTER_COLLECTION].count <= EVENTS_NAMES_MAX &&
         query->filters[FILTER_TOOL].count <= EVENTS_NAMES_MAX);
    if (query->pages || query->has_from || query->has_to) {
        try_page(call, query);
        call_unref(call);
    } else {
        try_stream(request, call, query);
    }
}

static void try_events(struct ng_str query_text, struct ng_str last_event_id,
                       struct ng_str accept)
{
    static struct http_server server;
    static struct http_request request;
    server.routes = routes_all();
    memset(&request, 0, sizeof(request));
    request.server = &server;
    buf_init(&request.reply.body, BODY_BYTES_MAX);
    request.gateway = whole.gateway;
    request.caller = caller;
    request.headers.accept = accept;
    struct http_fault fault = {0};
    bool good = read_target(&request, query_text);
    if (good && last_event_id.len > 0) {
        good = http_check_header(&request.headers, ng_str_of("Last-Event-ID"), last_event_id,
                                 &fault) == NG_OK;
    }
    if (good) {
        try_query(&request);
    }
    buf_done(&request.reply.body);
}

/* ---- GET at /mcp ---- */

static void try_mcp(struct ng_str last_event_id, struct ng_str id, struct ng_str accept)
{
    struct mcp_http_response response;
    struct mcp_http_request request = {
        .method = HTTP_GET,
        .accept = accept.len == 0 ? ng_str_of("text/event-stream") : accept,
        .protocol_version = ng_str_of("2025-11-25"),
        .session_id = id.len == 0 ? ng_str_of(session) : id,
        .last_event_id = last_event_id,
        .header = no_header,
        .caller = &caller,
        .on_loop = true,
    };
    handle(&request, &response);
    must((response.status == 200) == (response.stream != NULL));
    must(response.stream != NULL || response.body.len > 0);
    close_response(&response);
}

/* ---- an event ---- */

static void try_print(struct ng_str data)
{
    static const char head[] = "id: 7\nevent: change\ndata: ";
    struct ng_event event = {
        .size = sizeof(event),
        .seq = 7,
        .time_ms = 1800000000000,
        .agent = ng_str_of("fuzz"),
        .key = {ng_str_of("pages"), ng_str_of("shared"), ng_str_of("i")},
        .revision = 3,
        .tool = ng_str_of("t"),
        .action = ng_str_of("updated"),
        .data = data,
    };
    struct buf out;
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    buf_init(&out, BODY_BYTES_MAX);
    print_change(&out, &event);
    if (out.rc == NG_OK) {
        size_t at = sizeof(head) - 1;
        must(out.len > at + 2 && memcmp(out.data, head, at) == 0);
        struct ng_str body = {out.data + at, out.len - at - 2};
        must(memcmp(body.data + body.len, "\n\n", 2) == 0);
        must(memchr(body.data, '\n', body.len) == NULL &&
             memchr(body.data, '\r', body.len) == NULL);
        arena_init(&arena, 0);
        must(json_parse(&arena, body, JSON_DEPTH_DEFAULT + 1, &value, &error) == NG_OK);
        arena_done(&arena);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ng_str rest = {(const char *)data, size};
    if (whole.gateway == NULL) {
        open_gateway();
    }
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    struct ng_str query = take_line(&rest);
    struct ng_str resumes = take_line(&rest);
    struct ng_str last_event_id = take_line(&rest);
    struct ng_str id = take_line(&rest);
    struct ng_str accept = take_line(&rest);
    try_events(query, resumes, accept);
    try_mcp(last_event_id, id, accept);
    try_print(rest);
    return 0;
}
