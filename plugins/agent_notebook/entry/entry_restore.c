/* SPDX-License-Identifier: MIT */
/* entry_restore.c - notebook_restore: an earlier version as a new one, also of a deleted entry;
 * without a version the one before the caller's own last change. */
#include "core/base/str.h"
#include "entry.h"
#include "entry_text.h"
#include "entry_tools.h"
#include "read_receipts.h"

struct entry_restore {
    const struct agent_notebook *self;
    struct ng_key key;
    uint64_t version;
    const struct ng_doc *source;    /* the document at `version` */
    const struct ng_value *body;    /* its body */
    const struct ng_value *history; /* if the entry is deleted: its last history */
    uint64_t undo_base, undos;      /* of an undo, else 0 */
    bool with_reply;
};

static int restore_change(struct ng_call *call, const struct ng_doc *present,
                          struct ng_draft *next, void *user)
{
    const struct entry_restore *restore = user;
    if (entry_is_purged(present)) { /* since it was looked up */
        return entry_not_found(call, &restore->key, present);
    }
    struct entry_draft draft = {
        .self = restore->self,
        .collection = entry_collection(restore->key.collection),
        .key = restore->key,
        .version = present->revision + 1,
        .text = restore->source->text,
        .bytes = restore->source->text.len,
        .restored_from = restore->version,
        .undo_base = restore->undo_base,
        .undos = restore->undos,
        .change_by = entry_agent(call),
    };
    entry_draft_load(call, &draft, restore->body);
    if (entry_exists(present)) {
        draft.history = call->host->json_get(present->body, "history");
    } else {
        draft.history = restore->history;
    }
    draft.did = call->host->format(call, "restored from version %llu",
                                   (unsigned long long)restore->version);
    int rc = call->host->draft_text(next, &draft.text, 1);
    if (rc == NG_OK) {
        rc = entry_draft_store(call, &draft, next);
    }
    if (rc != NG_OK || !restore->with_reply) {
        return rc;
    }
    return entry_draft_reply(call, &draft, "restored");
}

/* ---- a content that the history gives back ---- */

/* Members that people write; the others are made anew, or stay. */
static void content_members(struct ng_call *call, const struct ng_value *members,
                            struct entry_draft *draft)
{
    const struct ng_host *host = call->host;
    draft->title = str_or(host->json_text(host->json_get(members, "title")), draft->title);
    draft->status = str_or(host->json_text(host->json_get(members, "status")), draft->status);
    draft->tags = host->json_get(members, "tags");
    draft->summary = host->json_text(host->json_get(members, "summary"));
    draft->summary_given = draft->summary.data != NULL;
    draft->sections = host->json_get(members, "sections");
    draft->sections_given = draft->sections != NULL;
    for (size_t i = 0; i < ENTRY_OWN_MAX; i++) {
        const char *name = entry_own[draft->collection][i].name;
        draft->own[i] = name != NULL ? host->json_get(members, name) : NULL;
    }
}

static int content_delete(const struct agent_notebook *self, struct ng_call *call,
                          struct entry_draft *draft, struct ng_draft *next)
{
    draft->summary = ng_str_of("");
    entry_event(call, next, draft);
    read_receipts_deleted(self->receipts, &draft->key, draft->version);
    call->host->draft_delete(next);
    return NG_OK;
}

int entry_take_content(void *self, struct ng_call *call, const struct ng_content *content,
                       const struct ng_doc *present, struct ng_draft *next)
{
    struct entry_draft draft = {
        .self = self,
        .collection = entry_collection(content->key.collection),
        .key = content->key,
        .version = present->revision + 1,
        .restored_from = content->restored_from,
        .change_by = entry_agent(call),
        .did = ng_str_of("changes taken back"),
    };
    if (entry_is_purged(present)) { /* since its content was read */
        return entry_not_found(call, &content->key, present);
    }
    entry_draft_load(call, &draft, entry_exists(present) ? present->body : content->last);
    if (content->gone) {
        return content_delete(self, call, &draft, next);
    }
    content_members(call, content->members, &draft);
    draft.created_by = str_or(draft.created_by, draft.change_by);
    draft.text = content->text;
    draft.bytes = content->text.len;
    draft.words = entry_words(content->text);
    draft.text_changed = true;
    draft.same_headings = false;
    if (content->restored_from != 0) {
        draft.did = call->host->format(call, "restored from version %llu",
                                       (unsigned long long)content->restored_from);
    }
    int rc = call->host->draft_text(next, &draft.text, 1);
    return rc != NG_OK ? rc : entry_draft_store(call, &draft, next);
}

/* ---- notebook_restore ---- */

/* Loads the version and, if the entry is deleted, its last history. */
static int restore_load(struct ng_call *call, struct entry_restore *restore,
                        const struct ng_doc *newest)
{
    const struct ng_host *host = call->host;
    const struct ng_doc *last = NULL;
    const struct ng_value *body = NULL;
    if (newest->revision == 0 || entry_is_purged(newest)) {
        return entry_not_found(call, &restore->key, newest);
    }
    int rc = host->get(call, &restore->key, restore->version, &restore->source);
    if (rc == NG_ENOTFOUND || (rc == NG_OK && !entry_exists(restore->source))) {
        return entry_no_version(call, &restore->key, restore->version);
    }
    if (rc == NG_OK) {
        rc = entry_body(call, restore->source, &restore->body);
    }
    if (rc != NG_OK || !newest->deleted || newest->revision < 2) {
        return rc;
    }
    restore->history = host->json_get(restore->body, "history");
    rc = host->get(call, &restore->key, newest->revision - 1, &last);
    if (rc == NG_OK && entry_exists(last)) {
        rc = entry_body(call, last, &body);
        if (rc != NG_OK) {
            restore->history = NULL;
        } else {
            restore->history = host->json_get(body, "history");
        }
    }
    if (rc != NG_ENOTFOUND) {
        return rc;
    }
    return NG_OK;
}

/* newest: the entry's newest revision. */
static int restore_prepare(const struct agent_notebook *self, struct ng_call *call,
                           const struct ng_doc *newest, const struct ng_key *key,
                           uint64_t version, bool with_reply, struct ng_change *ret_change)
{
    struct entry_restore *restore = ng_alloc(call, sizeof(*restore));
    if (restore == NULL) {
        return entry_no_memory(call);
    }
    *restore = (struct entry_restore){
        .self = self, .key = *key, .version = version, .with_reply = with_reply};
    int rc = restore_load(call, restore, newest);
    if (rc != NG_OK) {
        return rc;
    }
    *ret_change = (struct ng_change){
        .size = sizeof(*ret_change),
        .key = *key,
        .fn = restore_change,
        .user = restore,
        .action = "updated", /* also after a deletion */
    };
    return NG_OK;
}

int entry_restore_prepare(const struct agent_notebook *self, struct ng_call *call,
                          const struct ng_key *key, uint64_t version, bool with_reply,
                          struct ng_change *ret_change)
{
    const struct ng_doc *newest = NULL;
    int rc = call->host->get(call, key, 0, &newest);
    if (rc != NG_OK) {
        return rc;
    }
    return restore_prepare(self, call, newest, key, version, with_reply, ret_change);
}

/* ---- without a version: the caller's last change is taken back ---- */

/* The last change made the entry. */
static int restore_nothing(struct ng_call *call, const struct ng_doc *present,
                           struct ng_draft *next, void *user)
{
    const struct entry_restore *restore = user;
    const struct ng_str pieces[] = {ng_str_of("the entry '"), restore->key.id,
                                    ng_str_of("' has no version before your last change")};
    (void)present;
    (void)next;
    entry_fail_pieces(call, AGENT_NOTEBOOK_VERSION_NOT_FOUND, pieces, NG_COUNT(pieces));
    call->host->hint(call, "That change made it; notebook_delete deletes it.");
    return AGENT_NOTEBOOK_VERSION_NOT_FOUND;
}

static int restore_plan(struct ng_call *call, const struct ng_undo_step *step,
                        struct ng_change *changes, size_t *ret_count, void *user)
{
    struct entry_restore *restore = user;
    *ret_count = 1;
    changes[0].user = restore;
    changes[0].fn = restore_nothing;
    if (step->former == NULL) {
        return NG_OK;
    }
    changes[0].fn = restore_change;
    changes[0].action = "updated"; /* also after a deletion */
    restore->version = step->former->revision;
    restore->source = step->former;
    restore->undo_base = step->base;
    restore->undos = step->undos;
    int rc = entry_body(call, step->former, &restore->body);
    if (rc == NG_OK) {
        rc = call->host->revision_number(call, step->present->revision + 1);
    }
    if (rc != NG_OK) {
        return rc;
    }
    /* Used for a deleted entry, which has no history of its own. */
    restore->history = call->host->json_get(restore->body, "history");
    struct entry_draft draft = {
        .key = restore->key,
        .version = step->present->revision + 1,
        .restored_from = restore->version,
    };
    return entry_draft_reply(call, &draft, "restored");
}

static int restore_undo(const struct agent_notebook *self, struct ng_call *call,
                        const struct ng_key *key)
{
    const struct ng_str pieces[] = {ng_str_of("the entry '"), key->id, ng_str_of("'")};
    struct entry_restore restore = {.self = self, .key = *key};
    struct ng_undo undo = {
        .size = sizeof(undo),
        .key = *key,
        .name = entry_join(call, pieces, NG_COUNT(pieces)),
        .instead = ng_str_of("pass the `version` that you want; notebook_history lists them"),
        .fn = restore_plan,
        .user = &restore,
    };
    if (undo.name.data == NULL) {
        return entry_no_memory(call);
    }
    return call->host->undo(call, &undo);
}

int entry_restore_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct agent_notebook *notebook = self;
    struct ng_key key;
    const struct ng_doc *newest = NULL;
    struct ng_change change;
    uint64_t version = (uint64_t)ng_arg_int(call, "version", 0);
    (void)args;
    int rc = entry_find(call, &key, &newest);
    if (rc == NG_OK && (newest->revision == 0 || entry_is_purged(newest))) {
        rc = entry_not_found(call, &key, newest);
    }
    if (rc == NG_OK && version > 0) {
        rc = restore_prepare(notebook, call, newest, &key, version, true, &change);
    }
    if (rc == NG_OK) {
        rc = read_receipts_flush(notebook->receipts, call, &key);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return version > 0 ? ng_change_one(call, &change) : restore_undo(notebook, call, &key);
}
