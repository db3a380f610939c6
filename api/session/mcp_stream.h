/* SPDX-License-Identifier: MIT */
/*
 * mcp_stream.h - messages to one client as server-sent events: a bounded queue that one
 * connection at a time reads. Sent messages of a session's streams are kept for a while, so
 * that a client that lost the connection can resume.
 *
 * Any thread, at any time of a reference's life. A stream never calls back but for `left`.
 */
#ifndef NOTEGATE_API_MCP_STREAM_H
#define NOTEGATE_API_MCP_STREAM_H

#include <stdatomic.h>

#include "api/http/http_stream.h"
#include "core/call/gateway.h"

/* Progress and log messages that wait for the client; over this the oldest are lost. */
#define MCP_STREAM_QUEUE_MAX ((size_t)1024 * 1024)
/* Sent events, kept for a resuming client: of one stream, and of all of a gateway, of which one
 * caller has at most half. Each caller may keep this much in any case. */
#define MCP_STREAM_KEPT_MAX ((size_t)1024 * 1024)
#define MCP_STREAM_KEPT_TOTAL ((size_t)64 * 1024 * 1024)
#define MCP_STREAM_KEPT_FREE ((size_t)64 * 1024)
/* Messages queued or kept, however small. */
#define MCP_STREAM_EVENTS_MAX 4096
/* Delay before a disconnected client reconnects. */
#define MCP_STREAM_RETRY_MS 1000

struct mcp_stream;

/* Bytes of all resumable streams of one caller, and of everybody. */
struct mcp_kept {
    atomic_size_t own;
    atomic_size_t *all;
};

enum mcp_stream_need {
    MCP_STREAM_MAY_DROP = 0, /* progress, logs, notifications */
    MCP_STREAM_MUST_SEND     /* questions, answers */
};

struct mcp_stream_options {
    bool resumable;        /* events have ids NUMBER-SEQ, and are kept */
    bool primes;           /* begins with an empty event that has an id (from 2025-11-25) */
    bool keeps_unread;     /* messages wait also without a reader */
    unsigned number;       /* in its session */
    uint64_t seq;          /* below that of the first event */
    struct mcp_kept *kept; /* counts its bytes; NULL where not resumable */
    /* The connection that read it went away, and it has not come to its end. No lock held. */
    void (*left)(void *user);
    void *user;                  /* must outlive the stream's connections: see `release` */
    void (*release)(void *user); /* or NULL: with the last reference */
};

/* One reference. NULL: out of memory; release() is not called. */
struct mcp_stream *mcp_stream_new(const struct mcp_stream_options *options);
void mcp_stream_ref(struct mcp_stream *stream);
void mcp_stream_unref(struct mcp_stream *stream); /* NULL is a no-op */
unsigned mcp_stream_number(const struct mcp_stream *stream);

/* A whole message. Copies. False: lost (no reader, no room, or ended). */
bool mcp_stream_add(struct mcp_stream *stream, struct ng_str message,
                    enum mcp_stream_need need);
/* A line feed in a JSON text stands between its parts; in an event, or a line of stdio, it
 * would end it. */
void mcp_stream_one_line(char *data, size_t len);
/* The last message (may be empty): takes the buffer's memory. */
void mcp_stream_finish(struct mcp_stream *stream, struct buf *message);
bool mcp_stream_is_finished(struct mcp_stream *stream);
/* Ends it at once: queued messages are dropped, unless its last one is among them and is being
 * read. */
void mcp_stream_cut(struct mcp_stream *stream);
/* Closes the connection once the queue is sent; the client reconnects after retry_ms. */
void mcp_stream_pause(struct mcp_stream *stream, int64_t retry_ms);

/* The reader. */
struct mcp_stream_reader {
    struct key *key; /* the stream ends with it; or NULL */
    uint64_t after;  /* the last event the client has; 0: none */
    bool resumes;    /* `after` counts, otherwise the unsent messages */
    struct gateway
        *gateway;        /* not NULL: a place among limits.streams is held for this agent, */
    struct ng_str agent; /* and given back when the connection goes */
    atomic_int *open;    /* counted while it reads; or NULL */
};
/* A connection reads from here on; the one before, if any, ends. The HTTP transport's
 * reference. NULL: out of memory (what `reader` holds stays the caller's). */
struct http_stream *mcp_stream_attach(struct mcp_stream *stream,
                                      const struct mcp_stream_reader *asked);

/* "NUMBER-SEQ". False: not of that form. */
bool mcp_stream_parse_id(struct ng_str text, unsigned *ret_number, uint64_t *ret_seq);

#endif
