/* SPDX-License-Identifier: MIT */
/* entry_update.c - notebook_update: a function from the present entry to the next one, so that
 * concurrent updates of many agents form one line of versions and none is lost. */
#include "entry.h"
#include "entry_edit.h"
#include "entry_tools.h"
#include "read_receipts.h"

/* Changes of one update that its history entry lists. */
#define UPDATE_PARTS_MAX 8

struct entry_update {
    const struct agent_notebook *self;
    struct ng_key key;
    unsigned collection;
    enum entry_edit_kind kind;
};

static int update_conflict(struct ng_call *call, const struct ng_doc *present)
{
    const struct ng_host *host = call->host;
    int64_t expected = ng_arg_int(call, "expected_version", 0);
    (void)ng_fail(call, NG_ECONFLICT, "version %lld was expected, the entry is at version %llu",
                  (long long)expected, (unsigned long long)present->revision);
    host->hint(call, "Read it again and repeat the change on what is there now.");
    struct ng_writer *writer = host->details(call);
    host->json_object(writer);
    entry_put(call, writer, "notebook_id", present->key.id);
    entry_put_int(call, writer, "expected_version", (uint64_t)expected);
    entry_put_int(call, writer, "current_version", present->revision);
    host->json_end(writer);
    return NG_ECONFLICT;
}

/* "content updated; title changed to 'X'; status → complete" */
static struct ng_str update_did(struct ng_call *call, const struct entry_draft *draft)
{
    const struct ng_host *host = call->host;
    struct ng_str did = draft->did;
    struct ng_str parts[UPDATE_PARTS_MAX];
    size_t count = 0;
    if (ng_has_arg(call, "title")) {
        struct ng_str title = entry_quoted(draft->title);
        parts[count++] =
            host->format(call, "title changed to '%.*s'", (int)title.len, title.data);
    }
    if (ng_has_arg(call, "tags")) {
        parts[count++] = ng_str_of("tags updated");
    }
    if (ng_has_arg(call, "summary")) {
        parts[count++] = ng_str_of("summary updated");
    }
    if (ng_has_arg(call, "status")) {
        parts[count++] = host->format(call, "status \xe2\x86\x92 %.*s", (int)draft->status.len,
                                      draft->status.data);
    }
    for (size_t i = 0; i < ENTRY_OWN_MAX; i++) {
        const char *name = entry_own[draft->collection][i].name;
        if (name != NULL && ng_has_arg(call, name)) {
            parts[count++] = host->format(call, "%s updated", name);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (did.len == 0) {
            did = parts[i];
        } else {
            did = host->format(call, "%.*s; %.*s", (int)did.len, did.data, (int)parts[i].len,
                               parts[i].data);
        }
    }
    if (did.len != 0) {
        return did;
    }
    return ng_str_of("Updated");
}

/* Each update makes a version, even if it sets nothing: the tool promises so. */
static int update_change(struct ng_call *call, const struct ng_doc *present,
                         struct ng_draft *next, void *user)
{
    const struct entry_update *update = user;
    if (!entry_exists(present)) {
        return entry_not_found(call, &update->key, present);
    }
    if (ng_has_arg(call, "expected_version") &&
        ng_arg_int(call, "expected_version", 0) != (int64_t)present->revision) {
        return update_conflict(call, present);
    }
    if (present->text.len > ENTRY_INLINE_BYTES && !call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    struct entry_draft draft = {
        .self = update->self,
        .collection = update->collection,
        .key = update->key,
        .version = present->revision + 1,
        .change_by = entry_agent(call),
    };
    entry_draft_load(call, &draft, present->body);
    entry_draft_args(call, &draft);
    bool same_headings = draft.same_headings;
    int rc = entry_edit(call, update->kind, present->text, &draft, next);
    draft.same_headings = draft.same_headings && same_headings;
    draft.did = update_did(call, &draft);
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_draft_store(call, &draft, next);
    if (rc != NG_OK) {
        return rc;
    }
    return entry_draft_reply(call, &draft, "updated");
}

int entry_update_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct agent_notebook *notebook = self;
    struct entry_update *update = ng_alloc(call, sizeof(*update));
    (void)args;
    if (update == NULL) {
        return entry_no_memory(call);
    }
    *update = (struct entry_update){.self = notebook};
    int rc = entry_find_to_change(call, &update->key);
    update->collection = entry_collection(update->key.collection);
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_check_args(notebook, call, update->collection);
    if (rc != NG_OK) {
        return rc;
    }
    rc = entry_edit_kind(call, &update->kind);
    if (rc != NG_OK) {
        return rc;
    }
    rc = read_receipts_flush(notebook->receipts, call, &update->key);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = update->key,
        .fn = update_change,
        .user = update,
    };
    return ng_change_one(call, &change);
}
