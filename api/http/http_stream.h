/* SPDX-License-Identifier: MIT */
/*
 * http_stream.h - answers whose end is not known when they begin: server-sent events, a backup.
 *
 * A route (or MCP) makes a stream over a source of its own and gives it to the reply; the HTTP
 * transport sends headers, asks the source for bytes whenever the client takes some, and sleeps
 * when there are none, until it is woken. An idle stream costs a suspended connection and no
 * buffer.
 */
#ifndef NOTEGATE_API_HTTP_STREAM_H
#define NOTEGATE_API_HTTP_STREAM_H

#include "core/base/buf.h"

struct http_stream;
struct gateway;
struct key;

/* About what a source adds at a time; it is asked again when that has been sent. */
#define HTTP_STREAM_CHUNK ((size_t)16 * 1024)
/* The most it may add at a time (one event is never cut): over this the stream ends. */
#define HTTP_STREAM_FILL_MAX ((size_t)64 * 1024 * 1024)
/* After so long without a byte a comment (":\n\n") is sent, so that nothing between closes it.
 */
#define HTTP_STREAM_KEEPALIVE_MS 15000
/* Bytes of an open stream in the kernel (SO_SNDBUF): a slow reader holds no more. */
#define HTTP_STREAM_SEND_BUFFER (48 * 1024)

enum http_stream_state {
    HTTP_STREAM_OPEN = 0,  /* more may come; nothing added: asleep until http_stream_wake() */
    HTTP_STREAM_END = 1,   /* the added bytes are the last */
    HTTP_STREAM_BROKEN = 2 /* it cannot go on: the connection ends before the answer does */
};

struct http_stream_source {
    /* On the event loop; must not block. Adds whole events to `out`. Returns enum
     * http_stream_state. */
    int (*fill)(void *user, struct buf *out);
    /* Once, also where the answer never began: the client left, took nothing for too long, its
     * key was revoked, the gateway stops, or the end was sent. fill() is not called any more
     * when it begins. Any thread, no lock held. */
    void (*closed)(void *user);
    /* Bytes of another type than events: nothing is put between them. */
    bool plain;
    /* It is as the rights of the key were when it began: it ends when they change. */
    bool keeps_rights;
};

/* With one reference. key: the caller's, or NULL; the stream ends when it is revoked or expires
 * (takes a reference of its own). NULL: out of memory; closed() is not called then. */
struct http_stream *http_stream_new(const struct http_stream_source *source, void *user,
                                    struct key *key);
void http_stream_ref(struct http_stream *stream);
/* The last one: closed() was called, or is called now. NULL is a no-op. */
void http_stream_unref(struct http_stream *stream);
/* The source has something, or has come to its end. Any thread, at any time in the life of a
 * reference, also inside locks of the source: it calls nothing back. */
void http_stream_wake(struct http_stream *stream);

/* A place among limits.streams, for streams that stay (not for the answer of one call).
 * NG_EBUSY: all are taken, or this agent has its half of them. Given back with the same agent.
 */
int http_stream_take(struct gateway *gateway, struct ng_str agent);
void http_stream_give(struct gateway *gateway, struct ng_str agent);

#endif
