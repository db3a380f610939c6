/* SPDX-License-Identifier: MIT */
/*
 * http_monitor.h - one thread that looks over all connections a few times a second.
 *
 * libmicrohttpd does not tell that the client of a suspended connection left, and its timeout
 * is one of inactivity only: a client that sends a byte a minute stays for ever. So this thread
 * polls the suspended ones and cancels their calls, and shuts down those over a total time.
 * Nothing of it is on the path of a request that is answered at once.
 */
#ifndef NOTEGATE_API_HTTP_MONITOR_H
#define NOTEGATE_API_HTTP_MONITOR_H

#include <pthread.h>

#include "core/base/lock.h"
#include "notegate/abi.h"

struct http_connection;
struct http_stream;
struct call;

/* How often it looks, while there are connections. */
#define HTTP_MONITOR_MS 200
/* Not at all of them each time, because that takes system calls and there may be thousands: one
 * that only waits for its next request has its turn in one look of so many, and a stream is
 * asked so often whether its client has left. */
#define HTTP_MONITOR_WAITING_TURNS 10
#define HTTP_MONITOR_STREAM_TURNS 5
/* A request line and headers (the first of a connection: since it was made, with the TLS
 * handshake), and then the body, must be in within these. */
#define HTTP_HEAD_MAX_MS 20000
#define HTTP_RECEIVE_MAX_MS 60000
/* When few places are left (an eighth of limits.connections), a connection without an
 * authenticated request is closed after this time, whatever it does. */
#define HTTP_STRANGER_MAX_MS 2000
/* Then, too, connections that wait for their next request for so long are closed, of the agent
 * that has the most, or of strangers if they have more. */
#define HTTP_CROWDED_IDLE_MS 200
/* An answer must be taken within this; a stream may take longer, a client that takes nothing is
 * cut by libmicrohttpd. */
#define HTTP_SEND_MAX_MS 300000

struct http_monitor {
    struct lock lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct http_connection *first;  /* all connections */
    struct http_connection *behind; /* closed ones whose requests still run */
    size_t count;
    struct quota *agents; /* whose connections they are, as far as a key came on them */
    unsigned looks;       /* so far */
    unsigned added;       /* connections so far */
    bool ending;          /* streams end */
    bool stopping;
};

/* The event that a suspended connection waits for. */
struct http_wait {
    struct call *call; /* cancelled when the client leaves; NULL: it cannot be */
    /* Called instead of a cancel: the client left, and its call continues without it. No lock
     * is held, `call` is there. NULL: cancel. */
    void (*left)(void *user);
    void *user;
};

int http_monitor_start(struct http_monitor *monitor);
/* Joins the thread. No connection may be left, nor anything that one left behind. */
void http_monitor_stop(struct http_monitor *monitor);
void http_monitor_add(struct http_monitor *monitor, struct http_connection *connection);
void http_monitor_remove(struct http_monitor *monitor, struct http_connection *connection);
/* The last call for a removed connection: its work has ended. */
void http_monitor_forget(struct http_monitor *monitor, struct http_connection *connection);
/* A key of this agent came on the connection, which counts for it from now on: an agent has at
 * most half of limits.connections. NG_OK, NG_EBUSY, NG_EINTERNAL. On the event loop. */
int http_monitor_agent(struct http_monitor *monitor, struct http_connection *connection,
                       struct ng_str agent);
/* A reference of the call is taken. */
void http_monitor_suspend(struct http_monitor *monitor, struct http_connection *connection,
                          const struct http_wait *wait);
/* It waits no longer. True: its client left, and its call still runs. A call that
 * came back at the last moment is not left behind: the connection may serve its next request.
 */
bool http_monitor_resume(struct http_monitor *monitor, struct http_connection *connection);

/* The connection is answered with this stream, until http_monitor_unstream(). */
void http_monitor_stream(struct http_monitor *monitor, struct http_connection *connection,
                         struct http_stream *stream);
void http_monitor_unstream(struct http_monitor *monitor, struct http_connection *connection);

/* For the end of the server. All streams end, also those that begin later. */
void http_monitor_end_streams(struct http_monitor *monitor);
/* Cancels the calls of all suspended connections, and what others left behind. */
void http_monitor_cancel_all(struct http_monitor *monitor);
/* Connections whose request is being worked on or answered; streams count from when they end.
 */
size_t http_monitor_busy(struct http_monitor *monitor);
/* each() for every connection, under the lock. */
void http_monitor_each(struct http_monitor *monitor,
                       void (*each)(struct http_connection *connection));

#endif
