/* SPDX-License-Identifier: MIT */
/*
 * http_access.h - the access log (log.access): one line for each HTTP request, when it has
 * ended. No query, no header but traceparent and the client's name: nothing that may be a
 * secret.
 */
#ifndef NOTEGATE_API_HTTP_ACCESS_H
#define NOTEGATE_API_HTTP_ACCESS_H

#include "api/auth/auth.h"

/* Of the client's name (User-Agent), of a traceparent and of a path. */
#define HTTP_ACCESS_AGENT_MAX 128
#define HTTP_ACCESS_TRACE_MAX 64
#define HTTP_ACCESS_PATH_MAX 256
/* Of the method of MCP and the tool that a message names. */
#define HTTP_ACCESS_NAME_SIZE 65

struct http_request;

/* Parts of a request that are kept until it has ended: the headers are gone by then. */
struct http_access {
    int64_t started_ns; /* 0: no line is wanted of it */
    bool trusted;       /* the caller is known */
    char agent[AUTH_AGENT_SIZE], key[AUTH_KEY_SIZE];
    char user_agent[HTTP_ACCESS_AGENT_MAX + 1];
    char traceparent[HTTP_ACCESS_TRACE_MAX + 1];
    char mcp_method[HTTP_ACCESS_NAME_SIZE], tool[HTTP_ACCESS_NAME_SIZE];
};

/* The headers are in, whatever is wrong with them; a line is wanted. */
void http_access_headers(struct http_request *request);
/* The caller is known (NULL; only where a line is wanted), or was refused: with an audit line.
 */
void http_access_caller(struct http_request *request, const struct auth_refusal *refusal);
/* The audit line of a refused or failed request that is no call of a tool. what: "refused", or
 * its action; target: its object; absent: the path. */
void http_access_refused(struct http_request *request, const char *what, int rc,
                         struct ng_str target);
/* A message of MCP was answered; only where a line is wanted. tool: "" for none. */
void http_access_message(struct http_request *request, const char *method, const char *tool);
/* The request has ended; a line is wanted. whole: its answer was sent to the last byte. */
void http_access_end(struct http_request *request, bool whole);

#endif
