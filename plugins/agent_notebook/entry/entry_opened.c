/* SPDX-License-Identifier: MIT */
/*
 * entry_opened.c - references of openings, written a little later and many at once.
 *
 * Openings of one agent wait in a batch for OPENED_WAIT_MS at most, then the plugin's one
 * thread hands the batch to the store, as one change of a few documents (slots), whose events
 * name the entries that were opened. A change of an entry sends the batches that know of it on
 * their way first: commits become durable in the order in which they were asked for. A batch
 * that could not be written waits and is tried again.
 */
#include "entry_opened.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "entry.h"
#include "entry_text.h"

#define OPENED_WAIT_MS 200
/* Openings of a batch. */
#define OPENED_BATCH_MAX 64
/* Batches in memory. Over that reads wait for room, so that they come no faster than they can
 * be written; who has waited so long is told to come back (BUSY). */
#define OPENED_BATCHES_MAX 256
#define OPENED_ROOM_MS 2000
/* Batches that are in the store's hands at once: there each opening is a change of its own,
 * with some kilobytes of memory. The others wait here, where it has some hundred bytes. */
#define OPENED_WRITING_MAX 32
/* Slots of an agent. Which one is this process's is left to chance, so that gateways on one
 * database seldom share one. */
#define OPENED_SLOTS 16
#define OPENED_AGENT_SIZE 65
#define OPENED_SLOT_SIZE (OPENED_AGENT_SIZE + 4)
/* After a failure, from the first to the last wait. */
#define OPENED_RETRY_FIRST_MS 100
#define OPENED_RETRY_LAST_MS 5000
/* Deletions that are remembered, to drop openings that came too late. */
#define OPENED_DELETED_MAX 256

struct opened_batch;

struct opened_item {
    struct opened_batch *batch;
    struct ng_change change;
    struct ng_str data;
    bool written;
    char *bytes; /* collection, space, id and the event's JSON, one behind the other */
    size_t collection_len, space_len, id_len, data_len;
    uint64_t version;
};

struct opened_batch {
    struct opened_batch *next, *before;
    struct entry_opened *opened;
    char agent[OPENED_AGENT_SIZE];
    int64_t due_ms;
    int64_t retry_ms; /* the last wait after a failure; 0: none yet */
    bool failed;      /* one of its changes has, in this try */
    size_t pending;   /* changes that have not ended */
    size_t count;
    uint64_t
        hashes[OPENED_BATCH_MAX]; /* of the items' keys, side by side for who looks for one */
    struct opened_item items[OPENED_BATCH_MAX];
    char slot[OPENED_SLOT_SIZE];
};

struct opened_deletion {
    uint64_t hash; /* of the key */
    uint64_t version;
};

struct entry_opened {
    const struct ng_host *host;
    pthread_t thread;
    pthread_mutex_t
        order; /* who puts deletions or batches into the store's queue; before lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct opened_batch *first, *last; /* guarded by lock, as all below */
    size_t batches;                    /* waiting or being written */
    size_t writing;
    struct opened_deletion deleted[OPENED_DELETED_MAX];
    size_t next_deleted;
    unsigned slot;
    bool stopping;
};

static int64_t opened_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- items ---- */

static struct ng_key item_key(const struct opened_item *item)
{
    const char *at = item->bytes;
    struct ng_key key = {
        {at, item->collection_len},
        {at + item->collection_len, item->space_len},
        {at + item->collection_len + item->space_len, item->id_len},
    };
    return key;
}

static struct ng_str item_data(const struct opened_item *item)
{
    struct ng_str data = {item->bytes + item->collection_len + item->space_len + item->id_len,
                          item->data_len};
    return data;
}

static bool key_same(const struct ng_key *a, const struct ng_key *b)
{
    return entry_same(a->id, b->id) && entry_same(a->collection, b->collection) &&
           entry_same(a->space, b->space);
}

static uint64_t key_hash(const struct ng_key *key)
{
    const struct ng_str parts[] = {key->collection, key->space, key->id};
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        for (size_t j = 0; j < parts[i].len; j++) {
            hash = (hash ^ (unsigned char)parts[i].data[j]) * 1099511628211U;
        }
        hash = (hash ^ 0xff) * 1099511628211U;
    }
    return hash;
}

/* What the event says: the entry, and what its reference shows. */
static struct ng_str opening_data(struct ng_call *call, const struct entry_opening *opening)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    struct ng_str none = {NULL, 0};
    struct ng_str summary = {opening->summary.data,
                             entry_chars(opening->summary, ENTRY_SUMMARY_CHARS)};
    if (writer == NULL) {
        return none;
    }
    host->json_object(writer);
    host->json_name(writer, "about");
    host->json_object(writer);
    entry_put(call, writer, "collection", opening->key.collection);
    entry_put(call, writer, "id", opening->key.id);
    host->json_end(writer);
    entry_put(call, writer, "title", opening->title);
    entry_put(call, writer, "summary", summary);
    entry_put(call, writer, "status", opening->status);
    entry_put_int(call, writer, "version", opening->version);
    entry_put(call, writer, "source", ng_str_of("notebook"));
    host->json_name(writer, "tags");
    host->json_array(writer);
    host->json_string(writer, opening->key.collection);
    host->json_end(writer);
    host->json_name(writer, "score");
    host->json_number(writer, 0.8);
    host->json_end(writer);
    return host->json_result(writer);
}

static bool item_make(struct ng_call *call, const struct entry_opening *opening,
                      struct opened_item *ret)
{
    struct ng_str data = opening_data(call, opening);
    const struct ng_str parts[] = {opening->key.collection, opening->key.space, opening->key.id,
                                   data};
    size_t len = 0;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        len += parts[i].len;
    }
    *ret = (struct opened_item){
        .bytes = data.data == NULL ? NULL : malloc(len + 1),
        .collection_len = parts[0].len,
        .space_len = parts[1].len,
        .id_len = parts[2].len,
        .data_len = data.len,
        .version = opening->version,
    };
    size_t at = 0;
    for (size_t i = 0; ret->bytes != NULL && i < NG_COUNT(parts); i++) {
        if (parts[i].len > 0) {
            memcpy(ret->bytes + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
    }
    return ret->bytes != NULL;
}

/* ---- batches ---- */

static void batch_free(struct opened_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->items[i].bytes);
    }
    free(batch);
}

/* With the lock held. */
static void opened_link(struct entry_opened *opened, struct opened_batch *batch)
{
    batch->next = NULL;
    batch->before = opened->last;
    if (opened->last != NULL) {
        opened->last->next = batch;
    } else {
        opened->first = batch;
    }
    opened->last = batch;
}

/* With the lock held. */
static void opened_unlink(struct entry_opened *opened, struct opened_batch *batch)
{
    if (batch->before != NULL) {
        batch->before->next = batch->next;
    } else {
        opened->first = batch->next;
    }
    if (batch->next != NULL) {
        batch->next->before = batch->before;
    } else {
        opened->last = batch->before;
    }
}

/* With the lock held: the agent's batch that has room, or a new one. NULL: there are too many.
 * Only the newest of an agent's batches may have room, and it is among the last of the list. */
static struct opened_batch *opened_batch_of(struct entry_opened *opened, struct ng_str agent)
{
    struct opened_batch *batch = opened->last;
    while (batch != NULL && (batch->retry_ms > 0 || !entry_is(agent, batch->agent))) {
        batch = batch->before;
    }
    if (batch != NULL && batch->count == OPENED_BATCH_MAX) {
        batch = NULL;
    }
    if (batch != NULL || opened->batches >= OPENED_BATCHES_MAX) {
        return batch;
    }
    batch = calloc(1, sizeof(*batch));
    if (batch != NULL) {
        (void)snprintf(batch->agent, sizeof(batch->agent), "%.*s", (int)agent.len, agent.data);
        (void)snprintf(batch->slot, sizeof(batch->slot), "%s/%u", batch->agent, opened->slot);
        batch->opened = opened;
        batch->due_ms = opened_now_ms() + OPENED_WAIT_MS;
        opened_link(opened, batch);
        opened->batches++;
        (void)pthread_cond_broadcast(&opened->changed); /* the thread may sleep without end */
    }
    return batch;
}

/* With the lock held. */
static bool opened_is_late(const struct entry_opened *opened, const struct opened_item *item)
{
    struct ng_key key = item_key(item);
    uint64_t hash = key_hash(&key);
    for (size_t i = 0; i < OPENED_DELETED_MAX; i++) {
        if (opened->deleted[i].hash == hash && opened->deleted[i].version > item->version) {
            return true;
        }
    }
    return false;
}

/* ---- writing ---- */

static int opened_write_slot(struct ng_call *call, const struct ng_doc *present,
                             struct ng_draft *next, void *user)
{
    const struct ng_str *data = user;
    (void)present;
    call->host->draft_event(next, *data);
    return call->host->draft_json(next, ng_str_of("{}")); /* the event says it all */
}

/* From any thread: one more change of the batch has ended. Behind the last one the batch goes,
 * or waits for another try. */
static void batch_ended(struct opened_batch *batch, struct opened_item *item, int rc)
{
    struct entry_opened *opened = batch->opened;
    (void)pthread_mutex_lock(&opened->lock);
    batch->failed = batch->failed || rc != NG_OK;
    if (item != NULL) {
        item->written = rc == NG_OK;
    }
    bool last = --batch->pending == 0;
    bool again = last && batch->failed && !opened->stopping;
    if (again) {
        int64_t wait = batch->retry_ms == 0 ? OPENED_RETRY_FIRST_MS : batch->retry_ms * 2;
        batch->retry_ms = wait > OPENED_RETRY_LAST_MS ? OPENED_RETRY_LAST_MS : wait;
        batch->due_ms = opened_now_ms() + batch->retry_ms;
        opened_link(opened, batch);
    } else if (last) {
        opened->batches--;
    }
    if (last) {
        opened->writing--;
        (void)pthread_cond_broadcast(&opened->changed);
    }
    (void)pthread_mutex_unlock(&opened->lock);
    if (last && !again) {
        batch_free(batch);
    }
}

static void item_written(void *user, int rc)
{
    struct opened_item *item = user;
    batch_ended(item->batch, item, rc);
}

/* With `order` held: hands one opening to the store. */
static void item_write(struct entry_opened *opened, struct opened_item *item)
{
    struct opened_batch *batch = item->batch;
    (void)pthread_mutex_lock(&opened->lock);
    item->written = item->written || opened_is_late(opened, item);
    bool skip = item->written;
    batch->pending += skip ? 0 : 1;
    (void)pthread_mutex_unlock(&opened->lock);
    if (skip) {
        return;
    }
    item->data = item_data(item);
    item->change = (struct ng_change){
        .size = sizeof(item->change),
        .key = {ng_str_of(ENTRY_OPENED_COLLECTION), item_key(item).space,
                ng_str_of(batch->slot)},
        .fn = opened_write_slot,
        .user = &item->data,
        .action = "opened",
    };
    int rc = opened->host->change_as(opened->host, ng_str_of(batch->agent), &item->change, 1,
                                     item_written, item);
    if (rc != NG_OK) {
        item_written(item, rc);
    }
}

/* Hands a batch that is no longer in the list to the store. */
static void batch_write(struct entry_opened *opened, struct opened_batch *batch)
{
    (void)pthread_mutex_lock(&opened->lock);
    opened->writing++;
    batch->failed = false;
    batch->pending = 1; /* until all have been handed over */
    size_t count = batch->count;
    (void)pthread_mutex_unlock(&opened->lock);
    (void)pthread_mutex_lock(&opened->order);
    for (size_t i = 0; i < count; i++) {
        item_write(opened, &batch->items[i]);
    }
    (void)pthread_mutex_unlock(&opened->order);
    batch_ended(batch, NULL, NG_OK);
}

/* With the lock held: the first that is full or due, if one more may be written; else when one
 * will be. */
static struct opened_batch *opened_take(struct entry_opened *opened, int64_t *ret_due_ms)
{
    int64_t now = opened_now_ms();
    *ret_due_ms = INT64_MAX;
    if (opened->writing >= OPENED_WRITING_MAX) {
        return NULL; /* the end of one wakes */
    }
    for (struct opened_batch *batch = opened->first; batch != NULL; batch = batch->next) {
        bool full = batch->count == OPENED_BATCH_MAX && batch->retry_ms == 0;
        if (opened->stopping || full || batch->due_ms <= now) {
            opened_unlink(opened, batch);
            return batch;
        }
        *ret_due_ms = batch->due_ms < *ret_due_ms ? batch->due_ms : *ret_due_ms;
    }
    return NULL;
}

/* With the lock held, and without it meanwhile. */
static void opened_sleep(struct entry_opened *opened, int64_t until_ms)
{
    struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000L};
    (void)pthread_cond_timedwait(&opened->changed, &opened->lock, &until);
}

static void *opened_main(void *user)
{
    struct entry_opened *opened = user;
    int64_t due_ms = 0;
    (void)pthread_mutex_lock(&opened->lock);
    for (;;) {
        struct opened_batch *batch = opened_take(opened, &due_ms);
        if (batch != NULL) {
            (void)pthread_mutex_unlock(&opened->lock);
            batch_write(opened, batch);
            (void)pthread_mutex_lock(&opened->lock);
            continue;
        }
        if (opened->stopping && opened->writing == 0) {
            break;
        }
        if (due_ms == INT64_MAX) {
            (void)pthread_cond_wait(&opened->changed, &opened->lock);
            continue;
        }
        opened_sleep(opened, due_ms);
    }
    (void)pthread_mutex_unlock(&opened->lock);
    return NULL;
}

/* ---- what the tools call ---- */

/* With the lock held: whether something is being written, or will be without waiting longer. */
static bool opened_moves(const struct entry_opened *opened)
{
    const struct opened_batch *batch = opened->first;
    while (batch != NULL && batch->retry_ms > 0) {
        batch = batch->next;
    }
    return opened->writing > 0 || batch != NULL;
}

/* With the lock held: as opened_batch_of, but waits for room where the call may, unless nothing
 * can be written anyway. */
static struct opened_batch *opened_room(struct entry_opened *opened, struct ng_call *call)
{
    int64_t until_ms = opened_now_ms() + OPENED_ROOM_MS;
    struct opened_batch *batch = opened_batch_of(opened, call->caller->agent);
    while (batch == NULL && opened->batches >= OPENED_BATCHES_MAX &&
           call->host->may_block(call) && opened_moves(opened) && opened_now_ms() < until_ms) {
        opened_sleep(opened, until_ms);
        batch = opened_batch_of(opened, call->caller->agent);
    }
    return batch;
}

int entry_opened_add(struct entry_opened *opened, struct ng_call *call,
                     const struct entry_opening *opening)
{
    struct opened_item item;
    if (!item_make(call, opening, &item)) {
        return entry_no_memory(call);
    }
    (void)pthread_mutex_lock(&opened->lock);
    struct opened_batch *batch = opened_room(opened, call);
    if (batch != NULL) {
        item.batch = batch;
        batch->hashes[batch->count] = key_hash(&opening->key);
        batch->items[batch->count++] = item;
        if (batch->count == OPENED_BATCH_MAX) {
            (void)pthread_cond_broadcast(&opened->changed);
        }
    }
    (void)pthread_mutex_unlock(&opened->lock);
    if (batch != NULL) {
        return NG_OK;
    }
    free(item.bytes);
    return !call->host->may_block(call)
               ? NG_EWOULDBLOCK
               : ng_fail(call, NG_EBUSY,
                         "too many references of openings wait to be written; try again");
}

static bool batch_knows(const struct opened_batch *batch, const struct ng_key *key,
                        uint64_t hash)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->hashes[i] != hash) {
            continue;
        }
        struct ng_key of_item = item_key(&batch->items[i]);
        if (key_same(&of_item, key)) {
            return true;
        }
    }
    return false;
}

/* With the lock held: a batch that knows of the entry and does not wait after a failure. */
static struct opened_batch *opened_knowing(const struct entry_opened *opened,
                                           const struct ng_key *key)
{
    uint64_t hash = key_hash(key);
    struct opened_batch *batch = opened->first;
    while (batch != NULL && (batch->retry_ms > 0 || !batch_knows(batch, key, hash))) {
        batch = batch->next;
    }
    return batch;
}

int entry_opened_before(struct entry_opened *opened, struct ng_call *call,
                        const struct ng_key *key)
{
    bool may_block = call->host->may_block(call);
    for (;;) {
        (void)pthread_mutex_lock(&opened->lock);
        struct opened_batch *batch = opened_knowing(opened, key);
        if (batch != NULL && may_block) {
            opened_unlink(opened, batch);
        }
        (void)pthread_mutex_unlock(&opened->lock);
        if (batch == NULL || !may_block) {
            return batch == NULL ? NG_OK : NG_EWOULDBLOCK;
        }
        batch_write(opened, batch);
    }
}

int entry_opened_hold(struct entry_opened *opened, struct ng_call *call)
{
    if (!call->host->may_block(call)) {
        return pthread_mutex_trylock(&opened->order) == 0 ? NG_OK : NG_EWOULDBLOCK;
    }
    (void)pthread_mutex_lock(&opened->order);
    return NG_OK;
}

void entry_opened_release(struct entry_opened *opened)
{
    (void)pthread_mutex_unlock(&opened->order);
}

void entry_opened_deleted(struct entry_opened *opened, const struct ng_key *key,
                          uint64_t version)
{
    (void)pthread_mutex_lock(&opened->lock);
    opened->deleted[opened->next_deleted] = (struct opened_deletion){key_hash(key), version};
    opened->next_deleted = (opened->next_deleted + 1) % OPENED_DELETED_MAX;
    (void)pthread_mutex_unlock(&opened->lock);
}

/* ---- life ---- */

static unsigned opened_slot(void)
{
    unsigned char byte = 0;
    /* Any slot will do, so also the first. */
    if (getrandom(&byte, 1, 0) != 1) {
        return 0;
    }
    return byte % OPENED_SLOTS;
}

int entry_opened_start(struct ng_call *call, struct entry_opened **ret)
{
    struct entry_opened *opened = calloc(1, sizeof(*opened));
    pthread_condattr_t attr;
    if (opened == NULL || pthread_condattr_init(&attr) != 0) {
        free(opened);
        return entry_no_memory(call);
    }
    opened->host = call->host;
    opened->slot = opened_slot();
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&opened->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&opened->lock, NULL);
    (void)pthread_mutex_init(&opened->order, NULL);
    if (pthread_create(&opened->thread, NULL, opened_main, opened) != 0) {
        (void)pthread_cond_destroy(&opened->changed);
        (void)pthread_mutex_destroy(&opened->lock);
        (void)pthread_mutex_destroy(&opened->order);
        free(opened);
        return ng_fail(call, NG_EINTERNAL, "a thread could not be started");
    }
    *ret = opened;
    return NG_OK;
}

void entry_opened_stop(struct entry_opened *opened)
{
    if (opened == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&opened->lock);
    opened->stopping = true;
    (void)pthread_cond_signal(&opened->changed);
    (void)pthread_mutex_unlock(&opened->lock);
    (void)pthread_join(opened->thread, NULL);
    (void)pthread_cond_destroy(&opened->changed);
    (void)pthread_mutex_destroy(&opened->lock);
    (void)pthread_mutex_destroy(&opened->order);
    free(opened);
}
