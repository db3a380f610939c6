/* SPDX-License-Identifier: MIT */
/* journal_append.c - appends entries to the journal in documents: entries of one space share a
 * transaction, and the transactions of a delivery share a commit. */
#include "core/base/lock.h"
#include "journal_documents.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "journal_entry.h"

/* Entries of one transaction. Each makes two documents, and the pointer is held beside them.
 * Half of the limit: every document of a transaction is locked meanwhile. */
#define JOURNAL_CHUNK (NG_CHANGES_MAX / 4)
/* Transactions in flight at a time. */
#define JOURNAL_IN_FLIGHT 16
/* The document that chains transactions of all spaces. */
#define JOURNAL_CHAIN "chain"
#define JOURNAL_CHAIN_SPACE "shared"

/* The revision of the chain that a transaction expects (0: any), and the one that it makes. */
struct journal_link {
    uint64_t expected, made;
};

/* One transaction: entries of one space, each document once. */
struct journal_chunk {
    struct ng_change changes[NG_CHANGES_MAX];
    const struct ng_entry *places[NG_CHANGES_MAX]; /* the entry of a change, or NULL */
    size_t count;
    /* One of several in flight: their entries must be new, else they fail with a conflict.
     * NULL: a single transaction. */
    struct journal_link *link;
};

/* An earlier change of the same document in this chunk; SIZE_MAX: none. */
static size_t journal_chunk_find(const struct journal_chunk *chunk, const struct ng_key *key)
{
    for (size_t i = 1; i < chunk->count; i++) {
        const struct ng_key *there = &chunk->changes[i].key;
        if (str_equal(there->id, key->id) && str_equal(there->collection, key->collection)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int journal_chunk_add(struct call *call, struct journal_chunk *chunk,
                             enum journal_place place, uint64_t generation, struct ng_str date,
                             const struct ng_entry *entry)
{
    struct ng_change change;
    int rc = journal_put(call, place, generation, date, entry, &change);
    if (rc != NG_OK) {
        return rc;
    }
    change.is_new = chunk->link != NULL && place != JOURNAL_IN_REFERENCES;
    size_t at = journal_chunk_find(chunk, &change.key);
    if (at == SIZE_MAX) {
        at = chunk->count++;
    } else if (place != JOURNAL_IN_REFERENCES ||
               !journal_entry_later(entry, chunk->places[at]->version,
                                    chunk->places[at]->seq)) {
        return NG_OK;
    }
    chunk->changes[at] = change;
    chunk->places[at] = entry;
    return NG_OK;
}

static int journal_write_chain(struct ng_call *call, const struct ng_doc *present,
                               struct ng_draft *next, void *user)
{
    struct journal_link *link = user;
    if (link->expected != 0 && present->revision != link->expected) {
        return call_fail(call_of(call), NG_ECONFLICT, "the change before this one has failed");
    }
    link->made = present->revision + 1;
    return store_draft_json(next, ng_str_of("{}"));
}

/* Transactions behind a failed one must fail, too, to keep the order of a day's list: each
 * expects the revision of the one before it. */
static void journal_chunk_chain(struct journal_chunk *chunk)
{
    struct ng_change change = {
        .size = sizeof(change),
        .key = journal_key(JOURNAL_STATE, ng_str_of(JOURNAL_CHAIN_SPACE),
                           ng_str_of(JOURNAL_CHAIN)),
        .fn = journal_write_chain,
        .user = chunk->link,
    };
    chunk->places[chunk->count] = NULL;
    chunk->changes[chunk->count++] = change;
}

/* Fills the chunk from the beginning of `entries`, with one space only; *ret_done: their count.
 */
static int journal_chunk_fill(struct journal_documents *journal, struct call *call,
                              struct journal_chunk *chunk,
                              const struct ng_entry *const *entries, size_t count,
                              size_t *ret_done)
{
    struct journal_generation generation;
    int rc = journal_generation_get(journal, call, entries[0]->space, &generation);
    if (rc != NG_OK) {
        return rc;
    }
    journal_generation_hold(entries[0]->space, &generation, &chunk->changes[0]);
    chunk->count = 1;
    if (chunk->link != NULL) {
        journal_chunk_chain(chunk);
    }
    size_t done = 0;
    while (rc == NG_OK && done < count && done < JOURNAL_CHUNK &&
           str_equal(entries[done]->space, entries[0]->space)) {
        const struct ng_entry *entry = entries[done++];
        char *date = arena_alloc(&call->arena, RFC3339_DAY_SIZE);
        if (date == NULL) {
            return call_fail(call, NG_EINTERNAL, "out of memory for a delivery");
        }
        journal_zone_day(entry->time_ms, date);
        enum journal_place place = JOURNAL_IN_REFERENCES;
        if (entry->kind == NG_ENTRY_MEMORY) {
            place = JOURNAL_IN_MEMORY;
        }
        rc = journal_chunk_add(call, chunk, JOURNAL_IN_DAY, generation.number, ng_str_of(date),
                               entry);
        if (rc == NG_OK) {
            rc = journal_chunk_add(call, chunk, place, generation.number, str_make(NULL, 0),
                                   entry);
        }
    }
    *ret_done = done;
    return rc;
}

static struct journal_chunk *journal_chunk_new(struct call *call, struct journal_link *link)
{
    struct journal_chunk *chunk = arena_alloc(&call->arena, sizeof(*chunk));
    if (chunk == NULL) {
        call_fail(call, NG_EINTERNAL, "out of memory for a delivery");
    } else {
        chunk->link = link;
    }
    return chunk;
}

/* ---- one at a time ---- */

static int journal_append_chunk(struct journal_documents *journal, struct call *call,
                                const struct ng_entry *const *entries, size_t count,
                                size_t *ret_done)
{
    struct journal_chunk *chunk = journal_chunk_new(call, NULL);
    if (chunk == NULL) {
        return NG_EINTERNAL;
    }
    int rc = journal_chunk_fill(journal, call, chunk, entries, count, ret_done);
    return rc != NG_OK ? rc
                       : store_write_wait(journal->store, call, chunk->changes, chunk->count);
}

static int journal_append_each(struct journal_documents *journal, struct call *call,
                               const struct ng_entry *const *entries, size_t count)
{
    int rc = NG_OK;
    int tries = 0;
    for (size_t at = 0; rc == NG_OK && at < count;) {
        size_t done = 0;
        if (call_has(call, CALL_CANCELLED)) {
            return call_fail(call, NG_ECANCELLED, "the delivery was cancelled");
        }
        rc = journal_append_chunk(journal, call, entries + at, count - at, &done);
        if (rc == NG_OK) {
            at += done;
        }
        if (journal_try_again(call, rc, &tries)) {
            rc = NG_OK;
        }
    }
    return rc;
}

/* ---- several in flight ---- */

struct journal_flight {
    struct lock lock;
    pthread_cond_t ended;
    size_t pending;
    int rc; /* the first failure */
    struct journal_link links[JOURNAL_IN_FLIGHT];
};

static void journal_chunk_written(void *user, int rc)
{
    struct journal_flight *flight = user;
    lock_take(&flight->lock);
    flight->pending--;
    if (flight->rc == NG_OK) {
        flight->rc = rc;
    }
    if (flight->pending == 0) {
        pthread_cond_signal(&flight->ended);
    }
    lock_release(&flight->lock);
}

/* Queues one transaction in a call of its own, which the committing thread may touch. */
static int journal_queue_chunk(struct journal_documents *journal, struct call *step,
                               struct journal_flight *flight, size_t begun,
                               const struct ng_entry *const *entries, size_t count,
                               size_t *ret_done)
{
    if (begun > 0) {
        flight->links[begun].expected = flight->links[begun - 1].made;
    }
    struct journal_chunk *chunk = journal_chunk_new(step, &flight->links[begun]);
    if (chunk == NULL) {
        return NG_EINTERNAL;
    }
    int rc = journal_chunk_fill(journal, step, chunk, entries, count, ret_done);
    if (rc != NG_OK) {
        return rc;
    }
    lock_take(&flight->lock);
    flight->pending++;
    lock_release(&flight->lock);
    rc = store_write(journal->store, step, chunk->changes, chunk->count, journal_chunk_written,
                     flight);
    if (rc != NG_OK) { /* it was not queued: no callback */
        journal_chunk_written(flight, rc);
    }
    return rc;
}

/* Up to JOURNAL_IN_FLIGHT transactions, usually in one commit. After a failure the caller
 * appends one at a time, which ignores entries that exist. */
static int journal_append_together(struct journal_documents *journal, struct call *call,
                                   const struct ng_entry *const *entries, size_t count,
                                   size_t *ret_done)
{
    struct journal_flight flight = {
        LOCK_INITIALIZER(LOCK_JOURNAL_APPEND), PTHREAD_COND_INITIALIZER, 0, NG_OK, {{0}}};
    struct call *steps[JOURNAL_IN_FLIGHT];
    size_t begun = 0;
    size_t done = 0;
    int rc = NG_OK;
    while (rc == NG_OK && done < count && begun < JOURNAL_IN_FLIGHT) {
        size_t now = 0;
        struct call *step = journal_step(call);
        if (step == NULL) {
            rc = NG_EINTERNAL;
            break;
        }
        steps[begun] = step;
        rc = journal_queue_chunk(journal, step, &flight, begun++, entries + done, count - done,
                                 &now);
        done += now;
    }
    lock_take(&flight.lock);
    while (flight.pending > 0) {
        lock_wait(&flight.ended, &flight.lock);
    }
    if (rc == NG_OK) {
        rc = flight.rc;
    }
    lock_release(&flight.lock);
    lock_done(&flight.lock);
    pthread_cond_destroy(&flight.ended);
    for (size_t i = 0; i < begun; i++) {
        call_unref(steps[i]);
    }
    *ret_done = done;
    return rc;
}

int journal_documents_deliver(void *user, struct ng_call *pub,
                              const struct ng_entry *const *entries, size_t count)
{
    struct journal_documents *journal = user;
    struct call *call = call_of(pub);
    if (count > NG_DELIVERY_MAX) {
        return call_fail(call, NG_EINVAL, "%zu entries are too many for one delivery (%d)",
                         count, NG_DELIVERY_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i]->event_id.len == 0 || entries[i]->space.len == 0) {
            return call_fail(call, NG_EINVAL, "entry %zu has no event id or no space", i);
        }
    }
    if (store_is_shared(journal->store)) {
        return journal_append_apart(journal, call, entries, count);
    }
    int rc = NG_OK;
    size_t at = 0;
    while (rc == NG_OK && at < count) {
        size_t done = 0;
        if (call_has(call, CALL_CANCELLED)) {
            return call_fail(call, NG_ECANCELLED, "the delivery was cancelled");
        }
        rc = journal_append_together(journal, call, entries + at, count - at, &done);
        if (rc == NG_OK) {
            at += done;
        }
    }
    if (rc == NG_ECANCELLED || at == count) {
        return rc;
    }
    if (rc != NG_OK) {
        call_reset_result(call);
    }
    return journal_append_each(journal, call, entries + at, count - at);
}
