/* SPDX-License-Identifier: MIT */
/* store_version.c - blobs, versions and drafts: documents as the store holds them in memory. */
#include <stdlib.h>

#include "core/base/str.h"
#include "store_types.h"

/* First block of a version's arena: most bodies fit. */
#define VERSION_ARENA_BYTES ((size_t)384)

struct blob *blob_new(size_t len)
{
    if (len > SIZE_MAX / 2) {
        return NULL;
    }
    struct blob *blob = alloc_bytes(sizeof(*blob) + len + 1);
    if (blob != NULL) {
        atomic_init(&blob->refs, 1);
        blob->len = len;
        blob->data[len] = '\0';
    }
    return blob;
}

struct blob *blob_of(struct ng_str text)
{
    struct blob *blob = blob_new(text.len);
    if (blob != NULL && text.len > 0) {
        memcpy(blob->data, text.data, text.len);
    }
    return blob;
}

void version_free(struct version *version)
{
    struct version *origin = version->origin;
    free(version->committed);
    blob_unref(version->key);
    blob_unref(version->json);
    blob_unref(version->text);
    arena_done(&version->arena);
    free(version);
    version_unref(origin);
}

struct version *version_commit(struct version *version, const struct ng_put *put,
                               uint64_t created_seq)
{
    struct version *form = version->committed;
    version->committed = NULL;
    atomic_init(&form->refs, 1);
    arena_init(&form->arena, 0);
    form->doc = version->doc;
    form->doc.seq = put->seq;
    form->doc.updated_ms = put->time_ms;
    form->doc.created_seq = created_seq;
    form->key = blob_ref(version->key);
    form->json = blob_ref(version->json);
    form->text = blob_ref(version->text);
    form->origin = version_ref(version);
    return form;
}

size_t version_bytes(const struct version *version)
{
    size_t shared = version->origin != NULL ? version->origin->arena.used : 0;
    return sizeof(*version) + version->key->len + version->json->len + version->text->len +
           version->arena.used + shared;
}

/* The body of a document that is not there, or has been deleted. */
static const struct ng_value version_empty = {.type = NG_TYPE_OBJECT};

/* The tree points into the version's JSON. */
static int version_parse(struct version *version)
{
    struct json_error error;
    if (str_is(version->doc.json, "{}")) {
        version->doc.body = &version_empty;
        return NG_OK;
    }
    int rc = json_parse_kept(&version->arena, version->doc.json, JSON_DEPTH_DEFAULT,
                             &version->doc.body, &error);
    if (rc == NG_OK && version->doc.body->type != NG_TYPE_OBJECT) {
        rc = NG_EJSON;
    }
    return rc;
}

struct version *version_new(struct blob *key, size_t collection_len, size_t space_len,
                            struct blob *json, struct blob *text, int *rc)
{
    struct version *version = alloc_zeroed(1, sizeof(*version));
    if (version == NULL) {
        *rc = NG_EINTERNAL;
        return NULL;
    }
    atomic_init(&version->refs, 1);
    arena_init(&version->arena, 0);
    version->arena.first = VERSION_ARENA_BYTES;
    version->key = blob_ref(key);
    version->json = blob_ref(json);
    version->text = blob_ref(text);
    struct ng_doc *doc = &version->doc;
    doc->size = sizeof(*doc);
    doc->key.collection = str_make(key->data, collection_len);
    doc->key.space = str_make(key->data + collection_len, space_len);
    doc->key.id =
        str_make(key->data + collection_len + space_len, key->len - collection_len - space_len);
    doc->json = blob_str(json);
    doc->text = blob_str(text);
    doc->text_size = text->len;
    *rc = version_parse(version);
    if (*rc != NG_OK) {
        version_unref(version);
        return NULL;
    }
    return version;
}

int version_name(struct version *version, struct ng_str author, struct ng_str action)
{
    version->doc.author = arena_copy(&version->arena, author);
    version->doc.action = arena_copy(&version->arena, action);
    bool good = (author.data == NULL || version->doc.author.data != NULL) &&
                (action.data == NULL || version->doc.action.data != NULL);
    if (good) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

static struct blob *version_key_blob(const struct ng_key *key)
{
    struct blob *blob = blob_new(key->collection.len + key->space.len + key->id.len);
    if (blob != NULL) {
        char *at = blob->data;
        memcpy(at, key->collection.data, key->collection.len);
        at += key->collection.len;
        if (key->space.len > 0) {
            memcpy(at, key->space.data, key->space.len);
            at += key->space.len;
        }
        if (key->id.len > 0) {
            memcpy(at, key->id.data, key->id.len);
        }
    }
    return blob;
}

struct version *version_of_row(const struct ng_key *key, const struct ng_doc *row, int *rc)
{
    struct blob *key_blob = version_key_blob(key);
    struct blob *json = blob_of(row->json.len == 0 ? ng_str_of("{}") : row->json);
    struct blob *text = blob_of(row->text);
    struct version *version = NULL;
    *rc = NG_EINTERNAL;
    if (key_blob != NULL && json != NULL && text != NULL) {
        version = version_new(key_blob, key->collection.len, key->space.len, json, text, rc);
    }
    blob_unref(key_blob);
    blob_unref(json);
    blob_unref(text);
    if (version == NULL) {
        return NULL;
    }
    struct ng_doc *doc = &version->doc;
    doc->revision = row->revision;
    doc->deleted = row->deleted;
    doc->seq = row->seq;
    doc->created_seq = row->created_seq;
    doc->created_ms = row->created_ms;
    doc->updated_ms = row->updated_ms;
    *rc = version_name(version, row->author, row->action);
    if (*rc != NG_OK) {
        version_unref(version);
        return NULL;
    }
    return version;
}

struct version *version_of_nothing(const struct ng_key *key)
{
    struct ng_doc nothing = {.size = sizeof(nothing)};
    int rc = NG_OK;
    return version_of_row(key, &nothing, &rc);
}

/* ---- drafts ---- */

static int draft_no_memory(struct ng_draft *draft)
{
    return call_fail(draft->call, NG_EINTERNAL, "out of memory while a change was made");
}

int store_draft_json(struct ng_draft *next, struct ng_str object)
{
    struct blob *json = blob_of(object);
    if (json == NULL) {
        return draft_no_memory(next);
    }
    blob_unref(next->json);
    next->json = json;
    next->deleted = false;
    return NG_OK;
}

int store_draft_text(struct ng_draft *next, const struct ng_str *pieces, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > SIZE_MAX / 2 - size) {
            return draft_no_memory(next);
        }
        size += pieces[i].len;
    }
    struct blob *text = blob_new(size);
    if (text == NULL) {
        return draft_no_memory(next);
    }
    char *at = text->data;
    for (size_t i = 0; i < count; i++) {
        (void)str_move_in(&at, pieces[i]);
    }
    blob_unref(next->text);
    next->text = text;
    next->spliced = false;
    next->deleted = false;
    return NG_OK;
}

int store_draft_splice(struct ng_draft *next, uint64_t at, uint64_t removed,
                       struct ng_str inserted)
{
    struct ng_str now = next->text != NULL ? blob_str(next->text) : next->base_text;
    if (at > now.len || removed > now.len - at) {
        return call_fail(next->call, NG_EINTERNAL,
                         "a change at byte %llu of %zu is outside of the text",
                         (unsigned long long)at, now.len);
    }
    bool first = next->text == NULL;
    size_t tail = (size_t)(at + removed);
    struct ng_str pieces[3] = {
        str_make(now.data, (size_t)at), inserted,
        str_make(now.data == NULL ? NULL : now.data + tail, now.len - tail)};
    int rc = store_draft_text(next, pieces, NG_COUNT(pieces));
    if (rc == NG_OK && first) {
        next->spliced = true;
        next->splice.at = at;
        next->splice.removed = removed;
        next->splice.inserted = str_make(next->text->data + at, inserted.len);
    }
    return rc;
}

void store_draft_delete(struct ng_draft *next)
{
    next->deleted = true;
}

void store_draft_event(struct ng_draft *next, struct ng_str json)
{
    next->event_data = arena_copy(&next->call->arena, json);
    if (next->event_data.data == NULL && json.data != NULL) {
        next->rc = NG_EINTERNAL;
    }
}

struct ng_str store_draft_event_data(const struct ng_draft *next)
{
    return next->event_data;
}

static void draft_release(void *draft)
{
    draft_done(draft);
}

struct ng_draft *store_draft_new(struct call *call, struct ng_str json, struct ng_str text)
{
    struct ng_draft *draft = arena_zalloc(&call->arena, sizeof(*draft));
    if (draft == NULL) {
        return NULL;
    }
    draft->call = call;
    draft->base_json = json;
    draft->base_text = text;
    if (call_pin(call, draft_release, draft) == NG_OK) {
        return draft;
    }
    return NULL;
}

void store_draft_view(const struct ng_draft *draft, struct draft_view *ret)
{
    ret->touched = draft_touched(draft);
    ret->deleted = draft->deleted;
    if (draft->json != NULL) {
        ret->json = blob_str(draft->json);
    } else {
        ret->json = draft->base_json;
    }
    if (draft->text != NULL) {
        ret->text = blob_str(draft->text);
    } else {
        ret->text = draft->base_text;
    }
}
