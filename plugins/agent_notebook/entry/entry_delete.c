/* SPDX-License-Identifier: MIT */
/* entry_delete.c - notebook_delete: a tombstone with its event; the versions stay as long as
 * history is kept. With `purge` nothing of the entry stays. */
#include "entry.h"
#include "entry_tools.h"
#include "read_receipts.h"

struct entry_delete {
    const struct agent_notebook *self;
    struct ng_key key;
    bool purge;
};

static void delete_reply(struct ng_call *call, const struct ng_key *key, const char *status,
                         bool pending)
{
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", key->id);
    entry_put(call, writer, "collection", key->collection);
    entry_put(call, writer, "status", ng_str_of(status));
    if (pending) {
        call->host->json_name(writer, "pending");
        call->host->json_bool(writer, true);
    }
    call->host->json_end(writer);
}

static int delete_gone(struct ng_call *call, const struct entry_delete *delete,
                       const struct ng_doc *present)
{
    if (delete->purge && entry_is_purged(present)) {
        return NG_OK; /* a purge that was cut off is completed now */
    }
    int rc = entry_not_found(call, &delete->key, present);
    if (delete->purge && present->deleted) {
        call->host->hint(call, "notebook_restore brings it back; then `purge` removes it.");
    }
    return rc;
}

static int delete_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct entry_delete *delete = user;
    if (!entry_exists(present)) {
        return delete_gone(call, delete, present);
    }
    struct entry_draft draft = {
        .self = delete->self,
        .collection = entry_collection(delete->key.collection),
        .key = delete->key,
        .version = present->revision + 1,
    };
    if (!delete->purge) {
        entry_draft_load(call, &draft, present->body);
        draft.summary = ng_str_of("");
        delete_reply(call, &delete->key, "deleted", false);
    }
    entry_event(call, next, &draft);
    read_receipts_deleted(delete->self->receipts, &delete->key, draft.version);
    call->host->draft_delete(next);
    return NG_OK;
}

/* Drops the queued read receipts of the entry first, because each has its title. */
static int delete_purge(struct ng_call *call, struct entry_delete *delete,
                        const struct ng_doc *newest)
{
    struct read_receipts *receipts = delete->self->receipts;
    struct ng_change change = {
        .size = sizeof(change),
        .key = delete->key,
        .fn = delete_change,
        .user = delete,
    };
    bool pending = false;
    if (call->caller->role != NG_ROLE_ADMIN) {
        return ng_fail(call, NG_EFORBIDDEN,
                       "`purge` removes every version for good: only an admin may do that");
    }
    if (!call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    int rc = read_receipts_lock(receipts, call);
    if (rc != NG_OK) {
        return rc;
    }
    read_receipts_deleted(receipts, &delete->key, newest->revision + 1);
    read_receipts_unlock(receipts);
    rc = call->host->purge(call, &change, &pending);
    if (rc == NG_OK) {
        delete_reply(call, &delete->key, "purged", pending);
    }
    return rc;
}

int entry_delete_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct entry_delete *delete = ng_alloc(call, sizeof(*delete));
    const struct ng_doc *doc = NULL;
    (void)args;
    if (delete == NULL) {
        return entry_no_memory(call);
    }
    delete->self = self;
    delete->purge = call->host->json_type(ng_arg(call, "purge")) == NG_TYPE_TRUE;
    /* Load the document first: nothing should be loaded under the lock. */
    int rc = entry_find(call, &delete->key, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_receipts_flush(delete->self->receipts, call, &delete->key);
    if (rc != NG_OK) {
        return rc;
    }
    if (delete->purge) {
        return delete_purge(call, delete, doc);
    }
    rc = read_receipts_lock(delete->self->receipts, call);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = delete->key,
        .fn = delete_change,
        .user = delete,
    };
    rc = ng_change_one(call, &change);
    read_receipts_unlock(delete->self->receipts);
    return rc;
}
