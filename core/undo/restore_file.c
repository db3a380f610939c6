/* SPDX-License-Identifier: MIT */
/* restore_file.c - gives a file the content of one of its versions, by a save. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "undo.h"

/* A file as it is to be; in memory of `call`. */
struct file_restore {
    const struct ng_restore *what;
    struct call *call; /* of its own, makes the save */
    const struct ng_doc *source, *newest;
    const char *collection; /* of the event */
    uint64_t added, removed;
};

/* The collection of the newest change up to the version. */
static const char *first_word(struct arena *arena, struct ng_str words)
{
    const char *blank = words.len > 0 ? memchr(words.data, ' ', words.len) : NULL;
    size_t len = blank != NULL ? (size_t)(blank - words.data) : words.len;
    return arena_printf(arena, "%.*s", (int)len, words.data).data;
}

static int restore_draft(struct ng_call *pub, const struct ng_file *present,
                         struct ng_draft *next, void *user)
{
    struct file_restore *restore = user;
    struct ng_str text = str_or(restore->source->text, ng_str_of(""));
    (void)pub;
    content_lines(str_or(present->data, ng_str_of("")), text, &restore->added,
                  &restore->removed);
    return store_draft_text(next, &text, 1);
}

static int restore_load(struct file_restore *restore)
{
    const struct ng_restore *what = restore->what;
    struct call *call = restore->call;
    struct store *store = call->gateway->store;
    int rc = store_get(store, call, &what->key, what->revision, &restore->source);
    if (rc == NG_OK) {
        rc = store_get(store, call, &what->key, 0, &restore->newest);
    }
    if (rc == NG_OK && (restore->source->revision == 0 || restore->source->deleted)) {
        rc = call_fail(call, NG_EINVAL, "%.*s was not there in version %llu",
                       (int)what->key.id.len, what->key.id.data,
                       (unsigned long long)what->revision);
    }
    if (rc == NG_OK) {
        restore->collection =
            first_word(&call->arena, json_get_text(restore->source->body, "collections"));
        rc = restore->collection != NULL ? NG_OK : call_no_memory(call);
    }
    return rc;
}

static int restore_check(struct file_restore *restore)
{
    const struct ng_restore *what = restore->what;
    struct call *call = restore->call;
    if (undo_needs_agent(call, what->key.id) ||
        !dispatch_may_change(call, ng_str_of(restore->collection))) {
        return call_fail(call, NG_EFORBIDDEN,
                         "the caller may not change %.*s: that needs the role writer and a "
                         "tool that changes it; a notebook of cells, the mode agent, too",
                         (int)what->key.id.len, what->key.id.data);
    }
    if (what->has_expected && what->expected_revision != restore->newest->revision) {
        return undo_restore_conflict(call, what, restore->newest->revision);
    }
    return NG_OK;
}

static int restore_save(struct file_restore *restore, struct files_waited *waited)
{
    const struct ng_restore *what = restore->what;
    const struct ng_doc *newest = restore->newest;
    const struct ng_file_edit edit = {
        .size = sizeof(edit),
        .path = what->key.id,
        .fn = restore_draft,
        .user = restore,
        /* Another program may have saved it since its newest version. */
        .expected_revision = what->has_expected && !newest->deleted
                                 ? json_get_text(newest->body, "hash")
                                 : STR_NONE,
        /* Something may have been made there since. */
        .create = what->has_expected && newest->deleted,
        .parents = true,
        .collection = restore->collection,
    };
    return files_edit_wait(restore->call->gateway->files, restore->call, &edit, waited);
}

static int restore_run(struct file_restore *restore, struct files_waited *waited)
{
    int rc = restore_load(restore);
    if (rc == NG_OK) {
        rc = restore_check(restore);
    }
    if (rc != NG_OK) {
        return rc;
    }
    waited->mode = (uint32_t)json_get_integer(restore->source->body, "mode");
    return restore_save(restore, waited);
}

int undo_restore_file(struct call *call, const struct ng_restore *what)
{
    struct files_waited waited = {.version = 0};
    struct file_restore restore = {.what = what, .call = dispatch_child(call)};
    struct call *own = restore.call;
    if (own == NULL) {
        return call_no_memory(call);
    }
    own->may_block = true;
    own->options |= CALL_ALL_FOLDERS;
    int rc = restore_run(&restore, &waited);
    uint64_t version = waited.version;
    if (rc == NG_OK && version == 0) {
        version = restore.newest->revision; /* it has this content */
    }
    if (rc != NG_OK) {
        rc = undo_fail_as(call, own, rc);
    }
    dispatch_take_changes(call, own);
    call_unref(own);
    if (rc != NG_OK) {
        return rc;
    }
    rc = call->pub.host->revision_number(&call->pub, version);
    return rc != NG_OK
               ? rc
               : what->replied(&call->pub, version, restore.added, restore.removed, what->user);
}
