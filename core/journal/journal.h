/* SPDX-License-Identifier: MIT */
/*
 * journal.h - the journal of one gateway: its storage, and the delivery of events to it.
 *
 * The journal is stored in documents (quiet collections of the core) or by a module of kind
 * NG_KIND_JOURNAL. In both cases the delivery reads the change feed from a stored cursor, makes
 * an entry of every event of a collection with NG_COLLECTION_REFERENCED, delivers the entries
 * in order, at least once, and advances the cursor. While a journal is unreachable, the backlog
 * grows and nothing else changes.
 *
 * The data of an event (ng_draft_event) becomes the entry: "kind" ("memory" makes a memory,
 * "forget" removes the memory whose event id is "id" of "about", any other value makes a
 * reference), "title", "status", "summary" (of a reference) or "content" (of a
 * memory), "source", "tags", "score", "version" (default: the revision), "event_id" (default:
 * made of time and sequence number). Other members are the data of the entry.
 */
#ifndef NOTEGATE_CORE_JOURNAL_H
#define NOTEGATE_CORE_JOURNAL_H

#include "core/call/call.h"
#include "core/call/gateway.h"
#include "journal_zone.h"
#include "notegate/journal.h"

struct journal_front;

/* NG_EINVAL: the system does not know the configured `timezone`; `error` explains it. */
int journal_check_zone(const struct config *config, struct buf *error);

/*
 * Opens the journal and starts the delivery. Called after the store is open (gateway->store)
 * and the plugins' collections are declared, before the first call. backend: descriptor of a
 * journal module, which must outlive the front, or NULL for documents. conf: the module's view
 * of the configuration. If the server of a module is unreachable at the start, open() must not
 * fail for that. *ret may be set after a failure, too: the caller closes it then.
 */
int journal_open(struct call *call, struct gateway *gateway, const struct ng_journal *backend,
                 const struct ng_conf *conf, struct journal_front **ret);
/* Ends the delivery; the backlog is delivered after the next start. Idempotent. Called before
 * store_close(). */
void journal_stop(struct journal_front *front);
/* Stops, closes the module and frees. The store notifies the front of every commit, so it must
 * be closed first, or commit nothing any more. NULL is a no-op. */
void journal_close(struct journal_front *front);

/* Shared documents: tells the other gateways of collections that were declared since the start,
 * which the store holds until then. NG_EUNAVAILABLE: the delivery tries it again. */
int journal_enter(struct journal_front *front, struct call *call);

/* The functions of the journal and their handle. dump() and restore() deliver the backlog
 * first.
 */
const struct ng_journal *journal_vtable(struct journal_front *front, void **ret_db);

/* Events that wait for delivery: for /readyz and notegate_outbox_backlog. */
int64_t journal_backlog(struct journal_front *front);
/* True if the last delivery failed: "degraded" in /readyz. */
bool journal_degraded(struct journal_front *front);
/* Waits until all events committed before this call are delivered. NG_ETIMEOUT, NG_ECANCELLED,
 * NG_EUNAVAILABLE: the journal is unreachable. The call must be allowed to block. */
int journal_flush(struct journal_front *front, struct call *call);

/* True: a server keeps the journal, and can lose its last writes. */
bool journal_is_remote(const struct journal_front *front);
/* Removes the entries of these events from the lists of their days. Call journal_flush() first:
 * an entry that is delivered later stays. On workers. */
int journal_purge(struct journal_front *front, struct call *call, const struct ng_key *about,
                  const struct ng_event *events, size_t count);

/* Sets journal.keep for the next upkeep; 0: no limit. NULL is a no-op. */
void journal_set_keep(struct journal_front *front, int64_t keep_ms);
/* Upkeep, once an hour: removes entries older than journal.keep, by store_now(). */
int journal_keep_run(struct journal_front *front, struct call *call);
#endif
