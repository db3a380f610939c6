/* SPDX-License-Identifier: MIT */
/*
 * host_purge.c - removes a document for good. The deletion and a note of what is left to do are
 * one transaction; the note goes when the rest is done, so upkeep ends what a crash, a full
 * disk or a journal that is away has cut off.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/fault/module_run.h"
#include "core/journal/journal.h"
#include "core/json/json.h"
#include "core/module/abi_size.h"
#include "core/store/store.h"
#include "host.h"

/* The notes: one for each document whose purge is not done. */
#define PURGES_COLLECTION "purges"
#define PURGES_SPACE "shared"
/* Purges that one run of the upkeep ends. */
#define PURGES_STEP 100

static const struct ng_collection purges_collection = {
    .name = PURGES_COLLECTION,
    .flags = NG_COLLECTION_QUIET | NG_COLLECTION_NO_HISTORY,
};

struct purge {
    struct call *call;
    struct ng_change asked;
    struct ng_key key;
    uint64_t revision; /* of the deletion */
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

static int purge_note(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    const struct purge *purge = user;
    struct ng_writer *writer = pub->host->json_writer(pub);
    (void)present;
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
    json_end(writer);
    struct ng_str json = pub->host->json_result(writer);
    return json.data != NULL ? store_draft_json(next, json) : call_no_memory(purge->call);
}

/* A later purge of the document may have put its own there. */
static int purge_note_done(struct ng_call *pub, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct purge *purge = user;
    (void)pub;
    if ((uint64_t)json_get_integer(present->body, "revision") <= purge->revision) {
        store_draft_delete(next);
    }
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

/* The journal forgets the document when the event of the deletion reaches it, by events whose
 * data the store removes: so it goes first. */
static int purge_finish(struct purge *purge)
{
    struct call *call = purge->call;
    struct gateway *gateway = call->gateway;
    const struct ng_collection *collection =
        store_collection(gateway->store, purge->key.collection);
    struct ng_change done;
    int rc = purge_note_change(purge, purge_note_done, &done);
    if (rc == NG_OK && collection != NULL &&
        (collection->flags & NG_COLLECTION_REFERENCED) != 0) {
        rc = journal_flush(gateway->journal, call);
    }
    if (rc == NG_OK) {
        rc = store_purge(gateway->store, call, &purge->key, purge->revision);
    }
    return rc == NG_OK ? store_write_wait(gateway->store, call, &done, 1) : rc;
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
    int rc;
};

static int purge_row(void *user, const struct ng_doc *row)
{
    struct purge_list *list = user;
    struct call *call = list->call;
    struct purge *purge = &list->purges[list->count++];
    const struct ng_value *body = NULL;
    list->rc = call->pub.host->json_parse(&call->pub, row->json, &body);
    if (list->rc != NG_OK) {
        return 1;
    }
    *purge = (struct purge){
        .call = call,
        .key = {json_get_text(body, "collection"), json_get_text(body, "space"),
                json_get_text(body, "id")},
        .revision = (uint64_t)json_get_integer(body, "revision"),
    };
    return 0;
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
    int rc = store_query(gateway->store, call, &query, purge_row, list, NULL);
    if (rc == NG_OK) {
        rc = list->rc;
    }
    for (size_t i = 0; rc == NG_OK && i < list->count; i++) {
        rc = purge_finish(&list->purges[i]);
    }
    return rc;
}
