/* SPDX-License-Identifier: MIT */
/*
 * http_check.h - the checks of a request before any of it is used.
 *
 * Pure functions: the request target and the headers. libmicrohttpd lets through what two
 * programs in a row may read in two ways (request smuggling); all of that is refused here,
 * first thing.
 */
#ifndef NOTEGATE_API_HTTP_CHECK_H
#define NOTEGATE_API_HTTP_CHECK_H

#include "notegate/plugin.h"

/* Bytes of a request target (path and query) as sent. */
#define HTTP_TARGET_MAX 2048
/* Parameters of a query. */
#define HTTP_PARAMETERS_MAX 200
/* Headers of one request. */
#define HTTP_HEADERS_MAX 64
/* Longest X-Request-Id that is taken over; a longer or stranger one is replaced. */
#define HTTP_REQUEST_ID_MAX 128
/* Longest Idempotency-Key. */
#define HTTP_IDEMPOTENCY_KEY_MAX 255
/* Longest authority ("host:port") that is checked. */
#define HTTP_HOST_MAX 255

enum http_method {
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_PUT = 8,
    HTTP_PATCH = 16,
    HTTP_DELETE = 32,
    HTTP_OPTIONS = 64
};

/* Why a request is refused: a code of the error table and one sentence. rc NG_OK: it is not. */
struct http_fault {
    int rc;
    bool fatal; /* the beginning of the next request is in doubt: answer, then close */
    char text[512];
};

/* The request target: path decoded, query as sent. Both lie in `memory`. */
struct http_target {
    struct ng_str path;  /* without one slash at its end, as if it had not been sent */
    struct ng_str query; /* absent: no "?" */
    size_t last;         /* begin of the last segment; a slash in it was sent as %2F */
    bool has_slash;      /* the path had one at its end */
    char memory[HTTP_TARGET_MAX + 2];
};

/* The headers that mean something here; absent = {NULL, 0}. Lent. */
struct http_headers {
    struct ng_str host, origin, content_length, transfer_encoding, content_type, accept;
    struct ng_str expect, authorization, if_none_match, idempotency_key, request_id;
    struct ng_str traceparent, agent, space, mode, run, process_run, user_agent;
    struct ng_str mcp_version, mcp_session, mcp_method, mcp_name, last_event_id;
    struct ng_str preflight_method;  /* Access-Control-Request-Method */
    struct ng_str preflight_headers; /* Access-Control-Request-Headers */
    const char *proxied;             /* a header only a proxy adds, or NULL */
    unsigned count;
    uint64_t body_length; /* of Content-Length; 0 where there is none */
    bool has_length, chunked;
};

/* "GET" -> HTTP_GET; 0: unknown. */
unsigned http_check_method(const char *method);
const char *http_method_name(unsigned method);

/* Percent-decodes `text` into `out` (room for text.len bytes). NG_EINVAL: a bad escape, NUL, a
 * control character, or not UTF-8. */
int http_decode(struct ng_str text, char *out, size_t *ret_len);
/* raw: as sent, NUL-terminated. */
int http_check_target(const char *raw, struct http_target *ret, struct http_fault *fault);
/* The next parameter of a query: false at its end. Name and value as sent. */
bool http_query_next(struct ng_str *query, struct ng_str *ret_name, struct ng_str *ret_value);

/* One header line, in order; headers zeroed before the first. Not NG_OK: refused. */
int http_check_header(struct http_headers *headers, struct ng_str name, struct ng_str value,
                      struct http_fault *fault);
/* After the last one. */
int http_check_headers(struct http_headers *headers, struct http_fault *fault);

/* The name of a header: RFC 9110's token. */
bool http_is_token(struct ng_str name);
/* Is the media type JSON (application/json or ...+json, charset utf-8 or none)? */
bool http_is_json(struct ng_str content_type);
/* A sane X-Request-Id: 1 to HTTP_REQUEST_ID_MAX of [A-Za-z0-9._:@/+=-]. */
bool http_request_id_valid(struct ng_str id);
/* The W3C form, version 00 or later, with ids that are not zero. */
bool http_traceparent_valid(struct ng_str text);
/* Does an If-None-Match list hold this entity tag (weakly compared) or "*"? */
bool http_etag_matches(struct ng_str list, struct ng_str etag);

/* "host:port", "[::1]:port", "host" taken apart. port 0: none. host without brackets. */
struct http_authority {
    struct ng_str host;
    unsigned port;
    bool bracketed;
};
bool http_parse_authority(struct ng_str text, struct http_authority *ret);

#endif
