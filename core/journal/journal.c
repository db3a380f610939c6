/* SPDX-License-Identifier: MIT */
/* journal.c - opens and closes the journal, flushes it, and wraps its functions for plugins. */
#include "journal.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/config/config.h"
#include "core/module/abi_size.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* Wait for sequence numbers, for calls without a deadline. */
#define FLUSH_SETTLE_MS 60000

/* ---- waiting for the delivery ---- */

/* With shared documents changes get their sequence numbers after they are answered: waits until
 * all of them are in the feed. */
static int front_settle(struct journal_front *front, struct call *call, int64_t until_ns)
{
    int64_t left_ns = (int64_t)FLUSH_SETTLE_MS * 1000000;
    if (!store_is_shared(front->store)) {
        return NG_OK;
    }
    if (until_ns != 0) {
        left_ns = i64_max(until_ns - clock_monotonic_ns(), 0);
    }
    return store_settle(front->store, call, NG_COLLECTION_REFERENCED, left_ns / 1000000);
}

/* As journal_flush(), at most until `until_ns` (0: the deadline of the call), without a
 * message.
 */
static int front_wait(struct journal_front *front, struct call *call, int64_t until_ns)
{
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    if (until_ns == 0 || (call->deadline_ns != 0 && call->deadline_ns < until_ns)) {
        until_ns = call->deadline_ns;
    }
    int rc = front_settle(front, call, until_ns);
    if (rc != NG_OK) {
        return rc;
    }
    rc = NG_PENDING;
    lock_take(&front->lock);
    uint64_t ticket = ++front->flush_asked;
    uint64_t failures = front->failures;
    pthread_cond_signal(&front->wake);
    while (rc == NG_PENDING) {
        if (front->flush_done >= ticket) {
            rc = NG_OK;
        } else if (front->state == DELIVERY_STOPPING ||
                   (front->failures != failures && front->flush_tried >= ticket)) {
            rc = NG_EUNAVAILABLE;
        } else if (until_ns != 0 && clock_monotonic_ns() >= until_ns) {
            rc = NG_ETIMEOUT;
        } else if (call_has(call, CALL_CANCELLED)) {
            rc = NG_ECANCELLED;
        } else {
            /* In steps: a cancellation does not signal. */
            (void)delivery_wait_until(&front->moved, &front->lock,
                                      clock_monotonic_ns() +
                                          (int64_t)DELIVERY_WAIT_FIRST_MS * 1000000);
        }
    }
    lock_release(&front->lock);
    return rc;
}

/* ---- functions for plugins, with the front as handle ---- */

static int front_deliver(void *user, struct ng_call *call,
                         const struct ng_entry *const *entries, size_t count)
{
    struct journal_front *front = user;
    if (count > NG_DELIVERY_MAX) {
        return call_fail(call_of(call), NG_EINVAL,
                         "%zu entries are too many for one delivery (%d)", count,
                         NG_DELIVERY_MAX);
    }
    const struct ng_entry *list[NG_DELIVERY_MAX];
    struct arena *arena = &call_of(call)->arena;
    for (size_t i = 0; i < count; i++) {
        list[i] = entries[i];
        if (entries[i]->size == sizeof(struct ng_entry)) {
            continue;
        }
        struct ng_entry *copy = arena_alloc(arena, sizeof(*copy));
        if (copy == NULL) {
            return call_no_memory(call_of(call));
        }
        int rc = abi_take(call_of(call), &abi_entry, copy, entries[i]);
        if (rc != NG_OK) {
            return rc;
        }
        list[i] = copy;
    }
    return front->inner->deliver(front->db, call, list, count);
}

static int front_timeline(void *user, struct ng_call *call, const struct ng_timeline *timeline,
                          ng_entry_row_fn *row, void *row_user)
{
    struct journal_front *front = user;
    struct ng_timeline mine;
    struct abi_given given = {.backend = front->inner->name, .to.entry = row, .user = row_user};
    int rc = abi_take(call_of(call), &abi_timeline, &mine, timeline);
    if (rc != NG_OK) {
        return rc;
    }
    rc = front->inner->timeline(front->db, call, &mine, abi_give_entry, &given);
    return abi_given_end(call_of(call), &given, rc);
}

static int front_recall(void *user, struct ng_call *call, const struct ng_recall *recall,
                        ng_entry_row_fn *row, void *row_user, const char **ret_engine)
{
    struct journal_front *front = user;
    struct ng_recall mine;
    struct abi_given given = {.backend = front->inner->name, .to.entry = row, .user = row_user};
    int rc = abi_take(call_of(call), &abi_recall, &mine, recall);
    if (rc != NG_OK) {
        return rc;
    }
    rc = front->inner->recall(front->db, call, &mine, abi_give_entry, &given, ret_engine);
    return abi_given_end(call_of(call), &given, rc);
}

static int front_summary(void *user, struct ng_call *call, struct ng_str space,
                         struct ng_str *ret_text)
{
    struct journal_front *front = user;
    return front->inner->summary(front->db, call, space, ret_text);
}

static int front_set_summary(void *user, struct ng_call *call, struct ng_str space,
                             struct ng_str text)
{
    struct journal_front *front = user;
    int rc = journal_rwlock_lock(front, call_of(call), false);
    if (rc == NG_OK) {
        rc = front->inner->set_summary(front->db, call, space, text);
        journal_rwlock_unlock(front, false);
    }
    return rc;
}

/* Delivers all events, then waits for a turn. */
static int front_take_turn(struct journal_front *front, struct ng_call *call)
{
    int rc = journal_flush(front, call_of(call));
    return rc != NG_OK ? rc : journal_turn_take(front, call_of(call));
}

/* The same, then takes the lock exclusively. */
static int front_lock_flushed(struct journal_front *front, struct ng_call *call)
{
    int rc = front_take_turn(front, call);
    if (rc != NG_OK) {
        return rc;
    }
    rc = journal_rwlock_lock(front, call_of(call), true);
    if (rc != NG_OK) {
        journal_turn_release(front);
    }
    return rc;
}

static void front_unlock(struct journal_front *front)
{
    journal_rwlock_unlock(front, true);
    journal_turn_release(front);
}

static int front_dump(void *user, struct ng_call *call, struct ng_str space,
                      struct ng_str *ret_json)
{
    struct journal_front *front = user;
    int rc = front_lock_flushed(front, call);
    if (rc == NG_OK) {
        /* A dump holds the data of many calls: more than the limit of one. */
        call_of(call)->arena.max = CALL_BACKGROUND_MEMORY_MAX;
        rc = front->inner->dump(front->db, call, space, ret_json);
        front_unlock(front);
    }
    return rc;
}

static int front_restore(void *user, struct ng_call *call, struct ng_str space,
                         struct ng_str json)
{
    struct journal_front *front = user;
    int rc = front_lock_flushed(front, call);
    if (rc == NG_OK) {
        rc = front->inner->restore(front->db, call, space, json);
        front_unlock(front);
    }
    return rc;
}

/* Pins first: a superfluous pin costs room, a missing one loses a version. */
static int front_checkpoint_put(void *user, struct ng_call *call, struct ng_str space,
                                struct ng_str id, struct ng_str json)
{
    struct journal_front *front = user;
    int rc = journal_pins_put(front, call_of(call), space, id, json);
    return rc != NG_OK ? rc : front->inner->checkpoint_put(front->db, call, space, id, json);
}

static int front_checkpoint_get(void *user, struct ng_call *call, struct ng_str space,
                                struct ng_str id, struct ng_str *ret_json)
{
    struct journal_front *front = user;
    /* As in front_dump(). */
    call_of(call)->arena.max = CALL_BACKGROUND_MEMORY_MAX;
    return front->inner->checkpoint_get(front->db, call, space, id, ret_json);
}

static int front_checkpoint_list(void *user, struct ng_call *call, struct ng_str space,
                                 ng_row_fn *row, void *row_user)
{
    struct journal_front *front = user;
    struct abi_given given = {.backend = front->inner->name, .to.row = row, .user = row_user};
    int rc = front->inner->checkpoint_list(front->db, call, space, abi_give_row, &given);
    return abi_given_end(call_of(call), &given, rc);
}

static int front_health(void *user, struct ng_call *call)
{
    struct journal_front *front = user;
    return front->inner->health == NULL ? NG_OK : front->inner->health(front->db, call);
}

static bool front_is_idle(struct journal_front *front)
{
    lock_take(&front->lock);
    bool idle =
        front->backlog <= 0 && front->cursor >= front->wanted && front->cursor >= front->opened;
    lock_release(&front->lock);
    return idle;
}

static int front_flush(void *user, struct ng_call *pub, int64_t wait_ms, uint64_t *ret_backlog)
{
    struct journal_front *front = user;
    struct call *call = call_of(pub);
    *ret_backlog = 0;
    /* The backlog does not include events of other gateways: a round must look for them. */
    if (!store_is_shared(front->store) && front_is_idle(front)) {
        return NG_OK;
    }
    int rc = front_wait(front, call, clock_monotonic_ns() + wait_ms * 1000000);
    if (rc == NG_EWOULDBLOCK || rc == NG_ECANCELLED) {
        return rc;
    }
    if (rc != NG_OK) {
        *ret_backlog = (uint64_t)i64_max(journal_backlog(front), 1);
    }
    return NG_OK;
}

static int front_restore_over(void *user, struct ng_call *call, struct ng_str space,
                              struct ng_str json, struct ng_str base)
{
    struct journal_front *front = user;
    int rc = front_take_turn(front, call);
    if (rc == NG_OK) {
        rc = journal_merge(front, call, space, json, base);
        journal_turn_release(front);
    }
    return rc;
}

static int front_restore_aside(void *user, struct ng_call *call, struct ng_str space,
                               struct ng_str id, struct ng_str json)
{
    struct journal_front *front = user;
    int rc = front_take_turn(front, call);
    if (rc == NG_OK) {
        /* Writes of other callers until the switch are kept in the old generation. */
        rc = front->inner->restore_aside(front->db, call, space, id, json);
        journal_turn_release(front);
    }
    return rc;
}

/* Pins last: a superfluous pin costs room, a missing one loses a version. */
static int front_checkpoint_delete(void *user, struct ng_call *call, struct ng_str space,
                                   struct ng_str id)
{
    struct journal_front *front = user;
    int rc = journal_turn_take(front, call_of(call));
    if (rc != NG_OK) {
        return rc;
    }
    rc = front->inner->checkpoint_delete(front->db, call, space, id);
    journal_turn_release(front);
    return rc != NG_OK ? rc : journal_pins_delete(front, call_of(call), space, id);
}

static int front_trim(void *user, struct ng_call *call, struct ng_str space, int64_t before_ms)
{
    struct journal_front *front = user;
    return front->inner->trim(front->db, call, space, before_ms);
}

static int front_memory(void *user, struct ng_call *call, struct ng_str space,
                        struct ng_str event_id, ng_entry_row_fn *row, void *row_user)
{
    struct journal_front *front = user;
    struct abi_given given = {.backend = front->inner->name, .to.entry = row, .user = row_user};
    int rc = front->inner->memory(front->db, call, space, event_id, abi_give_entry, &given);
    return abi_given_end(call_of(call), &given, rc);
}

static const struct ng_journal front_functions = {
    .size = sizeof(struct ng_journal),
    .deliver = front_deliver,
    .timeline = front_timeline,
    .recall = front_recall,
    .summary = front_summary,
    .set_summary = front_set_summary,
    .dump = front_dump,
    .restore = front_restore,
    .checkpoint_put = front_checkpoint_put,
    .checkpoint_get = front_checkpoint_get,
    .checkpoint_list = front_checkpoint_list,
    .health = front_health,
    .flush = front_flush,
    .restore_over = front_restore_over,
    .restore_aside = front_restore_aside,
    .checkpoint_delete = front_checkpoint_delete,
    .trim = front_trim,
    .memory = front_memory,
};

/* Offers an optional function only if the journal has it. */
static void front_offer(struct journal_front *front)
{
    const struct ng_journal *inner = front->inner;
    struct ng_journal *functions = &front->functions;
    *functions = front_functions;
    functions->name = inner->name;
    functions->version = inner->version;
    if (inner->restore_aside == NULL) {
        functions->restore_aside = NULL;
    }
    if (inner->checkpoint_delete == NULL) {
        functions->checkpoint_delete = NULL;
    }
    if (inner->trim == NULL) {
        functions->trim = NULL;
    }
    if (inner->memory == NULL || inner->forget == NULL) {
        functions->memory = NULL;
    }
}

const struct ng_journal *journal_vtable(struct journal_front *front, void **ret_db)
{
    *ret_db = front;
    return &front->functions;
}

/* ---- numbers, flushing ---- */

int64_t journal_backlog(struct journal_front *front)
{
    lock_take(&front->lock);
    int64_t backlog = i64_max(front->backlog, 0);
    lock_release(&front->lock);
    return backlog;
}

bool journal_degraded(struct journal_front *front)
{
    lock_take(&front->lock);
    bool degraded = front->degraded;
    lock_release(&front->lock);
    return degraded;
}

int journal_flush(struct journal_front *front, struct call *call)
{
    int rc = front_wait(front, call, 0);
    if (rc == NG_OK || rc == NG_EWOULDBLOCK) {
        return rc;
    }
    return call_fail(call, rc, "the journal has not received all events yet; try again later");
}

int journal_enter(struct journal_front *front, struct call *call)
{
    return delivery_enter_referenced(front, call);
}

/* ---- opening and closing ---- */

#define ZONE_UNKNOWN                                                                           \
    "timezone is '%.*s', which the system's zone database does not know; give a name such as " \
    "Europe/Berlin, or UTC"

int journal_check_zone(const struct config *config, struct buf *error)
{
    struct ng_str name = config_text(config, "timezone");
    if (journal_zone_exists(name)) {
        return NG_OK;
    }
    (void)buf_printf(error, ZONE_UNKNOWN, (int)name.len, name.data);
    return NG_EINVAL;
}

static int front_open_inner(struct journal_front *front, struct call *call,
                            const struct ng_journal *backend, const struct ng_conf *conf)
{
    struct ng_str zone = config_text(front->gateway->config, "timezone");
    int rc = journal_zone_use(zone);
    if (rc == NG_EINVAL) {
        return call_fail(call, rc, ZONE_UNKNOWN, (int)zone.len, zone.data);
    }
    if (rc != NG_OK) {
        return call_fail(call, rc, "out of memory");
    }
    if (backend != NULL) {
        front->inner = backend;
        front->remote = backend->health != NULL;
        rc = journal_declare(front->store, call);
        return rc != NG_OK ? rc : backend->open(&call->pub, conf, &front->db);
    }
    struct journal_documents *documents = NULL;
    rc = journal_documents_open(call, front->store, &documents);
    front->db = documents;
    front->inner = journal_documents_vtable();
    return rc;
}

static void front_init(struct journal_front *front)
{
    lock_init(&front->lock, LOCK_JOURNAL);
    lock_cond_init(&front->wake);
    lock_cond_init(&front->moved);
    lock_cond_init(&front->rwlock);
}

static void front_free(struct journal_front *front)
{
    if (front->db != NULL) {
        front->inner->close(front->db);
    }
    pthread_cond_destroy(&front->rwlock);
    pthread_cond_destroy(&front->moved);
    pthread_cond_destroy(&front->wake);
    lock_done(&front->lock);
    journal_keep_close(front);
    store_pins_done(&front->pins);
    free(front->referenced);
    free(front);
}

/* Starts the delivery last: a watch of the store cannot be removed again. */
static int front_start(struct journal_front *front, struct call *call)
{
    void *store_db = NULL;
    int rc = delivery_enter_referenced(front, call);
    if (rc == NG_OK) {
        rc = delivery_load_cursor(front, call);
    }
    if (store_is_shared(front->store) && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call); /* the delivery does it once the database is back */
        rc = NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    front->opened = store_last_seq(front->store);
    if (!store_is_shared(front->store)) {
        front->seen = front->opened;
    }
    if (!store_is_shared(front->store) && front->cursor > front->opened &&
        store_backend(front->store, &store_db)->last_seq != NULL) {
        /* An older backup of the data was restored: new events must not be skipped. */
        log_write(NG_LOG_WARNING, "journal", "the cursor %llu is beyond the last event %llu",
                  (unsigned long long)front->cursor, (unsigned long long)front->opened);
        front->cursor = front->opened;
    }
    return delivery_start(front, call);
}

int journal_open(struct call *call, struct gateway *gateway, const struct ng_journal *backend,
                 const struct ng_conf *conf, struct journal_front **ret)
{
    struct journal_front *front = alloc_zeroed(1, sizeof(*front));
    if (front == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    front_init(front);
    front->gateway = gateway;
    front->store = gateway->store;
    atomic_init(&front->keep_ms, config_int(gateway->config, "journal.keep"));
    int rc = front_open_inner(front, call, backend, conf);
    if (rc != NG_OK) {
        front_free(front);
        return rc;
    }
    front_offer(front);
    journal_pins_offer(front);
    /* From here on the store may have a watch on the front: it is closed with the gateway. */
    *ret = front;
    return front_start(front, call);
}

void journal_stop(struct journal_front *front)
{
    if (front == NULL) {
        return;
    }
    lock_take(&front->lock);
    bool joins = front->state == DELIVERY_RUNNING || front->state == DELIVERY_SLEEPING;
    delivery_enter(front, DELIVERY_STOPPING);
    if (front->current != NULL) {
        call_cancel(front->current);
    }
    pthread_cond_broadcast(&front->wake);
    pthread_cond_broadcast(&front->moved);
    pthread_cond_broadcast(&front->rwlock);
    lock_release(&front->lock);
    if (joins) {
        (void)pthread_join(front->thread, NULL);
    }
}

void journal_close(struct journal_front *front)
{
    if (front != NULL) {
        journal_stop(front);
        front_free(front);
    }
}
