/* SPDX-License-Identifier: MIT */
/* rest_events.c - GET /v1/events: every change the caller may see, as server-sent events. */
#include <stdlib.h>

#include "api/http/http_reply.h"
#include "api/http/http_stream_transport.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"
#include "core/feed/feed.h"
#include "core/keys/keys.h"
#include "core/store/store.h"
#include "rest.h"
#include "rest_events.h"

#define STATUS_OK 200
/* The time a client waits before it connects again; the line also shows that the stream is
 * open. */
#define EVENTS_GREETING ": notegate\nretry: 2000\n\n"
/* One open stream; its end is events_closed(). */
struct events {
    struct gateway *gateway;
    struct call *call;                /* the reader: name, key and rights */
    const struct events_query *query; /* in memory of the call */
    struct http_stream *stream;
    struct feed_reader *reader;
    bool placed; /* has a place among limits.streams */
    bool greeted;
};

/* ---- the stream ---- */

static bool events_wants(void *user, const struct ng_event *event)
{
    struct events *events = user;
    return events_query_wants(events->query, event) &&
           dispatch_sees_collection(events->call, event->key.collection);
}

static void events_wake(void *user)
{
    struct events *events = user;
    http_stream_wake(events->stream);
}

static void print_change(struct buf *out, const struct ng_event *event)
{
    (void)buf_add_c(out, "id: ");
    (void)buf_add_number(out, event->seq);
    (void)buf_add_c(out, "\nevent: change\ndata: ");
    events_print(out, event);
    (void)buf_add_c(out, "\n\n");
}

/* Without an id: the client resumes at its last event. */
static int print_closed(struct buf *out, const char *reason, const char *message)
{
    (void)buf_printf(out, "event: closed\ndata: {\"reason\":\"%s\",\"message\":\"%s\"}\n\n",
                     reason, message);
    return HTTP_STREAM_END;
}

static int print_failure(struct buf *out, int rc)
{
    if (rc == NG_ETOOLARGE) {
        return print_closed(out, "backlog",
                            "The reader fell more than limits.stream_backlog events behind; "
                            "open the stream again with Last-Event-ID");
    }
    return print_closed(out, "unavailable",
                        "The changes cannot be read just now; open the stream again "
                        "with Last-Event-ID");
}

static int events_fill(void *user, struct buf *out)
{
    struct events *events = user;
    const struct key *key = events->call->key;
    if (!key_live(key)) {
        return key_is_paused(key) && !key_is_revoked(key)
                   ? print_closed(out, "key_paused", "The key is paused")
                   : print_closed(out, "key_revoked", "The key was revoked or has expired");
    }
    if (key_rights_changed(key)) {
        return print_closed(out, "key_changed",
                            "The rights of the key changed; open the stream again with "
                            "Last-Event-ID");
    }
    if (!events->greeted) {
        events->greeted = true;
        (void)buf_add_c(out, EVENTS_GREETING);
    }
    int rc = NG_OK;
    while (rc == NG_OK && out->len < HTTP_STREAM_CHUNK) {
        const struct ng_event *event = NULL;
        rc = feed_next(events->reader, &event);
        if (rc == NG_OK) {
            feed_print(events->reader, print_change, out);
        }
    }
    if (rc == NG_ENOTFOUND) {
        return print_closed(out, "end",
                            "These are all events up to the point that was asked for");
    }
    if (rc != NG_OK && rc != NG_PENDING) {
        return print_failure(out, rc);
    }
    if (atomic_load(&events->gateway->stopping)) {
        return print_closed(out, "stopping",
                            "The gateway stops; open the stream again with Last-Event-ID");
    }
    return HTTP_STREAM_OPEN;
}

static void events_closed(void *user)
{
    struct events *events = user;
    feed_close(events->reader);
    if (events->placed) {
        http_stream_give(events->gateway, events->call->caller.agent);
    }
    http_stream_unref(events->stream);
    call_unref(events->call);
    free(events);
}

static const struct http_stream_source events_source = {
    .fill = events_fill,
    .closed = events_closed,
    .keeps_rights = true,
};

/* ---- opening ---- */

/* NULL: out of memory. Takes over the call. */
static struct events *events_new(struct http_request *request, struct call *call,
                                 const struct events_query *query)
{
    struct events *events = alloc_zeroed(1, sizeof(*events));
    if (events == NULL) {
        call_unref(call);
        return NULL;
    }
    events->gateway = request->gateway;
    events->call = call;
    events->query = query;
    events->stream = http_stream_new(&events_source, events, call->key);
    if (events->stream == NULL) {
        events_closed(events);
        return NULL;
    }
    return events;
}

static int events_place(struct http_request *request, struct events *events)
{
    int rc = http_stream_take(events->gateway, events->call->caller.agent);
    events->placed = rc == NG_OK;
    if (rc == NG_EBUSY) {
        (void)http_reply_error(request, rc, "Close streams that are not needed",
                               "All of the %u event streams are open, or this agent has its "
                               "half of them (limits.streams)",
                               events->gateway->limits.streams);
    } else if (rc != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    return rc;
}

static int events_open(struct http_request *request, struct events *events,
                       const struct events_query *query)
{
    struct feed *feed = events->gateway->feed;
    const struct ng_caller *caller = &events->call->caller;
    struct feed_filter filter = {
        .all_spaces = caller->all_spaces,
        .spaces = caller->spaces,
        .space_count = caller->space_count,
        .ends = query->has_to,
        .until = query->until,
        .wants = events_wants,
        .user = events,
    };
    int rc = feed_open(feed, &filter, query->since, caller->agent, events_wake, events,
                       &events->reader);
    if (rc == NG_EINVAL) {
        (void)http_reply_error(
            request, NG_EINVAL, EVENTS_HINT, "%s is %llu, but the last event is %llu",
            request->headers.last_event_id.data != NULL ? "Last-Event-ID" : "since",
            (unsigned long long)query->since,
            (unsigned long long)store_last_seq(events->gateway->store));
    } else if (rc != NG_OK) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    }
    return rc;
}

/* Answers with a stream. Takes over the call. */
static void stream_open(struct http_request *request, struct call *call,
                        const struct events_query *query)
{
    struct events *events = events_new(request, call, query);
    if (events == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return;
    }
    http_stream_ref(events->stream); /* the reply's */
    struct http_stream *stream = events->stream;
    if (events_place(request, events) != NG_OK ||
        events_open(request, events, query) != NG_OK) {
        http_stream_drop(stream);
        return;
    }
    request->reply.status = STATUS_OK;
    request->reply.stream = stream;
}

/* On a worker: what has to be read before the answer begins. */
static int events_step(struct ng_call *pub, void *user)
{
    struct call *call = call_of(pub);
    struct events_query *query = user;
    int rc = events_query_find(call, query);
    if (rc == NG_OK && query->pages) {
        rc = events_page(call, query);
    }
    return rc;
}

static void events_refuse(struct http_request *request, struct call *call)
{
    (void)http_reply_call_error(request, call);
    call_unref(call);
}

int rest_events(struct http_request *request)
{
    struct call *call = http_request_call(request);
    if (call == NULL) {
        return NG_OK;
    }
    struct events_query *query = arena_zalloc(&call->arena, sizeof(*query));
    if (query == NULL) {
        call_unref(call);
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    if (events_query_parse(request, call, query) != NG_OK) {
        call_unref(call);
        return NG_OK;
    }
    if (query->pages || query->has_from || query->has_to) {
        request->call = call;
        call->on_user = query;
        if (dispatch_step(call, events_step, query) == NG_PENDING) {
            return NG_PENDING;
        }
        rest_events_finish(request);
        return NG_OK;
    }
    if (atomic_load(&request->gateway->stopping)) {
        call_unref(call);
        (void)http_reply_error(request, NG_EBUSY, NULL, "The gateway is stopping");
        return NG_OK;
    }
    if (dispatch_spaces(call, NULL) != NG_OK) {
        call_complete_result(call);
        call->final = call->staged;
        events_refuse(request, call);
        return NG_OK;
    }
    stream_open(request, call, query);
    return NG_OK;
}

void rest_events_finish(struct http_request *request)
{
    struct call *call = request->call;
    const struct events_query *query = call->on_user;
    request->call = NULL;
    if (call->final.rc != NG_OK) {
        events_refuse(request, call);
    } else if (query->pages) {
        request->reply.status = STATUS_OK;
        (void)buf_add_str(&request->reply.body, call->final.text);
        call_unref(call);
    } else {
        stream_open(request, call, query);
    }
}
