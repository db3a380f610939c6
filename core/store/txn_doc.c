/* SPDX-License-Identifier: MIT */
/* txn_doc.c - one document of a change: its function, the version that it makes, and its row
 * for the backend. */
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/merge/line_counts.h"
#include "core/base/merge/splice.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/fault/module_run.h"
#include "store_txn.h"

int txn_no_memory(struct call *call)
{
    return call_fail(call, NG_EINTERNAL, "out of memory while a change was made");
}

/* ---- the next version and its put ---- */

/* A tool that replaces a whole text often changes little of it: equal bytes at both ends of its
 * splice are not stored again. */
static struct ng_splice splice_narrow(struct ng_str from, struct ng_splice splice)
{
    struct ng_splice inner = splice_between(
        str_make(from.data + splice.at, (size_t)splice.removed), splice.inserted);
    inner.at += splice.at;
    return inner;
}

static const char *change_action(const struct txn_doc *doc)
{
    if (doc->change->action != NULL) {
        return doc->change->action;
    }
    if (doc->draft.deleted) {
        return "deleted";
    }
    bool is_new = doc->base->doc.revision == 0 || doc->base->doc.deleted;
    if (is_new) {
        return "created";
    }
    return "updated";
}

static struct version *txn_doc_version(struct store_txn *txn, struct txn_doc *doc, int *rc)
{
    struct ng_draft *draft = &doc->draft;
    const struct cached_doc *cached = doc->cached;
    struct blob *json = draft->json != NULL ? blob_ref(draft->json) : blob_ref(doc->base->json);
    struct blob *text = draft->text != NULL ? blob_ref(draft->text) : blob_ref(doc->base->text);
    if (draft->deleted) {
        blob_unref(json);
        blob_unref(text);
        json = blob_of(ng_str_of("{}"));
        text = blob_of(ng_str_of(""));
    }
    struct version *next = NULL;
    *rc = NG_EINTERNAL;
    if (json != NULL && text != NULL) {
        next =
            version_new(cached->key, cached->collection_len, cached->space_len, json, text, rc);
    }
    blob_unref(json);
    blob_unref(text);
    if (next == NULL) {
        return NULL;
    }
    const struct ng_doc *base = &doc->base->doc;
    bool creates = base->revision == 0 || base->deleted;
    next->ticket = atomic_fetch_add(&txn->store->tickets, 1) + 1;
    next->doc.revision = base->revision + 1;
    next->doc.deleted = draft->deleted;
    next->doc.updated_ms = i64_max(store_change_ms(txn->store), base->updated_ms);
    if (creates) {
        next->doc.created_ms = next->doc.updated_ms;
    } else {
        next->doc.created_ms = base->created_ms;
    }
    /* 0 as well: of one that is queued */
    if (creates) {
        next->doc.created_seq = 0;
    } else {
        next->doc.created_seq = base->created_seq;
    }
    *rc = version_name(next, txn->call->caller.agent, ng_str_of(change_action(doc)));
    /* Memory for the committed form, before the version is queued. */
    next->committed = alloc_zeroed(1, sizeof(*next->committed));
    if (next->committed == NULL) {
        *rc = NG_EINTERNAL;
    }
    if (*rc != NG_OK) {
        version_unref(next);
        return NULL;
    }
    return next;
}

int txn_doc_put(struct store_txn *txn, struct txn_doc *doc, struct ng_put *put)
{
    const struct version *base = doc->base;
    const struct version *next = doc->next != NULL ? doc->next : base;
    const struct ng_collection *collection =
        store_collection(txn->store, next->doc.key.collection);
    put->size = sizeof(*put);
    put->key = next->doc.key;
    put->base_revision = base->doc.revision;
    put->revision = next->doc.revision;
    put->base_ticket = base->ticket;
    if (doc->next == NULL) {
        return NG_OK;
    }
    put->ticket = next->ticket;
    bool creates = base->doc.revision == 0 || base->doc.deleted;
    put->deleted = next->doc.deleted;
    put->quiet = (collection->flags & NG_COLLECTION_QUIET) != 0;
    put->no_history = (collection->flags & NG_COLLECTION_NO_HISTORY) != 0;
    put->json = next->doc.json;
    put->text = next->doc.text;
    /* The form of a body that is not there is "": nothing to splice from. */
    struct ng_str from_json = creates ? str_make("", 0) : base->doc.json;
    struct ng_str from_text = creates ? str_make("", 0) : base->doc.text;
    put->json_splice = splice_between(from_json, put->json);
    if (doc->draft.spliced && !creates && !next->doc.deleted) {
        put->text_splice = doc->draft.splice;
        if (put->text_splice.removed > 0 && put->text_splice.inserted.len > 0) {
            put->text_splice = splice_narrow(from_text, put->text_splice);
        }
    } else if (next->text == base->text) {
        put->text_splice.at = from_text.len;
    } else {
        put->text_splice = splice_between(from_text, put->text);
    }
    put->time_ms = next->doc.updated_ms;
    put->created_ms = next->doc.created_ms;
    if (creates) {
        put->created_seq = 0;
    } else {
        put->created_seq = NG_SEQ_KEEP;
    }
    put->agent = next->doc.author;
    put->tool = txn->call->pub.tool;
    put->action = next->doc.action;
    put->event_data = doc->draft.event_data;
    put->origin.run_id = txn->call->caller.run_id;
    put->origin.key_id = txn->call->caller.key_id;
    put->origin.request_id = txn->call->caller.request_id;
    put->gateway = txn->store->gateway;
    put->origin.has_lines = from_text.len > 0 || put->text.len > 0;
    (void)line_counts(from_text, &put->text_splice, &put->origin.lines_added,
                      &put->origin.lines_removed);
    if (next->doc.deleted || collection->field_count == 0) {
        return NG_OK;
    }
    return store_fields(&txn->arena, collection, next->doc.body, &put->fields,
                        &put->field_count);
}

/* ---- running its function ---- */

void txn_doc_reset(struct txn_doc *doc)
{
    draft_done(&doc->draft);
    memset(&doc->draft, 0, sizeof(doc->draft));
    version_unref(doc->next);
    version_unref(doc->base);
    doc->next = NULL;
    doc->base = NULL;
}

void txn_doc_keep(struct txn_doc *doc)
{
    version_unref(doc->next);
    doc->next = NULL;
    if (doc->base == NULL) {
        doc->base = version_ref(doc->cached->newest);
    }
}

/* The code of a change that depends on a failed one: a conflict or a used key concerns the
 * other call only, a full disk concerns all. */
int store_poisoned_code(int poisoned)
{
    if (poisoned == NG_EFULL) {
        return NG_EFULL;
    }
    return NG_EUNAVAILABLE;
}

static int txn_doc_take_base(struct store_txn *txn, struct txn_doc *doc)
{
    struct store_table *table = &txn->store->table;
    lock_take(&table->lock);
    int poisoned = doc->cached->poisoned;
    struct version *base = doc->cached->newest;
    if (base == NULL) {
        doc->base = NULL;
    } else {
        doc->base = version_ref(base);
    }
    lock_release(&table->lock);
    if (poisoned != 0 && txn->store->shared) {
        txn->wait_for = doc->cached;
        return NG_PENDING;
    }
    if (poisoned != 0) {
        int code = store_poisoned_code(poisoned);
        (void)call_fail(txn->call, code,
                        "an earlier change of this document could not be stored; try again");
        return code;
    }
    if (doc->base != NULL) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static int txn_doc_conflict(struct store_txn *txn, const struct txn_doc *doc, uint64_t present)
{
    call_fail(txn->call, NG_ECONFLICT,
              "revision %llu was expected, the document is at revision %llu now",
              (unsigned long long)doc->change->expected_revision, (unsigned long long)present);
    txn->call->staged.hint =
        ng_str_of("Read it again and repeat the change on what is there now.");
    struct ng_writer *writer = txn->call->pub.host->details(&txn->call->pub);
    json_object(writer);
    json_name(writer, "currentRevision");
    json_int(writer, (int64_t)present);
    json_end(writer);
    return NG_ECONFLICT;
}

int txn_doc_run(struct store_txn *txn, struct txn_doc *doc)
{
    int rc = txn_doc_take_base(txn, doc);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_doc *present = &doc->base->doc;
    if (doc->change->has_expected) {
        uint64_t revision = present->deleted ? 0 : present->revision;
        if (doc->change->expected_revision != revision) {
            return txn_doc_conflict(txn, doc, revision);
        }
    }
    doc->draft.call = txn->call;
    doc->draft.base = doc->base;
    doc->draft.base_json = present->json;
    doc->draft.base_text = present->text;
    struct module_run run;
    call_enter_module(txn->call, &run);
    run.in_change = true;
    rc = doc->change->fn(&txn->call->pub, present, &doc->draft, doc->change->user);
    module_run_end(&run);
    if (rc != NG_OK) {
        if (rc < 0) {
            return rc;
        }
        return call_fail(txn->call, NG_EINTERNAL, "a change function returned %d", rc);
    }
    /* A call that has failed already only cleans up its own work. */
    if (doc->draft.rc != NG_OK ||
        (txn->call->staged.rc == NG_OK && call_lacks_memory(txn->call))) {
        return txn_no_memory(txn->call);
    }
    if (!draft_touched(&doc->draft) ||
        (doc->draft.deleted && (present->revision == 0 || present->deleted))) {
        return NG_OK;
    }
    doc->next = txn_doc_version(txn, doc, &rc);
    if (doc->next == NULL && rc != NG_EJSON) {
        return txn_no_memory(txn->call);
    }
    if (doc->next == NULL) {
        return call_fail(txn->call, NG_EINTERNAL,
                         "`%.*s` made a document that is not a JSON object",
                         (int)txn->call->pub.tool.len, txn->call->pub.tool.data);
    }
    return NG_OK;
}
