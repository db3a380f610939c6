/* SPDX-License-Identifier: MIT */
/*
 * gateway_audit_shared.c - recovered changes and marks of the log where the store is shared.
 *
 * A mark is taken in this order:
 * 1. How many entries the log has.
 * 2. All that was changed before has its number (store_settle()), so those of these entries,
 * too.
 * 3. The newest number. Calls that have made a change up to it are under way, or have ended.
 * 4. These calls have ended, and their entries are in the log: every own change up to the
 *    number has its entry, and those of later ones have entries that come later.
 * The first time, before the mark is written, the changes between the former mark and this one
 * are compared with the entries behind the former one: an own change without an entry was made
 * before a kill, or its call did not learn of it.
 */
#include "gateway_audit_shared.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/audit/audit_disk.h"
#include "core/audit/audit_docs.h"
#include "core/audit/audit_read.h"
#include "core/audit/writer/audit_writer.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/cluster/cluster.h"
#include "core/dispatch/audit_put.h"
#include "core/dispatch/record.h"
#include "core/store/store.h"

/* Changes that are read at once, and in one step. */
#define SHARED_PAGE 1000
#define SHARED_PAGES 20
/* Wait for the numbers of changes, in one step. */
#define SHARED_SETTLE_MS 1000
/* Changes of others that make a new mark worth it: a start reads those behind the last one. */
#define SHARED_FOREIGN 10000
/* A log without a mark may have entries of changes that have no numbers yet: these are among
 * its last ones. */
#define SHARED_LOOK_BACK 4096
/* After a failure of the disk. */
#define SHARED_PAUSE_MS 5000
#define SHARED_SENTENCE_MAX 512

enum shared_state {
    SHARED_RESTS = 0, /* until the next mark is due */
    SHARED_ASKS,      /* the writer how many entries the log has */
    SHARED_NUMBERS,   /* the store for the newest number */
    SHARED_WAITS,     /* for the calls that are under way */
    SHARED_FLUSHES,   /* their entries */
    SHARED_COMPARES,  /* changes with entries */
    SHARED_MARKS      /* `next` is written */
};

struct audit_shared {
    struct gateway *gateway;
    char *path;
    enum shared_state state;
    bool has_mark, recovered, complains;
    struct audit_mark mark, next; /* in the file; to be */
    struct audit_docs *docs;      /* SHARED_COMPARES */
    uint64_t seq;                 /* the newest change that was looked at */
    size_t looked, found;         /* in this page; without an entry */
    int64_t rested_ns, paused_ns; /* 0: never */
};

static int shared_no_memory(struct buf *error)
{
    (void)buf_add_c(error, "the audit log: out of memory");
    return NG_EINTERNAL;
}

/* ---- the mark ---- */

/* NG_ENOTFOUND: there is no log yet. */
static int shared_read_mark(struct audit_shared *shared, struct buf *error)
{
    int dir = -1;
    int rc = audit_disk_open(shared->path, false, &dir, error);
    if (rc == NG_OK) {
        rc = audit_mark_read(dir, &shared->mark, error);
        (void)close(dir);
    }
    shared->has_mark = rc == NG_OK;
    return rc;
}

/* The writer's thread has nothing to do yet. */
static int shared_first_mark(struct audit_shared *shared, struct buf *error)
{
    struct audit_reader *reader = NULL;
    int dir = -1;
    int rc = audit_reader_open(shared->path, &reader, error);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t size = audit_reader_size(reader);
    audit_reader_close(reader);
    /* The database has not answered yet: all changes are compared with all entries. */
    uint64_t seq = store_last_seq(shared->gateway->store);
    uint64_t look_back = seq == 0 ? size : u64_min(size, SHARED_LOOK_BACK);
    shared->mark = (struct audit_mark){seq, size - look_back};
    rc = audit_disk_open(shared->path, false, &dir, error);
    if (rc == NG_OK) {
        rc = audit_mark_write(dir, &shared->mark, error);
        (void)close(dir);
    }
    return rc;
}

/* Until the writer has done it; a disk that refuses is asked again later. */
static void shared_settle(struct audit_shared *shared, const struct audit_mark *mark,
                          uint64_t *ret_entries, enum shared_state then)
{
    int rc = audit_writer_settle(shared->gateway->audit.writer, mark, ret_entries);
    if (rc == NG_OK) {
        shared->state = then;
    } else if (rc != NG_PENDING) {
        shared->paused_ns = clock_monotonic_ns();
    }
}

static bool shared_is_due(const struct audit_shared *shared)
{
    return shared->rested_ns == 0 ||
           clock_monotonic_ns() - shared->rested_ns >= (int64_t)AUDIT_CHECKPOINT_MS * 1000000;
}

static void shared_rest(struct audit_shared *shared)
{
    shared->rested_ns = clock_monotonic_ns();
    shared->state = SHARED_RESTS;
}

static int shared_count(void *user, const struct ng_event *event)
{
    struct audit_shared *shared = user;
    shared->looked++;
    shared->next.seq = event->seq;
    return 0;
}

/* The newest number, when all that was changed until now has one. */
static int shared_newest(struct audit_shared *shared, struct call *call)
{
    struct store *store = shared->gateway->store;
    int rc = store_settle(store, call, 0, SHARED_SETTLE_MS);
    shared->next.seq = store_look_seq(store);
    do {
        shared->looked = 0;
        if (rc == NG_OK) { /* another gateway may have given newer numbers */
            rc =
                store_changes(store, call, shared->next.seq, SHARED_PAGE, shared_count, shared);
        }
    } while (rc == NG_OK && shared->looked == SHARED_PAGE);
    return rc;
}

static void shared_number(struct audit_shared *shared, struct call *call)
{
    if (shared_newest(shared, call) != NG_OK) {
        return; /* soon */
    }
    if (shared->mark.seq > shared->next.seq) {
        shared->recovered = true; /* another store than the one that the log has followed */
    } else if (shared->recovered && shared->next.entries == shared->mark.entries &&
               shared->next.seq - shared->mark.seq < SHARED_FOREIGN) {
        shared_rest(shared);
        return;
    }
    audit_epochs_begin(&shared->gateway->audit.epochs);
    shared->state = SHARED_WAITS;
}

/* ---- changes without an entry ---- */

static int shared_compare(void *user, const struct ng_event *event)
{
    struct audit_shared *shared = user;
    struct gateway *gateway = shared->gateway;
    if (event->seq > shared->next.seq) {
        return 1;
    }
    shared->seq = event->seq;
    shared->looked++;
    if (NG_HAS(event, gateway) && str_equal(event->gateway, cluster_id(gateway->cluster)) &&
        !str_is(event->key.collection, RECORD_COLLECTION) &&
        !audit_docs_take(shared->docs, &event->key, event->revision)) {
        audit_put_recovered(gateway, event);
        shared->found++;
    }
    return 0;
}

static void shared_compare_end(struct audit_shared *shared)
{
    if (shared->found > 0) {
        log_write(NG_LOG_WARNING, "audit",
                  "%zu changes that the audit log had no entries of were added (recovered)",
                  shared->found);
    }
    audit_docs_free(shared->docs);
    shared->docs = NULL;
    shared->recovered = true;
    shared->state = SHARED_MARKS;
}

/* Some pages; what was looked at stays so after a failure. */
static void shared_compare_some(struct audit_shared *shared, struct call *call,
                                struct buf *error)
{
    struct gateway *gateway = shared->gateway;
    if (shared->docs == NULL) {
        shared->seq = shared->mark.seq;
        if (audit_docs_read(shared->path, shared->mark.entries, &shared->docs, error) !=
            NG_OK) {
            shared->paused_ns = clock_monotonic_ns();
            return;
        }
    }
    for (size_t i = 0; i < SHARED_PAGES; i++) {
        if (audit_writer_waiting(gateway->audit.writer) > AUDIT_WAITING_MAX / 2) {
            return;
        }
        shared->looked = 0;
        if (store_changes(gateway->store, call, shared->seq, SHARED_PAGE, shared_compare,
                          shared) != NG_OK) {
            return;
        }
        if (shared->looked < SHARED_PAGE) {
            shared_compare_end(shared);
            return;
        }
    }
}

/* ---- the whole ---- */

static void shared_go_on(struct audit_shared *shared, struct call *call, struct buf *error)
{
    uint64_t entries;
    bool are_over = audit_epochs_are_over(&shared->gateway->audit.epochs);
    switch (shared->state) {
    case SHARED_RESTS:
        if (shared_is_due(shared) &&
            (shared->has_mark || shared_read_mark(shared, error) == NG_OK)) {
            shared->state = SHARED_ASKS;
        }
        break;
    case SHARED_ASKS:
        shared_settle(shared, NULL, &shared->next.entries, SHARED_NUMBERS);
        break;
    case SHARED_NUMBERS:
        shared_number(shared, call);
        break;
    case SHARED_WAITS:
        if (are_over) {
            shared->state = shared->recovered ? SHARED_MARKS : SHARED_FLUSHES;
        }
        break;
    case SHARED_FLUSHES:
        shared_settle(shared, NULL, &entries, SHARED_COMPARES);
        break;
    case SHARED_COMPARES:
        shared_compare_some(shared, call, error);
        break;
    case SHARED_MARKS:
        shared_settle(shared, &shared->next, &entries, SHARED_RESTS);
        if (shared->state == SHARED_RESTS) {
            shared->mark = shared->next;
            shared_rest(shared);
        }
        break;
    }
}

void audit_shared_step(struct audit_shared *shared, struct call *call)
{
    struct buf error;
    enum shared_state before;
    if (shared == NULL) {
        return;
    }
    if (!gateway_keeps_audit(shared->gateway)) {
        /* The first mark, with the first entry: what was changed before needs none. */
        atomic_store(&shared->gateway->audit.last_seq, store_look_seq(shared->gateway->store));
        return;
    }
    if (shared->paused_ns != 0 &&
        clock_monotonic_ns() - shared->paused_ns < (int64_t)SHARED_PAUSE_MS * 1000000) {
        return;
    }
    struct result staged = call->staged;
    buf_init(&error, SHARED_SENTENCE_MAX);
    do {
        before = shared->state;
        shared_go_on(shared, call, &error);
    } while (shared->state != before && shared->state != SHARED_RESTS);
    if (error.len > 0 && !shared->complains) {
        log_write(NG_LOG_ERROR, "audit",
                  "changes without an entry cannot be looked for, it is tried again: %s",
                  buf_cstr(&error));
    }
    shared->complains = error.len > 0;
    buf_done(&error);
    call->staged = staged;
}

int audit_shared_open(struct gateway *gateway, const char *path, bool begins, struct buf *error)
{
    struct audit_shared *shared = alloc_zeroed(1, sizeof(*shared));
    if (shared == NULL) {
        return shared_no_memory(error);
    }
    shared->gateway = gateway;
    shared->path = str_dup(ng_str_of(path));
    int rc = shared->path != NULL ? NG_OK : shared_no_memory(error);
    if (rc == NG_OK && begins) {
        rc = shared_read_mark(shared, error);
        if (rc == NG_ENOTFOUND) {
            rc = shared_first_mark(shared, error);
        }
    }
    if (rc != NG_OK) {
        audit_shared_close(shared);
        return rc;
    }
    gateway->audit.shared = shared;
    return NG_OK;
}

void audit_shared_close(struct audit_shared *shared)
{
    if (shared != NULL) {
        audit_docs_free(shared->docs);
        free(shared->path);
        free(shared);
    }
}
