/* SPDX-License-Identifier: MIT */
/* http_stream_transport.h - the HTTP transport's side of streams that sources have made. */
#ifndef NOTEGATE_API_HTTP_STREAM_TRANSPORT_H
#define NOTEGATE_API_HTTP_STREAM_TRANSPORT_H

#include "http_stream.h"

struct MHD_Response;
struct http_connection;

/* The time a client has to take the last event after its key was revoked. */
#define HTTP_STREAM_FAREWELL_MS 500

/* closed(), where it was not called yet, and unref: for a stream that is not sent. NULL is a
 * no-op. */
void http_stream_drop(struct http_stream *stream);
/* The answer that this stream is; the reference passes to it. NULL: out of memory, the
 * reference stays. On the connection's event loop. */
struct MHD_Response *http_stream_attach(struct http_stream *stream,
                                        struct http_connection *connection);
/* Bytes that libmicrohttpd took of it so far. The event loop. */
uint64_t http_stream_bytes(const struct http_stream *stream);
/* Ends it: the source is called once more and adds its last bytes. Any thread. */
void http_stream_finish(struct http_stream *stream);
/* Ends it without another byte. Any thread. */
void http_stream_cut(struct http_stream *stream);
/* Called a few times a second: sends due comments, ends streams whose keys are no longer valid.
 * True: the client has not taken the end in time; shut the connection down. needs_key: a
 * request without a key would be refused now. */
bool http_stream_look(struct http_stream *stream, long long now_ms, bool needs_key);

#endif
