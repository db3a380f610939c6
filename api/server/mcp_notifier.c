/* SPDX-License-Identifier: MIT */
/* mcp_notifier.c - from events to notifications. The feed and plugins only leave a mark and
 * wake a worker; the worker takes everything that is due and sends it. */
#include "mcp_notifier.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "api/protocol/mcp_message.h"
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/call/buffered.h"
#include "core/dispatch/dispatch.h"
#include "core/feed/feed.h"
#include "core/keys/keys.h"

#define NOTIFIER_BUCKETS 64 /* a power of two */
/* A message: a URI, fully escaped at worst, and its frame. */
#define WATCH_MESSAGE_MAX (6 * RESOURCE_URI_MAX + 4096)
/* Events taken in one go before others get the worker. */
#define WATCH_TURN 256

struct subscription {
    struct subscription *next;
    uint64_t hash;
    const char *collection; /* of the kind; NULL: nothing tells of its changes */
    struct ng_str name;     /* of the source, what keeps kinds of one collection apart */
    struct ng_str space, id, uri;
    size_t size; /* in limits.buffered */
    char texts[];
};

enum turn { TURN_NONE = 0, TURN_DUE, TURN_RUNS, TURN_RUNS_DUE };

struct mcp_notifier {
    struct gateway *gateway;
    struct call *who;    /* the caller as it was at first */
    struct call *rights; /* the caller with the rights of its key now; under table_lock */
    mcp_notifier_send_fn *send;
    void *user;
    char *meta; /* JSON members, or NULL */
    unsigned lists;
    atomic_uint changed; /* changed lists to notify */
    atomic_int turn;     /* enum turn: at most one worker at a time */
    atomic_int refs;
    struct task task;
    struct lock lock; /* of sending and the reader; may be held while the feed is asked */
    struct feed_reader *reader;
    bool open, closed, listed;
    struct lock table_lock; /* of the table and `rights`; taken under locks of the feed */
    struct subscription *table[NOTIFIER_BUCKETS];
    size_t count, bytes;           /* of URIs */
    LIST_ENTRY(mcp_notifier) link; /* in the gateway's list */
};

/* gateway->lists_user. */
struct notifiers {
    struct lock lock;
    LIST_HEAD(, mcp_notifier) list;
    int refs;
};

/* ---- subscriptions ---- */

static uint64_t hash_of(struct ng_str space, struct ng_str id)
{
    return str_hash(id) ^ (str_hash(space) << 1);
}

static struct subscription **find(struct mcp_notifier *notifier, struct ng_str name,
                                  struct ng_str space, struct ng_str id)
{
    uint64_t hash = hash_of(space, id);
    struct subscription **at = &notifier->table[hash & (NOTIFIER_BUCKETS - 1)];
    while (*at != NULL && ((*at)->hash != hash || !str_equal((*at)->name, name) ||
                           !str_equal((*at)->space, space) || !str_equal((*at)->id, id))) {
        at = &(*at)->next;
    }
    return at;
}

/* Resources without a kind have no space of their own: their id is all. */
static struct ng_str space_of(const struct mcp_source *source, const struct mcp_uri *uri)
{
    return source->desc->kind != NULL ? uri->space : ng_str_of("");
}

static void subscription_free(struct mcp_notifier *notifier, struct subscription *gone)
{
    if (gone != NULL) {
        buffered_give(notifier->gateway, notifier->who->caller.agent, gone->size);
        free(gone);
    }
}

int mcp_notifier_add(struct mcp_notifier *notifier, const struct mcp_source *source,
                     const struct mcp_uri *uri, struct ng_str text)
{
    struct ng_str space = space_of(source, uri);
    size_t size = sizeof(struct subscription) + space.len + uri->id.len + text.len;
    lock_take(&notifier->table_lock);
    bool known = *find(notifier, mcp_source_name(source->desc), space, uri->id) != NULL;
    lock_release(&notifier->table_lock);
    if (known) {
        return NG_OK;
    }
    int rc = buffered_take(notifier->gateway, notifier->who->caller.agent, 0, size);
    if (rc != NG_OK) {
        return rc;
    }
    struct subscription *made = alloc_zeroed(1, size);
    if (made == NULL) {
        buffered_give(notifier->gateway, notifier->who->caller.agent, size);
        return NG_EINTERNAL;
    }
    made->size = size;
    char *at = made->texts;
    made->collection = source->desc->collection;
    made->name = mcp_source_name(source->desc);
    made->space = str_move_in(&at, space);
    made->id = str_move_in(&at, uri->id);
    made->uri = str_move_in(&at, text);
    made->hash = hash_of(made->space, made->id);
    lock_take(&notifier->table_lock);
    struct subscription **place = find(notifier, made->name, made->space, made->id);
    known = *place != NULL;
    if (!known && (notifier->count >= MCP_SUBSCRIPTIONS_MAX ||
                   text.len > MCP_SUBSCRIPTIONS_BYTES_MAX - notifier->bytes)) {
        rc = NG_ETOOLARGE;
    } else if (!known) {
        *place = made;
        notifier->count++;
        notifier->bytes += text.len;
    }
    lock_release(&notifier->table_lock);
    if (known || rc != NG_OK) {
        subscription_free(notifier, made);
    }
    return rc;
}

bool mcp_notifier_remove(struct mcp_notifier *notifier, const struct mcp_source *source,
                         const struct mcp_uri *uri)
{
    lock_take(&notifier->table_lock);
    struct subscription **place =
        find(notifier, mcp_source_name(source->desc), space_of(source, uri), uri->id);
    struct subscription *gone = *place;
    if (gone != NULL) {
        *place = gone->next;
        notifier->count--;
        notifier->bytes -= gone->uri.len;
    }
    lock_release(&notifier->table_lock);
    bool found = gone != NULL;
    subscription_free(notifier, gone);
    return found;
}

/* ---- rights of the key ---- */

static bool rights_are_old(struct mcp_notifier *notifier)
{
    lock_take(&notifier->table_lock);
    bool old = key_rights_changed(notifier->rights->key);
    lock_release(&notifier->table_lock);
    return old;
}

/* With notifier->lock held. False: they cannot be had now, and nothing may be sent. */
static bool renew_rights(struct mcp_notifier *notifier)
{
    struct call *now = auth_call_again(notifier->who);
    if (now == NULL) {
        return false;
    }
    lock_take(&notifier->table_lock);
    struct call *before = notifier->rights;
    notifier->rights = now;
    lock_release(&notifier->table_lock);
    call_unref(before);
    (void)atomic_fetch_or(&notifier->changed, notifier->lists);
    return true;
}

/* Under table_lock: is the event a change of it, which the key still may see? */
static bool tells_of(const struct mcp_notifier *notifier, const struct subscription *at,
                     const struct ng_event *event, uint64_t hash)
{
    if (at->collection == NULL || !str_is(event->key.collection, at->collection) ||
        !str_equal(at->id, event->key.id)) {
        return false;
    }
    struct call *who = notifier->rights;
    bool visible = mcp_space_visible(who, event->key.space);
    bool sees = visible && dispatch_sees_collection(who, event->key.collection);
    return (who->key == NULL || sees) &&
           (at->space.len == 0 ? visible
                               : at->hash == hash && str_equal(at->space, event->key.space));
}

/* ---- what an event means ---- */

/* Under table_lock: does a resource come or go with it? */
static bool changes_list(const struct mcp_notifier *notifier, const struct ng_event *event)
{
    struct mcp_source source;
    bool comes = str_is(event->action, "created") || str_is(event->action, "deleted") ||
                 str_is(event->action, "moved") || str_is(event->action, "renamed") ||
                 str_is(event->action, NG_ACTION_UNDONE) ||
                 (event->revision == 1 && !str_is(event->action, "updated"));
    if ((notifier->lists & NG_LIST_RESOURCES) == 0 || !comes ||
        !mcp_space_listed(notifier->rights, event->key.space)) {
        return false;
    }
    for (size_t i = 0; mcp_source_at(notifier->gateway, i, &source); i++) {
        if (source.desc->collection != NULL &&
            str_is(event->key.collection, source.desc->collection) &&
            mcp_sees_plugin(notifier->rights, source.plugin)) {
            return true;
        }
    }
    return false;
}

/* The first subscription behind `after` (NULL: from the start) of the event's buckets that it
 * is a change of. Those without a space are in another bucket than the event's. */
static struct subscription *next_subscribed(struct mcp_notifier *notifier,
                                            const struct ng_event *event, unsigned bucket,
                                            const struct subscription *after)
{
    uint64_t hash = hash_of(event->key.space, event->key.id);
    struct subscription *at = notifier->table[bucket];
    if (after != NULL) {
        at = after->next;
    }
    while (at != NULL && !tells_of(notifier, at, event, hash)) {
        at = at->next;
    }
    return at;
}

static unsigned bucket_of(const struct ng_event *event, bool spaceless)
{
    struct ng_str space = spaceless ? ng_str_of("") : event->key.space;
    return (unsigned)(hash_of(space, event->key.id) & (NOTIFIER_BUCKETS - 1));
}

static bool notifier_wants(void *user, const struct ng_event *event)
{
    struct mcp_notifier *notifier = user;
    if (rights_are_old(notifier)) {
        return true; /* the next turn decides, with the new ones */
    }
    lock_take(&notifier->table_lock);
    bool wanted = changes_list(notifier, event);
    if (!wanted && notifier->count > 0) {
        wanted = next_subscribed(notifier, event, bucket_of(event, false), NULL) != NULL ||
                 next_subscribed(notifier, event, bucket_of(event, true), NULL) != NULL;
    }
    lock_release(&notifier->table_lock);
    return wanted;
}

/* ---- sending; with notifier->lock held ---- */

static void send_message(struct mcp_notifier *notifier, const char *method, struct ng_str uri)
{
    struct buf text;
    buf_init(&text, WATCH_MESSAGE_MAX);
    mcp_print_notification(&text, method, uri, notifier->meta);
    if (text.rc == NG_OK) {
        notifier->send(notifier->user, buf_str(&text));
    }
    buf_done(&text);
}

static void send_lists(struct mcp_notifier *notifier)
{
    unsigned changed = atomic_exchange(&notifier->changed, 0) & notifier->lists;
    if ((changed & NG_LIST_TOOLS) != 0) {
        send_message(notifier, "tools/list_changed", STR_NONE);
    }
    if ((changed & NG_LIST_PROMPTS) != 0) {
        send_message(notifier, "prompts/list_changed", STR_NONE);
    }
    if ((changed & NG_LIST_RESOURCES) != 0) {
        send_message(notifier, "resources/list_changed", STR_NONE);
    }
}

/* The URIs of one bucket that the event tells of (event NULL: all of it), copied: sending under
 * table_lock would hold up the feed. */
static void send_bucket(struct mcp_notifier *notifier, const struct ng_event *event,
                        unsigned bucket)
{
    struct buf uris;
    buf_init(&uris, MCP_SUBSCRIPTIONS_BYTES_MAX + MCP_SUBSCRIPTIONS_MAX * sizeof(size_t));
    lock_take(&notifier->table_lock);
    for (struct subscription *at = event == NULL
                                       ? notifier->table[bucket]
                                       : next_subscribed(notifier, event, bucket, NULL);
         at != NULL;
         at = event == NULL ? at->next : next_subscribed(notifier, event, bucket, at)) {
        (void)buf_add(&uris, &at->uri.len, sizeof(at->uri.len));
        (void)buf_add_str(&uris, at->uri);
    }
    lock_release(&notifier->table_lock);
    size_t at = 0;
    while (uris.rc == NG_OK && at < uris.len) {
        size_t len = 0;
        memcpy(&len, uris.data + at, sizeof(len));
        send_message(notifier, "resources/updated",
                     str_make(uris.data + at + sizeof(len), len));
        at += sizeof(len) + len;
    }
    buf_done(&uris);
}

static void send_event(struct mcp_notifier *notifier, const struct ng_event *event)
{
    unsigned bucket = bucket_of(event, false);
    unsigned spaceless = bucket_of(event, true);
    send_bucket(notifier, event, bucket);
    if (spaceless != bucket) {
        send_bucket(notifier, event, spaceless);
    }
    lock_take(&notifier->table_lock);
    bool changes = changes_list(notifier, event);
    lock_release(&notifier->table_lock);
    if (changes) {
        (void)atomic_fetch_or(&notifier->changed, NG_LIST_RESOURCES);
    }
}

/* ---- turns ---- */

static void notifier_free(struct mcp_notifier *notifier)
{
    for (size_t i = 0; i < NOTIFIER_BUCKETS; i++) {
        while (notifier->table[i] != NULL) {
            struct subscription *gone = notifier->table[i];
            notifier->table[i] = gone->next;
            subscription_free(notifier, gone);
        }
    }
    lock_done(&notifier->lock);
    lock_done(&notifier->table_lock);
    call_unref(notifier->rights);
    call_unref(notifier->who);
    free(notifier->meta);
    free(notifier);
}

void mcp_notifier_ref(struct mcp_notifier *notifier)
{
    (void)atomic_fetch_add(&notifier->refs, 1);
}

void mcp_notifier_unref(struct mcp_notifier *notifier)
{
    if (notifier != NULL && atomic_fetch_sub(&notifier->refs, 1) == 1) {
        notifier_free(notifier);
    }
}

/* There may be something to send: a worker looks, once for all that came until then. */
static void notifier_wake(void *user)
{
    struct mcp_notifier *notifier = user;
    int turn = atomic_load(&notifier->turn);
    int next;
    do {
        if (turn == TURN_DUE || turn == TURN_RUNS_DUE) {
            return;
        }
        next = TURN_RUNS_DUE;
        if (turn == TURN_NONE) {
            next = TURN_DUE;
        }
    } while (!atomic_compare_exchange_weak(&notifier->turn, &turn, next));
    if (next == TURN_DUE) {
        mcp_notifier_ref(notifier); /* the task's */
        pool_resume(notifier->gateway->pool, &notifier->task);
    }
}

static int open_reader(struct mcp_notifier *notifier)
{
    const struct feed_filter filter = {
        .all_spaces = true, /* notifier_wants() knows better */
        .wants = notifier_wants,
        .user = notifier,
    };
    if (notifier->gateway->feed == NULL) {
        return NG_OK;
    }
    return feed_open(notifier->gateway->feed, &filter, UINT64_MAX, notifier->who->caller.agent,
                     notifier_wake, notifier, &notifier->reader);
}

/* Events were lost to it: everything may have changed. */
static void start_over(struct mcp_notifier *notifier)
{
    feed_close(notifier->reader);
    notifier->reader = NULL;
    (void)open_reader(notifier);
    notifier_wake(notifier);
    for (unsigned i = 0; i < NOTIFIER_BUCKETS; i++) {
        send_bucket(notifier, NULL, i);
    }
    (void)atomic_fetch_or(&notifier->changed, NG_LIST_RESOURCES);
}

/* True: there is more. */
static bool take_turn(struct mcp_notifier *notifier)
{
    int rc = NG_OK;
    if (notifier->reader == NULL) {
        rc = NG_PENDING;
    }
    for (size_t i = 0; i < WATCH_TURN && rc == NG_OK; i++) {
        const struct ng_event *event = NULL;
        rc = feed_next(notifier->reader, &event);
        if (rc == NG_OK) {
            send_event(notifier, event);
        }
    }
    if (rc != NG_OK && rc != NG_PENDING) {
        start_over(notifier);
    }
    if (rc != NG_OK) {
        send_lists(notifier); /* once, behind what changed it */
    }
    return rc == NG_OK;
}

static void notifier_run(struct task *task)
{
    struct mcp_notifier *notifier =
        (struct mcp_notifier *)(void *)((char *)task - offsetof(struct mcp_notifier, task));
    atomic_store(&notifier->turn, TURN_RUNS);
    lock_take(&notifier->lock);
    bool more = notifier->open && key_live(notifier->who->key) &&
                (!rights_are_old(notifier) || renew_rights(notifier)) && take_turn(notifier);
    lock_release(&notifier->lock);
    int turn = TURN_RUNS;
    if (!more && atomic_compare_exchange_strong(&notifier->turn, &turn, TURN_NONE)) {
        mcp_notifier_unref(notifier);
        return;
    }
    atomic_store(&notifier->turn, TURN_DUE);
    pool_resume(notifier->gateway->pool, &notifier->task);
}

/* ---- life ---- */

int mcp_notifier_new(struct call *caller, unsigned lists, struct ng_str meta,
                     mcp_notifier_send_fn *send, void *user, struct mcp_notifier **ret)
{
    struct mcp_notifier *notifier = alloc_zeroed(1, sizeof(*notifier));
    if (notifier == NULL) {
        return NG_EINTERNAL;
    }
    lock_init(&notifier->lock, LOCK_NOTIFIER);
    lock_init(&notifier->table_lock, LOCK_NOTIFIER_TABLE);
    call_ref(caller);
    notifier->who = caller;
    call_ref(caller);
    notifier->rights = caller;
    notifier->gateway = caller->gateway;
    notifier->lists = lists;
    notifier->send = send;
    notifier->user = user;
    notifier->task.run = notifier_run;
    atomic_init(&notifier->refs, 1);
    atomic_init(&notifier->turn, TURN_NONE);
    atomic_init(&notifier->changed, 0);
    if (meta.data != NULL) {
        notifier->meta = str_dup(meta);
        if (notifier->meta == NULL) {
            notifier_free(notifier);
            return NG_EINTERNAL;
        }
    }
    *ret = notifier;
    return NG_OK;
}

static void join_list(struct mcp_notifier *notifier)
{
    struct notifiers *notifiers = notifier->gateway->lists_user;
    if (notifiers != NULL) {
        lock_take(&notifiers->lock);
        LIST_INSERT_HEAD(&notifiers->list, notifier, link);
        notifier->listed = true;
        lock_release(&notifiers->lock);
    }
}

static void leave_list(struct mcp_notifier *notifier)
{
    struct notifiers *notifiers = notifier->gateway->lists_user;
    if (notifiers != NULL && notifier->listed) {
        lock_take(&notifiers->lock);
        LIST_REMOVE(notifier, link);
        notifier->listed = false;
        lock_release(&notifiers->lock);
    }
}

int mcp_notifier_open(struct mcp_notifier *notifier, struct ng_str first)
{
    lock_take(&notifier->lock);
    int rc = NG_OK;
    if (!notifier->closed) {
        rc = open_reader(notifier);
    }
    if (rc == NG_OK && !notifier->closed) {
        notifier->open = true;
        if (first.data != NULL) {
            notifier->send(notifier->user, first);
        }
        join_list(notifier);
        notifier_wake(notifier); /* the feed wakes only readers that have asked once */
    }
    lock_release(&notifier->lock);
    return rc;
}

void mcp_notifier_tell_all(struct mcp_notifier *notifier)
{
    lock_take(&notifier->lock);
    if (notifier->open) {
        start_over(notifier);
        (void)atomic_fetch_or(&notifier->changed, notifier->lists);
    }
    lock_release(&notifier->lock);
}

void mcp_notifier_close(struct mcp_notifier *notifier)
{
    lock_take(&notifier->lock);
    bool was_open = notifier->open;
    notifier->open = false;
    notifier->closed = true;
    if (was_open) {
        leave_list(notifier);
    }
    feed_close(notifier->reader);
    notifier->reader = NULL;
    lock_release(&notifier->lock);
}

/* ---- plugins whose lists changed ---- */

static void lists_changed(struct gateway *gateway, unsigned lists, void *user)
{
    struct notifiers *notifiers = user;
    (void)gateway;
    lock_take(&notifiers->lock);
    for (struct mcp_notifier *at = LIST_FIRST(&notifiers->list); at != NULL;
         at = LIST_NEXT(at, link)) {
        if (lists == 0 && rights_are_old(at)) {
            notifier_wake(at);
        } else if ((at->lists & lists) != 0) {
            (void)atomic_fetch_or(&at->changed, lists);
            notifier_wake(at);
        }
    }
    lock_release(&notifiers->lock);
}

int mcp_notifiers_open(struct gateway *gateway)
{
    struct notifiers *notifiers = gateway->lists_user;
    if (notifiers == NULL) {
        notifiers = alloc_zeroed(1, sizeof(*notifiers));
        if (notifiers == NULL) {
            return NG_EINTERNAL;
        }
        lock_init(&notifiers->lock, LOCK_NOTIFIERS);
        gateway->lists_user = notifiers;
        gateway->lists_changed = lists_changed;
    }
    notifiers->refs++;
    return NG_OK;
}

void mcp_notifiers_close(struct gateway *gateway)
{
    struct notifiers *notifiers = gateway->lists_user;
    if (notifiers == NULL || --notifiers->refs > 0) {
        return;
    }
    gateway->lists_changed = NULL;
    gateway->lists_user = NULL;
    lock_done(&notifiers->lock);
    free(notifiers);
}
