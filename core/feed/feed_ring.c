/* SPDX-License-Identifier: MIT */
/* feed_ring.c - events in memory, and the ring of the newest: bounded by their number and by
 * bytes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/store/event_copy.h"
#include "feed_types.h"

/* ---- events ---- */

struct feed_event *feed_event_new(const struct ng_event *from)
{
    size_t texts = event_texts(from);
    struct feed_event *event = alloc_zeroed(1, sizeof(*event) + texts);
    if (event == NULL) {
        return NULL;
    }
    atomic_init(&event->refs, 1);
    atomic_init(&event->text, NULL);
    event->bytes = sizeof(*event) + texts;
    event_copy(from, event->texts, &event->event);
    return event;
}

static void text_free(struct feed_text *text)
{
    if (text != NULL) {
        (void)atomic_fetch_sub(text->total, text->len);
        free(text);
    }
}

void feed_event_unref(struct feed_event *event)
{
    if (event != NULL && atomic_fetch_sub(&event->refs, 1) == 1) {
        text_free(atomic_load(&event->text));
        free(event);
    }
}

struct feed_event *feed_event_ref(struct feed_event *event)
{
    (void)atomic_fetch_add(&event->refs, 1);
    return event;
}

/* Keeps the text for the others. Not where there is no room or memory, or where another thread
 * has been faster. */
static void text_keep(struct feed *feed, struct feed_event *event, struct ng_str made)
{
    struct feed_text *none = NULL;
    if (atomic_fetch_add(&feed->text_bytes, made.len) + made.len > FEED_TEXT_BYTES) {
        (void)atomic_fetch_sub(&feed->text_bytes, made.len);
        return;
    }
    struct feed_text *text = alloc_bytes(sizeof(*text) + made.len);
    if (text == NULL) {
        (void)atomic_fetch_sub(&feed->text_bytes, made.len);
        return;
    }
    text->total = &feed->text_bytes;
    text->len = made.len;
    memcpy(text->data, made.data, made.len);
    if (!atomic_compare_exchange_strong(&event->text, &none, text)) {
        text_free(text);
    }
}

void feed_print(struct feed_reader *reader, feed_print_fn *print, struct buf *out)
{
    struct feed_event *event = reader->current;
    const struct feed_text *text = atomic_load(&event->text);
    if (text != NULL) {
        (void)buf_add(out, text->data, text->len);
        return;
    }
    size_t begin = out->len;
    print(out, &event->event);
    if (out->rc == NG_OK && atomic_load(&reader->feed->reader_count) > 1) {
        text_keep(reader->feed, event, str_make(out->data + begin, out->len - begin));
    }
}

/* ---- the ring ---- */

struct feed_event *feed_ring_at(const struct feed *feed, uint64_t index)
{
    return feed->ring[index % feed->backlog];
}

void feed_ring_drop(struct feed *feed)
{
    struct feed_event *oldest = feed_ring_at(feed, feed->first);
    feed->dropped_seq = u64_max(oldest->event.seq, feed->dropped_seq);
    feed->bytes -= oldest->bytes;
    feed->first++;
    feed_event_unref(oldest);
}

void feed_ring_push(struct feed *feed, struct feed_event *event)
{
    /* Earlier events may have purged texts, so the ring drops them. Readers continue in the
     * store. */
    while (str_is(event->event.action, NG_ACTION_PURGED) && feed->first < feed->pushed) {
        feed_ring_drop(feed);
    }
    while (feed->first < feed->pushed && (feed->pushed - feed->first == feed->backlog ||
                                          feed->bytes + event->bytes > FEED_RING_BYTES)) {
        feed_ring_drop(feed);
    }
    feed->ring[feed->pushed++ % feed->backlog] = event;
    feed->bytes += event->bytes;
    feed->last_seq = event->event.seq;
}

/* The first event behind `seq`. */
uint64_t feed_ring_find(const struct feed *feed, uint64_t seq)
{
    uint64_t low = feed->first;
    uint64_t high = feed->pushed;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (feed_ring_at(feed, middle)->event.seq <= seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* On the committing thread. An event there is no memory for is one that the ring has lost:
 * readers find it in the store. */
void feed_watch(void *user, const struct ng_event *events, size_t count)
{
    struct feed *feed = user;
    lock_take(&feed->lock);
    feed->poll = true;
    for (size_t i = 0; i < count && !feed->shared; i++) {
        struct feed_event *event = feed_event_new(&events[i]);
        if (event != NULL) {
            feed_ring_push(feed, event);
            continue;
        }
        while (feed->first < feed->pushed) {
            feed_ring_drop(feed);
        }
        feed->dropped_seq = events[i].seq;
        feed->last_seq = events[i].seq;
        feed->pushed++;
        feed->first = feed->pushed;
    }
    if (!feed->shared && atomic_load(&feed->reader_count) == 0) {
        feed->told = feed->pushed;
    }
    /* Once for all that comes until the thread runs, and when it finds the lock free. */
    bool wake =
        feed->state == FEED_ASLEEP && (feed->shared || atomic_load(&feed->reader_count) > 0);
    if (wake) {
        feed->state = FEED_RUNNING;
    }
    lock_release(&feed->lock);
    if (wake) {
        pthread_cond_signal(&feed->wake);
    }
}
