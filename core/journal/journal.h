/* SPDX-License-Identifier: MIT */
/*
 * journal.h - the journal of one gateway: where it is kept, and the delivery that brings events
 * to it.
 *
 * The journal is kept in documents (quiet collections of the core's own) or by a module of kind
 * NG_KIND_JOURNAL. Either way the delivery reads the change feed from a stored cursor, makes an
 * entry of every event of a collection with NG_COLLECTION_REFERENCED, delivers them in order,
 * at least once, and moves the cursor. A journal that is away costs nothing but a growing
 * backlog.
 *
 * What the data of an event (ng_draft_event) says becomes the entry: "kind" ("memory" makes a
 * memory, else it is a reference), "title", "status", "summary" (of a reference) or "content"
 * (of a memory), "source", "tags", "score", "version" (default: the revision), "event_id"
 * (default: made of time and sequence number). Other members are the entry's data.
 */
#ifndef NOTEGATE_CORE_JOURNAL_H
#define NOTEGATE_CORE_JOURNAL_H

#include "core/call/call.h"
#include "core/call/gateway.h"
#include "journal_zone.h"
#include "notegate/journal.h"

struct journal_front;

/* Does the system know `timezone`? NG_EINVAL: error says what to give. */
int journal_check_zone(const struct config *config, struct buf *error);

/*
 * Opens the journal and starts the delivery. After the store is open and the plugins'
 * collections are declared, before the first call; gateway->store must be set. backend: a
 * journal module's descriptor, which must outlive the front, or NULL: kept in documents. conf:
 * the module's view of the configuration (for documents: any view; "timezone" is read from it).
 * A module whose server is away at start may fail here only for a bad configuration. *ret may
 * be set also on failure: then it is closed as after a success.
 */
int journal_open(struct call *call, struct gateway *gateway, const struct ng_journal *backend,
                 const struct ng_conf *conf, struct journal_front **ret);
/* Ends the delivery: what was not delivered is delivered after the next start. May be called
 * more than once. Before store_close. */
void journal_stop(struct journal_front *front);
/* Stops, closes the module and frees. The store tells the front about commits as long as there
 * are any: close it first, or be sure that nothing commits any more. NULL is a no-op. */
void journal_close(struct journal_front *front);

/* The functions of the journal in use, and their handle. dump() and restore() deliver the
 * backlog first. */
const struct ng_journal *journal_vtable(struct journal_front *front, void **ret_db);

/* Events that wait for their delivery: for /readyz and notegate_outbox_backlog. */
int64_t journal_backlog(struct journal_front *front);
/* The last delivery failed: /readyz says "degraded". */
bool journal_degraded(struct journal_front *front);
/* The day in the journal's zone; without a journal it is UTC's. */
void journal_date(const struct journal_front *front, int64_t time_ms,
                  char date[RFC3339_DAY_SIZE]);
/* Waits until all that was committed before this call is delivered. NG_ETIMEOUT, NG_ECANCELLED,
 * NG_EUNAVAILABLE: the journal is away. Only where the call may block. */
int journal_flush(struct journal_front *front, struct call *call);

/* journal.keep, from the next upkeep on; 0: for good. NULL is a no-op. */
void journal_set_keep(struct journal_front *front, int64_t keep_ms);
/* Upkeep: removes what is older from the journal, by store_now(), once an hour. */
int journal_keep_run(struct journal_front *front, struct call *call);
/* Before store_maintain: reads which versions the checkpoints name, and tells the store. */
int journal_pins_load(struct journal_front *front, struct call *call);

#endif
