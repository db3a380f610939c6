/* SPDX-License-Identifier: MIT */
/* http_stream.c - streams: between a source of events and libmicrohttpd, which asks for bytes.
 */
#include "http_stream.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/call/quota.h"
#include "core/keys/keys.h"
#include "http_request.h"
#include "http_stream_transport.h"

/* The read size of libmicrohttpd where it sends without chunks (HTTP/1.0). */
#define BLOCK_BYTES ((size_t)1024)
#define COMMENT ":\n\n"

/* AWAKE to SLEEPING when the source has nothing, any to WOKEN when it may have more, WOKEN to
 * AWAKE when it is asked. */
enum stream_wake {
    STREAM_AWAKE = 0,
    STREAM_WOKEN,   /* since fill() began */
    STREAM_SLEEPING /* suspended: to be resumed */
};

/* OPEN to ENDING to CUT, or OPEN to CUT. */
enum stream_end {
    STREAM_OPEN = 0,
    STREAM_ENDING, /* fill() is asked once more, then the end is sent */
    STREAM_CUT     /* nothing more is sent */
};

/*
 * Three parties: the event loop, which reads; any thread that wakes; the monitor. `lock` guards
 * their shared state and is held while suspending and resuming, so that a connection is resumed
 * only if it is suspended, and never after it has ended: a suspended one does not end by
 * itself. No function of the source is called under it.
 */
struct http_stream {
    atomic_int refs;
    struct http_stream_source source;
    void *user;
    struct key *key; /* a reference, or NULL */

    struct lock lock;
    struct MHD_Connection *mhd; /* while it is being answered */
    enum stream_wake wake;
    enum stream_end end;
    bool comment_due;
    bool closed; /* closed() was or is being called */
    long long ending_ms;

    atomic_llong fed_ms; /* when bytes went out last; CLOCK_MONOTONIC */

    /* The event loop's. */
    struct buf pending;
    size_t sent;    /* of it */
    bool last;      /* the pending bytes are the last */
    uint64_t bytes; /* handed out, in all */
    struct gateway *gateway;
    size_t counted; /* of `pending` in limits.buffered */
};

struct http_stream *http_stream_new(const struct http_stream_source *source, void *user,
                                    struct key *key)
{
    struct http_stream *stream = alloc_zeroed(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    lock_init(&stream->lock, LOCK_HTTP_STREAM);
    atomic_init(&stream->refs, 1);
    atomic_init(&stream->fed_ms, http_now_ms());
    stream->source = *source;
    stream->user = user;
    stream->key = key;
    if (key != NULL) {
        key_ref(key);
    }
    buf_init(&stream->pending, HTTP_STREAM_FILL_MAX);
    return stream;
}

void http_stream_ref(struct http_stream *stream)
{
    (void)atomic_fetch_add(&stream->refs, 1);
}

static void stream_close(struct http_stream *stream)
{
    lock_take(&stream->lock);
    bool first = !stream->closed;
    stream->closed = true;
    lock_release(&stream->lock);
    if (first) {
        stream->source.closed(stream->user);
    }
}

/* Counts pending bytes in limits.buffered: the source has made them, so they are never refused.
 */
static void stream_count(struct http_stream *stream, size_t bytes)
{
    size_t now = bytes > HTTP_UNCOUNTED_BYTES ? bytes : 0;
    if (stream->gateway != NULL && now != stream->counted) {
        (void)metrics_use(stream->gateway->metrics, METRICS_BUFFERED,
                          (int64_t)now - (int64_t)stream->counted);
        stream->counted = now;
    }
}

static void stream_forget_pending(struct http_stream *stream)
{
    buf_done(&stream->pending);
    buf_init(&stream->pending, HTTP_STREAM_FILL_MAX);
    stream->sent = 0;
    stream_count(stream, 0);
}

void http_stream_unref(struct http_stream *stream)
{
    if (stream == NULL || atomic_fetch_sub(&stream->refs, 1) != 1) {
        return;
    }
    stream_close(stream);
    stream_forget_pending(stream);
    lock_done(&stream->lock);
    key_unref(stream->key);
    free(stream);
}

void http_stream_drop(struct http_stream *stream)
{
    if (stream != NULL) {
        stream_close(stream);
        http_stream_unref(stream);
    }
}

/* With the lock held. */
static void stream_resume(struct http_stream *stream)
{
    if (stream->wake == STREAM_SLEEPING) {
        MHD_resume_connection(stream->mhd);
    }
    stream->wake = STREAM_WOKEN;
}

void http_stream_wake(struct http_stream *stream)
{
    lock_take(&stream->lock);
    stream_resume(stream);
    lock_release(&stream->lock);
}

/* ---- the event loop ---- */

static ssize_t hand_out(struct http_stream *stream, char *out, size_t max)
{
    size_t len = stream->pending.len - stream->sent;
    len = size_min(len, max);
    memcpy(out, stream->pending.data + stream->sent, len);
    stream->sent += len;
    stream->bytes += len;
    if (stream->sent == stream->pending.len) {
        stream_forget_pending(stream);
    }
    atomic_store(&stream->fed_ms, http_now_ms());
    return (ssize_t)len;
}

/* Asks the source. False: the stream is cut. */
static bool stream_fill(struct http_stream *stream)
{
    lock_take(&stream->lock);
    enum stream_end end = stream->end;
    stream->wake = STREAM_AWAKE;
    lock_release(&stream->lock);
    if (end == STREAM_CUT) {
        return false;
    }
    int state = stream->source.fill(stream->user, &stream->pending);
    stream->last = state == HTTP_STREAM_END || (end == STREAM_ENDING && !stream->source.plain);
    stream_count(stream, stream->pending.len);
    /* A truncated answer that is no event stream must not look complete. */
    bool half = state == HTTP_STREAM_BROKEN ||
                (end == STREAM_ENDING && state != HTTP_STREAM_END && stream->source.plain);
    return stream->pending.rc == NG_OK && !half;
}

/* The source has nothing. True: the connection is suspended. */
static bool stream_sleep(struct http_stream *stream)
{
    lock_take(&stream->lock);
    /* The first bytes go out at once: they bring the headers with them. */
    bool comment = !stream->source.plain && (stream->comment_due || stream->bytes == 0);
    bool sleep = !comment && stream->wake == STREAM_AWAKE && stream->end == STREAM_OPEN;
    stream->comment_due = false;
    if (sleep) {
        stream->wake = STREAM_SLEEPING;
        MHD_suspend_connection(stream->mhd);
    }
    lock_release(&stream->lock);
    if (comment) {
        (void)buf_add_c(&stream->pending, COMMENT);
    }
    return sleep;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *out, size_t max)
{
    struct http_stream *stream = cls;
    (void)pos;
    for (;;) {
        if (stream->pending.len > 0) {
            return hand_out(stream, out, max);
        }
        if (stream->last) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (!stream_fill(stream)) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (stream->pending.len == 0 && !stream->last && stream_sleep(stream)) {
            return 0;
        }
    }
}

/* The answer has ended, however it did. */
static void stream_detach(void *cls)
{
    struct http_stream *stream = cls;
    lock_take(&stream->lock);
    stream->mhd = NULL;
    stream->wake = STREAM_AWAKE;
    lock_release(&stream->lock);
    http_stream_drop(stream);
}

struct MHD_Response *http_stream_attach(struct http_stream *stream,
                                        struct http_connection *connection)
{
    static const int bytes = HTTP_STREAM_SEND_BUFFER;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, stream, stream_detach);
    if (response == NULL) {
        return NULL;
    }
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    lock_take(&stream->lock);
    stream->mhd = connection->mhd;
    lock_release(&stream->lock);
    stream->gateway = connection->request.gateway;
    return response;
}

uint64_t http_stream_bytes(const struct http_stream *stream)
{
    return stream->bytes;
}

/* ---- the monitor ---- */

/* With the lock held. */
static void stream_end(struct http_stream *stream)
{
    if (stream->end == STREAM_OPEN) {
        stream->end = STREAM_ENDING;
    }
    stream_resume(stream);
}

void http_stream_cut(struct http_stream *stream)
{
    lock_take(&stream->lock);
    stream->end = STREAM_CUT;
    stream_resume(stream);
    lock_release(&stream->lock);
}

void http_stream_finish(struct http_stream *stream)
{
    lock_take(&stream->lock);
    stream_end(stream);
    lock_release(&stream->lock);
}

bool http_stream_look(struct http_stream *stream, long long now_ms, bool needs_key)
{
    bool live = stream->key != NULL ? key_live(stream->key) : !needs_key;
    live = live && !(stream->source.keeps_rights && key_rights_changed(stream->key));
    bool late = false;
    lock_take(&stream->lock);
    if (!live && stream->ending_ms == 0) {
        stream->ending_ms = now_ms;
        stream_end(stream);
    } else if (!live) {
        late = now_ms - stream->ending_ms >= HTTP_STREAM_FAREWELL_MS;
    } else if (stream->wake == STREAM_SLEEPING &&
               now_ms - atomic_load(&stream->fed_ms) >= HTTP_STREAM_KEEPALIVE_MS) {
        stream->comment_due = true;
        stream_resume(stream);
    }
    lock_release(&stream->lock);
    return late;
}

/* ---- places ---- */

int http_stream_take(struct gateway *gateway, struct ng_str agent)
{
    int rc = quota_acquire(gateway->streams, agent, gateway->limits.streams);
    if (rc == NG_OK) {
        (void)metrics_use(gateway->metrics, METRICS_STREAMS, 1);
    }
    return rc;
}

void http_stream_give(struct gateway *gateway, struct ng_str agent)
{
    quota_release(gateway->streams, agent);
    (void)metrics_use(gateway->metrics, METRICS_STREAMS, -1);
}
