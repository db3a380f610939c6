/* SPDX-License-Identifier: MIT */
/* http_body.c - the body's memory, and its share of limits.buffered. */
#include "http_body.h"

#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/buffered.h"
#include "http_request.h"

/* First memory of a body. */
#define BODY_FIRST 1024

static void body_unref(void *object)
{
    struct http_body *body = object;
    if (body == NULL || atomic_fetch_sub(&body->refs, 1) != 1) {
        return;
    }
    if (body->counted > 0) {
        buffered_give(body->gateway, str_make(body->agent, body->agent_len), body->counted);
    }
    free(body);
}

/* Counts what a body of `cap` bytes takes of limits.buffered, of which one agent has half. */
static int body_count(struct http_request *request, struct http_body *body, size_t cap)
{
    size_t more = 0;
    if (cap > HTTP_UNCOUNTED_BYTES) {
        more = cap - body->counted;
    }
    if (more == 0) {
        return NG_OK;
    }
    if (body->counted == 0) {
        struct ng_str agent;
        if (request->authenticated) {
            agent = request->caller.agent;
        } else {
            agent = str_make(NULL, 0);
        }
        body->agent_len = size_min(agent.len, sizeof(body->agent));
        if (body->agent_len > 0) {
            memcpy(body->agent, agent.data, body->agent_len);
        }
    }
    int rc = buffered_take(request->gateway, str_make(body->agent, body->agent_len),
                           body->counted, more);
    if (rc == NG_OK) {
        body->counted += more;
    }
    return rc;
}

static int body_room(struct http_request *request, size_t need)
{
    struct http_body *old = request->body;
    if (old != NULL && old->cap >= need) {
        return NG_OK;
    }
    size_t cap = BODY_FIRST;
    if (old != NULL) {
        cap = old->cap;
    }
    while (cap < need) {
        cap *= 2; /* need is at most limits.body, far from overflow */
    }
    struct http_body *body = alloc_resize(old, sizeof(*body) + cap);
    if (body == NULL) {
        return NG_EINTERNAL;
    }
    if (old == NULL) {
        atomic_init(&body->refs, 1);
        body->len = 0;
        body->counted = 0;
        memset(&body->values, 0, sizeof(body->values));
        body->gateway = request->gateway;
    }
    body->cap = cap;
    request->body = body;
    return body_count(request, body, cap);
}

int http_body_weigh(struct http_request *request)
{
    struct http_body *body = request->body;
    size_t values = json_counted_values(&body->values);
    return body_count(request, body, body->cap + values * sizeof(struct ng_value));
}

int http_body_add(struct http_request *request, const char *data, size_t len)
{
    int rc = body_room(request, (size_t)request->received);
    if (rc == NG_OK) {
        struct http_body *body = request->body;
        memcpy(body->data + body->len, data, len);
        body->len += len;
        if (request->headers.chunked || request->headers.body_length > HTTP_UNWEIGHED_BYTES) {
            json_count_piece(&body->values, str_make(data, len));
        }
    }
    return rc;
}

void http_body_drop(struct http_request *request)
{
    body_unref(request->body);
    request->body = NULL;
}

int http_request_keep_body(struct http_request *request, struct call *call)
{
    if (request->body == NULL) {
        return NG_OK;
    }
    atomic_fetch_add(&request->body->refs, 1);
    return call_pin(call, body_unref, request->body); /* which releases it if it fails */
}
