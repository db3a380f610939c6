/* SPDX-License-Identifier: MIT */
/* rest_events.h - the parts of GET /v1/events: its query, its text, its pages. Included by
 * rest_events*.c only. */
#ifndef NOTEGATE_API_REST_EVENTS_H
#define NOTEGATE_API_REST_EVENTS_H

#include "api/http/http_request.h"
#include "core/history/point.h"

/* Names that one filter of a stream may have. */
#define EVENTS_NAMES_MAX 32
/* Events of a page: without `limit`, and at most. */
#define EVENTS_PAGE 100
#define EVENTS_PAGE_MAX 1000
#define EVENTS_HINT                                                                            \
    "The parameters are since or from, to, collection, tool, agent and run, and limit with "   \
    "Accept: application/json; Last-Event-ID beats since; without a position a stream has "    \
    "the events from now on"

enum events_filter { FILTER_COLLECTION, FILTER_TOOL, FILTER_AGENT, FILTER_RUN, FILTERS };

/* An event has one of these; none: any. */
struct events_names {
    struct ng_str *names; /* EVENTS_NAMES_MAX of them, or NULL */
    size_t count;
};

/* The parsed query; in memory of a call. */
struct events_query {
    uint64_t since; /* UINT64_MAX: from now on */
    uint64_t until; /* UINT64_MAX: without an end */
    struct point from, to;
    struct events_names filters[FILTERS];
    uint32_t limit; /* 0: not given */
    bool pages;     /* the client accepts JSON and no stream */
    bool has_since, has_from, has_to;
};

/* rest_events_query.c */
/* Not NG_OK: the request is answered. query: empty. */
int events_query_parse(struct http_request *request, struct call *call,
                       struct events_query *query);
/* Reads the store to find the numbers of `from` and `to`; may block. NG_OK, or the store's
 * error, which the call has. */
int events_query_find(struct call *call, struct events_query *query);
bool events_query_wants(const struct events_query *query, const struct ng_event *event);

/* rest_events_print.c */
/* The JSON object of an event. out->rc: out of memory. */
void events_print(struct buf *out, const struct ng_event *event);

/* rest_events_page.c */
/* Replies with the page; on a worker. */
int events_page(struct call *call, const struct events_query *query);

#endif
