/* SPDX-License-Identifier: MIT */
/* http_reply.h - filling the answer of a request, and handing it to libmicrohttpd. */
#ifndef NOTEGATE_API_HTTP_REPLY_H
#define NOTEGATE_API_HTTP_REPLY_H

#include "http_request.h"

/* The error object. hint: NULL or a text. Replaces the content of the reply. Returns rc. */
int http_reply_error(struct http_request *request, int rc, const char *hint, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* The failure of a call that is done. */
int http_reply_call_error(struct http_request *request, const struct call *call);
/* Sets status 200 and an ETag over reply.body; a matching If-None-Match makes it a 304. */
void http_reply_etag(struct http_request *request);
/* Empties the reply for another one. */
void http_reply_clear(struct http_request *request);

/* Queues request->reply. False: out of memory; close the connection. */
bool http_reply_send(struct http_request *request);

#endif
