/* SPDX-License-Identifier: MIT */
/*
 * store.h - documents: the front that every read and write goes through.
 *
 * A write is a function from the present document to the next. It runs on the caller's thread,
 * under that document's lock, against the newest state, committed or queued; the result joins
 * the backend's queue; the answer leaves when the commit is on disk. If a commit fails, the
 * queued changes built on it fail too. Readers see committed states, hot documents from a
 * bounded cache that the store's own commits keep true.
 */
#ifndef NOTEGATE_CORE_STORE_H
#define NOTEGATE_CORE_STORE_H

#include "core/call/call.h"
#include "notegate/backend.h"

struct store;

/* Bytes of documents kept in memory for reading. */
#define STORE_CACHE_BYTES ((size_t)32 * 1024 * 1024)
/* Collections in one gateway. */
#define STORE_COLLECTIONS_MAX 128

/* Opens the backend (its descriptor must outlive the store). */
int store_open(struct call *call, const struct ng_documents *backend,
               const struct ng_conf *conf, struct store **ret);
/* The id of this gateway, which goes with its changes; borrowed until store_close(). */
void store_set_gateway(struct store *store, struct ng_str id);
/* No change function runs again from here on (shared stores): before plugins are stopped. */
void store_stop(struct store *store);
/* Waits for queued commits, closes the backend. NULL is a no-op. */
void store_close(struct store *store);
/* Do other gateways write to it? */
static inline bool store_is_shared(const struct store *store)
{
    /* Its first member: store.c asserts it. */
    return *(const bool *)(const void *)store;
}

const struct ng_documents *store_backend(struct store *store, void **ret_db);

/* A collection exists from now on. */
int store_declare(struct store *store, struct call *call,
                  const struct ng_collection *collection);
/* Declares the collections that failed because the database was away (shared stores only).
 * NG_OK: none is left. On workers. */
int store_declare_rest(struct store *store, struct call *call);
const struct ng_collection *store_collection(struct store *store, struct ng_str name);
/* One after the other; NULL: there are no more. */
const struct ng_collection *store_collection_at(struct store *store, size_t index);
/* Shared stores: a referenced collection is held from its declaration until its release. Its
 * changes fail with NG_EUNAVAILABLE, as the gateway that delivers does not know the collection
 * and would skip its events. store_release_referenced() releases the first `count` collections
 * (store_collection_at()). From any thread. */
void store_release_referenced(struct store *store, size_t count);
bool store_is_held(const struct store *store);

/* The values of a collection's declared fields in a document's body, as a backend gets them.
 * Memory of the arena; texts are those of the body. NG_OK or NG_EINTERNAL. */
int store_fields(struct arena *arena, const struct ng_collection *collection,
                 const struct ng_value *body, const struct ng_field_value **ret_fields,
                 size_t *ret_count);

/* See ng_host: same meaning. */
int store_get(struct store *store, struct call *call, const struct ng_key *key,
              uint64_t revision, const struct ng_doc **ret_doc);
/* Is this the whole text of a document that the call has read? Then it lives until the call
 * ends.
 */
bool store_lends(const struct call *call, struct ng_str text);
int store_query(struct store *store, struct call *call, const struct ng_query *query,
                ng_row_fn *row, void *user, uint64_t *ret_total);
int store_search(struct store *store, struct call *call, const struct ng_search *search,
                 ng_row_fn *row, void *user, uint64_t *ret_total, const char **ret_engine);
int store_history_count(struct store *store, struct call *call, const struct ng_key *key,
                        const struct ng_range *range, uint64_t *ret_count);
int store_history(struct store *store, struct call *call, const struct ng_key *key,
                  const struct ng_range *range, ng_row_fn *row, void *user);
int store_changes(struct store *store, struct call *call, uint64_t since, uint32_t limit,
                  ng_event_fn *event, void *user);
/* See revision_at and trail of ng_documents; only where the backend has them. */
int store_revision_at(struct store *store, struct call *call, const struct ng_key *key,
                      uint64_t seq, int64_t time_ms, struct ng_kept *ret);
int store_trail(struct store *store, struct call *call, const struct ng_trail *trail,
                uint64_t looks, ng_event_fn *event, void *user, uint64_t *ret_next);

/* Changes, for the call's own answer: NG_PENDING, the call is done when the commit is. */
int store_change(struct store *store, struct call *call, const struct ng_change *changes,
                 size_t count);

/* May a change function of a call run again, on another thread? NULL: no. */
static inline bool store_runs_again(const struct store *store)
{
    return store != NULL && store_is_shared(store);
}

/* Only then: the plugin's code of a call runs; while it does, no change function of the call is
 * run again (another gateway was faster). Around each run. */
void store_run_begins(struct store *store, struct call *call);
void store_run_ends(struct store *store, struct call *call);

/* Changes inside a longer operation: done(user, rc) once, on the committing thread, instead of
 * holding the call's answer; on failure the call carries the message. NG_OK: queued; else
 * done() is not called. */
typedef void store_done_fn(void *user, int rc);
int store_write(struct store *store, struct call *call, const struct ng_change *changes,
                size_t count, store_done_fn *done, void *user);
/* The same; the answer of the call's idempotency key is stored in the same commit (NULL: none).
 */
int store_write_answered(struct store *store, struct call *call,
                         const struct ng_change *changes, size_t count,
                         const struct ng_answer *answer, store_done_fn *done, void *user);
/* The same and wait for it. Only on workers and in commands. */
int store_write_answered_wait(struct store *store, struct call *call,
                              const struct ng_change *changes, size_t count,
                              const struct ng_answer *answer);
int store_write_wait(struct store *store, struct call *call, const struct ng_change *changes,
                     size_t count);

/* Changes that have nothing to do with each other; most at once. */
#define STORE_EACH_MAX 64
struct store_each {
    struct call *call; /* of its own */
    struct ng_change change;
    int rc; /* out; the call carries the message */
};
/* Each in a commit of its own, all of them under way at once; waits for all. Only on workers.
 */
void store_write_each(struct store *store, struct store_each *items, size_t count);

/* Draft functions of struct ng_host. */
int store_draft_json(struct ng_draft *next, struct ng_str object);
int store_draft_text(struct ng_draft *next, const struct ng_str *pieces, size_t count);
int store_draft_splice(struct ng_draft *next, uint64_t at, uint64_t removed,
                       struct ng_str inserted);
void store_draft_delete(struct ng_draft *next);
void store_draft_event(struct ng_draft *next, struct ng_str json);
/* Data of the event so far; or absent. */
struct ng_str store_draft_event_data(const struct ng_draft *next);
/* Drafts for other services of the core (files). */
struct draft_view {
    bool touched, deleted;
    struct ng_str json, text;
};
struct ng_draft *store_draft_new(struct call *call, struct ng_str json, struct ng_str text);
void store_draft_view(const struct ng_draft *draft, struct draft_view *ret);

/* Runs after each commit that made events, on the committing thread, in order of seq; must be
 * quick. collection: only if one of the events is in it; NULL: after all. */
typedef void store_watch_fn(void *user, const struct ng_event *events, size_t count);
int store_watch(struct store *store, const char *collection, store_watch_fn *watch, void *user);
/* It does not run any more when this returns. */
void store_unwatch(struct store *store, store_watch_fn *watch, void *user);
/* Shared documents, where the backend tells of commits by other gateways: ng_documents.watch.
 */
void store_watch_others(struct store *store, ng_watch_fn *changed, void *user);
uint64_t store_last_seq(struct store *store);
/* Shared documents: this event was seen; and the backend's present position (0: unknown). */
void store_saw_seq(struct store *store, uint64_t seq);
uint64_t store_look_seq(struct store *store);

/* The stored answer of an idempotency scope, copied into call memory. NG_ENOTFOUND: none. */
int store_answer(struct store *store, struct call *call, struct ng_str scope,
                 struct ng_answer *ret);

/*
 * The time by which things are old enough to be removed for good. It is the clock's, but never
 * beyond the newest time that the store had when it was opened and the uptime since: a clock
 * that is months ahead for a minute removes nothing. One that stays ahead for a day is
 * believed. store NULL: nothing is kept, the system's clock. Any thread.
 */
int64_t store_now(struct store *store);
/* The time of a change that is made now: the clock's, but never before an earlier change, also
 * if the clock is set back. Any thread. */
int64_t store_change_ms(struct store *store);

/* History to keep, upkeep: called by the gateway's timer on a worker. */
int store_maintain(struct store *store, struct call *call);
/* See purge, purge_events, purge_data and purge_sweep in struct ng_documents. NG_EUNAVAILABLE:
 * the backend has none of them. */
int store_can_purge(struct store *store, struct call *call);
int store_purge(struct store *store, struct call *call, const struct ng_key *key,
                uint64_t revision);
/* `about` is made of the key. */
int store_purge_events(struct store *store, struct call *call, const struct ng_key *key,
                       uint64_t revision, uint64_t since, uint64_t until, ng_event_fn *event,
                       void *user);
int store_purge_data(struct store *store, struct call *call, const uint64_t *seqs,
                     size_t count);
int store_purge_sweep(struct store *store, struct call *call);
/* Another history.keep, from the next upkeep on. */
void store_set_keep(struct store *store, int64_t keep_ms);
/* Revisions that the upkeep does not thin out. Copied. */
struct store_pinner {
    int (*load)(void *user, struct call *call); /* before each thinning; NULL: none */
    bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision);
    void *user;
};
#define STORE_PINNERS_MAX 4
void store_pin_revisions(struct store *store, const struct store_pinner *pinner);

/* ---- pins in documents: store_pins.c */

/* Hex digits that name a revision in the text of a document. */
#define STORE_PIN_CHARS 16
/* ret: STORE_PIN_CHARS + 1. */
void store_pin_write(const struct ng_key *key, uint64_t revision, char *ret);

/* Sorted hashes. */
struct store_pins {
    uint64_t *list;
    size_t count;
};

struct store_pins_in {
    const char *collection, *space;
    uint32_t page; /* documents that are read at once */
};

/* Replaces *inout by all pins in these documents; a failure leaves it. */
int store_pins_load(struct store *store, struct call *call, const struct store_pins_in *in,
                    struct store_pins *inout);
bool store_pins_have(const struct store_pins *pins, const struct ng_key *key,
                     uint64_t revision);
void store_pins_done(struct store_pins *pins);
int store_health(struct store *store, struct call *call);
/* Advice of the backend to the operator, one sentence or command each. */
int store_advise(struct store *store, struct call *call, ng_finding_fn *advice, void *user);
/* See settle in struct ng_documents. */
int store_settle(struct store *store, struct call *call, uint32_t flags, int64_t wait_ms);
void store_stats(struct store *store, void (*stat)(void *user, const char *name, double value),
                 void *user);

#endif
