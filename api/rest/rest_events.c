/* SPDX-License-Identifier: MIT */
/* rest_events.c - GET /v1/events: every change the caller may see, as server-sent events. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/http/http_reply.h"
#include "api/http/http_stream_transport.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/dispatch/dispatch.h"
#include "core/feed/feed.h"
#include "core/keys/keys.h"
#include "core/store/store.h"
#include "rest.h"

#define STATUS_OK 200
/* Names that one filter of a stream may have. */
#define EVENTS_NAMES_MAX 32
/* Bytes of a wrong value that a sentence shows. */
#define EVENTS_SHOWN 80
/* The time a client waits before it connects again; the line also shows that the stream is
 * open. */
#define EVENTS_GREETING ": notegate\nretry: 2000\n\n"
/* For taking apart what a plugin added to an event. */
#define EVENTS_DATA_MEMORY ((size_t)16 * 1024 * 1024)
#define EVENTS_HINT                                                                            \
    "The parameters are since, collection, tool, agent and run; Last-Event-ID beats since; "   \
    "without a position events come from now on"

enum events_filter { FILTER_COLLECTION, FILTER_TOOL, FILTER_AGENT, FILTER_RUN, FILTERS };
static const char *const filter_names[FILTERS] = {"collection", "tool", "agent", "run"};

/* An event has one of these; no names: any. */
struct events_names {
    const struct ng_str *names;
    size_t count;
};

/* The parsed query; texts in `text`. */
struct events_query {
    uint64_t since; /* UINT64_MAX: from now on */
    struct ng_str names[FILTERS][EVENTS_NAMES_MAX];
    size_t counts[FILTERS];
    bool has_since;
    size_t used;
    char text[HTTP_TARGET_MAX + 2];
};

/* One open stream; its end is events_closed(). */
struct events {
    struct gateway *gateway;
    struct call *call; /* the reader: name, key and rights; owns the names below */
    struct http_stream *stream;
    struct feed_reader *reader;
    struct events_names filters[FILTERS];
    bool placed; /* has a place among limits.streams */
    bool greeted;
};

/* ---- the query ---- */

static int refuse(struct http_request *request, const char *what, struct ng_str value,
                  const char *expected)
{
    value = utf8_cut(value, EVENTS_SHOWN);
    (void)http_reply_error(request, NG_EINVAL, EVENTS_HINT, "%s is \"%.*s\", %s", what,
                           (int)value.len, text_or(value.data, ""), expected);
    return NG_EINVAL;
}

static int parse_position(struct http_request *request, const char *what, struct ng_str value,
                          uint64_t *ret)
{
    uint64_t number = 0;
    bool good = value.len > 0;
    for (size_t i = 0; i < value.len && good; i++) {
        unsigned digit = (unsigned)(unsigned char)value.data[i] - '0';
        good = digit <= 9 && number <= (UINT64_MAX - 1 - digit) / 10;
        if (good) {
            number = number * 10 + digit;
        } else {
            number = 0;
        }
    }
    if (!good) {
        return refuse(request, what, value, "it must be the number of an event, 0 or more");
    }
    *ret = number;
    return NG_OK;
}

/* Splits at commas; empty names are refused. */
static int parse_names(struct http_request *request, const char *what, struct ng_str value,
                       struct ng_str *names, size_t *count)
{
    struct ng_str rest = value;
    bool more = false;
    do {
        const char *comma = memchr(rest.data, ',', rest.len);
        more = comma != NULL;
        struct ng_str name = str_make(rest.data, more ? (size_t)(comma - rest.data) : rest.len);
        rest = str_make(name.data + name.len + more, rest.len - name.len - more);
        if (name.len == 0) {
            return refuse(request, what, value, "it must be a name, or several with commas");
        }
        if (*count == EVENTS_NAMES_MAX) {
            return refuse(request, what, value, "there are too many names in all");
        }
        names[(*count)++] = name;
    } while (more);
    return NG_OK;
}

static int parse_one(struct http_request *request, struct events_query *query,
                     struct ng_str name, struct ng_str value)
{
    /* All values together are shorter than the target. */
    struct ng_str text = str_make(query->text + query->used, 0);
    if (http_decode(value, query->text + query->used, &text.len) != NG_OK) {
        return refuse(request, "A parameter's value", value,
                      "it must be UTF-8, percent-encoded");
    }
    query->used += text.len;
    if (str_is(name, "since")) {
        if (query->has_since) {
            return refuse(request, "A second since", text, "send one position");
        }
        query->has_since = true;
        return parse_position(request, "since", text, &query->since);
    }
    for (size_t i = 0; i < FILTERS; i++) {
        if (str_is(name, filter_names[i])) {
            return parse_names(request, filter_names[i], text, query->names[i],
                               &query->counts[i]);
        }
    }
    name = utf8_cut(name, EVENTS_SHOWN);
    (void)http_reply_error(request, NG_EINVAL, EVENTS_HINT, "There is no parameter \"%.*s\"",
                           (int)name.len, name.data);
    return NG_EINVAL;
}

/* A collection or tool that does not exist would never bring an event: that is a slip. */
static int check_names(struct http_request *request, struct events_query *query)
{
    struct gateway *gateway = request->gateway;
    for (size_t i = 0; i < query->counts[FILTER_COLLECTION]; i++) {
        struct ng_str name = query->names[FILTER_COLLECTION][i];
        if (!str_is(name, FILES_EVENTS) && store_collection(gateway->store, name) == NULL) {
            return refuse(request, "collection", name, "which no plugin of this gateway has");
        }
    }
    for (size_t i = 0; i < query->counts[FILTER_TOOL]; i++) {
        struct ng_str *name = &query->names[FILTER_TOOL][i];
        const struct tool *tool = registry_find(gateway->registry, *name);
        if (tool == NULL) {
            return refuse(request, "tool", *name, "which no plugin of this gateway has");
        }
        *name = ng_str_of(tool->desc.name);
    }
    return NG_OK;
}

static int parse_query(struct http_request *request, struct events_query *query)
{
    struct ng_str rest = request->target.query;
    struct ng_str name;
    struct ng_str value;
    query->since = UINT64_MAX;
    memset(query->names, 0, sizeof(query->names));
    memset(query->counts, 0, sizeof(query->counts));
    query->has_since = false;
    query->used = 0;
    int rc = NG_OK;
    while (rc == NG_OK && http_query_next(&rest, &name, &value)) {
        rc = parse_one(request, query, name, value);
    }
    if (rc == NG_OK && request->headers.last_event_id.data != NULL) {
        rc = parse_position(request, "Last-Event-ID", request->headers.last_event_id,
                            &query->since);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return check_names(request, query);
}

/* ---- the stream ---- */

static bool is_named(struct ng_str text, const struct events_names *filter)
{
    for (size_t i = 0; i < filter->count; i++) {
        if (str_equal(filter->names[i], text)) {
            return true;
        }
    }
    return filter->count == 0;
}

static bool events_wants(void *user, const struct ng_event *event)
{
    struct events *events = user;
    const struct ng_str values[FILTERS] = {event->key.collection, event->tool, event->agent,
                                           event->origin.run_id};
    for (size_t i = 0; i < FILTERS; i++) {
        if (!is_named(values[i], &events->filters[i])) {
            return false;
        }
    }
    return dispatch_sees_collection(events->call, event->key.collection);
}

static void events_wake(void *user)
{
    struct events *events = user;
    http_stream_wake(events->stream);
}

static void print_time(struct buf *out, int64_t time_ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, text);
    (void)buf_printf(out, "\"%s\"", text);
}

static void print_member(struct buf *out, const char *name, struct ng_str value)
{
    (void)buf_printf(out, ",\"%s\":", name);
    (void)buf_add_json(out, value);
}

/* Members every event has; what its plugin adds may replace the revision only (a file's is a
 * text). */
static bool is_own_member(struct ng_str name)
{
    return str_in_words(name, "seq time agent space tool action collection id revision run "
                              "request_id added removed");
}

/* A part that is not known has no member. */
static void print_origin(struct buf *out, const struct ng_origin *origin)
{
    if (origin->run_id.len > 0) {
        print_member(out, "run", origin->run_id);
    }
    if (origin->request_id.len > 0) {
        print_member(out, "request_id", origin->request_id);
    }
    if (origin->has_lines) {
        (void)buf_add_c(out, ",\"added\":");
        (void)buf_add_number(out, origin->lines_added);
        (void)buf_add_c(out, ",\"removed\":");
        (void)buf_add_number(out, origin->lines_removed);
    }
}

static void print_members(struct buf *out, const struct ng_event *event,
                          const struct ng_value *data)
{
    const struct ng_value *revision = json_get(data, "revision");
    (void)buf_add_c(out, ",\"revision\":");
    if (revision != NULL) {
        (void)json_print(out, revision);
    } else {
        (void)buf_add_number(out, event->revision);
    }
    const struct ng_value *member = json_first(data);
    for (; member != NULL; member = member->next) {
        if (!is_own_member(member->key)) {
            (void)buf_add_char(out, ',');
            (void)buf_add_json(out, member->key);
            (void)buf_add_char(out, ':');
            (void)json_print(out, member);
        }
    }
}

static void print_event(struct buf *out, const struct ng_event *event)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *data = NULL;
    arena_init(&arena, EVENTS_DATA_MEMORY);
    if (event->data.len > 0 &&
        (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, &error) != NG_OK ||
         data->type != NG_TYPE_OBJECT)) {
        data = NULL;
    }
    if (arena.oom) {
        out->rc = NG_EINTERNAL; /* half an event would be kept for all readers */
    }
    (void)buf_add_c(out, "id: ");
    (void)buf_add_number(out, event->seq);
    (void)buf_add_c(out, "\nevent: change\ndata: {\"seq\":");
    (void)buf_add_number(out, event->seq);
    (void)buf_add_c(out, ",\"time\":");
    print_time(out, event->time_ms);
    print_member(out, "agent", event->agent);
    print_member(out, "space", event->key.space);
    print_member(out, "tool", event->tool);
    print_member(out, "action", event->action);
    print_member(out, "collection", event->key.collection);
    print_member(out, "id", event->key.id);
    print_members(out, event, data);
    print_origin(out, &event->origin);
    (void)buf_add_c(out, "}\n\n");
    arena_done(&arena);
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
            feed_print(events->reader, print_event, out);
        }
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

static const struct ng_str *copy_names(struct call *call, const struct ng_str *names,
                                       size_t count)
{
    struct ng_str *copies = arena_alloc(&call->arena, (count + 1) * sizeof(*copies));
    for (size_t i = 0; i < count && copies != NULL; i++) {
        copies[i] = arena_copy(&call->arena, names[i]);
        if (copies[i].data == NULL) {
            copies = NULL;
        }
    }
    return copies;
}

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
    bool good = true;
    for (size_t i = 0; i < FILTERS && good; i++) {
        events->filters[i].names = copy_names(call, query->names[i], query->counts[i]);
        events->filters[i].count = query->counts[i];
        good = events->filters[i].names != NULL;
    }
    if (good) {
        events->stream = http_stream_new(&events_source, events, call->key);
    }
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

int rest_events(struct http_request *request)
{
    struct events_query query;
    if (parse_query(request, &query) != NG_OK) {
        return NG_OK;
    }
    struct call *call = http_request_call(request);
    if (call == NULL) {
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
        (void)http_reply_call_error(request, call);
        call_unref(call);
        return NG_OK;
    }
    struct events *events = events_new(request, call, &query);
    if (events == NULL) {
        (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
        return NG_OK;
    }
    http_stream_ref(events->stream); /* the reply's */
    struct http_stream *stream = events->stream;
    if (events_place(request, events) != NG_OK ||
        events_open(request, events, &query) != NG_OK) {
        http_stream_drop(stream);
        return NG_OK;
    }
    request->reply.status = STATUS_OK;
    request->reply.stream = stream;
    return NG_OK;
}
