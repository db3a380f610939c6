/* SPDX-License-Identifier: MIT */
/* journal_delivery.c - reads the change feed from a stored cursor and delivers what is for the
 * journal; waits and tries again where the journal is away. */
#include "journal_delivery.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Events read from the feed at a time. */
#define DELIVERY_PAGE NG_DELIVERY_MAX
/* Waiting after a failure is doubled from DELIVERY_WAIT_FIRST_MS to this. */
#define DELIVERY_WAIT_LAST_MS 30000
/* How often a feed is looked at that other gateways write to, and a journal on a server:
 * doubled from the first to the last while nothing comes. */
#define DELIVERY_POLL_FIRST_MS 50
#define DELIVERY_POLL_LAST_MS 2000
/* From the beginning of one round to that of the next at least, while events come steadily:
 * what came meanwhile is delivered, and committed, in one. */
#define DELIVERY_PACE_MS 20
/* Events that are counted at most to say how many wait. */
#define DELIVERY_COUNT_MAX 100000
/* Events that the stored cursor may lag behind where none of them is for the journal. */
#define DELIVERY_LAG_MAX 4096
/* One delivery's time. */
#define DELIVERY_TIMEOUT_MS 60000
#define DELIVERY_CURSOR "cursor"
/* The cursor is the gateway's, not a space's: it lies beside the pointers of the shared one. */
#define DELIVERY_SPACE "shared"

/* ---- what the store tells ---- */

static bool journal_wants(struct journal_front *front, struct ng_str collection)
{
    const struct ng_collection *found = store_collection(front->store, collection);
    return found != NULL && (found->flags & NG_COLLECTION_REFERENCED) != 0;
}

/* On the committing thread: counts, and wakes the delivery only for what concerns it. */
static void journal_watch(void *user, const struct ng_event *events, size_t count)
{
    struct journal_front *front = user;
    pthread_mutex_lock(&front->lock);
    bool wake = false;
    for (size_t i = 0; i < count && front->shared; i++) {
        /* Not numbered yet, perhaps: it comes with the feed. */
        front->poll = front->poll || journal_wants(front, events[i].key.collection);
        wake = front->poll;
    }
    for (size_t i = 0; i < count && !front->shared; i++) {
        front->seen = u64_max(events[i].seq, front->seen);
        /* The delivery may have been quicker. */
        if (events[i].seq > front->cursor && journal_wants(front, events[i].key.collection)) {
            front->wanted = events[i].seq;
            front->backlog++;
            wake = true;
        }
    }
    wake = wake || (!front->shared && front->seen - front->stored > DELIVERY_LAG_MAX);
    if (wake && front->asleep) {
        pthread_cond_signal(&front->wake);
    }
    pthread_mutex_unlock(&front->lock);
}

/* ---- the cursor ---- */

/* Of which journal it tells. Another one, as after `journal` was set anew or a backup was put
 * back, gets all events there are: what it has already it passes over. */
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
        return NG_OK; /* another gateway is further */
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
    struct delivery_cursor *value = arena_alloc(&call->arena, sizeof(*value));
    if (value == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    *value = (struct delivery_cursor){front, seq};
    struct ng_change change = {
        .size = sizeof(change),
        .key =
            journal_key(JOURNAL_STATE, ng_str_of(DELIVERY_SPACE), ng_str_of(DELIVERY_CURSOR)),
        .fn = delivery_write_cursor,
        .user = value,
    };
    int rc = store_write_wait(front->store, call, &change, 1);
    if (rc == NG_OK) {
        pthread_mutex_lock(&front->lock);
        front->stored = seq;
        pthread_mutex_unlock(&front->lock);
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
    if (seq < 0) {
        *ret = 0;
    } else {
        *ret = (uint64_t)seq;
    }
    return rc;
}

int delivery_load_cursor(struct journal_front *front, struct call *call)
{
    uint64_t seq = 0;
    int rc = delivery_stored_cursor(front, call, &seq);
    if (rc == NG_OK && seq > 0) {
        pthread_mutex_lock(&front->lock);
        /* What was passed over since is not read again. */
        front->cursor = u64_max(seq, front->cursor);
        front->stored = seq;
        front->seen = u64_max(front->cursor, front->seen);
        pthread_mutex_unlock(&front->lock);
    }
    return rc;
}

/* ---- a round of the delivery ---- */

struct delivery_page {
    struct journal_front *front;
    struct call *call;
    struct ng_entry entries[DELIVERY_PAGE];
    const struct ng_entry *list[DELIVERY_PAGE]; /* of them */
    size_t count;
    size_t events;
    uint64_t last_seq;
    int rc;
};

static int delivery_event(void *user, const struct ng_event *event)
{
    struct delivery_page *page = user;
    if (journal_wants(page->front, event->key.collection)) {
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

/* An entry that the journal refuses for what it is would hold up all behind it: it is left out,
 * and the log says so. */
static int delivery_send_singly(struct journal_front *front, struct call *call,
                                const struct delivery_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct ng_entry *entry = &page->entries[i];
        int rc = front->inner->deliver(front->db, &call->pub, &entry, 1);
        if (rc == NG_EINVAL || rc == NG_ETOOLARGE) {
            log_write(
                NG_LOG_ERROR, "journal", "event %.*s is left out, the journal refuses it: %.*s",
                (int)entry->event_id.len, entry->event_id.data, (int)call->staged.message.len,
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
    pthread_mutex_lock(&front->lock);
    for (size_t i = 0; i < page->count; i++) {
        front->backlog -= page->entries[i].seq <= front->seen;
    }
    front->cursor = page->last_seq;
    front->seen = u64_max(front->cursor, front->seen);
    /* Events of other gateways were never told: here the count is true again. */
    if (front->wanted <= front->cursor) {
        front->backlog = 0;
    }
    pthread_mutex_unlock(&front->lock);
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
    pthread_mutex_lock(&front->lock);
    uint64_t since = front->cursor;
    uint64_t stored = front->stored;
    pthread_mutex_unlock(&front->lock);
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
        /* Nobody may have to write to learn that the journal is away, or back. */
        if (!front->remote) {
            return NG_OK;
        }
        return front->inner->health(front->db, &call->pub);
    }
    delivery_moved(front, page);
    /* A cursor that is not stored means a repeated delivery after a restart, no more. */
    bool due = page->count > 0 || page->last_seq - stored > DELIVERY_LAG_MAX;
    if (!due) {
        return NG_OK;
    }
    return delivery_store_cursor(front, call, page->last_seq);
}

/* Events that were there before the watch are part of the backlog from the start. */
struct delivery_counting {
    struct journal_front *front;
    uint64_t until, last_seq, last_wanted;
    int64_t wanted;
    uint32_t events;
};

static int delivery_count_event(void *user, const struct ng_event *event)
{
    struct delivery_counting *counting = user;
    if (event->seq > counting->until) {
        return 1;
    }
    counting->events++;
    counting->last_seq = event->seq;
    if (journal_wants(counting->front, event->key.collection)) {
        counting->wanted++;
        counting->last_wanted = event->seq;
    }
    return 0;
}

static void delivery_count_older(struct journal_front *front, uint64_t since, uint64_t until)
{
    struct delivery_counting counting = {.front = front, .until = until, .last_seq = since};
    int rc = NG_OK;
    do {
        struct call *call = call_new(front->gateway);
        counting.events = 0;
        if (call == NULL) {
            return;
        }
        call->may_block = true;
        rc = store_changes(front->store, call, counting.last_seq, DELIVERY_PAGE,
                           delivery_count_event, &counting);
        call_unref(call);
    } while (rc == NG_OK && counting.events == DELIVERY_PAGE &&
             counting.wanted < DELIVERY_COUNT_MAX);
    pthread_mutex_lock(&front->lock);
    front->backlog = counting.wanted + (front->shared ? 0 : front->backlog);
    if (counting.last_wanted > front->wanted) {
        front->wanted = counting.last_wanted;
    }
    pthread_mutex_unlock(&front->lock);
}

/* ---- with other gateways ---- */

/* Another gateway delivers: how far it is, and whether it could. */
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

/* ticket: who waits for everything to be delivered does not wait for another gateway. */
static int delivery_shared_round(struct journal_front *front, struct call *call,
                                 uint64_t ticket, bool *ret_more)
{
    bool mine = false;
    int rc = journal_lease_take(front, call, &mine);
    pthread_mutex_lock(&front->lock);
    bool asked = ticket > front->flush_done;
    pthread_mutex_unlock(&front->lock);
    if (rc != NG_OK) {
        return rc;
    }
    front->follows = !mine && !asked;
    if (front->follows) {
        return delivery_follow(front, call);
    }
    /* Also the owner: another gateway that was asked to may have delivered, and a restore may
     * have taken that back since. */
    rc = delivery_load_cursor(front, call);
    if (rc == NG_OK) {
        rc = delivery_round(front, call, ret_more);
    }
    if (rc != NG_OK) {
        delivery_count_older(front, front->cursor, UINT64_MAX);
    }
    return rc;
}

/* ---- the delivery's thread ---- */

static void delivery_failed(struct journal_front *front, const struct call *call, int rc)
{
    pthread_mutex_lock(&front->lock);
    /* A stop cancels the round under way: no news. */
    bool tell = !front->degraded && !front->stopping;
    front->degraded = true;
    front->failures++;
    pthread_cond_broadcast(&front->moved);
    pthread_mutex_unlock(&front->lock);
    if (tell) {
        struct ng_str text;
        if (call == NULL) {
            text = ng_str_of("out of memory");
        } else {
            text = call->staged.message;
        }
        log_write(NG_LOG_WARNING, "journal",
                  "events wait, the journal does not take them (%s): %.*s",
                  error_name(NULL, rc), (int)text.len, text.data == NULL ? "" : text.data);
    }
}

static void delivery_succeeded(struct journal_front *front, bool more, uint64_t ticket)
{
    pthread_mutex_lock(&front->lock);
    bool tell = front->degraded;
    front->degraded = false;
    if (!more && front->shared && !front->follows) {
        front->backlog = 0;
    }
    if (!more && !front->follows) {
        front->flush_done = ticket;
        pthread_cond_broadcast(&front->moved);
    }
    pthread_mutex_unlock(&front->lock);
    if (tell) {
        log_write(NG_LOG_INFO, "journal", "the journal takes events again");
    }
}

/* One round in a call of its own, so that its memory does not add up. */
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
    pthread_mutex_lock(&front->lock);
    front->current = call;
    front->flush_tried = front->flush_asked;
    uint64_t ticket = front->flush_tried;
    pthread_mutex_unlock(&front->lock);
    int rc;
    if (front->shared) {
        rc = delivery_shared_round(front, call, ticket, ret_more);
    } else {
        rc = delivery_round(front, call, ret_more);
    }
    pthread_mutex_lock(&front->lock);
    front->current = NULL;
    pthread_mutex_unlock(&front->lock);
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

/* As far as this gateway knows, nothing is to be done. */
static bool delivery_idle(const struct journal_front *front)
{
    if (front->shared) {
        return !front->poll && !delivery_flush_due(front);
    }
    return front->wanted <= front->cursor && front->seen - front->stored <= DELIVERY_LAG_MAX &&
           !delivery_flush_due(front);
}

/* With the lock held: until CLOCK_MONOTONIC reaches `until_ns`, or sooner. */
bool delivery_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
    struct timespec at = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}

/* With the lock held: new events do not shorten the wait after a failure, a flush does. */
static void delivery_back_off(struct journal_front *front, int64_t wait_ms)
{
    int64_t until = clock_monotonic_ns() + wait_ms * 1000000;
    while (!front->stopping && !delivery_flush_due(front) &&
           delivery_wait_until(&front->wake, &front->lock, until)) {
    }
}

/* With the lock held: until it is time for a round, which a flush asks for at once. */
static void delivery_pace(struct journal_front *front, int64_t begun_ns)
{
    int64_t until = begun_ns + (int64_t)DELIVERY_PACE_MS * 1000000;
    while (!front->stopping && !delivery_flush_due(front) &&
           delivery_wait_until(&front->wake, &front->lock, until)) {
    }
}

/* With the lock held. */
static void delivery_sleep(struct journal_front *front)
{
    int64_t until = clock_monotonic_ns() + front->poll_ms * 1000000;
    front->poll_ms = i64_min(front->poll_ms * 2, DELIVERY_POLL_LAST_MS);
    front->asleep = true;
    while (!front->stopping && delivery_idle(front)) {
        if (!front->shared && !front->remote) {
            pthread_cond_wait(&front->wake, &front->lock);
        } else if (!delivery_wait_until(&front->wake, &front->lock, until)) {
            break;
        }
    }
    front->asleep = false;
}

static void *delivery_run(void *user)
{
    struct journal_front *front = user;
    int64_t wait_ms = DELIVERY_WAIT_FIRST_MS;
    pthread_mutex_lock(&front->lock);
    uint64_t since = front->cursor;
    uint64_t until = front->opened;
    pthread_mutex_unlock(&front->lock);
    if (until > since && !front->shared) {
        delivery_count_older(front, since, until);
    }
    pthread_mutex_lock(&front->lock);
    front->counted = true;
    front->poll_ms = DELIVERY_POLL_FIRST_MS;
    while (!front->stopping) {
        bool more = false;
        if (front->poll) {
            front->poll_ms = DELIVERY_POLL_FIRST_MS;
        }
        front->poll = false;
        int64_t begun_ns = clock_monotonic_ns();
        pthread_mutex_unlock(&front->lock);
        int rc = delivery_step(front, &more);
        pthread_mutex_lock(&front->lock);
        if (rc != NG_OK) {
            delivery_back_off(front, wait_ms);
            wait_ms = i64_min(wait_ms * 2, DELIVERY_WAIT_LAST_MS);
            continue;
        }
        wait_ms = DELIVERY_WAIT_FIRST_MS;
        if (!more) {
            delivery_sleep(front);
            delivery_pace(front, begun_ns);
        }
    }
    pthread_mutex_unlock(&front->lock);
    return NULL;
}

int delivery_start(struct journal_front *front, struct call *call)
{
    int rc = store_watch(front->store, journal_watch, front);
    if (rc != NG_OK) {
        return call_fail(call, rc, "the store takes no further watcher");
    }
    if (pthread_create(&front->thread, NULL, delivery_run, front) != 0) {
        front->stopping = true;
        return call_fail(call, NG_EINTERNAL, "no thread could be started for the journal");
    }
    front->running = true;
    return NG_OK;
}
