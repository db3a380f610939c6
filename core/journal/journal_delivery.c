/* SPDX-License-Identifier: MIT */
/* journal_delivery.c - reads the change feed from a stored cursor and delivers events of
 * interest to the journal; retries with backoff while the journal is unreachable. */
#include "journal_delivery.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_documents.h"
#include "journal_entry.h"

#define DELIVERY_PAGE NG_DELIVERY_MAX /* events of one read of the feed */
/* Backoff after a failure: doubled from DELIVERY_WAIT_FIRST_MS to this. */
#define DELIVERY_WAIT_LAST_MS 30000
/* Polling of a feed with other writers, or of a journal on a server: the interval doubles from
 * the first to the last while no event comes. */
#define DELIVERY_POLL_FIRST_MS 50
#define DELIVERY_POLL_LAST_MS 2000
/* Least time from the start of one round to the next under steady load, so that events of this
 * time share a delivery and a commit. */
#define DELIVERY_PACE_MS 20
#define DELIVERY_COUNT_MAX 100000 /* limit for counting the backlog */
/* Lag of the stored cursor while no event is of interest. */
#define DELIVERY_LAG_MAX 4096
#define DELIVERY_TIMEOUT_MS 60000 /* of one round */
#define DELIVERY_CURSOR "cursor"
/* The cursor belongs to the gateway, not to a space; it is stored beside the pointers. */
#define DELIVERY_SPACE "shared"

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

bool delivery_wants(const struct journal_front *front, struct ng_str collection)
{
    const struct ng_collection *found = store_collection(front->store, collection);
    return found != NULL && (found->flags & NG_COLLECTION_REFERENCED) != 0;
}

/* On the committing thread: counts, and wakes the delivery only for events of interest. */
static void journal_watch(void *user, const struct ng_event *events, size_t count)
{
    struct journal_front *front = user;
    bool shared = store_is_shared(front->store);
    lock_take(&front->lock);
    bool wake = false;
    for (size_t i = 0; i < count; i++) {
        bool wanted = delivery_wants(front, events[i].key.collection);
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

/* ---- the cursor ---- */

/* True if the stored cursor belongs to the present journal. A different one (the setting
 * `journal` was changed, or a backup restored) gets all events and ignores those it has. */
static bool cursor_is_of(const struct journal_front *front, const struct ng_value *body)
{
    const struct ng_value *journal = json_get(body, "journal");
    return journal != NULL && journal->type == NG_TYPE_STRING &&
           str_is(journal->text, front->inner->name);
}

struct delivery_cursor {
    const struct journal_front *front;
    uint64_t seq;
};

static int delivery_write_cursor(struct ng_call *call, const struct ng_doc *present,
                                 struct ng_draft *next, void *user)
{
    const struct delivery_cursor *cursor = user;
    int64_t stored = 0;
    (void)json_integer(json_get(present->body, "seq"), &stored);
    if (stored >= 0 && (uint64_t)stored >= cursor->seq &&
        cursor_is_of(cursor->front, present->body)) {
        return NG_OK; /* another gateway has stored a later one */
    }
    struct ng_str json =
        arena_printf(&call_of(call)->arena, "{\"seq\":%llu,\"journal\":\"%s\"}",
                     (unsigned long long)cursor->seq, cursor->front->inner->name);
    if (json.data == NULL) {
        return call_fail(call_of(call), NG_EINTERNAL, "out of memory");
    }
    return store_draft_json(next, json);
}

static int delivery_store_cursor(struct journal_front *front, struct call *call, uint64_t seq)
{
    struct delivery_cursor value = {front, seq};
    struct ng_change change = {
        .size = sizeof(change),
        .key =
            journal_key(JOURNAL_STATE, ng_str_of(DELIVERY_SPACE), ng_str_of(DELIVERY_CURSOR)),
        .fn = delivery_write_cursor,
        .user = &value,
    };
    int rc = store_write_wait(front->store, call, &change, 1);
    if (rc == NG_OK) {
        lock_take(&front->lock);
        front->stored = seq;
        lock_release(&front->lock);
    }
    return rc;
}

int delivery_stored_cursor(struct journal_front *front, struct call *call, uint64_t *ret)
{
    struct ng_key key =
        journal_key(JOURNAL_STATE, ng_str_of(DELIVERY_SPACE), ng_str_of(DELIVERY_CURSOR));
    const struct ng_doc *doc = NULL;
    int64_t seq = 0;
    int rc = store_get(front->store, call, &key, 0, &doc);
    if (rc == NG_OK && doc->revision > 0 && !doc->deleted && cursor_is_of(front, doc->body)) {
        (void)json_integer(json_get(doc->body, "seq"), &seq);
    }
    *ret = (uint64_t)i64_max(seq, 0);
    return rc;
}

int delivery_load_cursor(struct journal_front *front, struct call *call)
{
    uint64_t seq = 0;
    int rc = delivery_stored_cursor(front, call, &seq);
    if (rc == NG_OK && seq > 0) {
        lock_take(&front->lock);
        /* Keeps a later cursor in memory, so that skipped events are not read again. */
        front->cursor = u64_max(seq, front->cursor);
        front->stored = seq;
        front->seen = u64_max(front->cursor, front->seen);
        lock_release(&front->lock);
    }
    return rc;
}

/* ---- one round ---- */

struct delivery_page {
    struct journal_front *front;
    struct call *call;
    struct ng_entry entries[DELIVERY_PAGE];
    const struct ng_entry *list[DELIVERY_PAGE]; /* pointers to them */
    size_t count;
    size_t events;
    uint64_t last_seq;
    int rc;
};

static int delivery_event(void *user, const struct ng_event *event)
{
    struct delivery_page *page = user;
    if (delivery_wants(page->front, event->key.collection)) {
        page->rc =
            journal_entry_of_event(&page->call->arena, event, &page->entries[page->count]);
        page->list[page->count] = &page->entries[page->count];
        if (page->rc != NG_OK) {
            return 1;
        }
        page->count++;
    }
    page->events++;
    page->last_seq = event->seq;
    return page->events == DELIVERY_PAGE;
}

/* An entry that the journal refuses as invalid would block all later ones: logs and skips it.
 */
static int delivery_send_singly(struct journal_front *front, struct call *call,
                                const struct delivery_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct ng_entry *entry = &page->entries[i];
        int rc = front->inner->deliver(front->db, &call->pub, &entry, 1);
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
        rc = front->inner->deliver(front->db, &call->pub, page->list, page->count);
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
        front->backlog -= page->entries[i].seq <= front->seen;
    }
    front->cursor = page->last_seq;
    front->seen = u64_max(front->cursor, front->seen);
    /* Corrects the count, which misses events of other gateways. */
    if (front->wanted <= front->cursor) {
        front->backlog = 0;
    }
    lock_release(&front->lock);
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
    if (rc == NG_OK && page->count > 0) {
        rc = delivery_send(front, call, page);
    }
    if (rc != NG_OK) {
        return rc;
    }
    *ret_more = page->events == DELIVERY_PAGE;
    if (page->events == 0) {
        /* Detects the loss and the return of the journal also without events. */
        return front->remote ? front->inner->health(front->db, &call->pub) : NG_OK;
    }
    delivery_moved(front, page);
    /* Without a stored cursor events are delivered once more after a restart: harmless. */
    bool due = page->count > 0 || page->last_seq - stored > DELIVERY_LAG_MAX;
    return due ? delivery_store_cursor(front, call, page->last_seq) : NG_OK;
}

/* Counts events from before the watch, which belong to the backlog. */
struct delivery_count {
    struct journal_front *front;
    uint64_t until, last_seq, last_wanted;
    int64_t wanted;
    uint32_t events;
};

static int delivery_count_event(void *user, const struct ng_event *event)
{
    struct delivery_count *count = user;
    if (event->seq > count->until) {
        return 1;
    }
    count->events++;
    count->last_seq = event->seq;
    if (delivery_wants(count->front, event->key.collection)) {
        count->wanted++;
        count->last_wanted = event->seq;
    }
    return 0;
}

static void delivery_count_older(struct journal_front *front, uint64_t since, uint64_t until)
{
    struct delivery_count count = {.front = front, .until = until, .last_seq = since};
    int rc = NG_OK;
    do {
        struct call *call = call_new(front->gateway);
        count.events = 0;
        if (call == NULL) {
            return;
        }
        call->may_block = true;
        rc = store_changes(front->store, call, count.last_seq, DELIVERY_PAGE,
                           delivery_count_event, &count);
        call_unref(call);
    } while (rc == NG_OK && count.events == DELIVERY_PAGE && count.wanted < DELIVERY_COUNT_MAX);
    lock_take(&front->lock);
    if (store_is_shared(front->store)) {
        front->backlog = 0;
    }
    front->backlog += count.wanted;
    front->wanted = u64_max(front->wanted, count.last_wanted);
    lock_release(&front->lock);
}

/* ---- shared documents ---- */

/* Another gateway delivers: takes over its cursor, and fails if the journal is unreachable. */
static int delivery_follow(struct journal_front *front, struct call *call)
{
    int rc = delivery_load_cursor(front, call);
    if (rc != NG_OK) {
        return rc;
    }
    delivery_count_older(front, front->cursor, UINT64_MAX);
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
    if (front->follows) {
        return delivery_follow(front, call);
    }
    /* The owner reloads the cursor, too: a flush of another gateway may have moved it, and a
     * restore may have moved it back. */
    rc = delivery_load_cursor(front, call);
    if (rc == NG_OK) {
        rc = delivery_round(front, call, ret_more);
    }
    if (rc != NG_OK) {
        delivery_count_older(front, front->cursor, UINT64_MAX);
    }
    return rc;
}

/* ---- the thread ---- */

static void delivery_failed(struct journal_front *front, const struct call *call, int rc)
{
    lock_take(&front->lock);
    /* A stop cancels the present round: no failure to report. */
    bool tell = !front->degraded && front->state != DELIVERY_STOPPING;
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
    lock_take(&front->lock);
    front->current = call;
    front->flush_tried = front->flush_asked;
    uint64_t ticket = front->flush_tried;
    lock_release(&front->lock);
    int rc = store_is_shared(front->store)
                 ? delivery_shared_round(front, call, ticket, ret_more)
                 : delivery_round(front, call, ret_more);
    lock_take(&front->lock);
    front->current = NULL;
    lock_release(&front->lock);
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
        delivery_count_older(front, since, until);
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
            wait_ms = i64_min(wait_ms * 2, DELIVERY_WAIT_LAST_MS);
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
