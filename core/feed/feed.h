/* SPDX-License-Identifier: MIT */
/*
 * feed.h - committed changes as they come: one ring of events for all readers, a cursor for
 * each.
 *
 * A reader gets every event that passes its filter exactly once, in the order of seq. Events
 * older than the ring are read from the store, on a worker; events that a reader that is too
 * slow has lost from the ring ends it (it can open again at its position).
 */
#ifndef NOTEGATE_CORE_FEED_H
#define NOTEGATE_CORE_FEED_H

#include "core/base/buf.h"
#include "core/call/call.h"

struct feed;
struct feed_reader;
struct store;

/* The filter of a reader. Copied by feed_open, except `wants` and its user. */
struct feed_filter {
    bool all_spaces;
    const struct ng_str *spaces;
    size_t space_count;
    struct ng_str collection, tool; /* absent: any */
    bool ends;                      /* after the event `until`, which has been committed */
    uint64_t until;
    /* Further conditions; must be quick. Any thread. NULL: none. */
    bool (*wants)(void *user, const struct ng_event *event);
    void *user;
};

/* backlog: events in the ring (limits.stream_backlog). The gateway's; watches its store. */
int feed_new(struct gateway *gateway, size_t backlog, struct feed **ret);
/* No reader may be left. NULL is a no-op. */
void feed_free(struct feed *feed);

/*
 * since: events after this one; UINT64_MAX: from now on. NG_EINVAL: a position that is not yet.
 * wake(user): there may be something for feed_next(); any thread, must be quick, and must not
 * call the feed. caller: whose lane reads what is older than the ring (its texts are copied).
 */
int feed_open(struct feed *feed, const struct feed_filter *filter, uint64_t since,
              struct ng_str agent, void (*wake)(void *user), void *user,
              struct feed_reader **ret);
/* NG_OK: the next event, lent until the next call. NG_PENDING: none now, wake() will be called.
 * NG_ENOTFOUND: that was the last one (filter.ends).
 * NG_ETOOLARGE: it fell more than the backlog behind. Another failure: the store cannot be
 * read. One thread at a time; never blocks. */
int feed_next(struct feed_reader *reader, const struct ng_event **ret);
/* Writes an event; the same for every reader. Any thread. */
typedef void feed_print_fn(struct buf *out, const struct ng_event *event);
/* Adds the event that feed_next() gave last, as print() writes it: the first reader prints it,
 * the others get the copy. All readers of a feed that print name the same function. On the
 * thread of feed_next(). out->rc: out of memory, or full. */
void feed_print(struct feed_reader *reader, feed_print_fn *print, struct buf *out);
/* Everything up to this was given or is not wanted: where to resume. */
uint64_t feed_position(const struct feed_reader *reader);
/* wake() is not called any more when it returns. Not from within wake(). NULL is a no-op. */
void feed_close(struct feed_reader *reader);

#endif
