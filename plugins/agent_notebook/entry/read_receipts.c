/* SPDX-License-Identifier: MIT */
/*
 * read_receipts.c - a queue of read receipts, and the thread that writes each as one
 * asynchronous change.
 *
 * An agent that reads the same version again while its receipt is queued is counted there, so
 * a read costs no more than to find it. The thread waits RECEIPTS_WAIT_MS after the first
 * receipt, so that one commit holds many. A change of an entry flushes the receipts of that
 * entry first: the store commits in the order in which it is asked. A receipt that could not be
 * written is retried until the gateway stops.
 */
#include "read_receipts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/base/lock.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/random.h"
#include "core/base/utf8.h"
#include "entry.h"
#include "entry_text.h"

#define RECEIPTS_WAIT_MS 200
/* Receipts in memory, where each takes some kilobytes while it is written. Above that, reads
 * wait for room up to RECEIPTS_ROOM_MS: they come no faster than receipts can be written. */
#define RECEIPTS_MAX 4096
#define RECEIPTS_ROOM_MS 2000
/* Bytes of the count at the end of the data of a receipt: a name, a number, a brace. */
#define RECEIPT_COUNT_ROOM 32
/* Documents of an agent. Each process picks one by chance, so that gateways on one database
 * seldom write the same one. */
#define RECEIPTS_SLOTS 16
#define RECEIPTS_SLOT_SIZE 80
/* Backoff after a failure. */
#define RECEIPTS_RETRY_MIN_MS 100
#define RECEIPTS_RETRY_MAX_MS 5000
/* Deletions that are remembered. */
#define RECEIPTS_DELETED_MAX 256
/* A thread without work looks again after that. */
#define RECEIPTS_IDLE_MS (3600 * 1000)

struct receipt {
    struct receipt *next;
    struct read_receipts *receipts;
    struct ng_str agent, data; /* data: the JSON of the event */
    struct ng_key key;         /* of the entry */
    uint64_t hash;             /* of the key */
    uint64_t version;
    struct hash_link link;
    bool counts;    /* it is in the table: queued for the first time */
    uint64_t count; /* of the reads */
    struct ng_change change;
    char slot[RECEIPTS_SLOT_SIZE];
    char bytes[]; /* the texts above point into it */
};

struct receipt_list {
    struct receipt *first;
    struct receipt **end;
};

struct receipt_deletion {
    uint64_t hash; /* of the key */
    uint64_t version;
};

struct read_receipts {
    const struct ng_host *host;
    pthread_t thread;
    unsigned slot;
    struct lock order; /* held while receipts or a deletion enter the queue of the store;
                              taken before lock */
    struct lock lock;  /* guards all below */
    pthread_cond_t changed;
    struct receipt_list queued;
    struct hash_table counting; /* those of `queued` that count further reads */
    size_t count;               /* queued or being written */
    int64_t due_ms;             /* when the thread writes the queued ones */
    int64_t retry_ms;           /* the last backoff; 0 after a success */
    struct receipt_deletion deleted[RECEIPTS_DELETED_MAX];
    size_t next_deleted;
    bool stopping;
};

static int64_t receipts_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* ---- lists ---- */

static void list_add(struct receipt_list *list, struct receipt *receipt)
{
    receipt->next = NULL;
    *list->end = receipt;
    list->end = &receipt->next;
}

static void list_clear(struct receipt_list *list)
{
    *list = (struct receipt_list){NULL, &list->first};
}

/* ---- keys ---- */

/* ---- the table of those that count; with the lock held ---- */

/* A receipt counts the reads of one agent, of one version of an entry. */
struct receipt_key {
    struct ng_str agent;
    const struct ng_key *entry;
    uint64_t version;
};

static uint64_t counts_hash(uint64_t entry, uint64_t version)
{
    return entry ^ version * UINT64_C(0x9E3779B97F4A7C15);
}

static bool counts(const struct hash_link *link, const void *key)
{
    const struct receipt *receipt = HASH_ITEM(link, const struct receipt, link);
    const struct receipt_key *wanted = key;
    return receipt->version == wanted->version && str_equal(receipt->agent, wanted->agent) &&
           doc_key_equal(&receipt->key, wanted->entry);
}

/* Without memory it counts nothing. */
static void counting_begin(struct read_receipts *receipts, struct receipt *receipt)
{
    uint64_t hash = counts_hash(receipt->hash, receipt->version);
    receipt->counts = hash_table_add(&receipts->counting, &receipt->link, hash) == NG_OK;
}

static void counting_end(struct read_receipts *receipts, struct receipt *receipt)
{
    if (receipt->counts) {
        hash_table_remove(&receipts->counting, &receipt->link);
        receipt->counts = false;
    }
}

/* ---- one receipt ---- */

/* The JSON of the event: the entry, and the members that its reference shows. */
static struct ng_str receipt_data(struct ng_call *call, const struct read_receipt *from)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return str_make(NULL, 0);
    }
    host->json_object(writer);
    host->json_name(writer, "about");
    host->json_object(writer);
    entry_put(call, writer, "collection", from->key.collection);
    entry_put(call, writer, "id", from->key.id);
    host->json_end(writer);
    entry_put(call, writer, "title", from->title);
    entry_put(call, writer, "summary", utf8_cut_count(from->summary, ENTRY_SUMMARY_CHARS));
    entry_put(call, writer, "status", from->status);
    entry_put_int(call, writer, "version", from->version);
    entry_put(call, writer, "source", ng_str_of("notebook"));
    host->json_name(writer, "tags");
    host->json_array(writer);
    host->json_string(writer, from->key.collection);
    host->json_end(writer);
    host->json_name(writer, "score");
    host->json_number(writer, 0.8);
    host->json_end(writer);
    return host->json_result(writer);
}

static struct ng_str receipt_copy(char **inout_at, struct ng_str text)
{
    char *copy = *inout_at;
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    *inout_at += text.len;
    return str_make(copy, text.len);
}

static struct receipt *receipt_new(struct read_receipts *receipts, struct ng_call *call,
                                   const struct read_receipt *from)
{
    struct ng_str agent = call->caller->agent;
    struct ng_str data = receipt_data(call, from);
    if (data.data == NULL) {
        return NULL;
    }
    struct receipt *receipt =
        malloc(sizeof(*receipt) + agent.len + from->key.collection.len + from->key.space.len +
               from->key.id.len + data.len + RECEIPT_COUNT_ROOM);
    if (receipt == NULL) {
        return NULL;
    }
    char *at = receipt->bytes;
    receipt->receipts = receipts;
    receipt->agent = receipt_copy(&at, agent);
    receipt->key.collection = receipt_copy(&at, from->key.collection);
    receipt->key.space = receipt_copy(&at, from->key.space);
    receipt->key.id = receipt_copy(&at, from->key.id);
    receipt->data = receipt_copy(&at, data);
    receipt->hash = doc_key_hash(&from->key);
    receipt->version = from->version;
    receipt->count = 1;
    (void)snprintf(receipt->slot, sizeof(receipt->slot), "%.*s/%u", (int)agent.len, agent.data,
                   receipts->slot);
    return receipt;
}

/* No further read is counted: writes their count into the data, which are the last of its
 * bytes. */
static void receipt_close(struct receipt *receipt)
{
    if (receipt->count > 1) {
        size_t body = receipt->data.len - 1;
        char *end = receipt->bytes + (receipt->data.data - receipt->bytes) + body;
        int added = snprintf(end, RECEIPT_COUNT_ROOM, ",\"count\":%llu}",
                             (unsigned long long)receipt->count);
        receipt->data.len = body + (size_t)added;
        receipt->count = 1;
    }
}

/* ---- writing ---- */

static int receipt_change(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    const struct receipt *receipt = user;
    (void)present;
    call->host->draft_event(next, receipt->data);
    return call->host->draft_json(next, ng_str_of("{}"));
}

/* From any thread: the change of the receipt is on disk or has failed. */
static void receipt_done(void *user, int rc)
{
    struct receipt *receipt = user;
    struct read_receipts *receipts = receipt->receipts;
    int64_t now_ms = receipts_now_ms();
    lock_take(&receipts->lock);
    bool retry = rc != NG_OK && !receipts->stopping;
    bool wake = retry || receipts->stopping || receipts->count >= RECEIPTS_MAX;
    if (rc == NG_OK) {
        receipts->retry_ms = 0;
    } else if (receipts->due_ms <= now_ms) { /* the first failure of this round */
        receipts->retry_ms = i64_max(receipts->retry_ms * 2, RECEIPTS_RETRY_MIN_MS);
        receipts->retry_ms = i64_min(receipts->retry_ms, RECEIPTS_RETRY_MAX_MS);
        receipts->due_ms = now_ms + receipts->retry_ms;
    }
    if (retry) {
        list_add(&receipts->queued, receipt);
    } else {
        receipts->count--;
        free(receipt);
    }
    if (wake) {
        (void)pthread_cond_broadcast(&receipts->changed);
    }
    lock_release(&receipts->lock);
}

/* With the lock held. */
static bool receipt_is_late(const struct read_receipts *receipts, const struct receipt *receipt)
{
    for (size_t i = 0; i < RECEIPTS_DELETED_MAX; i++) {
        if (receipts->deleted[i].hash == receipt->hash &&
            receipts->deleted[i].version > receipt->version) {
            return true;
        }
    }
    return false;
}

/* With the lock held: takes the receipts of the entry (NULL: all) from the queue, and drops
 * those of deleted entries. */
static struct receipt *receipts_take(struct read_receipts *receipts, const struct ng_key *key)
{
    uint64_t hash = key == NULL ? 0 : doc_key_hash(key);
    struct receipt_list taken;
    struct receipt *receipt = receipts->queued.first;
    list_clear(&receipts->queued);
    list_clear(&taken);
    while (receipt != NULL) {
        struct receipt *next = receipt->next;
        bool stays =
            key != NULL && (receipt->hash != hash || !doc_key_equal(&receipt->key, key));
        if (stays) {
            list_add(&receipts->queued, receipt);
            receipt = next;
            continue;
        }
        counting_end(receipts, receipt);
        if (!receipt_is_late(receipts, receipt)) {
            list_add(&taken, receipt);
        } else {
            receipts->count--;
            free(receipt);
        }
        receipt = next;
    }
    return taken.first;
}

static void receipt_write(struct read_receipts *receipts, struct receipt *receipt)
{
    receipt_close(receipt);
    receipt->change = (struct ng_change){
        .size = sizeof(receipt->change),
        .key = {ng_str_of(READ_RECEIPTS_COLLECTION), receipt->key.space,
                ng_str_of(receipt->slot)},
        .fn = receipt_change,
        .user = receipt,
        .action = "opened",
    };
    int rc = receipts->host->change_as(receipts->host, receipt->agent, &receipt->change, 1,
                                       receipt_done, receipt);
    if (rc != NG_OK) {
        receipt_done(receipt, rc);
    }
}

/* Hands the queued receipts of the entry (NULL: all) to the store. */
static void receipts_write(struct read_receipts *receipts, const struct ng_key *key)
{
    lock_take(&receipts->order);
    lock_take(&receipts->lock);
    struct receipt *receipt = receipts_take(receipts, key);
    lock_release(&receipts->lock);
    while (receipt != NULL) {
        struct receipt *next = receipt->next;
        receipt_write(receipts, receipt);
        receipt = next;
    }
    lock_release(&receipts->order);
}

/* With the lock held, and without it meanwhile. */
static void receipts_sleep(struct read_receipts *receipts, int64_t until_ms)
{
    struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000L};
    (void)lock_wait_until(&receipts->changed, &receipts->lock, &until);
}

static void *receipts_main(void *user)
{
    struct read_receipts *receipts = user;
    lock_take(&receipts->lock);
    while (!receipts->stopping || receipts->count > 0) {
        int64_t now_ms = receipts_now_ms();
        bool any = receipts->queued.first != NULL;
        if (any && (receipts->stopping || receipts->due_ms <= now_ms)) {
            lock_release(&receipts->lock);
            receipts_write(receipts, NULL);
            lock_take(&receipts->lock);
        } else {
            receipts_sleep(receipts, any ? receipts->due_ms : now_ms + RECEIPTS_IDLE_MS);
        }
    }
    lock_release(&receipts->lock);
    return NULL;
}

/* ---- for the tools ---- */

/* With the lock held: waits for room in the queue, unless writing fails anyway. */
static bool receipts_room(struct read_receipts *receipts, struct ng_call *call)
{
    int64_t until_ms = receipts_now_ms() + RECEIPTS_ROOM_MS;
    while (receipts->count >= RECEIPTS_MAX && call->host->may_block(call) &&
           receipts->retry_ms == 0 && receipts_now_ms() < until_ms) {
        receipts_sleep(receipts, until_ms);
    }
    return receipts->count < RECEIPTS_MAX;
}

/* Counts the read where a receipt of the same agent, entry and version is queued. */
static bool receipts_count(struct read_receipts *receipts, const struct ng_call *call,
                           const struct read_receipt *from)
{
    const struct receipt_key wanted = {call->caller->agent, &from->key, from->version};
    uint64_t hash = counts_hash(doc_key_hash(&from->key), from->version);
    lock_take(&receipts->lock);
    struct hash_link *link = hash_table_find(&receipts->counting, hash, counts, &wanted);
    if (link != NULL) {
        HASH_ITEM(link, struct receipt, link)->count++;
    }
    lock_release(&receipts->lock);
    return link != NULL;
}

int read_receipts_add(struct read_receipts *receipts, struct ng_call *call,
                      const struct read_receipt *from)
{
    if (receipts_count(receipts, call, from)) {
        return NG_OK;
    }
    struct receipt *receipt = receipt_new(receipts, call, from);
    if (receipt == NULL) {
        return entry_no_memory(call);
    }
    lock_take(&receipts->lock);
    bool room = receipts_room(receipts, call);
    if (room) {
        bool first = receipts->queued.first == NULL;
        list_add(&receipts->queued, receipt);
        counting_begin(receipts, receipt);
        receipts->count++;
        if (first || receipts->count == RECEIPTS_MAX / 2) {
            receipts->due_ms = receipts_now_ms() + (first ? RECEIPTS_WAIT_MS : 0);
            (void)pthread_cond_broadcast(&receipts->changed);
        }
    }
    lock_release(&receipts->lock);
    if (room) {
        return NG_OK;
    }
    free(receipt);
    if (!call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    return ng_fail(call, NG_EBUSY, "too many read receipts wait to be written; try again");
}

/* With the lock held. */
static bool receipts_know(const struct read_receipts *receipts, const struct ng_key *key)
{
    uint64_t hash = doc_key_hash(key);
    const struct receipt *receipt = receipts->queued.first;
    while (receipt != NULL && receipt->hash != hash) {
        receipt = receipt->next;
    }
    return receipt != NULL;
}

int read_receipts_flush(struct read_receipts *receipts, struct ng_call *call,
                        const struct ng_key *key)
{
    lock_take(&receipts->lock);
    bool known = receipts_know(receipts, key);
    lock_release(&receipts->lock);
    if (!known) {
        return NG_OK;
    }
    if (!call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    receipts_write(receipts, key);
    return NG_OK;
}

int read_receipts_lock(struct read_receipts *receipts, struct ng_call *call)
{
    if (call->host->may_block(call)) {
        lock_take(&receipts->order);
        return NG_OK;
    }
    if (!lock_try(&receipts->order)) {
        return NG_EWOULDBLOCK;
    }
    return NG_OK;
}

void read_receipts_unlock(struct read_receipts *receipts)
{
    lock_release(&receipts->order);
}

void read_receipts_deleted(struct read_receipts *receipts, const struct ng_key *key,
                           uint64_t version)
{
    lock_take(&receipts->lock);
    receipts->deleted[receipts->next_deleted] =
        (struct receipt_deletion){doc_key_hash(key), version};
    receipts->next_deleted = (receipts->next_deleted + 1) % RECEIPTS_DELETED_MAX;
    lock_release(&receipts->lock);
}

/* ---- life ---- */

static void receipts_free(struct read_receipts *receipts)
{
    hash_table_done(&receipts->counting);
    (void)pthread_cond_destroy(&receipts->changed);
    lock_done(&receipts->lock);
    lock_done(&receipts->order);
    free(receipts);
}

int read_receipts_start(struct ng_call *call, struct read_receipts **ret)
{
    struct read_receipts *receipts = calloc(1, sizeof(*receipts));
    unsigned char byte = 0;
    if (receipts == NULL) {
        return entry_no_memory(call);
    }
    (void)random_bytes(&byte, 1); /* any slot is good, also the first */
    receipts->slot = byte % RECEIPTS_SLOTS;
    receipts->host = call->host;
    list_clear(&receipts->queued);
    lock_cond_init(&receipts->changed);
    lock_init(&receipts->lock, LOCK_READ_RECEIPTS);
    lock_init(&receipts->order, LOCK_READ_RECEIPTS_ORDER);
    if (pthread_create(&receipts->thread, NULL, receipts_main, receipts) != 0) {
        receipts_free(receipts);
        return ng_fail(call, NG_EINTERNAL, "a thread could not be started");
    }
    (void)pthread_setname_np(receipts->thread, "ng-receipts");
    *ret = receipts;
    return NG_OK;
}

void read_receipts_stop(struct read_receipts *receipts)
{
    if (receipts == NULL) {
        return;
    }
    lock_take(&receipts->lock);
    receipts->stopping = true;
    (void)pthread_cond_broadcast(&receipts->changed);
    lock_release(&receipts->lock);
    (void)pthread_join(receipts->thread, NULL);
    receipts_free(receipts);
}
