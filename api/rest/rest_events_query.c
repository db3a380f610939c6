/* SPDX-License-Identifier: MIT */
/* rest_events_query.c - the query of GET /v1/events: position, end, filters, size of a page. */
#include <stdio.h>
#include <string.h>

#include "api/http/http_reply.h"
#include "api/transport/mcp_http_post.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/module/registry.h"
#include "core/store/store.h"
#include "rest_events.h"

/* Bytes of a wrong value that a sentence shows. */
#define EVENTS_SHOWN 80

static const char *const filter_names[FILTERS] = {"collection", "tool", "agent", "run"};

static int refuse(struct http_request *request, const char *what, struct ng_str value,
                  const char *expected)
{
    value = utf8_cut(value, EVENTS_SHOWN);
    (void)http_reply_error(request, NG_EINVAL, EVENTS_HINT, "%s is \"%.*s\", %s", what,
                           (int)value.len, text_or(value.data, ""), expected);
    return NG_EINVAL;
}

/* false: there is a second one, which is refused. */
static bool take_once(struct http_request *request, const char *what, struct ng_str value,
                      bool *has)
{
    if (*has) {
        char second[32];
        (void)snprintf(second, sizeof(second), "A second %s", what);
        (void)refuse(request, second, value, "send one position");
        return false;
    }
    *has = true;
    return true;
}

static int no_memory(struct http_request *request)
{
    (void)http_reply_error(request, NG_EINTERNAL, NULL, "Out of memory");
    return NG_EINTERNAL;
}

static bool read_number(struct ng_str text, uint64_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - 1 - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret = number;
    return text.len > 0;
}

static int parse_position(struct http_request *request, const char *what, struct ng_str value,
                          uint64_t *ret)
{
    if (!read_number(value, ret)) {
        return refuse(request, what, value, "it must be the number of an event, 0 or more");
    }
    return NG_OK;
}

static int parse_point(struct http_request *request, const char *what, struct ng_str value,
                       struct point *ret)
{
    int64_t now_ms = store_change_ms(request->gateway->store);
    if (!point_parse(value, now_ms, ret) || ret->kind == POINT_REVISION) {
        return refuse(request, what, value, "it must be " POINT_FORMS);
    }
    return NG_OK;
}

static int parse_limit(struct http_request *request, struct ng_str value, uint32_t *ret)
{
    uint64_t number = 0;
    if (!read_number(value, &number) || number == 0 || number > EVENTS_PAGE_MAX) {
        return refuse(request, "limit", value, "it must be a number from 1 to 1000");
    }
    *ret = (uint32_t)number;
    return NG_OK;
}

/* Splits at commas; empty names are refused. */
static int parse_names(struct http_request *request, const char *what, struct ng_str value,
                       struct events_names *filter)
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
        if (filter->count == EVENTS_NAMES_MAX) {
            return refuse(request, what, value, "there are too many names in all");
        }
        filter->names[filter->count++] = name;
    } while (more);
    return NG_OK;
}

static int parse_filter(struct http_request *request, struct call *call, size_t which,
                        struct ng_str value, struct events_names *filter)
{
    if (filter->names == NULL) {
        filter->names = arena_alloc(&call->arena, EVENTS_NAMES_MAX * sizeof(*filter->names));
    }
    if (filter->names == NULL) {
        return no_memory(request);
    }
    return parse_names(request, filter_names[which], value, filter);
}

static int parse_one(struct http_request *request, struct call *call,
                     struct events_query *query, struct ng_str name, struct ng_str value)
{
    struct ng_str text = str_make(arena_alloc(&call->arena, value.len + 1), 0);
    if (text.data == NULL) {
        return no_memory(request);
    }
    if (http_decode(value, (char *)(uintptr_t)text.data, &text.len) != NG_OK) {
        return refuse(request, "A parameter's value", value,
                      "it must be UTF-8, percent-encoded");
    }
    if (str_is(name, "since")) {
        return take_once(request, "since", text, &query->has_since)
                   ? parse_position(request, "since", text, &query->since)
                   : NG_EINVAL;
    }
    if (str_is(name, "from")) {
        return take_once(request, "from", text, &query->has_from)
                   ? parse_point(request, "from", text, &query->from)
                   : NG_EINVAL;
    }
    if (str_is(name, "to")) {
        return take_once(request, "to", text, &query->has_to)
                   ? parse_point(request, "to", text, &query->to)
                   : NG_EINVAL;
    }
    if (str_is(name, "limit")) {
        return parse_limit(request, text, &query->limit);
    }
    for (size_t i = 0; i < FILTERS; i++) {
        if (str_is(name, filter_names[i])) {
            return parse_filter(request, call, i, text, &query->filters[i]);
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
    for (size_t i = 0; i < query->filters[FILTER_COLLECTION].count; i++) {
        struct ng_str name = query->filters[FILTER_COLLECTION].names[i];
        if (!str_is(name, FILES_EVENTS) && store_collection(gateway->store, name) == NULL) {
            return refuse(request, "collection", name, "which no plugin of this gateway has");
        }
    }
    for (size_t i = 0; i < query->filters[FILTER_TOOL].count; i++) {
        struct ng_str *name = &query->filters[FILTER_TOOL].names[i];
        const struct tool *tool = registry_find(gateway->registry, *name);
        if (tool == NULL) {
            return refuse(request, "tool", *name, "which no plugin of this gateway has");
        }
        *name = ng_str_of(tool->desc.name);
    }
    return NG_OK;
}

/* Parameters that exclude each other. */
static int check_together(struct http_request *request, const struct events_query *query)
{
    bool resumes = request->headers.last_event_id.data != NULL;
    if (query->has_from && (query->has_since || resumes)) {
        (void)http_reply_error(request, NG_EINVAL, EVENTS_HINT,
                               "from and %s are two positions: send one of them",
                               resumes ? "Last-Event-ID" : "since");
        return NG_EINVAL;
    }
    if (query->limit > 0 && !query->pages) {
        (void)http_reply_error(request, NG_EINVAL, EVENTS_HINT,
                               "limit is for pages: send Accept: application/json with it");
        return NG_EINVAL;
    }
    return NG_OK;
}

int events_query_parse(struct http_request *request, struct call *call,
                       struct events_query *query)
{
    struct ng_str rest = request->target.query;
    struct ng_str name;
    struct ng_str value;
    struct ng_str accept = request->headers.accept;
    query->pages = accept.data != NULL && mcp_http_accepts(accept) == MCP_HTTP_JSON;
    query->since = query->pages ? 0 : UINT64_MAX;
    query->until = UINT64_MAX;
    int rc = NG_OK;
    while (rc == NG_OK && http_query_next(&rest, &name, &value)) {
        rc = parse_one(request, call, query, name, value);
    }
    if (rc == NG_OK && request->headers.last_event_id.data != NULL) {
        rc = parse_position(request, "Last-Event-ID", request->headers.last_event_id,
                            &query->since);
    }
    if (rc == NG_OK) {
        rc = check_names(request, query);
    }
    if (rc == NG_OK) {
        rc = check_together(request, query);
    }
    return rc;
}

/* Of a shared store another gateway may be ahead of this one. */
static int check_reached(struct call *call, const char *what, uint64_t number)
{
    uint64_t last = store_last_seq(call->gateway->store);
    if (number <= last || store_is_shared(call->gateway->store)) {
        return NG_OK;
    }
    return call_fail(call, NG_EINVAL, "%s is %llu, but the last event is %llu", what,
                     (unsigned long long)number, (unsigned long long)last);
}

int events_query_find(struct call *call, struct events_query *query)
{
    struct store *store = call->gateway->store;
    int rc = NG_OK;
    if (query->has_from) {
        rc = point_seq(store, call, &query->from, &query->since);
    }
    if (rc == NG_OK && query->has_to) {
        rc = point_seq(store, call, &query->to, &query->until);
    }
    if (rc == NG_OK && query->since != UINT64_MAX) {
        rc = check_reached(call, query->has_from ? "from" : "since", query->since);
    }
    if (rc == NG_OK && query->has_to) {
        rc = check_reached(call, "to", query->until);
    }
    return rc;
}

static bool is_named(struct ng_str text, const struct events_names *filter)
{
    for (size_t i = 0; i < filter->count; i++) {
        if (str_equal(filter->names[i], text)) {
            return true;
        }
    }
    return filter->count == 0;
}

bool events_query_wants(const struct events_query *query, const struct ng_event *event)
{
    const struct ng_str values[FILTERS] = {event->key.collection, event->tool, event->agent,
                                           event->origin.run_id};
    bool wanted = true;
    for (size_t i = 0; i < FILTERS && wanted; i++) {
        wanted = is_named(values[i], &query->filters[i]);
    }
    return wanted;
}
