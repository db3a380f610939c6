/* SPDX-License-Identifier: MIT */
/* journal_purge.c - removes entries about a document that was purged from the lists of their
 * days. Its reference becomes that of the purge by itself, as its event is the newest. */
#include "core/base/log.h"
#include "core/base/str.h"
#include "journal_delivery.h"
#include "journal_documents.h"
#include "journal_entry.h"

bool journal_is_remote(const struct journal_front *front)
{
    return front->remote;
}

static int purge_entry(struct journal_front *front, struct call *step,
                       const struct ng_key *about, const struct ng_event *event)
{
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_FORGET,
        .seq = event->seq,
        .space = about->space,
        .time_ms = event->time_ms,
        .agent = event->agent,
        .action = ng_str_of(NG_ACTION_PURGED),
        .collection = about->collection,
        .id = journal_event_id(&step->arena, event),
        .version = event->revision,
    };
    if (entry.id.data == NULL) {
        return call_no_memory(step);
    }
    entry.event_id = entry.id;
    return front->inner->forget(front->db, &step->pub, ng_str_of(""), 0, &entry);
}

int journal_purge(struct journal_front *front, struct call *call, const struct ng_key *about,
                  const struct ng_event *events, size_t count)
{
    if (front->inner->forget == NULL) {
        log_write(NG_LOG_WARNING, "journal",
                  "the journal %s cannot remove entries: those of a purged document stay",
                  front->inner->name);
        return NG_OK;
    }
    int rc = journal_rwlock_lock(front, call, false);
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        struct call *step = call_has(call, CALL_CANCELLED) ? NULL : journal_step(call);
        if (step != NULL) {
            rc = journal_step_end(call, step, purge_entry(front, step, about, &events[i]));
        } else {
            rc = call_fail(call, NG_ECANCELLED, "a purge was cancelled; upkeep continues it");
        }
    }
    journal_rwlock_unlock(front, false);
    return rc;
}
