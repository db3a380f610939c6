/* SPDX-License-Identifier: MIT */
/*
 * http_request.h - one connection and the request it carries just now.
 *
 * Memory is the connection's and is used again by its next request. Threads: everything belongs
 * to the daemon's event loop, except `stage` (see http_request_done), `phase` and `since_ms`,
 * and members marked as under the monitor's lock.
 */
#ifndef NOTEGATE_API_HTTP_REQUEST_H
#define NOTEGATE_API_HTTP_REQUEST_H

#include <netinet/in.h>
#include <time.h>

#include "api/auth/auth.h"
#include "api/auth/auth_peer.h"
#include "api/listen/http_check.h"
#include "core/base/str.h"
#include "core/json/json.h"
#include "http_access.h"
#include "http_body.h"
#include "http_monitor.h"

struct MHD_Connection;
struct http_server;
struct http_request;
struct route;

/* A body over limits.body is read and dropped up to this size, so that its sender can read the
 * answer; a longer one is aborted. */
#define HTTP_DISCARD_BYTES ((uint64_t)64 * 1024 * 1024)
/* Seconds in Retry-After where no better value is known. */
#define HTTP_RETRY_AFTER_S 1

/* Static memory in, except `body`. */
struct http_reply {
    int status;               /* 0: none yet */
    const char *content_type; /* NULL: application/json */
    struct buf body;
    struct ng_str fixed; /* instead of `body`: static text */
    const char *allow;
    const char *location; /* of a redirect */
    const char *csp;
    const char *cache; /* Cache-Control; NULL: no-store */
    char etag[24];     /* with quotes; "": none */
    int retry_after_s;
    bool changed;               /* it tells of a change: not to be replaced by "try again" */
    bool close;                 /* after this answer the connection ends */
    bool authenticate;          /* WWW-Authenticate */
    const char *cors_allow;     /* Access-Control-Allow-Methods of a preflight */
    const char *session_id;     /* of MCP, or NULL */
    const char *run;            /* of MCP's calls, "" or NULL; others' is the caller's */
    struct http_stream *stream; /* instead of `body` (a reference); events, or content_type */
};

enum http_stage {
    HTTP_RUNNING = 0, /* on the event loop */
    HTTP_SUSPENDED,   /* the connection waits for http_request_done() */
    HTTP_DONE,        /* http_request_done() came */
    HTTP_ABANDONED /* the client left, or the server stops, and the call continues without it */
};

/* The phase of a connection, for the monitor. */
enum http_phase {
    HTTP_PHASE_WAITING = 0, /* between requests */
    HTTP_PHASE_HEAD,        /* the request line is in */
    HTTP_PHASE_BODY,        /* the headers are in */
    HTTP_PHASE_WORKING,     /* suspended: the call runs */
    HTTP_PHASE_SENDING,
    HTTP_PHASE_STREAMING /* an answer without end; mostly suspended */
};

/* PRESENT to LEFT or BEHIND when the monitor sees that the client left; BEHIND to LEFT when its
 * call has ended; any to PRESENT at the next suspended request. */
enum http_client {
    HTTP_CLIENT_PRESENT = 0,
    HTTP_CLIENT_LEFT,
    HTTP_CLIENT_BEHIND /* left, and its call still runs */
};

/* The known facts about the peer; they only grow. */
enum http_identity {
    HTTP_IDENTITY_NONE = 0,
    HTTP_IDENTITY_USER,   /* its user */
    HTTP_IDENTITY_PROGRAM /* also whether the gateway started it */
};

/*
 * The state of a request; http_request_enter() asserts these transitions:
 *   LINE to READ                 its headers were checked
 *   READ to ANSWERED             its answer is queued
 *   READ to LEFT                 it is not waited for: the client left, or the server stops
 *   LEFT to LEFT_ANSWERED        its client gets an error all the same
 *   any to LINE                  the next request line, or the connection's last reference
 */
enum http_state {
    HTTP_STATE_LINE = 0,
    HTTP_STATE_READ,
    HTTP_STATE_ANSWERED,
    HTTP_STATE_LEFT, /* call, body and service_state are still in use */
    HTTP_STATE_LEFT_ANSWERED
};

struct http_request {
    struct http_server *server;
    struct gateway *gateway;
    struct http_connection *connection;
    unsigned method; /* enum http_method */
    struct http_target target;
    struct http_headers headers;
    struct http_fault fault;   /* found while reading; answered when the body is in */
    const char *fault_hint;    /* static, or `hint`, or NULL */
    char hint[80];             /* memory of a fault_hint that is made for this request */
    const struct route *route; /* NULL: none fits */
    struct ng_str param;       /* the text in the place of {name} in the route */
    struct auth_caller caller;
    bool authenticated;
    bool bad_token;      /* refused for the key that was sent */
    bool origin_allowed; /* there is an Origin header, and it was found good */
    enum http_state state;
    struct http_body *body; /* NULL: none */
    uint64_t received;
    uint64_t sent; /* bytes of the answer's body; of a stream, when it has ended */
    char request_id[HTTP_REQUEST_ID_MAX + 1];
    struct http_reply reply;
    size_t reply_counted; /* bytes of the answer in limits.buffered */
    struct call *call;    /* the call under way, a reference; NULL: none */
    void *service_state;  /* of a route with ROUTE_SERVICE, until the request ends; or NULL */
    struct http_access access;
    struct buf built; /* a large answer, made by the thread that finished the call */
    atomic_int stage; /* enum http_stage */
};

struct http_connection {
    struct http_connection *prev, *next; /* the monitor's list, under its lock */
    unsigned turn;                       /* of the monitor: time of its next check */
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd;
    atomic_int refs;            /* libmicrohttpd's, and one per answer that is still to come */
    atomic_int phase;           /* enum http_phase */
    atomic_bool asked;          /* a request line came */
    atomic_bool trusted;        /* one of its requests was admitted */
    atomic_llong since_ms;      /* when that began; CLOCK_MONOTONIC */
    struct http_stream *stream; /* under the monitor's lock: the stream, a reference */
    struct http_wait waits;     /* under the monitor's lock: with a reference of the call */
    long long head_since_ms; /* the monitor's: bytes of a request line came, it is not whole */
    bool half_closed;        /* the monitor's */
    enum http_client client; /* under the monitor's lock */
    /* The agent of the last key that came on it, for which it counts; written under the
     * monitor's lock. "": none. */
    char agent[HTTP_AGENT_MAX];
    size_t agent_len;
    struct auth_connection auth;
    enum http_identity identity;
    uint64_t since_ticks;     /* when it was accepted */
    struct auth_peer at_peer; /* on loopback: the socket at the other end */
    struct sockaddr_storage peer, local;
    /* Without port; "" for the Unix socket. */
    char peer_text[INET6_ADDRSTRLEN], local_text[INET6_ADDRSTRLEN];
    /* The Host header that was allowed last, and the names by which; NULL: none yet. */
    const struct http_names *host_names;
    char host[HTTP_HOST_MAX];
    size_t host_len;
    struct http_request request;
};

struct http_connection *http_connection_new(struct http_server *server,
                                            struct MHD_Connection *mhd, int fd, bool is_socket);
/* For http_connection_unref(): the last reference has gone. */
void http_connection_free(struct http_connection *connection);

static inline void http_connection_unref(struct http_connection *connection)
{
    if (atomic_fetch_sub(&connection->refs, 1) == 1) {
        http_connection_free(connection);
    }
}

/* Determines the peer, once. */
void http_connection_identify(struct http_connection *connection);

/* "127.0.0.1", "::1", or "unix" for the owner's socket; or absent. */
static inline struct ng_str http_connection_remote(const struct http_connection *connection)
{
    if (connection->auth.way == AUTH_SOCKET) {
        return ng_str_of("unix");
    }
    return str_or(ng_str_of(connection->peer_text), str_make(NULL, 0));
}

void http_request_enter(struct http_request *request, enum http_state state);
static inline bool http_request_is_left(const struct http_request *request)
{
    return request->state >= HTTP_STATE_LEFT;
}
static inline bool http_request_is_answered(const struct http_request *request)
{
    return request->state == HTTP_STATE_ANSWERED || request->state == HTTP_STATE_LEFT_ANSWERED;
}

/* 0: its client had left. */
static inline int http_request_status(const struct http_request *request)
{
    return http_request_is_answered(request) ? request->reply.status : 0;
}

/* The body, which is JSON on all routes: without a byte order mark. */
static inline struct ng_str http_request_text(const struct http_request *request)
{
    if (request->body == NULL) {
        return ng_str_of("");
    }
    return json_skip_mark(str_make(request->body->data, request->body->len));
}

/* Called with the request line; forgets the request before. */
void http_request_begin(struct http_request *request, const char *target);
/* Headers are in: checks them, the route, Host, Origin and the caller. Faults are kept. */
void http_request_headers(struct http_request *request, const char *method);
/* A part of the body. False: stop reading, answer now and close. */
bool http_request_body(struct http_request *request, const char *data, size_t len);
/* Everything is in. NG_OK: request->reply is filled. NG_PENDING: http_request_done() will be
 * called. */
int http_request_run(struct http_request *request);
/* After NG_PENDING, on the event loop: fills request->reply. */
void http_request_finish(struct http_request *request);
/* Frees what one request held. */
void http_request_end(struct http_request *request);

/* The end of the pending work; any thread, exactly once, possibly before http_request_run()
 * returned. */
void http_request_done(struct http_request *request);
/* The connection waits no longer: it is answered and closed, its memory stays until
 * http_request_done(). Any thread. False: it is not suspended, or done. */
bool http_request_abandon(struct http_request *request);
/* call->done of calls that a route dispatches; user: the request. */
void http_request_call_done(struct call *call, void *user);

/* A call made for this request, with its caller. NULL: the failure is in the reply. */
struct call *http_request_call(struct http_request *request);

/* Milliseconds of CLOCK_MONOTONIC, good to a few. */
static inline long long http_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void http_connection_phase(struct http_connection *connection,
                                         enum http_phase phase)
{
    atomic_store_explicit(&connection->since_ms, http_now_ms(), memory_order_relaxed);
    atomic_store_explicit(&connection->phase, phase, memory_order_release);
}

#endif
