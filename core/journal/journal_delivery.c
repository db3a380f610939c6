/* SPDX-License-Identifier: MIT */
/* journal_delivery.c - reads the change feed from a stored cursor and delivers events of
 * interest to the journal; retries with backoff while the journal is unreachable. */
#include "journal_delivery.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Backoff after a failure: doubled from DELIVERY_WAIT_FIRST_MS to this. */
#define DELIVERY_WAIT_LAST_MS 30000
/* The same while the store refuses changes until the collections are entered. */
#define DELIVERY_ENTER_LAST_MS 1000
/* Polling of a feed with other writers, or of a journal on a server: the interval doubles from
 * the first to the last while no event comes. */
#define DELIVERY_POLL_FIRST_MS 50
#define DELIVERY_POLL_LAST_MS 2000
/* Least time from the start of one round to the next under steady load, so that events of this
 * time share a delivery and a commit. */
#define DELIVERY_PACE_MS 20
/* Time between two checks of the journal while events come, but none of interest. */
#define DELIVERY_CHECK_MS 2000
/* Bytes of data that end a page: a delivery takes a few times as many. */
#define DELIVERY_BYTES ((size_t)16 * 1024 * 1024)
/* Lag of the stored cursor while no event is of interest. */
#define DELIVERY_LAG_MAX 4096
#define DELIVERY_TIMEOUT_MS 60000 /* of one round */

void delivery_enter(struct journal_front *front, enum delivery_state state)
{
    static const unsigned allowed[] = {
        [DELIVERY_STOPPED] = 1U << DELIVERY_RUNNING | 1U << DELIVERY_STOPPING,
        [DELIVERY_RUNNING] = 1U << DELIVERY_SLEEPING | 1U << DELIVERY_STOPPING,
        [DELIVERY_SLEEPING] = 1U << DELIVERY_RUNNING | 1U << DELIVERY_STOPPING,
        [DELIVERY_STOPPING] = 1U << DELIVERY_STOPPING,
    };
    assert((allowed[front->state] & 1U << state) != 0);
    (void)allowed; /* without asserts */
    front->state = state;
}

/* ---- notifications of the store ---- */

/* On the committing thread: counts, and wakes the delivery only for events of interest. */
static void journal_watch(void *user, const struct ng_event *events, size_t count)
{
    struct journal_front *front = user;
    bool shared = store_is_shared(front->store);
    lock_take(&front->lock);
    bool wake = false;
    for (size_t i = 0; i < count; i++) {
        bool wanted = delivery_declares(front, events[i].key.collection);
        if (shared) {
            /* Without a sequence number yet: the feed has it later. */
            front->poll = front->poll || wanted;
            wake = front->poll;
            continue;
        }
        front->seen = u64_max(events[i].seq, front->seen);
        /* A round may have delivered the event before this notification. */
        if (wanted && events[i].seq > front->cursor) {
            front->wanted = events[i].seq;
            front->backlog++;
            wake = true;
        }
    }
    wake = wake || (!shared && front->seen - front->stored > DELIVERY_LAG_MAX);
    if (wake && front->state == DELIVERY_SLEEPING) {
        pthread_cond_signal(&front->wake);
    }
    lock_release(&front->lock);
}

/* ---- one round ---- */

struct delivery_page {
    struct journal_front *front;
    struct call *call;
    struct ng_event copies[DELIVERY_PAGE];
    size_t events; /* copies */
    size_t bytes;  /* of their data */
    struct ng_entry entries[DELIVERY_PAGE];
    const struct ng_entry *list[DELIVERY_PAGE]; /* pointers to them: those of interest */
    size_t count;
    uint64_t last_seq;
    bool unknown; /* an event may be of interest to another gateway */
    bool more;    /* the feed may have more */
    int rc;
};

/* Out of memory behind `count` events: those are delivered, then the next page begins. */
static int delivery_cut(struct delivery_page *page, size_t count)
{
    if (count == 0) {
        return call_no_memory(page->call);
    }
    page->call->arena.failed = false; /* no longer needed what did not fit */
    page->call->arena.oom = false;
    page->events = count;
    page->last_seq = page->copies[count - 1].seq;
    page->more = true;
    return NG_OK;
}

static int delivery_event(void *user, const struct ng_event *event)
{
    struct delivery_page *page = user;
    struct ng_event *copy = &page->copies[page->events];
    *copy = *event;
    copy->tool = str_make(NULL, 0);
    memset(&copy->origin, 0, sizeof(copy->origin));
    struct ng_str *const texts[] = {
        &copy->key.collection, &copy->key.space, &copy->key.id,
        &copy->agent,          &copy->action,    &copy->data,
    };
    if (!journal_copy_texts(&page->call->arena, texts, NG_COUNT(texts))) {
        page->rc = delivery_cut(page, page->events);
        return 1;
    }
    page->unknown = page->unknown || !delivery_wants(page->front, event->key.collection);
    page->events++;
    page->bytes += event->data.len;
    page->last_seq = event->seq;
    page->more = page->events == DELIVERY_PAGE || page->bytes >= DELIVERY_BYTES;
    return page->more;
}

/* Makes entries of the events of interest. The list of the other gateways is read after the
 * page: an event that they committed after they had entered its collection is then found in it.
 */
static int delivery_select(struct delivery_page *page)
{
    int rc = NG_OK;
    if (page->unknown) {
        rc = delivery_look_referenced(page->front, page->call, NULL);
    }
    for (size_t i = 0; rc == NG_OK && i < page->events; i++) {
        struct ng_entry *entry = &page->entries[page->count];
        if (!delivery_wants(page->front, page->copies[i].key.collection)) {
            continue;
        }
        rc = journal_entry_of_event(&page->call->arena, &page->copies[i], entry);
        if (rc == NG_OK) {
            page->list[page->count++] = entry;
        } else {
            rc = delivery_cut(page, i);
        }
    }
    return rc;
}

static int delivery_store(struct journal_front *front, struct call *call,
                          const struct ng_entry *const *entries, size_t count)
{
    const struct ng_journal *inner = front->inner;
    if (inner->deliver_marked == NULL) {
        return inner->deliver(front->db, &call->pub, entries, count);
    }
    int rc = inner->deliver_marked(front->db, &call->pub, ng_str_of(front->mark),
                                   front->delivered, entries, count);
    if (rc == NG_OK) {
        front->delivered = u64_max(front->delivered, entries[count - 1]->seq);
    }
    return rc;
}

/* A memory was deleted. A journal that cannot do that, and came into use since, keeps it. */
static int delivery_forget(struct journal_front *front, struct call *call,
                           const struct ng_entry *entry)
{
    const struct ng_journal *inner = front->inner;
    if (inner->forget == NULL) {
        log_write(NG_LOG_WARNING, "journal",
                  "the journal %s cannot delete memories: %.*s, which was deleted, stays",
                  inner->name, (int)entry->id.len, entry->id.data);
        return NG_OK;
    }
    if (inner->deliver_marked == NULL) {
        return inner->forget(front->db, &call->pub, ng_str_of(""), 0, entry);
    }
    int rc =
        inner->forget(front->db, &call->pub, ng_str_of(front->mark), front->delivered, entry);
    if (rc == NG_OK) {
        front->delivered = u64_max(front->delivered, entry->seq);
    }
    return rc;
}

/* In order: a memory and its deletion may be in one page. */
static int delivery_pass(struct journal_front *front, struct call *call,
                         const struct ng_entry *const *entries, size_t count)
{
    int rc = NG_OK;
    for (size_t at = 0; rc == NG_OK && at < count;) {
        size_t run = 0;
        while (at + run < count && entries[at + run]->kind != NG_ENTRY_FORGET) {
            run++;
        }
        if (run > 0) {
            rc = delivery_store(front, call, entries + at, run);
            at += run;
        } else {
            rc = delivery_forget(front, call, entries[at++]);
        }
    }
    return rc;
}

/* An entry that the journal refuses as invalid would block all later ones: logs and skips it.
 */
static int delivery_send_singly(struct journal_front *front, struct call *call,
                                const struct delivery_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct ng_entry *entry = page->list[i];
        int rc = delivery_pass(front, call, &entry, 1);
        if (rc == NG_EINVAL || rc == NG_ETOOLARGE) {
            log_write(NG_LOG_ERROR, "journal",
                      "event %.*s is skipped because the journal refuses it: %.*s",
                      (int)entry->event_id.len, entry->event_id.data,
                      (int)call->staged.message.len,
                      call->staged.message.data == NULL ? "" : call->staged.message.data);
            rc = NG_OK;
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

static int delivery_send(struct journal_front *front, struct call *call,
                         const struct delivery_page *page)
{
    int rc = journal_rwlock_lock(front, call, false);
    if (rc != NG_OK) {
        return rc;
    }
    rc = journal_keep_note(front, call, page->list, page->count);
    if (rc == NG_OK) {
        rc = delivery_pass(front, call, page->list, page->count);
    }
    if (rc == NG_EINVAL || rc == NG_ETOOLARGE) {
        rc = delivery_send_singly(front, call, page);
    }
    journal_rwlock_unlock(front, false);
    return rc;
}

static void delivery_moved(struct journal_front *front, const struct delivery_page *page)
{
    lock_take(&front->lock);
    for (size_t i = 0; i < page->count; i++) {
        front->backlog -= page->list[i]->seq <= front->seen;
    }
    front->cursor = page->last_seq;
    front->seen = u64_max(front->cursor, front->seen);
    if (!store_is_shared(front->store) && front->wanted <= front->cursor) {
        front->backlog = 0;
    }
    lock_release(&front->lock);
}

/* Shared documents: the events of this page, and of those behind it, are the backlog while it
 * is delivered. */
static void delivery_expect(struct journal_front *front, const struct delivery_page *page)
{
    if (!store_is_shared(front->store)) {
        return;
    }
    lock_take(&front->lock);
    for (size_t i = 0; i < page->count; i++) {
        front->backlog += page->list[i]->seq > front->seen;
    }
    front->seen = u64_max(page->last_seq, front->seen);
    lock_release(&front->lock);
    if (page->more) {
        delivery_count_newer(front);
    }
}

/* Nothing was sent to the journal: is it still there? A round that succeeds says so. */
static bool delivery_check_is_due(struct journal_front *front)
{
    return journal_degraded(front) ||
           clock_monotonic_ns() - front->checked_ns >= (int64_t)DELIVERY_CHECK_MS * 1000000;
}

/* Delivers one page of the feed. *ret_more: there may be more. */
static int delivery_round(struct journal_front *front, struct call *call, bool *ret_more)
{
    struct delivery_page *page = arena_zalloc(&call->arena, sizeof(*page));
    if (page == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    page->front = front;
    page->call = call;
    lock_take(&front->lock);
    uint64_t since = front->cursor;
    uint64_t stored = front->stored;
    lock_release(&front->lock);
    int rc = store_changes(front->store, call, since, DELIVERY_PAGE, delivery_event, page);
    if (rc == NG_OK) {
        rc = page->rc;
    }
    if (rc == NG_OK) {
        rc = delivery_select(page);
    }
    if (rc == NG_OK && page->count > 0) {
        delivery_expect(front, page);
        if (front->inner->mark != NULL && front->mark[0] == '\0') {
            return delivery_check_journal(front, call, ret_more);
        }
        rc = delivery_send(front, call, page);
    } else if (rc != NG_OK) {
        return rc;
    }
    bool lost = rc == NG_ECONFLICT && front->inner->mark != NULL;
    if (page->events == 0 || lost) {
        /* Notices the loss and the return of the journal also without events. */
        call_reset_result(call);
        rc = delivery_check_journal(front, call, ret_more);
        *ret_more = *ret_more || (lost && rc == NG_OK); /* nothing of the page is delivered */
        return rc;
    }
    if (rc != NG_OK) {
        return rc;
    }
    *ret_more = page->more;
    delivery_moved(front, page);
    /* Without a stored cursor events are delivered once more after a restart: harmless. */
    if (page->count > 0 || page->last_seq - stored > DELIVERY_LAG_MAX) {
        rc = delivery_store_cursor(front, call, page->last_seq);
    }
    if (rc == NG_OK && page->count == 0 && delivery_check_is_due(front)) {
        rc = delivery_check_journal(front, call, ret_more);
    }
    return rc;
}

/* ---- shared documents ---- */

/* Another gateway delivers: fails if there is a backlog and the journal is unreachable. */
static int delivery_follow(struct journal_front *front, struct call *call)
{
    delivery_count_newer(front);
    bool waits = journal_backlog(front) > 0;
    if (waits && front->inner->health != NULL) {
        return front->inner->health(front->db, &call->pub);
    }
    return NG_OK;
}

/* ticket: for a flush this gateway delivers itself instead of waiting for another one. */
static int delivery_shared_round(struct journal_front *front, struct call *call,
                                 uint64_t ticket, bool *ret_more)
{
    bool mine = false;
    int rc = journal_lease_take(front, call, &mine);
    lock_take(&front->lock);
    bool asked = ticket > front->flush_done;
    lock_release(&front->lock);
    if (rc != NG_OK) {
        return rc;
    }
    front->follows = !mine && !asked;
    /* The owner reloads the cursor, too: a flush of another gateway may have moved it. */
    rc = delivery_load_cursor(front, call);
    if (rc == NG_OK) {
        /* Not only for unknown events: they have no number before this gateway knows them. */
        rc = delivery_look_referenced(front, call, NULL);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (front->follows) {
        return delivery_follow(front, call);
    }
    return delivery_round(front, call, ret_more);
}

/* ---- the thread ---- */

static void delivery_failed(struct journal_front *front, const struct call *call, int rc)
{
    lock_take(&front->lock);
    /* A stop, of this thread or of the gateway, cancels the present round: no failure to
     * report.
     */
    bool stops = front->state == DELIVERY_STOPPING || atomic_load(&front->gateway->stopping);
    bool tell = !front->degraded && !stops;
    front->degraded = true;
    front->failures++;
    pthread_cond_broadcast(&front->moved);
    lock_release(&front->lock);
    if (tell) {
        struct ng_str text = ng_str_of("out of memory");
        if (call != NULL) {
            text = call->staged.message;
        }
        log_write(NG_LOG_WARNING, "journal",
                  "events wait because the journal does not accept them (%s): %.*s",
                  error_name(NULL, rc), (int)text.len, text.data == NULL ? "" : text.data);
    }
}

static void delivery_succeeded(struct journal_front *front, bool more, uint64_t ticket)
{
    lock_take(&front->lock);
    bool tell = front->degraded;
    front->degraded = false;
    if (!more && store_is_shared(front->store) && !front->follows) {
        front->backlog = 0;
    }
    if (!more && !front->follows) {
        front->flush_done = ticket;
        pthread_cond_broadcast(&front->moved);
    }
    lock_release(&front->lock);
    if (tell) {
        log_write(NG_LOG_INFO, "journal", "the journal accepts events again");
    }
}

struct call *delivery_set_current(struct journal_front *front, struct call *call)
{
    lock_take(&front->lock);
    struct call *former = front->current;
    front->current = call;
    if (call != NULL && front->state == DELIVERY_STOPPING) {
        call_cancel(call); /* the stop came between its test and this */
    }
    lock_release(&front->lock);
    return former;
}

/* Runs one round in a call of its own, whose memory is freed afterwards. */
static int delivery_step(struct journal_front *front, bool *ret_more)
{
    struct call *call = call_new(front->gateway);
    *ret_more = false;
    if (call == NULL) {
        delivery_failed(front, NULL, NG_EINTERNAL);
        return NG_EINTERNAL;
    }
    call->may_block = true;
    call->deadline_ns = clock_monotonic_ns() + (int64_t)DELIVERY_TIMEOUT_MS * 1000000;
    (void)delivery_set_current(front, call);
    lock_take(&front->lock);
    front->flush_tried = front->flush_asked;
    uint64_t ticket = front->flush_tried;
    lock_release(&front->lock);
    int rc = delivery_enter_referenced(front, call);
    if (rc == NG_OK && store_is_shared(front->store)) {
        rc = delivery_shared_round(front, call, ticket, ret_more);
    } else if (rc == NG_OK) {
        rc = delivery_round(front, call, ret_more);
    }
    (void)delivery_set_current(front, NULL);
    if (rc != NG_OK) {
        delivery_failed(front, call, rc);
    } else {
        delivery_succeeded(front, *ret_more, ticket);
    }
    call_unref(call);
    return rc;
}

static bool delivery_flush_due(const struct journal_front *front)
{
    return front->flush_asked > front->flush_tried;
}

/* True if this gateway knows of no work. */
static bool delivery_idle(const struct journal_front *front)
{
    if (store_is_shared(front->store)) {
        return !front->poll && !delivery_flush_due(front);
    }
    return front->wanted <= front->cursor && front->seen - front->stored <= DELIVERY_LAG_MAX &&
           !delivery_flush_due(front);
}

bool delivery_wait_until(pthread_cond_t *cond, struct lock *lock, int64_t until_ns)
{
    struct timespec at = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    return lock_wait_until(cond, lock, &at) != ETIMEDOUT;
}

/* With the lock held: waits until `until_ns`. A flush or a stop ends the wait, events do not.
 */
static void delivery_pause(struct journal_front *front, int64_t until_ns)
{
    while (front->state != DELIVERY_STOPPING && !delivery_flush_due(front) &&
           delivery_wait_until(&front->wake, &front->lock, until_ns)) {
    }
}

/* With the lock held. */
static void delivery_sleep(struct journal_front *front)
{
    int64_t until = clock_monotonic_ns() + front->poll_ms * 1000000;
    front->poll_ms = i64_min(front->poll_ms * 2, DELIVERY_POLL_LAST_MS);
    delivery_enter(front, DELIVERY_SLEEPING);
    while (front->state == DELIVERY_SLEEPING && delivery_idle(front)) {
        if (!store_is_shared(front->store) && !front->remote) {
            lock_wait(&front->wake, &front->lock);
        } else if (!delivery_wait_until(&front->wake, &front->lock, until)) {
            break;
        }
    }
    if (front->state == DELIVERY_SLEEPING) {
        delivery_enter(front, DELIVERY_RUNNING);
    }
}

static int64_t delivery_wait_last(const struct journal_front *front)
{
    return store_is_held(front->store) ? DELIVERY_ENTER_LAST_MS : DELIVERY_WAIT_LAST_MS;
}

static void *delivery_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-journal");
    struct journal_front *front = user;
    int64_t wait_ms = DELIVERY_WAIT_FIRST_MS;
    lock_take(&front->lock);
    uint64_t since = front->cursor;
    uint64_t until = front->opened;
    lock_release(&front->lock);
    if (until > since && !store_is_shared(front->store)) {
        delivery_count_older(front, until);
    }
    lock_take(&front->lock);
    front->opened = 0;
    front->poll_ms = DELIVERY_POLL_FIRST_MS;
    while (front->state != DELIVERY_STOPPING) {
        bool more = false;
        if (front->poll) {
            front->poll_ms = DELIVERY_POLL_FIRST_MS;
        }
        front->poll = false;
        int64_t begun_ns = clock_monotonic_ns();
        lock_release(&front->lock);
        int rc = delivery_step(front, &more);
        lock_take(&front->lock);
        if (rc != NG_OK) {
            delivery_pause(front, clock_monotonic_ns() + wait_ms * 1000000);
            wait_ms = i64_min(wait_ms * 2, delivery_wait_last(front));
            continue;
        }
        wait_ms = DELIVERY_WAIT_FIRST_MS;
        if (!more && front->state != DELIVERY_STOPPING) {
            delivery_sleep(front);
            delivery_pause(front, begun_ns + (int64_t)DELIVERY_PACE_MS * 1000000);
        }
    }
    lock_release(&front->lock);
    return NULL;
}

int delivery_start(struct journal_front *front, struct call *call)
{
    int rc = store_watch(front->store, NULL, journal_watch, front);
    if (rc != NG_OK) {
        return call_fail(call, rc, "the store takes no further watcher");
    }
    lock_take(&front->lock);
    delivery_enter(front, DELIVERY_RUNNING);
    rc = pthread_create(&front->thread, NULL, delivery_run, front);
    if (rc != 0) {
        delivery_enter(front, DELIVERY_STOPPING);
    }
    lock_release(&front->lock);
    if (rc != 0) {
        return call_fail(call, NG_EINTERNAL, "no thread could be started for the journal");
    }
    return NG_OK;
}
