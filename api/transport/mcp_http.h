/* SPDX-License-Identifier: MIT */
/*
 * mcp_http.h - the seam between the HTTP transport and MCP: /mcp requests in, whole answers
 * out.
 *
 * The HTTP transport has already done: smuggling checks, Host and Origin, authentication, the
 * body whole and within limits.body. MCP does the rest: method, Accept, Content-Type, versions,
 * headers, sessions, JSON-RPC.
 */
#ifndef NOTEGATE_API_MCP_HTTP_H
#define NOTEGATE_API_MCP_HTTP_H

#include "api/auth/auth.h"
#include "api/http/http_stream.h"
#include "api/listen/http_check.h"

struct mcp_http;
struct mcp_methods;

/* Longest session id with its NUL. */
#define MCP_HTTP_SESSION_MAX 96

/*
 * One request. The struct and the texts of headers and caller are borrowed until
 * mcp_http_handle() returns: copy later needed texts (auth_apply() copies). The body is lent
 * until the answer is given; keep() makes it live as long as a call does.
 */
struct mcp_http_request {
    enum http_method method; /* POST, GET or DELETE */
    /* Headers; absent = {NULL, 0}. */
    struct ng_str content_type, accept, origin;
    struct ng_str protocol_version; /* MCP-Protocol-Version */
    struct ng_str session_id;       /* Mcp-Session-Id */
    struct ng_str mcp_method;       /* Mcp-Method */
    struct ng_str mcp_name;         /* Mcp-Name */
    struct ng_str last_event_id;    /* Last-Event-ID */
    struct ng_str idempotency_key;  /* Idempotency-Key */
    /* Any other one (Mcp-Param-...), name compared without case; and all of them, in order.
     */
    struct ng_str (*header)(const struct mcp_http_request *request, const char *name);
    void (*headers)(const struct mcp_http_request *request,
                    void (*each)(void *user, struct ng_str name, struct ng_str value),
                    void *user);
    struct ng_str body; /* "" where there was none */
    /* The body stays where it is until `call` is freed (which may be after its answer): to be
     * used before call->args_text or pub.args point into it. NG_OK, NG_EINTERNAL. */
    int (*keep)(const struct mcp_http_request *request, struct call *call);
    const struct auth_caller *caller; /* auth_apply(caller, call) */
    /* Came by the gateway's own socket: no proxy can have decided by headers, so Mcp-Param-...
     * need not repeat arguments. */
    bool is_local;
    bool on_loop;    /* copy into call->options: nothing here may block */
    void *transport; /* the HTTP transport's own */
};

/* Of a method's and of a tool's name in the access log. */
#define MCP_HTTP_NAME_SIZE 65

enum mcp_http_kind {
    MCP_HTTP_BODY = 0, /* `body`, whole */
    MCP_HTTP_STREAM    /* `stream`: events, for as long as it is open */
};

/*
 * The answer; zeroed and body initialised (with its maximum) by the HTTP transport, filled by
 * MCP, freed by the HTTP transport.
 */
struct mcp_http_response {
    enum mcp_http_kind kind;
    int status;                 /* 200, 202 (no body), 400, 404, 405, 406, 415, 429, 503 ... */
    const char *content_type;   /* static, or of the call; NULL: application/json */
    struct buf body;            /* sent as it is; its memory is taken */
    struct http_stream *stream; /* MCP_HTTP_STREAM: the reference passes to the transport */
    char session_id[MCP_HTTP_SESSION_MAX]; /* Mcp-Session-Id of the answer; "": none */
    char run[CALL_RUN_MAX + 1];            /* X-Notegate-Run of the answer; "": none */
    const char *allow;                     /* with 405: "POST"; static, of the call, or NULL */
    int retry_after_s;                     /* 0: none */
    /* The call this request runs, if it is one: set (with call_ref for the transport, which
     * unrefs it) before dispatch(). When the client leaves, the transport does call_cancel() on
     * it; done() must still be called. */
    struct call *call;
    /* With `call`: it goes on when the client leaves. The transport calls left(left_user)
     * instead of call_cancel(), and may close the connection; the response stays until done().
     */
    void (*left)(void *user);
    void *left_user;
    bool changed; /* the call changed something: send its answer even without room */
    /* For the access log: the message's method, and the tool of tools/call, cut; "": none, or a
     * batch. */
    char method[MCP_HTTP_NAME_SIZE], tool[MCP_HTTP_NAME_SIZE];
};

/* Once, on any thread, possibly before mcp_http_handle() returned. */
typedef void mcp_http_done_fn(struct mcp_http_response *response, void *user);

/* One per gateway; made when the HTTP transport starts (not NG_OK: `error` may have a
 * sentence), freed when it has stopped (no request is under way any more; waits for calls whose
 * client went away and may come back). */
int mcp_http_new(struct gateway *gateway, const struct mcp_methods *methods,
                 struct mcp_http **ret);
/* Before the first request: sessions are reached from all gateways of a shared database. Not
 * NG_OK: `error` has a sentence. */
int mcp_http_share(struct mcp_http *mcp, struct buf *error);
void mcp_http_free(struct mcp_http *mcp);
/* Open sessions. */
size_t mcp_http_sessions(struct mcp_http *mcp);
/* The transport stops: sessions end, their running and waiting calls are cancelled. */
void mcp_http_cancel_all(struct mcp_http *mcp);
/* Tests: time passes. */
void mcp_http_age(struct mcp_http *mcp, int64_t ms);
/* Another mcp.session_timeout, from now on. */
void mcp_http_set_timeout(struct mcp_http *mcp, int64_t timeout_ms);

/*
 * NG_OK: `response` is filled, done() is not called. NG_PENDING: done() is called once. Nothing
 * else is returned: a failure is a response too. Runs on an event loop if request->on_loop.
 */
int mcp_http_handle(struct mcp_http *mcp, const struct mcp_http_request *request,
                    struct mcp_http_response *response, mcp_http_done_fn *done, void *user);

/* The JSON-RPC error (id null) of a request that the HTTP transport refuses at /mcp before
 * mcp_http_handle(): UNAUTHENTICATED, TOO_LARGE, BUSY. hint may be absent. */
int mcp_http_print_refusal(int rc, struct ng_str message, struct ng_str hint, struct buf *out);

#endif
