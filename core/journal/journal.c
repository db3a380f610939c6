/* SPDX-License-Identifier: MIT */
/* journal.c - the journal in use: opening it, its functions for plugins, flushing, closing. */
#include "journal.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/module/abi_size.h"
#include "journal_delivery.h"
#include "journal_documents.h"

/* How long a call without a limit of its own waits for numbers. */
#define FLUSH_SETTLE_MS 60000

/* ---- waiting for the delivery ---- */

/* What is not in the feed yet, the delivery cannot deliver: with other gateways about, changes
 * are numbered after they are answered. */
static int front_settle(struct journal_front *front, struct call *call, int64_t until_ns)
{
    int64_t left_ns;
    if (until_ns == 0) {
        left_ns = (int64_t)FLUSH_SETTLE_MS * 1000000;
    } else {
        left_ns = until_ns - clock_monotonic_ns();
    }
    if (!front->shared) {
        return NG_OK;
    }
    return store_settle(front->store, call, NG_COLLECTION_REFERENCED,
                        left_ns < 0 ? 0 : left_ns / 1000000);
}

/* As journal_flush, at most until then (0: the call's own time), without a message. */
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
    pthread_mutex_lock(&front->lock);
    uint64_t ticket = ++front->flush_asked;
    uint64_t failures = front->failures;
    pthread_cond_signal(&front->wake);
    while (rc == NG_PENDING) {
        if (front->flush_done >= ticket) {
            rc = NG_OK;
        } else if (front->stopping ||
                   (front->failures != failures && front->flush_tried >= ticket)) {
            rc = NG_EUNAVAILABLE;
        } else if (until_ns != 0 && clock_monotonic_ns() >= until_ns) {
            rc = NG_ETIMEOUT;
        } else if (atomic_load(&call->cancelled)) {
            rc = NG_ECANCELLED;
        } else {
            /* In steps, because a cancellation does not wake. */
            (void)delivery_wait_until(&front->moved, &front->lock,
                                      clock_monotonic_ns() +
                                          (int64_t)DELIVERY_WAIT_FIRST_MS * 1000000);
        }
    }
    pthread_mutex_unlock(&front->lock);
    return rc;
}

/* ---- what plugins call: the journal's own functions, under the front's handle ---- */

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
        int rc = NG_OK;
        list[i] = entries[i];
        if (entries[i]->size != sizeof(struct ng_entry)) {
            struct ng_entry *copy = arena_alloc(arena, sizeof(*copy));
            if (copy == NULL) {
                rc = call_no_memory(call_of(call));
            } else {
                rc = abi_take(call_of(call), &abi_entry, copy, entries[i]);
            }
            list[i] = copy;
        }
        if (rc != NG_OK) {
            return rc;
        }
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

static int front_dump(void *user, struct ng_call *call, struct ng_str space,
                      struct ng_str *ret_json)
{
    struct journal_front *front = user;
    int rc = journal_flush(front, call_of(call));
    if (rc == NG_OK) {
        rc = journal_rwlock_lock(front, call_of(call), true);
    }
    if (rc == NG_OK) {
        /* What many calls have made is more than one may use. */
        call_of(call)->arena.max = CALL_BACKGROUND_MEMORY_MAX;
        rc = front->inner->dump(front->db, call, space, ret_json);
        journal_rwlock_unlock(front, true);
    }
    return rc;
}

static int front_restore(void *user, struct ng_call *call, struct ng_str space,
                         struct ng_str json)
{
    struct journal_front *front = user;
    int rc = journal_flush(front, call_of(call));
    if (rc == NG_OK) {
        rc = journal_rwlock_lock(front, call_of(call), true);
    }
    if (rc == NG_OK) {
        rc = front->inner->restore(front->db, call, space, json);
        journal_rwlock_unlock(front, true);
    }
    return rc;
}

/* What it names is pinned first: a pin too many costs room, one too few a version. */
static int front_checkpoint_put(void *user, struct ng_call *call, struct ng_str space,
                                struct ng_str id, struct ng_str json)
{
    struct journal_front *front = user;
    int rc = journal_pins_put(front, call_of(call), space, id, json);
    if (rc != NG_OK) {
        return rc;
    }
    return front->inner->checkpoint_put(front->db, call, space, id, json);
}

static int front_checkpoint_get(void *user, struct ng_call *call, struct ng_str space,
                                struct ng_str id, struct ng_str *ret_json)
{
    struct journal_front *front = user;
    /* As for a dump: what is in one was made by many calls. */
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
    if (front->inner->health == NULL) {
        return NG_OK;
    }
    return front->inner->health(front->db, call);
}

static bool front_is_idle(struct journal_front *front)
{
    pthread_mutex_lock(&front->lock);
    bool idle = front->backlog <= 0 && front->cursor >= front->wanted &&
                (front->counted || front->cursor >= front->opened);
    pthread_mutex_unlock(&front->lock);
    return idle;
}

static int front_flush(void *user, struct ng_call *pub, int64_t wait_ms, uint64_t *ret_backlog)
{
    struct journal_front *front = user;
    struct call *call = call_of(pub);
    *ret_backlog = 0;
    /* Nothing waits. What other gateways have written, and what was there before the start and
     * is not counted yet, is asked for. */
    if (!front->shared && front_is_idle(front)) {
        return NG_OK;
    }
    int rc = front_wait(front, call, clock_monotonic_ns() + wait_ms * 1000000);
    if (rc == NG_EWOULDBLOCK || rc == NG_ECANCELLED) {
        return rc;
    }
    if (rc != NG_OK) {
        int64_t backlog = journal_backlog(front);
        if (backlog < 1) {
            *ret_backlog = 1;
        } else {
            *ret_backlog = (uint64_t)backlog;
        }
    }
    return NG_OK;
}

static int front_restore_over(void *user, struct ng_call *call, struct ng_str space,
                              struct ng_str json, struct ng_str base)
{
    struct journal_front *front = user;
    int rc = journal_flush(front, call_of(call));
    if (rc != NG_OK) {
        return rc;
    }
    return journal_merge(front, call, space, json, base);
}

static int front_restore_aside(void *user, struct ng_call *call, struct ng_str space,
                               struct ng_str id, struct ng_str json)
{
    struct journal_front *front = user;
    int rc = journal_flush(front, call_of(call));
    /* Others go on meanwhile: what they write before the step is kept aside. */
    if (rc != NG_OK) {
        return rc;
    }
    return front->inner->restore_aside(front->db, call, space, id, json);
}

/* It goes before its pins: a pin too many costs room, one too few a version. */
static int front_checkpoint_delete(void *user, struct ng_call *call, struct ng_str space,
                                   struct ng_str id)
{
    struct journal_front *front = user;
    int rc = front->inner->checkpoint_delete(front->db, call, space, id);
    if (rc != NG_OK) {
        return rc;
    }
    return journal_pins_delete(front, call_of(call), space, id);
}

static int front_trim(void *user, struct ng_call *call, struct ng_str space, int64_t before_ms)
{
    struct journal_front *front = user;
    return front->inner->trim(front->db, call, space, before_ms);
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
};

/* The functions for plugins: of those that are optional only what the journal in use has. */
static void front_offer(struct journal_front *front)
{
    const struct ng_journal *inner = front->inner;
    struct ng_journal *functions = &front->functions;
    *functions = front_functions;
    functions->name = inner->name;
    functions->version = inner->version;
    if (inner->restore_aside == NULL) {
        functions->restore_aside = NULL;
    } else {
        functions->restore_aside = front_restore_aside;
    }
    if (inner->checkpoint_delete == NULL) {
        functions->checkpoint_delete = NULL;
    } else {
        functions->checkpoint_delete = front_checkpoint_delete;
    }
    if (inner->trim == NULL) {
        functions->trim = NULL;
    } else {
        functions->trim = front_trim;
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
    pthread_mutex_lock(&front->lock);
    int64_t backlog = i64_max(front->backlog, 0);
    pthread_mutex_unlock(&front->lock);
    return backlog;
}

bool journal_degraded(struct journal_front *front)
{
    pthread_mutex_lock(&front->lock);
    bool degraded = front->degraded;
    pthread_mutex_unlock(&front->lock);
    return degraded;
}

void journal_date(const struct journal_front *front, int64_t time_ms,
                  char date[RFC3339_DAY_SIZE])
{
    journal_zone_day(front == NULL ? NULL : front->zone, time_ms, date);
}

int journal_flush(struct journal_front *front, struct call *call)
{
    int rc = front_wait(front, call, 0);
    if (rc == NG_OK || rc == NG_EWOULDBLOCK) {
        return rc;
    }
    return call_fail(call, rc, "the journal has not taken all events; try again later");
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
    int rc = journal_zone_open(zone, &front->zone);
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
        if (rc != NG_OK) {
            return rc;
        }
        return backend->open(&call->pub, conf, &front->db);
    }
    struct journal_documents *documents = NULL;
    rc = journal_documents_open(call, front->store, front->zone, &documents);
    front->db = documents;
    front->inner = journal_documents_vtable();
    return rc;
}

static int front_init(struct journal_front *front)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) {
        return NG_EINTERNAL;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&front->lock, NULL);
    pthread_cond_init(&front->wake, &monotonic);
    pthread_cond_init(&front->moved, &monotonic);
    pthread_cond_init(&front->rwlock, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return NG_OK;
}

static void front_free(struct journal_front *front)
{
    if (front->db != NULL) {
        front->inner->close(front->db);
    }
    journal_zone_free(front->zone);
    pthread_cond_destroy(&front->rwlock);
    pthread_cond_destroy(&front->moved);
    pthread_cond_destroy(&front->wake);
    pthread_mutex_destroy(&front->lock);
    journal_keep_close(front);
    free(front->pins);
    free(front);
}

/* The delivery comes last: the store cannot forget its watch again. */
static int front_start(struct journal_front *front, struct call *call)
{
    void *store_db = NULL;
    int rc = delivery_load_cursor(front, call);
    if (front->shared && (rc == NG_EUNAVAILABLE || rc == NG_ETIMEOUT)) {
        call_reset_result(call); /* the delivery reads it when the database is back */
        rc = NG_OK;
    }
    if (rc != NG_OK) {
        return rc;
    }
    front->opened = store_last_seq(front->store);
    front->seen = front->opened;
    if (!front->shared && front->cursor > front->opened &&
        store_backend(front->store, &store_db)->last_seq != NULL) {
        /* The data was put back to an earlier day: what is new must not be skipped. */
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
    if (front == NULL || front_init(front) != NG_OK) {
        free(front);
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    void *store_db = NULL;
    front->gateway = gateway;
    front->store = gateway->store;
    front->shared = (store_backend(front->store, &store_db)->flags & NG_DOCUMENTS_SHARED) != 0;
    atomic_init(&front->keep_ms, config_int(gateway->config, "journal.keep"));
    int rc = journal_pins_declare(front, call);
    if (rc == NG_OK) {
        rc = journal_keep_declare(front, call);
    }
    if (rc == NG_OK) {
        rc = front_open_inner(front, call, backend, conf);
    }
    if (rc != NG_OK) {
        front_free(front);
        return rc;
    }
    front_offer(front);
    /* From here on the store may know the front: it is closed with the gateway. */
    *ret = front;
    return front_start(front, call);
}

void journal_stop(struct journal_front *front)
{
    if (front == NULL) {
        return;
    }
    pthread_mutex_lock(&front->lock);
    front->stopping = true;
    if (front->current != NULL) {
        call_cancel(front->current);
    }
    pthread_cond_broadcast(&front->wake);
    pthread_cond_broadcast(&front->moved);
    pthread_cond_broadcast(&front->rwlock);
    pthread_mutex_unlock(&front->lock);
    if (front->running) {
        (void)pthread_join(front->thread, NULL);
        front->running = false;
    }
}

void journal_close(struct journal_front *front)
{
    if (front != NULL) {
        journal_stop(front);
        front_free(front);
    }
}
