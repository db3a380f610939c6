/* SPDX-License-Identifier: MIT */
/* entry_delete.c - notebook_delete: a tombstone with its event; the versions stay as long as
 * history is kept. */
#include "entry.h"
#include "entry_tools.h"
#include "read_receipts.h"

struct entry_delete {
    const struct agent_notebook *self;
    struct ng_key key;
};

static int delete_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct entry_delete *delete = user;
    if (!entry_exists(present)) {
        return entry_not_found(call, &delete->key, present);
    }
    struct entry_draft draft = {
        .self = delete->self,
        .collection = entry_collection(delete->key.collection),
        .key = delete->key,
        .version = present->revision + 1,
    };
    entry_draft_load(call, &draft, present->body);
    draft.summary = ng_str_of("");
    entry_event(call, next, &draft);
    read_receipts_deleted(delete->self->receipts, &delete->key, draft.version);
    call->host->draft_delete(next);
    struct ng_writer *writer = call->host->reply_json(call);
    call->host->json_object(writer);
    entry_put(call, writer, "notebook_id", delete->key.id);
    entry_put(call, writer, "collection", delete->key.collection);
    entry_put(call, writer, "status", ng_str_of("deleted"));
    call->host->json_end(writer);
    return NG_OK;
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
    /* Load the document first: nothing should be loaded under the lock. */
    int rc = entry_find(call, &delete->key, &doc);
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_receipts_flush(delete->self->receipts, call, &delete->key);
    if (rc != NG_OK) {
        return rc;
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
