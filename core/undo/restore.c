/* SPDX-License-Identifier: MIT */
/* restore.c - gives a document the content of one of its revisions, by a new one. */
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/files/files.h"
#include "core/store/store.h"
#include "undo.h"

/* In call memory: the change may run again after the tool has returned. */
struct restore {
    struct ng_restore what;
    const struct ng_doc *source;
    const struct ng_doc *last; /* of a deleted document: before its deletion; NULL: not kept */
};

int undo_restore_conflict(struct call *call, const struct ng_restore *what, uint64_t present)
{
    int rc = call_fail(
        call, NG_ECONFLICT, "revision %llu was expected, the document is at revision %llu",
        (unsigned long long)what->expected_revision, (unsigned long long)present);
    struct ng_writer *details = call->pub.host->details(&call->pub);
    json_object(details);
    json_member_int(details, "currentRevision", (int64_t)present);
    json_end(details);
    return rc;
}

static int restore_fn(struct ng_call *pub, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    const struct restore *restore = user;
    struct call *call = call_of(pub);
    const struct ng_collection *collection =
        store_collection(call->gateway->store, restore->what.key.collection);
    struct content from;
    uint64_t added = 0;
    uint64_t removed = 0;
    if (restore->what.has_expected && restore->what.expected_revision != present->revision) {
        return undo_restore_conflict(call, &restore->what, present->revision);
    }
    if (content_of(&call->arena, collection, restore->source, &from) != NG_OK) {
        return call_no_memory(call);
    }
    const struct ng_content content = {
        .size = sizeof(content),
        .key = restore->what.key,
        .text = from.text,
        .members = from.members,
        .last = present->deleted && restore->last != NULL ? restore->last->body : NULL,
        .restored_from = restore->source->revision,
    };
    int rc = content_draft(call, &content, present, next);
    if (rc != NG_OK) {
        return rc;
    }
    content_lines(present->deleted ? ng_str_of("") : str_or(present->text, ng_str_of("")),
                  from.text, &added, &removed);
    rc = pub->host->revision_number(pub, present->revision + 1);
    return rc != NG_OK ? rc
                       : restore->what.replied(pub, present->revision + 1, added, removed,
                                               restore->what.user);
}

/* The revision, and the last one before a deletion. */
static int restore_load(struct call *call, struct restore *restore)
{
    const struct ng_key *key = &restore->what.key;
    struct store *store = call->gateway->store;
    const struct ng_doc *newest = NULL;
    int rc = store_get(store, call, key, restore->what.revision, &restore->source);
    if (rc != NG_OK) {
        return rc;
    }
    if (restore->source->revision == 0 || restore->source->deleted) {
        return call_fail(call, NG_EINVAL, "%.*s was not there in revision %llu",
                         (int)key->id.len, key->id.data,
                         (unsigned long long)restore->what.revision);
    }
    rc = store_get(store, call, key, 0, &newest);
    if (rc != NG_OK || !newest->deleted) {
        return rc;
    }
    rc = store_get(store, call, key, newest->revision - 1, &restore->last);
    if (rc == NG_ENOTFOUND) {
        call_reset_result(call);
        restore->last = NULL;
        rc = NG_OK;
    }
    return rc;
}

int undo_restore(struct call *call, const struct ng_restore *what)
{
    struct restore *restore = arena_zalloc(&call->arena, sizeof(*restore));
    if (restore == NULL) {
        return call_no_memory(call);
    }
    struct ng_str collection = what->key.collection;
    if (str_is(collection, NG_FILE_VERSIONS)) {
        return undo_restore_file(call, what);
    }
    if (!dispatch_may_change(call, collection)) {
        return call_fail(call, NG_EFORBIDDEN,
                         "the caller may not change documents of %.*s: that needs the role "
                         "writer, and a tool that changes them",
                         (int)collection.len, collection.data);
    }
    restore->what = *what;
    int rc = restore_load(call, restore);
    if (rc != NG_OK) {
        return rc;
    }
    const struct ng_change change = {
        .size = sizeof(change), .key = what->key, .fn = restore_fn, .user = restore};
    return store_change(call->gateway->store, call, &change, 1);
}

int undo_fail_as(struct call *call, struct call *own, int rc)
{
    struct ng_str message = own->staged.message;
    struct ng_str details = buf_str(&own->details_buf);
    const struct ng_value *value = NULL;
    (void)call_fail(call, rc, "%.*s", (int)message.len, message.data);
    if (call_details_are_open(own) &&
        json_parse(&call->arena, details, JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK) {
        json_copy(call->pub.host->details(&call->pub), value);
    }
    return rc;
}
