/* SPDX-License-Identifier: MIT */
/* journal_purge.c - removes the entries of a document that was purged, event by event. A
 * delivery that was cut off does it again: what is gone already is no failure. */
#include "core/base/array.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"
#include "journal_entry.h"

/* Entries that are removed before the round gets more time: many are no hang. */
#define PURGE_STEP 256
#define PURGE_STEP_MS 60000
/* Most events of one document. */
#define PURGE_EVENTS_MAX ((size_t)1 << 26)

struct purge_event {
    uint64_t seq, revision;
    int64_t time_ms;
};

struct purge_events {
    struct purge_event *list;
    size_t count, cap;
    int rc;
};

bool delivery_is_purge(const struct ng_entry *entry)
{
    return entry->kind == NG_ENTRY_REFERENCE && str_is(entry->action, NG_ACTION_PURGED);
}

static int purge_event_keep(void *user, const struct ng_event *event)
{
    struct purge_events *events = user;
    events->rc = array_reserve((void **)&events->list, &events->cap, events->count + 1,
                               sizeof(*events->list), PURGE_EVENTS_MAX);
    if (events->rc != NG_OK) {
        return 1;
    }
    events->list[events->count++] =
        (struct purge_event){event->seq, event->revision, event->time_ms};
    return 0;
}

static int purge_entry(struct journal_front *front, struct call *call,
                       const struct ng_entry *purge, const struct purge_event *gone)
{
    struct call *step = journal_step(call);
    if (step == NULL) {
        return NG_EINTERNAL;
    }
    struct ng_event event = {.seq = gone->seq, .time_ms = gone->time_ms};
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_FORGET,
        .event_id = purge->event_id,
        .seq = front->delivered,
        .space = purge->space,
        .time_ms = gone->time_ms,
        .agent = purge->agent,
        .action = purge->action,
        .collection = purge->collection,
        .id = journal_event_id(&step->arena, &event),
        .version = gone->revision,
    };
    int rc = entry.id.data != NULL ? NG_OK : call_no_memory(step);
    if (rc == NG_OK && front->inner->deliver_marked == NULL) {
        rc = front->inner->forget(front->db, &step->pub, ng_str_of(""), 0, &entry);
    } else if (rc == NG_OK) {
        rc = front->inner->forget(front->db, &step->pub, ng_str_of(front->mark),
                                  front->delivered, &entry);
    }
    return journal_step_end(call, step, rc);
}

int delivery_purge(struct journal_front *front, struct call *call, const struct ng_entry *entry)
{
    struct purge_events events = {0};
    struct ng_key key = {entry->collection, entry->space, entry->id};
    if (front->inner->forget == NULL) {
        log_write(NG_LOG_WARNING, "journal",
                  "the journal %s cannot remove entries: those of the purged %.*s stay",
                  front->inner->name, (int)entry->id.len, entry->id.data);
        return NG_OK;
    }
    int rc =
        store_events_of(front->store, call, &key, entry->version, purge_event_keep, &events);
    if (rc == NG_OK && events.rc != NG_OK) {
        rc = call_no_memory(call);
    }
    for (size_t i = 0; rc == NG_OK && i < events.count; i++) {
        if (i % PURGE_STEP == 0) {
            call->deadline_ns = clock_monotonic_ns() + (int64_t)PURGE_STEP_MS * 1000000;
        }
        rc = purge_entry(front, call, entry, &events.list[i]);
    }
    free(events.list);
    return rc;
}
