/* SPDX-License-Identifier: MIT */
/*
 * memory_delete.c - memory_delete: emits an event. The outbox delivers it after the event of
 * the memory, so a journal that receives both again ends without the memory.
 *
 * Each deleted memory has a document. Concurrent deletions conflict on it, and its revision
 * distinguishes a memory that a restore has brought back from one whose deletion is not yet
 * delivered.
 */
#include "core/base/str.h"
#include "entry/entry.h"
#include "memory.h"
#include "memory_tools.h"

/* The ids of the documents; no agent's name has a slash. */
#define MEMORY_DELETED "deleted/"
/* No memory has a longer id. */
#define MEMORY_DELETE_ID_MAX 256

struct memory_delete {
    struct ng_call *call;
    struct ng_str id, author, event;
    uint64_t revision; /* of the document before */
    bool found;
};

static int memory_delete_none(struct ng_call *call, struct ng_str id)
{
    struct ng_str quoted = entry_quoted(id);
    const struct ng_str pieces[] = {ng_str_of("there is no memory '"), quoted, ng_str_of("'")};
    entry_fail_pieces(call, NG_ENOTFOUND, pieces, NG_COUNT(pieces));
    call->host->hint(call, "memory_recall and memory_timeline give the `id` of each memory.");
    return NG_ENOTFOUND;
}

static int memory_delete_row(void *user, const struct ng_entry *entry)
{
    struct memory_delete *delete = user;
    delete->found = true;
    delete->author = entry_join(delete->call, &entry->agent, 1);
    return 0;
}

/* The author, or an admin. */
static int memory_delete_allowed(struct ng_call *call, const struct memory_delete *delete)
{
    if (call->caller->role == NG_ROLE_ADMIN || str_equal(delete->author, call->caller->agent)) {
        return NG_OK;
    }
    return ng_fail(call, NG_EFORBIDDEN,
                   "the memory is agent:%.*s's: only its author or an admin may delete it",
                   (int)delete->author.len, delete->author.data);
}

static int memory_delete_event(struct ng_call *call, struct memory_delete *delete)
{
    const struct ng_host *host = call->host;
    struct ng_writer *writer = host->json_writer(call);
    if (writer == NULL) {
        return entry_no_memory(call);
    }
    host->json_object(writer);
    memory_put(call, writer, "kind", ng_str_of("forget"));
    host->json_name(writer, "about");
    host->json_object(writer);
    memory_put(call, writer, "collection", ng_str_of(MEMORY_COLLECTION));
    memory_put(call, writer, "id", delete->id);
    host->json_end(writer);
    host->json_end(writer);
    delete->event = host->json_result(writer);
    return delete->event.data != NULL ? NG_OK : entry_no_memory(call);
}

static int memory_delete_change(struct ng_call *call, const struct ng_doc *present,
                                struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    const struct memory_delete *delete = user;
    if (present->revision != delete->revision) {
        return memory_delete_none(call, delete->id);
    }
    struct ng_str json =
        host->format(call, "{\"deletions\":%llu}", (unsigned long long)present->revision + 1);
    if (json.data == NULL) {
        return entry_no_memory(call);
    }
    struct ng_writer *reply = host->reply_json(call);
    host->json_object(reply);
    memory_put(call, reply, "id", delete->id);
    memory_put(call, reply, "status", ng_str_of("deleted"));
    host->json_end(reply);
    host->draft_event(next, delete->event);
    return host->draft_json(next, json);
}

/* The revision of its document is read before the journal: a deletion meanwhile changes it. */
static int memory_delete_find(struct ng_call *call, const struct ng_key *key,
                              struct memory_delete *delete)
{
    void *handle = NULL;
    const struct ng_journal *journal = memory_journal(call, &handle);
    const struct ng_doc *before = NULL;
    uint64_t backlog = 0;
    if (!NG_HAS(journal, memory) || journal->memory == NULL) {
        return ng_fail(call, NG_EINVAL, "the journal in use keeps every memory");
    }
    int rc = call->host->get(call, key, 0, &before);
    if (rc == NG_OK) {
        delete->revision = before->revision;
        rc = memory_flush(call, &backlog);
    }
    if (rc != NG_OK) {
        return rc;
    }
    rc = journal->memory(handle, call, call->caller->space, delete->id, memory_delete_row,
                         delete);
    if (rc != NG_OK && rc != NG_ENOTFOUND) {
        return rc;
    }
    if (!delete->found || (backlog > 0 && delete->revision > 0)) {
        return memory_delete_none(call, delete->id);
    }
    return memory_delete_allowed(call, delete);
}

int memory_delete_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct memory_delete *delete = ng_alloc(call, sizeof(*delete));
    (void)self;
    (void)args;
    if (delete == NULL) {
        return entry_no_memory(call);
    }
    *delete = (struct memory_delete){.call = call, .id = ng_arg_text(call, "id")};
    if (delete->id.len == 0 || delete->id.len > MEMORY_DELETE_ID_MAX) {
        return memory_delete_none(call, delete->id);
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(MEMORY_COLLECTION), call->caller->space,
                entry_join(call, (struct ng_str[]){ng_str_of(MEMORY_DELETED), delete->id}, 2)},
        .fn = memory_delete_change,
        .user = delete,
        .action = "deleted",
    };
    if (change.key.id.data == NULL) {
        return entry_no_memory(call);
    }
    int rc = memory_delete_find(call, &change.key, delete);
    if (rc == NG_OK) {
        rc = memory_delete_event(call, delete);
    }
    return rc == NG_OK ? ng_change_one(call, &change) : rc;
}
