/* SPDX-License-Identifier: MIT */
/*
 * host_purge.c - removes a document for good. One transaction stores the deletion and a note of
 * the purge. The note is deleted when the purge is complete. Until then upkeep repeats the
 * purge: after a crash, a full disk, or an outage of the journal.
 *
 * Other gateways, and a journal on a server, can write an earlier event after the purge: a read
 * receipt from another gateway's queue, or a line that Redis restores from its file. There the
 * note stays for PURGES_AGAIN_MS, and upkeep repeats the purge once.
 */
#include <inttypes.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/fault/module_run.h"
#include "core/journal/journal.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "core/store/store.h"
#include "host.h"

/* One note for each document whose purge is not complete. */
#define PURGES_COLLECTION "purges"
#define PURGES_SPACE "shared"
/* Purges of one upkeep run. */
#define PURGES_STEP 100
/* Longer than an event waits until it is stored and delivered. */
#define PURGES_AGAIN_MS (INT64_C(2) * 60 * 1000)
/* Sequence numbers of one page of events, and the deadline of a page in upkeep. */
#define PURGES_PAGE 4096
#define PURGES_PAGE_MS 60000

static const struct ng_collection purges_collection = {
    .name = PURGES_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
};

struct purge {
    struct call *call;
    struct ng_change asked;
    struct ng_key key;
    uint64_t revision; /* of the deletion */
    int64_t due_ms;    /* of the repetition; 0: this is the first purge */
    bool upkeep;       /* the deadline is extended for each page */
};

int host_purge_open(struct gateway *gateway, struct call *call)
{
    return store_declare(gateway->store, call, &purges_collection);
}

/* ---- the deletion ---- */

static int purge_delete(struct ng_call *pub, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    struct purge *purge = user;
    struct draft_view view;
    int rc = purge->asked.fn(pub, present, next, purge->asked.user);
    if (rc != NG_OK) {
        return rc;
    }
    store_draft_view(next, &view);
    bool is_purged = present->deleted && str_is(present->action, NG_ACTION_PURGED);
    if (is_purged ? view.touched : !view.deleted || present->deleted) {
        return call_fail(purge->call, NG_EINTERNAL,
                         "the function of a purge must delete a document that exists");
    }
    purge->revision = present->revision + !is_purged;
    return NG_OK;
}

static int purge_put_note(const struct purge *purge, struct ng_draft *next)
{
    struct ng_call *pub = &purge->call->pub;
    struct ng_writer *writer = pub->host->json_writer(pub);
    if (writer == NULL) {
        return call_no_memory(purge->call);
    }
    json_object(writer);
    json_name(writer, "collection");
    json_string(writer, purge->key.collection);
    json_name(writer, "space");
    json_string(writer, purge->key.space);
    json_name(writer, "id");
    json_string(writer, purge->key.id);
    json_name(writer, "revision");
    json_int(writer, (int64_t)purge->revision);
    json_name(writer, "due");
    json_int(writer, purge->due_ms);
    json_end(writer);
    struct ng_str json = pub->host->json_result(writer);
    return json.data != NULL ? store_draft_json(next, json) : call_no_memory(purge->call);
}

static int purge_note(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)pub;
    (void)present;
    return purge_put_note(user, next);
}

/* The note may be of a later purge of the document. */
static int purge_note_done(struct ng_call *pub, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct purge *purge = user;
    (void)pub;
    if (present->revision == 0 || present->deleted ||
        (uint64_t)json_get_integer(present->body, "revision") > purge->revision) {
        return NG_OK;
    }
    if (purge->due_ms > 0) {
        return purge_put_note(purge, next);
    }
    store_draft_delete(next);
    return NG_OK;
}

/* The change of the note, whose id is COLLECTION/LENGTH OF SPACE/SPACE/ID. */
static int purge_note_change(struct purge *purge, ng_change_fn *fn, struct ng_change *ret)
{
    const struct ng_key *key = &purge->key;
    struct buf id;
    buf_init(&id, 2 * NG_ID_MAX); /* the store refuses one over its own limit */
    (void)buf_add_str(&id, key->collection);
    (void)buf_printf(&id, "/%zu/", key->space.len);
    (void)buf_add_str(&id, key->space);
    (void)buf_add_c(&id, "/");
    (void)buf_add_str(&id, key->id);
    *ret = (struct ng_change){
        .size = sizeof(*ret),
        .key = {ng_str_of(PURGES_COLLECTION), ng_str_of(PURGES_SPACE),
                arena_copy(&purge->call->arena, buf_str(&id))},
        .fn = fn,
        .user = purge,
    };
    bool good = id.rc == NG_OK && ret->key.id.data != NULL;
    buf_done(&id);
    return good ? NG_OK : call_no_memory(purge->call);
}

/* ---- the rest ---- */

struct purge_page {
    struct purge *purge;
    struct ng_event events[PURGES_PAGE];
    uint64_t seqs[PURGES_PAGE];
    size_t count;
};

static int purge_take_event(void *user, const struct ng_event *event)
{
    struct purge_page *page = user;
    page->seqs[page->count] = event->seq;
    page->events[page->count++] = (struct ng_event){
        .size = sizeof(*event),
        .seq = event->seq,
        .time_ms = event->time_ms,
        .revision = event->revision,
        .agent = page->purge->call->caller.agent,
    };
    return page->count == PURGES_PAGE;
}

/* The events about the document, in the journal and in the store. */
static int purge_events(struct purge *purge)
{
    struct call *call = purge->call;
    struct store *store = call->gateway->store;
    struct journal_front *journal = call->gateway->journal;
    struct purge_page *page = arena_alloc(&call->arena, sizeof(*page));
    if (page == NULL) {
        return call_no_memory(call);
    }
    page->purge = purge;
    int rc = journal_flush(journal, call);
    uint64_t until = store_look_seq(store);
    for (uint64_t since = 0; rc == NG_OK && since < until; since += PURGES_PAGE) {
        page->count = 0;
        if (purge->upkeep) {
            call->deadline_ns = clock_monotonic_ns() + (int64_t)PURGES_PAGE_MS * 1000000;
        }
        rc = store_purge_events(store, call, &purge->key, purge->revision, since,
                                since + PURGES_PAGE, purge_take_event, page);
        if (rc == NG_OK && page->count > 0) {
            rc = journal_purge(journal, call, &purge->key, page->events, page->count);
        }
        if (rc == NG_OK && page->count > 0) {
            rc = store_purge_data(store, call, page->seqs, page->count);
        }
    }
    return rc;
}

/* All but the sweep. Revisions and the data of their events are removed first, also while the
 * journal is unreachable: events that are delivered later then have no texts. */
static int purge_remove(struct purge *purge)
{
    struct call *call = purge->call;
    struct store *store = call->gateway->store;
    const struct ng_collection *collection = store_collection(store, purge->key.collection);
    int rc = store_purge(store, call, &purge->key, purge->revision);
    if (rc == NG_OK && collection != NULL &&
        (collection->flags & NG_COLLECTION_REFERENCED) != 0) {
        rc = purge_events(purge);
    }
    return rc;
}

static int purge_end(struct purge *purge)
{
    struct call *call = purge->call;
    struct gateway *gateway = call->gateway;
    struct ng_change done;
    bool late = store_is_shared(gateway->store) || journal_is_remote(gateway->journal);
    bool again = late && purge->due_ms == 0;
    purge->due_ms = again ? clock_unix_ms() + PURGES_AGAIN_MS : 0;
    int rc = purge_note_change(purge, purge_note_done, &done);
    return rc == NG_OK ? store_write_wait(gateway->store, call, &done, 1) : rc;
}

/* One purge at a time in this process. A second one is left to upkeep. */
static bool purge_enter(struct gateway *gateway)
{
    unsigned none = 0;
    return atomic_compare_exchange_strong(&gateway->purges, &none, 1);
}

static void purge_leave(struct gateway *gateway)
{
    atomic_store(&gateway->purges, 0);
}

static int purge_finish(struct purge *purge)
{
    struct gateway *gateway = purge->call->gateway;
    if (!purge_enter(gateway)) {
        return call_fail(purge->call, NG_EBUSY, "another purge is under way");
    }
    int rc = purge_remove(purge);
    int swept = store_purge_sweep(gateway->store, purge->call);
    if (rc == NG_OK) {
        rc = swept;
    }
    if (rc == NG_OK) {
        rc = purge_end(purge);
    }
    purge_leave(gateway);
    return rc;
}

static void purge_log_pending(struct call *call, const struct ng_key *key)
{
    log_write(NG_LOG_WARNING, "store",
              "a purge in %.*s is not complete, upkeep continues it: %.*s",
              (int)key->collection.len, key->collection.data, (int)call->staged.message.len,
              call->staged.message.data == NULL ? "" : call->staged.message.data);
}

int host_purge(struct ng_call *pub, const struct ng_change *change, bool *ret_pending)
{
    struct call *call = call_of(pub);
    struct store *store = call->gateway->store;
    struct purge purge = {.call = call};
    if (module_run_in_change()) {
        return host_no_write(call);
    }
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    int rc = abi_take(call, &abi_change, &purge.asked, change);
    if (rc == NG_OK) {
        rc = host_may_change(call, purge.asked.key.collection);
    }
    if (rc == NG_OK) {
        rc = store_can_purge(store, call);
    }
    if (rc != NG_OK) {
        return rc;
    }
    purge.key = purge.asked.key;
    struct ng_change changes[2] = {purge.asked};
    changes[0].fn = purge_delete;
    changes[0].user = &purge;
    changes[0].action = NG_ACTION_PURGED;
    rc = purge_note_change(&purge, purge_note, &changes[1]);
    if (rc == NG_OK) {
        rc = store_write_wait(store, call, changes, NG_COUNT(changes));
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct result before = call->staged;
    rc = purge_finish(&purge);
    *ret_pending = rc != NG_OK;
    if (rc != NG_OK) {
        purge_log_pending(call, &purge.key);
        call->staged = before;
    }
    return NG_OK;
}

/* ---- upkeep ---- */

struct purge_list {
    struct call *call;
    struct purge purges[PURGES_STEP];
    size_t count;
    int64_t now_ms;
    int rc;
};

static int purge_row(void *user, const struct ng_doc *row)
{
    struct purge_list *list = user;
    struct call *call = list->call;
    const struct ng_value *body = NULL;
    struct ng_str json = arena_copy(&call->arena, row->json);
    list->rc = json.data == NULL ? call_no_memory(call)
                                 : call->pub.host->json_parse(&call->pub, json, &body);
    if (list->rc != NG_OK) {
        return 1;
    }
    struct purge purge = {
        .call = call,
        .key = {json_get_text(body, "collection"), json_get_text(body, "space"),
                json_get_text(body, "id")},
        .revision = (uint64_t)json_get_integer(body, "revision"),
        .due_ms = json_get_integer(body, "due"),
        .upkeep = true,
    };
    /* A gateway without the plugin leaves the purge to one that declares the collection. */
    if (purge.due_ms <= list->now_ms &&
        store_collection(call->gateway->store, purge.key.collection) != NULL) {
        list->purges[list->count++] = purge;
    }
    return 0;
}

/* Runs in a call of its own, with its own memory and deadline. */
static int purge_again(struct call *call, const struct purge *from, bool *ret_removed)
{
    struct call *step = call_new(call->gateway);
    if (step == NULL) {
        return call_no_memory(call);
    }
    struct purge purge = *from;
    step->may_block = true;
    purge.call = step;
    int rc = purge_remove(&purge);
    *ret_removed = rc == NG_OK;
    if (rc != NG_OK) {
        purge_log_pending(step, &purge.key);
    }
    call_unref(step);
    return rc;
}

int host_purge_upkeep(struct gateway *gateway, struct call *call)
{
    struct purge_list *list = arena_zalloc(&call->arena, sizeof(*list));
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(PURGES_COLLECTION),
        .space = ng_str_of(PURGES_SPACE),
        .limit = PURGES_STEP,
    };
    if (list == NULL) {
        return call_no_memory(call);
    }
    list->call = call;
    list->now_ms = clock_unix_ms();
    int rc = store_query(gateway->store, call, &query, purge_row, list, NULL);
    if (rc == NG_OK) {
        rc = list->rc;
    }
    if (rc != NG_OK || list->count == 0 || !purge_enter(gateway)) {
        return rc;
    }
    bool removed[PURGES_STEP] = {false};
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        (void)purge_again(call, &list->purges[i], &removed[i]); /* a failure is logged */
        any = any || removed[i];
    }
    if (any) { /* one sweep for all, without a deadline */
        int64_t deadline_ns = call->deadline_ns;
        call->deadline_ns = 0;
        rc = store_purge_sweep(gateway->store, call);
        call->deadline_ns = deadline_ns;
    }
    for (size_t i = 0; rc == NG_OK && i < list->count; i++) {
        rc = removed[i] ? purge_end(&list->purges[i]) : NG_OK;
    }
    purge_leave(gateway);
    return rc;
}
