/* SPDX-License-Identifier: MIT */
/*
 * journal_apart.c - appends entries to the journal in documents that several gateways share:
 * each document is a change of its own, and many are under way at a time.
 *
 * A document is named by its event or by what it refers to, so writing it twice changes
 * nothing. Order is that of the events' numbers. A restore may replace the generation
 * meanwhile: then the entries are written once more, into the new one.
 */
#include "core/base/lock.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Changes under way at a time. */
#define APART_IN_FLIGHT 64
/* Each entry is one in its day, and one as reference or memory. */
#define APART_CHANGES_MAX (2 * NG_DELIVERY_MAX)

struct apart_space {
    struct ng_str name;
    struct journal_generation generation;
};

struct apart {
    struct journal_documents *journal;
    struct call *call;
    struct apart_space spaces[NG_DELIVERY_MAX];
    size_t space_count;
    struct ng_change changes[APART_CHANGES_MAX];
    const struct ng_entry *references[APART_CHANGES_MAX]; /* NULL: not of a reference */
    size_t count;
    /* The changes under way: */
    struct lock lock;
    pthread_cond_t ended;
    size_t pending;
    int rc; /* the first failure */
};

/* One change under way. It has a call of its own, which the committing thread may touch. */
struct apart_step {
    struct apart *apart;
    struct call *call;
    bool is_new;
};

static int apart_space(struct apart *apart, struct ng_str name,
                       const struct journal_generation **ret)
{
    for (size_t i = 0; i < apart->space_count; i++) {
        if (str_equal(apart->spaces[i].name, name)) {
            *ret = &apart->spaces[i].generation;
            return NG_OK;
        }
    }
    struct apart_space *space = &apart->spaces[apart->space_count];
    int rc = journal_generation_get(apart->journal, apart->call, name, &space->generation);
    if (rc == NG_OK) {
        space->name = name;
        apart->space_count++;
        *ret = &space->generation;
    }
    return rc;
}

/* Of several references to one document the latest is written. */
static bool apart_replaces(struct apart *apart, const struct ng_change *change,
                           const struct ng_entry *entry)
{
    for (size_t i = 0; i < apart->count; i++) {
        const struct ng_entry *there = apart->references[i];
        if (there != NULL && str_equal(apart->changes[i].key.id, change->key.id) &&
            str_equal(apart->changes[i].key.space, change->key.space)) {
            if (journal_entry_later(entry, there->version, there->seq)) {
                apart->changes[i] = *change;
                apart->references[i] = entry;
            }
            return true;
        }
    }
    return false;
}

static int apart_add(struct apart *apart, const struct ng_entry *entry)
{
    const struct journal_generation *generation = NULL;
    struct ng_str none = {NULL, 0};
    struct ng_change change;
    char *date = arena_alloc(&apart->call->arena, RFC3339_DAY_SIZE);
    if (date == NULL) {
        return call_no_memory(apart->call);
    }
    journal_zone_day(entry->time_ms, date);
    int rc = apart_space(apart, entry->space, &generation);
    if (rc == NG_OK) {
        rc = journal_put(apart->call, JOURNAL_IN_DAY, generation->number, ng_str_of(date),
                         entry, &change);
    }
    if (rc != NG_OK) {
        return rc;
    }
    change.is_new = true;
    apart->changes[apart->count++] = change;
    bool is_memory = entry->kind == NG_ENTRY_MEMORY;
    enum journal_place place = is_memory ? JOURNAL_IN_MEMORY : JOURNAL_IN_REFERENCES;
    rc = journal_put(apart->call, place, generation->number, none, entry, &change);
    if (rc != NG_OK || (!is_memory && apart_replaces(apart, &change, entry))) {
        return rc;
    }
    change.is_new = is_memory;
    apart->references[apart->count] = is_memory ? NULL : entry;
    apart->changes[apart->count++] = change;
    return NG_OK;
}

static void apart_written(void *user, int rc)
{
    struct apart_step *step = user;
    struct apart *apart = step->apart;
    if (rc == NG_ECONFLICT && step->is_new) {
        rc = NG_OK; /* it is there */
    }
    lock_take(&apart->lock);
    apart->pending--;
    if (apart->rc == NG_OK) {
        apart->rc = rc;
    }
    pthread_cond_signal(&apart->ended);
    lock_release(&apart->lock);
}

/* Waits until there are fewer than `most` under way. Returns the first failure. */
static int apart_wait(struct apart *apart, size_t most)
{
    lock_take(&apart->lock);
    while (apart->pending >= most) {
        lock_wait(&apart->ended, &apart->lock);
    }
    int rc = apart->rc;
    lock_release(&apart->lock);
    return rc;
}

static int apart_write(struct apart *apart, struct apart_step *step,
                       const struct ng_change *change)
{
    step->apart = apart;
    step->is_new = change->is_new;
    step->call = journal_step(apart->call);
    if (step->call == NULL) {
        return NG_EINTERNAL;
    }
    lock_take(&apart->lock);
    apart->pending++;
    lock_release(&apart->lock);
    int rc = store_write(apart->journal->store, step->call, change, 1, apart_written, step);
    if (rc != NG_OK) { /* it was not queued: no callback */
        apart_written(step, rc);
    }
    return NG_OK;
}

static int apart_run(struct apart *apart)
{
    struct apart_step *steps =
        arena_zalloc(&apart->call->arena, (apart->count + 1) * sizeof(*steps));
    if (steps == NULL) {
        return call_no_memory(apart->call);
    }
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < apart->count; i++) {
        if (call_has(apart->call, CALL_CANCELLED)) {
            rc = call_fail(apart->call, NG_ECANCELLED, "the delivery was cancelled");
            break;
        }
        rc = apart_write(apart, &steps[i], &apart->changes[i]);
        if (rc == NG_OK) {
            rc = apart_wait(apart, APART_IN_FLIGHT);
        }
    }
    int written = apart_wait(apart, 1);
    struct ng_str text = {NULL, 0};
    for (size_t i = 0; i < apart->count && steps[i].call != NULL; i++) {
        if (text.len == 0) {
            text = arena_copy(&apart->call->arena, steps[i].call->staged.message);
        }
        call_unref(steps[i].call);
    }
    if (written != NG_OK) {
        rc = call_fail(apart->call, written, "%.*s", (int)text.len, text_or(text.data, ""));
    }
    return rc;
}

/* Has a restore replaced a generation meanwhile? Then what was written is in the former one. */
static int apart_check(struct apart *apart)
{
    for (size_t i = 0; i < apart->space_count; i++) {
        struct journal_generation now;
        int rc =
            journal_generation_get(apart->journal, apart->call, apart->spaces[i].name, &now);
        if (rc != NG_OK) {
            return rc;
        }
        if (now.number != apart->spaces[i].generation.number) {
            return call_fail(apart->call, NG_ECONFLICT, "the journal was restored meanwhile");
        }
    }
    return NG_OK;
}

int journal_append_apart(struct journal_documents *journal, struct call *call,
                         const struct ng_entry *const *entries, size_t count)
{
    struct apart *apart = arena_alloc(&call->arena, sizeof(*apart));
    int tries = 0;
    int rc = NG_OK;
    if (apart == NULL) {
        return call_no_memory(call);
    }
    do {
        *apart = (struct apart){.journal = journal, .call = call};
        lock_init(&apart->lock, LOCK_JOURNAL_APPEND);
        lock_cond_init(&apart->ended);
        rc = NG_OK;
        for (size_t i = 0; rc == NG_OK && i < count; i++) {
            rc = apart_add(apart, entries[i]);
        }
        if (rc == NG_OK) {
            rc = apart_run(apart);
        }
        if (rc == NG_OK) {
            rc = apart_check(apart);
        }
        pthread_cond_destroy(&apart->ended);
        lock_done(&apart->lock);
    } while (journal_try_again(call, rc, &tries));
    return rc;
}
