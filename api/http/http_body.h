/* SPDX-License-Identifier: MIT */
/* http_body.h - a request's body: its memory and its place in limits.buffered. On the event
 * loop, but for the last reference of a call. */
#ifndef NOTEGATE_API_HTTP_BODY_H
#define NOTEGATE_API_HTTP_BODY_H

#include <stdatomic.h>

#include "core/json/json.h"

struct call;
struct gateway;
struct http_request;

/* Longest name of an agent. */
#define HTTP_AGENT_MAX 64

/* A body up to this size keeps its memory for the connection's next request; answers too. */
#define HTTP_KEEP_BYTES ((size_t)8 * 1024)
/* Bodies and answers up to this size are not counted in limits.buffered: limits.connections
 * bounds them. */
#define HTTP_UNCOUNTED_BYTES ((size_t)4 * 1024)

/* A body so short is not weighed: as a tree it is not large either. */
#define HTTP_UNWEIGHED_BYTES 256

/* A body's memory: shared by the connection and the calls that still read it. */
struct http_body {
    atomic_int refs;
    size_t cap;
    size_t len;
    size_t counted; /* bytes of it in limits.buffered */
    size_t agent_len;
    char agent[HTTP_AGENT_MAX]; /* whose bytes they are */
    struct gateway *gateway;
    struct json_counter values; /* of its content: a tree takes more memory */
    char data[];
};

/* A piece, which request->received has already. NG_EBUSY: limits.buffered; NG_EINTERNAL. */
int http_body_add(struct http_request *request, const char *data, size_t len);
/* Of a body over HTTP_UNWEIGHED_BYTES. As a tree it takes far more memory than as a text: `1,`
 * becomes a value. That counts as well, before it is parsed. */
int http_body_weigh(struct http_request *request);
void http_body_drop(struct http_request *request);

/* The body lives as long as the call does. */
int http_request_keep_body(struct http_request *request, struct call *call);

#endif
