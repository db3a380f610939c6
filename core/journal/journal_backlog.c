/* SPDX-License-Identifier: MIT */
/* journal_backlog.c - counts the events that wait for the journal: those from before the watch
 * of the store, and with shared documents those of all gateways. */
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/store/store.h"
#include "journal_delivery.h"

/* One page of the feed. */
struct count_page {
    struct journal_front *front;
    uint64_t until, last_seq, last_wanted;
    int64_t wanted;
    uint32_t events;
    bool unknown; /* an event may be of interest to another gateway */
};

static int count_event(void *user, const struct ng_event *event)
{
    struct count_page *page = user;
    if (event->seq > page->until) {
        return 1;
    }
    page->events++;
    page->last_seq = event->seq;
    if (delivery_wants(page->front, event->key.collection)) {
        page->wanted++;
        page->last_wanted = event->seq;
    } else {
        page->unknown = true;
    }
    return 0;
}

/* Reads one page in a call of its own, whose memory is freed afterwards; once more if other
 * gateways reference collections of it that were not known. */
static int count_read(struct journal_front *front, struct count_page *page, uint64_t since,
                      uint64_t until)
{
    struct call *call = call_new(front->gateway);
    bool again = false;
    if (call == NULL) {
        return NG_EINTERNAL;
    }
    call->may_block = true;
    struct call *former = delivery_set_current(front, call);
    *page = (struct count_page){.front = front, .until = until, .last_seq = since};
    int rc = store_changes(front->store, call, since, DELIVERY_PAGE, count_event, page);
    if (rc == NG_OK && page->unknown) {
        rc = delivery_look_referenced(front, call, &again);
    }
    if (rc == NG_OK && again) {
        *page = (struct count_page){.front = front, .until = until, .last_seq = since};
        rc = store_changes(front->store, call, since, DELIVERY_PAGE, count_event, page);
    }
    (void)delivery_set_current(front, former);
    call_unref(call);
    return rc;
}

static bool count_stops(struct journal_front *front)
{
    lock_take(&front->lock);
    bool stops = front->state == DELIVERY_STOPPING;
    lock_release(&front->lock);
    return stops;
}

/* Each page is added at once: the count is shown while it grows. */
static void count_pages(struct journal_front *front, uint64_t since, uint64_t until, int sign,
                        bool moves)
{
    struct count_page page = {.last_seq = since};
    int rc = NG_OK;
    do {
        rc = count_read(front, &page, page.last_seq, until);
        if (rc != NG_OK) {
            return;
        }
        lock_take(&front->lock);
        front->backlog += sign * page.wanted;
        front->wanted = u64_max(front->wanted, page.last_wanted);
        if (moves) {
            front->seen = u64_max(front->seen, page.last_seq);
        }
        lock_release(&front->lock);
    } while (page.events == DELIVERY_PAGE && !count_stops(front));
}

void delivery_count_older(struct journal_front *front, uint64_t until)
{
    lock_take(&front->lock);
    uint64_t since = front->cursor;
    lock_release(&front->lock);
    if (until > since) {
        count_pages(front, since, until, 1, false);
    }
}

void delivery_count_newer(struct journal_front *front)
{
    lock_take(&front->lock);
    uint64_t since = front->seen;
    lock_release(&front->lock);
    count_pages(front, since, UINT64_MAX, 1, true);
}

void delivery_count_moved(struct journal_front *front, uint64_t from)
{
    lock_take(&front->lock);
    uint64_t until = front->cursor;
    bool all = until >= front->seen;
    if (all) {
        front->backlog = 0;
        front->seen = until;
    }
    lock_release(&front->lock);
    if (!all && until > from) {
        count_pages(front, from, until, -1, false);
    }
}
