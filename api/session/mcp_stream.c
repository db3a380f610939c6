/* SPDX-License-Identifier: MIT */
/* mcp_stream.c - a list of events: those before `next` were sent and are kept, those from it on
 * wait. The lock guards the list and the reader; the work of the connection happens outside. */
#include "mcp_stream.h"

#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/str.h"

/* Bytes around a message: its id, the words of the format. */
#define EVENT_ROOM 96

struct event {
    struct event *later;
    uint64_t seq;
    bool may_drop;
    char *data;
    size_t len;
};

struct reader {
    struct mcp_stream *stream; /* a reference */
    struct http_stream *http;  /* lent: valid until closed() */
    struct gateway *gateway;
    char *agent;
    atomic_int *open;
    bool primed;
};

struct mcp_stream {
    struct mcp_stream_options options;
    atomic_int refs;
    struct lock lock;
    struct event *first, **last;
    struct event *next;    /* first one not sent; NULL: none waits */
    size_t count;          /* events in the list */
    size_t queued;         /* bytes that wait and may be dropped */
    size_t kept;           /* bytes that were sent */
    size_t bytes;          /* of all events */
    uint64_t seq;          /* of the last event */
    struct reader *reader; /* the present reader, or NULL */
    bool finished, cut, paused;
    int64_t retry_ms; /* to be told; 0: not */
};

struct mcp_stream *mcp_stream_new(const struct mcp_stream_options *options)
{
    struct mcp_stream *stream = alloc_zeroed(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    lock_init(&stream->lock, LOCK_MCP_STREAM);
    stream->options = *options;
    stream->seq = options->seq;
    stream->last = &stream->first;
    atomic_init(&stream->refs, 1);
    return stream;
}

void mcp_stream_ref(struct mcp_stream *stream)
{
    (void)atomic_fetch_add(&stream->refs, 1);
}

unsigned mcp_stream_number(const struct mcp_stream *stream)
{
    return stream->options.number;
}

/* ---- the list; under the lock ---- */

/* Takes the event that *at points to out of the list. */
static void drop_event(struct mcp_stream *stream, struct event **at)
{
    struct event *event = *at;
    *at = event->later;
    if (stream->last == &event->later) {
        stream->last = at;
    }
    if (stream->next == event) {
        stream->next = event->later;
    }
    stream->count--;
    stream->bytes -= event->len;
    if (stream->options.kept != NULL) {
        (void)atomic_fetch_sub(&stream->options.kept->own, event->len);
        (void)atomic_fetch_sub(stream->options.kept->all, event->len);
    }
    free(event->data);
    free(event);
}

static void drop_first(struct mcp_stream *stream)
{
    if (stream->first == stream->next) {
        stream->queued -= stream->first->may_drop ? stream->first->len : 0;
    } else {
        stream->kept -= stream->first->len;
    }
    drop_event(stream, &stream->first);
}

static void drop_all(struct mcp_stream *stream)
{
    while (stream->first != NULL) {
        drop_first(stream);
    }
}

void mcp_stream_unref(struct mcp_stream *stream)
{
    if (stream == NULL || atomic_fetch_sub(&stream->refs, 1) != 1) {
        return;
    }
    drop_all(stream);
    lock_done(&stream->lock);
    if (stream->options.release != NULL) {
        stream->options.release(stream->options.user);
    }
    free(stream);
}

/* Its caller has more than half, or the total is over its limit: a caller with little may still
 * add, or one caller could silence the streams of all. */
static bool over_total(const struct mcp_stream *stream)
{
    const struct mcp_kept *kept = stream->options.kept;
    if (kept == NULL) {
        return false;
    }
    size_t own = atomic_load(&kept->own);
    return own > MCP_STREAM_KEPT_TOTAL / 2 ||
           (own > MCP_STREAM_KEPT_FREE && atomic_load(kept->all) > MCP_STREAM_KEPT_TOTAL);
}

/* Sent events are dropped when there is too much of them. */
static void trim_kept(struct mcp_stream *stream)
{
    while (stream->first != stream->next &&
           (!stream->options.resumable || stream->kept > MCP_STREAM_KEPT_MAX ||
            stream->count >= MCP_STREAM_EVENTS_MAX || over_total(stream))) {
        drop_first(stream);
    }
}

/* Room for `len` more bytes that may be lost: older ones of that kind give way. */
static bool make_room(struct mcp_stream *stream, size_t len)
{
    if (len > MCP_STREAM_QUEUE_MAX || over_total(stream)) {
        return false;
    }
    trim_kept(stream);
    struct event **at = &stream->first;
    while (*at != NULL && *at != stream->next) {
        at = &(*at)->later;
    }
    while (*at != NULL && (stream->queued + len > MCP_STREAM_QUEUE_MAX ||
                           stream->count >= MCP_STREAM_EVENTS_MAX)) {
        if ((*at)->may_drop) {
            stream->queued -= (*at)->len;
            drop_event(stream, at);
        } else {
            at = &(*at)->later;
        }
    }
    return stream->queued + len <= MCP_STREAM_QUEUE_MAX &&
           stream->count < MCP_STREAM_EVENTS_MAX;
}

/* Takes `data`. */
static bool append(struct mcp_stream *stream, char *data, size_t len, bool may_drop)
{
    struct event *event = alloc_bytes(sizeof(*event));
    if (event == NULL) {
        free(data);
        return false;
    }
    event->later = NULL;
    event->seq = ++stream->seq;
    event->may_drop = may_drop;
    event->data = data;
    event->len = len;
    *stream->last = event;
    stream->last = &event->later;
    if (stream->next == NULL) {
        stream->next = event;
    }
    stream->count++;
    stream->bytes += len;
    stream->queued += may_drop ? len : 0;
    if (stream->options.kept != NULL) {
        (void)atomic_fetch_add(&stream->options.kept->own, len);
        (void)atomic_fetch_add(stream->options.kept->all, len);
    }
    return true;
}

static void wake(struct mcp_stream *stream)
{
    if (stream->reader != NULL) {
        http_stream_wake(stream->reader->http);
    }
}

/* ---- saying something ---- */

void mcp_stream_one_line(char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n' || data[i] == '\r') {
            data[i] = ' ';
        }
    }
}

bool mcp_stream_add(struct mcp_stream *stream, struct ng_str message, enum mcp_stream_need need)
{
    bool added = false;
    bool may_drop = need == MCP_STREAM_MAY_DROP;
    char *copy = alloc_bytes(message.len + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, message.data, message.len);
    mcp_stream_one_line(copy, message.len);
    lock_take(&stream->lock);
    bool read = stream->reader != NULL || stream->options.keeps_unread;
    if (!stream->finished && !stream->cut && read &&
        (!may_drop || make_room(stream, message.len))) {
        added = append(stream, copy, message.len, may_drop);
        copy = NULL;
        wake(stream);
    }
    lock_release(&stream->lock);
    free(copy);
    return added;
}

void mcp_stream_finish(struct mcp_stream *stream, struct buf *message)
{
    size_t len = 0;
    char *data = message->rc == NG_OK && message->len > 0 ? buf_take(message, &len) : NULL;
    buf_done(message);
    if (data != NULL) {
        mcp_stream_one_line(data, len);
    }
    lock_take(&stream->lock);
    /* Answers without a waiting reader are kept while all of these fit. */
    bool wanted =
        stream->reader != NULL || (stream->options.keeps_unread && !over_total(stream));
    if (data != NULL && !stream->finished && !stream->cut && wanted) {
        (void)append(stream, data, len, false);
        data = NULL;
    }
    stream->finished = true;
    wake(stream);
    lock_release(&stream->lock);
    free(data);
}

bool mcp_stream_is_finished(struct mcp_stream *stream)
{
    lock_take(&stream->lock);
    bool finished = stream->finished || stream->cut;
    lock_release(&stream->lock);
    return finished;
}

void mcp_stream_cut(struct mcp_stream *stream)
{
    lock_take(&stream->lock);
    /* With its last message the stream ends by itself: that is the answer of a call that was
     * carried out, which a stop must not lose. */
    if (!stream->finished || stream->reader == NULL) {
        stream->cut = true;
        drop_all(stream);
    }
    wake(stream);
    lock_release(&stream->lock);
}

void mcp_stream_pause(struct mcp_stream *stream, int64_t retry_ms)
{
    lock_take(&stream->lock);
    if (stream->options.resumable && stream->reader != NULL && !stream->finished) {
        stream->paused = true;
        stream->retry_ms = retry_ms;
        wake(stream);
    }
    lock_release(&stream->lock);
}

/* ---- reading ---- */

static void print_event(struct mcp_stream *stream, const struct event *event, struct buf *out)
{
    if (buf_reserve(out, event->len + EVENT_ROOM) == NULL) {
        return;
    }
    if (stream->options.resumable) {
        buf_printf(out, "id: %u-%llu\n", stream->options.number,
                   (unsigned long long)event->seq);
    }
    buf_add_c(out, "event: message\ndata: ");
    buf_add(out, event->data, event->len);
    buf_add_c(out, "\n\n");
}

/* An empty event that only has an id: from now on the client can come back. */
static void print_prime(struct mcp_stream *stream, struct buf *out)
{
    uint64_t seq = stream->next != NULL ? stream->next->seq - 1 : stream->seq;
    buf_printf(out, "retry: %d\nid: %u-%llu\ndata:\n\n", MCP_STREAM_RETRY_MS,
               stream->options.number, (unsigned long long)seq);
}

static int fill(void *user, struct buf *out)
{
    struct reader *reader = user;
    struct mcp_stream *stream = reader->stream;
    int state = HTTP_STREAM_OPEN;
    lock_take(&stream->lock);
    if (stream->reader != reader || stream->cut) {
        lock_release(&stream->lock);
        return HTTP_STREAM_END;
    }
    if (stream->options.primes && !reader->primed) {
        print_prime(stream, out);
    }
    reader->primed = true;
    while (stream->next != NULL && out->len < HTTP_STREAM_CHUNK && out->rc == NG_OK) {
        struct event *event = stream->next;
        print_event(stream, event, out);
        stream->next = event->later;
        stream->queued -= event->may_drop ? event->len : 0;
        stream->kept += event->len;
        trim_kept(stream);
    }
    if (stream->next == NULL && stream->paused) {
        buf_printf(out, "retry: %lld\n\n", (long long)stream->retry_ms);
    }
    if (stream->next == NULL && (stream->finished || stream->paused)) {
        state = HTTP_STREAM_END;
    }
    lock_release(&stream->lock);
    return state;
}

static void free_reader(struct reader *reader)
{
    free(reader->agent);
    free(reader);
}

static void closed(void *user)
{
    struct reader *reader = user;
    struct mcp_stream *stream = reader->stream;
    lock_take(&stream->lock);
    bool current = stream->reader == reader;
    bool ended = stream->cut || (stream->finished && stream->next == NULL);
    if (current) {
        stream->reader = NULL;
        stream->paused = false;
    }
    lock_release(&stream->lock);
    if (current && !ended && stream->options.left != NULL) {
        stream->options.left(stream->options.user);
    }
    if (reader->open != NULL) {
        (void)atomic_fetch_sub(reader->open, 1);
    }
    if (reader->gateway != NULL) {
        http_stream_give(reader->gateway, ng_str_of(reader->agent));
    }
    free_reader(reader);
    mcp_stream_unref(stream);
}

static struct reader *new_reader(const struct mcp_stream_reader *asked)
{
    struct reader *reader = alloc_zeroed(1, sizeof(*reader));
    if (reader == NULL) {
        return NULL;
    }
    reader->agent = str_dup(asked->agent);
    if (reader->agent == NULL) {
        free(reader);
        return NULL;
    }
    reader->gateway = asked->gateway;
    reader->open = asked->open;
    return reader;
}

/* Back to the first event that the client does not have, as far as they are kept. */
static void rewind_to(struct mcp_stream *stream, uint64_t after)
{
    stream->next = stream->first;
    stream->kept = 0;
    while (stream->next != NULL && stream->next->seq <= after) {
        stream->kept += stream->next->len;
        stream->next = stream->next->later;
    }
    stream->queued = 0;
    for (const struct event *event = stream->next; event != NULL; event = event->later) {
        stream->queued += event->may_drop ? event->len : 0;
    }
}

struct http_stream *mcp_stream_attach(struct mcp_stream *stream,
                                      const struct mcp_stream_reader *asked)
{
    static const struct http_stream_source source = {.fill = fill, .closed = closed};
    struct reader *reader = new_reader(asked);
    if (reader == NULL) {
        return NULL;
    }
    reader->stream = stream;
    reader->primed = asked->resumes;
    struct http_stream *http = http_stream_new(&source, reader, asked->key);
    if (http == NULL) {
        free_reader(reader);
        return NULL;
    }
    reader->http = http;
    mcp_stream_ref(stream);
    if (reader->open != NULL) {
        (void)atomic_fetch_add(reader->open, 1);
    }
    lock_take(&stream->lock);
    wake(stream); /* the one before finds that it is not the reader any more */
    stream->reader = reader;
    stream->paused = false;
    if (asked->resumes) {
        rewind_to(stream, asked->after);
    }
    lock_release(&stream->lock);
    return http;
}

/* ---- ids ---- */

bool mcp_stream_parse_id(struct ng_str text, unsigned *ret_number, uint64_t *ret_seq)
{
    uint64_t number = 0;
    struct ng_str id = str_trim(text);
    const char *dash = id.len == 0 ? NULL : memchr(id.data, '-', id.len);
    if (dash == NULL) {
        return false;
    }
    size_t before = (size_t)(dash - id.data);
    if (!str_number(str_make(id.data, before), UINT32_MAX, &number) ||
        !str_number(str_make(dash + 1, id.len - before - 1), UINT64_MAX, ret_seq)) {
        return false;
    }
    *ret_number = (unsigned)number;
    return true;
}
