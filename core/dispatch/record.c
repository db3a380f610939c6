/* SPDX-License-Identifier: MIT */
/* record.c - the queue of ended calls, and the thread that makes entries of the journal of
 * them.
 */
#include "record.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/module/registry.h"
#include "core/store/store.h"

/* Text of one entry, with its JSON. */
#define RECORD_TEXT_MAX ((size_t)64 * 1024)
/* Time to write what waits, when the gateway stops. */
#define RECORD_CLOSE_MS 3000
/* Entries on their way to the disk at a time. */
#define RECORD_FLIGHT_MAX 64
/* Time between two looks at a collection that the store holds. */
#define RECORD_HELD_MS 100

struct record {
    struct record *next;
    struct recorder *recorder;
    struct call *call; /* of its write */
    int rc;
    struct ng_str space, agent, run; /* the rest of its memory */
    struct ng_str event;             /* JSON */
    char texts[];
};

struct recorder {
    struct gateway *gateway;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t wake;
    struct record *first, **last;
    size_t count;
    unsigned in_flight;
    int64_t stop_ns; /* 0: runs on; otherwise the latest time of its end */
    atomic_uint_fast64_t lost;
    bool failing; /* of the thread: told in the log */
};

/* One document for each agent of a space, which counts: its events are the entries. */
static const struct ng_collection record_collection = {
    .name = RECORD_COLLECTION,
    .flags = NG_COLLECTION_REFERENCED | NG_COLLECTION_NO_HISTORY,
    .field_size = sizeof(struct ng_field),
};

/* ---- ended calls ---- */

static void print_event(struct buf *out, const struct call *call, const char *outcome,
                        int64_t took_ns)
{
    struct buf text;
    buf_init(&text, RECORD_TEXT_MAX);
    (void)buf_add_str(&text, call->pub.tool);
    (void)buf_printf(&text, ": %s in %lld ms", outcome, (long long)(took_ns / 1000000));
    if (call->pub.args != NULL && call->pub.args->count > 0) {
        struct buf args;
        buf_init(&args, RECORD_TEXT_MAX);
        record_print(&args, call->pub.args, call->tool->params_tree);
        struct ng_str cut = utf8_cut(buf_str(&args), RECORD_ARGUMENTS_MAX);
        (void)buf_add_c(&text, ", with ");
        (void)buf_add_str(&text, cut);
        (void)buf_add_c(&text, cut.len < args.len ? "..." : "");
        buf_done(&args);
    }
    (void)buf_add_c(out, "{\"kind\":\"memory\",\"source\":\"tool\",\"tags\":[");
    (void)buf_add_json(out, call->pub.tool);
    (void)buf_printf(out, ",\"%s\"],\"content\":", outcome);
    (void)buf_add_json(out, buf_str(&text));
    (void)buf_add_char(out, '}');
    if (text.rc != NG_OK) {
        out->rc = text.rc;
    }
    buf_done(&text);
}

static struct record *record_new(const struct call *call, struct ng_str event)
{
    struct ng_str space = call->caller.space;
    struct ng_str agent = call->caller.agent;
    struct ng_str run = call->caller.run_id;
    struct record *record =
        alloc_zeroed(1, sizeof(*record) + space.len + agent.len + run.len + event.len);
    if (record != NULL) {
        char *at = record->texts;
        record->space = str_move_in(&at, space);
        record->agent = str_move_in(&at, agent);
        record->run = str_move_in(&at, run);
        record->event = str_move_in(&at, event);
    }
    return record;
}

void record_call(struct recorder *recorder, const struct call *call, const char *outcome,
                 int64_t took_ns)
{
    if (call->tool == NULL || call->pub.tool.len == 0 || call->caller.space.len == 0) {
        return;
    }
    struct buf event;
    buf_init(&event, RECORD_TEXT_MAX);
    print_event(&event, call, outcome, took_ns);
    struct record *record = NULL;
    if (event.rc == NG_OK) {
        record = record_new(call, buf_str(&event));
    }
    buf_done(&event);
    lock_take(&recorder->lock);
    bool room = record != NULL && recorder->count < RECORD_QUEUE_MAX && recorder->stop_ns == 0;
    if (room) {
        *recorder->last = record;
        recorder->last = &record->next;
        recorder->count++;
        pthread_cond_signal(&recorder->wake);
    }
    lock_release(&recorder->lock);
    if (!room) {
        free(record);
        (void)atomic_fetch_add(&recorder->lost, 1);
    }
}

uint64_t record_lost(const struct recorder *recorder)
{
    if (recorder == NULL) {
        return 0;
    }
    return atomic_load(&recorder->lost);
}

/* ---- the thread ---- */

static int count_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                    void *user)
{
    const struct record *record = user;
    int64_t calls = 0;
    (void)json_integer(json_get(present->body, "calls"), &calls);
    struct ng_str json =
        arena_printf(&call_of(pub)->arena, "{\"calls\":%lld}", (long long)calls + 1);
    store_draft_event(next, record->event);
    if (json.data == NULL) {
        return NG_EINTERNAL;
    }
    return store_draft_json(next, json);
}

/* On the committing thread. */
static void record_written(void *user, int rc)
{
    struct record *record = user;
    struct recorder *recorder = record->recorder;
    lock_take(&recorder->lock);
    record->rc = rc;
    recorder->in_flight--;
    pthread_cond_broadcast(&recorder->wake);
    lock_release(&recorder->lock);
}

static void write_record(struct recorder *recorder, struct record *record)
{
    int rc = NG_EINTERNAL;
    struct call *call = call_new(recorder->gateway);
    record->call = call;
    record->recorder = recorder;
    if (call != NULL) {
        call->may_block = true;
        call_set_run(call, record->run);
        rc = call_set_caller(call, record->agent, str_make(NULL, 0), NG_ROLE_ADMIN,
                             NG_MODE_AGENT, false);
    }
    if (rc == NG_OK) {
        struct ng_change change = {
            .size = sizeof(change),
            .key = {ng_str_of(RECORD_COLLECTION), record->space, record->agent},
            .fn = count_fn,
            .user = record,
            .action = "called",
        };
        rc = store_write(recorder->gateway->store, call, &change, 1, record_written, record);
    }
    if (rc != NG_OK) {
        record_written(record, rc);
    }
}

static void records_written(struct recorder *recorder, struct record *records)
{
    int rc = NG_OK;
    while (records != NULL) {
        struct record *record = records;
        records = record->next;
        if (record->rc != NG_OK) {
            rc = record->rc;
            (void)atomic_fetch_add(&recorder->lost, 1);
        }
        call_unref(record->call);
        free(record);
    }
    if (rc != NG_OK && !recorder->failing) {
        log_write(NG_LOG_WARNING, "record", "calls are not recorded (%s); they are counted",
                  error_name(NULL, rc));
    } else if (rc == NG_OK && recorder->failing) {
        log_write(NG_LOG_INFO, "record", "calls are recorded again");
    }
    recorder->failing = rc != NG_OK;
}

/* With the lock held, released meanwhile: writes several records in one commit. */
static void write_some(struct recorder *recorder)
{
    struct record *records = recorder->first;
    struct record *last = records;
    unsigned count = 1;
    while (last->next != NULL && count < RECORD_FLIGHT_MAX) {
        last = last->next;
        count++;
    }
    recorder->first = last->next;
    if (recorder->first == NULL) {
        recorder->last = &recorder->first;
    }
    last->next = NULL;
    recorder->count -= count;
    recorder->in_flight = count;
    lock_release(&recorder->lock);
    for (struct record *record = records; record != NULL; record = record->next) {
        write_record(recorder, record);
    }
    lock_take(&recorder->lock);
    while (recorder->in_flight > 0) {
        lock_wait(&recorder->wake, &recorder->lock);
    }
    lock_release(&recorder->lock);
    records_written(recorder, records);
    lock_take(&recorder->lock);
}

/* With the lock held: the release of the collection does not signal. */
static void wait_held(struct recorder *recorder)
{
    int64_t until_ns = clock_monotonic_ns() + (int64_t)RECORD_HELD_MS * 1000000;
    struct timespec at = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    (void)lock_wait_until(&recorder->wake, &recorder->lock, &at);
}

static void *recorder_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-record");
    struct recorder *recorder = user;
    lock_take(&recorder->lock);
    for (;;) {
        bool late = recorder->stop_ns != 0 && clock_monotonic_ns() >= recorder->stop_ns;
        bool waits = recorder->first != NULL && !late;
        if (waits && store_is_held(recorder->gateway->store)) {
            wait_held(recorder);
        } else if (waits) {
            write_some(recorder);
        } else if (recorder->stop_ns != 0) {
            break;
        } else {
            lock_wait(&recorder->wake, &recorder->lock);
        }
    }
    lock_release(&recorder->lock);
    return NULL;
}

/* ---- beginning and end ---- */

static void recorder_free(struct recorder *recorder)
{
    while (recorder->first != NULL) {
        struct record *record = recorder->first;
        recorder->first = record->next;
        free(record);
    }
    pthread_cond_destroy(&recorder->wake);
    lock_done(&recorder->lock);
    free(recorder);
}

int record_open(struct gateway *gateway, struct call *call, struct recorder **ret)
{
    if (!config_bool(gateway->config, "journal.record_calls")) {
        return NG_OK;
    }
    struct recorder *recorder = alloc_zeroed(1, sizeof(*recorder));
    if (recorder == NULL) {
        return call_fail(call, NG_EINTERNAL, "out of memory");
    }
    recorder->gateway = gateway;
    recorder->last = &recorder->first;
    lock_init(&recorder->lock, LOCK_RECORDER);
    lock_cond_init(&recorder->wake);
    int rc = store_declare(gateway->store, call, &record_collection);
    if (rc == NG_OK && pthread_create(&recorder->thread, NULL, recorder_run, recorder) != 0) {
        rc = call_fail(call, NG_EINTERNAL, "no thread could be started to record calls");
    }
    if (rc != NG_OK) {
        recorder_free(recorder);
        return rc;
    }
    *ret = recorder;
    return NG_OK;
}

void record_close(struct recorder *recorder)
{
    if (recorder == NULL) {
        return;
    }
    lock_take(&recorder->lock);
    recorder->stop_ns = clock_monotonic_ns() + (int64_t)RECORD_CLOSE_MS * 1000000;
    pthread_cond_broadcast(&recorder->wake);
    lock_release(&recorder->lock);
    (void)pthread_join(recorder->thread, NULL);
    recorder_free(recorder);
}
